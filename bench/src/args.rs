//! The command line of `bookstore compare`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use crate::baseline;
use crate::case::{self, Http, Style};
use crate::floor::{Serving, Size};
use crate::run::Shape;

/// Settings of `bookstore compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Scenarios to run, separated by commas; `all` is every one of them
    #[arg(long, value_name = "ID", value_delimiter = ',', default_values = case::USUAL,
        value_parser = PossibleValuesParser::new(case::ids().into_iter().chain(["all"])))]
    pub(crate) scenario: Vec<String>,

    /// Styles to measure, separated by commas; all when left out
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(Style::ALL.map(Style::as_str)))]
    pub(crate) style: Vec<String>,

    /// The version of HTTP; both when left out
    #[arg(long, value_parser = http)]
    pub(crate) http: Option<Http>,

    /// Operations under way at once
    #[arg(long, default_value_t = 20, value_parser = count(1000))]
    pub(crate) clients: usize,

    /// Over HTTP/2: clients that share a connection; each value is a row of its own; 1 and all of them when left out
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count(1000))]
    pub(crate) streams_per_connection: Vec<usize>,

    /// Seconds dropped at the beginning of each round [default: 0.2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) warmup: Option<Duration>,

    /// Seconds measured in each round of each row [default: 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,

    /// Rounds; the median is the figure [default: 5]
    #[arg(long, value_parser = count(1000))]
    pub(crate) rounds: Option<usize>,

    /// Operations to begin per second, done or not (an open loop): latency counts from when each was due to begin
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// What the suite runs as
    #[arg(long, value_enum, default_value_t = Shape::OneProcess)]
    pub(crate) shape: Shape,

    /// Measure a suite that runs already, at http://host:port, without a floor. Start it with `up --threads 1
    /// --reservation-ttl 0.1`: with the usual 60 seconds it runs out of stock
    #[arg(long, value_name = "URL", conflicts_with = "shape")]
    pub(crate) target: Option<String>,

    /// Where the target answers GraphQL, when not at --target
    #[arg(long, value_name = "URL", requires = "target")]
    pub(crate) target_graphql: Option<String>,

    /// Where the target's catalog answers gRPC and gRPC-Web, when not at --target
    #[arg(long, value_name = "URL", requires = "target")]
    pub(crate) target_catalog: Option<String>,

    /// The same of inventory
    #[arg(long, value_name = "URL", requires = "target")]
    pub(crate) target_inventory: Option<String>,

    /// The same of ordering
    #[arg(long, value_name = "URL", requires = "target")]
    pub(crate) target_ordering: Option<String>,

    /// Where the target's /metrics are, for its CPU time; those of several processes add up [default: the target's
    /// host, port 5390]
    #[arg(long, value_name = "URL", requires = "target", value_delimiter = ',')]
    pub(crate) target_metrics: Vec<String>,

    /// Add this to every round trip, as in 80ms: a simulated network
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) rtt: Option<Duration>,

    /// Where the report goes as JSON [default: bookstore-compare/report.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Where the report goes as Markdown [default: bookstore-compare/report.md]
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Where the rows go as CSV [default: bookstore-compare/report.csv]
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Where the report goes as one page of HTML [default: bookstore-compare/report.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Keep the figures under this name, in bookstore-compare/baselines
    #[arg(long, value_name = "NAME", value_parser = baseline::parse_name)]
    pub(crate) save_baseline: Option<String>,

    /// Exit 99 when a row is worse than in this baseline by more than the noise of both runs
    #[arg(long, value_name = "NAME", value_parser = baseline::parse_name)]
    pub(crate) baseline: Option<String>,

    /// About 20 seconds in all: a smoke test, with figures to match
    #[arg(long, conflicts_with_all = ["warmup", "duration", "rounds"])]
    pub(crate) quick: bool,

    /// List scenarios and their styles, and stop
    #[arg(long)]
    pub(crate) list: bool,

    /// The program to measure; this one when left out
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) program: Option<PathBuf>,

    /// Be the floor server, for replies of this size
    #[arg(long, hide = true, value_parser = floor)]
    pub(crate) serve_floor: Option<Serving>,

    /// Become the program after `--`, and end with this process
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) child_of: Option<i32>,

    /// The program to become, and its arguments
    #[arg(last = true, hide = true, requires = "child_of")]
    pub(crate) command: Vec<OsString>,
}

fn http(text: &str) -> Result<Http, String> {
    match text {
        "1" | "1.1" => Ok(Http::One),
        "2" => Ok(Http::Two),
        _ => Err("must be 1 or 2".to_owned()),
    }
}

fn count(most: u64) -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..=most)
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(s) if (0.01..=3600.0).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err("must be a number of seconds from 0.01 to 3600".to_owned()),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix("ms").and_then(|number| number.trim().parse::<f64>().ok()) {
        Some(ms) if (1.0..=10_000.0).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1e3)),
        _ => Err("must be a time from 1ms to 10000ms".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.1..=10_000_000.0).contains(&rate) => Ok(rate),
        _ => Err("must be a number of operations per second from 0.1 to 10000000".to_owned()),
    }
}

fn floor(text: &str) -> Result<Serving, String> {
    let mut parts = text.split(',');
    let http = http(parts.next().unwrap_or_default())?;
    let numbers: Option<Vec<usize>> = parts.map(|part| part.parse().ok().filter(|n| *n < 1 << 28)).collect();
    let Some(&[wire, body, status, together, spin]) = numbers.as_deref() else {
        return Err("must be the version of HTTP and five numbers".to_owned());
    };
    let status = u16::try_from(status).map_err(|_| "must have a status".to_owned())?;
    Ok(Serving { http, size: Size { wire, body, status }, together, spin: spin > 0 })
}
