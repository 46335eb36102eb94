//! The catalog against its contract, beside a fake inventory.

// What these lints guard against is how a test fails; clippy.toml exempts test functions, and these are their helpers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod books;
mod import;
mod inventory;
mod model;
mod races;
mod refusals;
mod streams;

use std::sync::Arc;

use catalog::{Catalog, Config};
use inventory::FakeInventory;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_client::CatalogServiceClient;
use proto::catalog::v1::catalog_service_server::{CatalogService, CatalogServiceServer};
use proto::common::v1::Money;
use tonic::{Request, Response, Status};

/// A catalog with its inventory.
struct Suite {
    catalog: Arc<Catalog>,
    inventory: Arc<FakeInventory>,
}

impl Suite {
    fn new(config: &Config) -> Self {
        let inventory = Arc::new(FakeInventory::with_books(config.books));
        Self { catalog: Arc::new(Catalog::new(config, inventory.clone())), inventory }
    }

    fn seeded() -> Self {
        Self::new(&Config::default())
    }

    /// The generated client over the generated server, with no socket between them.
    fn client(&self) -> CatalogServiceClient<CatalogServiceServer<Catalog>> {
        CatalogServiceClient::new(CatalogServiceServer::from_arc(self.catalog.clone()))
    }

    async fn create(&self, book: pb::CreateBookRequest) -> Result<pb::Book, Status> {
        Ok(self.catalog.create_book(Request::new(book)).await?.into_inner().book.unwrap())
    }

    async fn get(&self, book_id: i32) -> Result<pb::Book, Status> {
        let response = self.catalog.get_book(Request::new(pb::GetBookRequest { book_id })).await?;
        Ok(response.into_inner().book.unwrap())
    }

    async fn delete(&self, book_id: i32, expected_version: Option<i32>) -> Result<(), Status> {
        let request = pb::DeleteBookRequest { book_id, expected_version };
        self.catalog.delete_book(Request::new(request)).await.map(|_| ())
    }

    async fn by_sku(&self, sku: &str) -> Vec<pb::Book> {
        let request = pb::BatchGetBooksRequest { skus: vec![sku.to_owned()], ..Default::default() };
        self.catalog.batch_get_books(Request::new(request)).await.unwrap().into_inner().books
    }

    /// All ids, read in pages of this size.
    async fn ids_by_pages_of(&self, page_size: i32) -> Vec<i32> {
        let mut ids = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = pb::ListBooksRequest { page_size, page_token };
            let page = self.catalog.list_books(Request::new(request)).await.unwrap().into_inner();
            assert!(page.books.len() <= usize::try_from(page_size).unwrap());
            ids.extend(page.books.iter().map(|book| book.id));
            if page.next_page_token.is_empty() {
                return ids;
            }
            page_token = page.next_page_token;
        }
    }
}

/// A request to add book number `n`, which must not be seeded.
fn new_book(n: i32) -> pb::CreateBookRequest {
    pb::CreateBookRequest {
        sku: proto::seed::sku(n),
        title: format!("New {n}"),
        author_id: 1,
        price: Some(eur(1250)),
    }
}

fn eur(amount_minor: i64) -> Money {
    Money { amount_minor, currency: "EUR".to_owned() }
}

/// Asserts that a call was refused for this reason, with the code that goes with it.
#[track_caller]
fn assert_refused<T>(result: Result<T, Status>, reason: Reason) -> Status {
    match result {
        Ok(_) => panic!("not refused, wanted {reason}"),
        Err(status) => {
            assert_eq!((Reason::of(&status), status.code()), (reason, reason.code()), "{status:?}");
            status
        }
    }
}

/// The message of a reply.
fn message<T>(result: Result<Response<T>, Status>) -> T {
    result.unwrap().into_inner()
}
