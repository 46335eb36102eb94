//! How a process ends: at once for those who wait, in good time for those who work, and in the end for all.

use std::io::ErrorKind;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use proto::catalog::v1 as catalog;
use proto::catalog::v1::catalog_service_client::CatalogServiceClient;
use proto::common::v1::Money;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tonic::Status;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::harness::{LIMIT, Process, is_ready, run, until, up};
use crate::http::{self, Version, connect};
use crate::parity::grpc;

/// So much time for running calls that only what ends by itself ends before [`LIMIT`].
const PATIENT: &str = "--grace-s=3600";

#[tokio::test]
async fn sigterm_ends_it_whoever_is_connected() {
    ends_whoever_is_connected(Signal::TERM).await;
}

#[tokio::test]
async fn ctrl_c_ends_it_whoever_is_connected() {
    ends_whoever_is_connected(Signal::INT).await;
}

async fn ends_whoever_is_connected(signal: Signal) {
    let (mut process, http, grpc) = up(&[PATIENT]).await;

    let mut quiet = Vec::new();
    for at in [http, grpc] {
        for start in ["", "PRI * HTTP/2.0\r\n"] {
            quiet.push(send_and_wait(at, start).await);
        }
    }
    let mut idle = TcpStream::connect(http).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    idle.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");

    let request = http::request("GET", "/api/v1/books/1/stock/events", &[], "");
    let mut events = http::open(Version::Http1, http, request).await;
    events.body_mut().frame().await.unwrap().unwrap();

    let slow = catalog::StreamBooksRequest { delay_ms: 60_000, limit: 0, batch_size: 0 };
    let mut streams = Vec::new();
    for at in [http, grpc] {
        let mut client = CatalogServiceClient::new(connect(at).await);
        let mut books = client.stream_books(slow).await.unwrap().into_inner();
        books.message().await.unwrap().unwrap();
        streams.push(books);
        // An idle connection.
        client.get_book(catalog::GetBookRequest { book_id: 1 }).await.unwrap();
    }

    let mut health = HealthClient::new(connect(grpc).await);
    let mut health = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(health.message().await.unwrap().unwrap().status(), ServingStatus::Serving);

    let mut socket = subscribe(http).await;

    process.signal(signal);

    assert_eq!(health.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(grpc::refusal(&health.message().await.unwrap_err()).reason, "SHUTTING_DOWN");

    let mut last = Vec::new();
    while let Some(frame) = events.body_mut().frame().await {
        last = frame.unwrap().into_data().unwrap().to_vec();
    }
    let last = String::from_utf8(last).unwrap();
    assert!(last.contains("event: problem") && last.contains("SHUTTING_DOWN"), "{last}");
    for mut books in streams {
        let status = books.message().await.unwrap_err();
        assert_eq!(grpc::refusal(&status).reason, "SHUTTING_DOWN", "{status:?}");
    }
    let close = loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => break frame.unwrap(),
            _ => continue,
        }
    };
    assert_eq!(u16::from(close.code), 1001);
    assert_eq!(process.exit_code().await, 0, "{}", process.logged());
    assert!(!process.logged().contains("grace time is over"), "{}", process.logged());
}

