//! Where a process says what it does and what it costs: `/metrics` on a port of its own, never on the public one.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;

use chassis::{Listener, Server, ServerConfig, Shutdown};

use crate::up::bind;

/// The port of `/metrics`. Each process puts its own default port in.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Port of /metrics; 0 takes a free one
    #[arg(long, env = "BOOKSTORE_METRICS_PORT", default_value_t = 0)]
    metrics_port: u16,
}

impl MetricsArgs {
    /// Binds the port. A process whose own port is any free one gets a free one here too, so that two can run.
    pub(crate) fn bind(&self, listen: IpAddr, port: u16, of: &ServerConfig) -> anyhow::Result<Metrics> {
        let metrics_port = if port == 0 { 0 } else { self.metrics_port };
        let listener = bind(listen, metrics_port, NonZeroUsize::MIN, "--metrics-port")?;
        Ok(Metrics { listener, metrics: of.metrics.clone() })
    }
}

/// A bound port, not yet served.
pub(crate) struct Metrics {
    listener: Listener,
    metrics: chassis::metrics::Metrics,
}

impl Metrics {
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Serves beside the process, on a thread of its own, so that a busy server can still be read.
    pub(crate) async fn serve(self, shutdown: Shutdown) -> std::io::Result<()> {
        let config = ServerConfig { grace_s: 1.0, max_connections: 100, ..ServerConfig::default() };
        Server::new(config, shutdown).http(self.listener, self.metrics.router()).run().await
    }
}
