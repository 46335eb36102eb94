//! Listeners, accept loops and the drain.
//!
//! One current-thread runtime per thread, each with a socket of its own on every port (`SO_REUSEPORT`), all sharing
//! the services. On such a runtime the replies of one connection leave in one write, which a work-stealing runtime
//! can't promise; it is the largest single lever on the cost of multiplexed calls.

mod connection;
mod handler;
mod needs;
mod worker;

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{Semaphore, oneshot, watch};
use tonic_health::ServingStatus;

use self::handler::Handler;
use self::needs::Missing;
pub use self::needs::Need;
use self::worker::Worker;
use crate::grpc::Routes;
use crate::metrics::{Labels, Metrics};
use crate::{Shutdown, Work};

/// How to listen.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerConfig {
    /// Threads that serve, each with its own runtime and its own socket on every port; 0 means one per core
    #[arg(long, env = "BOOKSTORE_THREADS", default_value_t = 0)]
    pub threads: usize,

    /// Seconds that running calls get to finish once the process is told to stop
    #[arg(long, env = "BOOKSTORE_GRACE_S", default_value_t = 8.0, value_parser = seconds)]
    pub grace_s: f64,

    /// Seconds a peer gets to send the head of a request, counted from when it could: from its connecting, and over
    /// HTTP/1.1 from the reply before
    #[arg(long, env = "BOOKSTORE_HEADER_TIMEOUT_S", default_value_t = 10.0, value_parser = seconds)]
    pub header_timeout_s: f64,

    /// Seconds a peer may take nothing while there is something for it; then its connection is closed
    #[arg(long, env = "BOOKSTORE_WRITE_TIMEOUT_S", default_value_t = 30.0, value_parser = seconds)]
    pub write_timeout_s: f64,

    /// Connections served at a time by one port; further ones wait
    #[arg(long, env = "BOOKSTORE_MAX_CONNECTIONS", default_value_t = 10_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub max_connections: usize,

    /// Web origins, as `scheme://host[:port]`, whose pages may call, besides pages from loopback; `*` means all
    #[arg(long, env = "BOOKSTORE_ORIGINS", value_delimiter = ',', value_parser = origin)]
    pub origins: Vec<String>,

    /// Services that this one can't do without: it is ready while all of them are.
    #[arg(skip)]
    pub needs: Vec<Need>,

    /// Where what is served is counted.
    #[arg(skip)]
    pub metrics: Metrics,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            threads: 0,
            grace_s: 8.0,
            header_timeout_s: 10.0,
            write_timeout_s: 30.0,
            max_connections: 10_000,
            origins: Vec::new(),
            needs: Vec::new(),
            metrics: Metrics::default(),
        }
    }
}

impl ServerConfig {
    /// The number of threads that serve.
    pub fn thread_count(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.threads)
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZeroUsize::MIN)
    }
}

/// A number of seconds: more than 0, at most an hour.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 3600.0 => Ok(s),
        _ => Err("must be a number of seconds, more than 0 and at most 3600".to_owned()),
    }
}

/// `*`, or an origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let is_origin = || {
        let uri: http::Uri = text.parse().ok()?;
        Some(uri.scheme().is_some() && uri.path() == "/" && uri.query().is_none())
    };
    if text == "*" || is_origin() == Some(true) {
        return Ok(text.to_owned());
    }
    Err("must be `*` or an origin of the form scheme://host[:port]".to_owned())
}

/// A bound port, not yet served.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    sockets: Vec<TcpListener>,
}

impl Listener {
    /// Binds the address once per thread. Port 0 takes a free one. A port that somebody listens on is an error.
    pub fn bind(address: SocketAddr, threads: NonZeroUsize) -> io::Result<Self> {
        // With SO_REUSEPORT a second server would share the port in silence, so one socket without it asks first.
        if address.port() != 0 {
            drop(bind(address, false)?);
        }
        let first = bind(address, true)?;
        let address = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..threads.get() {
            sockets.push(bind(address, true)?);
        }
        Ok(Self { address, sockets })
    }

