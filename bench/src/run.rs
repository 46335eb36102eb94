//! The run: which rows there are, and their rounds.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::case::{Asks, Case, Http, Operation, Style, Way};
use crate::connection::{Traffic, Whole};
use crate::floor::Size;
use crate::load::{self, Measured, Setting};
use crate::lookup::{self, Held};
use crate::operation::{self, Content, Recipe, reserve};
use crate::process;
use crate::relay::Relay;
use crate::request::Expect;
use crate::suite::{self, Addresses, Starter, Suite};
use crate::target::Target;

/// What a suite runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shape {
    /// The whole suite in one process: no hop between an edge and a service
    OneProcess,
    /// Each service and each edge in a process of its own, with gRPC between them
    Services,
}

/// One row of the report, before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Place of its case.
    pub(crate) case: usize,
    /// The style; the floor has none.
    pub(crate) way: Option<Way>,
    /// The version of HTTP.
    pub(crate) http: Http,
    /// Clients on one connection.
    pub(crate) streams: usize,
}

impl Plan {
    /// The style.
    pub(crate) fn style(&self) -> Style {
        self.way.as_ref().map_or(Style::Floor, |way| way.style)
    }
}

/// What one round of one row measured.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    /// Operations that were counted.
    pub(crate) operations: u64,
    /// Operations per second.
    pub(crate) ops_per_s: f64,
    /// Latencies that 50, 95 and 99 % keep.
    pub(crate) latency_us: [f64; 3],
    /// Bytes, all operations together.
    pub(crate) traffic: Traffic,
    /// Server CPU per operation, all processes together.
    pub(crate) server_cpu_us: Option<f64>,
    /// The same per process.
    pub(crate) by_process: BTreeMap<&'static str, f64>,
    /// Share of a core that the server used.
    pub(crate) server_utilisation: Option<f64>,
    /// Client CPU per operation.
    pub(crate) client_cpu_us: Option<f64>,
    /// Share of a core that the client used.
    pub(crate) client_utilisation: Option<f64>,
    /// The most memory that the server had.
    pub(crate) peak_memory_bytes: Option<u64>,
}

/// A load and what it was put on.
struct Loaded {
    measured: Measured,
    recipe: Recipe,
    peak_memory_bytes: Option<u64>,
    processes: Vec<&'static str>,
}

/// How rounds are run.
pub(crate) struct Runner<'a> {
    /// The scenarios.
    pub(crate) cases: &'a [Case],
    /// How to start what is measured.
    pub(crate) starter: Starter,
    /// What the suite runs as.
    pub(crate) shape: Shape,
    /// A suite that runs elsewhere.
    pub(crate) target: Option<Target>,
    /// Delay per round trip.
    pub(crate) rtt: Option<Duration>,
    /// Operations under way at once.
    pub(crate) clients: usize,
    /// Operations per second of an open loop.
    pub(crate) rate: Option<f64>,
    /// Whether the client looks again before it sleeps.
    pub(crate) spin: bool,
    /// Dropped at the beginning of each round.
    pub(crate) warmup: Duration,
    /// Measured in each round.
    pub(crate) duration: Duration,
    /// Set to stop.
    pub(crate) stop: &'a AtomicBool,
    /// Names the run in order ids.
    pub(crate) name: String,
    /// Counts rounds, so that no order id comes twice.
    pub(crate) counter: u32,
    /// Sizes of the floor's replies, by case and version of HTTP.
    pub(crate) floors: BTreeMap<(usize, &'static str), Size>,
    /// Reservations looked up after their round through another style.
    pub(crate) looked_up: u64,
}

