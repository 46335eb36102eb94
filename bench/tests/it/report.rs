//! The reports of a made-up run.

use std::collections::BTreeMap;

use bench::baseline::Baseline;
use bench::case::{Http, Style};
use bench::process::Machine;
use bench::report::{FORMAT, Knobs, Ratios, Report, Row, Scenario, csv, html, markdown, text, verdict};
use bench::stats::Figure;
use serde_json::Value;

fn figure(median: f64) -> Figure {
    Figure { median, min: median * 0.9, max: median * 1.1 }
}

fn row(style: Style, http: Http, cpu: f64, bytes: f64) -> Row {
    Row {
        scenario: "detail".to_owned(),
        style,
        http,
        connections: 20,
        streams_per_connection: 1,
        requests_per_op: 1,
        rounds: 5,
        operations: 1000,
        ops_per_s: figure(1e6 / cpu),
        p50_us: figure(cpu * 2.0),
        p95_us: figure(cpu * 3.0),
        p99_us: figure(cpu * 4.0),
        sent_bytes_per_op: bytes / 2.0,
        received_bytes_per_op: bytes / 2.0,
        sent_body_bytes_per_op: 0.0,
        received_body_bytes_per_op: 10.0,
        server_cpu_us_per_op: Some(figure(cpu)),
        server_cpu_us_per_op_by_process: BTreeMap::from([("catalog", 1.0), ("rest-facade", 2.0)]),
        client_cpu_us_per_op: None,
        client_utilisation: Some(0.5),
        server_utilisation: None,
        client_limited: false,
        server_peak_memory_bytes: Some(30_000_000),
        to_rest: Ratios { server_cpu: Some(figure(1.0)), ..Ratios::default() },
        to_floor: Ratios::default(),
    }
}

fn report() -> Report {
    Report {
        format: FORMAT,
        program: "bookstore 0.1.0".to_owned(),
        commit: "unknown".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        took_s: 1.0,
        complete: true,
        machine: Machine {
            cpu: "A <CPU> | B".to_owned(),
            cores: 2,
            memory_bytes: None,
            kernel: "Linux 6".to_owned(),
        },
        knobs: Knobs {
            shape: "one-process".to_owned(),
            target: None,
            clients: 20,
            rounds: 5,
            warmup_s: 0.2,
            duration_s: 0.5,
            rate: None,
            rtt_ms: Some(80.0),
            server_threads: Some(1),
            server_core: Some(0),
            client_core: Some(1),
            reservation_ttl_s: Some(0.1),
            seed: "seed".to_owned(),
        },
        scenarios: vec![Scenario { id: "detail".to_owned(), title: "a screen".to_owned() }],
        rows: vec![
            row(Style::Rest, Http::One, 40.0, 1600.0),
            row(Style::Grpc, Http::Two, 20.0, 300.0),
            row(Style::Floor, Http::Two, 5.0, 300.0),
        ],
        verdicts: vec!["REST loses".to_owned()],
        notes: vec!["a note".to_owned()],
    }
}

/// Says where a value breaks the schema: as much of JSON Schema as the report's uses.
fn errors(schema: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        out.extend(errors(target, root, value, at));
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array)
        && any.iter().all(|one| !errors(one, root, value, at).is_empty())
    {
        out.push(format!("{at}: none of the alternatives"));
    }
    if schema.get("const").is_some_and(|one| one != value)
        || schema.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(value))
    {
        out.push(format!("{at}: {value} is not allowed"));
    }
    let right = match schema.get("type").and_then(Value::as_str) {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some(other) => panic!("the test doesn't know the type {other}"),
    };
    if !right {
        out.push(format!("{at}: {value} has the wrong type"));
    }
    if let Some(least) = schema.get("minimum").and_then(Value::as_f64)
        && value.as_f64().is_some_and(|number| number < least)
    {
        out.push(format!("{at}: too small"));
    }
    for item in value.as_array().into_iter().flatten() {
        out.extend(schema.get("items").map_or(Vec::new(), |items| errors(items, root, item, at)));
    }
    let Some(object) = value.as_object() else { return out };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !object.contains_key(name.as_str().unwrap()) {
            out.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, value) in object {
        let inner = format!("{at}.{name}");
        match schema.get("properties").and_then(|all| all.get(name)).or(schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => out.push(format!("{inner} is not in the schema")),
            Some(schema) => out.extend(errors(schema, root, value, &inner)),
            None => {}
        }
    }
    out
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../report.schema.json")).unwrap()
}

