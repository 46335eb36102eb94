//! The rules of orders: what one consists of, the states it goes through, and who may ask for what when.
//!
//! ```text
//! Pending ──place──▶ Placed ──ship──▶ Shipped
//!    │                  └────cancel──▶ Cancelled
//!    └─ forgotten when a step fails: its units go back, and it never was an order
//! ```

mod draft;
mod id;
mod price;

use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use draft::{Address, Draft, Fingerprint};
pub(crate) use id::{OrderId, Reservation, Sku};
pub(crate) use price::{Content, Currency, Line, Money, Offer, PriceError};

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its units are held, not yet sold.
    Pending,
    /// Its units are sold.
    Placed,
    /// It has left the house.
    Shipped,
    /// Its units were given back.
    Cancelled,
}

impl State {
    /// Whether no transition leads out of it.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, State::Shipped | State::Cancelled)
    }
}

/// Something that happened to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: SystemTime,
    pub(crate) kind: &'static str,
    pub(crate) actor: &'static str,
    pub(crate) note: String,
}

/// An order. A clone shares everything that is large.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    id: OrderId,
    content: Arc<Content>,
    reservation: Reservation,
    state: State,
    created_at: SystemTime,
    placed_at: Option<SystemTime>,
    updated_at: SystemTime,
    history: Arc<Vec<Event>>,
}

/// An order that is not pending was to be placed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("order {id} can't be placed, it is {state:?}")]
pub(crate) struct PlaceError {
    pub(crate) id: OrderId,
    pub(crate) state: State,
}

/// An order that is not placed was to be shipped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("order {id} can't be shipped, it is {state:?}")]
pub(crate) struct ShipError {
    pub(crate) id: OrderId,
    pub(crate) state: State,
}

/// Why an order was not cancelled. It is as it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CancelError {
    #[error("order {0} has shipped")]
    AlreadyShipped(OrderId),
    #[error("order {0} is still being placed")]
    StillPending(OrderId),
}

impl Order {
    /// An order whose units are held by `reservation`.
    pub(crate) fn pending(
        id: OrderId,
        content: Arc<Content>,
        reservation: Reservation,
        at: SystemTime,
    ) -> Self {
        let held =
            Event { at, kind: "RESERVED", actor: "inventory", note: format!("units held as {reservation}") };
        Self {
            id,
            content,
            reservation,
            state: State::Pending,
            created_at: at,
            placed_at: None,
            updated_at: at,
            history: Arc::new(vec![held]),
        }
    }

    /// The held units are sold now.
    pub(crate) fn place(&mut self, at: SystemTime) -> Result<(), PlaceError> {
        match self.state {
            State::Pending => {
                self.enter(State::Placed, at, "PLACED", "ordering", "units sold".to_owned());
                self.placed_at = Some(self.updated_at);
                Ok(())
            }
            state => Err(PlaceError { id: self.id, state }),
        }
    }

    /// The order leaves the house.
    pub(crate) fn ship(&mut self, at: SystemTime, note: String) -> Result<(), ShipError> {
        match self.state {
            State::Placed => {
                self.enter(State::Shipped, at, "SHIPPED", "carrier", note);
                Ok(())
            }
            state => Err(ShipError { id: self.id, state }),
        }
    }

    /// Cancels the order and names the reservation whose units go back.
    ///
    /// Cancelling twice is harmless: the second time gives nothing back.
    pub(crate) fn cancel(&mut self, at: SystemTime) -> Result<Option<Reservation>, CancelError> {
        match self.state {
            State::Placed => {
                self.enter(State::Cancelled, at, "CANCELLED", "customer", "units given back".to_owned());
                Ok(Some(self.reservation))
            }
            State::Cancelled => Ok(None),
            State::Shipped => Err(CancelError::AlreadyShipped(self.id)),
            State::Pending => Err(CancelError::StillPending(self.id)),
        }
    }

