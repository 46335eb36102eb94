//! Where each style loses, computed from the rows.

use crate::case::{Http, Style};
use crate::stats::Figure;

use super::{Report, Row};

/// Less than this is within what such a run can tell.
const WORTH_SAYING: f64 = 1.1;

/// One sentence per scenario and style that loses something to another one.
pub fn verdicts(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    for scenario in &report.scenarios {
        let rows: Vec<&Row> = report.rows_of(&scenario.id).filter(|row| row.style != Style::Floor).collect();
        for style in Style::ALL {
            let own: Vec<&Row> = rows.iter().copied().filter(|row| row.style == style).collect();
            let losses = losses(&own, &rows);
            if own.is_empty() || rows.iter().all(|row| row.style == style) {
                continue;
            }
            let text = if losses.is_empty() {
                "loses nothing".to_owned()
            } else {
                format!("loses on {}", losses.join("; on "))
            };
            out.push(format!("{}: {} {text}.", scenario.id, style.title()));
        }
    }
    out
}

fn losses(own: &[&Row], all: &[&Row]) -> Vec<String> {
    let cpu = |row: &Row| row.server_cpu_us_per_op.map(|Figure { median, .. }| median);
    let mut out = Vec::new();
    type Measure<'a> = (&'a str, &'a dyn Fn(&Row) -> Option<f64>, &'a str);
    let measures: [Measure<'_>; 3] = [
        ("server CPU", &cpu, "µs"),
        ("bytes on the wire", &|row| Some(row.wire_bytes()), "B"),
        ("median latency", &|row| Some(row.p50_us.median), "µs"),
    ];
    for (what, of, unit) in measures {
        // Like with like first: as many connections as clients, which every style can have.
        for (streams, how) in [(false, ""), (true, " with all clients on one connection")] {
            let alike = |row: &&&Row| (row.streams_per_connection > 1) == streams;
            let Some((mine, figure)) = least(own.iter().filter(alike), of) else { continue };
            let Some((best, least)) = least(all.iter().filter(alike), of) else { continue };
            if least > 0.0 && figure / least >= WORTH_SAYING && best.style != mine.style {
                out.push(format!(
                    "{what}{how} ({figure:.0} {unit}, {:.1} times {}'s {least:.0})",
                    figure / least,
                    title(best)
                ));
            }
        }
    }
    out
}

fn title(row: &Row) -> String {
    let over = if row.http == Http::Two && row.style != Style::Grpc { " over HTTP/2" } else { "" };
    format!("{}{over}", row.style.title())
}

fn least<'a>(
    rows: impl Iterator<Item = &'a &'a Row>,
    of: &dyn Fn(&Row) -> Option<f64>,
) -> Option<(&'a Row, f64)> {
    rows.filter_map(|row| Some((*row, of(row)?))).min_by(|a, b| a.1.total_cmp(&b.1))
}
