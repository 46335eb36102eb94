//! One shop that plays all three services from a script, and writes down what it was asked.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use chassis::call::{Deadline, TraceParent};
use futures_util::{Stream, StreamExt, stream};
use prost_types::Timestamp;
use proto::catalog::v1 as catalog;
use proto::common::v1::Money;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use proto::{Reason, Refusal, Services};
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;
type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What every call meets.
#[derive(Default, Clone)]
pub(crate) enum Mood {
    #[default]
    Helpful,
    Refusing(Status),
    Stalling,
}

#[derive(Default, Clone)]
pub(crate) struct Shop {
    pub(crate) mood: Mood,
    /// Inventory can't be reached by catalog.
    pub(crate) no_stock: bool,
    /// Streams of books break after the last one.
    pub(crate) torn: bool,
    /// Pages have a next one.
    pub(crate) more: bool,
    /// The messages, as `Debug` writes them.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    pub(crate) deadline: Arc<Mutex<Option<Deadline>>>,
    pub(crate) trace: Arc<Mutex<Option<TraceParent>>>,
    /// Held by every stream that is still running.
    pub(crate) running: Arc<()>,
}

impl Shop {
    pub(crate) fn refusing(refusal: impl Into<Status>) -> Self {
        Self { mood: Mood::Refusing(refusal.into()), ..Self::default() }
    }

    pub(crate) fn stalling() -> Self {
        Self { mood: Mood::Stalling, ..Self::default() }
    }

    pub(crate) fn services(&self) -> Services {
        let shop = Arc::new(self.clone());
        Services { catalog: shop.clone(), inventory: shop.clone(), ordering: shop }
    }

    /// The last message, as `Debug` writes it.
    pub(crate) fn last(&self) -> String {
        self.asked.lock().unwrap().last().cloned().unwrap_or_default()
    }

    async fn take<T: std::fmt::Debug>(&self, request: Request<T>) -> Result<T, Status> {
        *self.deadline.lock().unwrap() = request.extensions().get::<Deadline>().copied();
        *self.trace.lock().unwrap() = request.extensions().get::<TraceParent>().cloned();
        let message = request.into_inner();
        self.asked.lock().unwrap().push(format!("{message:?}"));
        match &self.mood {
            Mood::Helpful => Ok(message),
            Mood::Refusing(status) => Err(status.clone()),
            Mood::Stalling => std::future::pending().await,
        }
    }

    fn next_page_token(&self) -> String {
        if self.more { "t&2".to_owned() } else { String::new() }
    }

    /// The first messages, and then silence until the stream is dropped, or its end.
    fn stream<T: Send + 'static>(&self, first: Vec<T>, ends: bool) -> BoxStream<T> {
        let first = stream::iter(first.into_iter().map(Ok));
        let rest = if ends { stream::empty().boxed() } else { stream::pending().boxed() };
        let running = self.running.clone();
        Box::pin(first.chain(rest).inspect(move |_| drop(running.clone())))
    }
}

pub(crate) fn price(amount_minor: i64) -> Option<Money> {
    Some(Money { amount_minor, currency: "EUR".into() })
}

