//! Stock and reservations in memory.
//!
//! Locks are taken in one order: the ledger of a reservation, then its items by SKU, then watchers. None is held across
//! an await, and none longer than it takes to go through the lines of one reservation or a few expiries.

mod hash;
mod items;
mod ledger;
mod list;
mod table;
mod watch;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use chassis::Quota;
use tokio::time::Instant;

use self::items::Items;
pub(crate) use self::items::Seen;
use self::ledger::{Ledger, Record};
pub(crate) use self::list::Place;
pub(crate) use self::watch::Watch;
use crate::domain::{Line, Movement, OrderId, Refused, ReservationId, Sku, State};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::{Mutex, MutexGuard};

const SHARDS: usize = if cfg!(test) { 2 } else { 128 };

/// Reservations that are dealt with under one lock, so that calls get between.
const BATCH: usize = 32;

/// How long a confirmed reservation is remembered.
const CONFIRMED: Duration = Duration::from_secs(24 * 3600);

/// What bounds a store.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// How long a reservation is held, and then remembered once more as long.
    pub(crate) ttl: Duration,
    pub(crate) reservations: usize,
    /// Lines of all reservations together.
    pub(crate) lines: usize,
    pub(crate) items: u32,
}

/// How a caller names a reservation.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Reservation(ReservationId),
    Order(OrderId),
}

/// What a caller who reserves needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) id: ReservationId,
    pub(crate) state: State,
    pub(crate) expires_at: SystemTime,
}

/// Everything about a reservation.
#[derive(Debug, Clone)]
pub(crate) struct Reservation {
    pub(crate) receipt: Receipt,
    pub(crate) order_id: OrderId,
    pub(crate) lines: Vec<Line>,
}

/// Its own cache lines for each, because neighbours are busy on different threads.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    ledger: Mutex<Ledger>,
    /// When something in the ledger is due. Written before its lock is let go, so whoever reads a time to come here
    /// knows that everything due by now has been done.
    next_due: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Store {
    items: Arc<Items>,
    shards: Box<[Shard; SHARDS]>,
    remembered: Quota,
    /// Of all reservations that are remembered.
    lines: Quota,
    ttl_nanos: u64,
    began: Instant,
    began_wall: SystemTime,
}

impl Store {
    /// A store that knows the books 1 to `seeded`, with `units` of each in stock. They count for the limit, but are never
    /// refused.
    pub(crate) fn new(limits: Limits, seeded: u32, units: u32) -> Self {
        let items = Items::new(limits.items, seeded, units);
        let empty = |_| Shard { ledger: Mutex::default(), next_due: AtomicU64::new(u64::MAX) };
        Self {
            items: Arc::new(items),
            shards: Box::new(std::array::from_fn(empty)),
            remembered: Quota::new(limits.reservations),
            lines: Quota::new(limits.lines),
            ttl_nanos: nanos(limits.ttl),
            began: Instant::now(),
            began_wall: SystemTime::now(),
        }
    }

    /// The place of the book with this id.
    pub(crate) fn find_book(&self, book_id: i32) -> Result<u32, Refused> {
        self.items.find_book(book_id).ok_or(Refused::UnknownBook(book_id))
    }

    /// The place of the book with this SKU.
    pub(crate) fn find(&self, sku: Sku) -> Result<u32, Refused> {
        self.items.find(sku).ok_or(Refused::UnknownSku(sku))
    }

    /// The stock of the book at a place.
    pub(crate) fn read(&self, index: u32) -> Option<Seen> {
        self.items.read(index)
    }

    /// Adds books with nothing in stock, all or none; those that are known already stay as they are.
    pub(crate) fn register(&self, books: &[(i32, Sku)]) -> Result<(), Refused> {
        self.items.register(books)
    }

    /// Adds units, or takes unreserved ones away.
    pub(crate) fn adjust(&self, sku: Sku, delta: i32) -> Result<Seen, Refused> {
        self.and_again(|| self.items.adjust(sku, delta))
    }

    /// Watches the books at these places, a repeated one once.
    pub(crate) fn watch(&self, indices: Vec<u32>) -> Watch {
        Watch::new(self.items.clone(), indices)
    }

