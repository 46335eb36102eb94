//! `/metrics`: how many calls there were, how they ended and how long they took, what lives now, and what the process
//! costs, in the text form that Prometheus reads.
//!
//! Names, labels and units are those of OpenTelemetry's semantic conventions in Prometheus' form, and for the process
//! those of Prometheus' own clients, so that dashboards made for them fit. `docs/metrics.md` lists them.
//!
//! A call costs two readings of the clock and two atomic additions: what it belongs to is found beforehand, or together
//! with the route. No label's value comes from a caller: what isn't known is [`OTHER`].

mod client;
mod family;
mod histogram;
mod http;
mod process;
mod rpc;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use ::http::header::CONTENT_TYPE;
use axum::Router;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

pub use self::client::Measured;
pub use self::family::{Durations, Labels, OTHER, Outcome, Timer};
use self::family::{Family, Numbers, lock};
pub use self::histogram::Series;
pub(crate) use self::http::HttpServer;
use self::process::Process;
pub(crate) use self::rpc::{RpcServer, code_of};

/// What one suite or process counts. Clones share it; two that are made apart know nothing of each other.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    families: Mutex<BTreeMap<&'static str, Arc<dyn Family>>>,
    routes: Mutex<BTreeSet<String>>,
}

impl Metrics {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The histograms of this name, the same ones each time.
    pub fn durations<K: Outcome>(&self, name: &'static str, help: &'static str) -> Arc<Durations<K>> {
        self.family(name, || Durations::new(help))
    }

    /// Shows a number that goes up and down, read whenever somebody asks. Where several are shown under one name with
    /// the same labels, their sum is.
    pub fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.family(name, || Numbers::new(MetricType::Gauge, help)).add(labels, Box::new(read));
    }

    /// Shows a number that only goes up, as [`Self::gauge`] does. The name is shown with `_total` after it.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.family(name, || Numbers::new(MetricType::Counter, help)).add(labels, Box::new(read));
    }

    /// Counts what lives.
    pub fn live(&self, name: &'static str, help: &'static str, labels: Labels) -> Live {
        let live = Live::default();
        let count = Arc::clone(&live.0);
        self.gauge(name, help, labels, move || count.load(Relaxed) as f64);
        live
    }

    /// Makes these paths known as routes, in the form that axum has them in. A request is counted under its route;
    /// requests to a path that isn't known are counted together. To be called before the server is made.
    pub fn routes<T: Into<String>>(&self, paths: impl IntoIterator<Item = T>) {
        lock(&self.0.routes).extend(paths.into_iter().map(Into::into));
    }

    /// The route `/metrics`, to be served on a port of its own, away from the public one.
    pub fn router(&self) -> Router {
        let mut registry = self.registry();
        registry.register_collector(Box::new(Process::new()));
        let registry = Arc::new(registry);
        let answer =
            move || std::future::ready(([(CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], render(&registry)));
        Router::new().route("/metrics", get(answer))
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        registry
    }

    fn known_routes(&self) -> Vec<String> {
        lock(&self.0.routes).iter().cloned().collect()
    }

    fn family<F: Family>(&self, name: &'static str, new: impl Fn() -> F) -> Arc<F> {
        let mut families = lock(&self.0.families);
        let family = families.entry(name).or_insert_with(|| Arc::new(new()));
        let family: Arc<dyn Any + Send + Sync> = Arc::clone(family) as _;
        family.downcast().unwrap_or_else(|_| {
            tracing::error!(name, "two kinds of metrics have this name, and one is not shown");
            Arc::new(new())
        })
    }
}

/// Everything, as text.
fn render(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = prometheus_text::encode(&mut text, registry);
    text
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Let go of the lock before anything is read.
        let families = lock(&self.0.families).clone();
        families.iter().try_for_each(|(name, family)| family.encode(name, &mut encoder))
    }
}

/// How many of a thing there are.
#[derive(Debug, Clone, Default)]
pub struct Live(Arc<AtomicU64>);

impl Live {
    /// One more, until what this gives is dropped.
    pub fn enter(&self) -> Alive {
        self.0.fetch_add(1, Relaxed);
        Alive(Arc::clone(&self.0))
    }
}

/// One that lives.
#[derive(Debug)]
pub struct Alive(Arc<AtomicU64>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_name_and_labels_are_summed_and_labels_kept_apart() {
        let metrics = Metrics::new();
        let label = |value: &'static str| vec![("kind", value.into())];
        let live = metrics.live("things_live", "Things.", label("a"));
        metrics.gauge("things_live", "Things.", label("a"), || 2.0);
        metrics.counter("things", "Things made.", label("a\"\\\n"), || 7.0);
        let (one, _two) = (live.enter(), live.enter());
        drop(one);
        let text = render(&metrics.registry());
        assert_eq!(
            text,
            "# HELP things_total Things made.\n# TYPE things_total counter\n\
             things_total{kind=\"a\\\"\\\\\\n\"} 7\n\
             # HELP things_live Things.\n# TYPE things_live gauge\nthings_live{kind=\"a\"} 3\n",
        );
    }

    #[test]
    fn metrics_made_apart_have_nothing_in_common() {
        let (one, two) = (Metrics::new(), Metrics::new());
        one.gauge("ones", "Ones.", Labels::new(), || 1.0);
        assert!(render(&one.registry()).contains("ones 1"));
        assert_eq!(render(&two.registry()), "");
    }

    #[test]
    fn a_name_keeps_its_kind() {
        let metrics = Metrics::new();
        metrics.gauge("ones", "Ones.", Labels::new(), || 1.0);
        let _ = metrics.durations::<tonic::Code>("ones", "Ones.");
        assert_eq!(render(&metrics.registry()).matches("# TYPE ones").count(), 1);
    }
}
