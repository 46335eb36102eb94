//! The comparison as its users meet it: usage, exit codes, signals, what becomes of the processes that it starts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::harness::{Finished, LIMIT, Process, Shape, Suite, run, until, until_within};

/// A folder of one's own for reports, which goes with it. There is one at a time: comparisons keep two cores busy, and
/// would wait for each other there.
struct Reports {
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Reports {
    async fn new(name: &str) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let folder = std::env::temp_dir().join(format!("bookstore-compare-{}-{name}", std::process::id()));
        let turn = TURN.lock().await;
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, _turn: turn }
    }

    fn flags(&self) -> Vec<String> {
        let flag = |form: &str| format!("--{form}={}", self.folder.join(form).display());
        ["json", "markdown", "csv", "html"].map(flag).to_vec()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.join("json")).unwrap()).unwrap()
    }

    /// Starts a comparison that writes here.
    fn start(&self, args: &[&str]) -> Process {
        let flags = self.flags();
        let flags = flags.iter().map(String::as_str);
        Process::start(&["compare"].into_iter().chain(args.iter().copied()).chain(flags).collect::<Vec<_>>())
    }

    async fn run(&self, args: &[&str]) -> Finished {
        self.start(args).finish().await
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Rounds as short as they may be: two clients end an operation in them on a busy machine too.
const SHORT: [&str; 4] = ["--warmup=0.01", "--duration=0.2", "--rounds=1", "--clients=2"];
/// One row and no floor is the least that can run.
const ONE_ROW: [&str; 3] = ["--scenario=detail", "--style=rest-bff", "--http=1"];

/// The processes that this one started and that still run, from the kernel's table.
fn children(parent: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        // The name in brackets may hold anything; state and parent follow it.
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        let Some((start, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, its_parent) = (fields.next().unwrap(), fields.next().unwrap());
        if its_parent == parent.as_raw_nonzero().to_string() && state != "Z" {
            found.push(Pid::from_raw(start.split(' ').next().unwrap().parse().unwrap()).unwrap());
        }
    }
    found
}

fn is_running(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}

/// The processes that a comparison has started, once there are so many and they work: one of them has had more of a
/// processor than it takes to start, and to measure the size of the floor's replies.
async fn working(comparison: &Process, count: usize) -> Vec<Pid> {
    const ENOUGH_TICKS: u64 = 50;
    let ticks = |process: &Pid| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
        let stat = stat.unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
        // In user mode and in the kernel.
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    };
    until_within(6 * LIMIT, "what it measures works", async || {
        let found = children(comparison.id());
        (found.len() == count && found.iter().any(|process| ticks(process) > ENOUGH_TICKS)).then_some(found)
    })
    .await
}

#[tokio::test]
async fn it_lists_what_it_can_run() {
    let list = run(&["compare", "--list"]).await;
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    for line in [
        "reserve-2: ",
        "detail: ",
        "order-64k: ",
        "list-50-x10: ",
        "page: ",
        "  grpc-stream-100 ",
        "  grpc ",
        "  rest-bff ",
    ] {
        assert!(list.stdout.lines().any(|found| found.starts_with(line)), "{line}: {}", list.stdout);
    }
}

#[tokio::test]
async fn what_it_does_not_know_is_refused_with_what_it_knows() {
    for (arg, known) in [
        ("--scenario=nonsense", "reserve-50"),
        ("--style=soap", "graphql-persisted"),
        ("--no-such-flag", "--save-baseline"),
        ("--baseline=no-such-name", "--save-baseline no-such-name makes one; kept are: "),
        ("--streams-per-connection=3", "20 clients can't be shared out to connections of 3"),
        ("--shape=cluster", "one-process, services"),
        ("--http=3", "must be 1 or 2"),
        ("--rtt=80", "must be a time from 1ms"),
        ("--rounds=0", "1..=1000"),
        ("--duration=never", "must be a number of seconds"),
        ("--rate=0", "must be a number of operations"),
        ("--save-baseline=../x", "letters, digits"),
    ] {
        let refused = run(&["compare", arg]).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{arg}: {refused:?}");
        assert!(refused.stderr.contains(known), "{arg}: {refused:?}");
    }
    let refused = run(&["compare", "--scenario=list-50", "--style=graphql"]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("no scenario has such a row") && refused.stderr.contains("list-50: "));
}

