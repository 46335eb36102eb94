//! Stock.

use axum::body::Body;
use axum::response::Response;
use proto::inventory::v1 as pb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::given;
use crate::call::{Call, promised};
use crate::errors::Problem;
use crate::events::events;
use crate::reply;

/// The stock of one book.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"bookId": 1, "inStock": 1_000_000}))]
pub(super) struct Stock {
    /// The book's id.
    #[schema(minimum = 1)]
    pub(super) book_id: i32,
    /// Units that can be reserved now.
    #[schema(minimum = 0)]
    pub(super) in_stock: i32,
}

impl From<&pb::Stock> for Stock {
    fn from(stock: &pb::Stock) -> Self {
        Self { book_id: stock.book_id, in_stock: stock.in_stock }
    }
}

/// A delivery or a loss.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"sku": "9790000000018", "delta": 25}))]
pub(super) struct StockAdjustment {
    /// The book's SKU.
    #[serde(default)]
    #[schema(required, pattern = "^[0-9]{13}$")]
    sku: String,
    /// Units to add, or to take away when negative; not 0.
    #[serde(default, deserialize_with = "given")]
    #[schema(required, value_type = i32, minimum = -1_000_000, maximum = 1_000_000)]
    delta: Option<i32>,
}

/// The stock of a book
#[utoipa::path(
    get,
    path = "/api/v1/books/{bookId}/stock",
    tag = "stock",
    params(("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1)),
    responses(
        (status = 200, description = "The stock", body = Stock),
        (status = 404, description = "UNKNOWN_SKU"),
    ),
)]
pub(super) async fn get_stock(call: Call) -> Result<Response, Problem> {
    let message = pb::GetStockRequest { book_id: call.path_int("bookId")?, sku: String::new() };
    let reply = call.wait(call.services().inventory.get_stock(call.request(message))).await?;
    call.fresh(&Stock::from(&promised(reply.stock)?))
}

/// The stock of a book as it changes
///
/// Server-sent events: `stock` with the stock as it is, then one after each change; a slow reader gets the latest and
/// misses the ones between. `problem`, its data a problem, is the last one when the stream breaks or the server shuts
/// down. A comment every 15 s keeps the connection open. `Last-Event-ID` spares a client that reconnects a first event
/// that tells nothing new.
#[utoipa::path(
    get,
    path = "/api/v1/books/{bookId}/stock/events",
    tag = "stock",
    params(
        ("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1),
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was seen"),
    ),
    responses(
        (status = 200, description = "The events", content_type = "text/event-stream", body = String,
            example = "event: stock\nid: 5f1f0c6a0e4b3c2d\ndata: {\"bookId\":1,\"inStock\":1000000}\n\n"),
        (status = 404, description = "UNKNOWN_SKU"),
    ),
)]
pub(super) async fn watch_stock(call: Call) -> Result<Response, Problem> {
    let message = pb::WatchStockRequest { book_ids: vec![call.path_int("bookId")?], skus: Vec::new() };
    let stream = call.wait(call.services().inventory.watch_stock(call.open_ended(message))).await;
    let stream = stream.map_err(|problem| problem.renamed("bookIds[0]", "bookId"))?;
    Ok(events(&call, "stock", stream, |change: &pb::WatchStockResponse| match &change.stock {
        Some(stock) => reply::to_json(&Stock::from(stock)),
        None => promised(None),
    }))
}

/// Add or take away units
///
/// A delivery, or a loss when `delta` is negative. Not idempotent: don't repeat it blindly.
#[utoipa::path(
    post,
    path = "/api/v1/stock-adjustments",
    tag = "stock",
    request_body = StockAdjustment,
    responses(
        (status = 200, description = "The stock after the change", body = Stock),
        (status = 404, description = "UNKNOWN_SKU"),
        (status = 409, description = "OUT_OF_STOCK"),
    ),
)]
pub(super) async fn adjust_stock(call: Call, body: Body) -> Result<Response, Problem> {
    let adjustment: StockAdjustment = call.json(body).await?;
    let StockAdjustment { sku, delta } = adjustment;
    let message = pb::AdjustStockRequest { sku, delta: delta.unwrap_or_default() };
    let reply = call.wait(call.services().inventory.adjust_stock(call.request(message))).await;
    let left_out = delta.is_none().then(|| "delta".to_owned());
    let reply = reply.map_err(|problem| problem.left_out(left_out))?;
    reply::ok(&Stock::from(&promised(reply.stock)?))
}