    /// Watchers, counted once for each book that they watch.
    pub(crate) fn watchers(&self) -> usize {
        self.items.watchers.count()
    }

    /// Reservations that are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.remembered.used()
    }

    /// Reservations that hold units. This goes through all shards.
    pub(crate) fn held(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.ledger.lock().unwrap_or_else(PoisonError::into_inner).held()).sum()
    }

    /// Lines of the reservations that are remembered.
    pub(crate) fn lines(&self) -> usize {
        self.lines.used()
    }

    /// Holds normalised lines for an order, or finds what was held for it before.
    pub(crate) fn reserve(&self, order_id: OrderId, lines: &[Line]) -> Result<Receipt, Refused> {
        let id = ReservationId::of(&order_id);
        let mut wanted = Some((order_id, self.items.portions(lines)?));
        self.and_again(|| {
            self.open(id, |ledger, now| {
                // Taken only with the last success, so it is there.
                let (order_id, portions) = wanted.as_ref().ok_or(Refused::OrderIdConflict)?;
                if let Some(at) = self.current(ledger, id, now)
                    && let Some((record, state)) = ledger.get(at)
                {
                    if record.order_id != *order_id || record.portions != *portions {
                        return Err(Refused::OrderIdConflict);
                    }
                    state.again()?;
                    return Ok(self.receipt(id, record, state));
                }
                self.claim(portions.len())?;
                if let Err(refused) = self.items.shift(portions, Movement::Hold) {
                    self.give_up(portions.len());
                    return Err(refused);
                }
                let (order_id, portions) = wanted.take().ok_or(Refused::OrderIdConflict)?;
                let record = Record { order_id, portions, expires_at: now.saturating_add(self.ttl_nanos) };
                let receipt = self.receipt(id, &record, State::Held);
                ledger.add(id, record);
                Ok(receipt)
            })
        })
    }

    /// Sells what a reservation holds.
    pub(crate) fn confirm(&self, name: &Name) -> Result<Reservation, Refused> {
        self.with(name, |ledger, at, now| {
            let Some((record, state)) = ledger.get(at) else { return Ok(()) };
            if let Some(step) = state.confirm()? {
                self.move_all(record, step.movement);
                ledger.change(at, step.to, now.saturating_add(nanos(CONFIRMED)));
            }
            Ok(())
        })
    }

    /// Gives back what a reservation holds or has sold.
    pub(crate) fn release(&self, name: &Name) -> Result<Reservation, Refused> {
        self.with(name, |ledger, at, now| {
            let Some((record, state)) = ledger.get(at) else { return Ok(()) };
            if let Some(step) = state.release() {
                self.move_all(record, step.movement);
                ledger.change(at, step.to, now.saturating_add(self.ttl_nanos));
            }
            Ok(())
        })
    }

    /// A reservation as it is.
    pub(crate) fn reservation(&self, name: &Name) -> Result<Reservation, Refused> {
        self.with(name, |_, _, _| Ok(()))
    }

    /// Expires and forgets what is due, about `most` reservations. Says whether there may be more.
    pub(crate) fn collect(&self, most: usize) -> bool {
        let mut left = most;
        let now = self.now();
        for shard in self.shards.iter() {
            while shard.next_due.load(Acquire) <= now {
                if left == 0 {
                    return true;
                }
                left -= self.open_shard(shard, |ledger, now| {
                    let mut done = 0;
                    while done < BATCH.min(left)
                        && let Some(at) = ledger.due_by(now)
                    {
                        self.update(ledger, at, now);
                        done += 1;
                    }
                    done
                });
            }
        }
        false
    }

    /// When [`Store::collect`] has to be called again, if not sooner. There is no need to look again before that:
    /// whatever is added after this call is not due before its own time to live is over.
    pub(crate) fn next_due(&self) -> Instant {
        let latest = self.now().saturating_add(self.ttl_nanos.min(nanos(CONFIRMED)));
        let due = self.shards.iter().map(|shard| shard.next_due.load(Acquire)).fold(latest, u64::min);
        self.began + Duration::from_nanos(due)
    }

    /// Runs a call that may fail for want of units or room, and once more when it did and what is due is collected.
    fn and_again<T>(&self, mut call: impl FnMut() -> Result<T, Refused>) -> Result<T, Refused> {
        match call() {
            Err(Refused::OutOfStock { .. } | Refused::Full(_)) => {
                self.collect(usize::MAX);
                call()
            }
            result => result,
        }
    }

    /// Changes a reservation and returns it, or refuses and leaves it.
    fn with(
        &self,
        name: &Name,
        change: impl FnOnce(&mut Ledger, u32, u64) -> Result<(), Refused>,
    ) -> Result<Reservation, Refused> {
        let id = match name {
            Name::Reservation(id) => *id,
            Name::Order(order_id) => ReservationId::of(order_id),
        };
        let (receipt, order_id, portions) = self.open(id, |ledger, now| {
            let at = self.current(ledger, id, now).ok_or(Refused::ReservationNotFound)?;
            if let Name::Order(order_id) = name
                && ledger.get(at).is_none_or(|(record, _)| record.order_id != *order_id)
            {
                return Err(Refused::ReservationNotFound);
            }
            change(ledger, at, now)?;
            let (record, state) = ledger.get(at).ok_or(Refused::ReservationNotFound)?;
            Ok((self.receipt(id, record, state), record.order_id.clone(), record.portions.clone()))
        })?;
        Ok(Reservation { receipt, order_id, lines: self.items.lines(&portions) })
    }

    /// The place of a reservation that is still remembered, its state as it is now.
    fn current(&self, ledger: &mut Ledger, id: ReservationId, now: u64) -> Option<u32> {
        let at = ledger.find(id)?;
        while ledger.is_due(at, now) {
            self.update(ledger, at, now);
        }
        ledger.get(at).map(|_| at)
    }

    /// Does what is due: expires what is held, forgets the rest.
    fn update(&self, ledger: &mut Ledger, at: u32, now: u64) {
        debug_assert!(ledger.is_due(at, now));
        let Some((record, state)) = ledger.get(at) else { return };
        if let Some(step) = state.expire() {
            self.move_all(record, step.movement);
            // Counted from when it expired, not from when somebody noticed.
            let due = record.expires_at.saturating_add(self.ttl_nanos);
            ledger.change(at, step.to, due);
            return;
        }
        if state == State::Confirmed {
            self.move_all(record, Movement::Settle);
        }
        let lines = record.portions.len();
        ledger.remove(at);
        self.give_up(lines);
    }

    /// Moves what a reservation has. It has it, so this can't be refused.
    fn move_all(&self, record: &Record, movement: Movement) {
        if let Err(refused) = self.items.shift(&record.portions, movement) {
            debug_assert!(false, "{refused}");
            tracing::error!(
                order_id = record.order_id.as_str(),
                ?movement,
                "units of a reservation are missing"
            );
        }
    }

    /// Takes the room of a reservation with so many lines.
    fn claim(&self, lines: usize) -> Result<(), Refused> {
        if !self.remembered.take(1) {
            return Err(Refused::Full("reservations"));
        }
        if !self.lines.take(lines) {
            self.remembered.give_back(1);
            return Err(Refused::Full("lines of reservations"));
        }
        Ok(())
    }

    /// Gives the room of a reservation with so many lines back.
    fn give_up(&self, lines: usize) {
        self.remembered.give_back(1);
        self.lines.give_back(lines);
    }

    fn receipt(&self, id: ReservationId, record: &Record, state: State) -> Receipt {
        Receipt { id, state, expires_at: self.began_wall + Duration::from_nanos(record.expires_at) }
    }

    fn open<T>(&self, id: ReservationId, work: impl FnOnce(&mut Ledger, u64) -> T) -> T {
        #[expect(clippy::indexing_slicing, reason = "a remainder is below what it was divided by")]
        self.open_shard(&self.shards[id.spread() as usize % SHARDS], work)
    }

    fn open_shard<T>(&self, shard: &Shard, work: impl FnOnce(&mut Ledger, u64) -> T) -> T {
        let mut ledger = lock(&shard.ledger);
        // Read under the lock, so that the queues are in order of time.
        let result = work(&mut ledger, self.now());
        shard.next_due.store(ledger.next_due(), Release);
        result
    }

    fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }
}

/// A lock that a panic elsewhere doesn't close: what it guards is changed in single assignments.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod interleavings;
