//! Any sequence of calls against a model that is too simple to be wrong.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Config;
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
        1 => id.prop_map(|id| Call::Get { id }),
        1 => (1..6_i32).prop_map(|page_size| Call::List { page_size }),
    ]
}

/// What the catalog should be.
struct Model {
    books: BTreeMap<i32, pb::Book>,
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

async fn run(calls: Vec<Call>) {
    let suite = Suite::new(&Config { books: SEEDED, max_books: MAX_BOOKS, ..Config::default() });
    let mut model = Model { books: BTreeMap::new(), skus: BTreeSet::new(), next_id: SEEDED + 1 };
    for id in 1..=SEEDED {
        let book = suite.get(id).await.unwrap();
        model.skus.insert(book.sku.clone());
        model.books.insert(id, book);
    }
    for call in calls {
        match call {
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
                }
                assert_eq!(reason(suite.delete(id, expected).await), expected_result);
            }
            Call::Get { id } => {
                assert_eq!(reason(suite.get(id).await), model.book(id, None).cloned());
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
        assert_eq!(suite.by_sku(&book.sku).await, [book]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_leave_what_the_model_has(calls in prop::collection::vec(call(), 1..60)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(calls));
    }
}
