//! How many there may be.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Counts what is kept, up to a limit.
#[derive(Debug)]
pub(super) struct Quota {
    most: usize,
    used: AtomicUsize,
}

impl Quota {
    /// A quota of which nothing is used.
    pub(super) fn new(most: usize) -> Self {
        Self { most, used: AtomicUsize::new(0) }
    }

    /// Takes this many, or none when there is no room for all.
    pub(super) fn take(&self, count: usize) -> bool {
        let more = |used: usize| used.checked_add(count).filter(|sum| *sum <= self.most);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Takes this many, room or no room.
    pub(super) fn take_anyway(&self, count: usize) {
        self.used.fetch_add(count, Relaxed);
    }

    /// Gives back some that were taken.
    pub(super) fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Relaxed);
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}
