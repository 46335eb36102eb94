//! The calls of one round.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use chassis::call::part;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use proto::{Reason, Refusal};
use tokio::sync::oneshot;
use tonic::Status;

use super::{Ask, Asked, Asks, BookKey, FoundBook, Loads, Reviews};

/// The contract's bound on keys in one call.
const MAX_KEYS: usize = 1_000;

/// The contract's bound on reviews in one call, over all its books.
const MAX_REVIEWS: usize = 10_000;

/// Orders can't be asked for in batches; so many are asked for at once.
const ORDERS_AT_ONCE: usize = 16;

type Call = BoxFuture<'static, ()>;

/// One call for each kind and [`MAX_KEYS`] keys.
pub(super) fn calls(loads: &Arc<Loads>, asked: Asked) -> Vec<Call> {
    let mut calls = Vec::new();
    books(loads, asked.books, &mut calls);
    authors(loads, asked.authors, &mut calls);
    reviews(loads, asked.reviews, &mut calls);
    for batch in Batch::of(asked.stocks) {
        let loads = Arc::clone(loads);
        calls.push(Box::pin(async move {
            let message = inventory::BatchGetStockRequest { book_ids: batch.keys.clone(), skus: Vec::new() };
            let caller = &loads.caller;
            // A screen can do without stock: inventory gets half of the time, and what else there is comes in time.
            let whole = caller.request(());
            let asked = part(whole.extensions(), message, |request| {
                caller.services.inventory.batch_get_stock(request)
            });
            let late = || Refusal::new(Reason::DeadlineExceeded, "inventory takes too long").into();
            let result = asked.await.unwrap_or_else(|| Err(late()));
            batch.answer(
                result.map(|reply| {
                    reply.into_inner().stocks.into_iter().map(|s| (s.book_id, Some(s))).collect()
                }),
            );
        }));
    }
    if !asked.orders.is_empty() {
        calls.push(Box::pin(orders(Arc::clone(loads), asked.orders)));
    }
    calls
}

/// Keys of one call, each once, and who waits for them.
struct Batch<K, V> {
    keys: Vec<K>,
    replies: HashMap<K, Vec<oneshot::Sender<Result<V, Status>>>>,
}

impl<K: Copy + Eq + Hash, V: Clone + Default> Batch<K, V> {
    fn of(asks: Asks<K, V>) -> Vec<Self> {
        Self::up_to(MAX_KEYS, asks)
    }

    /// Batches of at most so many keys.
    fn up_to(most: usize, asks: Asks<K, V>) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        let mut place: HashMap<K, usize> = HashMap::new();
        for Ask { key, reply } in asks {
            let at = *place.entry(key).or_insert_with(|| match batches.last() {
                Some(last) if last.keys.len() < most => batches.len() - 1,
                _ => batches.len(),
            });
            if at == batches.len() {
                batches.push(Self { keys: Vec::new(), replies: HashMap::new() });
            }
            let Some(batch) = batches.get_mut(at) else { continue };
            let replies = batch.replies.entry(key).or_default();
            if replies.is_empty() {
                batch.keys.push(key);
            }
            replies.push(reply);
        }
        batches
    }

    /// Tells each who waits; a key that the reply leaves out gets nothing.
    fn answer(mut self, result: Result<HashMap<K, V>, Status>) {
        // In the order asked, so that the same operation is always answered in the same order of fields.
        for key in &self.keys {
            let answer = match &result {
                Ok(found) => Ok(found.get(key).cloned().unwrap_or_default()),
                Err(status) => Err(status.clone()),
            };
            for reply in self.replies.remove(key).unwrap_or_default() {
                // A resolver that left doesn't need the answer.
                let _ = reply.send(answer.clone());
            }
        }
    }
}

fn books(loads: &Arc<Loads>, asks: Asks<BookKey, Option<FoundBook>>, calls: &mut Vec<Call>) {
    let (valid, invalid): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| ask.key.id > 0);
    // An id that can't be must not spoil the batch for the others: it is asked for alone, and refused alone.
    for batch in Batch::of(invalid) {
        for (key, replies) in batch.replies {
            let loads = Arc::clone(loads);
            calls.push(Box::pin(async move {
                let message = catalog::GetBookRequest { book_id: key.id };
                let result = loads.caller.services.catalog.get_book(loads.caller.request(message)).await;
                let found = result.map(|reply| {
                    reply.into_inner().book.map(|book| FoundBook { book, author: None, reviews: None })
                });
                replies.into_iter().for_each(|reply| drop(reply.send(found.clone())));
            }));
        }
    }

    let keys: Vec<BookKey> = valid.iter().map(|ask| ask.key).collect();
    let include_authors = keys.iter().any(|key| key.author);
    let review_count = reviews_along(&keys);
    let asks = valid.into_iter().map(|ask| Ask { key: ask.key.id, reply: ask.reply }).collect();
    for batch in Batch::of(asks) {
        let loads = Arc::clone(loads);
        calls.push(Box::pin(async move {
            let message = catalog::BatchGetBooksRequest {
                book_ids: batch.keys.clone(),
                skus: Vec::new(),
                include_authors,
                review_count,
            };
            let result = loads.caller.services.catalog.batch_get_books(loads.caller.request(message)).await;
            batch.answer(result.map(|reply| found_books(reply.into_inner(), review_count)));
        }));
    }
}

