//! Peers that take nothing of what they asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use chassis::ServerConfig;
use futures_util::stream::{self, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::service::{Client, Dropped, Running, Test, config, routes};
use crate::wire::{Http1, sent};

/// A server with a short limit, whose stream has no end, and what tells that a reader is gone.
fn endless(test: Test) -> (Running, Arc<Notify>) {
    let dropped = Arc::new(Notify::new());
    let gone = dropped.clone();
    let test = test.down(move |_| {
        let guard = Dropped(gone.clone());
        stream::repeat_with(|| Ok(vec![0; 60 << 10])).map(move |reply| {
            let _ = &guard;
            reply
        })
    });
    let config = ServerConfig { write_timeout_s: 0.2, ..config() };
    let server = Running::start(config, |server, listener| server.grpc(listener, routes(test)));
    (server, dropped)
}

/// Asks for the stream over HTTP/1.1 and reads nothing.
async fn unread_http1(at: SocketAddr) -> TcpStream {
    let head = "POST /test.Test/Down HTTP/1.1\r\nhost: test\r\ncontent-type: application/grpc-web+proto\r\n\
                content-length: 8\r\n\r\n\0\0\0\0\x03\x0a\x01a";
    sent(at, head.as_bytes()).await
}

/// Asks for the stream over HTTP/2 with windows as large as can be, and reads nothing.
async fn unread_http2(at: SocketAddr) -> TcpStream {
    const MOST: u32 = (1 << 31) - 1;
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    // INITIAL_WINDOW_SIZE, and room for the connection.
    let settings = [&4_u16.to_be_bytes()[..], &MOST.to_be_bytes()].concat();
    let room = (MOST - 65_535).to_be_bytes();
    // `:method: POST` and `:scheme: http` are known to HPACK by number; the others are literals.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(4, "/test.Test/Down"), (1, "test")] {
        head.extend([name, u8::try_from(value.len()).unwrap()]);
        head.extend(value.as_bytes());
    }
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
        for text in [name, value] {
            if text == name {
                head.push(0);
            }
            head.push(u8::try_from(text.len()).unwrap());
            head.extend(text.as_bytes());
        }
    }
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &settings),
        frame(8, 0, 0, &room),
        frame(1, 4, 1, &head),
        frame(0, 1, 1, b"\0\0\0\0\x03\x0a\x01a"),
    ];
    sent(at, &bytes.concat()).await
}

#[tokio::test]
async fn who_reads_nothing_is_cut_and_its_stream_ends() {
    let (server, dropped) = endless(Test::new());
    let peer = unread_http1(server.at).await;
    dropped.notified().await;
    drop(peer);
    let peer = unread_http2(server.at).await;
    dropped.notified().await;
    drop(peer);
    server.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_reply_is_not_cut() {
    let free = Arc::new(Notify::new());
    let wait = free.clone();
    let (server, dropped) = endless(Test::new().unary(move |_| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(b"late".to_vec())
        }
    }));
    let mut client = Client::connect(server.at).await;
    let waits = tokio::spawn(async move { client.unary(Vec::new()).await });
    // Meanwhile the time is over for another.
    let peer = unread_http1(server.at).await;
    dropped.notified().await;
    free.notify_one();
    assert_eq!(waits.await.unwrap().unwrap(), b"late");
    drop(peer);
    server.stop().await;
}

#[tokio::test]
async fn of_replies_that_nobody_reads_one_is_held_and_no_more_are_made() {
    const REPLY: usize = 32 << 20;
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let large = async move || {
        count.fetch_add(1, Ordering::SeqCst);
        vec![0_u8; REPLY]
    };
    let router = Router::new().route("/large", get(large));
    let config = ServerConfig { write_timeout_s: 0.2, max_connections: 1, ..config() };
    let server = Running::start(config, |server, listener| server.http(listener, router));
    let mut peer = sent(server.at, &b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n".repeat(50)).await;
    // There is a seat for another only once this one is cut.
    Http1::connect(server.at).await.get("/healthz").await;
    assert_eq!(made.load(Ordering::SeqCst), 1);
    let _ = peer.shutdown().await;
    server.stop().await;
}
