//! What is counted of the calls to a server, and of those to other processes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use chassis::metrics::Metrics;
use chassis::{ServerConfig, Upstream};
use futures_util::stream::{self, StreamExt};
use http::Request;
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tonic::{Code, Status};
use tower::ServiceExt;

use crate::replicas::Network;
use crate::service::{Client, Running, Test, config, descriptors, routes, safe_descriptors};
use crate::wire::Http1;

fn counting(metrics: &Metrics) -> ServerConfig {
    ServerConfig { metrics: metrics.clone(), ..config() }
}

async fn text(metrics: &Metrics) -> String {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let response = metrics.router().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// The lines that count what this family timed, without its name.
async fn counts(metrics: &Metrics, family: &str) -> Vec<String> {
    let start = format!("{family}_count");
    let text = text(metrics).await;
    text.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

async fn calls(metrics: &Metrics) -> Vec<String> {
    counts(metrics, "rpc_server_call_duration_seconds").await
}

async fn requests(metrics: &Metrics) -> Vec<String> {
    counts(metrics, "http_server_request_duration_seconds").await
}

async fn number(metrics: &Metrics, name: &str) -> String {
    let text = text(metrics).await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {text}")).to_owned()
}

/// Waits for what another thread is about to do.
async fn until<T: PartialEq>(wanted: T, mut look: impl AsyncFnMut() -> T) {
    while look().await != wanted {
        tokio::task::yield_now().await;
    }
}

fn call(protocol: &str, method: &str, code: &str, count: u32) -> String {
    format!(
        "{{rpc_system_name=\"grpc\",rpc_protocol=\"{protocol}\",rpc_method=\"{method}\",\
         rpc_response_status_code=\"{code}\"}} {count}"
    )
}

fn request(route: &str, method: &str, status: &str, count: u32) -> String {
    format!(
        "{{http_route=\"{route}\",http_request_method=\"{method}\",http_response_status_code=\"{status}\"}} {count}"
    )
}

#[tokio::test]
async fn calls_are_counted_by_protocol_method_and_code() {
    let test = Test::new().unary(async |request| match request.into_inner().as_slice() {
        b"" => Err(Status::not_found("")),
        b"panic" => panic!("on purpose"),
        bytes => Ok(bytes.to_vec()),
    });
    let metrics = Metrics::new();
    let server = Running::start(counting(&metrics), |server, port| server.grpc(port, routes(test)));
    let mut client = Client::connect(server.at).await;
    client.unary(b"a".to_vec()).await.unwrap();
    client.unary(b"a".to_vec()).await.unwrap();
    client.unary(Vec::new()).await.unwrap_err();
    client.unary(b"panic".to_vec()).await.unwrap_err();
    client.up(stream::iter([b"a".to_vec()])).await.unwrap();
    let mut late = tonic::Request::new(b"a".to_vec());
    late.metadata_mut().insert("grpc-timeout", "0n".parse().unwrap());
    assert_eq!(client.unary(late).await.unwrap_err().code(), Code::DeadlineExceeded);

    let mut web = Http1::connect(server.at).await;
    let kind = ("content-type", "application/grpc-web+proto");
    let send = async |web: &mut Http1, path: &str, timeout: &str| {
        let request = Request::post(path).header(kind.0, kind.1).header("grpc-timeout", timeout);
        web.send(request, &b"\0\0\0\0\x03\x0a\x01a"[..]).await
    };
    send(&mut web, "/test.Test/Unary", "1M").await;
    send(&mut web, "/test.Test/Unary", "soon").await;
    send(&mut web, "/test.Test/Made-up", "1M").await;
    send(&mut web, "/no.Service/Method", "1M").await;
    assert_eq!(web.get("/test.Test/Unary").await.status, 415);
    assert_eq!(web.get("/anything").await.status, 415);

    assert_eq!(
        calls(&metrics).await,
        [
            call("grpc", "test.Test/Unary", "DEADLINE_EXCEEDED", 1),
            call("grpc", "test.Test/Unary", "INTERNAL", 1),
            call("grpc", "test.Test/Unary", "NOT_FOUND", 1),
            call("grpc", "test.Test/Unary", "OK", 2),
            call("grpc", "test.Test/Up", "OK", 1),
            call("grpc-web", "_OTHER", "UNIMPLEMENTED", 2),
            call("grpc-web", "test.Test/Unary", "INVALID_ARGUMENT", 1),
            call("grpc-web", "test.Test/Unary", "OK", 1),
        ]
    );
    // What is no call is a request all the same.
    assert_eq!(requests(&metrics).await, [request("", "GET", "415", 2)]);
    assert_eq!(number(&metrics, "server_connections_open").await, "2");
    drop(client);
    until("1".to_owned(), async || number(&metrics, "server_connections_open").await).await;
    server.stop().await;
}

#[tokio::test]
async fn a_stream_lives_until_it_ends_and_is_counted_then() {
    let go_on = Arc::new(Notify::new());
    let waiting = go_on.clone();
    let test = Test::new().down(move |request| {
        let (waiting, fails) = (waiting.clone(), request.into_inner().is_empty());
        stream::iter([Ok(b"a".to_vec())]).chain(stream::once(async move {
            waiting.notified().await;
            if fails { Err(Status::aborted("")) } else { Ok(b"a".to_vec()) }
        }))
    });
    let metrics = Metrics::new();
    let server = Running::start(counting(&metrics), |server, port| server.grpc(port, routes(test)));
    let mut client = Client::connect(server.at).await;
    for (asked, code) in [(b"a".to_vec(), None), (Vec::new(), Some(Code::Aborted))] {
        let mut replies = client.down(asked).await.unwrap();
        replies.message().await.unwrap();
        assert_eq!(number(&metrics, "rpc_server_streams_live").await, "1");
        go_on.notify_one();
        let ended = loop {
            match replies.message().await {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(status) => break Some(status.code()),
            }
        };
        assert_eq!(ended, code);
        until("0".to_owned(), async || number(&metrics, "rpc_server_streams_live").await).await;
    }
    let mut left = client.down(b"a".to_vec()).await.unwrap();
    left.message().await.unwrap();
    drop(left);
    let expected =
        ["ABORTED", "CANCELLED", "OK"].map(|code| call("grpc", "test.Test/Down", code, 1)).to_vec();
    until(expected, async || calls(&metrics).await).await;
    assert_eq!(number(&metrics, "rpc_server_streams_live").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn a_caller_that_leaves_is_counted_too() {
    let began = Arc::new(Notify::new());
    let (by_call, by_request) = (began.clone(), began.clone());
    let test = Test::new().unary(move |_| {
        by_call.notify_one();
        std::future::pending()
    });
    let hang = async move || {
        by_request.notify_one();
        std::future::pending::<()>().await;
    };
    let metrics = Metrics::new();
    metrics.routes(["/hang"]);
    let router = Router::new().route("/hang", get(hang));
    let server =
        Running::start(counting(&metrics), |server, port| server.http_and_grpc(port, router, routes(test)));
    let mut client = Client::connect(server.at).await;
    let caller = tokio::spawn(async move { client.unary(Vec::new()).await });
    began.notified().await;
    caller.abort();
    let expected = vec![call("grpc", "test.Test/Unary", "CANCELLED", 1)];
    until(expected, async || calls(&metrics).await).await;

    let mut client = Http1::connect(server.at).await;
    let caller = tokio::spawn(async move { client.get("/hang").await });
    began.notified().await;
    caller.abort();
    until(vec![request("/hang", "GET", "", 1)], async || requests(&metrics).await).await;
    server.stop().await;
}

#[tokio::test]
async fn requests_are_counted_by_the_route_that_they_match() {
    let go_on = Arc::new(Notify::new());
    let waiting = go_on.clone();
    let slow = async move || {
        let rest = stream::once(async move {
            waiting.notified().await;
            Ok::<_, std::io::Error>("b")
        });
        Body::from_stream(stream::iter([Ok("a")]).chain(rest))
    };
    let metrics = Metrics::new();
    metrics.routes(["/books/{id}", "/books/first", "/files/{*rest}", "/stream", "/panic"]);
    let router = Router::new()
        .route("/books/{id}", get(async || "book").post(async || (http::StatusCode::CREATED, "")))
        .route("/books/first", get(async || "first"))
        .route("/files/{*rest}", get(async || "file"))
        .route("/panic", post(panics))
        .route("/stream", get(slow));
    let server = Running::start(counting(&metrics), |server, port| server.http(port, router));
    let mut client = Http1::connect(server.at).await;
    for path in ["/books/1", "/books/2?x=/books/first", "/books/%2Ffirst", "/books/first", "/files/a/b"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    client.send(Request::post("/books/1"), "").await;
    client.send(Request::head("/books/1"), "").await;
    client.send(Request::builder().method("BREW").uri("/books/1"), "").await;
    client.send(Request::post("/panic"), "").await;
    let asks = Request::options("/books/1").header("origin", "http://localhost:3000");
    client.send(asks.header("access-control-request-method", "GET"), "").await;
    for path in ["/", "/books", "/books/", "/books/1/2", "/nowhere", "/healthz"] {
        client.get(path).await;
    }
    let streaming = tokio::spawn(async move { client.get("/stream").await });
    until("1".to_owned(), async || number(&metrics, "http_server_streams_live").await).await;
    assert!(!requests(&metrics).await.iter().any(|line| line.contains("/stream")));
    go_on.notify_one();
    assert_eq!(streaming.await.unwrap().body, b"ab");

    let expected = vec![
        request("", "GET", "404", 5),
        request("/books/first", "GET", "200", 1),
        request("/books/{id}", "GET", "200", 3),
        request("/books/{id}", "HEAD", "200", 1),
        request("/books/{id}", "OPTIONS", "200", 1),
        request("/books/{id}", "POST", "201", 1),
        request("/books/{id}", "_OTHER", "405", 1),
        request("/files/{*rest}", "GET", "200", 1),
        request("/healthz", "GET", "200", 1),
        request("/panic", "POST", "500", 1),
        request("/stream", "GET", "200", 1),
    ];
    until(expected, async || requests(&metrics).await).await;
    server.stop().await;
}

#[tokio::test]
async fn calls_to_another_process_are_counted_when_their_replies_have_ended() {
    let test = Test::new().unary(async |request| match request.into_inner().as_slice() {
        b"" => Err(Status::not_found("")),
        bytes => Ok(bytes.to_vec()),
    });
    let test = test.down(|_| stream::iter([Ok(b"a".to_vec()), Err(Status::aborted(""))]));
    let server = Running::grpc(test);
    let metrics = Metrics::new();
    let to = |at: &str| metrics.measure_calls(Upstream::new(at).unwrap(), descriptors());
    let mut client = Client::over(to(&format!("http://{}", server.at)));
    client.unary(b"a".to_vec()).await.unwrap();
    client.unary(Vec::new()).await.unwrap_err();
    let mut replies = client.down(Vec::new()).await.unwrap();
    replies.message().await.unwrap();
    replies.message().await.unwrap_err();
    // A reply that nobody reads.
    drop(client.down(Vec::new()).await.unwrap());
    server.stop().await;
    client.unary(b"a".to_vec()).await.unwrap_err();

    assert_eq!(
        counts(&metrics, "rpc_client_call_duration_seconds").await,
        [
            call("grpc", "test.Test/Down", "ABORTED", 1),
            call("grpc", "test.Test/Down", "CANCELLED", 1),
            call("grpc", "test.Test/Unary", "NOT_FOUND", 1),
            call("grpc", "test.Test/Unary", "OK", 1),
            call("grpc", "test.Test/Unary", "UNAVAILABLE", 1),
        ]
    );
}

#[tokio::test]
async fn two_servers_with_metrics_of_their_own_do_not_mix() {
    let all = [Metrics::new(), Metrics::new()];
    let servers = all
        .each_ref()
        .map(|metrics| Running::start(counting(metrics), |s, port| s.grpc(port, routes(Test::new()))));
    let mut client = Client::connect(servers[0].at).await;
    client.unary(b"a".to_vec()).await.unwrap();
    assert_eq!(calls(&all[0]).await, [call("grpc", "test.Test/Unary", "OK", 1)]);
    assert_eq!(calls(&all[1]).await, Vec::<String>::new());
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn callers_make_no_rows_of_their_own() {
    let metrics = Metrics::new();
    metrics.routes(["/books/{id}"]);
    let router = Router::new().route("/books/{id}", get(async || "book"));
    let server = Running::start(counting(&metrics), |server, port| {
        server.http_and_grpc(port, router, routes(Test::new()))
    });
    let mut client = Http1::connect(server.at).await;
    let mut lines = 0;
    for n in 0..1_000 {
        client.get(&format!("/books/{n}")).await;
        client.get(&format!("/{n}")).await;
        client.send(Request::builder().method(format!("M{n}").as_str()).uri("/books/1"), "").await;
        let call = Request::post(format!("/test.Test/M{n}"));
        client.send(call.header("content-type", "application/grpc-web+proto"), "").await;
        if n == 0 {
            lines = text(&metrics).await.lines().count();
        }
    }
    assert_eq!(text(&metrics).await.lines().count(), lines);
    assert_eq!(calls(&metrics).await, [call("grpc-web", "_OTHER", "UNIMPLEMENTED", 1_000)]);
    server.stop().await;
}

async fn panics() {
    panic!("on purpose");
}

#[tokio::test(start_paused = true)]
async fn repeated_calls_and_services_that_are_given_up_are_shown() {
    let (network, _) = Network::of(1);
    network.refuse(1, Status::unavailable("busy"));
    let metrics = Metrics::new();
    let upstream = network.upstream().retrying(safe_descriptors());
    upstream.show(&metrics);
    let mut client = Client::over(upstream);
    let shown = async || {
        let all = ["rpc_client_repeated_calls_total", "rpc_client_breaker_open"];
        let [repeated, open] = all.map(|name| format!("{name}{{server_address=\"test:1\"}}"));
        (number(&metrics, &repeated).await, number(&metrics, &open).await)
    };
    assert_eq!(shown().await, ("0".to_owned(), "0".to_owned()));
    client.unary(b"a".to_vec()).await.unwrap_err();
    assert_eq!(shown().await, ("1".to_owned(), "0".to_owned()));
    // Four calls fail eight times, and the fourth is not sent again once the service is given up.
    for _ in 0..10 {
        client.unary(b"a".to_vec()).await.unwrap_err();
    }
    assert_eq!(shown().await, ("3".to_owned(), "1".to_owned()));
    network.answer(1);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    client.unary(b"a".to_vec()).await.unwrap();
    assert_eq!(shown().await.1, "0");
}
