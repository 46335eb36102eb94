//! Listeners, accept loops and the drain.
//!
//! One current-thread runtime per thread, each with a socket of its own on every port (`SO_REUSEPORT`), all sharing
//! the services. On such a runtime the replies of one connection leave in one write, which a work-stealing runtime
//! can't promise; it is the largest single lever on the cost of multiplexed calls.

mod connection;
mod cors;

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use self::connection::Connection;
use self::cors::Handler;
use crate::Shutdown;
use crate::grpc::Routes;
use crate::upstream;

/// How to listen.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerConfig {
    /// Threads that serve, each with its own runtime and its own socket on every port; 0 means one per core
    #[arg(long, env = "BOOKSTORE_THREADS", default_value_t = 0)]
    pub threads: usize,

    /// Seconds that running calls get to finish once the process is told to stop
    #[arg(long, env = "BOOKSTORE_GRACE_S", default_value_t = 8.0, value_parser = seconds)]
    pub grace_s: f64,

    /// Seconds a peer gets to send the head of a request, its first included
    #[arg(long, env = "BOOKSTORE_HEADER_TIMEOUT_S", default_value_t = 10.0, value_parser = seconds)]
    pub header_timeout_s: f64,

    /// Connections served at a time by one port; further ones wait
    #[arg(long, env = "BOOKSTORE_MAX_CONNECTIONS", default_value_t = 10_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub max_connections: usize,

    /// Web origins, as `scheme://host[:port]`, whose pages may call, besides pages from loopback; `*` means all
    #[arg(long, env = "BOOKSTORE_ORIGINS", value_delimiter = ',')]
    pub origins: Vec<String>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            threads: 0,
            grace_s: 8.0,
            header_timeout_s: 10.0,
            max_connections: 10_000,
            origins: Vec::new(),
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
    connections: Arc<Semaphore>,
}

/// Everything that one process serves.
pub struct Server {
    config: ServerConfig,
    shutdown: Shutdown,
    ports: Vec<Port>,
    routes: Vec<Routes>,
    background: Vec<Task>,
}

impl Server {
    /// Serves nothing yet.
    pub fn new(config: ServerConfig, shutdown: Shutdown) -> Self {
        Self { config, shutdown, ports: Vec::new(), routes: Vec::new(), background: Vec::new() }
    }

    /// Serves gRPC and gRPC-Web on this port, and `/healthz` and `/readyz`.
    pub fn grpc(self, listener: Listener, routes: Routes) -> Self {
        let router = health(&self.shutdown);
        self.routes(&routes).port(listener, |origins| Handler::grpc(routes, router, origins))
    }

    /// Serves HTTP on this port, and `/healthz` and `/readyz`.
    pub fn http(self, listener: Listener, router: Router) -> Self {
        let router = router.merge(health(&self.shutdown));
        self.port(listener, |origins| Handler::http(router, origins))
    }

    /// Serves HTTP on this port, `/healthz` and `/readyz`, and gRPC-Web and gRPC under the names of the services.
    pub fn http_and_grpc(self, listener: Listener, router: Router, routes: Routes) -> Self {
        let router = router.merge(health(&self.shutdown));
        self.routes(&routes).port(listener, |origins| Handler::both(routes, router, origins))
    }

    /// Runs this beside the listeners, until it ends or everything else has.
    pub fn background(mut self, task: impl Future<Output = ()> + Send + 'static) -> Self {
        self.background.push(Box::pin(task));
        self
    }

    /// Serves until shutdown has begun and everything is drained, or the grace time is over.
    pub async fn run(self) -> io::Result<()> {
        for routes in &self.routes {
            routes.report_serving().await;
        }
        let count = self.ports.iter().map(|port| port.sockets.len()).max().unwrap_or(1);
        let mut workers: Vec<Worker> =
            (0..count).map(|index| Worker::new(index, &self.config, &self.shutdown)).collect();
        for port in self.ports {
            for (worker, socket) in workers.iter_mut().zip(port.sockets) {
                worker.ports.push((socket, port.handler.clone(), port.connections.clone()));
            }
        }
        if let Some(first) = workers.first_mut() {
            first.background = self.background;
        }
        let mut ends = Vec::new();
        for worker in workers {
            ends.push(worker.start()?);
        }
        self.shutdown.begun().await;
        for routes in &self.routes {
            routes.report_not_serving().await;
        }
        for end in ends {
            // A worker that panicked says nothing; the others still drain.
            let _ = end.await;
        }
        Ok(())
    }

