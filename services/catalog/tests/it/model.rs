//! Any sequence of calls against a model that is too simple to be wrong.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Config;
use futures_util::TryStreamExt;
use proptest::prelude::*;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use tonic::{Request, Status};

use crate::{Suite, eur, message, new_book};

const SEEDED: i32 = 5;
const MAX_BOOKS: usize = 9;

#[derive(Debug, Clone)]
enum Call {
    Create { n: i32 },
    Update { id: i32, price: i64, expected: Option<i32> },
    Delete { id: i32, expected: Option<i32> },
    Get { id: i32 },
    Review { id: i32 },
    List { page_size: i32 },
}

fn call() -> impl Strategy<Value = Call> {
    let id = 1..14_i32;
    let expected = || prop::option::of(1..4_i32);
    prop_oneof![
        3 => (1..14_i32).prop_map(|n| Call::Create { n }),
        3 => (id.clone(), 0..3_i64, expected())
            .prop_map(|(id, price, expected)| Call::Update { id, price, expected }),
        2 => (id.clone(), expected()).prop_map(|(id, expected)| Call::Delete { id, expected }),
        1 => id.clone().prop_map(|id| Call::Get { id }),
        1 => id.prop_map(|id| Call::Review { id }),
        1 => (1..6_i32).prop_map(|page_size| Call::List { page_size }),
    ]
}

impl Call {
    fn after(self, before: i32) -> Self {
        match self {
            Self::Create { n } => Self::Create { n: n + before },
            Self::Update { id, price, expected } => Self::Update { id: id + before, price, expected },
            Self::Delete { id, expected } => Self::Delete { id: id + before, expected },
            Self::Get { id } => Self::Get { id: id + before },
            Self::Review { id } => Self::Review { id: id + before },
            Self::List { .. } => self,
        }
    }
}

/// What the catalog should be.
struct Model {
    books: BTreeMap<i32, pb::Book>,
    /// The latest review of each book that has one of ours.
    reviews: BTreeMap<i32, pb::Review>,
    /// All SKUs that inventory has ever registered.
    skus: BTreeSet<String>,
    next_id: i32,
}

impl Model {
    fn book(&self, id: i32, expected: Option<i32>) -> Result<&pb::Book, Reason> {
        let book = self.books.get(&id).ok_or(Reason::BookNotFound)?;
        if expected.is_some_and(|expected| expected != book.version) {
            return Err(Reason::VersionMismatch);
        }
        Ok(book)
    }

    fn create(&mut self, n: i32) -> Result<pb::Book, Reason> {
        let request = new_book(n);
        if self.books.values().any(|book| book.sku == request.sku) {
            return Err(Reason::SkuTaken);
        }
        if self.books.len() >= MAX_BOOKS {
            return Err(Reason::StoreFull);
        }
        let id = self.next_id;
        self.next_id += 1;
        if !self.skus.insert(request.sku.clone()) {
            return Err(Reason::SkuTaken);
        }
        let pb::CreateBookRequest { sku, title, author_id, price } = request;
        let book = pb::Book { id, sku, title, author_id, price, version: 1 };
        self.books.insert(id, book.clone());
        Ok(book)
    }

    fn update(&mut self, id: i32, price: i64, expected: Option<i32>) -> Result<pb::Book, Reason> {
        let mut book = self.book(id, expected)?.clone();
        if book.price != Some(eur(price)) {
            book.price = Some(eur(price));
            book.version += 1;
        }
        self.books.insert(id, book.clone());
        Ok(book)
    }
}

fn reason<T>(result: Result<T, Status>) -> Result<T, Reason> {
    result.map_err(|status| Reason::of(&status))
}

/// Runs the calls with the ids after `before`, where the last books are that the catalog starts with.
async fn run(calls: Vec<Call>, before: i32) {
    let last = before + SEEDED;
    let suite = Suite::new(&Config { books: last, max_books: MAX_BOOKS, ..Config::default() });
    for id in 1..=before {
        suite.delete(id, None).await.unwrap();
    }
    let mut model =
        Model { books: BTreeMap::new(), reviews: BTreeMap::new(), skus: BTreeSet::new(), next_id: last + 1 };
    for id in before + 1..=last {
        let book = suite.get(id).await.unwrap();
        model.skus.insert(book.sku.clone());
        model.books.insert(id, book);
    }
    for call in calls {
        match call.after(before) {
            Call::Create { n } => assert_eq!(reason(suite.create(new_book(n)).await), model.create(n)),
            Call::Update { id, price, expected } => {
                let request = pb::UpdateBookRequest {
                    book_id: id,
                    price: Some(eur(price)),
                    expected_version: expected,
                    ..Default::default()
                };
                let updated = suite.catalog.update_book(Request::new(request)).await;
                let updated = updated.map(|response| response.into_inner().book.unwrap());
                assert_eq!(reason(updated), model.update(id, price, expected));
            }
            Call::Delete { id, expected } => {
                let expected_result = model.book(id, expected).map(|_| ());
                if expected_result.is_ok() {
                    model.books.remove(&id);
                    model.reviews.remove(&id);
                }
                assert_eq!(reason(suite.delete(id, expected).await), expected_result);
            }
            Call::Get { id } => {
                assert_eq!(reason(suite.get(id).await), model.book(id, None).cloned());
            }
            Call::Review { id } => {
                let review =
                    pb::AddReviewRequest { book_id: id, rating: 1, reviewer: "A".into(), text: "b".into() };
                let added = suite.catalog.add_review(Request::new(review)).await;
                let added = reason(added.map(|response| response.into_inner().review.unwrap()));
                assert_eq!(added.as_ref().map(|_| ()).map_err(|r| *r), model.book(id, None).map(|_| ()));
                if let Ok(review) = added {
                    model.reviews.insert(id, review);
                }
            }
            Call::List { page_size } => {
                let ids = suite.ids_by_pages_of(page_size).await;
                assert_eq!(ids, model.books.keys().copied().collect::<Vec<_>>());
            }
        }
    }
    let all = message(suite.catalog.list_books(Request::new(Default::default())).await).books;
    assert_eq!(all, model.books.values().cloned().collect::<Vec<_>>());
    for book in all {
        let detail = pb::GetBookDetailRequest { book_id: book.id, review_count: 1 };
        let screen = message(suite.catalog.get_book_detail(Request::new(detail)).await);
        if let Some(latest) = model.reviews.get(&book.id) {
            assert_eq!(screen.reviews, std::slice::from_ref(latest));
        }
        assert_eq!(screen.book.as_ref(), Some(&book));
        assert_eq!(suite.by_sku(&book.sku).await, [book]);
    }
    let streamed = pb::StreamBooksRequest { delay_ms: 0, limit: 0, batch_size: 0 };
    let streamed = message(suite.catalog.stream_books(Request::new(streamed)).await);
    let streamed: Vec<_> = streamed.map_ok(|message| message.book.unwrap()).try_collect().await.unwrap();
    assert_eq!(streamed, model.books.values().cloned().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_leave_what_the_model_has(calls in prop::collection::vec(call(), 1..60)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(calls, 0));
    }

    /// The first thousand books are kept ready, the others are made when they are asked for.
    #[test]
    fn books_that_are_made_when_asked_for_are_like_the_others(
        calls in prop::collection::vec(call(), 1..60),
        before in prop::sample::select(vec![997, 1_000, 1_020]),
    ) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(calls, before));
    }
}