#[tokio::test]
async fn a_target_that_is_down_or_something_else_is_told_in_one_line() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let foreign = |reply: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((mut socket, _)) = listener.accept() {
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(reply);
            }
        });
        address
    };
    let other = foreign(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let book = foreign(b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{\"title\":\"x\"}");
    let ssh = foreign(b"SSH-2.0-OpenSSH_9.2\r\n");
    for (target, says) in [
        (dead, "can't connect"),
        (other, "doesn't answer as a bookstore"),
        (book, "doesn't have the seeded books"),
        (ssh, "doesn't begin with HTTP/1.1"),
    ] {
        let reports = Reports::new(&target.port().to_string()).await;
        let failed = reports.run(&["--target", &format!("http://{target}")]).await;
        assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{failed:?}");
        assert!(failed.stderr.starts_with("bookstore: ") && failed.stderr.contains(says), "{failed:?}");
        assert_eq!(failed.stderr.lines().count(), 1, "{failed:?}");
        assert!(!reports.folder.join("json").exists());
    }
}

#[tokio::test]
async fn a_suite_that_cannot_start_is_told_in_one_line() {
    // What it would measure finds its port taken.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = std::env::temp_dir().join(format!("bookstore-taken-{}", std::process::id()));
    let port = taken.local_addr().unwrap().port();
    // Written by a process of its own: a file that is open for writing anywhere, as in another test's child that has
    // not yet become its program, can't be run.
    let write =
        r##"printf '#!/bin/sh\nexec %s up --port=%s --grpc-port=0\n' "$1" "$2" >"$3" && chmod +x "$3""##;
    let mut writer = std::process::Command::new("sh");
    writer.args(["-c", write, "sh", env!("CARGO_BIN_EXE_bookstore"), &port.to_string()]).arg(&program);
    assert!(writer.status().unwrap().success());
    let reports = Reports::new("taken").await;
    let program_flag = format!("--program={}", program.display());
    let failed = reports.run(&[&[program_flag.as_str()][..], &SHORT, &ONE_ROW].concat()).await;
    std::fs::remove_file(&program).unwrap();
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{failed:?}");
    let last = failed.stderr.lines().last().unwrap();
    assert!(last.contains("up ended at its start") && last.contains(&format!("127.0.0.1:{port}")), "{last}");
    assert!(!reports.folder.join("json").exists());
}

#[tokio::test]
async fn a_run_says_what_it_does_and_where_its_reports_are() {
    let reports = Reports::new("whole").await;
    let done = reports.run(&[&["--scenario=order-200b", "--http=1"][..], &SHORT].concat()).await;
    assert_eq!(done.code, 0, "{done:?}");
    for says in ["3 rows, each once: about 0:", "order-200b, round 1 of 1: 3 of 3 done", "wrote "] {
        assert!(done.stderr.lines().any(|line| line.starts_with(says)), "{says}: {}", done.stderr);
    }
    assert!(!done.stderr.contains(['\r', '\x1b']), "{:?}", done.stderr);
    for form in ["json", "markdown", "csv", "html"] {
        assert!(done.stderr.contains(&reports.folder.join(form).display().to_string()), "{}", done.stderr);
        assert!(std::fs::metadata(reports.folder.join(form)).unwrap().len() > 1000, "{form}");
    }
    let report = reports.json();
    assert_eq!(report["complete"], true);
    assert_eq!(report["rows"].as_array().unwrap().len(), 3);
    let commit = report["commit"].as_str().unwrap().trim_end_matches("-dirty");
    assert!(
        commit == "unknown" || commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()),
        "{commit}"
    );
    let verdicts = report["verdicts"][0].as_str().unwrap();
    assert!(verdicts.contains("1 round,"), "{verdicts}");
}