    fn routes(mut self, routes: &Routes) -> Self {
        self.routes.push(routes.clone());
        self
    }

    fn port(mut self, listener: Listener, handler: impl FnOnce(&[String]) -> Handler) -> Self {
        let connections = Arc::new(Semaphore::new(self.config.max_connections));
        let handler = handler(&self.config.origins);
        self.ports.push(Port { sockets: listener.sockets, handler, connections });
        self
    }
}

/// `/healthz`: the process answers. `/readyz`: it takes work; 503 from the moment shutdown begins.
fn health(shutdown: &Shutdown) -> Router {
    use axum::http::StatusCode;
    let shutdown = shutdown.clone();
    let ready = move || {
        let gone = shutdown.has_begun();
        let answer = if gone {
            (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
        } else {
            (StatusCode::OK, "ready\n")
        };
        std::future::ready(answer)
    };
    Router::new().route("/healthz", get(|| std::future::ready("ok\n"))).route("/readyz", get(ready))
}

/// One thread with its runtime.
struct Worker {
    index: usize,
    grace: Duration,
    header_timeout: Duration,
    shutdown: Shutdown,
    ports: Vec<(TcpListener, Handler, Arc<Semaphore>)>,
    background: Vec<Task>,
}

impl Worker {
    fn new(index: usize, config: &ServerConfig, shutdown: &Shutdown) -> Self {
        Self {
            index,
            grace: Duration::from_secs_f64(config.grace_s),
            header_timeout: Duration::from_secs_f64(config.header_timeout_s),
            shutdown: shutdown.clone(),
            ports: Vec::new(),
            background: Vec::new(),
        }
    }

    /// Starts the thread. The receiver hears when everything is drained or cut.
    fn start(self) -> io::Result<oneshot::Receiver<()>> {
        let (done, end) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name(format!("serve-{}", self.index)).spawn(move || {
            upstream::name_this_thread(self.index);
            runtime.block_on(self.serve());
            // What is left of the connections ends here.
            drop(runtime);
            let _ = done.send(());
        })?;
        Ok(end)
    }

    async fn serve(self) {
        let connections = TaskTracker::new();
        let background: Vec<_> = self.background.into_iter().map(tokio::spawn).collect();
        for (socket, handler, permits) in self.ports {
            let accept = Accept {
                handler,
                permits,
                shutdown: self.shutdown.clone(),
                connections: connections.clone(),
                header_timeout: self.header_timeout,
            };
            tokio::spawn(accept.run(socket));
        }
        self.shutdown.begun().await;
        connections.close();
        let drained = async {
            connections.wait().await;
            self.shutdown.idle().await;
        };
        if tokio::time::timeout(self.grace, drained).await.is_err() {
            tracing::warn!(connections = connections.len(), "grace time is over, connections are cut");
        }
        for task in background {
            task.abort();
        }
    }
}

/// The accept loop of one socket.
struct Accept {
    handler: Handler,
    permits: Arc<Semaphore>,
    shutdown: Shutdown,
    connections: TaskTracker,
    header_timeout: Duration,
}

impl Accept {
    async fn run(self, socket: TcpListener) {
        let listener = match tokio::net::TcpListener::from_std(socket) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "can't listen"),
        };
        let builder = self.builder();
        loop {
            let next = async {
                let permit = self.permits.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = self.shutdown.begun() => return,
                next = next => next,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: give connections time to end instead of spinning.
                    tracing::warn!(%error, "can't accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            // Without it a reply in two writes waits for the peer's delayed acknowledgement: 40 ms.
            let _ = stream.set_nodelay(true);
            let io = TokioIo::new(Connection::new(stream, self.header_timeout));
            let (builder, handler, shutdown) = (builder.clone(), self.handler.clone(), self.shutdown.clone());
            self.connections.spawn(async move {
                let connection = builder.serve_connection_with_upgrades(io, handler);
                tokio::pin!(connection);
                let result = tokio::select! {
                    result = connection.as_mut() => result,
                    () = shutdown.begun() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended");
                }
                drop(permit);
            });
        }
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(64 << 10);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .max_concurrent_streams(256)
            .max_header_list_size(32 << 10)
            .max_local_error_reset_streams(1024)
            // Static windows: the adaptive one starts at 64 KiB and makes large replies slower.
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20);
        builder
    }
}
