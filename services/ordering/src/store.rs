//! Orders in memory: by id, in the order of their making, and who watches them.
//!
//! No lock here is held while anything waits: methods copy out and return.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use chassis::Quota;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Mutex, watch};

use crate::domain::{Order, OrderId, State};

/// All orders.
#[derive(Debug)]
pub(crate) struct Store {
    slots: DashMap<OrderId, Slot>,
    /// Orders by sequence. For a moment it may name an order whose slot is not filled yet, or not any more.
    index: RwLock<Index>,
    /// Slots that are filled or promised to a running attempt.
    taken: Quota,
    /// Lines of their orders.
    lines: Quota,
    /// Orders that are being cancelled.
    cancelling: std::sync::Mutex<BTreeSet<OrderId>>,
}

#[derive(Debug, Default)]
struct Index {
    last: u64,
    /// The last one that was there from the start.
    seeded: u64,
    by_sequence: BTreeMap<u64, OrderId>,
}

/// What is known under an order's id.
#[derive(Debug)]
enum Slot {
    /// Somebody is placing the order and holds no units for it yet.
    Running,
    /// The order, pending while somebody is placing it.
    Filled(Box<Filled>),
}

#[derive(Debug)]
struct Filled {
    order: Order,
    sequence: u64,
    /// There while somebody watches.
    changed: Option<watch::Sender<Order>>,
    /// There from the first try to cancel.
    cancel_turn: Option<Arc<Mutex<()>>>,
}

/// What is known of an order.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// Somebody is placing it.
    Running,
    /// The order, pending while somebody is placing it.
    Order(Order),
}

/// What [`Store::begin`] found.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Nothing: the caller places the order.
    New(Attempt),
    /// The order, placed earlier.
    Placed(Order),
    /// Somebody else is at it.
    Running,
    /// There is no room for another order.
    Full,
}

impl Store {
    /// A store without orders, for at most so many, with so many lines in all.
    pub(crate) fn new(max_orders: usize, max_lines: usize) -> Self {
        let (taken, lines) = (Quota::new(max_orders), Quota::new(max_lines));
        let (index, cancelling) = (RwLock::default(), std::sync::Mutex::default());
        Self { slots: DashMap::new(), index, taken, lines, cancelling }
    }

    /// Adds an order that needs no placing any more, whatever room there is. For the data at start.
    pub(crate) fn seed(&self, order: Order) {
        self.taken.take_anyway(1);
        self.lines.take_anyway(order.content().lines.len());
        self.fill(order);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.seeded = index.last;
    }

    /// The order, if there is one by now.
    pub(crate) fn get(&self, id: OrderId) -> Option<Order> {
        match &*self.slots.get(&id)? {
            Slot::Running => None,
            Slot::Filled(filled) => Some(filled.order.clone()),
        }
    }

    /// What there is under this id.
    pub(crate) fn known(&self, id: OrderId) -> Known {
        match self.slots.get(&id).as_deref() {
            None => Known::Nothing,
            Some(Slot::Running) => Known::Running,
            Some(Slot::Filled(filled)) => Known::Order(filled.order.clone()),
        }
    }

    /// Takes the right to place an order that nobody is placing and nobody has placed, whatever room there is, so that
    /// nobody does while what is left of an earlier attempt is put right.
    pub(crate) fn claim(self: &Arc<Self>, id: OrderId) -> Option<Attempt> {
        match self.slots.entry(id) {
            Entry::Occupied(_) => None,
            Entry::Vacant(slot) => {
                self.taken.take_anyway(1);
                slot.insert(Slot::Running);
                Some(Attempt { store: Arc::clone(self), id, lines: 0, kept: false })
            }
        }
    }

    /// Takes the exclusive right to place this order of so many lines.
    pub(crate) fn begin(self: &Arc<Self>, id: OrderId, lines: usize) -> Begun {
        match self.slots.entry(id) {
            Entry::Occupied(slot) => match slot.get() {
                Slot::Filled(filled) => match filled.order.as_placed() {
                    Some(order) => Begun::Placed(order),
                    None => Begun::Running,
                },
                Slot::Running => Begun::Running,
            },
            Entry::Vacant(slot) => {
                if !self.taken.take(1) {
                    return Begun::Full;
                }
                if !self.lines.take(lines) {
                    self.taken.give_back(1);
                    return Begun::Full;
                }
                slot.insert(Slot::Running);
                Begun::New(Attempt { store: Arc::clone(self), id, lines, kept: false })
            }
        }
    }

    /// Changes an order and tells its watchers. The order as changed, or `None` when there is none.
    pub(crate) fn change<E>(
        &self,
        id: OrderId,
        change: impl FnOnce(&mut Order) -> Result<(), E>,
    ) -> Option<Result<Order, E>> {
        let mut slot = self.slots.get_mut(&id)?;
        let Slot::Filled(filled) = &mut *slot else { return None };
        let was = filled.order.state();
        Some(change(&mut filled.order).map(|()| {
            self.note_cancelling(id, was, filled.order.state());
            if let Some(changed) = &filled.changed {
                changed.send_replace(filled.order.clone());
            }
            filled.order.clone()
        }))
    }

    /// A lock for those who cancel this order, so that the second waits for what the first comes to.
    pub(crate) fn cancel_turn(&self, id: OrderId) -> Option<Arc<Mutex<()>>> {
        match &mut *self.slots.get_mut(&id)? {
            Slot::Running => None,
            Slot::Filled(filled) => Some(Arc::clone(filled.cancel_turn.get_or_insert_default())),
        }
    }