#[tokio::test]
async fn a_running_suite_is_measured_with_its_own_figures() {
    let suite = Suite::shared(Shape::Up).await;
    let reports = Reports::new("target").await;
    let target = format!("http://{}", suite.rest);
    let metrics = suite.processes[0].said();
    let metrics = metrics.lines().find_map(|line| line.strip_prefix("Metrics")).unwrap().trim();
    let arguments = ["--target", &target, "--target-metrics", metrics, "--scenario=detail"];
    let done = reports.run(&[&arguments[..], &SHORT].concat()).await;
    assert_eq!(done.code, 0, "{done:?}");
    let report = reports.json();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["server_peak_memory_bytes"].as_u64() > Some(1 << 20)), "{rows:?}");
    assert!(rows.iter().all(|row| row["style"] != "floor" && row["server_cpu_us_per_op"].is_object()));
    assert!(done.stdout.contains("there are no rows of the floor"), "{}", done.stdout);
}

#[tokio::test]
async fn a_target_that_runs_out_of_stock_is_told_in_one_line() {
    let suite = Suite::start(Shape::Up, &[]).await;
    // A reservation that nobody confirms takes the last copies.
    let body = serde_json::json!({
        "orderId": "all", "lines": [{"sku": proto::seed::sku(1), "quantity": proto::seed::STOCK}],
    });
    let taken = crate::http::post_json(suite.rest, "/api/v1/reservations", &body).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let target = format!("http://{}", suite.rest);
    for (style, http) in [("rest", "1"), ("graphql", "2"), ("grpc-web", "1"), ("grpc", "2")] {
        let reports = Reports::new(&format!("stock-{style}")).await;
        let arguments = ["--target", &target, "--scenario=reserve-2", "--style", style, "--http", http];
        let failed = reports.run(&[&arguments[..], &SHORT].concat()).await;
        assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{style}: {failed:?}");
        let last = failed.stderr.lines().last().unwrap();
        assert!(
            last.contains("ran out of stock") && last.contains("--reservation-ttl 0.1"),
            "{style}: {last}"
        );
        assert!(!reports.folder.join("json").exists());
    }
}

#[tokio::test]
async fn an_interrupted_run_reports_what_it_has() {
    let reports = Reports::new("partial").await;
    let mut comparison = reports.start(&[
        "--scenario=order-200b",
        "--http=1",
        "--rounds=1000",
        "--warmup=0.01",
        "--duration=0.2",
    ]);
    until("a round is done", async || {
        comparison.logged().contains("order-200b, round 1 of 1000").then_some(())
    })
    .await;
    comparison.signal(Signal::INT);
    let stopped = comparison.finish().await;
    assert_eq!(stopped.code, 130, "{stopped:?}");
    assert!(stopped.stdout.contains("This report is partial"), "{stopped:?}");
    let report = reports.json();
    assert_eq!(report["complete"], false);
    assert_eq!(report["rows"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(report["knobs"]["rounds"], 1000);
    assert!(report["rows"][0]["rounds"].as_u64() < Some(1000));
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_fails_the_run_and_is_named() {
    let reports = Reports::new("dies").await;
    let arguments = ["--warmup=0.01", "--duration=3600", "--rounds=1"];
    let mut comparison = reports.start(&[&arguments[..], &ONE_ROW].concat());
    let suite = working(&comparison, 1).await;
    kill_process(suite[0], Signal::KILL).unwrap();
    let failed = comparison.finish().await;
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{failed:?}");
    let last = failed.stderr.lines().last().unwrap();
    assert!(last.contains("the server died: up ended ") && last.contains("signal: 9"), "{last}");
    assert!(!reports.folder.join("json").exists());
}

#[tokio::test]
async fn what_it_started_ends_with_it_even_when_it_is_killed() {
    for (shape, count) in [("one-process", 1), ("services", 5)] {
        let reports = Reports::new(shape).await;
        let arguments = ["--warmup=0.01", "--duration=3600", "--rounds=1", "--shape", shape];
        let comparison = reports.start(&[&arguments[..], &ONE_ROW].concat());
        let started = working(&comparison, count).await;
        comparison.signal(Signal::KILL);
        until("they end", async || started.iter().all(|process| !is_running(*process)).then_some(())).await;
    }
}
