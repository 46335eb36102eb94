//! What happens to whom when the server is told to stop. Where nothing has to be cut, the grace time is longer than any
//! test runs.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use chassis::{Server, ServerConfig, Shutdown, Work};
use futures_util::stream::{self, StreamExt};
use http::header::{CONNECTION, UPGRADE};
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tonic::Code;

use crate::service::{Client, Running, Test, config, reason, routes};
use crate::wire::{DATA, GO_AWAY, Http1, Http2, closed, read_until, refused, sent};

/// Asks for [`take_over`] at `/take`.
pub(crate) const TAKE: &[u8] =
    b"GET /take HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// Says on the connection what it reads there, as long as the peer likes.
pub(crate) async fn take_over(request: Request<Body>) -> impl IntoResponse {
    tokio::spawn(async move {
        let mut io = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut bytes = [0; 100];
        while let Ok(n @ 1..) = io.read(&mut bytes).await {
            io.write_all(&bytes[..n]).await.unwrap();
        }
    });
    (StatusCode::SWITCHING_PROTOCOLS, [(CONNECTION, "upgrade"), (UPGRADE, "echo")])
}

/// A handler that says that it runs, and goes on when it may.
#[derive(Clone)]
struct Held {
    runs: Arc<Notify>,
    gate: Arc<Semaphore>,
}

