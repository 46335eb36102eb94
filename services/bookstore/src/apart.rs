//! Each service and each edge as a process of its own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use chassis::metrics::Measured;
use chassis::{Listener, Need, ServerConfig, Upstream};
use proto::Services;

use crate::banner;
use crate::metrics::{Metrics, MetricsArgs};
use crate::up::{bind, serve, shutdown_on_signal};

/// Where a process listens, and how. Each process puts its own default port in.
#[derive(Debug, clap::Args)]
struct Listen {
    /// Address to listen on
    #[arg(long, env = "BOOKSTORE_LISTEN", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,

    /// Port to listen on; 0 takes a free one
    #[arg(long, env = "BOOKSTORE_PORT", default_value_t = 0)]
    port: u16,

    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    server: ServerConfig,
}

impl Listen {
    fn bind(&self) -> anyhow::Result<Listener> {
        bind(self.listen, self.port, self.server.thread_count(), "--port")
    }

    fn bind_metrics(&self) -> anyhow::Result<Metrics> {
        self.metrics.bind(self.listen, self.port, &self.server)
    }
}

/// Where catalog listens.
#[derive(Debug, clap::Args)]
struct CatalogUrl {
    /// Where catalog listens
    #[arg(long, env = "BOOKSTORE_CATALOG_URL", default_value = "http://127.0.0.1:5311")]
    catalog_url: String,
}

/// Where inventory listens.
#[derive(Debug, clap::Args)]
struct InventoryUrl {
    /// Where inventory listens
    #[arg(long, env = "BOOKSTORE_INVENTORY_URL", default_value = "http://127.0.0.1:5312")]
    inventory_url: String,
}

/// Where ordering listens.
#[derive(Debug, clap::Args)]
struct OrderingUrl {
    /// Where ordering listens
    #[arg(long, env = "BOOKSTORE_ORDERING_URL", default_value = "http://127.0.0.1:5313")]
    ordering_url: String,
}

/// All three.
#[derive(Debug, clap::Args)]
struct ServiceUrls {
    #[command(flatten)]
    catalog: CatalogUrl,
    #[command(flatten)]
    inventory: InventoryUrl,
    #[command(flatten)]
    ordering: OrderingUrl,
}

impl CatalogUrl {
    /// For a process that is not ready without it.
    fn need(&self) -> anyhow::Result<Need> {
        Ok(Need::new("catalog", transport(&self.catalog_url)?))
    }

    fn connect(&self, server: &ServerConfig) -> anyhow::Result<Arc<proto::client::Catalog<Transport>>> {
        Ok(Arc::new(proto::client::Catalog::new(upstream(&self.catalog_url, server)?)))
    }
}

impl InventoryUrl {
    /// For a process that is not ready without it.
    fn need(&self) -> anyhow::Result<Need> {
        Ok(Need::new("inventory", transport(&self.inventory_url)?))
    }

    fn connect(&self, server: &ServerConfig) -> anyhow::Result<Arc<proto::client::Inventory<Transport>>> {
        Ok(Arc::new(proto::client::Inventory::new(upstream(&self.inventory_url, server)?)))
    }
}

impl OrderingUrl {
    /// For a process that is not ready without it.
    fn need(&self) -> anyhow::Result<Need> {
        Ok(Need::new("ordering", transport(&self.ordering_url)?))
    }

    fn connect(&self, server: &ServerConfig) -> anyhow::Result<Arc<proto::client::Ordering<Transport>>> {
        Ok(Arc::new(proto::client::Ordering::new(upstream(&self.ordering_url, server)?)))
    }
}

impl ServiceUrls {
    /// An edge needs them all.
    fn needs(&self) -> anyhow::Result<Vec<Need>> {
        Ok(vec![self.catalog.need()?, self.inventory.need()?, self.ordering.need()?])
    }

    fn connect(&self, server: &ServerConfig) -> anyhow::Result<Services> {
        Ok(Services {
            catalog: self.catalog.connect(server)?,
            inventory: self.inventory.connect(server)?,
            ordering: self.ordering.connect(server)?,
        })
    }
}

type Transport = Measured<Upstream>;

/// A transport whose calls are counted beside what the process serves.
fn upstream(url: &str, server: &ServerConfig) -> anyhow::Result<Transport> {
    let upstream = transport(url)?.retrying(proto::DESCRIPTOR_SET);
    upstream.show(&server.metrics);
    Ok(server.metrics.measure_calls(upstream, proto::DESCRIPTOR_SET))
}

