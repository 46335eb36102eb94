//! What can be changed.

use async_graphql::{Context, ID, InputObject, Object, SimpleObject};
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use proto::ordering::v1::OrderView;

use super::book::{Book, Review};
use super::order::Order;
use super::scalar::MoneyInput;
use super::stock::{Reservation, ReserveStockPayload, Stock};
use super::{loads, missing};
use crate::error::{SAME_NAMES, or_null};

/// Units of one SKU to reserve.
#[derive(Debug, InputObject)]
pub(crate) struct ReservationLineInput {
    /// The ISBN-13, 13 digits.
    sku: String,
    /// 1 to 1,000,000.
    quantity: i32,
}

/// What to reserve, and for which order.
#[derive(Debug, InputObject)]
pub(crate) struct ReserveStockInput {
    /// The caller's name for the order: 1 to 64 letters, digits, `.`, `_`, `:` or `-`. Makes the call idempotent.
    order_id: ID,
    /// 1 to 1,000 lines. Two lines of one SKU add up.
    lines: Vec<ReservationLineInput>,
}

/// Copies of one book to order.
#[derive(Debug, InputObject)]
pub(crate) struct OrderLineInput {
    /// The ISBN-13, 13 digits.
    sku: String,
    /// 1 to 1,000,000.
    quantity: i32,
}

/// Where an order goes. Each field has at most 200 characters.
#[derive(Debug, InputObject)]
pub(crate) struct AddressInput {
    /// Who receives it.
    #[graphql(default)]
    name: String,
    /// Street and number.
    #[graphql(default)]
    street: String,
    /// City.
    #[graphql(default)]
    city: String,
    /// Postal code.
    #[graphql(default)]
    postal_code: String,
    /// ISO 3166-1 alpha-2 code of the country, or empty.
    #[graphql(default)]
    country: String,
}

/// What to order.
#[derive(Debug, InputObject)]
pub(crate) struct PlaceOrderInput {
    /// The caller's name for this attempt: 1 to 255 printable ASCII characters, a UUID by custom. Makes the call
    /// idempotent.
    request_id: ID,
    /// 1 to 1,000 lines. Two lines of one SKU add up.
    lines: Vec<OrderLineInput>,
    /// Where the order goes; may be left out.
    ship_to: Option<AddressInput>,
}

/// A book to add.
#[derive(Debug, InputObject)]
pub(crate) struct CreateBookInput {
    /// The ISBN-13, 13 digits with a right check digit.
    sku: String,
    /// 1 to 300 characters.
    title: String,
    /// An author that exists.
    author_id: i32,
    /// 0 to 100,000,000 minor units of EUR.
    price: MoneyInput,
}

/// What to change of a book. A field that is left out, or null, stays as it is.
#[derive(Debug, InputObject)]
pub(crate) struct UpdateBookInput {
    /// The book's id.
    book_id: i32,
    /// The new title.
    title: Option<String>,
    /// The new author.
    author_id: Option<i32>,
    /// The new price.
    price: Option<MoneyInput>,
    /// Refuse when the book's version is another one.
    expected_version: Option<i32>,
}

/// A review to add.
#[derive(Debug, InputObject)]
pub(crate) struct AddReviewInput {
    /// The book's id.
    book_id: i32,
    /// 1 (worst) to 5 (best).
    rating: i32,
    /// Who wrote it: 1 to 80 characters.
    reviewer: String,
    /// 1 to 2,000 characters.
    text: String,
}

/// A change of stock.
#[derive(Debug, InputObject)]
pub(crate) struct AdjustStockInput {
    /// The book's SKU.
    sku: String,
    /// Units to add, or to take away when negative: not 0, from -1,000,000 to 1,000,000.
    delta: i32,
}

/// A book that is gone.
#[derive(Debug, SimpleObject)]
pub(crate) struct DeletedBook {
    /// The id that it had.
    id: i32,
}

pub(crate) struct Mutation;

