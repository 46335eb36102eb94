//! The connections of one runtime to the replicas of one service.
//!
//! Each address that the name stands for is a member, and has a task that keeps a connection to it open. Another task
//! looks the name up again. Both end with the pool.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::SendRequest;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::body::Outgoing;
use super::network::{Network, Opened};

/// How often the name is looked up.
const LOOK_UP: Duration = Duration::from_secs(3);

/// How long a member that failed is left alone, the first time; each further time in a row it is twice as long, up to
/// the limit.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A connection that ends sooner is a failure: else a service that accepts and closes would be called without pause.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// So many calls in a row that got no answer in their time are a failure: one alone may be a slow call.
const TIMEOUTS: u32 = 3;

pub(super) struct Pool {
    network: Arc<Network>,
    state: Mutex<State>,
    /// Told when what [`Pool::ready`] waits for may have come.
    changed: Notify,
    look_up: Arc<Notify>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Where the search for the least busy begins, so that equals take turns.
    turn: usize,
    /// Somebody waits for the name to be looked up.
    looking: bool,
}

/// What the pool knows of a member. All of it is behind one lock, which one runtime takes: nobody waits for it.
struct Entry {
    member: Arc<Member>,
    link: Link,
    /// In a row.
    failures: u32,
    timeouts: u32,
    /// The end of its rest, if it has failed.
    until: Instant,
    /// A member that has failed gets one call, and more only when that succeeds.
    tried: bool,
}

enum Link {
    Open(SendRequest<Outgoing>),
    Opening,
    Down,
}

/// One address.
pub(super) struct Member {
    at: Uri,
    calls: AtomicUsize,
    /// Whether a success is news.
    suspect: AtomicBool,
    open_now: Notify,
}

/// A call on its way. It counts until this is dropped.
pub(super) struct Ticket {
    pool: Arc<Pool>,
    pub(super) member: Arc<Member>,
    trial: bool,
}

type Sent = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>;

/// No member can be reached.
#[derive(Debug)]
pub(super) struct Unreachable;

impl Pool {
    /// A pool of the current runtime.
    pub(super) fn new(network: Arc<Network>) -> Arc<Self> {
        let look_up = Arc::new(Notify::new());
        let state = Mutex::new(State { looking: true, ..State::default() });
        let pool = Arc::new(Self { network: network.clone(), state, changed: Notify::new(), look_up });
        match network.fixed() {
            Some(at) => pool.found(vec![at]),
            None => drop(tokio::spawn(look_up_for(Arc::downgrade(&pool), network, pool.look_up.clone()))),
        }
        pool
    }

    /// Sends the request to the least busy member, if possible another one than `avoided`. Gives it back when there is
    /// no open connection.
    pub(super) fn send(
        self: &Arc<Self>,
        request: Request<Outgoing>,
        avoided: Option<&Arc<Member>>,
    ) -> Result<(Ticket, impl Future<Output = Sent> + use<>), Box<Request<Outgoing>>> {
        let mut state = self.lock();
        let Some(entry) = state.choose(avoided) else { return Err(Box::new(request)) };
        let Link::Open(sender) = &mut entry.link else { return Err(Box::new(request)) };
        let trial = entry.failures > 0 && !entry.tried;
        entry.tried |= trial;
        entry.member.calls.fetch_add(1, Relaxed);
        let ticket = Ticket { pool: self.clone(), member: entry.member.clone(), trial };
        Ok((ticket, sender.try_send_request(request)))
    }

    /// Waits until there is an open connection. Looks the name up and opens connections at once, however little time
    /// has passed since that failed.
    pub(super) async fn ready(&self) -> Result<(), Unreachable> {
        let mut changed = std::pin::pin!(self.changed.notified());
        self.lock().start(&self.look_up, self.network.fixed().is_none());
        loop {
            changed.as_mut().enable();
            {
                let state = self.lock();
                if state.entries.iter().any(Entry::is_open) {
                    return Ok(());
                }
                // A connection that has just closed is about to be opened again.
                if !state.looking && state.entries.iter().all(|entry| matches!(entry.link, Link::Down)) {
                    return Err(Unreachable);
                }
            }
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }

    /// These are the members from now on.
    fn found(self: &Arc<Self>, addresses: Vec<Uri>) {
        let mut state = self.lock();
        state.looking = false;
        // Calls that run on a connection that is let go of here come to their end.
        state.entries.retain(|entry| addresses.contains(&entry.member.at));
        for at in addresses {
            if state.entries.iter().all(|entry| entry.member.at != at) {
                let member = Arc::new(Member {
                    at,
                    calls: AtomicUsize::new(0),
                    suspect: AtomicBool::new(false),
                    open_now: Notify::new(),
                });
                state.entries.push(Entry::new(member.clone()));
                tokio::spawn(keep_open(Arc::downgrade(self), self.network.clone(), member));
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn not_found(&self) {
        self.lock().looking = false;
        self.changed.notify_waiters();
    }

    /// Whether the member is still one.
    fn opened(&self, member: &Arc<Member>, sender: SendRequest<Outgoing>) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entry(member) else { return false };
        entry.link = Link::Open(sender);
        entry.until = Instant::now();
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// How long to wait before the connection is opened again, if the member is still one.
    fn closed(&self, member: &Arc<Member>, failed: bool) -> Option<Duration> {
        let mut state = self.lock();
        let entry = state.entry(member)?;
        entry.link = if failed { Link::Down } else { Link::Opening };
        let rest = if failed { entry.fail() } else { Duration::ZERO };
        drop(state);
        self.changed.notify_waiters();
        Some(rest)
    }

    /// Whether the member is still one.
    fn opens(&self, member: &Arc<Member>) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entry(member) else { return false };
        entry.link = Link::Opening;
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn entry(&mut self, member: &Arc<Member>) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.member, member))
    }

    /// The open member with the fewest calls: one that is well before one that has failed, and another before the
    /// avoided one.
    fn choose(&mut self, avoided: Option<&Arc<Member>>) -> Option<&mut Entry> {
        if self.entries.len() < 2 {
            return self.entries.first_mut().filter(|only| only.is_open());
        }
        self.turn = (self.turn + 1) % self.entries.len();
        let mut now = None;
        let mut best = None;
        let in_turn = self.entries.iter().enumerate().cycle().skip(self.turn).take(self.entries.len());
        for (index, entry) in in_turn.filter(|(_, entry)| entry.is_open()) {
            let rests =
                entry.failures > 0 && (entry.tried || *now.get_or_insert_with(Instant::now) < entry.until);
            let is_avoided = avoided.is_some_and(|avoided| Arc::ptr_eq(avoided, &entry.member));
            let rank = (rests, is_avoided, entry.member.calls.load(Relaxed));
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, index));
            }
        }
        self.entries.get_mut(best?.1)
    }

    /// Begins whatever may lead to an open connection.
    fn start(&mut self, look_up: &Notify, is_name: bool) {
        if is_name && !self.looking {
            self.looking = true;
            look_up.notify_one();
        }
        for entry in &mut self.entries {
            if matches!(entry.link, Link::Down) {
                entry.link = Link::Opening;
                entry.member.open_now.notify_one();
            }
        }
    }
}

