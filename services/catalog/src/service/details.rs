//! Books with what belongs to them.

use std::sync::Arc;

use chassis::call::part;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_server::InventoryService;
use tonic::{Extensions, Status};

use super::{Page, wire};
use crate::domain::{Book, BookId, Fields, Refused, Review};
use crate::store::Store;

/// Answers one call.
pub(super) struct Details<'a> {
    store: &'a Store,
    inventory: &'a dyn InventoryService,
    extensions: &'a Extensions,
}

impl<'a> Details<'a> {
    pub(super) fn new(
        store: &'a Store,
        inventory: &'a dyn InventoryService,
        extensions: &'a Extensions,
    ) -> Self {
        Self { store, inventory, extensions }
    }

    /// Answers `GetBookDetail`.
    pub(super) async fn one(
        &self,
        request: pb::GetBookDetailRequest,
    ) -> Result<pb::GetBookDetailResponse, Status> {
        let pb::GetBookDetailRequest { book_id, review_count } = request;
        let mut fields = Fields::default();
        let id = fields.book_id("book_id", book_id);
        let count = fields.review_count(review_count, 0, 1);
        let (Some(id), Some(count)) = (id, count) else {
            return Err(Refused::from(fields).into());
        };
        let (book, reviews) = self.store.book_with_reviews(id, count)?;
        let message = inventory::GetStockRequest { book_id, sku: String::new() };
        let in_stock = match part(self.extensions, message, |request| self.inventory.get_stock(request)).await
        {
            Some(Ok(response)) => response.into_inner().stock.map(|stock| stock.in_stock),
            Some(Err(status)) if Reason::of(&status) == Reason::UnknownSku => Some(0),
            Some(Err(status)) => unavailable(&status),
            None => late(),
        };
        let pb::BookDetail { book, author, in_stock, reviews, stock_unavailable } =
            self.detail(&book, &reviews, in_stock);
        Ok(pb::GetBookDetailResponse { book, author, in_stock, reviews, stock_unavailable })
    }

    /// Answers `ListBookDetails`.
    pub(super) async fn page(
        &self,
        request: &pb::ListBookDetailsRequest,
    ) -> Result<pb::ListBookDetailsResponse, Status> {
        let pb::ListBookDetailsRequest { page_size, page_token, review_count } = request;
        let mut fields = Fields::default();
        let size = fields.page_size(*page_size);
        let count = fields.review_count(*review_count, 0, size.unwrap_or_default());
        let Some(count) = count.filter(|_| size.is_some()) else {
            return Err(Refused::from(fields).into());
        };
        let page = Page::parse("details", *page_size, page_token, BookId::new)?;
        let books = self.store.books_with_reviews_after(page.last, page.size + 1, count);
        let (books, next_page_token) = page.cut(books, |(book, _)| book.id.get());

        let stocks = self.stocks(books.iter().map(|(book, _)| book.id.get()).collect()).await;
        let stock_unavailable = stocks.is_none();
        // They come in the order asked, without those that inventory doesn't know.
        let mut stocks = stocks.map(|stocks| stocks.into_iter().peekable());
        let details = books.iter().map(|(book, reviews)| {
            let in_stock = stocks.as_mut().map(|stocks| {
                stocks.next_if(|stock| stock.book_id == book.id.get()).map_or(0, |stock| stock.in_stock)
            });
            self.detail(book, reviews, in_stock)
        });
        Ok(pb::ListBookDetailsResponse { details: details.collect(), next_page_token, stock_unavailable })
    }

    fn detail(&self, book: &Book, reviews: &[Arc<Review>], in_stock: Option<i32>) -> pb::BookDetail {
        pb::BookDetail {
            author: self.store.author(book.author_id).ok().map(|author| wire::author(author)),
            book: Some(wire::book(book)),
            in_stock: in_stock.unwrap_or_default(),
            reviews: wire::reviews(reviews),
            stock_unavailable: in_stock.is_none(),
        }
    }

    /// The stock of these books, as far as inventory knows them, or nothing when it doesn't answer.
    async fn stocks(&self, book_ids: Vec<i32>) -> Option<Vec<inventory::Stock>> {
        if book_ids.is_empty() {
            return Some(Vec::new());
        }
        let message = inventory::BatchGetStockRequest { book_ids, skus: Vec::new() };
        match part(self.extensions, message, |request| self.inventory.batch_get_stock(request)).await {
            Some(Ok(response)) => Some(response.into_inner().stocks),
            Some(Err(status)) => unavailable(&status),
            None => late(),
        }
    }
}

/// Goes on without the stock.
fn unavailable<T>(status: &Status) -> Option<T> {
    tracing::debug!(reason = %Reason::of(status), message = status.message(), "no stock for a detail");
    None
}

fn late<T>() -> Option<T> {
    tracing::debug!("no stock for a detail: inventory takes too long");
    None
}
