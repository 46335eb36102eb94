//! Calls to the services in other processes.

mod body;
mod breaker;
mod budget;
mod call;
mod network;
mod pool;

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, Uri};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::method_options::IdempotencyLevel;
use tokio::runtime::{Handle, Id};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;

use self::breaker::Breaker;
use self::budget::Budget;
use self::call::Call;
use self::network::{BoxError, Network};
use self::pool::Pool;
use crate::call::{Deadline, TraceParent};
use crate::grpc::refusal;
use crate::metrics::Metrics;

/// A transport for the adapters of `proto::client`: it connects on first use and again after a break, passes on what
/// is left of the deadline and the trace, and ends every call by its deadline.
///
/// A service that can't be reached, or breaks off in the middle of a call, answers as `UNAVAILABLE` with the reason
/// `UPSTREAM_UNAVAILABLE`, one that is too slow as `DEADLINE_EXCEEDED`.
///
/// - **Replicas.** The name is looked up again every few seconds, and at once when nobody can be reached. Each address
///   is a replica, and a call goes to the one with the fewest calls in flight, streams among them. One that fails is
///   left alone for a time that grows with each failure in a row, from 0.1 s to 1 s, and then gets one call to prove
///   itself.
/// - **Retry.** A call that no service has begun to work on is sent again, whatever it is. One that ended as
///   `UNAVAILABLE` without a reply is sent again once if its method is idempotent ([`Self::retrying`]), on another
///   replica if there is one, as far as deadline and budget reach: ten tokens, of which a repetition takes one and a
///   success gives back a tenth. A service that says that one behind it is out is not asked again, so that repetitions
///   don't multiply along the way.
/// - **Breaker.** After seven failures in a row with no replica that is well, calls are refused without being sent. One
///   a second is let through, and the first that succeeds ends it. What counts is `UNAVAILABLE` by the service itself,
///   and calls that had at least 0.1 s and got no answer.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Shared>);

struct Shared {
    network: Arc<Network>,
    /// The paths of methods that can be called twice.
    idempotent: HashSet<String>,
    breaker: Breaker,
    budget: Budget,
    /// How many times a call was sent that had been sent before.
    repeated: AtomicU64,
    /// One for each runtime: a connection that lives on another costs a wake-up there per call, and ends with it.
    pools: RwLock<Vec<(Id, Arc<Pool>)>>,
}

impl Upstream {
    /// A transport to `http://host:port`. An error says what is wrong with the address.
    pub fn new(address: &str) -> Result<Self, String> {
        Ok(Self::over(Network::tcp(address)?, HashSet::new()))
    }

    /// A transport over another network than the machine's: `connector` opens a byte stream to the host and port of
    /// the address that it is called with.
    pub fn with_connector<C>(address: &str, connector: C) -> Result<Self, String>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send,
    {
        Ok(Self::over(Network::simulated(address, connector)?, HashSet::new()))
    }

    /// Like [`Self::with_connector`], on a network with names: `resolve` finds the addresses of a host and a port, and
    /// `connector` is called with one of them at a time.
    pub fn with_network<R, F, C>(address: &str, resolve: R, connector: C) -> Result<Self, String>
    where
        R: Fn(String, u16) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send,
    {
        Ok(Self::over(Network::resolved(address, resolve, connector)?, HashSet::new()))
    }

    /// Repeats calls of the methods that `descriptors`, an encoded `FileDescriptorSet`, marks with an
    /// `idempotency_level`. Without it none are.
    #[must_use]
    pub fn retrying(self, descriptors: &[u8]) -> Self {
        Self(Arc::new(Shared::new(self.0.network.clone(), idempotent(descriptors))))
    }

    /// Shows what becomes of calls under way: how many were sent again, and whether the service is given up.
    pub fn show(&self, metrics: &Metrics) {
        let labels = || vec![("server_address", self.0.network.authority().to_string().into())];
        let shared = Arc::clone(&self.0);
        let repeated = move || shared.repeated.load(Relaxed) as f64;
        let help = "gRPC calls to other processes that were sent again, to whichever replica.";
        metrics.counter("rpc_client_repeated_calls", help, labels(), repeated);
        let shared = Arc::clone(&self.0);
        let open = move || f64::from(u8::from(shared.breaker.refuses()));
        let help = "1 while calls to this service are refused without being sent, because it is out.";
        metrics.gauge("rpc_client_breaker_open", help, labels(), open);
    }

    fn over(network: Network, idempotent: HashSet<String>) -> Self {
        Self(Arc::new(Shared::new(Arc::new(network), idempotent)))
    }
}

/// The paths of the methods that can be called twice.
fn idempotent(descriptors: &[u8]) -> HashSet<String> {
    let set = FileDescriptorSet::decode(descriptors).unwrap_or_default();
    let mut paths = HashSet::new();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                if level.is_some_and(|level| level != IdempotencyLevel::IdempotencyUnknown) {
                    paths.insert(format!("/{}.{}/{}", file.package(), service.name(), method.name()));
                }
            }
        }
    }
    paths
}

impl Shared {
    fn new(network: Arc<Network>, idempotent: HashSet<String>) -> Self {
        let (breaker, budget, pools) = (Breaker::new(), Budget::new(), RwLock::default());
        Self { network, idempotent, breaker, budget, repeated: AtomicU64::new(0), pools }
    }

    fn pool(&self) -> Arc<Pool> {
        let id = Handle::current().id();
        let of =
            |pools: &[(Id, Arc<Pool>)]| pools.iter().find(|(of, _)| *of == id).map(|(_, pool)| pool.clone());
        if let Some(pool) = of(&self.pools.read().unwrap_or_else(PoisonError::into_inner)) {
            return pool;
        }
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        of(&pools).unwrap_or_else(|| {
            let pool = Pool::new(self.network.clone());
            pools.push((id, pool.clone()));
            pool
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(self.network.authority()).finish()
    }
}

fn unavailable() -> Status {
    refusal(Code::Unavailable, UNAVAILABLE, "a service behind this one can't be reached")
}

const UNAVAILABLE: &str = "UPSTREAM_UNAVAILABLE";

impl Service<Request<Body>> for Upstream {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let deadline = request.extensions().get::<Deadline>().copied();
        if let Some(TraceParent(trace)) = request.extensions_mut().remove::<TraceParent>() {
            request.headers_mut().insert("traceparent", trace);
        }
        request.headers_mut().insert(http::header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let shared = self.0.clone();
        let pool = shared.pool();
        Box::pin(async move {
            let answer = Call::new(shared, pool, deadline).run(request).await;
            Ok(answer.unwrap_or_else(Status::into_http))
        })
    }
}

const USER_AGENT: &str = concat!("bookstore/", env!("CARGO_PKG_VERSION"));
