//! What a run found.

pub mod csv;
pub mod html;
pub mod markdown;
pub mod text;
pub mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::case::{Http, Style};
use crate::process::Machine;
use crate::stats::Figure;

/// Which version of `bench/report.schema.json` a report follows.
pub const FORMAT: u32 = 1;

/// A whole report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The program and its version.
    pub program: String,
    /// The commit it is from.
    pub commit: String,
    /// When the run began, as RFC 3339.
    pub started_at: String,
    /// How long it took.
    pub took_s: f64,
    /// False when the run was stopped before its end.
    pub complete: bool,
    /// The machine.
    pub machine: Machine,
    /// How it was run.
    pub knobs: Knobs,
    /// What it ran.
    pub scenarios: Vec<Scenario>,
    /// The figures.
    pub rows: Vec<Row>,
    /// Where each style loses, in sentences.
    pub verdicts: Vec<String>,
    /// What to know before believing the figures.
    pub notes: Vec<String>,
}

/// A scenario that was run.
#[derive(Debug, Clone, Serialize)]
pub struct Scenario {
    /// Its id.
    pub id: String,
    /// What happens in it.
    pub title: String,
}

/// How a run was run.
#[derive(Debug, Clone, Serialize)]
pub struct Knobs {
    /// `one-process`, `services` or `target`.
    pub shape: String,
    /// The target, when it is one.
    pub target: Option<String>,
    /// Operations under way at once.
    pub clients: usize,
    /// Rounds.
    pub rounds: usize,
    /// Dropped at the beginning of each round.
    pub warmup_s: f64,
    /// Measured in each round.
    pub duration_s: f64,
    /// Operations per second of an open loop; none in a closed one.
    pub rate: Option<f64>,
    /// Delay of the relay per round trip.
    pub rtt_ms: Option<f64>,
    /// Threads that the server serves with; none when unknown.
    pub server_threads: Option<usize>,
    /// The core of the server; none when it isn't pinned.
    pub server_core: Option<usize>,
    /// The core of the client; none when it isn't pinned.
    pub client_core: Option<usize>,
    /// How long a reservation is held; none when unknown.
    pub reservation_ttl_s: Option<f64>,
    /// Where the seeded data comes from.
    pub seed: String,
}

/// The figures of one style over one version of HTTP in one scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The scenario's id.
    pub scenario: String,
    /// The style.
    pub style: Style,
    /// The version of HTTP.
    pub http: Http,
    /// Connections.
    pub connections: usize,
    /// Clients on one connection.
    pub streams_per_connection: usize,
    /// Requests in one operation.
    pub requests_per_op: usize,
    /// Rounds that were measured; fewer than in the knobs when the run was stopped.
    pub rounds: usize,
    /// Operations that were counted, all rounds together.
    pub operations: u64,
    /// Operations per second.
    pub ops_per_s: Figure,
    /// Latency, the median one.
    pub p50_us: Figure,
    /// Latency that 95 % keep.
    pub p95_us: Figure,
    /// Latency that 99 % keep.
    pub p99_us: Figure,
    /// Bytes sent on the wire per operation.
    pub sent_bytes_per_op: f64,
    /// Bytes received on the wire per operation.
    pub received_bytes_per_op: f64,
    /// Of those sent, bodies.
    pub sent_body_bytes_per_op: f64,
    /// Of those received, bodies.
    pub received_body_bytes_per_op: f64,
    /// Server CPU per operation; none when it couldn't be read.
    pub server_cpu_us_per_op: Option<Figure>,
    /// The same per process, where there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_cpu_us_per_op_by_process: BTreeMap<&'static str, f64>,
    /// Client CPU per operation; none when it couldn't be read.
    pub client_cpu_us_per_op: Option<Figure>,
    /// The share of its core that the client used.
    pub client_utilisation: Option<f64>,
    /// The share of its core that the server used.
    pub server_utilisation: Option<f64>,
    /// Whether the client, not the server, set the pace.
    pub client_limited: bool,
    /// The most memory that the server had resident.
    pub server_peak_memory_bytes: Option<u64>,
    /// This row's figures as multiples of REST's over HTTP/1.1.
    pub to_rest: Ratios,
    /// This row's figures as multiples of the floor's over the same version of HTTP and as many streams.
    pub to_floor: Ratios,
}

/// A row's figures as multiples of another row's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Server CPU per operation.
    pub server_cpu: Option<Figure>,
    /// Operations per second.
    pub ops_per_s: Option<Figure>,
    /// Bytes on the wire in both directions.
    pub wire_bytes: Option<f64>,
    /// Median latency.
    pub p50: Option<Figure>,
}

impl Row {
    /// Bytes on the wire in both directions.
    pub fn wire_bytes(&self) -> f64 {
        self.sent_bytes_per_op + self.received_bytes_per_op
    }