#[test]
fn the_json_report_follows_its_schema() {
    let (schema, report) = (schema(), serde_json::to_value(report()).unwrap());
    assert_eq!(errors(&schema, &schema, &report, "report"), Vec::<String>::new());
}

#[test]
fn the_schema_refuses_other_reports() {
    let schema = schema();
    for (path, value) in [
        ("/format", Value::from(2)),
        ("/rows/0/style", Value::from("soap")),
        ("/rows/0/http", Value::from(2)),
        ("/rows/0/operations", Value::from(-1)),
        ("/rows/0/server_cpu_us_per_op", Value::from(1)),
        ("/rows/0/ops_per_s", serde_json::json!({"median": 1, "min": 1})),
        ("/knobs", serde_json::json!({})),
        ("/machine/extra", Value::Null),
    ] {
        let mut report = serde_json::to_value(report()).unwrap();
        match report.pointer_mut(path) {
            Some(place) => *place = value,
            None => drop(report["machine"].as_object_mut().unwrap().insert("extra".to_owned(), value)),
        }
        assert!(!errors(&schema, &schema, &report, "report").is_empty(), "{path}");
    }
}

#[test]
fn every_report_names_every_row() {
    let report = report();
    for text in [text::render(&report), markdown::render(&report), html::render(&report)] {
        for name in
            ["REST, HTTP/1.1", "gRPC, HTTP/2 20×1", "floor, HTTP/2 20×1", "a note", "REST loses", "Linux 6"]
        {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
    }
}

#[test]
fn the_csv_has_as_many_cells_in_each_line() {
    let csv = csv::render(&report());
    let counts: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(counts.len(), 4);
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_escapes_what_it_shows() {
    let html = html::render(&report());
    for outside in ["src=", "href=", "http://", "https://", "@import", "url(", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("A &lt;CPU&gt; | B") && !html.contains("<CPU>"));
    assert_eq!(html.matches("<svg").count(), 3);
    assert!(html.contains("prefers-color-scheme:dark"));
    assert!(markdown::render(&report()).contains("A &lt;CPU> \\| B"));
}

#[test]
fn verdicts_say_who_loses_what_and_to_whom() {
    let verdicts = verdict::verdicts(&report());
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(
        verdicts[0].starts_with("detail: REST loses on server CPU (40.0 µs, 2.0 times gRPC's 20.0)"),
        "{verdicts:?}"
    );
    assert!(verdicts[0].contains("bytes on the wire (1600 B, 5.3 times gRPC's 300)"), "{verdicts:?}");
    assert_eq!(verdicts[1], "detail: gRPC loses nothing that these rounds can tell.");
}

#[test]
fn a_run_is_not_worse_than_itself_and_a_slower_one_is() {
    let (before, mut after) = (Baseline::of(&report()), report());
    assert_eq!(before.worse_than(&before), Vec::<String>::new());
    after.rows[1].server_cpu_us_per_op = Some(figure(30.0));
    let worse = Baseline::of(&after).worse_than(&before);
    assert_eq!(worse.len(), 1, "{worse:?}");
    assert!(worse[0].starts_with("detail grpc 2 20x1: server CPU"), "{worse:?}");
    let text = serde_json::to_string(&before).unwrap();
    assert_eq!(serde_json::from_str::<Baseline>(&text).unwrap().rows.len(), 3);
}
