//! Orders: the handlers. How they look is in [`views`].

mod views;

use axum::body::Body;
use axum::response::Response;
use proto::ordering::v1 as pb;
use serde::Deserialize;
use utoipa::ToSchema;

use self::views::{Order, OrderList};
use super::reservations::{NewLine, left_out};
use crate::body::Object;
use crate::call::{Call, CallWithQuery, promised};
use crate::errors::Problem;
use crate::events::events;
use crate::reply;

/// An order to place.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "lines": [{"sku": "9790000000018", "quantity": 2}],
    "shipTo": {"name": "Ana Brook", "street": "Hafengasse 3", "city": "Bern", "postalCode": "3011", "country": "CH"},
}))]
pub(super) struct NewOrder {
    /// What to order, at the catalog's prices. Two lines of one SKU add up.
    #[serde(default)]
    #[schema(required, value_type = Vec<NewLine>, min_items = 1, max_items = 1000)]
    lines: Vec<Object<NewLine>>,
    /// Where it goes.
    #[serde(default)]
    #[schema(value_type = Option<NewAddress>)]
    ship_to: Option<Object<NewAddress>>,
}

/// Where an order goes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewAddress {
    /// Who receives it.
    #[serde(default)]
    #[schema(max_length = 200)]
    name: String,
    /// Street and number.
    #[serde(default)]
    #[schema(max_length = 200)]
    street: String,
    /// City.
    #[serde(default)]
    #[schema(max_length = 200)]
    city: String,
    /// Postal code.
    #[serde(default)]
    #[schema(max_length = 200)]
    postal_code: String,
    /// ISO 3166-1 alpha-2 code of the country, or empty.
    #[serde(default)]
    country: String,
}

impl From<NewAddress> for pb::Address {
    fn from(address: NewAddress) -> Self {
        Self {
            name: address.name,
            street: address.street,
            city: address.city,
            postal_code: address.postal_code,
            country: address.country,
        }
    }
}

/// A page of orders
///
/// Latest first, each without its lines, address and history.
#[utoipa::path(
    get,
    path = "/api/v1/orders",
    tag = "orders",
    params(
        ("page_size" = Option<i32>, Query, minimum = 0, example = 10,
            description = "At most this many orders: 0 means 50, over 1,000 means 1,000"),
        ("page_token" = Option<String>, Query, description = "`nextPageToken` of the page before"),
    ),
    responses(
        (status = 200, description = "The page", body = OrderList,
            headers(("Link" = String, description = "The next page, `rel=\"next\"`, when there is one"))),
        (status = 400, description = "INVALID_PAGE_TOKEN, INVALID_FIELD"),
    ),
)]
pub(super) async fn list_orders(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let (page_size, page_token) = query.page();
    query.done()?;
    let message = pb::ListOrdersRequest { page_size, page_token };
    let page = call.wait(call.services().ordering.list_orders(call.request(message))).await?;
    let view = OrderList { orders: &page.orders, next_page_token: &page.next_page_token };
    call.fresh_page(&view, &page.next_page_token)
}

/// Place an order
///
/// Prices come from the catalog, units from stock. Placed once per `Idempotency-Key`, however often it is sent: the same
/// key with the same content returns the order of the first time, again with 201. A key is remembered as long as its
/// order; that of a refused request is not.
#[utoipa::path(
    post,
    path = "/api/v1/orders",
    tag = "orders",
    params(
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255,
            description = "Your name for this order, in printable ASCII; a UUID by custom",
            example = "6f1c2a4e-8d1b-4c57-9a43-0d6a2f0b7e11"),
    ),
    request_body = NewOrder,
    responses(
        (status = 201, description = "The order with its lines", body = Order,
            headers(("Location" = String, description = "The order's path"))),
        (status = 404, description = "UNKNOWN_SKU"),
        (status = 409, description = "OUT_OF_STOCK, REQUEST_IN_PROGRESS"),
        (status = 422, description = "IDEMPOTENCY_KEY_REUSED"),
        (status = 503, description = "STORE_FULL, UPSTREAM_UNAVAILABLE, SHUTTING_DOWN"),
    ),
)]
pub(super) async fn place_order(call: Call, body: Body) -> Result<Response, Problem> {
    let Some(request_id) = call.header("Idempotency-Key")? else {
        return Err(Problem::field("Idempotency-Key", "must be given: a header with 1 to 255 characters"));
    };
    let order: NewOrder = call.json(body).await?;
    let left_out = left_out(&order.lines);
    let lines = order.lines.into_iter();
    let message = pb::PlaceOrderRequest {
        request_id: request_id.to_owned(),
        lines: lines
            .map(|Object(line)| pb::PlaceOrderLine {
                sku: line.sku,
                quantity: line.quantity.unwrap_or_default(),
            })
            .collect(),
        ship_to: order.ship_to.map(|Object(address)| address.into()),
    };
    let reply = call.wait(call.services().ordering.place_order(call.request(message))).await;
    let reply = reply.map_err(|problem| problem.left_out(left_out))?;
    let order = promised(reply.order)?;
    reply::created(&Order::from(&order), format!("/api/v1/orders/{}", order.order_id))
}

