//! The rules of orders: what one consists of, the states it goes through, and who may ask for what when.
//!
//! ```text
//!            place            ship
//! Pending ─────────▶ Placed ─────────▶ Shipped
//!    │                │  │ cancel                 give back
//!    │                │  └────────▶ Cancelling ──────────────▶ Cancelled
//!    │                │ lose                                       ▲
//!    │                └────────────────────────────────────────────┘
//!    └─ forgotten when a step fails: its units go back, and it never was an order
//! ```
//!
//! Asking again for what is done already is harmless: cancelling an order that is being cancelled or is cancelled, and
//! giving back the units of one that is cancelled. Every other way is refused, and changes nothing.

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
    /// It is to be cancelled, and its units go back as soon as inventory takes them.
    Cancelling,
    /// It has no units any more.
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

/// What was asked for is not possible in the state in which the order is. It is as it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("order {id} can't be {action}, it is {state:?}")]
pub(crate) struct Illegal {
    pub(crate) id: OrderId,
    pub(crate) state: State,
    pub(crate) action: &'static str,
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
    pub(crate) fn place(&mut self, at: SystemTime) -> Result<(), Illegal> {
        match self.state {
            State::Pending => {
                self.enter(State::Placed, at, "PLACED", "ordering", "units sold".to_owned());
                self.placed_at = Some(self.updated_at);
                Ok(())
            }
            _ => Err(self.illegal("placed")),
        }
    }

    /// The order leaves the house.
    pub(crate) fn ship(&mut self, at: SystemTime, note: String) -> Result<(), Illegal> {
        match self.state {
            State::Placed => {
                self.enter(State::Shipped, at, "SHIPPED", "carrier", note);
                Ok(())
            }
            _ => Err(self.illegal("shipped")),
        }
    }

    /// Decides that the order is cancelled, which nothing takes back, and names the reservation whose units go back.
    ///
    /// Cancelling twice is harmless: once the units are back there are none to give back.
    pub(crate) fn cancel(&mut self, at: SystemTime) -> Result<Option<Reservation>, CancelError> {
        match self.state {
            State::Placed => {
                let note = "units are to be given back".to_owned();
                self.enter(State::Cancelling, at, "CANCELLING", "customer", note);
                Ok(Some(self.reservation))
            }
            State::Cancelling => Ok(Some(self.reservation)),
            State::Cancelled => Ok(None),
            State::Shipped => Err(CancelError::AlreadyShipped(self.id)),
            State::Pending => Err(CancelError::StillPending(self.id)),
        }
    }

    /// The units of an order that is being cancelled are back. Once is enough, and twice is harmless.
    pub(crate) fn give_back(&mut self, at: SystemTime) -> Result<(), Illegal> {
        match self.state {
            State::Cancelling => {
                self.enter(State::Cancelled, at, "CANCELLED", "ordering", "units given back".to_owned());
                Ok(())
            }
            State::Cancelled => Ok(()),
            _ => Err(self.illegal("cancelled")),
        }
    }

    /// The units of a placed order are gone without its doing, and there are no others for it.
    pub(crate) fn lose(&mut self, at: SystemTime, why: &str) -> Result<(), Illegal> {
        match self.state {
            State::Placed => {
                self.enter(State::Cancelled, at, "CANCELLED", "ordering", format!("units lost: {why}"));
                Ok(())
            }
            _ => Err(self.illegal("lost")),
        }
    }