/// What can be changed. Fields run one after the other. A field that was refused is null and changed nothing; the
/// reply's errors say why, and the fields after it still run.
#[Object]
impl Mutation {
    /// Holds units for an order: all lines or none. The same order id with the same lines returns the same reservation,
    /// so the call can be retried; one that was released or has expired holds nothing, and is refused. A held
    /// reservation that nobody confirms gives its units back at `expiresAt`.
    /// Errors: UNKNOWN_SKU, OUT_OF_STOCK, ORDER_ID_CONFLICT (the order id was used with other lines),
    /// RESERVATION_EXPIRED, RESERVATION_RELEASED, STORE_FULL.
    async fn reserve_stock(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What to reserve.")] input: ReserveStockInput,
    ) -> Option<ReserveStockPayload> {
        let loads = loads(ctx);
        let lines = input.lines.into_iter();
        let message = inventory::ReserveStockRequest {
            order_id: input.order_id.0,
            lines: lines
                .map(|line| inventory::ReservationLine { sku: line.sku, quantity: line.quantity })
                .collect(),
        };
        let reply = loads.caller.services.inventory.reserve_stock(loads.caller.request(message)).await;
        or_null(ctx, reply, SAME_NAMES).map(|reply| ReserveStockPayload(reply.into_inner()))
    }

    /// Turns held units into sold ones. Confirming twice is harmless.
    /// Errors: RESERVATION_NOT_FOUND, RESERVATION_EXPIRED, RESERVATION_RELEASED.
    async fn confirm_reservation(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The reservation's id.")] reservation_id: ID,
    ) -> Option<Reservation> {
        let loads = loads(ctx);
        let message = inventory::ConfirmReservationRequest {
            reservation_id: reservation_id.0,
            order_id: String::new(),
        };
        let reply = loads.caller.services.inventory.confirm_reservation(loads.caller.request(message)).await;
        let reservation =
            reply.and_then(|reply| reply.into_inner().reservation.ok_or_else(|| missing("reservation")));
        or_null(ctx, reservation, SAME_NAMES).map(Reservation)
    }

    /// Gives the units back, held and sold ones alike. Releasing twice, or after expiry, is harmless.
    /// Errors: RESERVATION_NOT_FOUND.
    async fn release_reservation(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The reservation's id.")] reservation_id: ID,
    ) -> Option<Reservation> {
        let loads = loads(ctx);
        let message = inventory::ReleaseReservationRequest {
            reservation_id: reservation_id.0,
            order_id: String::new(),
        };
        let reply = loads.caller.services.inventory.release_reservation(loads.caller.request(message)).await;
        let reservation =
            reply.and_then(|reply| reply.into_inner().reservation.ok_or_else(|| missing("reservation")));
        or_null(ctx, reservation, SAME_NAMES).map(Reservation)
    }

    /// Places an order, at the catalog's prices. Placed once per `requestId`, however often it is sent: the same
    /// content again returns the order of the first time.
    /// Errors: UNKNOWN_SKU, OUT_OF_STOCK, IDEMPOTENCY_KEY_REUSED (the request id was used with other content),
    /// REQUEST_IN_PROGRESS, STORE_FULL, UPSTREAM_UNAVAILABLE.
    async fn place_order(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What to order.")] input: PlaceOrderInput,
    ) -> Option<Order> {
        let loads = loads(ctx);
        let lines = input.lines.into_iter();
        let message = ordering::PlaceOrderRequest {
            request_id: input.request_id.0,
            lines: lines
                .map(|line| ordering::PlaceOrderLine { sku: line.sku, quantity: line.quantity })
                .collect(),
            ship_to: input.ship_to.map(|address| ordering::Address {
                name: address.name,
                street: address.street,
                city: address.city,
                postal_code: address.postal_code,
                country: address.country,
            }),
        };
        let reply = loads.caller.services.ordering.place_order(loads.caller.request(message)).await;
        let order = reply.and_then(|reply| reply.into_inner().order.ok_or_else(|| missing("order")));
        or_null(ctx, order, SAME_NAMES).map(|order| Order::new(order, OrderView::Full))
    }