/// One order
///
/// As much of it as `view` asks for.
#[utoipa::path(
    get,
    path = "/api/v1/orders/{orderId}",
    tag = "orders",
    params(
        ("orderId" = String, Path, description = "The order's id"),
        ("view" = Option<String>, Query, pattern = "^(status|full|history)$", example = "status",
            description = "`status`: state, total and times; `full` (when left out): also lines and address; \
                           `history`: also everything that happened to it"),
    ),
    responses(
        (status = 200, description = "The order", body = Order),
        (status = 404, description = "ORDER_NOT_FOUND"),
    ),
)]
pub(super) async fn get_order(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let view = match query.text("view").as_deref() {
        Some("status") => pb::OrderView::Status,
        Some("full") | None => pb::OrderView::Full,
        Some("history") => pb::OrderView::History,
        Some(_) => {
            query.refuse("view", "must be status, full or history");
            pb::OrderView::Unspecified
        }
    };
    query.done()?;
    let message = pb::GetOrderRequest { order_id: call.path_text("orderId"), view: view.into() };
    let reply = call.wait(call.services().ordering.get_order(call.request(message))).await?;
    call.fresh(&Order::from(&promised(reply.order)?))
}

/// Cancel an order
///
/// Gives its units back. While stock can't be reached the order is CANCELLING, and is CANCELLED as soon as the units are
/// back. Cancelling twice is harmless. There is no body.
#[utoipa::path(
    post,
    path = "/api/v1/orders/{orderId}/cancel",
    tag = "orders",
    params(("orderId" = String, Path, description = "The order's id")),
    responses(
        (status = 200, description = "The order as cancelled, without its lines", body = Order),
        (status = 404, description = "ORDER_NOT_FOUND"),
        (status = 409, description = "ORDER_SHIPPED, REQUEST_IN_PROGRESS"),
    ),
)]
pub(super) async fn cancel_order(call: Call) -> Result<Response, Problem> {
    let message = pb::CancelOrderRequest { order_id: call.path_text("orderId") };
    let reply = call.wait(call.services().ordering.cancel_order(call.request(message))).await?;
    reply::ok(&Order::from(&promised(reply.order)?))
}

/// An order as it changes
///
/// Server-sent events: `order` with the order as it is, without its lines, then one after each change; `end` once it is
/// in a state that it cannot leave: don't reconnect then. `problem`, its data a problem, is the last one when the stream
/// breaks or the server shuts down. A comment every 15 s keeps the connection open. `Last-Event-ID` spares a client that
/// reconnects a first event that tells nothing new.
#[utoipa::path(
    get,
    path = "/api/v1/orders/{orderId}/events",
    tag = "orders",
    params(
        ("orderId" = String, Path, description = "The order's id"),
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was seen"),
    ),
    responses(
        (status = 200, description = "The events", content_type = "text/event-stream", body = String,
            example = "event: order\nid: 5f1f0c6a0e4b3c2d\ndata: {\"orderId\":\"ord_00000000000000000000000000000001\",\"state\":\"PLACED\"}\n\n"),
        (status = 404, description = "ORDER_NOT_FOUND"),
    ),
)]
pub(super) async fn watch_order(call: Call) -> Result<Response, Problem> {
    let message = pb::WatchOrderRequest { order_id: call.path_text("orderId") };
    let stream = call.wait(call.services().ordering.watch_order(call.open_ended(message))).await?;
    Ok(events(&call, "order", stream, |change: &pb::WatchOrderResponse| match &change.order {
        Some(order) => reply::to_json(&Order::from(order)),
        None => promised(None),
    }))
}
