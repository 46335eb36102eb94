//! The report as one page that needs nothing else: no script, no font, no other file.

use std::fmt::Write as _;

use super::{COLUMNS, LEGEND, Report, Row};

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d1d9e0;--a:#0969da;--b:#bf5af2;--c:#d1242f;--floor:#8c959f}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--a:#4493f8;--b:#d2a8ff;--c:#ff7b72;--floor:#6e7681}}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
h1,h2,h3{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
.dim{color:var(--dim)}.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.8rem;width:100%}
th,td{padding:.25rem .4rem;text-align:right;border-bottom:1px solid var(--line)}td{white-space:nowrap}th{vertical-align:bottom}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--bg)}tr.floor{color:var(--dim)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:1rem 2rem}
figure{margin:1rem 0}figcaption{font-weight:600;margin-bottom:.3rem}
svg{width:100%;height:auto;display:block}svg text{fill:var(--fg);font:12px system-ui,sans-serif}svg text.v{font-size:11px}svg text.v{fill:var(--dim)}
.a{fill:var(--a)}.b{fill:var(--b)}.c{fill:var(--c)}rect.floor{fill:var(--floor)}
.key i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}.key .a{background:var(--a)}.key .b{background:var(--b)}.key .c{background:var(--c)}
.warn{border-left:4px solid var(--c);padding-left:.8rem}
";

/// The page.
pub fn render(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>REST, GraphQL and gRPC compared</title>\n<style>\n{STYLE}</style>\n\
         <h1>REST, GraphQL and gRPC compared</h1>\n"
    );
    for line in report.setting() {
        let _ = writeln!(out, "<div class=\"dim\">{}</div>", escape(&line));
    }
    if !report.complete {
        out.push_str("<p class=\"warn\">This report is partial: the run was stopped.</p>\n");
    }
    for scenario in &report.scenarios {
        let rows: Vec<&Row> = report.rows_of(&scenario.id).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<h2>{}</h2>\n<p>{}</p>", escape(&scenario.id), escape(&scenario.title));
        out.push_str("<div class=\"charts\">\n");
        let cpu = |row: &Row| vec![row.server_cpu_us_per_op.map_or(0.0, |figure| figure.median)];
        chart(&mut out, "Server CPU per operation, µs", &rows, &[], cpu);
        let bytes = |row: &Row| vec![row.sent_bytes_per_op, row.received_bytes_per_op];
        chart(&mut out, "Wire bytes per operation", &rows, &["sent", "received"], bytes);
        let latency = |row: &Row| vec![row.p50_us.median, row.p95_us.median, row.p99_us.median];
        chart(&mut out, "Latency, µs", &rows, &["p50", "p95", "p99"], latency);
        out.push_str("</div>\n");
        table(&mut out, &rows);
    }
    list(&mut out, "Where each style loses", report.verdicts.iter().map(String::as_str));
    list(&mut out, "Notes", report.notes.iter().map(String::as_str));
    list(&mut out, "How to read it", LEGEND.iter().copied());
    out.push_str("</html>\n");
    out
}

fn list<'a>(out: &mut String, head: &str, lines: impl Iterator<Item = &'a str>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "<h2>{head}</h2>\n<ul>");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", escape(line));
    }
    out.push_str("</ul>\n");
}

fn table(out: &mut String, rows: &[&Row]) {
    out.push_str("<div class=\"wide\"><table>\n<tr><th></th>");
    for column in COLUMNS {
        let _ = write!(out, "<th>{}</th>", escape(column.head));
    }
    out.push_str("</tr>\n");
    for row in rows {
        let _ = write!(out, "<tr{}><td>{}</td>", class(row), escape(&row.name()));
        for column in COLUMNS {
            let _ = write!(out, "<td>{}</td>", escape(&(column.cell)(row)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn class(row: &Row) -> &'static str {
    if is_floor(row) { " class=\"floor\"" } else { "" }
}

fn is_floor(row: &Row) -> bool {
    row.style == crate::case::Style::Floor
}

const NAME_WIDTH: f64 = 225.0;
const BAR_WIDTH: f64 = 250.0;
const WIDTH: f64 = NAME_WIDTH + BAR_WIDTH + 70.0;
const BAR: f64 = 12.0;

/// Bars side by side, one group per row. Values of several parts are bars of their own, not stacked.
fn chart(out: &mut String, head: &str, rows: &[&Row], parts: &[&str], values: impl Fn(&Row) -> Vec<f64>) {
    const CLASSES: [&str; 3] = ["a", "b", "c"];
    let most = rows.iter().flat_map(|row| values(row)).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let _ = write!(out, "<figure><figcaption>{head}");
    if !parts.is_empty() {
        out.push_str("<span class=\"key\">");
        for (part, class) in parts.iter().zip(CLASSES) {
            let _ = write!(out, "<i class=\"{class}\"></i>{part}");
        }
        out.push_str("</span>");
    }
    let group = BAR.mul_add(parts.len().max(1) as f64, 9.0).max(20.0);
    let height = group * rows.len() as f64;
    let _ = writeln!(
        out,
        "</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{head}\">"
    );
    for (at, row) in rows.iter().enumerate() {
        let top = at as f64 * group;
        let middle = top + group / 2.0 + 4.0;
        let _ = write!(out, "<text x=\"0\" y=\"{middle}\">{}</text>", escape(&row.name()));
        let values = values(row);
        let start = top + (group - BAR * values.len() as f64) / 2.0;
        for (part, (value, class)) in values.iter().zip(CLASSES).enumerate() {
            let class = if is_floor(row) && parts.is_empty() { "floor" } else { class };
            let y = BAR.mul_add(part as f64, start);
            let width = (value / most * BAR_WIDTH).max(1.0);
            let shown = if *value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{NAME_WIDTH}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\"/>\
                 <text class=\"v\" x=\"{:.1}\" y=\"{:.1}\">{shown}</text>",
                BAR - 1.0,
                NAME_WIDTH + width + 4.0,
                y + BAR - 2.0,
            );
        }
        out.push('\n');
    }
    out.push_str("</svg></figure>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
