//! `/metrics`: what the process costs, in the text form that Prometheus reads.
//!
//! The names and units are those of Prometheus' own clients, so that dashboards made for them fit. Processor time is
//! the kernel's accounting in nanoseconds, not clock ticks: a measurement over seconds would drown in those.

use std::fmt::Write as _;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;

/// The route, to be served on a port of its own, away from the public one.
pub fn router() -> Router {
    let started = seconds_since_epoch(SystemTime::now());
    let answer = move || {
        let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
        std::future::ready((kind, render(started)))
    };
    Router::new().route("/metrics", get(answer))
}

/// What can't be read, as where there is no `/proc`, is left out rather than shown as zero.
fn render(started: f64) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string can't fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    };
    let cpu = cpu_nanos().map(|nanos| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000));
    metric(
        "process_cpu_seconds_total",
        "counter",
        "Processor time of all threads that live, in seconds.",
        cpu,
    );
    let memory = status_bytes("VmRSS:").map(|bytes| bytes.to_string());
    metric("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", memory);
    let peak = status_bytes("VmHWM:").map(|bytes| bytes.to_string());
    metric("process_resident_memory_peak_bytes", "gauge", "Peak resident memory in bytes.", peak);
    let files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count().to_string());
    metric("process_open_fds", "gauge", "Open file descriptors.", files);
    let started = Some(format!("{started:.3}"));
    metric(
        "process_start_time_seconds",
        "gauge",
        "When the process started, in seconds since 1970.",
        started,
    );
    text
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
    use super::*;

    #[test]
    fn processor_time_grows_with_work_and_every_metric_says_what_it_is() {
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
            line.split_once(' ').unwrap().1.parse::<f64>().unwrap()
        };
        let before = value(&render(1.0), "process_cpu_seconds_total");
        let mut n = 0_u64;
        while value(&render(1.0), "process_cpu_seconds_total") <= before {
            n = std::hint::black_box(n + 1);
        }
        let text = render(1.0);
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
