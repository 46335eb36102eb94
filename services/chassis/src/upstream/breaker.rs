//! Not asking a service again and again that doesn't answer.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many failures in a row open the breaker.
const FAILURES: u32 = 7;

/// An open breaker lets one call through after this time, to see.
const REST: Duration = Duration::from_secs(1);

/// Opens after seven failures in a row, and then refuses every call but one a second. The first call that succeeds,
/// whenever it was made, closes it.
///
/// Shared by all threads. In good times a call reads one number that nobody writes.
#[derive(Debug)]
pub(super) struct Breaker {
    failures: AtomicU32,
    /// Looked at only when there were enough failures.
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    until: Instant,
    probing: bool,
}

/// The right to make a call. The one that probes gives it back when it ends, however it ends.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    probed: Option<&'a Breaker>,
}

impl Breaker {
    pub(super) fn new() -> Self {
        let open = Mutex::new(Open { until: Instant::now(), probing: false });
        Self { failures: AtomicU32::new(0), open }
    }

    /// Whether a call may be made.
    pub(super) fn enter(&self) -> Option<Pass<'_>> {
        if self.failures.load(Relaxed) < FAILURES {
            return Some(Pass { probed: None });
        }
        let mut open = self.lock();
        if open.probing || Instant::now() < open.until {
            return None;
        }
        open.probing = true;
        Some(Pass { probed: Some(self) })
    }

    /// Whether there were enough failures, be it time for a probe or not.
    pub(super) fn is_open(&self) -> bool {
        self.failures.load(Relaxed) >= FAILURES
    }

    /// Whether a call made now would be refused.
    pub(super) fn refuses(&self) -> bool {
        self.is_open() && {
            let open = self.lock();
            open.probing || Instant::now() < open.until
        }
    }

    pub(super) fn succeeded(&self) {
        if self.failures.load(Relaxed) != 0 && self.failures.swap(0, Relaxed) >= FAILURES {
            tracing::info!("a service that was given up answers again");
        }
    }

    pub(super) fn failed(&self) {
        let before = self.failures.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_add(1)));
        if before.unwrap_or_default() + 1 >= FAILURES {
            self.lock().until = Instant::now() + REST;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(breaker) = self.probed {
            breaker.lock().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(breaker: &Breaker) -> bool {
        breaker.enter().is_some()
    }

    fn opened() -> Breaker {
        let breaker = Breaker::new();
        for _ in 0..FAILURES {
            assert!(passes(&breaker));
            breaker.failed();
        }
        assert!(!passes(&breaker));
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_seven_failures_in_a_row_and_no_sooner() {
        let breaker = Breaker::new();
        for _ in 0..10 {
            (0..FAILURES - 1).for_each(|_| breaker.failed());
            assert!(passes(&breaker));
            breaker.succeeded();
        }
        let _ = opened();
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_second_one_call_sees_whether_it_is_over() {
        let breaker = opened();
        tokio::time::advance(REST - Duration::from_millis(1)).await;
        assert!(!passes(&breaker));
        assert!(breaker.refuses());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!breaker.refuses());
        let probe = breaker.enter().unwrap();
        assert!(!passes(&breaker));
        breaker.failed();
        drop(probe);
        assert!(!passes(&breaker));

        tokio::time::advance(REST).await;
        let probe = breaker.enter().unwrap();
        breaker.succeeded();
        assert!(passes(&breaker));
        drop(probe);
        assert!(passes(&breaker));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_whose_caller_leaves_lets_the_next_one_try() {
        let breaker = opened();
        tokio::time::advance(REST).await;
        drop(breaker.enter().unwrap());
        assert!(passes(&breaker));
    }
}