fn transport(url: &str) -> anyhow::Result<Upstream> {
    Upstream::new(url).map_err(anyhow::Error::msg)
}

/// Settings of `bookstore catalog`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("port", |arg| arg.default_value("5311")))]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5391")))]
pub(crate) struct CatalogArgs {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    inventory: InventoryUrl,
    #[command(flatten)]
    config: catalog::Config,
}

impl CatalogArgs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let listener = self.listen.bind()?;
        let metrics = self.listen.bind_metrics()?;
        let inventory = self.inventory.connect(&self.listen.server)?;
        let shutdown = shutdown_on_signal()?;
        banner::service("catalog", listener.local_addr(), metrics.address());
        let serving = catalog::serve(listener, self.config, inventory, self.listen.server, shutdown.clone());
        serve(serving, metrics, shutdown).await
    }
}

/// Settings of `bookstore inventory`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("port", |arg| arg.default_value("5312")))]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5392")))]
pub(crate) struct InventoryArgs {
    #[command(flatten)]
    listen: Listen,

    /// Seeded books whose stock is known from the start: as many as catalog has
    #[arg(long, env = "BOOKSTORE_BOOKS", default_value_t = proto::seed::BOOKS,
        value_parser = clap::value_parser!(i32).range(1..=2_000_000))]
    books: i32,

    #[command(flatten)]
    config: inventory::Config,
}

impl InventoryArgs {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let listener = self.listen.bind()?;
        let metrics = self.listen.bind_metrics()?;
        self.config.books = self.books;
        let shutdown = shutdown_on_signal()?;
        banner::service("inventory", listener.local_addr(), metrics.address());
        let serving = inventory::serve(listener, self.config, self.listen.server, shutdown.clone());
        serve(serving, metrics, shutdown).await
    }
}

/// Settings of `bookstore ordering`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("port", |arg| arg.default_value("5313")))]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5393")))]
pub(crate) struct OrderingArgs {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    catalog: CatalogUrl,
    #[command(flatten)]
    inventory: InventoryUrl,
    #[command(flatten)]
    config: ordering::Config,
}

impl OrderingArgs {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let listener = self.listen.bind()?;
        let metrics = self.listen.bind_metrics()?;
        self.listen.server.needs = vec![self.catalog.need()?, self.inventory.need()?];
        let catalog = self.catalog.connect(&self.listen.server)?;
        let inventory = self.inventory.connect(&self.listen.server)?;
        let shutdown = shutdown_on_signal()?;
        banner::service("ordering", listener.local_addr(), metrics.address());
        let serving =
            ordering::serve(listener, self.config, catalog, inventory, self.listen.server, shutdown.clone());
        serve(serving, metrics, shutdown).await
    }
}

/// Settings of `bookstore graphql-bff`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("port", |arg| arg.default_value("5310")))]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5394")))]
pub(crate) struct GraphqlArgs {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    services: ServiceUrls,
    #[command(flatten)]
    config: graphql_bff::Config,
}

impl GraphqlArgs {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let listener = self.listen.bind()?;
        let metrics = self.listen.bind_metrics()?;
        self.listen.server.needs = self.services.needs()?;
        let services = self.services.connect(&self.listen.server)?;
        let shutdown = shutdown_on_signal()?;
        banner::graphql(listener.local_addr(), metrics.address());
        let serving =
            graphql_bff::serve(listener, self.config, services, self.listen.server, shutdown.clone());
        serve(serving, metrics, shutdown).await
    }
}

/// Settings of `bookstore rest-facade`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("port", |arg| arg.default_value("5300")))]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5395")))]
pub(crate) struct RestArgs {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    services: ServiceUrls,
    #[command(flatten)]
    config: rest_facade::Config,
}

impl RestArgs {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let listener = self.listen.bind()?;
        let metrics = self.listen.bind_metrics()?;
        self.listen.server.needs = self.services.needs()?;
        let services = self.services.connect(&self.listen.server)?;
        let shutdown = shutdown_on_signal()?;
        banner::rest(listener.local_addr(), metrics.address());
        let serving =
            rest_facade::serve(listener, self.config, services, self.listen.server, shutdown.clone());
        serve(serving, metrics, shutdown).await
    }
}
