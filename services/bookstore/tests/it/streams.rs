//! A reader that leaves ends the work, however many hops away: services and edges within the test, on real ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use chassis::grpc::{CallLimits, Routes};
use chassis::{Listener, Server, ServerConfig, Shutdown, Upstream};
use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use inventory::Inventory;
use proto::Services;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_client::CatalogServiceClient;
use proto::catalog::v1::catalog_service_server::CatalogServiceServer;
use proto::inventory::v1::inventory_service_server::InventoryServiceServer;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::harness::until;
use crate::http::{self, Version, connect};

/// What serves for as long as a test wants it.
struct Part {
    at: SocketAddr,
    shutdown: Shutdown,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Part {
    fn serve(add: impl FnOnce(Server, Listener, &Shutdown) -> Server) -> Self {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), NonZeroUsize::MIN).unwrap();
        let at = listener.local_addr();
        let shutdown = Shutdown::new();
        let server = Server::new(ServerConfig { threads: 1, ..ServerConfig::default() }, shutdown.clone());
        let served = tokio::spawn(add(server, listener, &shutdown).run());
        Self { at, shutdown, served }
    }

    async fn stop(self) {
        self.shutdown.begin();
        self.served.await.unwrap().unwrap();
    }
}

fn routes() -> Routes {
    Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET)
}

#[tokio::test]
async fn a_caller_that_leaves_a_stream_of_books_ends_it() {
    let inventory = Arc::new(Inventory::new(&inventory::Config::default()));
    let catalog = Arc::new(catalog::Catalog::new(&catalog::Config::default(), inventory));
    let service = CatalogServiceServer::from_arc(catalog.clone());
    let part = Part::serve(|server, listener, _| server.grpc(listener, routes().service(service)));

    let mut client = CatalogServiceClient::new(connect(part.at).await);
    let slow = pb::StreamBooksRequest { delay_ms: 60_000, limit: 0, batch_size: 0 };
    let mut books = client.stream_books(slow).await.unwrap().into_inner();
    books.message().await.unwrap().unwrap();
    assert_eq!(catalog.open_streams(), 1);
    drop(books);
    until("the stream ends", async || (catalog.open_streams() == 0).then_some(())).await;
    part.stop().await;
}

#[tokio::test]
async fn a_caller_that_dies_ends_all_its_streams() {
    let inventory = Arc::new(Inventory::new(&inventory::Config::default()));
    let catalog = Arc::new(catalog::Catalog::new(&catalog::Config::default(), inventory));
    let service = CatalogServiceServer::from_arc(catalog.clone());
    let part = Part::serve(|server, listener, _| server.grpc(listener, routes().service(service)));

    // A runtime of its own, whose connections close when it is gone.
    let at = part.at;
    let (open, opened) = oneshot::channel();
    let (die, died) = oneshot::channel::<()>();
    let caller = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = CatalogServiceClient::new(connect(at).await);
            let slow = pb::StreamBooksRequest { delay_ms: 60_000, limit: 0, batch_size: 0 };
            let books = client.stream_books(slow).await.unwrap();
            let queries = futures_util::stream::pending::<pb::SearchBooksRequest>();
            let searches = client.search_books(queries).await.unwrap();
            open.send(()).unwrap();
            died.await.unwrap();
            drop((books, searches));
        });
    });
    opened.await.unwrap();
    assert_eq!(catalog.open_streams(), 2);
    die.send(()).unwrap();
    until("both streams end", async || (catalog.open_streams() == 0).then_some(())).await;
    caller.join().unwrap();
    part.stop().await;
}

#[tokio::test]
async fn a_reader_that_leaves_an_edge_ends_the_work_behind_it() {
    let stock = Arc::new(Inventory::new(&inventory::Config::default()));
    let service = InventoryServiceServer::from_arc(stock.clone());
    let behind = Part::serve(|server, listener, _| server.grpc(listener, routes().service(service)));

    let upstream = || Upstream::new(&format!("http://{}", behind.at)).unwrap();
    let services = Services {
        catalog: Arc::new(proto::client::Catalog::new(upstream())),
        inventory: Arc::new(proto::client::Inventory::new(upstream())),
        ordering: Arc::new(proto::client::Ordering::new(upstream())),
    };
    let edge = Part::serve(|server, listener, shutdown| {
        let rest = rest_facade::router(services.clone(), &rest_facade::Config::default(), shutdown.clone());
        let graphql = graphql_bff::router(services, &graphql_bff::Config::default(), shutdown.clone());
        server.http(listener, rest.merge(graphql))
    });

    let request = http::request("GET", "/api/v1/books/1/stock/events", &[], "");
    let mut events = http::open(Version::Http1, edge.at, request).await;
    events.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(stock.watchers(), 1);
    drop(events);
    until("the watch of REST ends", async || (stock.watchers() == 0).then_some(())).await;

    let mut request = format!("ws://{}/graphql", edge.at).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "graphql-transport-ws".parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let subscribe = r#"{"id":"1","type":"subscribe","payload":{"query":"subscription { stockChanged(bookIds: [1]) { inStock } }"}}"#;
    for (say, heard) in [(r#"{"type":"connection_init"}"#, "connection_ack"), (subscribe, "1000000")] {
        socket.send(Message::text(say)).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap();
        assert!(answer.to_text().unwrap().contains(heard), "{answer}");
    }
    assert_eq!(stock.watchers(), 1);
    drop(socket);
    until("the watch of GraphQL ends", async || (stock.watchers() == 0).then_some(())).await;

    edge.stop().await;
    behind.stop().await;
}
