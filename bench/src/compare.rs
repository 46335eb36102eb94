//! `bookstore compare` from its arguments to its reports.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use crate::args::Args;
use crate::baseline::{self, Baseline};
use crate::case::{self, Case, Style};
use crate::files::{FOLDER, make_folder, outputs, write};
use crate::progress::{Progress, say};
use crate::report::{FORMAT, Knobs, Report, Scenario, text, verdict};
use crate::run::{self, Plan, Round, Runner, Shape};
use crate::suite::{Cores, RESERVATION_TTL_S, Starter};
use crate::target::Target;
use crate::{collect, floor, notes, process};

/// The run was stopped before its end.
pub const STOPPED: u8 = 130;
/// A row is worse than the baseline.
pub const WORSE: u8 = 99;
/// What was asked for can't be.
pub const USAGE: u8 = 2;

/// Runs the comparison; the exit code. `commit` is the one that this program was built from; `stop` is to be set when
/// the user wants no more.
pub fn run(args: Args, commit: &str, stop: &AtomicBool) -> anyhow::Result<u8> {
    if let Some(parent) = args.child_of {
        return Err(process::become_child(parent, &args.command));
    }
    if let Some(serving) = args.serve_floor {
        process::end_with_parent();
        floor::serve(serving, |address| print(&format!("floor {address}\n")))?;
        return Ok(0);
    }
    let cases = case::all()?;
    if args.list {
        print(&list(&cases));
        return Ok(0);
    }
    let cases: Vec<Case> = cases
        .into_iter()
        .filter(|case| args.scenario.iter().any(|id| *id == case.id || id == "all"))
        .collect();
    let styles: Vec<Style> =
        Style::ALL.into_iter().filter(|style| args.style.iter().any(|name| name == style.as_str())).collect();
    let plans = run::plans(&cases, &styles, args.http, &streams(&args), args.target.is_none());
    if plans.is_empty() {
        complain(&format!("no scenario has such a row; these are:\n{}", list(&cases)));
        return Ok(USAGE);
    }
    if let Some(&streams) = args.streams_per_connection.iter().find(|n| !args.clients.is_multiple_of(**n)) {
        complain(&format!("{} clients can't be shared out to connections of {streams}", args.clients));
        return Ok(USAGE);
    }
    let before = match &args.baseline {
        None => None,
        Some(name) => match baseline::load(&baseline::path(Path::new(FOLDER), name)) {
            Ok(before) => Some(before),
            Err(error) => {
                let kept = baseline::names(Path::new(FOLDER));
                let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
                complain(&format!("{error:#}; --save-baseline {name} makes one; kept are: {kept}"));
                return Ok(USAGE);
            }
        },
    };
    let target = Target::of(&args)?;
    if let Some(target) = &target {
        target.check()?;
    }

    for (path, _) in outputs(&args) {
        make_folder(&path)?;
    }

    let report = measure(&args, commit, target, &cases, &plans, stop)?;
    print(&text::render(&report));
    let mut written = Vec::new();
    for (path, form) in outputs(&args) {
        write(&path, &form(&report)?)?;
        written.push(path.display().to_string());
    }
    say(&format!("wrote {}\n", written.join(", ")));
    if !report.complete {
        return Ok(STOPPED);
    }
    let kept = Baseline::of(&report);
    if let Some(name) = &args.save_baseline {
        let path = baseline::path(Path::new(FOLDER), name);
        write(&path, &serde_json::to_string_pretty(&kept)?)?;
        say(&format!("wrote {}\n", path.display()));
    }
    let worse = before.map(|before| kept.worse_than(&before)).unwrap_or_default();
    for line in &worse {
        print(&format!("worse than the baseline: {line}\n"));
    }
    Ok(if worse.is_empty() { 0 } else { WORSE })
}

fn streams(args: &Args) -> Vec<usize> {
    let mut streams = args.streams_per_connection.clone();
    if streams.is_empty() {
        streams = vec![1, args.clients];
    }
    streams.sort_unstable();
    streams.dedup();
    streams
}

fn list(cases: &[Case]) -> String {
    let mut out = String::new();
    for case in cases {
        out.push_str(&format!("{}: {}\n", case.id, case.title));
        for way in &case.ways {
            let versions: Vec<&str> = way.http.iter().map(|http| http.as_str()).collect();
            out.push_str(&format!("  {:<18} HTTP/{}\n", way.style, versions.join(", HTTP/")));
        }
    }
    out
}

/// Warm-up, measured time and number of rounds.
fn times(args: &Args) -> (Duration, Duration, usize) {
    let ms = Duration::from_millis;
    let (warmup, duration, rounds) = if args.quick { (ms(40), ms(200), 1) } else { (ms(200), ms(500), 5) };
    (args.warmup.unwrap_or(warmup), args.duration.unwrap_or(duration), args.rounds.unwrap_or(rounds))
}

