//! The process: what it says, how it ends, and what it does when a part of it is gone.

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

use crate::harness::{LIMIT, Process, Shape, Suite, is_ready, run, until};
use crate::http::{self, Version, connect};
use crate::parity::grpc;

/// A suite in one process, with its two addresses: HTTP and gRPC.
async fn up(settings: &[&str]) -> (Process, SocketAddr, SocketAddr) {
    let mut process =
        Process::start(&[&["up", "--port=0", "--grpc-port=0", "--threads=2"], settings].concat());
    let http = process.address("REST").await;
    let grpc = process.address("gRPC ").await;
    (process, http, grpc)
}

/// So much time for running calls that only what ends by itself ends before [`LIMIT`].
const PATIENT: &str = "--grace-s=3600";

#[tokio::test]
async fn up_says_where_it_is_and_calls_to_paste() {
    let (process, http, grpc) = up(&[]).await;
    let said = process.said();
    for url in [
        format!("http://{http}/api/v1/books"),
        format!("http://{http}/graphql"),
        format!("http://{http}/docs"),
    ] {
        assert!(said.contains(&url), "{said}");
    }
    let command = |start: &str| {
        let line = said
            .lines()
            .position(|line| line.trim_start().starts_with(start))
            .unwrap_or_else(|| panic!("{said}"));
        said.lines().skip(line).take(2).map(str::trim).collect::<Vec<_>>().join(" ")
    };
    assert!(command("grpcurl").contains(&grpc.to_string()), "{said}");

    let rest = format!("curl http://{http}");
    let path = command(&format!("{rest}/api")).split_whitespace().nth(1).unwrap().to_owned();
    let reply = http::get(http, path.strip_prefix(&format!("http://{http}")).unwrap()).await;
    assert_eq!((reply.status, &reply.json()["id"]), (200, &1.into()));

    let pasted = command(&format!("{rest}/graphql"));
    let query = pasted.split_once("-d '").unwrap().1.trim_end_matches('\'');
    let reply = http::post_json(http, "/graphql", &serde_json::from_str(query).unwrap()).await.json();
    assert!(reply["data"]["book"]["title"].is_string(), "{reply}");
    assert_eq!(reply.get("errors"), None);

    let pasted = command("printf");
    let path = pasted.split_once(&http.to_string()).unwrap().1.split_whitespace().next().unwrap();
    let headers = [("content-type", "application/grpc-web+proto")];
    let body: &[u8] = &[0, 0, 0, 0, 4, 8, 1, 16, 2];
    assert!(pasted.contains(r"'\0\0\0\0\4\10\1\20\2'"), "{pasted}");
    let reply = http::send(Version::Http1, http, http::request("POST", path, &headers, body)).await;
    assert_eq!(http::frames(&reply.body).len(), 2, "{reply:?}");
}

#[tokio::test]
async fn each_process_says_what_it_is_and_where() {
    let suite = Suite::shared(Shape::Apart).await;
    let said: String = suite.processes.iter().map(Process::said).collect();
    for line in [
        format!("graphql-bff: GraphQL on http://{}/graphql", suite.graphql),
        format!("rest-facade: REST on http://{}/api/v1/books", suite.rest),
        format!("grpcurl -plaintext {} describe", suite.grpc("bookstore.catalog.v1.")),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
}

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

    let slow = catalog::StreamBooksRequest { delay_ms: 60_000, limit: 0 };
    let mut streams = Vec::new();
    for at in [http, grpc] {
        let mut client = CatalogServiceClient::new(connect(at).await);
        let mut books = client.stream_books(slow).await.unwrap().into_inner();
        books.message().await.unwrap().unwrap();
        streams.push(books);
        // An idle connection.
        client.get_book(catalog::GetBookRequest { book_id: 1 }).await.unwrap();
    }

    let mut socket = subscribe(http).await;

    process.signal(signal);

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
        self.books.send(catalog::ImportBooksRequest { book: Some(book) }).await.unwrap();
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
        assert_eq!(TcpStream::connect(at).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
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

#[tokio::test]
async fn a_port_in_use_is_told_in_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let port = at.port().to_string();
    for args in [
        &["up", "--grpc-port=0", "--port", &port][..],
        &["up", "--port=0", "--grpc-port", &port],
        &["inventory", "--port", &port],
    ] {
        let finished = run(args).await;
        assert_eq!(finished.code, 1, "{finished:?}");
        let lines: Vec<_> = finished.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{finished:?}");
        assert!(lines[0].contains(&at.to_string()) && lines[0].starts_with("bookstore: "), "{finished:?}");
        assert_eq!(finished.stdout, "", "{finished:?}");
    }
    // The other suite of the house is as much in the way.
    let suite = Suite::shared(Shape::Up).await;
    let finished = run(&["up", "--grpc-port=0", "--port", &suite.rest.port().to_string()]).await;
    assert_eq!(finished.code, 1, "{finished:?}");
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    for args in [
        &["up", "--no-such-flag"][..],
        &["no-such-command"],
        &["up", "--books=0"],
        &["up", "--port=65536"],
        &["up", "--grace-s=0"],
        &["inventory", "--reservation-ttl=-1"],
        &["--log=[", "up"],
    ] {
        let finished = run(args).await;
        assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{args:?}: {finished:?}");
        assert!(!finished.stderr.is_empty() && !finished.stderr.contains("panicked"), "{finished:?}");
    }
    let finished = run(&["ordering", "--port=0", "--catalog-url=nonsense"]).await;
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.stderr.contains("nonsense"), "{finished:?}");
}

