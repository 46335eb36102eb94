//! How long a call may take, and what is left when the time is over.

use std::sync::Arc;
use std::time::Duration;

use chassis::Deadline;
use chassis::call::TraceParent;
use chassis::grpc::CallLimits;
use futures_util::stream::{self, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tonic::{Code, Request, Status};

use crate::service::{Client, Dropped, Running, Test, config, end_of, limited, reason};
use crate::wire::{closed, sent};

fn seconds(default: f64, max: f64) -> CallLimits {
    let [default_deadline, max_deadline] = [default, max].map(Duration::from_secs_f64);
    CallLimits { default_deadline, max_deadline }
}

fn serve(test: Test, limits: CallLimits) -> Running {
    Running::start(config(), |server, listener| server.grpc(listener, limited(test, limits)))
}

/// A request with this `grpc-timeout`, if any.
fn asked(timeout: &str) -> Request<Vec<u8>> {
    let mut request = Request::new(Vec::new());
    if !timeout.is_empty() {
        request.metadata_mut().insert("grpc-timeout", timeout.parse().unwrap());
    }
    request
}

/// The whole seconds that are left, rounded up; nothing without a deadline.
fn left<M>(request: &Request<M>) -> Vec<u8> {
    let left = request.extensions().get::<Deadline>().map(|deadline| deadline.left().as_secs_f64().ceil());
    left.map(|seconds| seconds.to_string()).unwrap_or_default().into_bytes()
}

fn assert_expired(status: &Status) {
    assert_eq!((status.code(), reason(status)), (Code::DeadlineExceeded, "DEADLINE_EXCEEDED".to_owned()));
}

#[tokio::test]
async fn a_call_has_the_time_it_names_within_bounds_or_else_the_default() {
    let test = Test::new()
        .unary(async |request| Ok(left(&request)))
        .down(|request| stream::iter([Ok(left(&request))]))
        .up(async |request| Ok(left(&request)));
    let server = serve(test, seconds(100.0, 1000.0));
    let mut client = Client::connect(server.at).await;
    for (timeout, unary, down) in
        [("", "100", ""), ("500S", "500", "500"), ("20000m", "20", "20"), ("99999999H", "1000", "1000")]
    {
        assert_eq!(client.unary(asked(timeout)).await.unwrap(), unary.as_bytes(), "{timeout:?}");
        let mut replies = client.down(asked(timeout)).await.unwrap();
        assert_eq!(replies.message().await.unwrap().unwrap(), down.as_bytes(), "{timeout:?}");
    }
    assert_eq!(client.up(stream::empty()).await.unwrap(), b"1000");
    server.stop().await;
}

#[tokio::test]
async fn a_timeout_that_cannot_be_read_is_refused() {
    let server = serve(Test::new(), seconds(100.0, 1000.0));
    let mut client = Client::connect(server.at).await;
    for timeout in ["10", "10x", "-1S", "123456789S", "1.5S", "S"] {
        let status = client.unary(asked(timeout)).await.unwrap_err();
        assert_eq!((status.code(), reason(&status)), (Code::InvalidArgument, "MALFORMED_REQUEST".to_owned()));
    }
    server.stop().await;
}

#[tokio::test]
async fn an_expired_call_ends_and_leaves_nothing_behind() {
    for (limits, timeout) in
        [(seconds(100.0, 1000.0), "200m"), (seconds(0.2, 1000.0), ""), (seconds(0.2, 0.2), "1H")]
    {
        let dropped = Arc::new(Notify::new());
        let (by_unary, by_down) = (dropped.clone(), dropped.clone());
        let test = Test::new()
            .unary(move |_| {
                let guard = Dropped(by_unary.clone());
                async move {
                    let _guard = guard;
                    std::future::pending().await
                }
            })
            .down_later(move |_| {
                let guard = Dropped(by_down.clone());
                async move {
                    let _guard = guard;
                    std::future::pending().await
                }
            });
        let server = serve(test, limits);
        let mut client = Client::connect(server.at).await;
        assert_expired(&client.unary(asked(timeout)).await.unwrap_err());
        dropped.notified().await;
        assert_expired(&client.down(asked(timeout)).await.map(|_| ()).unwrap_err());
        dropped.notified().await;
        server.stop().await;
    }
}

#[tokio::test]
async fn a_stream_ends_by_the_deadline_that_it_names() {
    let waits = |_| stream::iter([Ok(b"a".to_vec())]).chain(stream::pending()).boxed();
    let never_waits = |_| stream::repeat(Ok(b"a".to_vec())).boxed();
    for server in [
        serve(Test::new().down(waits), CallLimits::default()),
        serve(Test::new().down(never_waits), CallLimits::default()),
    ] {
        let replies = Client::connect(server.at).await.down(asked("200m")).await;
        assert_expired(&end_of(replies).await);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_stream_that_names_no_deadline_outlives_the_default() {
    let go = Arc::new(Notify::new());
    let gone = go.clone();
    let test = Test::new().unary(async |_| std::future::pending().await).down(move |_| {
        let go = gone.clone();
        let late = async move {
            go.notified().await;
            Ok(b"b".to_vec())
        };
        stream::iter([Ok(b"a".to_vec())]).chain(stream::once(late))
    });
    let server = serve(test, seconds(1.0, 1.0));
    let mut client = Client::connect(server.at).await;
    let mut replies = client.down(asked("")).await.unwrap();
    assert_eq!(replies.message().await.unwrap().unwrap(), b"a");
    // Began later and was given the same time.
    assert_expired(&client.unary(asked("")).await.unwrap_err());
    go.notify_one();
    assert_eq!(replies.message().await.unwrap().unwrap(), b"b");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_never_comes_whole_ends_by_the_deadline() {
    let server = serve(Test::new(), seconds(0.05, 1000.0));
    for method in ["Unary", "Down"] {
        let head = format!(
            "POST /test.Test/{method} HTTP/1.1\r\nhost: test\r\ncontent-type: application/grpc-web+proto\r\n\
             content-length: 100\r\n\r\n\0\0\0\0"
        );
        let mut stream = sent(server.at, head.as_bytes()).await;
        stream.write_all(b"\x20").await.unwrap();
        let answer = closed(stream).await;
        assert!(answer.contains("grpc-status: 4\r\n"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_trace_is_shown_to_the_handler_if_it_has_the_right_form() {
    let server = Running::grpc(Test::new().unary(async |request: Request<Vec<u8>>| {
        let trace = request.extensions().get::<TraceParent>();
        Ok(trace.map(|trace| trace.0.as_bytes().to_vec()).unwrap_or_default())
    }));
    let mut client = Client::connect(server.at).await;
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (text, shown) in [(good, good), ("nonsense", "")] {
        let mut request = Request::new(Vec::new());
        request.metadata_mut().insert("traceparent", text.parse().unwrap());
        assert_eq!(client.unary(request).await.unwrap(), shown.as_bytes());
    }
    server.stop().await;
}
