//! What the next one is called.

use std::sync::atomic::{AtomicI32, Ordering};

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
    fn ids_end_rather_than_wrap() {
        let ids = Ids::after(i32::MAX - 2);
        assert_eq!(ids.next(), Some(i32::MAX - 1));
        assert_eq!(ids.next(), None);
        assert_eq!(ids.next(), None);
    }
}
