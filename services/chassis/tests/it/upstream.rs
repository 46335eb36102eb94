//! Calls to a service in another process: what they carry, and what becomes of them when it goes away.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chassis::call::TraceParent;
use chassis::{Deadline, ServerConfig, Upstream};
use futures_util::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tonic::{Code, Request, Status};

use crate::service::{Client, Running, Test, config, end_of, reason, routes};
use crate::wire::held_port;

fn client(at: SocketAddr) -> Client<Upstream> {
    Client::over(Upstream::new(&format!("http://{at}")).unwrap())
}

fn with<E: Clone + Send + Sync + 'static>(extension: E) -> Request<Vec<u8>> {
    let mut request = Request::new(Vec::new());
    request.extensions_mut().insert(extension);
    request
}

fn assert_refused(status: &Status, code: Code, because: &str) {
    assert_eq!((status.code(), reason(status).as_str()), (code, because), "{status:?}");
}

#[tokio::test]
async fn the_deadline_and_the_trace_are_passed_on() {
    let server = Running::grpc(Test::new().unary(async |request: Request<Vec<u8>>| {
        let left = request.extensions().get::<Deadline>().unwrap().left().as_secs_f64().ceil();
        let trace = request.extensions().get::<TraceParent>();
        let trace = trace.map(|trace| trace.0.to_str().unwrap().to_owned()).unwrap_or_default();
        Ok(format!("{left} {trace}").into_bytes())
    }));
    let mut client = client(server.at);
    let reply = client.unary(with(Deadline::after(Duration::from_secs(300)))).await.unwrap();
    assert_eq!(reply, b"300 ");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let reply = client.unary(with(TraceParent(trace.parse().unwrap()))).await.unwrap();
    assert_eq!(reply, format!("10 {trace}").into_bytes());
    server.stop().await;
}

#[tokio::test]
async fn calls_go_over_the_network_that_a_connector_opens() {
    let server = Running::grpc(Test::new());
    let at = server.at;
    // A name that no machine has.
    let connector = tower::service_fn(move |to: http::Uri| async move {
        assert_eq!(to.authority().unwrap(), "shop.simulated:1");
        Ok::<_, std::io::Error>(TokioIo::new(TcpStream::connect(at).await?))
    });
    let mut client = Client::over(Upstream::with_connector("http://shop.simulated:1", connector).unwrap());
    assert_eq!(client.unary(b"a".to_vec()).await.unwrap(), b"a");
    server.stop().await;
}

#[tokio::test]
async fn a_slow_service_is_given_up_at_the_deadline() {
    let server = Running::grpc(
        Test::new()
            .unary(async |_| std::future::pending().await)
            .down(|_| stream::iter([Ok(b"a".to_vec())]).chain(stream::pending())),
    );
    let mut client = client(server.at);
    // Who of caller, channel and service notices first is chance; the answer must not be.
    for _ in 0..20 {
        let status = client.unary(with(Deadline::after(Duration::from_millis(5)))).await.unwrap_err();
        assert_refused(&status, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    }
    let status = client.unary(with(Deadline::after(Duration::ZERO))).await.unwrap_err();
    assert_refused(&status, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    let replies = client.down(with(Deadline::after(Duration::from_millis(200)))).await;
    assert_refused(&end_of(replies).await, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    server.stop().await;
}

/// A service that begins its replies and forgets them, whatever deadline the caller names; it breaks off when the task
/// is aborted.
async fn forgetful() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let answer = service_fn(async |_| {
            let message = Frame::data(Bytes::from_static(b"\0\0\0\0\x03\x0a\x01a"));
            let body = stream::iter([Ok::<_, Infallible>(message)]).chain(stream::pending());
            let response = http::Response::builder().header("content-type", "application/grpc");
            Ok::<_, Infallible>(response.body(StreamBody::new(body)).unwrap())
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
    });
    (at, serving)
}

#[tokio::test]
async fn a_reply_that_stops_coming_ends_by_the_deadline() {
    let (at, _serving) = forgetful().await;
    let mut client = client(at);
    let status = client.unary(with(Deadline::after(Duration::from_millis(50)))).await.unwrap_err();
    assert_refused(&status, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
    let replies = client.down(with(Deadline::after(Duration::from_millis(200)))).await;
    assert_refused(&end_of(replies).await, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn a_service_that_is_down_is_unavailable_until_it_is_back() {
    let (_port, at) = held_port(Ipv4Addr::LOCALHOST.into());
    let mut client = client(at);
    assert_refused(&client.unary(Vec::new()).await.unwrap_err(), Code::Unavailable, "UPSTREAM_UNAVAILABLE");
    let server = Running::on(at, config(), |server, listener| server.grpc(listener, routes(Test::new())));
    assert_eq!(client.unary(b"a".to_vec()).await.unwrap(), b"a");
    server.stop().await;
    for _ in 0..3 {
        let status = client.unary(b"a".to_vec()).await.unwrap_err();
        assert_refused(&status, Code::Unavailable, "UPSTREAM_UNAVAILABLE");
    }
    let server = Running::on(at, config(), |server, listener| server.grpc(listener, routes(Test::new())));
    assert_eq!(client.unary(b"a".to_vec()).await.unwrap(), b"a");
    server.stop().await;
}

#[tokio::test]
async fn a_service_that_breaks_off_is_unavailable() {
    // In the middle of a reply.
    let (at, serving) = forgetful().await;
    let mut replies = client(at).down(Vec::new()).await.unwrap();
    assert_eq!(replies.message().await.unwrap().unwrap(), b"a");
    serving.abort();
    assert_refused(&replies.message().await.unwrap_err(), Code::Unavailable, "UPSTREAM_UNAVAILABLE");

    // Before the reply.
    let began = Arc::new(Notify::new());
    let begins = began.clone();
    let hang = Test::new().unary(move |_| {
        begins.notify_one();
        std::future::pending()
    });
    let config = ServerConfig { grace_s: 0.05, ..config() };
    let server = Running::start(config, |server, listener| server.grpc(listener, routes(hang)));
    let mut client = client(server.at);
    let call = tokio::spawn(async move { client.unary(Vec::new()).await });
    began.notified().await;
    server.stop().await;
    assert_refused(&call.await.unwrap().unwrap_err(), Code::Unavailable, "UPSTREAM_UNAVAILABLE");
}

#[test]
fn a_connection_does_not_outlive_the_runtime_that_drives_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let serving = runtime();
    let (server, client) = serving.block_on(async {
        let server = Running::grpc(Test::new());
        let mut client = client(server.at);
        client.unary(b"a".to_vec()).await.unwrap();
        (server, client)
    });
    for _ in 0..2 {
        let mut client = client.clone();
        let reply = runtime().block_on(async move { client.unary(b"a".to_vec()).await });
        assert_eq!(reply.unwrap(), b"a");
    }
    serving.block_on(server.stop());
}

#[test]
fn an_address_of_another_form_is_refused() {
    for bad in [
        "",
        "localhost:1",
        "http://localhost",
        "https://localhost:1",
        "http://localhost:1/path",
        "http://a b:1",
    ] {
        assert!(Upstream::new(bad).is_err(), "{bad}");
    }
    for good in ["http://localhost:1", "http://[::1]:1/"] {
        assert!(Upstream::new(good).is_ok(), "{good}");
    }
}
