//! The reservations of one shard: found by id, and queued by when something is due.
//!
//! Something is due for a reservation as long after it came into its state as for all others in that state. So a queue
//! for each state is in order of time when its members are appended, and what is due next stands in front. Queues are
//! linked through the records, so that leaving one early is as cheap as joining it and leaves nothing behind.

use std::collections::HashMap;

use super::hash::Seeded;
use super::items::Portion;
use crate::domain::{OrderId, ReservationId, State};

const NONE: u32 = u32::MAX;

/// An empty ledger with room for more records than this gives the room back.
const KEPT: usize = 1_024;

/// One reservation. Times are in nanoseconds since the store began.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) order_id: OrderId,
    pub(super) portions: Box<[Portion]>,
    pub(super) expires_at: u64,
}

#[derive(Debug)]
struct Slot {
    record: Record,
    state: State,
    due: u64,
    before: u32,
    after: u32,
}

#[derive(Debug, Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
    len: usize,
}

impl Queue {
    const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    index: HashMap<ReservationId, u32, Seeded>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    held: Queue,
    confirmed: Queue,
    closed: Queue,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            held: Queue::EMPTY,
            confirmed: Queue::EMPTY,
            closed: Queue::EMPTY,
        }
    }
}

impl Ledger {
    /// The place of a reservation.
    pub(super) fn find(&self, id: ReservationId) -> Option<u32> {
        self.index.get(&id).copied()
    }

    /// The reservation at a place, and where it stands.
    pub(super) fn get(&self, at: u32) -> Option<(&Record, State)> {
        self.slot(at).map(|slot| (&slot.record, slot.state))
    }

    /// Every place is below this one.
    pub(super) fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Adds a reservation that is not there yet, held until it expires.
    pub(super) fn add(&mut self, id: ReservationId, record: Record) {
        let due = record.expires_at;
        let slot = Some(Slot { record, state: State::Held, due, before: NONE, after: NONE });
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        if let Some(place) = self.slots.get_mut(at as usize) {
            *place = slot;
        }
        self.index.insert(id, at);
        self.join(at);
    }

    /// Puts the reservation at a place into another state, in which something is due then.
    pub(super) fn change(&mut self, at: u32, state: State, due: u64) {
        self.leave(at);
        if let Some(slot) = self.slot_mut(at) {
            (slot.state, slot.due) = (state, due);
        }
        self.join(at);
    }

    /// Forgets the reservation at a place.
    pub(super) fn remove(&mut self, at: u32) {
        self.leave(at);
        let Some(slot) = self.slots.get_mut(at as usize).and_then(Option::take) else { return };
        self.index.remove(&ReservationId::of(&slot.record.order_id));
        self.free.push(at);
        if self.index.is_empty() && self.slots.len() > KEPT {
            *self = Self::default();
        }
    }

    /// Whether something is due by now for the reservation at this place.
    pub(super) fn is_due(&self, at: u32, now: u64) -> bool {
        self.slot(at).is_some_and(|slot| slot.due <= now)
    }

    /// A place where something is due by now. Expiries come first, since they give units back.
    pub(super) fn due_by(&self, now: u64) -> Option<u32> {
        [self.held, self.closed, self.confirmed].into_iter().map(|q| q.first).find(|at| self.is_due(*at, now))
    }

    /// When something is due next; `u64::MAX` when nothing is.
    pub(super) fn next_due(&self) -> u64 {
        let heads = [self.held.first, self.closed.first, self.confirmed.first];
        heads.into_iter().filter_map(|at| self.slot(at)).map(|slot| slot.due).min().unwrap_or(u64::MAX)
    }

    /// Reservations that hold units.
    pub(super) fn held(&self) -> usize {
        self.held.len
    }

    fn slot(&self, at: u32) -> Option<&Slot> {
        self.slots.get(at as usize)?.as_ref()
    }

    fn slot_mut(&mut self, at: u32) -> Option<&mut Slot> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    fn queue(&mut self, state: State) -> &mut Queue {
        match state {
            State::Held => &mut self.held,
            State::Confirmed => &mut self.confirmed,
            State::Released | State::Expired => &mut self.closed,
        }
    }

    fn join(&mut self, at: u32) {
        let Some(state) = self.slot(at).map(|slot| slot.state) else { return };
        let queue = self.queue(state);
        queue.len += 1;
        let before = std::mem::replace(&mut queue.last, at);
        if before == NONE {
            queue.first = at;
        } else if let Some(slot) = self.slot_mut(before) {
            slot.after = at;
        }
        if let Some(slot) = self.slot_mut(at) {
            (slot.before, slot.after) = (before, NONE);
        }
    }

    fn leave(&mut self, at: u32) {
        let Some(&Slot { state, before, after, .. }) = self.slot(at) else { return };
        match self.slot_mut(before) {
            Some(slot) => slot.after = after,
            None => self.queue(state).first = after,
        }
        match self.slot_mut(after) {
            Some(slot) => slot.before = before,
            None => self.queue(state).last = before,
        }
        let queue = self.queue(state);
        queue.len = queue.len.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_reservation_is_small() {
        // With the index (25 bytes an entry), its order id and two portions on the heap, and tables that are two
        // thirds full: under 200 bytes.
        assert_eq!(size_of::<Option<Slot>>(), 64);
        assert_eq!(size_of::<(ReservationId, u32)>(), 24);
    }

    fn id(n: u64) -> (ReservationId, OrderId) {
        let order_id = OrderId::parse(format!("order-{n}")).unwrap();
        (ReservationId::of(&order_id), order_id)
    }

    fn add(ledger: &mut Ledger, n: u64) -> u32 {
        let (id, order_id) = id(n);
        ledger.add(id, Record { order_id, portions: Box::default(), expires_at: n });
        ledger.find(id).unwrap()
    }

    #[test]
    fn what_is_due_comes_in_order_whoever_leaves_early() {
        let mut ledger = Ledger::default();
        let places: Vec<u32> = (0..5).map(|n| add(&mut ledger, n)).collect();
        ledger.change(places[2], State::Released, 20);
        ledger.change(places[0], State::Confirmed, 30);
        ledger.remove(places[4]);
        assert_eq!(ledger.next_due(), 1);
        let mut order = Vec::new();
        while let Some(at) = ledger.due_by(100) {
            order.push(places.iter().position(|p| *p == at).unwrap());
            ledger.remove(at);
        }
        assert_eq!(order, [1, 3, 2, 0]);
        assert_eq!(ledger.next_due(), u64::MAX);
    }

    #[test]
    fn places_are_used_again() {
        let mut ledger = Ledger::default();
        for n in 0..100 {
            let at = add(&mut ledger, n);
            ledger.change(at, State::Confirmed, n + 10);
            ledger.change(at, State::Released, n + 20);
            ledger.remove(at);
        }
        assert_eq!((ledger.slots.len(), ledger.index.len()), (1, 0));
    }

    #[test]
    fn an_empty_ledger_gives_its_room_back() {
        let mut ledger = Ledger::default();
        let places: Vec<u32> = (0..2_000).map(|n| add(&mut ledger, n)).collect();
        for at in places {
            ledger.remove(at);
        }
        assert_eq!((ledger.slots.capacity(), ledger.free.capacity(), ledger.index.capacity()), (0, 0, 0));
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut ledger = Ledger::default();
        add(&mut ledger, 7);
        assert_eq!(ledger.due_by(6), None);
        assert!(ledger.due_by(7).is_some());
    }
}