impl Held {
    fn new() -> Self {
        Self { runs: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        self.runs.notify_one();
        let _ = self.gate.acquire().await;
    }

    /// Waits until the handler runs.
    async fn runs(&self) {
        self.runs.notified().await;
    }

    fn release(&self) {
        self.gate.add_permits(1);
    }
}

#[tokio::test]
async fn connections_without_a_call_end_at_once() {
    let server = Running::grpc(Test::new());
    let mut idle = Http1::connect(server.at).await;
    assert_eq!(idle.get("/readyz").await.status, StatusCode::OK);
    let mut idle_grpc = Client::connect(server.at).await;
    idle_grpc.unary(b"a".to_vec()).await.unwrap();
    let silent = sent(server.at, b"").await;
    let half_preface = sent(server.at, b"PRI * HT").await;
    server.stop().await;
    for stream in [silent, half_preface] {
        assert_eq!(closed(stream).await, "");
    }
}

#[tokio::test]
async fn listeners_close_while_running_calls_finish() {
    let held = Held::new();
    let (for_grpc, for_http) = (held.clone(), held.clone());
    let test = Test::new().unary(move |request| {
        let held = for_grpc.clone();
        async move {
            held.pass().await;
            Ok(request.into_inner())
        }
    });
    let wait = async move || {
        for_http.pass().await;
        "done"
    };
    let router = Router::new().route("/wait", get(wait));
    let server =
        Running::start(config(), |server, listener| server.http_and_grpc(listener, router, routes(test)));
    let (mut grpc, mut http) = (Client::connect(server.at).await, Http1::connect(server.at).await);
    let grpc = tokio::spawn(async move { grpc.unary(b"a".to_vec()).await });
    held.runs().await;
    let http = tokio::spawn(async move { http.get("/wait").await });
    held.runs().await;

    server.shutdown.begin();
    refused(server.at).await;
    held.release();
    held.release();
    assert_eq!(grpc.await.unwrap().unwrap(), b"a");
    assert_eq!(http.await.unwrap().body, b"done");
    server.end().await;
}

#[tokio::test]
async fn readiness_drops_on_connections_that_go_on() {
    let held = Held::new();
    let holding = held.clone();
    let router = Router::new().route("/wait", get(async move || holding.pass().await));
    let server = Running::start(config(), |server, listener| server.http(listener, router));
    let mut connection = Http2::connect(server.at).await;
    connection.get(1, "/wait").await;
    held.runs().await;
    connection.get(3, "/readyz").await;
    assert_eq!(connection.wait_for(DATA, 3).await, b"ready\n");
    server.shutdown.begin();
    connection.wait_for(GO_AWAY, 0).await;
    connection.get(5, "/readyz").await;
    assert_eq!(connection.wait_for(DATA, 5).await, b"shutting down\n");
    drop(connection);
    server.end().await;
}

#[tokio::test]
async fn streams_are_told_to_go_elsewhere() {
    let server =
        Running::grpc(Test::new().down(|_| stream::iter([Ok(b"a".to_vec())]).chain(stream::pending())));
    let mut client = Client::connect(server.at).await;
    let mut down = client.down(Vec::new()).await.unwrap();
    assert_eq!(down.message().await.unwrap().unwrap(), b"a");
    let mut both = client.both(stream::iter([b"b".to_vec()]).chain(stream::pending())).await.unwrap();
    assert_eq!(both.message().await.unwrap().unwrap(), b"b");
    server.stop().await;
    for mut stream in [down, both] {
        let status = stream.message().await.unwrap_err();
        assert_eq!((status.code(), reason(&status)), (Code::Unavailable, "SHUTTING_DOWN".to_owned()));
    }
}

#[tokio::test]
async fn a_stream_that_is_about_to_end_is_let_to_and_arrives_whole() {
    let server = Running::grpc(Test::new().down(|_| stream::iter((0..1000).map(|_| Ok(vec![0; 1000])))));
    let mut replies = Client::connect(server.at).await.down(Vec::new()).await.unwrap();
    replies.message().await.unwrap();
    server.shutdown.begin();
    refused(server.at).await;
    for _ in 1..1000 {
        assert!(replies.message().await.unwrap().is_some());
    }
    assert_eq!(replies.message().await.unwrap(), None);
    server.end().await;
}

#[tokio::test]
async fn who_does_not_listen_is_cut_after_the_grace_time() {
    let chunk = Bytes::from(vec![b'x'; 64 << 10]);
    let endless = async move || Body::from_stream(stream::repeat(Ok::<_, Infallible>(chunk.clone())));
    let router = Router::new().route("/endless", get(endless));
    let hang = Test::new()
        .unary(async |_| std::future::pending().await)
        .down(|_| stream::repeat(Ok(vec![0; 60_000])));
    let config = ServerConfig { grace_s: 0.2, ..config() };
    let server =
        Running::start(config, |server, listener| server.http_and_grpc(listener, router, routes(hang)));

    let half_head = sent(server.at, b"GET /healthz HTTP/1.1\r\nhost:").await;
    let mut stalled = sent(server.at, b"GET /endless HTTP/1.1\r\nhost: test\r\n\r\n").await;
    read_until(&mut stalled, "200 OK").await;
    let mut stalled_grpc = Client::connect(server.at).await.down(Vec::new()).await.unwrap();
    stalled_grpc.message().await.unwrap();
    let mut deaf = Http2::connect(server.at).await;
    deaf.get(1, "/readyz").await;
    deaf.wait_for(DATA, 1).await;
    let mut client = Client::connect(server.at).await;
    let hung = tokio::spawn(async move { client.unary(Vec::new()).await });
    server.stop().await;
    assert_eq!(closed(half_head).await, "");
    assert!(hung.await.unwrap().is_err());
}

#[tokio::test]
async fn work_that_blocks_is_not_waited_for() {
    let held = Held::new();
    let holding = held.clone();
    let block = async move || {
        let blocked = tokio::task::spawn_blocking(|| {
            loop {
                std::thread::park();
            }
        });
        holding.runs.notify_one();
        let _ = blocked.await;
    };
    let config = ServerConfig { grace_s: 0.05, ..config() };
    let router = Router::new().route("/block", get(block));
    let server = Running::start(config, |server, listener| server.http(listener, router));
    let _stream = sent(server.at, b"GET /block HTTP/1.1\r\nhost: test\r\n\r\n").await;
    held.runs().await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_was_taken_over_is_waited_for() {
    let router = Router::new().route("/take", get(take_over));
    let server = Running::start(config(), |server, listener| server.http(listener, router));
    let mut stream = sent(server.at, TAKE).await;
    read_until(&mut stream, "\r\n\r\n").await;
    server.shutdown.begin();
    refused(server.at).await;
    for _ in 0..50 {
        stream.write_all(b"still here").await.unwrap();
        read_until(&mut stream, "still here").await;
    }
    drop(stream);
    server.end().await;
}

#[tokio::test]
async fn background_work_goes_on_until_the_drain_is_over() {
    let held = Held::new();
    let holding = held.clone();
    let (ask, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asked, answering) = (ask.clone(), answer.clone());
    let work = async move {
        loop {
            asked.notified().await;
            answering.notify_one();
        }
    };
    let router = Router::new().route("/wait", get(async move || holding.pass().await));
    let server = Running::start(config(), |server, listener| server.http(listener, router).background(work));
    let mut client = Http1::connect(server.at).await;
    let call = tokio::spawn(async move { client.get("/wait").await });
    held.runs().await;
    server.shutdown.begin();
    refused(server.at).await;
    ask.notify_one();
    answer.notified().await;
    held.release();
    assert_eq!(call.await.unwrap().status, StatusCode::OK);
    server.end().await;
}

#[tokio::test]
async fn a_stream_of_an_edge_ends_with_its_last_word_only_if_it_is_cut() {
    let shutdown = Shutdown::new();
    let whole = shutdown.end(stream::iter([1, 2]), Some(9));
    assert_eq!(whole.collect::<Vec<_>>().await, [1, 2]);
    let cut = shutdown.end(stream::iter([1, 2]).chain(stream::pending()), Some(9));
    let begin = async { shutdown.begin() };
    let (items, ()) = tokio::join!(cut.collect::<Vec<_>>(), begin);
    assert_eq!(items, [1, 2, 9]);
}

#[tokio::test]
async fn a_server_without_ports_ends_too() {
    let shutdown = Shutdown::new();
    shutdown.begin();
    Server::new(config(), shutdown).run().await.unwrap();
}

#[tokio::test]
async fn a_panic_of_a_handler_costs_its_own_call_only() {
    let fail = async || -> &'static str { panic!("as the test wants it") };
    let test = Test::new()
        .unary(async |request: tonic::Request<Vec<u8>>| {
            assert!(!request.get_ref().is_empty(), "as the test wants it");
            Ok(request.into_inner())
        })
        .down(|_| stream::once(async { panic!("as the test wants it") }));
    let router = Router::new().route("/fail", get(fail));
    // A seat that a panic kept would leave none for the connection after it.
    let config = ServerConfig { max_connections: 1, ..config() };
    let server =
        Running::start(config, |server, listener| server.http_and_grpc(listener, router, routes(test)));
    {
        let mut http = Http1::connect(server.at).await;
        assert_eq!(http.get("/fail").await.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(http.get("/readyz").await.status, StatusCode::OK);
    }
    let mut client = Client::connect(server.at).await;
    let status = client.unary(Vec::new()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::Internal, "INTERNAL".to_owned()));
    let mut replies = client.down(Vec::new()).await.unwrap();
    let status = replies.message().await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::Internal, "INTERNAL".to_owned()));
    assert_eq!(client.unary(b"a".to_vec()).await.unwrap(), b"a");
    drop((client, replies));
    server.stop().await;
}

