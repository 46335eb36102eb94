//! What stands under one name: histograms, or numbers that are read when somebody asks.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::histogram::Series;

/// Names and values. A value must come from a bounded set, whatever callers send.
pub type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// The value of a label for everything that has none of the known ones, as OpenTelemetry's conventions have it.
pub const OTHER: &str = "_OTHER";

/// How something that takes time ends.
pub trait Outcome: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Its caller left before the end.
    const ABANDONED: Self;

    /// What it adds to the labels that are known from the start.
    fn labels(self) -> Labels;
}

/// A family of metrics whose type is forgotten.
pub(super) trait Family: Any + fmt::Debug + Send + Sync {
    fn encode(&self, name: &str, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result;
}

/// Histograms of durations in seconds, by labels and outcome.
#[derive(Debug)]
pub struct Durations<K> {
    help: &'static str,
    rows: Mutex<BTreeMap<Labels, Arc<Series<K>>>>,
}

impl<K: Outcome> Durations<K> {
    pub(super) fn new(help: &'static str) -> Self {
        Self { help, rows: Mutex::default() }
    }

    /// The histograms with these labels. This looks for them under a lock, so keep what it finds.
    pub fn series(&self, labels: Labels) -> Arc<Series<K>> {
        Arc::clone(lock(&self.rows).entry(labels).or_default())
    }
}

impl<K: Outcome> Family for Durations<K> {
    fn encode(&self, name: &str, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, self.help, None, MetricType::Histogram)?;
        for (labels, series) in lock(&self.rows).iter() {
            let mut read: Vec<_> = series.read().into_iter().map(|(k, of)| (k.labels(), of)).collect();
            read.sort_by(|a, b| a.0.cmp(&b.0));
            for (outcome, of) in read {
                let labels = [labels.as_slice(), outcome.as_slice()].concat();
                let mut row = metric.encode_family(&labels)?;
                row.encode_histogram::<NoLabelSet>(of.sum_s, of.count, &of.buckets, None)?;
            }
        }
        Ok(())
    }
}

type Read = Box<dyn Fn() -> f64 + Send + Sync>;

/// Numbers that somebody else keeps.
pub(super) struct Numbers {
    kind: MetricType,
    help: &'static str,
    /// Where several have the same labels, their sum is shown. A number that can't be read is left out.
    rows: Mutex<BTreeMap<Labels, Vec<Read>>>,
}

impl Numbers {
    pub(super) fn new(kind: MetricType, help: &'static str) -> Self {
        Self { kind, help, rows: Mutex::default() }
    }

    pub(super) fn add(&self, labels: Labels, read: Read) {
        lock(&self.rows).entry(labels).or_default().push(read);
    }
}

impl Family for Numbers {
    fn encode(&self, name: &str, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, self.help, None, self.kind)?;
        for (labels, reads) in lock(&self.rows).iter() {
            let sum: f64 = reads.iter().map(|read| read()).sum();
            let mut row = metric.encode_family(labels)?;
            // Most are counts, and look odd with a fraction.
            let whole = sum.fract() == 0.0 && sum >= 0.0;
            match self.kind {
                MetricType::Counter if whole => {
                    row.encode_counter::<NoLabelSet, _, f64>(&(sum as u64), None)?
                }
                MetricType::Counter => row.encode_counter::<NoLabelSet, _, f64>(&sum, None)?,
                _ if whole => row.encode_gauge(&(sum as u64))?,
                _ => row.encode_gauge(&sum)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbers").field("help", &self.help).finish_non_exhaustive()
    }
}

/// Times something that begins now, and counts it once: as it ends, or as abandoned when this is dropped before.
#[derive(Debug)]
pub struct Timer<K: Outcome> {
    series: Option<Arc<Series<K>>>,
    began: Instant,
}

impl<K: Outcome> Timer<K> {
    /// Begins now.
    pub fn start(series: Arc<Series<K>>) -> Self {
        Self::started(series, Instant::now())
    }

    /// Began then.
    pub fn started(series: Arc<Series<K>>, began: Instant) -> Self {
        Self { series: Some(series), began }
    }

    /// Counts it among these, now that it is known what it is.
    pub fn is(&mut self, series: &Arc<Series<K>>) {
        self.series = Some(Arc::clone(series));
    }

    /// It ended, and so.
    pub fn end(mut self, outcome: K) {
        self.count(outcome);
    }

    fn count(&mut self, outcome: K) {
        if let Some(series) = self.series.take() {
            series.record(outcome, self.began.elapsed());
        }
    }
}

impl<K: Outcome> Drop for Timer<K> {
    fn drop(&mut self) {
        self.count(K::ABANDONED);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
