//! What can be watched.

use async_graphql::{Context, Error, ID, Subscription};
use futures_util::{Stream, StreamExt};
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use proto::ordering::v1::OrderView;
use tonic::Status;

use super::order::Order;
use super::stock::Stock;
use super::{loads, missing};
use crate::error::{Names, SAME_NAMES, of_status};

pub(crate) struct Subscription;

/// What can be watched, over WebSocket with the sub-protocol `graphql-transport-ws`. An operation watches one field.
#[Subscription]
impl Subscription {
    /// The stock of the books asked for: first as it is, one event for each book, then again after each change. A
    /// reader that is slow gets the latest values and misses the ones between.
    /// Errors: UNKNOWN_SKU, SHUTTING_DOWN.
    async fn stock_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Ids of books. Together with skus 1 to 100.")] book_ids: Option<Vec<i32>>,
        #[graphql(desc = "SKUs of books.")] skus: Option<Vec<String>>,
    ) -> Result<impl Stream<Item = Result<Stock, Error>> + use<>, Error> {
        let loads = loads(ctx);
        let message = inventory::WatchStockRequest {
            book_ids: book_ids.unwrap_or_default(),
            skus: skus.unwrap_or_default(),
        };
        let reply = loads.caller.services.inventory.watch_stock(loads.caller.request(message)).await;
        let stream = reply.map_err(|status| refused(&status, SAME_NAMES))?.into_inner();
        Ok(events(stream, |event| event.stock.map(Stock).ok_or_else(|| missing("stock"))))
    }

    /// The order: first as it is, then after each change. Ends by itself once the order is in a state that it cannot
    /// leave.
    /// Errors: ORDER_NOT_FOUND, SHUTTING_DOWN.
    async fn order_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The order's id.")] id: ID,
    ) -> Result<impl Stream<Item = Result<Order, Error>> + use<>, Error> {
        let loads = loads(ctx);
        let message = ordering::WatchOrderRequest { order_id: id.0 };
        let reply = loads.caller.services.ordering.watch_order(loads.caller.request(message)).await;
        let stream = reply.map_err(|status| refused(&status, &[("order_id", "id")]))?.into_inner();
        Ok(events(stream, |event| {
            event.order.map(|order| Order::new(order, OrderView::Status)).ok_or_else(|| missing("order"))
        }))
    }
}

fn refused(status: &Status, names: Names) -> Error {
    let error = of_status(status, names);
    Error { message: error.message, source: None, extensions: error.extensions }
}

/// What the messages of a stream hold. Whoever reads it stops at the first error.
fn events<M, T>(
    stream: impl Stream<Item = Result<M, Status>>,
    part: impl Fn(M) -> Result<T, Status>,
) -> impl Stream<Item = Result<T, Error>> {
    stream.map(move |event| event.and_then(&part).map_err(|status| refused(&status, SAME_NAMES)))
}