fn time(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

pub(crate) fn book(id: i32) -> catalog::Book {
    catalog::Book {
        id,
        sku: proto::seed::sku(id),
        title: "Ember".into(),
        author_id: 1,
        price: price(2999),
        version: 7,
    }
}

fn author() -> catalog::Author {
    catalog::Author { id: 1, name: "Mara Lindqvist".into(), country: "SE".into(), born: 1961 }
}

fn reviews(count: i32) -> Vec<catalog::Review> {
    let review = |id| catalog::Review {
        id,
        book_id: 1,
        rating: 5,
        reviewer: "Ana Brook".into(),
        text: "Read it \"twice\".".into(),
        created_at: time(1_796_036_645),
    };
    (1..=count).map(review).collect()
}

/// Adds the books that have a SKU.
fn import(books: Vec<catalog::CreateBookRequest>) -> catalog::ImportBooksResponse {
    let refused = (0..).zip(&books).filter(|(_, book)| book.sku.is_empty());
    let refusals: Vec<_> = refused
        .map(|(index, _)| catalog::ImportRefusal {
            index,
            reason: "INVALID_FIELD".into(),
            message: "sku: must be 13 digits; author_id: must be positive, was 0".into(),
        })
        .collect();
    let imported_count = (books.len() - refusals.len()).try_into().unwrap();
    catalog::ImportBooksResponse {
        imported_count,
        refused_count: refusals.len().try_into().unwrap(),
        refusals,
    }
}

fn find(book_id: i32) -> Result<catalog::Book, Status> {
    match book_id {
        ..=0 => Err(Refusal::field("book_id", format!("must be positive, was {book_id}")).into()),
        1..=50 => Ok(book(book_id)),
        _ => Err(Refusal::new(Reason::BookNotFound, format!("no book {book_id}")).into()),
    }
}

#[tonic::async_trait]
impl catalog::catalog_service_server::CatalogService for Shop {
    async fn get_book(&self, request: Request<catalog::GetBookRequest>) -> Answer<catalog::GetBookResponse> {
        let message = self.take(request).await?;
        Ok(Response::new(catalog::GetBookResponse { book: Some(find(message.book_id)?) }))
    }

    async fn list_books(
        &self,
        request: Request<catalog::ListBooksRequest>,
    ) -> Answer<catalog::ListBooksResponse> {
        let message = self.take(request).await?;
        if message.page_size < 0 {
            return Err(Refusal::field("page_size", "must not be negative, was -1").into());
        }
        if message.page_token == "stale" {
            return Err(Refusal::new(Reason::InvalidPageToken, "not a token of this list").into());
        }
        let books = vec![book(1), book(2)];
        Ok(Response::new(catalog::ListBooksResponse { books, next_page_token: self.next_page_token() }))
    }

    async fn create_book(
        &self,
        request: Request<catalog::CreateBookRequest>,
    ) -> Answer<catalog::CreateBookResponse> {
        let message = self.take(request).await?;
        let book = catalog::Book { id: 51, title: message.title, price: message.price, ..book(1) };
        Ok(Response::new(catalog::CreateBookResponse { book: Some(book) }))
    }

    async fn batch_create_books(
        &self,
        request: Request<catalog::BatchCreateBooksRequest>,
    ) -> Answer<catalog::BatchCreateBooksResponse> {
        let message = self.take(request).await?;
        let catalog::ImportBooksResponse { imported_count, refused_count, refusals } = import(message.books);
        Ok(Response::new(catalog::BatchCreateBooksResponse { imported_count, refused_count, refusals }))
    }

    async fn import_books(
        &self,
        request: Request<Streaming<catalog::ImportBooksRequest>>,
    ) -> Answer<catalog::ImportBooksResponse> {
        let mut messages = self.take(request).await?;
        let mut books = Vec::new();
        while let Some(message) = messages.message().await? {
            self.asked.lock().unwrap().push(format!("{message:?}"));
            books.extend(message.books);
        }
        Ok(Response::new(import(books)))
    }

    async fn stream_books(
        &self,
        request: Request<catalog::StreamBooksRequest>,
    ) -> Answer<BoxStream<catalog::StreamBooksResponse>> {
        let message = self.take(request).await?;
        let each = |ids: &[i32]| catalog::StreamBooksResponse {
            book: None,
            books: ids.iter().map(|&id| book(id)).collect(),
        };
        let single = catalog::StreamBooksResponse { book: Some(book(3)), books: Vec::new() };
        let messages = [Ok(each(&[1, 2])), Ok(single)];
        let torn = self.torn.then(|| Err(Refusal::new(Reason::UpstreamUnavailable, "gone").into()));
        let rest: BoxStream<_> =
            if message.limit == 1 { stream::pending().boxed() } else { stream::empty().boxed() };
        let running = self.running.clone();
        let all = stream::iter(messages.into_iter().chain(torn)).chain(rest);
        Ok(Response::new(Box::pin(all.inspect(move |_| drop(running.clone())))))
    }

    async fn list_book_details(
        &self,
        request: Request<catalog::ListBookDetailsRequest>,
    ) -> Answer<catalog::ListBookDetailsResponse> {
        let message = self.take(request).await?;
        let detail = |id| catalog::BookDetail {
            book: Some(book(id)),
            author: Some(author()),
            in_stock: if self.no_stock { 0 } else { 1_000_000 },
            reviews: reviews(message.review_count),
            stock_unavailable: self.no_stock,
        };
        Ok(Response::new(catalog::ListBookDetailsResponse {
            details: (1..=message.page_size).map(detail).collect(),
            next_page_token: self.next_page_token(),
            stock_unavailable: self.no_stock,
        }))
    }

    async fn update_book(
        &self,
        request: Request<catalog::UpdateBookRequest>,
    ) -> Answer<catalog::UpdateBookResponse> {
        let message = self.take(request).await?;
        let old = find(message.book_id)?;
        if message.expected_version.is_some_and(|version| version != old.version) {
            return Err(Refusal::new(Reason::VersionMismatch, "changed").into());
        }
        let title = message.title.unwrap_or(old.title);
        let book = catalog::Book { title, price: message.price.or(old.price), ..book(message.book_id) };
        Ok(Response::new(catalog::UpdateBookResponse { book: Some(book) }))
    }

    async fn delete_book(
        &self,
        request: Request<catalog::DeleteBookRequest>,
    ) -> Answer<catalog::DeleteBookResponse> {
        let message = self.take(request).await?;
        find(message.book_id)?;
        Ok(Response::new(catalog::DeleteBookResponse {}))
    }

    async fn get_author(
        &self,
        request: Request<catalog::GetAuthorRequest>,
    ) -> Answer<catalog::GetAuthorResponse> {
        self.take(request).await?;
        Ok(Response::new(catalog::GetAuthorResponse { author: Some(author()) }))
    }

    async fn list_authors(
        &self,
        request: Request<catalog::ListAuthorsRequest>,
    ) -> Answer<catalog::ListAuthorsResponse> {
        self.take(request).await?;
        let next_page_token = self.next_page_token();
        Ok(Response::new(catalog::ListAuthorsResponse { authors: vec![author()], next_page_token }))
    }

    async fn list_reviews(
        &self,
        request: Request<catalog::ListReviewsRequest>,
    ) -> Answer<catalog::ListReviewsResponse> {
        let message = self.take(request).await?;
        if message.page_size < 0 {
            return Err(Refusal::field("page_size", "must not be negative, was -1").into());
        }
        let next_page_token = self.next_page_token();
        Ok(Response::new(catalog::ListReviewsResponse {
            reviews: reviews(message.page_size),
            next_page_token,
        }))
    }

    async fn add_review(
        &self,
        request: Request<catalog::AddReviewRequest>,
    ) -> Answer<catalog::AddReviewResponse> {
        let message = self.take(request).await?;
        let review =
            catalog::Review { rating: message.rating, text: message.text, ..reviews(1).swap_remove(0) };
        Ok(Response::new(catalog::AddReviewResponse { review: Some(review) }))
    }

    async fn get_book_detail(
        &self,
        request: Request<catalog::GetBookDetailRequest>,
    ) -> Answer<catalog::GetBookDetailResponse> {
        let message = self.take(request).await?;
        Ok(Response::new(catalog::GetBookDetailResponse {
            book: Some(find(message.book_id)?),
            author: Some(author()),
            in_stock: if self.no_stock { 0 } else { 1_000_000 },
            reviews: reviews(message.review_count),
            stock_unavailable: self.no_stock,
        }))
    }
}

fn stock() -> Option<inventory::Stock> {
    Some(inventory::Stock { book_id: 1, sku: proto::seed::sku(1), in_stock: 1_000_000, reserved: 3, sold: 4 })
}

fn reservation(id: String, state: inventory::ReservationState) -> Option<inventory::Reservation> {
    Some(inventory::Reservation {
        reservation_id: id,
        order_id: "order-1".into(),
        state: state.into(),
        expires_at: time(1_796_036_645),
        lines: vec![inventory::ReservationLine { sku: proto::seed::sku(1), quantity: 2 }],
    })
}

#[tonic::async_trait]
impl inventory::inventory_service_server::InventoryService for Shop {
    async fn get_stock(
        &self,
        request: Request<inventory::GetStockRequest>,
    ) -> Answer<inventory::GetStockResponse> {
        self.take(request).await?;
        Ok(Response::new(inventory::GetStockResponse { stock: stock() }))
    }

    async fn adjust_stock(
        &self,
        request: Request<inventory::AdjustStockRequest>,
    ) -> Answer<inventory::AdjustStockResponse> {
        self.take(request).await?;
        Ok(Response::new(inventory::AdjustStockResponse { stock: stock() }))
    }

    async fn reserve_stock(
        &self,
        request: Request<inventory::ReserveStockRequest>,
    ) -> Answer<inventory::ReserveStockResponse> {
        self.take(request).await?;
        Ok(Response::new(inventory::ReserveStockResponse {
            reservation_id: "rsv_1".into(),
            state: inventory::ReservationState::Held.into(),
            expires_at: time(1_796_036_645),
        }))
    }

    async fn get_reservation(
        &self,
        request: Request<inventory::GetReservationRequest>,
    ) -> Answer<inventory::GetReservationResponse> {
        let id = self.take(request).await?.reservation_id;
        let reservation = reservation(id, inventory::ReservationState::Held);
        Ok(Response::new(inventory::GetReservationResponse { reservation }))
    }

    async fn confirm_reservation(
        &self,
        request: Request<inventory::ConfirmReservationRequest>,
    ) -> Answer<inventory::ConfirmReservationResponse> {
        let id = self.take(request).await?.reservation_id;
        let reservation = reservation(id, inventory::ReservationState::Confirmed);
        Ok(Response::new(inventory::ConfirmReservationResponse { reservation }))
    }

    async fn release_reservation(
        &self,
        request: Request<inventory::ReleaseReservationRequest>,
    ) -> Answer<inventory::ReleaseReservationResponse> {
        let id = self.take(request).await?.reservation_id;
        let reservation = reservation(id, inventory::ReservationState::Released);
        Ok(Response::new(inventory::ReleaseReservationResponse { reservation }))
    }

    async fn watch_stock(
        &self,
        request: Request<inventory::WatchStockRequest>,
    ) -> Answer<BoxStream<inventory::WatchStockResponse>> {
        let message = self.take(request).await?;
        if message.book_ids.iter().any(|&id| id < 1) {
            return Err(Refusal::field("book_ids[0]", "must be positive, was 0").into());
        }
        let first = vec![inventory::WatchStockResponse { stock: stock() }];
        Ok(Response::new(self.stream(first, false)))
    }
}

fn order(id: String, view: ordering::OrderView) -> Option<ordering::Order> {
    let line = ordering::OrderLine {
        sku: proto::seed::sku(1),
        book_id: 1,
        title: "Ember".into(),
        quantity: 2,
        unit_price: price(2999),
        line_total: price(5998),
    };
    let event = ordering::OrderEvent {
        sequence: 1,
        occurred_at: time(1_796_036_645),
        kind: "PLACED".into(),
        actor: "customer".into(),
        note: "placed".into(),
    };
    let ship_to = ordering::Address {
        name: "Ana Brook".into(),
        street: "Hafengasse 3".into(),
        city: "Bern".into(),
        postal_code: "3011".into(),
        country: "CH".into(),
    };
    let full = view != ordering::OrderView::Status;
    Some(ordering::Order {
        order_id: id,
        state: ordering::OrderState::Placed.into(),
        total: price(5998),
        line_count: 1,
        created_at: time(1_796_036_645),
        updated_at: time(1_796_036_646),
        lines: if full { vec![line] } else { Vec::new() },
        ship_to: full.then_some(ship_to),
        history: if view == ordering::OrderView::History { vec![event] } else { Vec::new() },
    })
}

#[tonic::async_trait]
impl ordering::ordering_service_server::OrderingService for Shop {
    async fn place_order(
        &self,
        request: Request<ordering::PlaceOrderRequest>,
    ) -> Answer<ordering::PlaceOrderResponse> {
        self.take(request).await?;
        let order = order("ord_1".into(), ordering::OrderView::Full);
        Ok(Response::new(ordering::PlaceOrderResponse { order }))
    }

    async fn get_order(
        &self,
        request: Request<ordering::GetOrderRequest>,
    ) -> Answer<ordering::GetOrderResponse> {
        let message = self.take(request).await?;
        let view = message.view();
        Ok(Response::new(ordering::GetOrderResponse { order: order(message.order_id, view) }))
    }

    async fn list_orders(
        &self,
        request: Request<ordering::ListOrdersRequest>,
    ) -> Answer<ordering::ListOrdersResponse> {
        self.take(request).await?;
        let orders = order("ord_1".into(), ordering::OrderView::Status).into_iter().collect();
        Ok(Response::new(ordering::ListOrdersResponse { orders, next_page_token: self.next_page_token() }))
    }

    async fn cancel_order(
        &self,
        request: Request<ordering::CancelOrderRequest>,
    ) -> Answer<ordering::CancelOrderResponse> {
        let order = order(self.take(request).await?.order_id, ordering::OrderView::Status);
        Ok(Response::new(ordering::CancelOrderResponse { order }))
    }

    async fn watch_order(
        &self,
        request: Request<ordering::WatchOrderRequest>,
    ) -> Answer<BoxStream<ordering::WatchOrderResponse>> {
        let order = order(self.take(request).await?.order_id, ordering::OrderView::Status);
        Ok(Response::new(self.stream(vec![ordering::WatchOrderResponse { order }], true)))
    }
}
