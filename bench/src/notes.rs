//! What to know before believing the figures.

use crate::case::{Case, Http, Operation, Style};
use crate::process;
use crate::report::verdict::ENOUGH_ROUNDS;
use crate::report::{Report, Row};
use crate::run::{Plan, has_many_requests};

/// The notes of a report.
pub(crate) fn notes(report: &Report, cases: &[Case], plans: &[Plan], looked_up: u64) -> Vec<String> {
    let knobs = &report.knobs;
    let mut notes = Vec::new();
    let mut say = |text: String| notes.push(text);
    match knobs.shape.as_str() {
        "one-process" => say("One process: a call from an edge to a service is a function call. What a hop between processes costs is bypassed; --shape services has it.".to_owned()),
        "services" => say("Five processes on one core, with gRPC between them: REST and GraphQL pay for the hops behind their edge, gRPC and gRPC-Web clients call the service itself. Server CPU is the sum; the JSON has it per process.".to_owned()),
        _ => say("The target was already running: what else it did meanwhile counts too, what is in stock wasn't compared, and there are no rows of the floor, for it would be on this machine and not on the target's.".to_owned()),
    }
    if knobs.target.is_none() {
        say(format!(
            "The server is the program as built, with one thread and a fresh process for each row and round; a reservation is held for {RESERVATION_TTL_S} s, so that giving its units back is paid for in the round that made it. Peak memory is the process's at its highest, start included.",
            RESERVATION_TTL_S = crate::suite::RESERVATION_TTL_S
        ));
    }
    match (knobs.server_core, knobs.client_core) {
        (Some(server), Some(client)) if process::share_a_core(server, client) => say(format!("Server and client were pinned to CPUs {server} and {client}, which are threads of one core: each slows the other.")),
        (Some(server), Some(client)) => say(format!("Server and client were pinned to CPUs {server} and {client}.")),
        (None, _) if knobs.target.is_some() => say("Nothing is known of the cores that the target runs on.".to_owned()),
        _ => say("Not pinned: there is no second core, or no permission. Server and client took CPU from each other; compare CPU per operation, not operations per second.".to_owned()),
    }
    if report.rows.iter().any(|row| row.server_cpu_us_per_op.is_none()) {
        say(if knobs.target.is_some() {
            "Server CPU: the target's /metrics couldn't all be read or have no process_cpu_seconds_total, so the column is empty; --target-metrics says where they are."
                .to_owned()
        } else {
            "Server CPU couldn't be read from /proc, so the column is empty.".to_owned()
        });
    } else if knobs.target.is_some() {
        say("Server CPU is process_cpu_seconds_total of the target's /metrics, summed over its processes: all that they did, in the resolution that it has there.".to_owned());
    }
    if report.rows.iter().any(|row| row.client_cpu_us_per_op.is_none()) {
        say("Client CPU couldn't be read from /proc, so the column is empty.".to_owned());
    }
    say(format!(
        "Every reply had its status checked, GraphQL's for errors and gRPC's for grpc-status and framing too. The first, one in 64 and at least one in 20 ms was decoded and compared with what the service holds, as read in two other styles before; {looked_up} reservations were looked up afterwards through another style. A wrong reply would have failed the run."
    ));
    if plans.iter().any(|plan| plan.way.as_ref().is_some_and(has_many_requests)) {
        let over = |http: Http| report.rows.iter().any(|row| row.requests_per_op > 1 && row.http == http);
        if over(Http::One) {
            say("REST in four requests has three connections per client over HTTP/1.1, as a browser opens them for requests at once: three times the other styles' connections.".to_owned());
        }
        if over(Http::Two) {
            say("REST in four requests has one connection per client or for all over HTTP/2, as the others have.".to_owned());
        }
        say("gRPC's and gRPC-Web's reviews have created_at, about 20 bytes for two, which REST's and GraphQL's have not. REST's review list has a page token and a link.".to_owned());
    }
    let ran = |operation: fn(&Operation) -> bool| cases.iter().any(|case| operation(&case.operation));
    let books: Vec<String> =
        cases.iter().filter_map(|case| Some(format!("{} {}", case.id, case.books?))).collect();
    if !books.is_empty() && knobs.target.is_none() {
        say(format!("The suite had more books than by itself in: {}.", books.join(", ")));
    }
    if ran(|operation| matches!(operation, Operation::Import { .. })) {
        say("bulk-post: the books are checked by all rules and not added, for a store would fill up; what adding costs is bypassed. The messages of a stream leave packed into frames of HTTP/2, as a client does that has them all.".to_owned());
    }
    if ran(|operation| matches!(operation, Operation::Export { .. })) {
        say("bulk-stream: \u{d7}REST is a multiple of the NDJSON export, which sends on a hundred books at a time. bulk-get has the same books as one reply.".to_owned());
    }
    if ran(|operation| matches!(operation, Operation::Page { .. })) {
        say("page: REST 304 is a client that has the page and asks whether it still holds; the server makes the page to know its tag. A client of REST gzip spends CPU on unpacking that isn't counted here.".to_owned());
    }
    if ran(|operation| matches!(operation, Operation::List { .. } | Operation::Export { .. })) {
        say("gRPC's books have a version, two bytes each, which REST's have not.".to_owned());
    }
    if report.rows.iter().any(|row| row.http == Http::Two) {
        say("Over HTTP/2 the client uses header compression as libraries do: what every request repeats is in the table from the second request on; paths that name a resource are sent each time, gRPC's method is in the table.".to_owned());
    }
    say("No TLS, no compression of bodies but where a row says gzip, no proxy. The client reads all that has come before it sends again, as wrk and h2load do, and looks for 100 µs before it sleeps, so that waking it is no part of the server's CPU; with a single core it sleeps at once. Looking in vain is not counted as client CPU.".to_owned());
    if knobs.rate.is_none() {
        say("Closed loop: latency is that of a server kept busy by this many clients, not of a quiet one; --rate gives an open loop.".to_owned());
    } else {
        let slow: Vec<String> = report
            .rows
            .iter()
            .filter(|row| knobs.rate.is_some_and(|rate| row.ops_per_s.median < rate * 0.98))
            .map(Row::name)
            .collect();
        say("Open loop: latency counts from when an operation was due to begin, waiting for a free client included.".to_owned());
        if !slow.is_empty() {
            say(format!(
                "These rows couldn't keep the rate, so their latency grows with the duration: {}.",
                slow.join("; ")
            ));
        }
    }
    if knobs.rtt_ms.is_some() {
        say("The round trip is simulated by a relay on loopback that holds back what passes, in steps of a millisecond. It is a thread of the client's process whose CPU isn't counted; the handshake of TCP and lost packets are not simulated.".to_owned());
    }
    let limited = report.rows.iter().filter(|row| row.client_limited && row.style != Style::Floor).count();
    if limited > 0 {
        say(format!(
            "In {limited} rows the client used over 90 % of its core (marked !): the server could do more operations per second than they say. CPU per operation is not touched by that."
        ));
    }
    let noisy = report
        .rows
        .iter()
        .filter(|row| row.server_cpu_us_per_op.is_some_and(|figure| figure.spread() > 0.3))
        .count();
    if knobs.rounds < ENOUGH_ROUNDS {
        say(format!(
            "{}: there is no telling how noisy the machine was. A smoke test, not a measurement.",
            if knobs.rounds == 1 { "One round".to_owned() } else { format!("{} rounds", knobs.rounds) }
        ));
    } else if noisy > 0 {
        say(format!(
            "In {noisy} of {} rows the rounds are more than 30 % apart in server CPU: the machine was busy with something else. Believe the ratios before the figures, and neither where the ± is large.",
            report.rows.len()
        ));
    }
    if knobs.duration_s < 0.3 {
        say(format!(
            "Rounds of {} s are short: figures of slow operations rest on few of them.",
            knobs.duration_s
        ));
    }
    notes
}
