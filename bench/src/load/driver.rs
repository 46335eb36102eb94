//! What each client of the load is at: whose turn it is, what a reply is for, what is counted.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;

use super::{Check, Setting};
use crate::connection::{Answer, Tag, excerpt};
use crate::operation::Then;
use crate::request::{Expect, Prepared};

/// One operation in this many is decoded, and the first one.
const SAMPLE: u64 = 64;
/// The longest without a sample, so that slow rows have some too.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
struct Client {
    began: Instant,
    /// Replies that are still to come before its next request.
    left: usize,
    /// Which time it asks, of those that the operation asks in a row.
    turn: usize,
    order: u64,
    sampled: bool,
    bodies: Vec<Vec<u8>>,
    follow: Option<u32>,
    following: bool,
}

/// Requests to put in line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Send {
    /// Those that an operation sends at once.
    All { client: usize },
    /// The one that needs another's reply.
    Then { client: usize, number: u32, connection: usize },
}

pub(super) struct Driver<'a> {
    setting: &'a Setting<'a>,
    check: Check<'a>,
    clients: Vec<Client>,
    idle: Vec<usize>,
    due: Option<(Instant, Duration)>,
    pub(super) to_send: Vec<Send>,
    orders: u64,
    sampled: Instant,
    pub(super) operations: u64,
    pub(super) latency: Histogram<u64>,
    expects: Vec<Expect>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        setting: &'a Setting<'a>,
        check: Check<'a>,
        prepared: &[Prepared],
    ) -> anyhow::Result<Driver<'a>> {
        let now = Instant::now();
        let parts = setting.recipe.requests();
        let client = || Client {
            began: now,
            left: 0,
            turn: 0,
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
            expects.push(Expect::Status(200));
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

    pub(super) fn begin(&mut self, now: Instant) {
        if self.due.is_some() {
            return self.begin_due();
        }
        while let Some(client) = self.idle.pop() {
            self.start(client, now);
        }
    }

    /// Begins the operations whose time has come, as far as clients are free; their time counts all the same.
    pub(super) fn begin_due(&mut self) {
        let Some((mut due, interval)) = self.due else { return };
        let now = Instant::now();
        while due <= now {
            let Some(client) = self.idle.pop() else { break };
            self.start(client, due);
            due += interval;
        }
        self.due = Some((due, interval));
    }

    pub(super) fn wait(&self, now: Instant, most: Duration) -> Duration {
        let Some((due, _)) = self.due.filter(|_| !self.idle.is_empty()) else { return most };
        let left = due.saturating_duration_since(now).min(most);
        // The kernel waits in milliseconds; the rest is spun away.
        Duration::from_millis(left.as_millis() as u64)
    }

    /// Whether no operation is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.idle.len() == self.setting.clients
    }

    /// The number of the order that the client's operation has.
    pub(super) fn order(&self, client: usize) -> u64 {
        self.clients.get(client).map_or(0, |client| client.order)
    }

    fn start(&mut self, client: usize, began: Instant) {
        let order = self.orders;
        self.orders += 1;
        let calls = self.setting.recipe.calls.len();
        let Some(state) = self.clients.get_mut(client) else { return };
        state.began = began;
        state.order = order;
        state.left = calls;
        state.turn = 0;
        state.sampled =
            order.is_multiple_of(SAMPLE) || began.saturating_duration_since(self.sampled) > SAMPLE_EVERY;
        if state.sampled {
            self.sampled = began;
        }
        state.follow = None;
        state.following = false;
        self.to_send.push(Send::All { client });
    }

    pub(super) fn reset(&mut self) {
        self.operations = 0;
        self.latency.reset();
    }

    pub(super) fn on_answer(
        &mut self,
        connection: usize,
        tag: Tag,
        answer: Answer<'_>,
    ) -> anyhow::Result<()> {
        let (client, part) = (tag.client as usize, tag.part as usize);
        let expect = *self.expects.get(part).context("a reply to no request")?;
        let number = self.operations;
        let wrong =
            |what: String| anyhow::anyhow!("wrong reply to operation {number}, request {}: {what}", part + 1);
        answer.check(expect).map_err(wrong)?;
        let state = self.clients.get_mut(client).context("a reply to no client")?;
        if state.sampled
            && let Some(body) = state.bodies.get_mut(state.turn * self.setting.recipe.calls.len() + part)
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
        if state.turn + 1 < self.setting.recipe.times {
            state.turn += 1;
            state.left = self.setting.recipe.calls.len();
            self.to_send.push(Send::All { client });
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