    fn illegal(&self, action: &'static str) -> Illegal {
        Illegal { id: self.id, state: self.state, action }
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

    /// What holds its units, or held them.
    pub(crate) fn reservation(&self) -> Reservation {
        self.reservation
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

    /// An order in each state.
    fn in_each_state() -> Vec<Order> {
        let mut shipped = placed();
        shipped.ship(at(3), String::new()).unwrap();
        let mut cancelling = placed();
        cancelling.cancel(at(3)).unwrap();
        let mut cancelled = cancelling.clone();
        cancelled.give_back(at(4)).unwrap();
        vec![pending(), placed(), shipped, cancelling, cancelled]
    }

    #[test]
    fn every_action_in_every_state_leads_where_the_machine_says() {
        use State::{Cancelled, Cancelling, Pending, Placed, Shipped};
        type Act = fn(&mut Order) -> bool;
        let place: Act = |order| order.place(at(9)).is_ok();
        let ship: Act = |order| order.ship(at(9), String::new()).is_ok();
        let cancel: Act = |order| order.cancel(at(9)).is_ok();
        let give_back: Act = |order| order.give_back(at(9)).is_ok();
        let lose: Act = |order| order.lose(at(9), "gone").is_ok();
        // By state: where it leads, and nothing where it is refused.
        let table: [(Act, [Option<State>; 5]); 5] = [
            // From        Pending, Placed, Shipped, Cancelling, Cancelled
            (place, [Some(Placed), None, None, None, None]),
            (ship, [None, Some(Shipped), None, None, None]),
            (cancel, [None, Some(Cancelling), None, Some(Cancelling), Some(Cancelled)]),
            (give_back, [None, None, None, Some(Cancelled), Some(Cancelled)]),
            (lose, [None, Some(Cancelled), None, None, None]),
        ];
        let states: Vec<_> = in_each_state().iter().map(Order::state).collect();
        assert_eq!(states, [Pending, Placed, Shipped, Cancelling, Cancelled]);
        for (action, (act, leads_to)) in table.into_iter().enumerate() {
            for (mut order, to) in in_each_state().into_iter().zip(leads_to) {
                let (from, before) = (order.state(), order.history().to_vec());
                assert_eq!(act(&mut order), to.is_some(), "{action} {from:?}");
                assert_eq!(order.state(), to.unwrap_or(from), "{action} {from:?}");
                // A change is told once, and nothing else is.
                let told = order.history().len() - before.len();
                assert_eq!(told, usize::from(order.state() != from), "{action} {from:?}");
                assert!(order.history().starts_with(&before));
            }
        }
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_why_not() {
        let mut order = pending();
        let id = order.id();
        assert_eq!(order.cancel(at(4)), Err(CancelError::StillPending(id)));
        let refused = order.ship(at(4), String::new()).unwrap_err();
        assert_eq!(refused.to_string(), format!("order {id} can't be shipped, it is Pending"));
        order.place(at(4)).unwrap();
        let refused = order.give_back(at(5)).unwrap_err();
        assert_eq!(refused.to_string(), format!("order {id} can't be cancelled, it is Placed"));
        order.ship(at(5), String::new()).unwrap();
        assert_eq!(order.cancel(at(6)), Err(CancelError::AlreadyShipped(id)));
    }

    #[test]
    fn an_order_is_placed_once() {
        let mut order = placed();
        assert_eq!((order.state(), order.created_at(), order.updated_at()), (State::Placed, at(1), at(2)));
        let id = order.id();
        assert_eq!(order.place(at(3)), Err(Illegal { id, state: State::Placed, action: "placed" }));
        assert_eq!(order.updated_at(), at(2));
    }

    #[test]
    fn cancelling_names_its_own_reservation_until_the_units_are_back() {
        let mut order = placed();
        let reservation = order.id().reservation(3);
        assert_eq!(order.cancel(at(3)), Ok(Some(reservation)));
        assert_eq!(order.cancel(at(4)), Ok(Some(reservation)));
        assert_eq!((order.state(), order.updated_at()), (State::Cancelling, at(3)));
        order.give_back(at(5)).unwrap();
        assert_eq!(order.cancel(at(6)), Ok(None));
        assert_eq!((order.state(), order.updated_at()), (State::Cancelled, at(5)));
    }

    #[test]
    fn an_order_that_lost_its_units_says_why() {
        let mut order = placed();
        order.lose(at(3), "only 0 left").unwrap();
        assert_eq!(order.cancel(at(4)), Ok(None));
        let last = order.history().last().unwrap();
        assert_eq!((last.kind, last.note.as_str()), ("CANCELLED", "units lost: only 0 left"));
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
        let last: Vec<_> = in_each_state().iter().map(|order| order.state().is_final()).collect();
        assert_eq!(last, [false, false, true, false, true]);
    }
}