impl Entry {
    fn new(member: Arc<Member>) -> Self {
        let (failures, timeouts) = (0, 0);
        Self { member, link: Link::Opening, failures, timeouts, until: Instant::now(), tried: false }
    }

    fn is_open(&self) -> bool {
        matches!(&self.link, Link::Open(sender) if !sender.is_closed())
    }

    /// Counts a failure and returns how long the member rests. Calls that fail together are one failure.
    fn fail(&mut self) -> Duration {
        let now = Instant::now();
        if self.failures == 0 || now >= self.until {
            let doubled = FIRST_REST.saturating_mul(1 << self.failures.min(10));
            self.until = now + doubled.min(LONGEST_REST);
            self.failures = self.failures.saturating_add(1);
            self.member.suspect.store(true, Relaxed);
        }
        self.until - now
    }
}

impl Ticket {
    /// The member answered.
    pub(super) fn succeeded(&self) {
        if self.member.suspect.load(Relaxed)
            && let Some(entry) = self.pool.lock().entry(&self.member)
        {
            (entry.failures, entry.timeouts) = (0, 0);
            self.member.suspect.store(false, Relaxed);
        }
    }

    /// The member did not answer, or not as it should. Returns whether there is another that is well.
    pub(super) fn failed(&self) -> bool {
        self.note(|entry| {
            entry.fail();
        })
    }

    /// As [`Self::failed`], for a call whose time ran out.
    pub(super) fn timed_out(&self) -> bool {
        self.note(|entry| {
            entry.timeouts += 1;
            entry.member.suspect.store(true, Relaxed);
            if entry.timeouts >= TIMEOUTS {
                entry.fail();
            }
        })
    }

    fn note(&self, note: impl FnOnce(&mut Entry)) -> bool {
        let mut state = self.pool.lock();
        if let Some(entry) = state.entry(&self.member) {
            note(entry);
        }
        let is_well = |entry: &Entry| entry.failures == 0 && entry.is_open();
        state.entries.iter().any(|entry| !Arc::ptr_eq(&entry.member, &self.member) && is_well(entry))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.member.calls.fetch_sub(1, Relaxed);
        if self.trial
            && let Some(entry) = self.pool.lock().entry(&self.member)
        {
            entry.tried = false;
        }
    }
}

/// Looks the name up for as long as there is a pool.
async fn look_up_for(pool: Weak<Pool>, network: Arc<Network>, look_up: Arc<Notify>) {
    loop {
        let found = network.resolve().await;
        let Some(pool) = pool.upgrade() else { return };
        match found {
            // An empty answer is no reason to let go of members that may be there.
            Ok(addresses) if !addresses.is_empty() => pool.found(addresses),
            Ok(_) => pool.not_found(),
            Err(error) => {
                tracing::debug!(name = %network.authority(), %error, "can't be looked up");
                pool.not_found();
            }
        }
        drop(pool);
        tokio::select! {
            () = tokio::time::sleep(LOOK_UP) => {}
            () = look_up.notified() => {}
        }
    }
}

/// Keeps a connection open for as long as the member is one.
async fn keep_open(pool: Weak<Pool>, network: Arc<Network>, member: Arc<Member>) {
    loop {
        let failed = match network.open(member.at.clone()).await {
            Ok(Opened { sender, driver }) => {
                if !pool.upgrade().is_some_and(|pool| pool.opened(&member, sender)) {
                    return;
                }
                let since = Instant::now();
                driver.await;
                since.elapsed() < SHORT_LIFE
            }
            Err(error) => {
                tracing::debug!(at = %member.at, error, "can't connect");
                true
            }
        };
        let Some(rest) = pool.upgrade().and_then(|pool| pool.closed(&member, failed)) else { return };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = member.open_now.notified() => {}
        }
        if !pool.upgrade().is_some_and(|pool| pool.opens(&member)) {
            return;
        }
    }
}
