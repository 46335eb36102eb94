//! Who waits for changes of which item.
//!
//! A change sets a bit for each watcher of its item; what the value is, the watcher reads when it gets there. So a slow
//! watcher misses values, and takes no more memory than a quick one.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::Stream;

use super::hash::Seeded;
use super::items::{Items, Seen};
use super::lock;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{DashMap, Mutex};

/// Items of one watch, at most: there is a bit for each.
pub(crate) const MAX_WATCHED: usize = 128;

/// The watchers of each watched item, with the item's bit at each.
#[derive(Debug, Default)]
pub(super) struct Watchers(DashMap<u32, Vec<(Arc<Changes>, u32)>, Seeded>);

impl Watchers {
    /// Tells all watchers of an item that it changed.
    pub(super) fn tell(&self, item: u32) {
        // Collected first: what waking runs is not ours to know, and it must not meet our lock.
        let wakers: Vec<Waker> = match self.0.get(&item) {
            Some(watchers) => watchers.iter().filter_map(|(changes, bit)| changes.set(*bit)).collect(),
            None => return,
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many there are, counted once for each item.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|watchers| watchers.len()).sum()
    }

    fn add(&self, item: u32, changes: &Arc<Changes>, bit: u32) {
        self.0.entry(item).or_default().push((changes.clone(), bit));
    }

    fn remove(&self, item: u32, changes: &Arc<Changes>) {
        if let Some(mut watchers) = self.0.get_mut(&item)
            && let Some(at) = watchers.iter().position(|(other, _)| Arc::ptr_eq(other, changes))
        {
            watchers.swap_remove(at);
        }
        self.0.remove_if(&item, |_, watchers| watchers.is_empty());
    }
}

/// What changed since a watcher looked.
#[derive(Debug)]
struct Changes(Mutex<Pending>);

#[derive(Debug)]
struct Pending {
    bits: u128,
    waker: Option<Waker>,
}

impl Changes {
    /// Notes a change, and says whom to wake for it.
    fn set(&self, bit: u32) -> Option<Waker> {
        let mut pending = lock(&self.0);
        pending.bits |= 1 << bit;
        pending.waker.take()
    }

    /// Takes one change, looking from bit `from` upwards and round, so that a busy item can't keep others waiting.
    fn take(&self, from: u32, context: &Context<'_>) -> Option<u32> {
        let mut pending = lock(&self.0);
        if pending.bits == 0 {
            match &mut pending.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return None;
        }
        let bit = (pending.bits.rotate_right(from).trailing_zeros() + from) % u128::BITS;
        pending.bits &= !(1 << bit);
        Some(bit)
    }
}

/// The values of some items: first as they are, then again after each change. Never ends; dropping it unregisters.
#[derive(Debug)]
pub(crate) struct Watch {
    items: Arc<Items>,
    changes: Arc<Changes>,
    /// What is watched, and what was last said of it.
    watched: Vec<(u32, Option<Seen>)>,
    next: u32,
}

impl Watch {
    /// Watches these items, up to [`MAX_WATCHED`]; a repeated one counts once.
    pub(super) fn new(items: Arc<Items>, indices: Vec<u32>) -> Self {
        let mut met = HashSet::with_capacity(indices.len());
        let watched: Vec<_> =
            indices.into_iter().filter(|i| met.insert(*i)).take(MAX_WATCHED).map(|i| (i, None)).collect();
        let bits = (0..watched.len()).fold(0, |bits, n| bits | 1 << n);
        let changes = Arc::new(Changes(Mutex::new(Pending { bits, waker: None })));
        for ((index, _), bit) in watched.iter().zip(0..) {
            items.watchers.add(*index, &changes, bit);
            // Raised before the first value is read under the item's lock: a change that this read doesn't see takes
            // the lock later, and then sees the count.
            if let Some(item) = items.item(*index) {
                item.watchers.fetch_add(1, Relaxed);
            }
        }
        Self { items, changes, watched, next: 0 }
    }
}

impl Stream for Watch {
    type Item = Seen;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Seen>> {
        let this = &mut *self;
        while let Some(bit) = this.changes.take(this.next, context) {
            this.next = (bit + 1) % u128::BITS;
            let Some((index, said)) = this.watched.get_mut(bit as usize) else { continue };
            let seen = this.items.read(*index);
            // A change can be noted after its value was read for the change before it.
            if seen.is_some() && seen != *said {
                *said = seen;
                return Poll::Ready(seen);
            }
        }
        Poll::Pending
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (index, _) in &self.watched {
            self.items.watchers.remove(*index, &self.changes);
            if let Some(item) = self.items.table.get(*index) {
                item.watchers.fetch_sub(1, Relaxed);
            }
        }
    }
}
