//! The table on the terminal.

use std::fmt::Write as _;

use super::{COLUMNS, LEGEND, Report};

/// The report as text.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    for line in report.setting() {
        let _ = writeln!(out, "{line}");
    }
    for scenario in &report.scenarios {
        let mut table = vec![vec![String::new()]];
        if let Some(head) = table.first_mut() {
            head.extend(COLUMNS.iter().map(|column| column.head.to_owned()));
        }
        for row in report.rows_of(&scenario.id) {
            let cells = COLUMNS.iter().map(|column| (column.cell)(row));
            table.push(std::iter::once(row.name()).chain(cells).collect());
        }
        if table.len() > 1 {
            let _ = writeln!(out, "\n{}: {}", scenario.id, scenario.title);
            put_table(&mut out, &table);
        }
    }
    for (head, lines) in [("Where each style loses", &report.verdicts), ("Notes", &report.notes)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{head}");
        }
        for line in lines {
            let _ = writeln!(out, "- {line}");
        }
    }
    let _ = writeln!(out, "\nHow to read it");
    for line in LEGEND {
        let _ = writeln!(out, "- {line}");
    }
    if !report.complete {
        let _ = writeln!(out, "\nThis report is partial: the run was stopped.");
    }
    out
}

/// Aligned columns: the first to the left, the others to the right.
fn put_table(out: &mut String, table: &[Vec<String>]) {
    let count = table.first().map_or(0, Vec::len);
    let width = |at: usize| {
        let cells = table.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    for row in table {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at == 0 { write!(out, "{cell:<width$}") } else { write!(out, "  {cell:>width$}") };
        }
        out.push('\n');
    }
}