fn measure(
    args: &Args,
    commit: &str,
    target: Option<Target>,
    cases: &[Case],
    plans: &[Plan],
    stop: &AtomicBool,
) -> anyhow::Result<Report> {
    let (warmup, duration, rounds) = times(args);
    let own = std::env::current_exe().context("can't find this program's file")?;
    let program = args.program.clone().unwrap_or_else(|| own.clone());
    let allowed = process::allowed_cores();
    let cores = process::two_cores(&allowed).map(|(server, client)| Cores { server, client });
    let mut starter = Starter { program, own, cores };
    if !run::pin_client(&starter) {
        starter.cores = None;
    }
    let cores = starter.cores;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = Instant::now();
    let mut runner = Runner {
        cases,
        starter,
        shape: args.shape,
        target,
        rtt: args.rtt,
        clients: args.clients,
        rate: args.rate,
        spin: cores.is_some() || args.target.is_some(),
        warmup,
        duration,
        stop,
        name: format!("cmp{:08x}", now.as_micros() as u32),
        counter: 0,
        floors: Default::default(),
        looked_up: 0,
    };
    let found = rounds_of(&mut runner, plans, rounds);
    // A run that is stopped may well see its server go first.
    let (found, complete) = match found {
        Ok(found) => {
            let complete = found.iter().all(|row| row.len() == rounds);
            (found, complete)
        }
        Err((found, error)) => {
            if !stop.load(Ordering::Relaxed) {
                return Err(error);
            }
            (found, false)
        }
    };
    let knobs = Knobs {
        shape: match (&args.target, args.shape) {
            (Some(_), _) => "target",
            (None, Shape::OneProcess) => "one-process",
            (None, Shape::Services) => "services",
        }
        .to_owned(),
        target: args.target.clone(),
        clients: args.clients,
        rounds,
        warmup_s: warmup.as_secs_f64(),
        duration_s: duration.as_secs_f64(),
        rate: args.rate,
        rtt_ms: args.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        server_threads: args.target.is_none().then_some(1),
        server_core: cores.filter(|_| args.target.is_none()).map(|cores| cores.server),
        client_core: cores.map(|cores| cores.client),
        reservation_ttl_s: args.target.is_none().then_some(RESERVATION_TTL_S),
        seed: format!(
            "proto::seed, {} books, {} authors, {} reviews",
            proto::seed::BOOKS,
            proto::seed::AUTHORS,
            proto::seed::REVIEWS
        ),
    };
    let mut report = Report {
        format: FORMAT,
        program: format!("bookstore {}", env!("CARGO_PKG_VERSION")),
        commit: commit.to_owned(),
        started_at: rfc3339(now.as_secs()),
        took_s: began.elapsed().as_secs_f64(),
        complete,
        machine: process::Machine::this(),
        knobs,
        scenarios: cases
            .iter()
            .map(|case| Scenario { id: case.id.clone(), title: case.title.clone() })
            .collect(),
        rows: collect::rows(cases, plans, &found, args.clients),
        verdicts: Vec::new(),
        notes: Vec::new(),
    };
    report.machine.cores = allowed.len().max(1);
    report.verdicts = verdict::verdicts(&report);
    report.notes = notes::notes(&report, cases, plans, runner.looked_up);
    Ok(report)
}

type Rounds = Vec<Vec<Round>>;

/// The rounds of every row; what there is of them when the run was stopped, or beside the error.
fn rounds_of(
    runner: &mut Runner<'_>,
    plans: &[Plan],
    rounds: usize,
) -> Result<Rounds, (Rounds, anyhow::Error)> {
    let mut found: Rounds = vec![Vec::new(); plans.len()];
    let each = runner.warmup + runner.duration + runner.start_takes();
    let mut progress = Progress::begin(plans.len(), rounds, each);
    for case in 0..runner.cases.len() {
        let own = || plans.iter().enumerate().filter(|(_, plan)| plan.case == case);
        for (_, plan) in own().filter(|(_, plan)| plan.way.is_none()) {
            if let Err(error) = runner.measure_floor(plan) {
                return Err((found, error));
            }
        }
        // Styles alternate, so that a machine that drifts drifts for all; every other round runs backwards, so that
        // none always comes after the same other one.
        for round in 0..rounds {
            let mut order: Vec<usize> = own().map(|(at, _)| at).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let Some(plan) = plans.get(at) else { continue };
                progress.step(&runner.name_of(plan));
                match runner.round(plan) {
                    Ok(Some(round)) => {
                        if let Some(row) = found.get_mut(at) {
                            row.push(round);
                        }
                    }
                    Ok(None) => {
                        progress.end();
                        return Ok(found);
                    }
                    Err(error) => {
                        progress.end();
                        return Err((found, error));
                    }
                }
                progress.step_done();
            }
            let id = runner.cases.get(case).map_or("", |case| case.id.as_str());
            progress.round_done(&format!("{id}, round {} of {rounds}", round + 1));
        }
    }
    progress.end();
    Ok(found)
}

/// A reader that has gone is no failure.
fn print(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {text}");
}

/// A time of the system's clock, in UTC.
pub fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0, in eras of 400 years (the proleptic Gregorian calendar).
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) =
        (era * 400 + year + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