    /// The style and how it is carried, for people.
    pub fn name(&self) -> String {
        let streams = self.streams_per_connection;
        let per =
            if self.http == Http::Two { format!(" {}×{streams}", self.connections) } else { String::new() };
        format!("{}, HTTP/{}{per}", self.style.title(), self.http.as_str())
    }

    /// What the row is called from run to run.
    pub fn key(&self) -> String {
        format!(
            "{} {} {} {}x{}",
            self.scenario,
            self.style,
            self.http.as_str(),
            self.connections,
            self.streams_per_connection
        )
    }
}

/// One column of the tables.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// What stands in a row.
    pub cell: fn(&Row) -> String,
}

/// The columns of the tables, after the row's name.
pub const COLUMNS: [Column; 14] = [
    Column { head: "req/op", cell: |row| row.requests_per_op.to_string() },
    Column { head: "ops/s", cell: |row| format!("{:.0}", row.ops_per_s.median) },
    Column { head: "p50 µs", cell: |row| micros(row.p50_us.median) },
    Column { head: "p95 µs", cell: |row| micros(row.p95_us.median) },
    Column { head: "p99 µs", cell: |row| micros(row.p99_us.median) },
    Column { head: "sent B", cell: |row| format!("{:.0}", row.sent_bytes_per_op) },
    Column { head: "recv B", cell: |row| format!("{:.0}", row.received_bytes_per_op) },
    Column {
        head: "bodies B",
        cell: |row| format!("{:.0}+{:.0}", row.sent_body_bytes_per_op, row.received_body_bytes_per_op),
    },
    Column { head: "server µs/op", cell: |row| with_spread(row.server_cpu_us_per_op) },
    Column {
        head: "client µs/op",
        cell: |row| {
            let limited = if row.client_limited { "!" } else { "" };
            row.client_cpu_us_per_op.map_or_else(dash, |figure| format!("{}{limited}", micros(figure.median)))
        },
    },
    Column {
        head: "peak MB",
        cell: |row| {
            row.server_peak_memory_bytes.map_or_else(dash, |bytes| format!("{:.0}", bytes as f64 / 1e6))
        },
    },
    Column { head: "CPU ×REST", cell: |row| ratio(row.to_rest.server_cpu) },
    Column {
        head: "B ×REST",
        cell: |row| row.to_rest.wire_bytes.map_or_else(dash, |ratio| format!("{ratio:.2}")),
    },
    Column { head: "CPU ×floor", cell: |row| ratio(row.to_floor.server_cpu) },
];

fn dash() -> String {
    "–".to_owned()
}

fn micros(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn with_spread(figure: Option<Figure>) -> String {
    let Some(figure) = figure else { return dash() };
    let median = micros(figure.median);
    // One round has no spread.
    if figure.min == figure.max { median } else { format!("{median} ±{:.0}%", figure.spread() * 50.0) }
}

fn ratio(figure: Option<Figure>) -> String {
    figure.map_or_else(dash, |figure| format!("{:.2}", figure.median))
}

/// What each head means, one line each.
pub const LEGEND: &[&str] = &[
    "Rows: style, version of HTTP, and over HTTP/2 connections × clients on each. Figures are medians over rounds; ± is half the range of the rounds.",
    "sent, recv: bytes at the socket per operation, headers and framing included; bodies: of those, request + reply bodies.",
    "server, client: CPU time per operation, all of it, kernel included. A ! marks a client that used over 90 % of its core: ops/s and latency of that row are the client's.",
    "×REST: multiples of REST over HTTP/1.1 in the same scenario, taken round by round; under 1 is less. ×floor: multiples of the floor.",
    "floor: a server that only reads a request and writes a prepared reply of REST's size. It looks for work instead of sleeping, looking isn't counted, and clients on one connection get their replies in one write: the least that machine and kernel can be asked for.",
];

impl Report {
    /// The rows of a scenario.
    pub fn rows_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.scenario == scenario)
    }

    /// The machine, the commit and the knobs, one line each.
    pub fn setting(&self) -> Vec<String> {
        let Knobs { shape, clients, rounds, warmup_s, duration_s, .. } = &self.knobs;
        let memory =
            self.machine.memory_bytes.map_or(String::new(), |b| format!(", {:.1} GB", b as f64 / 1e9));
        let machine = &self.machine;
        let shape =
            self.knobs.target.as_ref().map_or_else(|| shape.clone(), |target| format!("target {target}"));
        let pace = self
            .knobs
            .rate
            .map_or_else(|| "closed loop".to_owned(), |rate| format!("open loop, {rate} operations/s"));
        let rtt = self.knobs.rtt_ms.map_or(String::new(), |ms| format!(", {ms} ms round trip (simulated)"));
        vec![
            format!("machine: {}, {} cores{memory}, {}", machine.cpu, machine.cores, machine.kernel),
            format!("{}, commit {}, {}", self.program, self.commit, self.started_at),
            format!(
                "{shape}, {clients} clients, {pace}{rtt}, {rounds} rounds of {duration_s} s after {warmup_s} s of warm-up, data: {}",
                self.knobs.seed
            ),
        ]
    }
}
