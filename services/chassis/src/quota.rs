//! How many there may be.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Counts what a store keeps, up to a limit. Shared by threads; it orders nothing but itself.
#[derive(Debug)]
pub struct Quota {
    most: usize,
    used: AtomicUsize,
}

impl Quota {
    /// A quota of which nothing is used.
    pub fn new(most: usize) -> Self {
        Self { most, used: AtomicUsize::new(0) }
    }

    /// Takes this many, or none when there is no room for all.
    #[must_use]
    pub fn take(&self, count: usize) -> bool {
        let more = |used: usize| used.checked_add(count).filter(|sum| *sum <= self.most);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.used() < self.most
    }

    /// Takes this many, room or no room: what is seeded is never refused, but counts.
    pub fn take_anyway(&self, count: usize) {
        self.used.fetch_add(count, Relaxed);
    }

    /// Gives back some that were taken.
    pub fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Relaxed);
    }

    /// How many are taken.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_used_up_to_its_limit_and_comes_back() {
        let quota = Quota::new(5);
        assert!(quota.take(3));
        assert!(!quota.take(3));
        assert!(!quota.take(usize::MAX));
        assert_eq!(quota.used(), 3);
        assert!(quota.take(2));
        assert!(!quota.has_room());
        quota.give_back(5);
        assert_eq!(quota.used(), 0);
        assert!(quota.has_room());
    }

    #[test]
    fn what_is_taken_anyway_counts() {
        let quota = Quota::new(1);
        quota.take_anyway(2);
        assert!(!quota.take(1));
        quota.give_back(2);
        assert!(quota.take(1));
    }
}
