//! The load: one thread, a fixed set of connections, as many operations under way as there are clients.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};

use crate::case::Http;
use crate::connection::{Answer, Connection, Tag, Traffic, excerpt};
use crate::operation::{Recipe, Then};
use crate::process;
use crate::request::Prepared;

/// What is sent, where, and by how many clients.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The server.
    pub address: SocketAddr,
    /// The name of the server in requests.
    pub authority: String,
    /// The version of HTTP.
    pub http: Http,
    /// Operations under way at once.
    pub clients: usize,
    /// Over HTTP/2: clients that share a connection.
    pub streams: usize,
    /// What one operation sends.
    pub recipe: &'a Recipe,
    /// Operations per second to begin, whether or not earlier ones are done; none begins one whenever one is done.
    pub rate: Option<f64>,
    /// Whether to look again for a moment before going to sleep, so that the server doesn't pay for waking the client.
    /// Not for a client that shares its core with the server.
    pub spin: bool,
}

impl Setting<'_> {
    /// Connections that it opens.
    pub fn connections(&self) -> usize {
        match self.http {
            // A browser opens more connections for requests at once; nobody pipelines.
            Http::One => self.clients * self.recipe.calls.len(),
            Http::Two => self.clients.div_ceil(self.streams),
        }
    }
}

/// Looks into the bodies of an operation's replies, and says what is wrong with them.
pub type Check<'a> = &'a mut dyn FnMut(u64, &[Vec<u8>]) -> Result<(), String>;

/// What a load measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Operations whose replies were right.
    pub operations: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Nanoseconds from the beginning of an operation to the end of its last reply.
    pub latency: Histogram<u64>,
    /// Bytes in both directions.
    pub traffic: Traffic,
    /// CPU time of the client's thread, without the time in which it looked in vain for something to do.
    pub client_cpu_ns: Option<u64>,
    /// What the probe read at the beginning and at the end.
    pub probes: [Vec<Option<u64>>; 2],
}

/// One operation in this many is decoded, and the first one.
const SAMPLE: u64 = 64;
/// The longest without a sample, so that slow rows have some too.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// How long to look before going to sleep.
const SPIN: Duration = Duration::from_micros(100);
/// A look in vain takes less, unless the thread lost its core meanwhile, which is no CPU time of its own.
const LOOK: Duration = Duration::from_micros(10);
/// The longest that nothing may be heard.
const SILENCE: Duration = Duration::from_secs(10);

struct Client {
    began: Instant,
    left: usize,
    order: u64,
    sampled: bool,
    bodies: Vec<Vec<u8>>,
    follow: Option<u32>,
    following: bool,
}

#[derive(Debug, Clone, Copy)]
enum Send {
    All { client: usize },
    Then { client: usize, number: u32, connection: usize },
}

struct Driver<'a> {
    setting: &'a Setting<'a>,
    check: Check<'a>,
    clients: Vec<Client>,
    idle: Vec<usize>,
    due: Option<(Instant, Duration)>,
    to_send: Vec<Send>,
    orders: u64,
    sampled: Instant,
    operations: u64,
    latency: Histogram<u64>,
    expects: Vec<crate::request::Expect>,
}

/// When the measured time began, and what was read then.
type Start = (Instant, Traffic, Option<u64>, Vec<Option<u64>>);