impl Runner<'_> {
    fn case(&self, plan: &Plan) -> anyhow::Result<&Case> {
        self.cases.get(plan.case).context("no such case")
    }

    fn model(&self, plan: &Plan) -> anyhow::Result<Way> {
        self.case(plan)?.model().cloned().context("no style for the floor")
    }

    fn start(&self, plan: &Plan) -> anyhow::Result<Suite> {
        if plan.way.is_none() {
            let size = self.floors.get(&(plan.case, plan.http.as_str())).context("no size for the floor")?;
            // In an open loop nobody knows how many requests are under way.
            let together = if self.rate.is_none() && plan.http == Http::Two { plan.streams } else { 1 };
            return self.starter.floor(plan.http, *size, together);
        }
        let books = self.case(plan)?.books;
        match (&self.target, self.shape) {
            (Some(target), _) => Ok(target.suite()),
            (None, Shape::OneProcess) => self.starter.one_process(books),
            (None, Shape::Services) => self.starter.services(books),
        }
    }

    /// What a row is called in messages.
    pub(crate) fn name_of(&self, plan: &Plan) -> String {
        let id = self.cases.get(plan.case).map_or("", |case| case.id.as_str());
        let connections = match plan.http {
            Http::One => String::new(),
            Http::Two => format!(" {}×{}", self.clients.div_ceil(plan.streams), plan.streams),
        };
        format!("{id}, {} over HTTP/{}{connections}", plan.style().title(), plan.http.as_str())
    }

    /// How long it takes about until what is measured runs.
    pub(crate) fn start_takes(&self) -> Duration {
        match (&self.target, self.shape) {
            (Some(_), _) => Duration::ZERO,
            (None, Shape::OneProcess) => Duration::from_millis(50),
            (None, Shape::Services) => Duration::from_millis(250),
        }
    }

    /// How requests to an address name it.
    fn authority(&self, address: SocketAddr) -> String {
        self.target.as_ref().map_or_else(|| address.to_string(), |target| target.authority(address))
    }

    /// Finds out how large the replies of the floor have to be.
    pub(crate) fn measure_floor(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let key = (plan.case, plan.http.as_str());
        if self.floors.contains_key(&key) {
            return Ok(());
        }
        let way = self.model(plan)?;
        let plan = Plan { way: Some(way), streams: 1, ..plan.clone() };
        let enough = Duration::from_millis(30) + self.rtt.unwrap_or_default() * 3;
        let (clients, rate) = (std::mem::replace(&mut self.clients, 1), self.rate.take());
        let result = self.measure(&plan, enough, enough);
        (self.clients, self.rate) = (clients, rate);
        let Some(Loaded { measured: Measured { whole, .. }, recipe, .. }) = result? else { return Ok(()) };
        let each = |bytes: u64| bytes.checked_div(whole.replies).map(|bytes| bytes as usize);
        let sizes = each(whole.received).zip(each(whole.body_received));
        let (wire, body) = sizes.context("no reply to take the floor's size from")?;
        let status = match recipe.calls.first().map(|call| call.expect) {
            Some(Expect::Status(status)) => status,
            _ => bail!("the floor imitates REST"),
        };
        let size = Size { wire, body, status };
        self.floors.insert(key, size);
        Ok(())
    }

    /// Measures a row once. Nothing when the run was stopped.
    pub(crate) fn round(&mut self, plan: &Plan) -> anyhow::Result<Option<Round>> {
        let Some(loaded) = self.measure(plan, self.warmup, self.duration)? else { return Ok(None) };
        let Loaded { measured, recipe, peak_memory_bytes, processes } = loaded;
        ensure!(
            measured.operations > 0,
            "no operation ended within {:?}: use a longer --duration",
            self.duration
        );
        let operations = measured.operations as f64;
        let seconds = measured.elapsed.as_secs_f64();
        let [before, after] = &measured.probes;
        let spent: Option<Vec<u64>> = before
            .iter()
            .zip(after)
            .map(|(before, after)| Some((*after)?.saturating_sub((*before)?)))
            .collect();
        let spent = spent.filter(|spent| !spent.is_empty());
        let server_ns = spent.as_ref().map(|spent| spent.iter().sum::<u64>() as f64);
        let by_process = processes.into_iter().zip(spent.unwrap_or_default());
        let mut traffic = measured.traffic;
        let Whole { replies, received, body_received } = measured.whole;
        if replies > 0 {
            // Large replies that the round cuts in two are left out, so that few of them give their size too.
            let share = operations * recipe.requests() as f64 / replies as f64;
            traffic.received = (received as f64 * share).round() as u64;
            traffic.body_received = (body_received as f64 * share).round() as u64;
        }
        let percentile = |p: f64| measured.latency.value_at_quantile(p) as f64 / 1e3;
        Ok(Some(Round {
            operations: measured.operations,
            ops_per_s: operations / seconds,
            latency_us: [percentile(0.5), percentile(0.95), percentile(0.99)],
            traffic,
            server_cpu_us: server_ns.map(|ns| ns / 1e3 / operations),
            by_process: by_process.map(|(name, ns)| (name, ns as f64 / 1e3 / operations)).collect(),
            server_utilisation: server_ns.map(|ns| ns / 1e9 / seconds),
            client_cpu_us: measured.client_cpu_ns.map(|ns| ns as f64 / 1e3 / operations),
            client_utilisation: measured.client_cpu_ns.map(|ns| ns as f64 / 1e9 / seconds),
            peak_memory_bytes,
        }))
    }

    fn measure(
        &mut self,
        plan: &Plan,
        warmup: Duration,
        duration: Duration,
    ) -> anyhow::Result<Option<Loaded>> {
        let row = self.name_of(plan);
        let mut suite = self.start(plan).with_context(|| row.clone())?;
        match self.load(plan, &suite, warmup, duration) {
            Ok(measured) => Ok(measured),
            Err(error) => {
                let error = match &self.target {
                    Some(target) if plan.way.is_some() && target.ran_out_of_stock(&error) => anyhow::anyhow!(
                        "the target ran out of stock, for it holds reservations for too long: start it with `up \
                         --threads 1 --reservation-ttl 0.1`"
                    ),
                    _ => error,
                };
                let error = error.context(row);
                // The end of the server explains whatever else went wrong.
                Err(match suite.ended() {
                    Some(end) => error.context(format!("the server died: {end}")),
                    None => error,
                })
            }
        }
    }

    fn load(
        &mut self,
        plan: &Plan,
        suite: &Suite,
        warmup: Duration,
        duration: Duration,
    ) -> anyhow::Result<Option<Loaded>> {
        let case = self.case(plan)?;
        let operation = case.operation;
        let (way, style) = match &plan.way {
            Some(way) => (way.clone(), way.style),
            None => (self.model(plan)?, Style::Floor),
        };
        let run = format!("{}{:04x}", self.name, self.counter + 1);
        let mut recipe = operation::recipe(case, &way, &run)?;
        self.counter += 1;
        let path = recipe.calls.first().map_or("", |call| call.path.as_str());
        let server = suite.addresses.of(style, path);
        let authority = self.authority(server);
        for call in recipe.calls.iter_mut().filter(|call| call.expect == Expect::NotModified) {
            call.if_none_match = Some(lookup::tag(server, &authority, call)?);
        }
        let relay = self.rtt.map(|rtt| Relay::start(server, rtt)).transpose()?;
        let address = relay.as_ref().map_or(server, Relay::address);
        let streams = if plan.http == Http::One { 1 } else { plan.streams };
        let setting = Setting {
            address,
            authority,
            http: plan.http,
            clients: self.clients,
            streams,
            recipe: &recipe,
            rate: self.rate,
            spin: self.spin,
        };

        let expected = match style {
            Style::Floor => None,
            _ if operation.writes() => None,
            _ => Some(self.held(plan, &suite.addresses)?),
        };
        let mut last: Option<Sampled> = None;
        // Bytes that were right once are right.
        let mut known: Vec<Vec<u8>> = Vec::new();
        let mut check = |order: u64, bodies: &[Vec<u8>]| match (&expected, style) {
            // Of nothing there is nothing to read.
            (_, Style::Floor | Style::RestNotModified) => Ok(()),
            (Some(_), _) if known == bodies => Ok(()),
            (Some(expected), _) => {
                self.settled(operation.read(style, bodies)?).is_same(expected)?;
                known = bodies.to_vec();
                Ok(())
            }
            (None, _) => {
                let id = reserve::check(style, bodies.first().map_or(&[], Vec::as_slice))?;
                last = Some(Sampled { order: format!("{run}-{order:010}"), id, at: Instant::now() });
                Ok(())
            }
        };
        let target = self.target.as_ref().filter(|_| style != Style::Floor);
        let mut probe = || target.map_or_else(|| suite.cpu_ns(), Target::cpu_ns);
        let measured = load::run(&setting, warmup, duration, &mut check, &mut probe, self.stop)?;
        let Some(measured) = measured else { return Ok(None) };
        let peak_memory_bytes = target.map_or_else(|| suite.peak_memory_bytes(), Target::peak_memory_bytes);
        let peak_memory_bytes = peak_memory_bytes.filter(|bytes| *bytes > 0);
        if let Some(last) = last.filter(Sampled::is_remembered) {
            self.look_up(style, operation, &suite.addresses, last)?;
        }
        let processes = suite.processes().map(|(name, _)| name).collect();
        Ok(Some(Loaded { measured, recipe, peak_memory_bytes, processes }))
    }

    /// What the service holds, read in two styles that have to agree.
    fn held(&self, plan: &Plan, addresses: &Addresses) -> anyhow::Result<Content> {
        let case = self.case(plan)?;
        let mut read: Vec<(Style, Content)> = Vec::new();
        for (style, call) in operation::readings(case)? {
            let address = addresses.of(style, &call.path);
            let body = lookup::ask(address, &self.authority(address), &call)?;
            let content = case.operation.read(style, &[body]).map_err(anyhow::Error::msg);
            let content = content.with_context(|| match (case.books, &self.target) {
                (Some(books), Some(_)) => format!("the target must be started with --books {books}"),
                _ => format!("{} doesn't hold it", style.title()),
            })?;
            let content = self.settled(content);
            if let Some((other, first)) = read.first() {
                let same = content.is_same(first).map_err(anyhow::Error::msg);
                same.with_context(|| format!("{} and {} disagree", style.title(), other.title()))?;
            }
            read.push((style, content));
        }
        ensure!(read.len() > 1, "no two styles to read what the service holds");
        read.into_iter().next().map(|(_, content)| content).context("nothing read")
    }

    /// What must not change during a round. In a suite that runs on, units that earlier rounds reserved come back.
    fn settled(&self, content: Content) -> Content {
        if self.target.is_some() { content.without_stock() } else { content }
    }

    /// Compares a reservation with what the service holds.
    fn look_up(
        &mut self,
        style: Style,
        operation: Operation,
        addresses: &Addresses,
        sampled: Sampled,
    ) -> anyhow::Result<()> {
        let id = &sampled.id;
        let found = if style.is_grpc() {
            lookup::reservation_by_rest(addresses.rest, &self.authority(addresses.rest), id)
        } else {
            lookup::reservation_by_grpc(addresses.inventory, &self.authority(addresses.inventory), id)
        };
        let found = match found {
            // On a busy machine the answer may have taken so long that the service had forgotten it.
            Err(_) if !sampled.is_remembered() => return Ok(()),
            found => found.context("what the service holds can't be read")?,
        };
        let mut lines = operation.lines();
        lines.sort();
        let expected = Held { order: sampled.order, lines };
        ensure!(found == expected, "the service holds {found:?} for {id}, not {expected:?}");
        self.looked_up += 1;
        Ok(())
    }
}

