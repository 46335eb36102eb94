//! The rows as CSV (RFC 4180).

use std::fmt::Write as _;

use super::{Report, Row};
use crate::stats::Figure;

type Field = (&'static str, fn(&Row) -> String);

const FIELDS: &[Field] = &[
    ("scenario", |row| row.scenario.clone()),
    ("style", |row| row.style.to_string()),
    ("http", |row| row.http.as_str().to_owned()),
    ("connections", |row| row.connections.to_string()),
    ("streams_per_connection", |row| row.streams_per_connection.to_string()),
    ("requests_per_op", |row| row.requests_per_op.to_string()),
    ("operations", |row| row.operations.to_string()),
    ("ops_per_s", |row| number(row.ops_per_s.median)),
    ("ops_per_s_min", |row| number(row.ops_per_s.min)),
    ("ops_per_s_max", |row| number(row.ops_per_s.max)),
    ("p50_us", |row| number(row.p50_us.median)),
    ("p95_us", |row| number(row.p95_us.median)),
    ("p99_us", |row| number(row.p99_us.median)),
    ("sent_bytes_per_op", |row| number(row.sent_bytes_per_op)),
    ("received_bytes_per_op", |row| number(row.received_bytes_per_op)),
    ("sent_body_bytes_per_op", |row| number(row.sent_body_bytes_per_op)),
    ("received_body_bytes_per_op", |row| number(row.received_body_bytes_per_op)),
    ("server_cpu_us_per_op", |row| figure(row.server_cpu_us_per_op, |f| f.median)),
    ("server_cpu_us_per_op_min", |row| figure(row.server_cpu_us_per_op, |f| f.min)),
    ("server_cpu_us_per_op_max", |row| figure(row.server_cpu_us_per_op, |f| f.max)),
    ("client_cpu_us_per_op", |row| figure(row.client_cpu_us_per_op, |f| f.median)),
    ("client_utilisation", |row| row.client_utilisation.map_or(String::new(), number)),
    ("client_limited", |row| row.client_limited.to_string()),
    ("server_peak_memory_bytes", |row| row.server_peak_memory_bytes.map_or(String::new(), |n| n.to_string())),
    ("server_cpu_to_rest", |row| figure(row.to_rest.server_cpu, |f| f.median)),
    ("wire_bytes_to_rest", |row| row.to_rest.wire_bytes.map_or(String::new(), number)),
    ("ops_per_s_to_rest", |row| figure(row.to_rest.ops_per_s, |f| f.median)),
    ("p50_to_rest", |row| figure(row.to_rest.p50, |f| f.median)),
    ("server_cpu_to_floor", |row| figure(row.to_floor.server_cpu, |f| f.median)),
];

fn number(value: f64) -> String {
    format!("{value:.3}")
}

fn figure(figure: Option<Figure>, of: fn(&Figure) -> f64) -> String {
    figure.as_ref().map(of).map_or(String::new(), number)
}

/// The report's rows.
pub fn render(report: &Report) -> String {
    let heads: Vec<&str> = FIELDS.iter().map(|(head, _)| *head).collect();
    let mut out = format!("{}\r\n", heads.join(","));
    for row in &report.rows {
        // None of the values has a comma or a quote in it.
        let cells: Vec<String> = FIELDS.iter().map(|(_, cell)| cell(row)).collect();
        let _ = write!(out, "{}\r\n", cells.join(","));
    }
    out
}