    /// Cancels an order and gives its units back. While inventory can't be reached the order is CANCELLING, and is
    /// CANCELLED as soon as the units are back. Cancelling twice is harmless.
    /// Errors: ORDER_NOT_FOUND, ORDER_SHIPPED, REQUEST_IN_PROGRESS (the order is still being placed).
    async fn cancel_order(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The order's id.")] id: ID,
    ) -> Option<Order> {
        let loads = loads(ctx);
        let message = ordering::CancelOrderRequest { order_id: id.0 };
        let reply = loads.caller.services.ordering.cancel_order(loads.caller.request(message)).await;
        let order = reply.and_then(|reply| reply.into_inner().order.ok_or_else(|| missing("order")));
        or_null(ctx, order, &[("order_id", "id")]).map(|order| Order::new(order, OrderView::Status))
    }

    /// Adds a book, with nothing in stock yet.
    /// Errors: SKU_TAKEN, AUTHOR_NOT_FOUND, STORE_FULL, UPSTREAM_UNAVAILABLE.
    async fn create_book(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The book to add.")] input: CreateBookInput,
    ) -> Option<Book> {
        let loads = loads(ctx);
        let message = catalog::CreateBookRequest {
            sku: input.sku,
            title: input.title,
            author_id: input.author_id,
            price: Some(input.price.into()),
        };
        let reply = loads.caller.services.catalog.create_book(loads.caller.request(message)).await;
        let book = reply.and_then(|reply| reply.into_inner().book.ok_or_else(|| missing("book")));
        or_null(ctx, book, SAME_NAMES).map(Book::alone)
    }

    /// Changes a book.
    /// Errors: BOOK_NOT_FOUND, AUTHOR_NOT_FOUND, VERSION_MISMATCH.
    async fn update_book(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What to change.")] input: UpdateBookInput,
    ) -> Option<Book> {
        let loads = loads(ctx);
        let message = catalog::UpdateBookRequest {
            book_id: input.book_id,
            title: input.title,
            author_id: input.author_id,
            price: input.price.map(Into::into),
            expected_version: input.expected_version,
        };
        let reply = loads.caller.services.catalog.update_book(loads.caller.request(message)).await;
        let book = reply.and_then(|reply| reply.into_inner().book.ok_or_else(|| missing("book")));
        or_null(ctx, book, SAME_NAMES).map(Book::alone)
    }

    /// Removes a book and its reviews. Its stock stays, and orders keep what they recorded of it.
    /// Errors: BOOK_NOT_FOUND, VERSION_MISMATCH.
    async fn delete_book(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The book's id.")] id: i32,
        #[graphql(desc = "Refuse when the book's version is another one.")] expected_version: Option<i32>,
    ) -> Option<DeletedBook> {
        let loads = loads(ctx);
        let message = catalog::DeleteBookRequest { book_id: id, expected_version };
        let reply = loads.caller.services.catalog.delete_book(loads.caller.request(message)).await;
        or_null(ctx, reply, &[("book_id", "id")]).map(|_| DeletedBook { id })
    }

    /// Adds a review to a book.
    /// Errors: BOOK_NOT_FOUND, STORE_FULL.
    async fn add_review(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The review to add.")] input: AddReviewInput,
    ) -> Option<Review> {
        let loads = loads(ctx);
        let message = catalog::AddReviewRequest {
            book_id: input.book_id,
            rating: input.rating,
            reviewer: input.reviewer,
            text: input.text,
        };
        let reply = loads.caller.services.catalog.add_review(loads.caller.request(message)).await;
        let review = reply.and_then(|reply| reply.into_inner().review.ok_or_else(|| missing("review")));
        or_null(ctx, review, SAME_NAMES).map(Review::alone)
    }

    /// Adds units (a delivery) or takes unreserved units away (a loss). Not idempotent: don't retry it blindly.
    /// Errors: UNKNOWN_SKU, OUT_OF_STOCK (fewer units are left than are to be taken).
    async fn adjust_stock(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The change.")] input: AdjustStockInput,
    ) -> Option<Stock> {
        let loads = loads(ctx);
        let message = inventory::AdjustStockRequest { sku: input.sku, delta: input.delta };
        let reply = loads.caller.services.inventory.adjust_stock(loads.caller.request(message)).await;
        let stock = reply.and_then(|reply| reply.into_inner().stock.ok_or_else(|| missing("stock")));
        or_null(ctx, stock, SAME_NAMES).map(Stock)
    }
}
