//! The report as Markdown, to paste into a review.

use std::fmt::Write as _;

use super::{COLUMNS, LEGEND, Report};

/// The report as Markdown.
pub fn render(report: &Report) -> String {
    let mut out = String::from("# REST, GraphQL and gRPC compared\n\n");
    for line in report.setting() {
        let _ = writeln!(out, "- {}", escape(&line));
    }
    if !report.complete {
        out.push_str("\n**Partial: the run was stopped.**\n");
    }
    for scenario in &report.scenarios {
        if report.rows_of(&scenario.id).next().is_none() {
            continue;
        }
        let _ = writeln!(out, "\n## {}: {}\n", escape(&scenario.id), escape(&scenario.title));
        let heads: Vec<&str> = COLUMNS.iter().map(|column| column.head).collect();
        let _ = writeln!(out, "| | {} |", heads.join(" | "));
        let _ = writeln!(out, "|---|{}", "---:|".repeat(COLUMNS.len()));
        for row in report.rows_of(&scenario.id) {
            let cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(row)).collect();
            let _ = writeln!(out, "| {} | {} |", row.name(), cells.join(" | "));
        }
    }
    let legend: Vec<String> = LEGEND.iter().map(|line| (*line).to_owned()).collect();
    let parts =
        [("Where each style loses", &report.verdicts), ("Notes", &report.notes), ("How to read it", &legend)];
    for (head, lines) in parts {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n## {head}\n");
        }
        for line in lines {
            let _ = writeln!(out, "- {}", escape(line));
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('*', "\\*")
        .replace('_', "\\_")
}