/// A server without ports that waits for this work.
fn waits_for(work: &Work, grace_s: f64) -> (Shutdown, tokio::task::JoinHandle<std::io::Result<()>>) {
    let shutdown = Shutdown::new();
    let server = Server::new(ServerConfig { grace_s, ..config() }, shutdown.clone());
    (shutdown, tokio::spawn(server.work(work.clone()).run()))
}

#[tokio::test]
async fn work_without_a_caller_is_waited_for() {
    let (work, gate) = (Work::new(), Arc::new(Semaphore::new(0)));
    let inside = gate.clone();
    let done = work.spawn(async move { inside.acquire().await.is_ok() });
    let (shutdown, mut server) = waits_for(&work, 3600.0);
    shutdown.begin();
    // Not for lack of turns.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(!server.is_finished());
    }
    gate.add_permits(1);
    assert!(done.await.unwrap());
    (&mut server).await.unwrap().unwrap();
    assert_eq!(work.running(), 0);
}

#[tokio::test]
async fn work_without_an_end_is_waited_for_as_long_as_the_grace_time() {
    let work = Work::new();
    work.spawn(std::future::pending::<()>());
    let (shutdown, server) = waits_for(&work, 0.01);
    shutdown.begin();
    server.await.unwrap().unwrap();
    assert_eq!(work.running(), 1);
}
