//! A strict reader of Prometheus' text format, version 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

/// A line with a value.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// The names of all families.
pub(super) fn families(text: &str) -> Vec<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// All samples of a text that is right: each family is described once and before its samples, which follow each other;
/// no series comes twice; the buckets of a histogram grow and end in its count.
pub(super) fn parse(text: &str) -> Vec<Sample> {
    assert!(text.ends_with('\n'), "no line at the end");
    let mut samples: Vec<Sample> = Vec::new();
    let (mut seen, mut series) = (BTreeSet::new(), BTreeSet::new());
    let mut family: Option<(String, &str)> = None;
    let mut helped = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').unwrap_or_else(|| panic!("no help: {line}")).0;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, helped, "described together");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(is_name(name) && seen.insert(name.to_owned()), "{line}");
            family = Some((name.to_owned(), kind));
        } else {
            let sample = sample(line);
            let (name, kind) = family.as_ref().unwrap_or_else(|| panic!("of no family: {line}"));
            let suffix =
                sample.name.strip_prefix(name.as_str()).unwrap_or_else(|| panic!("elsewhere: {line}"));
            match *kind {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
                _ => assert_eq!(suffix, "", "{line}"),
            }
            assert!(series.insert((sample.name.clone(), sample.labels.clone())), "twice: {line}");
            samples.push(sample);
        }
    }
    histograms(&samples);
    samples
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let value = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
    let (name, labels) = match series.split_once('{') {
        None => (series, BTreeMap::new()),
        Some((name, labels)) => {
            (name, labels_of(labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))))
        }
    };
    assert!(is_name(name), "{line}");
    Sample { name: name.to_owned(), labels, value }
}

fn labels_of(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap_or_else(|| panic!("no label: {text}"));
        assert!(is_name(name) && !name.contains(':'), "{text}");
        let mut value = String::new();
        let mut letters = rest.chars();
        loop {
            match letters.next() {
                Some('"') => break,
                Some('\\') => value.push(match letters.next() {
                    Some('n') => '\n',
                    Some(plain @ ('"' | '\\')) => plain,
                    other => panic!("{other:?} after a backslash: {text}"),
                }),
                Some(plain) => value.push(plain),
                None => panic!("no end: {text}"),
            }
        }
        assert_eq!(labels.insert(name.to_owned(), value), None, "{text}");
        text = letters.as_str();
        text = text.strip_prefix(',').unwrap_or_else(|| {
            assert_eq!(text, "");
            text
        });
    }
    labels
}

fn histograms(samples: &[Sample]) {
    let mut at: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples {
        let Some(name) = sample.name.strip_suffix("_bucket") else { continue };
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le").unwrap();
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        at.entry((name, labels)).or_default().push((bound, sample.value));
    }
    for ((name, labels), buckets) in at {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {labels:?} {buckets:?}");
        let value = |suffix: &str| {
            let of = |sample: &&Sample| sample.name == format!("{name}{suffix}") && sample.labels == labels;
            samples.iter().find(of).unwrap_or_else(|| panic!("no {name}{suffix} {labels:?}")).value
        };
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, value("_count"))), "{name} {labels:?}");
        assert!(value("_sum") >= 0.0);
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !text.is_empty() && text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[test]
fn what_is_wrong_is_not_read() {
    const HEAD: &str = "# HELP a_total A.\n# TYPE a_total counter\n";
    const HISTOGRAM: &str = "# HELP a A.\n# TYPE a histogram\n";
    parse(&[HEAD, "a_total{b=\"c\\\"\\\\\\n\"} 1\n"].concat());
    for (head, rest) in [
        ("", "a_total 1\n"),
        (HEAD, "a_total 1"),
        (HEAD, "a_total 1\na_total 2\n"),
        (HEAD, "b_total 1\n"),
        (HEAD, "a_total one\n"),
        (HEAD, "a_total{b=\"c} 1\n"),
        (HEAD, "a_total{b=\"c\"d=\"e\"} 1\n"),
        (HEAD, HEAD),
        ("", "# TYPE a gauge\na 1\n"),
        (HISTOGRAM, "a_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n"),
        (HISTOGRAM, "a_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n"),
    ] {
        std::panic::catch_unwind(|| parse(&[head, rest].concat())).unwrap_err();
    }
}
