//! Orders in memory: by id, in the order of their making, and who watches them.
//!
//! No lock here is held while anything waits: methods copy out and return.

mod quota;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Mutex, watch};

use self::quota::Quota;
use crate::domain::{Order, OrderId};

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
}

#[derive(Debug, Default)]
struct Index {
    last: u64,
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
        Self { slots: DashMap::new(), index: RwLock::default(), taken, lines }
    }

    /// Adds an order that needs no placing any more, whatever room there is. For the data at start.
    pub(crate) fn seed(&self, order: Order) {
        self.taken.take_anyway(1);
        self.lines.take_anyway(order.content().lines.len());
        self.fill(order);
    }

    /// The order, if there is one by now.
    pub(crate) fn get(&self, id: OrderId) -> Option<Order> {
        match &*self.slots.get(&id)? {
            Slot::Running => None,
            Slot::Filled(filled) => Some(filled.order.clone()),
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
        Some(change(&mut filled.order).map(|()| {
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
        if let Some((_, Slot::Filled(filled))) = self.slots.remove(&id) {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.by_sequence.remove(&filled.sequence);
        }
        self.taken.give_back(1);
        self.lines.give_back(lines);
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

    /// Makes the last transition and keeps the order. Refused, the order is forgotten.
    pub(crate) fn finish<E>(
        mut self,
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
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::domain::{Currency, Draft, Money, Offer};

    fn order(request_id: &str) -> Order {
        let draft = Draft::new(request_id, vec![("9790000000018".to_owned(), 1)], None).unwrap();
        let price = Money { minor: 1, currency: Currency::EUR };
        let content = draft.price(|_| Some(Offer { book_id: 1, title: "T".to_owned(), price })).unwrap();
        Order::pending(draft.order_id(), Arc::new(content), draft.order_id().reservation(1), UNIX_EPOCH)
    }

    fn begin(store: &Arc<Store>, order: &Order) -> Attempt {
        match store.begin(order.id(), order.content().lines.len()) {
            Begun::New(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    fn place(store: &Arc<Store>, order: &Order) {
        let attempt = begin(store, order);
        attempt.record(order.clone());
        attempt.finish(|order| order.place(UNIX_EPOCH)).unwrap().unwrap();
    }

    #[test]
    fn an_attempt_given_up_leaves_nothing() {
        let store = Arc::new(Store::new(1, 9));
        let order = order("a");
        for record in [false, true, false, true] {
            let attempt = begin(&store, &order);
            assert!(matches!(store.begin(order.id(), 1), Begun::Running));
            if record {
                attempt.record(order.clone());
                assert_eq!(store.list(u64::MAX, 9).len(), 1);
            }
            assert!(matches!(store.begin(order.id(), 1), Begun::Running));
            assert_eq!(store.get(order.id()).is_some(), record);
            drop(attempt);
            assert!(store.get(order.id()).is_none());
            assert!(store.list(u64::MAX, 9).is_empty());
        }
        assert_eq!(store.slots.len(), 0);
        assert_eq!((store.taken.used(), store.lines.used()), (0, 0));
    }

    #[test]
    fn an_order_recorded_twice_is_listed_once() {
        let store = Arc::new(Store::new(1, 9));
        let order = order("a");
        let attempt = begin(&store, &order);
        attempt.record(order.clone());
        attempt.record(order.clone());
        attempt.finish(|order| order.place(UNIX_EPOCH)).unwrap().unwrap();
        assert_eq!(store.list(u64::MAX, 9).len(), 1);
        assert!(matches!(store.begin(order.id(), 1), Begun::Placed(_)));
    }

    #[test]
    fn running_attempts_count_as_orders() {
        let store = Arc::new(Store::new(2, 9));
        place(&store, &order("a"));
        let running = begin(&store, &order("b"));
        assert!(matches!(store.begin(order("c").id(), 1), Begun::Full));
        drop(running);
        place(&store, &order("c"));
        assert!(matches!(store.begin(order("b").id(), 1), Begun::Full));
        assert!(matches!(store.begin(order("a").id(), 1), Begun::Placed(_)));
    }

    #[test]
    fn lines_of_orders_and_of_running_attempts_have_a_bound() {
        let store = Arc::new(Store::new(9, 4));
        let used = || (store.taken.used(), store.lines.used());
        store.seed(order("a"));
        place(&store, &order("b"));
        assert_eq!(used(), (2, 2));
        assert!(matches!(store.begin(order("c").id(), 3), Begun::Full));
        assert_eq!(used(), (2, 2));
        let Begun::New(running) = store.begin(order("c").id(), 2) else { panic!() };
        assert_eq!(used(), (3, 4));
        assert!(matches!(store.begin(order("d").id(), 1), Begun::Full));
        assert!(matches!(store.begin(order("b").id(), 9), Begun::Placed(_)));
        drop(running);
        assert_eq!(used(), (2, 2));
        place(&store, &order("d"));
        assert_eq!(used(), (3, 3));
    }

    #[tokio::test]
    async fn a_watch_is_forgotten_with_its_last_watcher() {
        let store = Arc::new(Store::new(9, 9));
        let order = order("a");
        place(&store, &order);
        let watched = || match &*store.slots.get(&order.id()).unwrap() {
            Slot::Filled(filled) => filled.changed.is_some(),
            Slot::Running => false,
        };
        let mut first = store.watch(order.id()).unwrap();
        let mut second = store.watch(order.id()).unwrap();
        assert!(first.next().await.is_some());
        assert!(second.next().await.is_some());
        drop(first);
        assert!(watched());
        drop(second);
        assert!(!watched());
    }

    #[tokio::test]
    async fn a_watch_ends_with_the_attempt() {
        let store = Arc::new(Store::new(9, 9));
        let order = order("a");
        let attempt = begin(&store, &order);
        assert!(store.watch(order.id()).is_none());
        attempt.record(order.clone());
        let mut watch = store.watch(order.id()).unwrap();
        assert!(watch.next().await.is_some());
        drop(attempt);
        assert!(watch.next().await.is_none());
    }
}