/// Runs the load. Nothing when `stop` was set meanwhile. `probe` reads what is to be read at both ends.
pub fn run(
    setting: &Setting<'_>,
    warmup: Duration,
    duration: Duration,
    check: Check<'_>,
    probe: &mut dyn FnMut() -> Vec<Option<u64>>,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Measured>> {
    let mut poll = Poll::new().context("can't poll")?;
    let streams = setting.streams.min(setting.clients) * setting.recipe.calls.len();
    let mut connections = Vec::with_capacity(setting.connections());
    for index in 0..setting.connections() {
        let mut connection = Connection::open(setting.address, setting.http, streams)?;
        poll.registry().register(
            connection.socket(),
            Token(index),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        connections.push(connection);
    }
    let prepare = |call: &crate::request::Call| call.prepare(setting.http, &setting.authority);
    let prepared: Vec<Prepared> = setting.recipe.calls.iter().map(prepare).collect::<Result<_, _>>()?;
    let mut follows: HashMap<u32, Prepared> = HashMap::new();

    let mut driver = Driver::new(setting, check, &prepared)?;
    driver.begin(Instant::now());
    let mut events = Events::with_capacity(1024);
    let measure_at = Instant::now() + warmup;
    let mut measured_from: Option<Start> = None;
    let mut heard = Instant::now();
    let mut in_vain = Duration::ZERO;
    loop {
        while let Some(send) = driver.to_send.pop() {
            put(&mut connections, send, setting, &prepared, &mut follows, &driver)?;
        }
        // All that was read has been answered; the requests leave one after another, as wrk and h2load send them.
        for connection in &mut connections {
            connection.flush()?;
        }
        let now = Instant::now();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if driver.idle.len() == setting.clients {
            heard = now;
        }
        if now.duration_since(heard) > SILENCE {
            bail!("no reply for {} s", SILENCE.as_secs());
        }
        let end = match &measured_from {
            None if now >= measure_at => {
                driver.reset();
                in_vain = Duration::ZERO;
                measured_from =
                    Some((Instant::now(), total(&connections), process::thread_cpu_ns(), probe()));
                now + duration
            }
            None => measure_at,
            Some((from, ..)) => *from + duration,
        };
        if now >= end && measured_from.is_some() {
            break;
        }
        let mut wait = driver.wait(now, end.saturating_duration_since(now));
        if setting.spin && now.duration_since(heard) < SPIN {
            wait = Duration::ZERO;
        }
        match poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.context("can't poll")?,
        }
        if events.is_empty() && wait.is_zero() {
            in_vain += now.elapsed().min(LOOK);
        }
        for event in &events {
            let index = event.token().0;
            let Some(connection) = connections.get_mut(index) else { continue };
            let ended = event.is_read_closed() || event.is_error();
            if event.is_readable() || ended {
                heard = now;
                connection.receive(ended, &mut |tag, answer| driver.on_answer(index, tag, answer))?;
                while let Some(send) = driver.to_send.pop() {
                    put(&mut connections, send, setting, &prepared, &mut follows, &driver)?;
                }
            }
        }
        driver.begin_due();
    }
    let Some((from, traffic, client_cpu, before)) = measured_from else { return Ok(None) };
    let elapsed = from.elapsed();
    let after = probe();
    let client_cpu_ns = process::thread_cpu_ns()
        .zip(client_cpu)
        .map(|(after, before)| (after - before).saturating_sub(in_vain.as_nanos() as u64));
    let traffic_after = total(&connections);
    Ok(Some(Measured {
        operations: driver.operations,
        elapsed,
        latency: driver.latency,
        traffic: Traffic {
            sent: traffic_after.sent - traffic.sent,
            received: traffic_after.received - traffic.received,
            body_sent: traffic_after.body_sent - traffic.body_sent,
            body_received: traffic_after.body_received - traffic.body_received,
        },
        client_cpu_ns,
        probes: [before, after],
    }))
}

fn total(connections: &[Connection]) -> Traffic {
    connections.iter().map(Connection::traffic).fold(Traffic::default(), |sum, one| Traffic {
        sent: sum.sent + one.sent,
        received: sum.received + one.received,
        body_sent: sum.body_sent + one.body_sent,
        body_received: sum.body_received + one.body_received,
    })
}

/// Puts the requests in line on the connections that they belong to.
fn put(
    connections: &mut [Connection],
    send: Send,
    setting: &Setting<'_>,
    prepared: &[Prepared],
    follows: &mut HashMap<u32, Prepared>,
    driver: &Driver<'_>,
) -> anyhow::Result<()> {
    let order = |client: usize| driver.clients.get(client).map_or(0, |client| client.order);
    match send {
        Send::All { client } => {
            for (part, request) in prepared.iter().enumerate() {
                let index = match setting.http {
                    Http::One => client * prepared.len() + part,
                    Http::Two => client / setting.streams,
                };
                let connection = connections.get_mut(index).context("a client without a connection")?;
                connection.send(request, Tag { client: client as u32, part: part as u32 }, order(client))?;
            }
        }
        Send::Then { client, number, connection } => {
            let then = setting.recipe.then.as_ref().context("nothing follows")?;
            let request = match follows.entry(number) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(then.call(number).prepare(setting.http, &setting.authority)?)
                }
            };
            let connection = connections.get_mut(connection).context("a client without a connection")?;
            let tag = Tag { client: client as u32, part: prepared.len() as u32 };
            connection.send(request, tag, order(client))?;
        }
    }
    Ok(())
}

