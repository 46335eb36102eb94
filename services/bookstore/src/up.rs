//! The whole suite in one process: a call from an edge to a service is a function call.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context as _;
use catalog::Catalog;
use chassis::grpc::{CallLimits, Routes};
use chassis::{Listener, Server, ServerConfig, Shutdown};
use inventory::Inventory;
use ordering::Ordering;
use proto::Services;
use proto::catalog::v1::catalog_service_server::CatalogServiceServer;
use proto::inventory::v1::inventory_service_server::InventoryServiceServer;
use proto::ordering::v1::ordering_service_server::OrderingServiceServer;

use crate::banner;
use crate::metrics::{Metrics, MetricsArgs};

/// Settings of `bookstore up`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("metrics_port", |arg| arg.default_value("5390")))]
pub(crate) struct Args {
    /// Address to listen on
    #[arg(long, env = "BOOKSTORE_LISTEN", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,

    /// Port of REST, GraphQL, gRPC-Web and the docs; 0 takes a free one
    #[arg(long, env = "BOOKSTORE_PORT", default_value_t = 5300)]
    port: u16,

    /// Port of gRPC; 0 takes a free one
    #[arg(long, env = "BOOKSTORE_GRPC_PORT", default_value_t = 5301)]
    grpc_port: u16,

    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    server: ServerConfig,
    #[command(flatten)]
    catalog: catalog::Config,
    #[command(flatten)]
    inventory: inventory::Config,
    #[command(flatten)]
    ordering: ordering::Config,
    #[command(flatten)]
    graphql: graphql_bff::Config,
    #[command(flatten)]
    rest: rest_facade::Config,
}

/// Runs the suite until it is told to stop.
pub(crate) async fn run(mut args: Args) -> anyhow::Result<()> {
    args.inventory.books = args.catalog.books;
    args.graphql.graphql_origins = args.server.origins.clone();
    args.graphql.metrics = args.server.metrics.clone();
    args.rest.metrics = args.server.metrics.clone();
    let threads = args.server.thread_count();
    let http = bind(args.listen, args.port, threads, "--port")?;
    let grpc = bind(args.listen, args.grpc_port, threads, "--grpc-port")?;
    let metrics = args.metrics.bind(args.listen, args.port, &args.server)?;

    let inventory = Arc::new(Inventory::new(&args.inventory));
    inventory.show(&args.server.metrics);
    let catalog = Arc::new(Catalog::new(&args.catalog, inventory.clone()));
    let ordering = Arc::new(Ordering::new(&args.ordering, catalog.clone(), inventory.clone()));
    let (work, reconcile) = (ordering.work(), Ordering::clone(&ordering).reconcile());
    let services =
        Services { catalog: catalog.clone(), inventory: inventory.clone(), ordering: ordering.clone() };

    let shutdown = shutdown_on_signal()?;
    let limit = proto::MAX_MESSAGE_BYTES;
    let routes = Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET)
        .service(CatalogServiceServer::from_arc(catalog).max_decoding_message_size(limit))
        .service(InventoryServiceServer::from_arc(inventory.clone()).max_decoding_message_size(limit))
        .service(OrderingServiceServer::from_arc(ordering).max_decoding_message_size(limit));
    let router = rest_facade::router(services.clone(), &args.rest, shutdown.clone())
        .merge(graphql_bff::router(services, &args.graphql, shutdown.clone()));

    banner::suite(http.local_addr(), grpc.local_addr(), metrics.address());
    let server = Server::new(args.server, shutdown.clone())
        .http_and_grpc(http, router, routes.clone())
        .grpc(grpc, routes)
        .background(inventory.expire())
        .background(reconcile)
        .work(work);
    serve(server.run(), metrics, shutdown).await
}

/// Begins on SIGTERM and Ctrl-C. To be called before a process says where it listens.
pub(crate) fn shutdown_on_signal() -> anyhow::Result<Shutdown> {
    Shutdown::on_signal().context("can't listen for signals")
}

/// Serves until shutdown, then drains.
pub(crate) async fn serve(
    serving: impl Future<Output = io::Result<()>>,
    metrics: Metrics,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (served, measured) = tokio::join!(serving, metrics.serve(shutdown));
    measured.context("can't serve /metrics")?;
    served.context("can't serve")
}

/// Binds a port, or says in one line why not, and which flag takes another one.
pub(crate) fn bind(listen: IpAddr, port: u16, threads: NonZeroUsize, flag: &str) -> anyhow::Result<Listener> {
    let address = SocketAddr::new(listen, port);
    Listener::bind(address, threads).with_context(|| format!("can't listen on {address} ({flag})"))
}
