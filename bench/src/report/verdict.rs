//! Where each style loses, computed from the rows.

use crate::case::{Http, Style};
use crate::stats::Figure;

use super::{Report, Row};

/// Less than this is within what such a run can tell.
const WORTH_SAYING: f64 = 1.1;

/// With fewer rounds their range says nothing.
pub const ENOUGH_ROUNDS: usize = 3;

/// One sentence per scenario and style that loses something to another one.
pub fn verdicts(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    let rounds = report.rows.iter().map(|row| row.rounds).min().unwrap_or(0);
    if (1..ENOUGH_ROUNDS).contains(&rounds) {
        out.push(format!(
            "These are sentences about {rounds} round{}, which can't tell a difference from chance: read them as a test \
             of the program, not as a result.",
            if rounds == 1 { "" } else { "s" }
        ));
    }
    for scenario in &report.scenarios {
        let rows: Vec<&Row> = report.rows_of(&scenario.id).filter(|row| row.style != Style::Floor).collect();
        for style in Style::ALL {
            let own: Vec<&Row> = rows.iter().copied().filter(|row| row.style == style).collect();
            let losses = losses(&own, &rows);
            if own.is_empty() || rows.iter().all(|row| row.style == style) {
                continue;
            }
            let text = if losses.is_empty() {
                "loses nothing that these rounds can tell".to_owned()
            } else {
                format!("loses on {}", losses.join("; on "))
            };
            out.push(format!("{}: {} {text}.", scenario.id, style.title()));
        }
    }
    out
}

/// What is compared: its name, its figure in a row, its unit.
type Measure = (&'static str, fn(&Row) -> Option<Figure>, &'static str);

const MEASURES: [Measure; 3] = [
    ("server CPU", |row| row.server_cpu_us_per_op, "µs"),
    ("median latency", |row| Some(row.p50_us), "µs"),
    ("bytes on the wire", |row| Figure::of([row.wire_bytes()]), "B"),
];

fn losses(own: &[&Row], all: &[&Row]) -> Vec<String> {
    let mut out = Vec::new();
    for (what, of, unit) in MEASURES {
        // Like with like first: as many connections as clients, which every style can have. Bytes don't depend on it.
        for (streams, how) in [(false, ""), (true, " with all clients on one connection")] {
            let alike = |row: &&&Row| (row.streams_per_connection > 1) == streams;
            let Some((_, mine)) = least(own.iter().filter(alike), of) else { continue };
            // A reply that says only that nothing has changed is no rival of one that brings the page.
            let rivals = all.iter().filter(alike).filter(|row| row.style != Style::RestNotModified);
            let Some((best, least)) = least(rivals, of) else { continue };
            let ratio = mine.median / least.median;
            // Rounds that overlap tell nothing.
            if (unit == "B" && streams) || mine.min <= least.max || ratio < WORTH_SAYING {
                continue;
            }
            let times = if ratio < 2.0 { format!("{ratio:.2}") } else { format!("{ratio:.1}") };
            let shown = |figure: Figure| {
                if unit == "B" { format!("{:.0}", figure.median) } else { super::micros(figure.median) }
            };
            let (mine, least) = (shown(mine), shown(least));
            out.push(format!("{what}{how} ({mine} {unit}, {times} times {}'s {least})", title(best)));
        }
    }
    out
}

fn least<'a>(
    rows: impl Iterator<Item = &'a &'a Row>,
    of: fn(&Row) -> Option<Figure>,
) -> Option<(&'a Row, Figure)> {
    rows.filter_map(|row| Some((*row, of(row)?))).min_by(|a, b| a.1.median.total_cmp(&b.1.median))
}

fn title(row: &Row) -> String {
    let over = if row.http == Http::Two && !row.style.needs_http2() { " over HTTP/2" } else { "" };
    format!("{}{over}", row.style.title())
}