    /// Notes something that changes no state.
    pub(crate) fn note(&mut self, event: Event) {
        self.updated_at = self.updated_at.max(event.at);
        Arc::make_mut(&mut self.history).push(event);
    }

    /// The order as it was the moment it was placed, which is what a repeated request is answered with; without the
    /// history, which that answer doesn't show.
    pub(crate) fn as_placed(&self) -> Option<Order> {
        let placed_at = self.placed_at?;
        let mut order = self.clone();
        order.state = State::Placed;
        order.updated_at = placed_at;
        order.history = Arc::default();
        Some(order)
    }

    fn enter(&mut self, state: State, at: SystemTime, kind: &'static str, actor: &'static str, note: String) {
        // A clock that was set back must not make the order's past later than its present.
        let at = at.max(self.updated_at);
        self.state = state;
        self.note(Event { at, kind, actor, note });
    }

    pub(crate) fn id(&self) -> OrderId {
        self.id
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn created_at(&self) -> SystemTime {
        self.created_at
    }

    pub(crate) fn updated_at(&self) -> SystemTime {
        self.updated_at
    }

    pub(crate) fn history(&self) -> &[Event] {
        &self.history
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(second)
    }

    fn pending() -> Order {
        let draft = Draft::new("r", vec![("9790000000018".to_owned(), 2)], None).unwrap();
        let offer =
            Offer { book_id: 1, title: "T".to_owned(), price: Money { minor: 5, currency: Currency::EUR } };
        let content = draft.price(|_| Some(offer.clone())).unwrap();
        Order::pending(draft.order_id(), Arc::new(content), draft.order_id().reservation(3), at(1))
    }

    fn placed() -> Order {
        let mut order = pending();
        order.place(at(2)).unwrap();
        order
    }

    #[test]
    fn an_order_is_placed_once() {
        let mut order = placed();
        assert_eq!((order.state(), order.created_at(), order.updated_at()), (State::Placed, at(1), at(2)));
        let id = order.id();
        assert_eq!(order.place(at(3)), Err(PlaceError { id, state: State::Placed }));
        assert_eq!(order.updated_at(), at(2));
    }

    #[test]
    fn cancelling_gives_back_its_own_reservation_and_only_once() {
        let mut order = placed();
        let reservation = order.id().reservation(3);
        assert_eq!(order.cancel(at(3)), Ok(Some(reservation)));
        assert_eq!(order.cancel(at(4)), Ok(None));
        assert_eq!((order.state(), order.updated_at()), (State::Cancelled, at(3)));
    }

    #[test]
    fn a_shipped_order_cannot_be_cancelled() {
        let mut order = placed();
        order.ship(at(3), "on the van".to_owned()).unwrap();
        let before = order.history().to_vec();
        assert_eq!(order.cancel(at(4)), Err(CancelError::AlreadyShipped(order.id())));
        assert_eq!(order.history(), before);
    }

    #[test]
    fn a_pending_order_can_be_neither_cancelled_nor_shipped() {
        let mut order = pending();
        let id = order.id();
        assert_eq!(order.cancel(at(4)), Err(CancelError::StillPending(id)));
        assert_eq!(order.ship(at(4), String::new()), Err(ShipError { id, state: State::Pending }));
        assert_eq!(order.state(), State::Pending);
    }

    #[test]
    fn what_was_placed_can_be_told_later() {
        let mut order = placed();
        order.cancel(at(9)).unwrap();
        let then = order.as_placed().unwrap();
        assert_eq!((then.state(), then.updated_at()), (State::Placed, at(2)));
        assert!(pending().as_placed().is_none());
    }

    #[test]
    fn a_clock_set_back_does_not_turn_history_round() {
        let mut order = placed();
        order.cancel(at(0)).unwrap();
        let times: Vec<_> = order.history().iter().map(|event| event.at).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn only_shipped_and_cancelled_are_final() {
        let all = [State::Pending, State::Placed, State::Shipped, State::Cancelled];
        assert_eq!(all.map(State::is_final), [false, false, true, true]);
    }
}
