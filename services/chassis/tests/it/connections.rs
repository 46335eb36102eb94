//! Who gets a connection, for how long, and what it carries.

use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::routing::{get, post};
use chassis::{Listener, ServerConfig};
use futures_util::future::join_all;
use http::{Request, StatusCode};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tonic::Code;

use crate::service::{Client, Plain, Running, Test, config, routes};
use crate::wire::{DATA, Http1, Http2, closed, read_until, sent};

#[tokio::test]
async fn a_peer_that_sends_no_whole_head_is_gone_after_the_time_for_it() {
    let config = ServerConfig { header_timeout_s: 0.2, ..config() };
    let server = Running::start(config, |server, listener| server.grpc(listener, routes(Test::new())));
    for start in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n\r\nS",
        "GET",
        "GET /healthz HTTP/1.1\r\nhost: test\r\n",
        "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\nGET /healthz",
    ] {
        let answer = closed(sent(server.at, start.as_bytes()).await).await;
        assert_eq!(
            answer.contains("200 OK"),
            start.contains("\r\n\r\n") && start.starts_with("GET"),
            "{start:?}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn one_port_speaks_http1_http2_grpc_and_grpc_web() {
    let router = Router::new().route("/hello", get(async || "hello"));
    let server = Running::start(config(), |server, listener| {
        server.http_and_grpc(listener, router, routes(Test::new()))
    });
    let mut http1 = Http1::connect(server.at).await;
    assert_eq!(http1.get("/hello").await.body, b"hello");
    assert_eq!(http1.get("/nowhere").await.status, StatusCode::NOT_FOUND);
    assert_eq!(http1.get("/test.Test/Unary").await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let grpc = || Request::post("/test.Test/Unary").header("content-type", "application/grpc");
    assert_eq!(http1.send(grpc(), "").await.status, StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    let web = Request::post("/test.Test/Unary").header("content-type", "application/grpc-web+proto");
    assert_eq!(http1.send(web, &b"\0\0\0\0\x03\x0a\x01a"[..]).await.body[..8], *b"\0\0\0\0\x03\x0a\x01a");

    let mut grpc = Client::connect(server.at).await;
    assert_eq!(grpc.unary(b"a".to_vec()).await.unwrap(), b"a");
    let mut plain = Plain::connect(server.at).await;
    let request = Request::get("http://test/hello").body(tonic::body::Body::empty()).unwrap();
    let answer = tower::Service::call(&mut plain, request).await.unwrap();
    assert_eq!((answer.version(), answer.status()), (http::Version::HTTP_2, StatusCode::OK));
    server.stop().await;
}

#[tokio::test]
async fn grpc_is_post_only() {
    let server = Running::grpc(Test::new());
    let get = Request::get("/test.Test/Unary").header("content-type", "application/grpc-web");
    let answer = Http1::connect(server.at).await.send(get, "").await;
    assert_eq!((answer.status, answer.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "POST"));
    server.stop().await;
}

#[test]
fn a_port_that_somebody_listens_on_is_an_error() {
    let bind = |port| Listener::bind((Ipv4Addr::LOCALHOST, port).into(), NonZeroUsize::new(2).unwrap());
    let first = bind(0).unwrap();
    let second = bind(first.local_addr().port());
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(first);
}

#[tokio::test]
async fn servers_of_one_process_keep_their_settings_apart() {
    let start = |origins: &[&str]| {
        let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let config = ServerConfig { origins, ..config() };
        Running::start(config, |server, listener| server.http(listener, Router::new()))
    };
    let (one, other) = (start(&["https://shop.example"]), start(&[]));
    for (server, allowed) in [(&one, "https://shop.example"), (&other, "")] {
        let request = Request::get("/readyz").header("origin", "https://shop.example");
        let answer = Http1::connect(server.at).await.send(request, "").await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
    }
    one.stop().await;
    assert_eq!(Http1::connect(other.at).await.get("/readyz").await.status, StatusCode::OK);
    other.stop().await;
}

/// A server with one seat, and what counts the calls of `/count`.
fn one_seat(threads: usize) -> (Running, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let count = async move || counted.fetch_add(1, Ordering::SeqCst).to_string();
    let router = Router::new().route("/count", get(count)).route("/take", get(crate::drain::take_over));
    let config = ServerConfig { max_connections: 1, threads, ..config() };
    (Running::start(config, |server, listener| server.http(listener, router)), calls)
}

const COUNT: &[u8] = b"GET /count HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_connection_waits_until_another_frees_its_seat() {
    let (server, calls) = one_seat(1);
    let mut first = Http1::connect(server.at).await;
    first.get("/healthz").await;
    let second = sent(server.at, COUNT).await;
    for _ in 0..50 {
        first.get("/healthz").await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    drop(first);
    assert!(closed(second).await.contains("200 OK"));
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_was_taken_over_keeps_its_seat() {
    let (server, calls) = one_seat(1);
    let mut first = sent(server.at, crate::drain::TAKE).await;
    read_until(&mut first, "\r\n\r\n").await;
    let second = sent(server.at, COUNT).await;
    for _ in 0..50 {
        first.write_all(b"x").await.unwrap();
        read_until(&mut first, "x").await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    drop(first);
    assert!(closed(second).await.contains("200 OK"));
    server.stop().await;
}

#[tokio::test]
async fn a_thread_that_waits_for_a_connection_holds_no_seat() {
    let (server, calls) = one_seat(3);
    for _ in 0..32 {
        assert!(closed(sent(server.at, COUNT).await).await.contains("200 OK"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 32);
    server.stop().await;
}

#[tokio::test]
async fn calls_beyond_256_on_one_connection_wait() {
    let (running, mut seen) = watch::channel((0, 0));
    let (running, gate) = (Arc::new(running), Arc::new(Semaphore::new(0)));
    let opened = gate.clone();
    let server = Running::grpc(Test::new().unary(move |request| {
        let (running, gate) = (running.clone(), gate.clone());
        async move {
            running.send_modify(|(now, most)| {
                *now += 1;
                *most = (*most).max(*now);
            });
            let _ = gate.acquire().await;
            running.send_modify(|(now, _)| *now -= 1);
            Ok(request.into_inner())
        }
    }));
    let client = Client::connect(server.at).await;
    let calls = (0..300_u32).map(|n| {
        let mut client = client.clone();
        async move { assert_eq!(client.unary(n.to_be_bytes().to_vec()).await.unwrap(), n.to_be_bytes()) }
    });
    let open = async {
        seen.wait_for(|(now, _)| *now == 256).await.unwrap();
        opened.add_permits(300);
    };
    tokio::join!(join_all(calls), open);
    assert_eq!(seen.borrow().1, 256);
    server.stop().await;
}

#[tokio::test]
async fn headers_over_32_kib_are_refused_and_the_connection_lives_on() {
    let server = Running::grpc(Test::new());
    let mut client = Client::connect(server.at).await;
    for (bytes, accepted) in [(30_000, true), (40_000, false), (10, true)] {
        let mut request = tonic::Request::new(b"a".to_vec());
        request.metadata_mut().insert("x-large", "x".repeat(bytes).parse().unwrap());
        let answer = client.unary(request).await;
        assert_eq!(answer.is_ok(), accepted, "{bytes}: {answer:?}");
    }
    let mut http1 = Http1::connect(server.at).await;
    let request = Request::get("/healthz").header("x-large", "x".repeat(70_000));
    assert_eq!(http1.send(request, "").await.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    server.stop().await;
}

#[tokio::test]
async fn a_message_over_the_limit_of_a_stream_does_not_end_its_neighbours() {
    let server = Running::grpc(Test::new());
    let client = Client::connect(server.at).await;
    let calls = (0..8_usize).map(|n| {
        let mut client = client.clone();
        async move { client.unary(vec![0; n * (300 << 10)]).await.map_err(|status| status.code()) }
    });
    for (n, answer) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(
            answer.map(|message| message.len()),
            if n < 4 { Ok(n * (300 << 10)) } else { Err(Code::ResourceExhausted) }
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_reaches_a_caller_that_still_sends_its_body() {
    let refuse = async || (StatusCode::PAYLOAD_TOO_LARGE, "too large");
    let router = Router::new().route("/upload", post(refuse));
    let server = Running::start(config(), |server, listener| server.http(listener, router));
    for _ in 0..20 {
        let head = "POST /upload HTTP/1.1\r\nhost: test\r\ncontent-length: 10000000\r\n\r\n";
        let mut stream = sent(server.at, head.as_bytes()).await;
        stream.write_all(&vec![0; 10_000_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        assert!(closed(stream).await.contains("too large"));
    }
    server.stop().await;
}

/// A client that takes few bytes at a time, and lets others run in between.
struct Slow {
    stream: TcpStream,
    rests: bool,
}

impl AsyncRead for Slow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.rests = !self.rests;
        if self.rests {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut few = [0; 3000];
        let room = buf.remaining().min(few.len());
        let mut few = ReadBuf::new(&mut few[..room]);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut few);
        buf.put_slice(few.filled());
        polled
    }
}

impl AsyncWrite for Slow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Bytes that tell a lost, a doubled and a swapped piece.
fn pattern(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test]
async fn gathered_replies_arrive_whole_at_a_slow_reader() {
    let server = Running::grpc(Test::new().unary(async |request: tonic::Request<Vec<u8>>| {
        let asked: [u8; 8] = request.into_inner().try_into().unwrap();
        let (seed, length) = asked.split_at(4);
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        Ok(pattern(number(seed), usize::try_from(number(length)).unwrap()))
    }));
    // A small window of TCP makes the server's writes partial.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.at.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let stream = TcpStream::from_std(socket.into()).unwrap();
    assert!(SockRef::from(&stream).recv_buffer_size().unwrap() < 64 << 10);
    let client = Client::over(Plain::over(Slow { stream, rests: false }).await);

    for round in 0..2 {
        let calls = (0..20_u32).map(|n| {
            let mut client = client.clone();
            async move {
                // Replies of one frame, of two, and of many; then more than the kernel takes at once.
                let length =
                    if round == 0 { [10, 1000, 20_000, 300 << 10][n as usize % 4] } else { 300 << 10 };
                let seed = n + 100 * round;
                let asked = [seed.to_be_bytes(), u32::to_be_bytes(length)].concat();
                let reply = client.unary(asked).await.unwrap();
                assert!(reply == pattern(seed, length as usize), "reply {n} of {length} bytes");
            }
        });
        join_all(calls).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn calls_cancelled_at_once_leave_the_other_calls_of_the_connection_alone() {
    let router =
        Router::new().route("/wait", get(std::future::pending::<()>)).route("/hello", get(async || "hello"));
    let server = Running::start(config(), |server, listener| server.http(listener, router));
    let mut connection = Http2::connect(server.at).await;
    connection.get_and_cancel(1, 200, "/wait").await;
    connection.get(401, "/hello").await;
    assert_eq!(connection.wait_for(DATA, 401).await, b"hello");
    drop(connection);
    server.stop().await;
}
