//! Rows out of rounds.

use std::collections::BTreeMap;

use crate::case::{Case, Http, Style};
use crate::connection::Traffic;
use crate::report::{Ratios, Row};
use crate::run::{Plan, Round};
use crate::stats::Figure;

/// A client that used more of its core than this set the pace.
pub(crate) const CLIENT_LIMIT: f64 = 0.9;

/// The rows of a report; rows without a round are left out.
pub(crate) fn rows(cases: &[Case], plans: &[Plan], found: &[Vec<Round>], clients: usize) -> Vec<Row> {
    let all: Vec<(&Plan, &Vec<Round>)> =
        plans.iter().zip(found).filter(|(_, rounds)| !rounds.is_empty()).collect();
    let find = |case: usize, style: Style, http: Http, streams: usize| {
        let same = |plan: &Plan| {
            plan.case == case && plan.style() == style && plan.http == http && plan.streams == streams
        };
        all.iter().find(|(plan, _)| same(plan)).map(|(_, rounds)| rounds.as_slice())
    };
    let mut rows = Vec::new();
    for (plan, rounds) in &all {
        let Some(mut row) = row(cases, plan, rounds, clients) else { continue };
        let rest = find(plan.case, Style::Rest, Http::One, 1);
        if let Some(rest) = rest.or_else(|| find(plan.case, Style::RestNdjson, Http::One, 1)) {
            row.to_rest = ratios(rounds, rest);
        }
        if let Some(floor) = find(plan.case, Style::Floor, plan.http, plan.streams) {
            row.to_floor = ratios(rounds, floor);
        }
        rows.push(row);
    }
    rows
}

fn row(cases: &[Case], plan: &Plan, rounds: &[Round], clients: usize) -> Option<Row> {
    let case = cases.get(plan.case)?;
    let (calls, requests_per_op) = case.requests(plan.way.as_ref().or(case.model())?);
    let (connections, streams) = match plan.http {
        Http::One => (clients * calls, 1),
        Http::Two => (clients.div_ceil(plan.streams), plan.streams),
    };
    let operations: u64 = rounds.iter().map(|round| round.operations).sum();
    let traffic = traffic(rounds);
    let per_op = |bytes: u64| bytes as f64 / operations as f64;
    let figure = |of: fn(&Round) -> Option<f64>| Figure::of(rounds.iter().filter_map(of));
    let latency =
        |at: usize| Figure::of(rounds.iter().filter_map(move |round| round.latency_us.get(at).copied()));
    let mut by_process: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (name, us) in rounds.iter().flat_map(|round| &round.by_process) {
        by_process.entry(name).or_default().push(*us);
    }
    let by_process = by_process.into_iter().filter_map(|(name, us)| Some((name, Figure::of(us)?.median)));
    let by_process: BTreeMap<_, _> = by_process.collect();
    let client_utilisation = figure(|round| round.client_utilisation).map(|figure| figure.median);
    Some(Row {
        scenario: case.id.clone(),
        style: plan.style(),
        http: plan.http,
        connections,
        streams_per_connection: streams,
        requests_per_op,
        rounds: rounds.len(),
        operations,
        ops_per_s: figure(|round| Some(round.ops_per_s))?,
        p50_us: latency(0)?,
        p95_us: latency(1)?,
        p99_us: latency(2)?,
        sent_bytes_per_op: per_op(traffic.sent),
        received_bytes_per_op: per_op(traffic.received),
        sent_body_bytes_per_op: per_op(traffic.body_sent),
        received_body_bytes_per_op: per_op(traffic.body_received),
        server_cpu_us_per_op: figure(|round| round.server_cpu_us),
        server_cpu_us_per_op_by_process: if by_process.len() > 1 { by_process } else { BTreeMap::new() },
        client_cpu_us_per_op: figure(|round| round.client_cpu_us),
        client_utilisation,
        server_utilisation: figure(|round| round.server_utilisation).map(|figure| figure.median),
        client_limited: client_utilisation.is_some_and(|share| share > CLIENT_LIMIT),
        server_peak_memory_bytes: rounds.iter().filter_map(|round| round.peak_memory_bytes).max(),
        to_rest: Ratios::default(),
        to_floor: Ratios::default(),
    })
}

fn traffic(rounds: &[Round]) -> Traffic {
    rounds.iter().fold(Traffic::default(), |sum, round| Traffic {
        sent: sum.sent + round.traffic.sent,
        received: sum.received + round.traffic.received,
        body_sent: sum.body_sent + round.traffic.body_sent,
        body_received: sum.body_received + round.traffic.body_received,
    })
}

fn ratios(of: &[Round], to: &[Round]) -> Ratios {
    let ratio = |figure: fn(&Round) -> Option<f64>| {
        let figures = |rounds: &[Round]| rounds.iter().map(figure).collect::<Vec<_>>();
        Figure::ratio(&figures(of), &figures(to))
    };
    let wire = |rounds: &[Round]| {
        let (traffic, operations) =
            (traffic(rounds), rounds.iter().map(|round| round.operations).sum::<u64>());
        (traffic.sent + traffic.received) as f64 / operations as f64
    };
    Ratios {
        server_cpu: ratio(|round| round.server_cpu_us),
        ops_per_s: ratio(|round| Some(round.ops_per_s)),
        wire_bytes: Some(wire(of) / wire(to)).filter(|ratio| ratio.is_finite()),
        p50: ratio(|round| round.latency_us.first().copied()),
    }
}