/// A reservation whose reply was read.
struct Sampled {
    order: String,
    id: String,
    at: Instant,
}

impl Sampled {
    /// Whether the service must still remember it: it does so for twice the time that it holds one, of which half is
    /// left for what went by before the reply was read.
    fn is_remembered(&self) -> bool {
        self.at.elapsed().as_secs_f64() < suite::RESERVATION_TTL_S
    }
}

/// The rows of the chosen cases, each case's floor below it.
pub(crate) fn plans(
    cases: &[Case],
    styles: &[Style],
    http: Option<Http>,
    streams: &[usize],
    with_floor: bool,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (case, found) in cases.iter().enumerate() {
        let mut carried = Vec::new();
        let ways = found.ways.iter().filter(|way| styles.is_empty() || styles.contains(&way.style));
        for way in ways {
            for version in way.http.iter().copied().filter(|version| http.is_none_or(|http| http == *version))
            {
                let streams = if version == Http::One { &[1] } else { streams };
                for &streams in streams {
                    plans.push(Plan { case, way: Some(way.clone()), http: version, streams });
                    if !carried.contains(&(version, streams)) {
                        carried.push((version, streams));
                    }
                }
            }
        }
        carried.sort_by_key(|(version, streams)| (version.as_str(), *streams));
        if with_floor {
            let floor = |(http, streams)| Plan { case, way: None, http, streams };
            plans.extend(carried.into_iter().map(floor));
        }
    }
    plans
}

/// Whether the style asks with several requests.
pub(crate) fn has_many_requests(way: &Way) -> bool {
    matches!(way.asks, Asks::Requests { .. })
}

/// Gives this thread its core.
pub(crate) fn pin_client(starter: &Starter) -> bool {
    starter.cores.is_some_and(|cores| process::pin([cores.client]).is_ok())
}
