//! Ordering's interface: reads messages, asks the domain, writes messages. The clock is read here and nowhere else.

mod cancel;
mod detached;
mod place;
mod reconcile;
mod release;
mod upstream;
pub(crate) mod view;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chassis::{Work, page};
use futures_util::stream;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{FieldError, Reason, Refusal};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use crate::Config;
use crate::domain::OrderId;
use crate::seed;
use crate::store::Store;

/// Names the list of orders in its page tokens.
const LIST: &str = "orders";

/// Most characters of an id that is looked up; longer texts are not repeated in the refusal.
const MAX_ID_CHARS: usize = 64;

/// The ordering service. Clones are the same service.
#[derive(Clone)]
pub struct Ordering {
    store: Arc<Store>,
    catalog: Arc<dyn CatalogService>,
    inventory: Arc<dyn InventoryService>,
    release_timeout: Duration,
    reconcile_interval: Duration,
    work: Work,
}

impl Ordering {
    /// A service with the seeded orders, which asks these two for prices and units.
    pub fn new(
        config: &Config,
        catalog: Arc<dyn CatalogService>,
        inventory: Arc<dyn InventoryService>,
    ) -> Self {
        let store = Arc::new(Store::new(config.max_orders, config.max_order_lines));
        for order in seed::orders() {
            store.seed(order);
        }
        let &Config { release_timeout, reconcile_interval, .. } = config;
        Self { store, catalog, inventory, release_timeout, reconcile_interval, work: Work::new() }
    }

    /// What goes on after its callers have left. A server that goes down has to wait for it, or orders are torn.
    pub fn work(&self) -> Work {
        self.work.clone()
    }
}

impl fmt::Debug for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordering").finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl OrderingService for Ordering {
    async fn place_order(
        &self,
        request: Request<pb::PlaceOrderRequest>,
    ) -> Result<Response<pb::PlaceOrderResponse>, Status> {
        let (_, call, message) = request.into_parts();
        let order = self.place(&call, message).await?;
        Ok(Response::new(pb::PlaceOrderResponse { order: Some(view::full(&order)) }))
    }

    async fn get_order(
        &self,
        request: Request<pb::GetOrderRequest>,
    ) -> Result<Response<pb::GetOrderResponse>, Status> {
        let pb::GetOrderRequest { order_id, view } = request.into_inner();
        let mut errors = Vec::new();
        let id = parse_id(&order_id).unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        let view = pb::OrderView::try_from(view).unwrap_or_else(|_| {
            errors.push(FieldError {
                field: "view".to_owned(),
                rule: format!("must be from 0 to 3, was {view}"),
            });
            pb::OrderView::Unspecified
        });
        if !errors.is_empty() {
            return Err(Refusal::fields(errors).into());
        }
        let order = id.and_then(|id| self.store.get(id)).ok_or_else(|| not_found(&order_id))?;
        let order = match view {
            pb::OrderView::Status => view::status(&order),
            pb::OrderView::Full | pb::OrderView::Unspecified => view::full(&order),
            pb::OrderView::History => view::history(&order),
        };
        Ok(Response::new(pb::GetOrderResponse { order: Some(order) }))
    }

    async fn list_orders(
        &self,
        request: Request<pb::ListOrdersRequest>,
    ) -> Result<Response<pb::ListOrdersResponse>, Status> {
        let pb::ListOrdersRequest { page_size, page_token } = request.into_inner();
        let size = page::size(page_size).map_err(|rule| Refusal::field("page_size", rule))?;
        let before = if page_token.is_empty() {
            u64::MAX
        } else {
            page::decode(LIST, &page_token)
                .ok_or_else(|| Refusal::new(Reason::InvalidPageToken, "page_token is not from this list"))?
        };
        // One more than the page holds tells whether another one follows.
        let mut orders = self.store.list(before, size + 1);
        let more = orders.len() > size;
        orders.truncate(size);
        let next_page_token = match orders.last() {
            Some((last, _)) if more => page::encode(LIST, *last),
            _ => String::new(),
        };
        let orders = orders.iter().map(|(_, order)| view::status(order)).collect();
        Ok(Response::new(pb::ListOrdersResponse { orders, next_page_token }))
    }

    async fn cancel_order(
        &self,
        request: Request<pb::CancelOrderRequest>,
    ) -> Result<Response<pb::CancelOrderResponse>, Status> {
        let (_, call, message) = request.into_parts();
        let id = existing_id(&message.order_id)?;
        let order = self.cancel(&call, id).await?;
        Ok(Response::new(pb::CancelOrderResponse { order: Some(view::status(&order)) }))
    }

    async fn watch_order(
        &self,
        request: Request<pb::WatchOrderRequest>,
    ) -> Result<Response<BoxStream<pb::WatchOrderResponse>>, Status> {
        let order_id = request.into_inner().order_id;
        let id = existing_id(&order_id)?;
        let watch = self.store.watch(id).ok_or_else(|| not_found(&order_id))?;
        let orders = stream::unfold(Some(watch), move |watch| {
            let order_id = order_id.clone();
            async move {
                let mut watch = watch?;
                Some(match watch.next().await {
                    Some(order) => {
                        let message = pb::WatchOrderResponse { order: Some(view::status(&order)) };
                        (Ok(message), (!order.state().is_final()).then_some(watch))
                    }
                    // The order was given up before it was placed.
                    None => (Err(not_found(&order_id)), None),
                })
            }
        });
        Ok(Response::new(Box::pin(orders)))
    }
}

/// Now, in whole milliseconds: the finest that the suite shows.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(u64::try_from(since.as_millis()).unwrap_or_default())
}

/// The id in this text, `None` when the text has not the form of one, so that there can be no such order.
fn parse_id(order_id: &str) -> Result<Option<OrderId>, FieldError> {
    let chars = order_id.chars().count();
    if (1..=MAX_ID_CHARS).contains(&chars) {
        Ok(order_id.parse().ok())
    } else {
        let rule = format!("must have 1 to {MAX_ID_CHARS} characters, had {chars}");
        Err(FieldError { field: "order_id".to_owned(), rule })
    }
}

fn existing_id(order_id: &str) -> Result<OrderId, Status> {
    match parse_id(order_id) {
        Ok(id) => id.ok_or_else(|| not_found(order_id)),
        Err(error) => Err(Refusal::fields(vec![error]).into()),
    }
}

fn not_found(order_id: &str) -> Status {
    Refusal::new(Reason::OrderNotFound, format!("no order {order_id}")).with("orderId", order_id).into()
}
