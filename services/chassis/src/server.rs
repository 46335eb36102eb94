//! Listeners, accept loops and the drain.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::Shutdown;
use crate::grpc::Routes;

/// How to listen.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerConfig {
    /// Threads that serve; each has its own runtime and its own socket on the port. 0: one per core
    #[arg(long, env = "BOOKSTORE_THREADS", default_value_t = 0)]
    pub threads: usize,
}

/// A bound port, not yet served.
#[derive(Debug)]
pub struct Listener {}

impl Listener {
    /// Binds the address once per thread. Port 0 takes a free one. A port that somebody listens on is an error.
    pub fn bind(_address: SocketAddr, _threads: NonZeroUsize) -> io::Result<Self> {
        todo!()
    }

    /// The address, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }
}

/// Everything that one process serves.
pub struct Server {}

impl Server {
    /// Serves nothing yet.
    pub fn new(_config: ServerConfig, _shutdown: Shutdown) -> Self {
        todo!()
    }

    /// Serves gRPC and gRPC-Web on this port, and `/healthz` and `/readyz`.
    pub fn grpc(self, _listener: Listener, _routes: Routes) -> Self {
        todo!()
    }

    /// Serves HTTP on this port.
    pub fn http(self, _listener: Listener, _router: axum::Router) -> Self {
        todo!()
    }

    /// Runs this beside the listeners, until it ends or everything else has.
    pub fn background(self, _task: impl Future<Output = ()> + Send + 'static) -> Self {
        todo!()
    }

    /// Serves until shutdown has begun and everything is drained, or the grace time is over.
    pub async fn run(self) -> io::Result<()> {
        let _ = Duration::ZERO;
        todo!()
    }
}
