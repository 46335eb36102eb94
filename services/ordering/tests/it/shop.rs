//! Ordering between its fakes, and short ways to call it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ordering::{Config, Ordering};
use proto::inventory::v1::ReservationState;
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, seed};
use tonic::{Request, Status};

use crate::fakes::{FakeCatalog, FakeInventory, Script};

pub(crate) struct Shop {
    pub(crate) ordering: Ordering,
    pub(crate) catalog: Arc<FakeCatalog>,
    pub(crate) inventory: Arc<FakeInventory>,
    pub(crate) script: Arc<Script>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let script = Arc::new(Script::default());
        let catalog = Arc::new(FakeCatalog::new(&script));
        let inventory = Arc::new(FakeInventory::new(&script));
        let ordering = Ordering::new(&config, catalog.clone(), inventory.clone());
        Self { ordering, catalog, inventory, script }
    }

    /// The shop after ordering was killed and started anew. What the killed one calls from now on does nothing.
    pub(crate) fn kill_ordering(&self) -> Self {
        self.kill_ordering_for(Config::default())
    }

    /// As [`Shop::kill_ordering`], for one with other settings.
    pub(crate) fn kill_ordering_for(&self, config: Config) -> Self {
        self.script.die_after(0, false);
        let script = Arc::new(Script::default());
        let catalog = Arc::new(FakeCatalog::new(&script));
        let inventory = Arc::new(self.inventory.called_by(&script));
        let ordering = Ordering::new(&config, catalog.clone(), inventory.clone());
        Self { ordering, catalog, inventory, script }
    }

    pub(crate) async fn send(&self, request: pb::PlaceOrderRequest) -> Result<pb::Order, Status> {
        let reply = self.ordering.place_order(Request::new(request)).await?;
        Ok(reply.into_inner().order.unwrap())
    }

    pub(crate) async fn place(&self, request_id: &str, lines: &[(i32, i32)]) -> Result<pb::Order, Status> {
        self.send(request(request_id, lines)).await
    }

    pub(crate) async fn get(&self, order_id: &str, view: pb::OrderView) -> Result<pb::Order, Status> {
        let request = pb::GetOrderRequest { order_id: order_id.to_owned(), view: view.into() };
        Ok(self.ordering.get_order(Request::new(request)).await?.into_inner().order.unwrap())
    }

    pub(crate) async fn state(&self, order_id: &str) -> Result<pb::OrderState, Status> {
        Ok(self.get(order_id, pb::OrderView::Status).await?.state())
    }

    pub(crate) async fn cancel(&self, order_id: &str) -> Result<pb::Order, Status> {
        let request = pb::CancelOrderRequest { order_id: order_id.to_owned() };
        Ok(self.ordering.cancel_order(Request::new(request)).await?.into_inner().order.unwrap())
    }

    pub(crate) async fn list(
        &self,
        page_size: i32,
        page_token: &str,
    ) -> Result<pb::ListOrdersResponse, Status> {
        let request = pb::ListOrdersRequest { page_size, page_token: page_token.to_owned() };
        Ok(self.ordering.list_orders(Request::new(request)).await?.into_inner())
    }

    /// The ids of all orders but the seeded ones, latest first.
    pub(crate) async fn made(&self) -> Vec<String> {
        let page = self.list(1000, "").await.unwrap();
        assert_eq!(page.next_page_token, "");
        let ids = page.orders.into_iter().map(|order| order.order_id);
        ids.take_while(|id| *id != seed::order_id(seed::ORDERS)).collect()
    }

    /// Compares the books with inventory's for so long. Needs a clock that stands still.
    pub(crate) async fn reconcile(&self, time: Duration) {
        let reconciler = tokio::spawn(self.ordering.clone().reconcile());
        tokio::time::sleep(time).await;
        reconciler.abort();
    }

    /// Lets everything that goes on come to its end, and checks what must hold then: sold are the units of the placed
    /// orders and no others, and none are held. Needs a clock that stands still.
    pub(crate) async fn settle(&self) {
        self.reconcile(Duration::from_secs(600)).await;
        let mut placed = BTreeSet::new();
        for id in self.made().await {
            let order = self.get(&id, pb::OrderView::History).await.unwrap();
            match order.state() {
                pb::OrderState::Placed => {
                    let note = &order.history[0].note;
                    placed.insert(note.strip_prefix("units held as ").unwrap().to_owned());
                }
                state => assert_eq!(state, pb::OrderState::Cancelled),
            }
        }
        let states = self.inventory.states();
        let in_state = |state| states.iter().filter(move |(_, s)| **s == state).map(|(name, _)| name.clone());
        assert_eq!(in_state(ReservationState::Held).next(), None);
        assert_eq!(in_state(ReservationState::Confirmed).collect::<BTreeSet<_>>(), placed);
    }
}

/// A request for copies of books, by book id.
pub(crate) fn request(request_id: &str, lines: &[(i32, i32)]) -> pb::PlaceOrderRequest {
    let lines = lines.iter().map(|&(book, quantity)| pb::PlaceOrderLine { sku: seed::sku(book), quantity });
    pb::PlaceOrderRequest { request_id: request_id.to_owned(), lines: lines.collect(), ship_to: None }
}

/// Checks that the call was refused for this reason, with the code that goes with it.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T, Status>, reason: Reason) -> Status {
    let status = result.unwrap_err();
    assert_eq!((Reason::of(&status), status.code()), (reason, reason.code()), "{status}");
    status
}

/// Polls the future so many times, in turns with all tasks, and drops it; what it came to, if it did.
pub(crate) async fn leave<F: Future>(future: F, turns: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..turns {
        if let Some(output) = future.as_mut().now_or_never() {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}
