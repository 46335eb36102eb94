//! Many books in one reply, and all of them in a stream.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use proto::catalog::v1 as pb;
use tonic::Status;

use super::wire;
use crate::domain::{Book, BookId, Fields, MAX_BATCH, Refused};
use crate::store::Store;

/// Books that a stream takes from the store at once, unless its messages are larger.
const STREAM_PAGE: usize = 100;

/// Removes what has come before.
pub(super) fn once<T: Copy + Eq + Hash>(items: &mut Vec<T>) {
    if items.len() > 1 {
        let mut seen = HashSet::with_capacity(items.len());
        items.retain(|item| seen.insert(*item));
    }
}

/// Answers `BatchGetBooks`.
pub(super) fn batch(
    store: &Store,
    request: &pb::BatchGetBooksRequest,
) -> Result<pb::BatchGetBooksResponse, Refused> {
    let pb::BatchGetBooksRequest { book_ids, skus, include_authors, review_count } = request;
    let total = book_ids.len() + skus.len();
    let mut fields = Fields::default();
    let mut ids = fields.batch("book_ids", book_ids, total, |fields, place, &id| fields.book_id(place, id));
    let mut skus = fields.batch("skus", skus, total, |fields, place, sku| fields.sku(place, sku));
    once(&mut ids);
    once(&mut skus);
    let review_count = fields.review_count(*review_count, 0, ids.len() + skus.len());
    fields.finish()?;
    let review_count = review_count.unwrap_or_default();

    ids.extend(skus.into_iter().filter_map(|sku| store.id_of(sku)));
    once(&mut ids);
    let found = ids.into_iter().filter_map(|id| store.book_with_reviews(id, review_count).ok());
    let mut response = pb::BatchGetBooksResponse::default();
    let mut author_ids = Vec::new();
    for (book, reviews) in found {
        response.books.push(wire::book(&book));
        if *include_authors {
            author_ids.push(book.author_id);
        }
        if review_count > 0 {
            response
                .reviews
                .push(pb::BookReviews { book_id: book.id.get(), reviews: wire::reviews(&reviews) });
        }
    }
    once(&mut author_ids);
    let authors = author_ids.into_iter().filter_map(|id| store.author(id).ok());
    response.authors = authors.map(|author| wire::author(author)).collect();
    Ok(response)
}

/// Answers `BatchListReviews`.
pub(super) fn batch_reviews(
    store: &Store,
    request: &pb::BatchListReviewsRequest,
) -> Result<pb::BatchListReviewsResponse, Refused> {
    let ids = &request.book_ids;
    let mut fields = Fields::default();
    let mut ids = fields.batch("book_ids", ids, ids.len(), |fields, place, &id| fields.book_id(place, id));
    once(&mut ids);
    let count = fields.review_count(request.review_count, 1, ids.len());
    fields.finish()?;
    let count = count.unwrap_or_default();

    let found = ids.into_iter().filter_map(|id| Some((id, store.reviews_before(id, None, count).ok()?)));
    let books =
        found.map(|(id, reviews)| pb::BookReviews { book_id: id.get(), reviews: wire::reviews(&reviews) });
    Ok(pb::BatchListReviewsResponse { books: books.collect() })
}

/// Where a stream of books stands.
struct Reader {
    store: Arc<Store>,
    page: std::vec::IntoIter<Arc<Book>>,
    last: Option<BookId>,
    /// Books still wanted.
    left: usize,
    /// Books in a message.
    batch: usize,
    delay: Duration,
    /// Held for [`super::Catalog::open_streams`].
    _open: Arc<()>,
}

impl Reader {
    async fn message(&mut self) -> Option<pb::StreamBooksResponse> {
        // The first message comes at once.
        if self.left > 0 && self.last.is_some() && !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let first = self.book().await?;
        if self.batch == 1 {
            return Some(pb::StreamBooksResponse { book: Some(first), books: Vec::new() });
        }
        let mut books = Vec::with_capacity(self.batch.min(self.left + 1));
        books.push(first);
        while books.len() < self.batch
            && let Some(book) = self.book().await
        {
            books.push(book);
        }
        Some(pb::StreamBooksResponse { book: None, books })
    }

    async fn book(&mut self) -> Option<pb::Book> {
        if self.left == 0 {
            return None;
        }
        let book = match self.page.next() {
            Some(book) => book,
            None => {
                if self.last.is_some() {
                    // A fast reader must not keep the thread from the others.
                    tokio::task::yield_now().await;
                }
                self.page =
                    self.store.books_after(self.last, self.left.min(STREAM_PAGE.max(self.batch))).into_iter();
                self.page.next()?
            }
        };
        self.last = Some(book.id);
        self.left -= 1;
        Some(wire::book(&book))
    }
}

/// Answers `StreamBooks`: works only while it is read.
pub(super) fn stream(
    store: &Arc<Store>,
    open: Arc<()>,
    request: &pb::StreamBooksRequest,
) -> Result<impl Stream<Item = Result<pb::StreamBooksResponse, Status>> + Send + use<>, Refused> {
    let mut fields = Fields::default();
    let delay = fields.number("delay_ms", request.delay_ms, 0..=60_000);
    let limit = fields.count("limit", request.limit);
    let batch = fields.number("batch_size", request.batch_size, 0..=MAX_BATCH as i32);
    let (Some(delay), Some(limit), Some(batch)) = (delay, limit, batch) else {
        return Err(fields.into());
    };
    let reader = Reader {
        store: store.clone(),
        page: Vec::new().into_iter(),
        last: None,
        left: if limit == 0 { usize::MAX } else { limit },
        batch: batch.max(1),
        delay: Duration::from_millis(delay.try_into().unwrap_or_default()),
        _open: open,
    };
    Ok(stream::unfold(reader, async |mut reader| {
        let message = reader.message().await?;
        Some((Ok(message), reader))
    }))
}
