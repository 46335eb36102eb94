//! The load: one thread, a fixed set of connections, as many operations under way as there are clients.

mod driver;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};

use self::driver::{Driver, Send};
use crate::case::Http;
use crate::connection::{Connection, Tag, Traffic, Whole};
use crate::operation::Recipe;
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
    /// Replies that were read to their end, and their bytes: exact where a connection has one request at a time.
    pub whole: Whole,
    /// CPU time of the client's thread, without the time in which it looked in vain for something to do.
    pub client_cpu_ns: Option<u64>,
    /// What the probe read at the beginning and at the end.
    pub probes: [Vec<Option<u64>>; 2],
}

/// How long to look before going to sleep.
const SPIN: Duration = Duration::from_micros(100);
/// A look in vain takes less, unless the thread lost its core meanwhile, which is no CPU time of its own.
const LOOK: Duration = Duration::from_micros(10);
/// The kernel waits in milliseconds.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// The longest that nothing may be heard.
const SILENCE: Duration = Duration::from_secs(10);

/// When the measured time began, and what was read then.
type Start = (Instant, (Traffic, Whole), Option<u64>, Vec<Option<u64>>);

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
        if driver.is_idle() {
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
        // A round goes on until it has an operation: slow ones on a busy machine have figures too.
        if now >= end && measured_from.is_some() && (driver.operations > 0 || now >= end + SILENCE) {
            break;
        }
        let mut wait = driver.wait(now, end.saturating_duration_since(now).max(LEAST_WAIT));
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
    let Some((from, (traffic, whole), client_cpu, before)) = measured_from else { return Ok(None) };
    let elapsed = from.elapsed();
    let after = probe();
    let client_cpu_ns = process::thread_cpu_ns()
        .zip(client_cpu)
        .map(|(after, before)| (after - before).saturating_sub(in_vain.as_nanos() as u64));
    let (traffic_after, whole_after) = total(&connections);
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
        whole: Whole {
            replies: whole_after.replies - whole.replies,
            received: whole_after.received - whole.received,
            body_received: whole_after.body_received - whole.body_received,
        },
        client_cpu_ns,
        probes: [before, after],
    }))
}

fn total(connections: &[Connection]) -> (Traffic, Whole) {
    let (mut traffic, mut whole) = (Traffic::default(), Whole::default());
    for connection in connections {
        let Traffic { sent, received, body_sent, body_received } = connection.traffic();
        traffic.sent += sent;
        traffic.received += received;
        traffic.body_sent += body_sent;
        traffic.body_received += body_received;
        let Whole { replies, received, body_received } = connection.whole();
        whole.replies += replies;
        whole.received += received;
        whole.body_received += body_received;
    }
    (traffic, whole)
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
    match send {
        Send::All { client } => {
            for (part, request) in prepared.iter().enumerate() {
                let index = match setting.http {
                    Http::One => client * prepared.len() + part,
                    Http::Two => client / setting.streams,
                };
                let connection = connections.get_mut(index).context("a client without a connection")?;
                connection.send(
                    request,
                    Tag { client: client as u32, part: part as u32 },
                    driver.order(client),
                )?;
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
            connection.send(request, tag, driver.order(client))?;
        }
    }
    Ok(())
}
