//! How many calls may be repeated.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Ten tokens to begin with, and never more. A repetition costs one, a success gives a tenth back: while nothing
/// succeeds no more than ten calls are repeated, and in the long run one for each ten that succeed.
#[derive(Debug)]
pub(super) struct Budget {
    tenths: AtomicU32,
}

const FULL: u32 = 100;
const REPETITION: u32 = 10;

impl Budget {
    pub(super) fn new() -> Self {
        Self { tenths: AtomicU32::new(FULL) }
    }

    /// Takes a token if there is one.
    #[must_use]
    pub(super) fn take(&self) -> bool {
        self.tenths.fetch_update(Relaxed, Relaxed, |tenths| tenths.checked_sub(REPETITION)).is_ok()
    }

    /// Gives back what a success is worth. While the budget is full, as it is in good times, this writes nothing that
    /// the threads share.
    pub(super) fn succeeded(&self) {
        if self.tenths.load(Relaxed) < FULL {
            let _ =
                self.tenths.fetch_update(Relaxed, Relaxed, |tenths| (tenths < FULL).then_some(tenths + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(budget: &Budget, tries: usize) -> usize {
        (0..tries).filter(|_| budget.take()).count()
    }

    #[test]
    fn an_outage_gets_ten_repetitions() {
        let budget = Budget::new();
        (0..1000).for_each(|_| budget.succeeded());
        assert_eq!(takes(&budget, 1000), 10);
    }

    #[test]
    fn ten_successes_pay_for_a_repetition() {
        let budget = Budget::new();
        takes(&budget, 10);
        (0..9).for_each(|_| budget.succeeded());
        assert_eq!(takes(&budget, 1), 0);
        budget.succeeded();
        assert_eq!(takes(&budget, 2), 1);
    }
}
