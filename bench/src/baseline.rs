//! Runs that are kept, to compare later ones with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::report::{Report, Row};
use crate::stats::Figure;

/// What is kept of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The commit it was.
    pub commit: String,
    /// The rows by their keys.
    pub rows: BTreeMap<String, Kept>,
}

/// What is kept of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Server CPU per operation as a multiple of the floor's, where there is a floor: a slower machine slows both.
    pub cpu_to_floor: Option<Figure>,
    /// Server CPU per operation.
    pub cpu_us: Option<Figure>,
    /// Bytes on the wire per operation.
    pub wire_bytes: f64,
}

/// However quiet the rounds were, less than this is no news.
const LEAST: f64 = 0.05;
/// Bytes are exact but for a date or a settings frame here and there.
const LEAST_BYTES: f64 = 0.02;

impl Baseline {
    /// What to keep of a report.
    pub fn of(report: &Report) -> Self {
        let kept = |row: &Row| Kept {
            cpu_to_floor: row.to_floor.server_cpu,
            cpu_us: row.server_cpu_us_per_op,
            wire_bytes: row.wire_bytes(),
        };
        let rows = report.rows.iter().map(|row| (row.key(), kept(row))).collect();
        Self { commit: report.commit.clone(), rows }
    }

    /// The rows that are worse than in `before` by more than the noise of both runs, one sentence each.
    pub fn worse_than(&self, before: &Self) -> Vec<String> {
        let mut out = Vec::new();
        for (key, now) in &self.rows {
            let Some(then) = before.rows.get(key) else { continue };
            let (what, now_cpu, then_cpu) = match (now.cpu_to_floor, then.cpu_to_floor) {
                (Some(now), Some(then)) if !key.contains(" floor ") => {
                    ("server CPU as a multiple of the floor", Some(now), Some(then))
                }
                _ if key.contains(" floor ") => continue,
                _ => ("server CPU per operation", now.cpu_us, then.cpu_us),
            };
            if let (Some(now), Some(then)) = (now_cpu, then_cpu)
                && is_worse(now, then)
            {
                out.push(format!("{key}: {what} went from {:.2} to {:.2}", then.median, now.median));
            }
            if now.wire_bytes > then.wire_bytes * (1.0 + LEAST_BYTES) {
                let (then, now) = (then.wire_bytes, now.wire_bytes);
                out.push(format!("{key}: bytes on the wire went from {then:.0} to {now:.0}"));
            }
        }
        out
    }
}

/// Larger by more than half the ranges of both, and by more than [`LEAST`].
fn is_worse(now: Figure, then: Figure) -> bool {
    let noise = f64::midpoint(now.max - now.min, then.max - then.min);
    now.median - then.median > noise.max(then.median * LEAST)
}

/// Where the baseline of this name is kept.
pub fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join("baselines").join(format!("{name}.json"))
}

/// The names of those that are kept.
pub fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("baselines")).into_iter().flatten().filter_map(Result::ok);
    let name = |file: std::fs::DirEntry| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    names
}

/// A name that is a file's name too.
pub fn parse_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(good) {
        return Err("must be 1 to 64 letters, digits, '.', '_' or '-', and not begin with '.'".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads a baseline.
pub fn load(path: &Path) -> anyhow::Result<Baseline> {
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no baseline", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str, figure: (f64, f64, f64), wire_bytes: f64) -> Baseline {
        let (min, median, max) = figure;
        let cpu_us = Some(Figure { median, min, max });
        let kept = Kept { cpu_to_floor: None, cpu_us, wire_bytes };
        Baseline { commit: String::new(), rows: BTreeMap::from([(key.to_owned(), kept)]) }
    }

    #[test]
    fn worse_is_more_than_the_noise_of_both_runs() {
        let before = one("a", (9.0, 10.0, 11.0), 100.0);
        for (now, worse) in [
            ((9.0, 10.0, 11.0), false),
            ((10.0, 11.9, 12.0), false),
            ((11.0, 12.1, 13.0), true),
            ((5.0, 6.0, 7.0), false),
            ((14.0, 20.0, 40.0), false),
        ] {
            assert_eq!(!one("a", now, 100.0).worse_than(&before).is_empty(), worse, "{now:?}");
        }
        let quiet = one("a", (10.0, 10.0, 10.0), 100.0);
        assert!(one("a", (10.4, 10.4, 10.4), 100.0).worse_than(&quiet).is_empty());
        assert!(!one("a", (10.6, 10.6, 10.6), 100.0).worse_than(&quiet).is_empty());
    }

    #[test]
    fn more_bytes_are_worse_and_new_rows_are_not() {
        let before = one("a", (10.0, 10.0, 10.0), 100.0);
        assert!(one("a", (10.0, 10.0, 10.0), 101.0).worse_than(&before).is_empty());
        assert_eq!(one("a", (10.0, 10.0, 10.0), 103.0).worse_than(&before).len(), 1);
        assert!(one("b", (99.0, 99.0, 99.0), 999.0).worse_than(&before).is_empty());
    }

    #[test]
    fn names_are_names_of_files() {
        assert!(parse_name("main-2").is_ok());
        for bad in ["", ".", "../x", "a/b", "a b", ".hidden"] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }
}