/// How many reviews come along with each book: what all who want reviews agree on, unless that is too much in all. Then
/// they are calls of their own, for the books that want them.
fn reviews_along(keys: &[BookKey]) -> i32 {
    let mut counts = keys.iter().map(|key| key.reviews).filter(|count| *count > 0);
    let Some(count) = counts.next() else { return 0 };
    let books: HashSet<i32> = keys.iter().map(|key| key.id).collect();
    let in_all = books.len().saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
    if counts.all(|other| other == count) && in_all <= MAX_REVIEWS { count } else { 0 }
}

fn found_books(reply: catalog::BatchGetBooksResponse, review_count: i32) -> HashMap<i32, Option<FoundBook>> {
    let authors: HashMap<i32, Arc<catalog::Author>> =
        reply.authors.into_iter().map(|author| (author.id, Arc::new(author))).collect();
    let mut reviews: HashMap<i32, Reviews> =
        reply.reviews.into_iter().map(|of| (of.book_id, Reviews::from(of.reviews))).collect();
    let found = reply.books.into_iter().map(|book| {
        let found = FoundBook {
            author: authors.get(&book.author_id).cloned(),
            reviews: (review_count > 0).then(|| (review_count, reviews.remove(&book.id).unwrap_or_default())),
            book,
        };
        (found.book.id, Some(found))
    });
    found.collect()
}

fn authors(loads: &Arc<Loads>, asks: Asks<i32, Option<Arc<catalog::Author>>>, calls: &mut Vec<Call>) {
    let (valid, invalid): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| ask.key > 0);
    for batch in Batch::of(invalid) {
        for (author_id, replies) in batch.replies {
            let loads = Arc::clone(loads);
            calls.push(Box::pin(async move {
                let message = catalog::GetAuthorRequest { author_id };
                let result = loads.caller.services.catalog.get_author(loads.caller.request(message)).await;
                let found = result.map(|reply| reply.into_inner().author.map(Arc::new));
                replies.into_iter().for_each(|reply| drop(reply.send(found.clone())));
            }));
        }
    }
    for batch in Batch::of(valid) {
        let loads = Arc::clone(loads);
        calls.push(Box::pin(async move {
            let message = catalog::BatchGetAuthorsRequest { author_ids: batch.keys.clone() };
            let result = loads.caller.services.catalog.batch_get_authors(loads.caller.request(message)).await;
            batch.answer(result.map(|reply| {
                let authors = reply.into_inner().authors.into_iter();
                authors.map(|author| (author.id, Some(Arc::new(author)))).collect()
            }));
        }));
    }
}

/// One call for each number of reviews: the contract has one number for all books of a call.
fn reviews(loads: &Arc<Loads>, asks: Asks<(i32, i32), Reviews>, calls: &mut Vec<Call>) {
    let mut by_count: BTreeMap<i32, Asks<i32, Reviews>> = BTreeMap::new();
    for Ask { key: (book_id, count), reply } in asks {
        by_count.entry(count).or_default().push(Ask { key: book_id, reply });
    }
    for (review_count, asks) in by_count {
        // A number that can't be is refused whatever the books.
        let most = MAX_REVIEWS / usize::try_from(review_count).unwrap_or_default().max(1);
        for batch in Batch::up_to(most.clamp(1, MAX_KEYS), asks) {
            let loads = Arc::clone(loads);
            calls.push(Box::pin(async move {
                let message = catalog::BatchListReviewsRequest { book_ids: batch.keys.clone(), review_count };
                let request = loads.caller.request(message);
                let result = loads.caller.services.catalog.batch_list_reviews(request).await;
                batch.answer(result.map(|reply| {
                    let books = reply.into_inner().books.into_iter();
                    books.map(|of| (of.book_id, Reviews::from(of.reviews))).collect()
                }));
            }));
        }
    }
}

async fn orders(loads: Arc<Loads>, asks: Asks<(String, i32), ordering::Order>) {
    let mut waiting: BTreeMap<(String, i32), Vec<_>> = BTreeMap::new();
    for ask in asks {
        waiting.entry(ask.key).or_default().push(ask.reply);
    }
    let loads = &loads;
    futures_util::stream::iter(waiting)
        .for_each_concurrent(ORDERS_AT_ONCE, |((order_id, view), replies)| async move {
            let message = ordering::GetOrderRequest { order_id, view };
            let result = loads.caller.services.ordering.get_order(loads.caller.request(message)).await;
            let found = result.and_then(|reply| {
                reply.into_inner().order.ok_or_else(|| Status::internal("the reply holds no order"))
            });
            replies.into_iter().for_each(|reply| drop(reply.send(found.clone())));
        })
        .await;
}
