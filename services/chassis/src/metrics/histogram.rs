//! Durations in buckets: two atomic additions for each, and no lock.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Upper bounds of the buckets in nanoseconds: from what a call takes here to the longest deadlines. Few, because each is
/// a line for every series; the conventions' own begin at 5 ms, where a call of ours is long over.
const BOUNDS: [u64; 12] = [
    25_000,
    100_000,
    250_000,
    1_000_000,
    2_500_000,
    10_000_000,
    25_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
];

const BUCKETS: usize = BOUNDS.len() + 1;

#[derive(Debug)]
pub(super) struct Histogram {
    /// How many durations fell into each bucket, the last being for those over all bounds.
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// What a histogram holds at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub(super) sum_s: f64,
    pub(super) count: u64,
    /// Upper bounds in seconds, and how many fell between this one and the one before.
    pub(super) buckets: [(f64, u64); BUCKETS],
}

impl Histogram {
    fn new() -> Self {
        Self { counts: array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }

    fn record(&self, time: Duration) {
        let ns = time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into());
        let bucket = BOUNDS.iter().position(|bound| ns <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    /// The count is that of the buckets, so that the two agree also while calls go on.
    pub(super) fn read(&self) -> Snapshot {
        let mut bounds = BOUNDS.iter().map(|ns| *ns as f64 / 1e9);
        let buckets = self.counts.each_ref();
        let buckets = buckets.map(|count| (bounds.next().unwrap_or(f64::INFINITY), count.load(Relaxed)));
        Snapshot {
            sum_s: self.sum_ns.load(Relaxed) as f64 / 1e9,
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

/// A histogram for each outcome of one thing, made when the outcome is first met.
///
/// They stand in a list, the most usual outcome first more often than not; outcomes are few and bounded by their type.
#[derive(Debug)]
pub struct Series<K>(OnceLock<Box<Node<K>>>);

#[derive(Debug)]
struct Node<K> {
    outcome: K,
    histogram: Histogram,
    next: Series<K>,
}

impl<K> Default for Series<K> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Copy + Eq> Series<K> {
    /// Counts one that ended so, after this time.
    pub fn record(&self, outcome: K, time: Duration) {
        let mut at = self;
        loop {
            let node = at.0.get_or_init(|| {
                Box::new(Node { outcome, histogram: Histogram::new(), next: Self::default() })
            });
            if node.outcome == outcome {
                return node.histogram.record(time);
            }
            at = &node.next;
        }
    }

    pub(super) fn read(&self) -> Vec<(K, Snapshot)> {
        let nodes = std::iter::successors(self.0.get(), |node| node.next.0.get());
        nodes.map(|node| (node.outcome, node.histogram.read())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::new();
        for ns in [0, 25_000, 25_001, 10_000_000_000, 10_000_000_001] {
            histogram.record(Duration::from_nanos(ns));
        }
        let Snapshot { sum_s, count, buckets } = histogram.read();
        assert_eq!(count, 5);
        assert!((sum_s - 20.000_050_002).abs() < 1e-12, "{sum_s}");
        let used: Vec<_> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(used, [(25e-6, 2), (100e-6, 1), (10.0, 1), (f64::INFINITY, 1)]);
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_time_too_long_to_count_is_the_longest() {
        let histogram = Histogram::new();
        histogram.record(Duration::MAX);
        assert_eq!(histogram.read().count, 1);
    }

    #[test]
    fn each_outcome_has_its_own_histogram_whoever_comes_first() {
        let series = Series::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..3_000_u32 {
                        series.record(n % 3, Duration::from_micros(n.into()));
                    }
                });
            }
        });
        let mut read = series.read();
        read.sort_by_key(|(outcome, _)| *outcome);
        let counts: Vec<_> = read.iter().map(|(outcome, snapshot)| (*outcome, snapshot.count)).collect();
        assert_eq!(counts, [(0, 4_000), (1, 4_000), (2, 4_000)]);
    }
}