#[tokio::test]
async fn without_a_command_it_helps_by_example() {
    let finished = run(&[]).await;
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    assert!(finished.stdout.starts_with("Examples:\n  bookstore up "), "{}", finished.stdout);
    for command in [
        "up",
        "catalog",
        "inventory",
        "ordering",
        "graphql-bff",
        "rest-facade",
        "health",
        "openapi",
        "schema",
    ] {
        let listed =
            finished.stdout.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert!(listed, "{command}: {}", finished.stdout);
        assert_eq!(run(&[command, "--help"]).await.code, 0);
    }
}

#[tokio::test]
async fn every_setting_is_also_a_variable() {
    for command in ["up", "catalog", "inventory", "ordering", "graphql-bff", "rest-facade"] {
        let help = run(&[command, "--help"]).await.stdout;
        let options = help.split_once("Options:").unwrap().1;
        let flags = options.split("\n      --").chain(options.split("\n  -")).skip(1);
        for flag in flags.filter(|flag| !flag.trim_start().starts_with(['h', '-'])) {
            let name = flag.split_whitespace().next().unwrap();
            let variable = format!("[env: BOOKSTORE_{}", name.to_uppercase().replace('-', "_"));
            assert!(flag.contains(&variable) || name == "help", "{command} --{flag}");
        }
    }
}

#[tokio::test]
async fn health_tells_by_its_exit_code() {
    let suite = Suite::shared(Shape::Up).await;
    let http = suite.rest;
    let grpc = suite.grpc("bookstore.catalog.v1.");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, code) in [
        (format!("http://{http}/readyz"), 0),
        (format!("http://{grpc}/readyz"), 0),
        (format!("grpc://{grpc}"), 0),
        (format!("grpc://{grpc}/bookstore.catalog.v1.CatalogService"), 0),
        (format!("grpc://{grpc}/no.such.Service"), 1),
        (format!("http://{http}/api/v1/nothing"), 1),
        (format!("http://{nobody}/readyz"), 1),
        (format!("grpc://{nobody}"), 1),
        (format!("ftp://{http}"), 1),
        ("nonsense".to_owned(), 1),
    ] {
        let finished = run(&["health", &url]).await;
        assert_eq!(finished.code, code, "{url}: {finished:?}");
        assert_eq!(finished.stderr.lines().count(), usize::from(code != 0), "{finished:?}");
    }
}

#[tokio::test]
async fn the_contracts_that_it_prints_are_those_in_the_tree() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (command, file) in
        [("openapi", "services/rest-facade/openapi.json"), ("schema", "graphql/schema.graphql")]
    {
        let finished = run(&[command]).await;
        assert_eq!(finished.code, 0);
        assert_eq!(finished.stdout, std::fs::read_to_string(format!("{root}/{file}")).unwrap(), "{file}");
    }
    let suite = Suite::shared(Shape::Up).await;
    assert_eq!(http::get(suite.rest, "/openapi.json").await.text(), run(&["openapi"]).await.stdout);
}

#[tokio::test]
async fn an_edge_does_without_a_service_that_died_and_finds_it_again() {
    let mut suite = Suite::start(Shape::Apart, &[]).await;
    let stock = async |at| http::get(at, "/api/v1/books/1/stock").await;
    let at = suite.grpc("bookstore.inventory.v1.");
    assert_eq!(stock(suite.rest).await.status, 200);

    suite.processes[0].signal(Signal::KILL);
    until("inventory is gone", async || (!suite.processes[0].is_running()).then_some(())).await;
    let reply = stock(suite.rest).await;
    assert_eq!((reply.status, &reply.json()["reason"]), (503, &"UPSTREAM_UNAVAILABLE".into()));
    assert_eq!(reply.header("retry-after"), "1");
    // What needs no stock is as it was, and a screen shows what there is.
    assert_eq!(http::get(suite.rest, "/api/v1/books/1").await.status, 200);
    let screen = http::get(suite.rest, "/api/v1/screens/book-detail/1").await;
    assert_eq!((screen.status, &screen.json()["stock"]), (200, &serde_json::Value::Null));
    let query = serde_json::json!({ "query": "{ book(id: 1) { title stock { inStock } } }" });
    let partial = http::post_json(suite.graphql, "/graphql", &query).await.json();
    assert!(partial["data"]["book"]["title"].is_string(), "{partial}");
    assert_eq!(partial["errors"][0]["extensions"]["reason"], "UPSTREAM_UNAVAILABLE", "{partial}");
    let order = r#"{"lines":[{"sku":"9790000000018","quantity":1}]}"#;
    let headers = [("content-type", "application/json"), ("idempotency-key", "without inventory")];
    let place = async || {
        http::send(Version::Http1, suite.rest, http::request("POST", "/api/v1/orders", &headers, order)).await
    };
    let reply = place().await;
    assert_eq!((reply.status, &reply.json()["reason"]), (503, &"UPSTREAM_UNAVAILABLE".into()));

    let port = format!("--port={}", at.port());
    let mut inventory = Process::start(&["inventory", &port, "--metrics-port=0", "--threads=2"]);
    assert_eq!(inventory.address("inventory").await, at);
    until("the edge finds it", async || (stock(suite.rest).await.status == 200).then_some(())).await;
    // The order was not placed, and can be now.
    until("ordering finds it", async || (place().await.status == 201).then_some(())).await;
}