    /// The address, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// Long enough for a burst of clients that connect at once.
const BACKLOG: i32 = 1024;

fn bind(address: SocketAddr, share: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Port {
    sockets: Vec<TcpListener>,
    handler: Handler,
}

/// Everything that one process serves.
pub struct Server {
    config: ServerConfig,
    shutdown: Shutdown,
    ports: Vec<Port>,
    routes: Vec<Routes>,
    background: Vec<Task>,
    work: Vec<Work>,
    missing: watch::Sender<Missing>,
}

impl Server {
    /// Serves nothing yet.
    pub fn new(config: ServerConfig, shutdown: Shutdown) -> Self {
        let (ports, routes, background, work) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (missing, _) = watch::channel(needs::at_start(&config.needs));
        Self { config, shutdown, ports, routes, background, work, missing }
    }

    /// Serves gRPC and gRPC-Web on this port, and `/healthz` and `/readyz`.
    pub fn grpc(mut self, listener: Listener, routes: Routes) -> Self {
        self.know(&routes);
        let router = self.health();
        self.port(listener, |config| Handler::grpc(routes, router, config))
    }

    /// Serves HTTP on this port, and `/healthz` and `/readyz`.
    pub fn http(self, listener: Listener, router: Router) -> Self {
        let router = router.merge(self.health());
        self.port(listener, |config| Handler::http(router, config))
    }

    /// Serves HTTP on this port, `/healthz` and `/readyz`, and gRPC-Web and gRPC under the names of the services.
    pub fn http_and_grpc(mut self, listener: Listener, router: Router, routes: Routes) -> Self {
        self.know(&routes);
        let router = router.merge(self.health());
        self.port(listener, |config| Handler::both(routes, router, config))
    }

    fn health(&self) -> Router {
        health(self.shutdown.clone(), self.missing.subscribe())
    }

    fn know(&mut self, routes: &Routes) {
        routes.count_in(&self.config.metrics);
        self.routes.push(routes.clone());
    }

    fn port(mut self, listener: Listener, handler: impl FnOnce(&ServerConfig) -> Handler) -> Self {
        self.config.metrics.routes(["/healthz", "/readyz"]);
        let handler = handler(&self.config);
        self.ports.push(Port { sockets: listener.sockets, handler });
        self
    }

    /// Runs this beside the listeners, until it ends or everything else has.
    pub fn background(mut self, task: impl Future<Output = ()> + Send + 'static) -> Self {
        self.background.push(Box::pin(task));
        self
    }

    /// Waits for this, too, before the end: as long as the grace time lasts.
    pub fn work(mut self, work: Work) -> Self {
        self.work.push(work);
        self
    }

    /// Serves until shutdown has begun and everything is drained, or the grace time is over.
    ///
    /// Begins the shutdown itself when it can't start.
    pub async fn run(self) -> io::Result<()> {
        let Self { config, shutdown, ports, routes, background, work, missing } = self;
        let mut changes = missing.subscribe();
        let at_start = *changes.borrow_and_update();
        report(&routes, at_start).await;
        let ends = start(&config, &shutdown, ports, background, &work).inspect_err(|_| shutdown.begin())?;
        let reports = async {
            while changes.changed().await.is_ok() {
                let now = *changes.borrow_and_update();
                match now {
                    Some(name) => tracing::warn!("not ready: {name} is missing"),
                    None => tracing::info!("ready"),
                }
                report(&routes, now).await;
            }
        };
        tokio::select! {
            biased;
            () = shutdown.begun() => {}
            () = async { tokio::join!(reports, needs::follow(config.needs.clone(), missing)); } => {}
        }
        for routes in &routes {
            routes.report(ServingStatus::NotServing).await;
            routes.end_streams();
        }
        for end in ends {
            // A worker that panicked says nothing; the others still drain.
            let _ = end.await;
        }
        Ok(())
    }
}

/// Starts a thread for each socket that the ports have.
fn start(
    config: &ServerConfig,
    shutdown: &Shutdown,
    ports: Vec<Port>,
    background: Vec<Task>,
    work: &[Work],
) -> io::Result<Vec<oneshot::Receiver<()>>> {
    let count = ports.iter().map(|port| port.sockets.len()).max().unwrap_or(1);
    let mut workers: Vec<_> = (0..count).map(|index| Worker::new(index, config, shutdown, work)).collect();
    for port in ports {
        let seats = Arc::new(Semaphore::new(config.max_connections));
        show_connections(&config.metrics, config.max_connections, &seats);
        for (worker, socket) in workers.iter_mut().zip(port.sockets) {
            worker.port(socket, port.handler.clone(), seats.clone());
        }
    }
    if let Some(first) = workers.first_mut() {
        first.background(background);
    }
    workers.into_iter().map(Worker::start).collect()
}

/// Shows how many of the seats are taken.
fn show_connections(metrics: &Metrics, all: usize, seats: &Arc<Semaphore>) {
    let seats = Arc::downgrade(seats);
    // A port that is closed has none.
    let taken =
        move || seats.upgrade().map_or(0, |seats| all.saturating_sub(seats.available_permits())) as f64;
    metrics.gauge("server_connections_open", "Open connections of callers.", Labels::new(), taken);
}

/// Tells those who ask for the health in gRPC.
async fn report(routes: &[Routes], missing: Missing) {
    let status = if missing.is_none() { ServingStatus::Serving } else { ServingStatus::NotServing };
    for routes in routes {
        routes.report(status).await;
    }
}

/// `/healthz`: the process answers. `/readyz`: it takes work; 503 while a service is missing that it needs, and from the
/// moment shutdown begins.
fn health(shutdown: Shutdown, missing: watch::Receiver<Missing>) -> Router {
    let ready = move || {
        let missing = *missing.borrow();
        let answer = match missing {
            _ if shutdown.has_begun() => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
            Some(name) => (StatusCode::SERVICE_UNAVAILABLE, format!("{name} is missing\n")),
            None => (StatusCode::OK, "ready\n".to_owned()),
        };
        std::future::ready(answer)
    };
    Router::new().route("/healthz", get(|| std::future::ready("ok\n"))).route("/readyz", get(ready))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parse(args: &[&str]) -> Result<ServerConfig, clap::Error> {
        let command = ServerConfig::augment_args(Command::new("server").no_binary_name(true));
        ServerConfig::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn defaults_are_the_same_with_and_without_a_command_line() {
        assert_eq!(format!("{:?}", parse(&[]).unwrap()), format!("{:?}", ServerConfig::default()));
    }

    #[test]
    fn settings_are_bounded() {
        let good =
            ["--grace-s=0.5", "--header-timeout-s=3600", "--max-connections=1", "--origins=http://a,*"];
        assert_eq!(parse(&good).unwrap().origins, ["http://a", "*"]);
        for bad in [
            "--grace-s=0",
            "--grace-s=-1",
            "--grace-s=NaN",
            "--grace-s=inf",
            "--header-timeout-s=3601",
            "--write-timeout-s=0",
            "--max-connections=0",
            "--max-connections=1000001",
            "--threads=-1",
            "--origins=shop.example",
            "--origins=http://shop.example/path",
            "--origins=http://a,",
        ] {
            assert!(parse(&[bad]).is_err(), "{bad}");
        }
    }
}