/// A connection on which a peer has said this, and says no more.
async fn send_and_wait(at: SocketAddr, start: &str) -> TcpStream {
    let mut connection = TcpStream::connect(at).await.unwrap();
    connection.write_all(start.as_bytes()).await.unwrap();
    connection
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

/// A socket on which a subscription has told its first event.
async fn subscribe(at: SocketAddr) -> Socket {
    let mut request = format!("ws://{at}/graphql").into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "graphql-transport-ws".parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let query = "subscription { stockChanged(bookIds: [1]) { inStock } }";
    let subscribe = serde_json::json!({ "id": "1", "type": "subscribe", "payload": { "query": query } });
    for say in [r#"{"type":"connection_init"}"#.to_owned(), subscribe.to_string()] {
        socket.send(Message::text(say)).await.unwrap();
        socket.next().await.unwrap().unwrap();
    }
    socket
}

#[tokio::test]
async fn peers_that_stall_are_cut_when_the_grace_time_is_over() {
    // As anybody runs it: the promise is ten seconds.
    let (mut process, http, grpc) = up(&["--books=1200"]).await;
    let stalled = TcpStream::connect(http).await.unwrap();
    let ask = b"GET /api/v1/books?page_size=1000 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000);
    // Enough replies to fill every buffer on the way, which nobody empties.
    stalled.writable().await.unwrap();
    assert!(stalled.try_write(&ask).unwrap() > 1000);
    stalled.readable().await.unwrap();

    let mut silent = Vec::new();
    for at in [http, grpc] {
        // Half a request, and a client of HTTP/2 that doesn't answer when it is told to go.
        for start in ["GET /api/v1/books/1 HTTP/1.1\r\nHost: x", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            silent.push(send_and_wait(at, start).await);
        }
    }
    let upload = Upload::start(&CatalogServiceClient::new(connect(grpc).await)).await;

    process.signal(Signal::TERM);
    assert_eq!(process.exit_code().await, 0, "{}", process.logged());
    assert!(process.logged().contains("grace time is over"), "{}", process.logged());
    drop((stalled, silent, upload));
}

/// An import that goes on for as long as its caller likes.
struct Upload {
    books: mpsc::Sender<catalog::ImportBooksRequest>,
    reply: tokio::task::JoinHandle<Result<catalog::ImportBooksResponse, Status>>,
}

impl Upload {
    /// One that the server has begun with.
    async fn start(client: &CatalogServiceClient<Channel>) -> Self {
        let (books, taken) = mpsc::channel(1);
        let stream =
            futures_util::stream::unfold(taken, async |mut taken| Some((taken.recv().await?, taken)));
        let mut caller = client.clone();
        let reply =
            tokio::spawn(async move { Ok(caller.import_books(Box::pin(stream)).await?.into_inner()) });
        let upload = Self { books, reply };
        // There is room for one: with the second, the first is on its way, and a later call on the same connection is
        // answered after it has arrived.
        upload.send(1).await;
        upload.send(2).await;
        client.clone().get_book(catalog::GetBookRequest { book_id: 1 }).await.unwrap();
        upload
    }

    async fn send(&self, n: i32) {
        let price = Some(Money { amount_minor: 1, currency: "EUR".to_owned() });
        let sku = proto::seed::sku(3_000_000 + n);
        let book = catalog::CreateBookRequest { sku, title: "Late".to_owned(), author_id: 1, price };
        self.books
            .send(catalog::ImportBooksRequest { book: Some(book), ..Default::default() })
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn readiness_drops_at_once_and_running_calls_finish() {
    let (mut process, http, grpc) = up(&[PATIENT]).await;
    let upload = Upload::start(&CatalogServiceClient::new(connect(grpc).await)).await;
    let body = r#"{"orderId":"late","lines":[{"sku":"9790000000018","quantity":1}]}"#;
    let (first, rest) = body.split_at(20);
    let mut half = TcpStream::connect(http).await.unwrap();
    let head = format!(
        "POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    half.write_all(head.as_bytes()).await.unwrap();
    // The server says so when it begins to read the body.
    let mut go_on = [0; 25];
    half.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    half.write_all(first.as_bytes()).await.unwrap();

    process.signal(Signal::TERM);
    for at in [http, grpc] {
        until("nobody is let in", async || (!is_ready(at).await).then_some(())).await;
        // Each thread closes its own socket of the port.
        until("the port is closed", async || {
            TcpStream::connect(at).await.err().filter(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
        .await;
    }
    let url = format!("http://{http}/readyz");
    assert_eq!(run(&["health", &url]).await.code, 1);
    assert!(process.is_running());

    half.write_all(rest.as_bytes()).await.unwrap();
    let mut reply = String::new();
    half.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
    upload.send(3).await;
    drop(upload.books);
    assert_eq!(upload.reply.await.unwrap().unwrap().imported_count, 3);
    assert_eq!(process.exit_code().await, 0);
}

/// From the moment that it says where it listens, before anybody can have been let in.
#[tokio::test]
async fn a_signal_is_heard_from_the_start() {
    for name in ["up", "catalog", "inventory", "ordering", "graphql-bff", "rest-facade"] {
        for signal in [Signal::TERM, Signal::INT] {
            for _ in 0..5 {
                let args: &[&str] = if name == "up" { &["--grpc-port=0"] } else { &[] };
                let mut process = Process::start(&[&[name, "--port=0", PATIENT], args].concat());
                until("it says something", async || (!process.said().is_empty()).then_some(())).await;
                process.signal(signal);
                assert_eq!(process.exit_code().await, 0, "{name}: {}", process.logged());
            }
        }
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let (_process, http, grpc) = up(&["--header-timeout-s=0.2"]).await;
    for at in [http, grpc] {
        for start in ["", "GET /api/v1/books/1 HTTP/1.1\r\nHost: x", "PRI * HTTP/2.0\r\n"] {
            let mut connection = send_and_wait(at, start).await;
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(LIMIT, connection.read_to_end(&mut rest)).await;
            assert!(ended.is_ok(), "{at} {start:?}");
        }
    }
}
