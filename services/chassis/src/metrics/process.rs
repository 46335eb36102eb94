//! What the process costs.
//!
//! Processor time is the kernel's accounting in nanoseconds, not clock ticks: a measurement over seconds would drown in
//! those.

use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// The process, which this takes to have started when it is made.
#[derive(Debug)]
pub(super) struct Process {
    started: f64,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { started: seconds_since_epoch(SystemTime::now()) }
    }
}

impl Collector for Process {
    /// What can't be read, as where there is no `/proc`, is left out rather than shown as zero.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(nanos) = cpu_nanos() {
            let help = "Processor time of all threads that live, in seconds.";
            let kind = MetricType::Counter;
            let mut metric = encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?;
            metric.encode_counter::<NoLabelSet, _, f64>(&(nanos as f64 / 1e9), None)?;
        }
        let mut gauge = |name, help, value: Option<u64>| match value {
            Some(value) => {
                encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
            }
            None => Ok(()),
        };
        let memory = status_bytes("VmRSS:");
        gauge("process_resident_memory_bytes", "Resident memory in bytes.", memory)?;
        let peak = status_bytes("VmHWM:");
        gauge("process_resident_memory_peak_bytes", "Peak resident memory in bytes.", peak)?;
        let files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
        gauge("process_open_fds", "Open file descriptors.", files)?;
        let help = "When the process started, in seconds since 1970.";
        let name = "process_start_time_seconds";
        encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&self.started)
    }
}

/// The first field of each thread's schedstat: nanoseconds on a processor.
fn cpu_nanos() -> Option<u64> {
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread that ends meanwhile has no file any more.
        let Ok(stat) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        sum += stat.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// A line of `/proc/self/status`, which counts in KiB.
fn status_bytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn seconds_since_epoch(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn processor_time_grows_with_work_and_every_metric_says_what_it_is() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::new()));
        let render = || {
            let mut text = String::new();
            prometheus_text::encode(&mut text, &registry).unwrap();
            text
        };
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
            line.split_once(' ').unwrap().1.parse::<f64>().unwrap()
        };
        let before = value(&render(), "process_cpu_seconds_total");
        let mut n = 0_u64;
        while value(&render(), "process_cpu_seconds_total") <= before {
            n = std::hint::black_box(n + 1);
        }
        let text = render();
        assert!(value(&text, "process_resident_memory_bytes") > 1e6);
        assert!(value(&text, "process_open_fds") >= 3.0);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(' ').next().unwrap();
            assert!(
                text.contains(&format!("# HELP {name} ")) && text.contains(&format!("# TYPE {name} ")),
                "{name}"
            );
        }
    }
}
