//! Three hosts and a network between them, all of it made up: time, chance and every byte on the wire.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use chassis::Upstream;
use chassis::grpc::{CallLimits, Routes};
use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use inventory::Inventory;
use ordering::Ordering;
use proto::catalog::v1::catalog_service_server::CatalogServiceServer;
use proto::client;
use proto::inventory::v1::inventory_service_server::InventoryServiceServer;
use proto::ordering::v1::ordering_service_server::OrderingServiceServer;
use turmoil::Sim;
use turmoil::net::{TcpListener, TcpStream};

pub(super) const SERVICES: [&str; 3] = ["inventory", "catalog", "ordering"];

/// All services have the same port, each on its own host.
const PORT: u16 = 80;

/// How long reservations are held. Short, so that they also expire in the middle of everything.
pub(super) const HELD: Duration = Duration::from_secs(8);

/// Starts the services, each on a host of its own, with nothing in it but what the suite is seeded with. A host that is
/// started again is as new.
pub(super) fn hosts(sim: &mut Sim) {
    sim.host("inventory", || async {
        let config = inventory::Config { reservation_ttl: HELD, ..Default::default() };
        let inventory = Arc::new(Inventory::new(&config));
        tokio::spawn(Arc::clone(&inventory).expire());
        serve(routes().service(InventoryServiceServer::from_arc(inventory))).await
    });
    sim.host("catalog", || async {
        let catalog = Catalog::new(&catalog::Config::default(), Arc::new(inventory()));
        serve(routes().service(CatalogServiceServer::new(catalog))).await
    });
    sim.host("ordering", || async {
        let config = ordering::Config::default();
        let ordering = Ordering::new(&config, Arc::new(catalog()), Arc::new(inventory()));
        tokio::spawn(ordering.clone().reconcile());
        serve(routes().service(OrderingServiceServer::new(ordering))).await
    });
}

fn routes() -> Routes {
    Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET)
}

/// What chassis does with a connection, without its sockets.
async fn serve(routes: Routes) -> turmoil::Result {
    let listener = TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let routes = routes.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let routes = routes.clone();
                async move { routes.answer_one(request.map(tonic::body::Body::new)).await }
            });
            let mut http2 = http2::Builder::new(TokioExecutor::new());
            http2.timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(10));
            // A connection that breaks is the network's doing.
            let _ = http2.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// The transport that runs over real networks too, on this one.
fn upstream(host: &str) -> Upstream {
    let connector = tower::service_fn(|uri: Uri| async move {
        let host = uri.host().unwrap_or_default().to_owned();
        TcpStream::connect((host, PORT)).await.map(TokioIo::new)
    });
    Upstream::with_connector(&format!("http://{host}:{PORT}"), connector).unwrap()
}

pub(super) fn inventory() -> client::Inventory<Upstream> {
    client::Inventory::new(upstream("inventory"))
}

pub(super) fn catalog() -> client::Catalog<Upstream> {
    client::Catalog::new(upstream("catalog"))
}

pub(super) fn ordering() -> client::Ordering<Upstream> {
    client::Ordering::new(upstream("ordering"))
}
