//! How many there may be, and what the next one is called.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Counts what is kept, up to a limit.
pub(super) struct Quota {
    max: usize,
    used: AtomicUsize,
}

impl Quota {
    /// A quota of which so much is used, which may be more than the limit.
    pub(super) fn new(max: usize, used: usize) -> Self {
        Self { max, used: AtomicUsize::new(used) }
    }

    /// Takes one place, if there is one.
    pub(super) fn take(&self) -> bool {
        let more = |used| (used < self.max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives places back that were taken.
    pub(super) fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Gives out numbers, each once.
pub(super) struct Ids(AtomicI32);

impl Ids {
    /// Starts after this number.
    pub(super) fn after(last: i32) -> Self {
        Self(AtomicI32::new(last.saturating_add(1)))
    }

    /// The next number, as long as there are any.
    pub(super) fn next(&self) -> Option<i32> {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| id.checked_add(1)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_ends_and_comes_back() {
        let quota = Quota::new(2, 1);
        assert!(quota.take());
        assert!(!quota.take());
        quota.give_back(1);
        assert!(quota.take());
    }

    #[test]
    fn ids_end_rather_than_wrap() {
        let ids = Ids::after(i32::MAX - 2);
        assert_eq!(ids.next(), Some(i32::MAX - 1));
        assert_eq!(ids.next(), None);
        assert_eq!(ids.next(), None);
    }
}