impl<'a> Driver<'a> {
    fn new(setting: &'a Setting<'a>, check: Check<'a>, prepared: &[Prepared]) -> anyhow::Result<Driver<'a>> {
        let now = Instant::now();
        let parts = setting.recipe.requests();
        let client = || Client {
            began: now,
            left: 0,
            order: 0,
            sampled: false,
            bodies: vec![Vec::new(); parts],
            follow: None,
            following: false,
        };
        // From a nanosecond to a minute, three digits.
        let latency =
            Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(|error| anyhow::anyhow!("{error}"))?;
        let interval = setting.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
        let mut expects: Vec<_> = prepared.iter().map(|request| request.expect).collect();
        if setting.recipe.then.is_some() {
            expects.push(crate::request::Expect::Status(200));
        }
        Ok(Driver {
            setting,
            check,
            clients: (0..setting.clients).map(|_| client()).collect(),
            idle: (0..setting.clients).rev().collect(),
            due: interval.map(|interval| (now, interval)),
            to_send: Vec::new(),
            orders: 0,
            sampled: now,
            operations: 0,
            latency,
            expects,
        })
    }

    fn begin(&mut self, now: Instant) {
        if self.due.is_some() {
            return self.begin_due();
        }
        while let Some(client) = self.idle.pop() {
            self.start(client, now);
        }
    }

    /// Begins the operations whose time has come, as far as clients are free; their time counts all the same.
    fn begin_due(&mut self) {
        let Some((mut due, interval)) = self.due else { return };
        let now = Instant::now();
        while due <= now {
            let Some(client) = self.idle.pop() else { break };
            self.start(client, due);
            due += interval;
        }
        self.due = Some((due, interval));
    }

    fn wait(&self, now: Instant, most: Duration) -> Duration {
        let Some((due, _)) = self.due.filter(|_| !self.idle.is_empty()) else { return most };
        let left = due.saturating_duration_since(now).min(most);
        // The kernel waits in milliseconds; the rest is spun away.
        Duration::from_millis(left.as_millis() as u64)
    }

    fn start(&mut self, client: usize, began: Instant) {
        let order = self.orders;
        self.orders += 1;
        let calls = self.setting.recipe.calls.len();
        let Some(state) = self.clients.get_mut(client) else { return };
        state.began = began;
        state.order = order;
        state.left = calls;
        state.sampled =
            order.is_multiple_of(SAMPLE) || began.saturating_duration_since(self.sampled) > SAMPLE_EVERY;
        if state.sampled {
            self.sampled = began;
        }
        state.follow = None;
        state.following = false;
        self.to_send.push(Send::All { client });
    }

    fn reset(&mut self) {
        self.operations = 0;
        self.latency.reset();
    }

    fn on_answer(&mut self, connection: usize, tag: Tag, answer: Answer<'_>) -> anyhow::Result<()> {
        let (client, part) = (tag.client as usize, tag.part as usize);
        let expect = *self.expects.get(part).context("a reply to no request")?;
        let number = self.operations;
        let wrong =
            |what: String| anyhow::anyhow!("wrong reply to operation {number}, request {}: {what}", part + 1);
        answer.check(expect).map_err(wrong)?;
        let state = self.clients.get_mut(client).context("a reply to no client")?;
        if state.sampled
            && let Some(body) = state.bodies.get_mut(part)
        {
            body.clear();
            body.extend_from_slice(answer.body);
        }
        if part == 0
            && let Some(then) = &self.setting.recipe.then
        {
            let found = field(answer.body, then);
            state.follow =
                Some(found.ok_or_else(|| wrong(format!("no {} in {}", then.key, excerpt(answer.body))))?);
        }
        state.left -= 1;
        if state.left > 0 {
            return Ok(());
        }
        if let Some(number) = state.follow.filter(|_| !state.following) {
            state.following = true;
            state.left = 1;
            self.to_send.push(Send::Then { client, number, connection });
            return Ok(());
        }
        let now = Instant::now();
        let nanoseconds = now.duration_since(state.began).as_nanos() as u64;
        self.latency.saturating_record(nanoseconds);
        self.operations += 1;
        if state.sampled {
            (self.check)(state.order, &state.bodies).map_err(wrong)?;
        }
        if self.due.is_some() {
            self.idle.push(client);
            self.begin_due();
        } else {
            self.start(client, now);
        }
        Ok(())
    }
}

/// The number after the key.
fn field(body: &[u8], then: &Then) -> Option<u32> {
    let key = then.key.as_bytes();
    let at = body.windows(key.len()).position(|window| window == key)?;
    let digits = body.get(at + key.len()..)?.trim_ascii_start();
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}