    /// At most `limit` of the orders that are being cancelled, in order of their ids, those after `after` only.
    pub(crate) fn cancelling(&self, after: Option<OrderId>, limit: usize) -> Vec<OrderId> {
        let cancelling = self.cancelling.lock().unwrap_or_else(PoisonError::into_inner);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        cancelling.range((from, Bound::Unbounded)).take(limit).copied().collect()
    }

    /// Called under the lock of the order's slot, so that it is noted what was changed last.
    fn note_cancelling(&self, id: OrderId, was: State, is: State) {
        if was != is && [was, is].contains(&State::Cancelling) {
            let mut cancelling = self.cancelling.lock().unwrap_or_else(PoisonError::into_inner);
            if is == State::Cancelling {
                cancelling.insert(id)
            } else {
                cancelling.remove(&id)
            };
        }
    }

    /// What to give to [`Store::made_before`] to begin with the latest order.
    pub(crate) fn end(&self) -> u64 {
        self.index.read().unwrap_or_else(PoisonError::into_inner).last + 1
    }

    /// As [`Store::list`], without the orders that were there from the start.
    pub(crate) fn made_before(&self, before: u64, limit: usize) -> Vec<(u64, Order)> {
        let seeded = self.index.read().unwrap_or_else(PoisonError::into_inner).seeded;
        let mut orders = self.list(before, limit);
        orders.retain(|(sequence, _)| *sequence > seeded);
        orders
    }

    /// At most `limit` orders made before the one with the sequence `before`, latest first, each with its sequence.
    pub(crate) fn list(&self, before: u64, limit: usize) -> Vec<(u64, Order)> {
        let mut orders = Vec::with_capacity(limit.min(64));
        let mut before = before;
        // An order that the index names while its slot is not filled leaves a gap, which the next round closes.
        while orders.len() < limit {
            let wanted = limit - orders.len();
            let ids: Vec<(u64, OrderId)> = {
                let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
                let earlier = index.by_sequence.range(..before).rev();
                earlier.take(wanted).map(|(sequence, id)| (*sequence, *id)).collect()
            };
            let Some((last, _)) = ids.last() else { break };
            before = *last;
            orders.extend(ids.into_iter().filter_map(|(sequence, id)| Some((sequence, self.get(id)?))));
        }
        orders
    }

    /// Watches an order from now on.
    pub(crate) fn watch(self: &Arc<Self>, id: OrderId) -> Option<Watch> {
        let mut slot = self.slots.get_mut(&id)?;
        let Slot::Filled(filled) = &mut *slot else { return None };
        let changed = filled.changed.get_or_insert_with(|| watch::Sender::new(filled.order.clone()));
        let mut orders = changed.subscribe();
        orders.mark_changed();
        Some(Watch { store: Arc::clone(self), id, orders: Some(orders) })
    }

    fn fill(&self, order: Order) {
        let id = order.id();
        let sequence = {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.last += 1;
            let sequence = index.last;
            index.by_sequence.insert(sequence, id);
            sequence
        };
        let filled = Filled { order, sequence, changed: None, cancel_turn: None };
        self.slots.insert(id, Slot::Filled(Box::new(filled)));
    }

    fn empty(&self, id: OrderId, lines: usize) {
        if let Some((_, slot)) = self.slots.remove(&id) {
            self.unlist(&slot);
        }
        self.taken.give_back(1);
        self.lines.give_back(lines);
    }

    /// Takes what was in a slot out of the index.
    fn unlist(&self, slot: &Slot) {
        if let Slot::Filled(filled) = slot {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.by_sequence.remove(&filled.sequence);
        }
    }
}

/// The exclusive right to place one order. Dropped before the order is placed, however that comes about, it leaves
/// nothing behind.
#[derive(Debug)]
pub(crate) struct Attempt {
    store: Arc<Store>,
    id: OrderId,
    lines: usize,
    kept: bool,
}

impl Attempt {
    /// Records the order as it is now: pending.
    pub(crate) fn record(&self, order: Order) {
        let again = self.store.change(self.id, |recorded| {
            recorded.clone_from(&order);
            Ok::<(), std::convert::Infallible>(())
        });
        if again.is_none() {
            self.store.fill(order);
        }
    }

    /// Takes the record back and keeps the right.
    pub(crate) fn forget(&self) {
        if let Some(slot) = self.store.slots.insert(self.id, Slot::Running) {
            self.store.unlist(&slot);
        }
    }

    /// Makes the last transition and keeps the order, unless it is refused.
    pub(crate) fn finish<E>(
        &mut self,
        place: impl FnOnce(&mut Order) -> Result<(), E>,
    ) -> Option<Result<Order, E>> {
        let placed = self.store.change(self.id, place);
        self.kept = matches!(placed, Some(Ok(_)));
        placed
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.kept {
            self.store.empty(self.id, self.lines);
        }
    }
}

/// The latest state of one order. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watch {
    store: Arc<Store>,
    id: OrderId,
    /// Taken only while dropping.
    orders: Option<watch::Receiver<Order>>,
}

impl Watch {
    /// The order: the first time as it is, then after the next change; changes that came faster than they were asked
    /// for count as one. `None` when the order was given up before it was placed.
    pub(crate) async fn next(&mut self) -> Option<Order> {
        let orders = self.orders.as_mut()?;
        orders.changed().await.ok()?;
        Some(orders.borrow_and_update().clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(mut slot) = self.store.slots.get_mut(&self.id)
            && let Slot::Filled(filled) = &mut *slot
            && filled.changed.as_ref().is_some_and(|changed| changed.receiver_count() == 0)
        {
            filled.changed = None;
        }
    }
}

#[cfg(test)]
mod tests;
