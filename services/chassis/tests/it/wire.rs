//! Bytes on a socket, for what a well-behaved client doesn't do.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection on which the bytes were sent.
pub(crate) async fn sent(at: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Waits until the peer closes, and returns what came until then.
pub(crate) async fn closed(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the text has come.
pub(crate) async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    loop {
        let got = stream.read_buf(&mut bytes).await.unwrap();
        let all = String::from_utf8_lossy(&bytes).into_owned();
        if all.contains(text) {
            return all;
        }
        assert_ne!(got, 0, "closed after {all:?}");
    }
}

/// A port on which nobody listens, kept from other tests; a server can still be started on it.
pub(crate) fn held_port(ip: IpAddr) -> (Socket, SocketAddr) {
    let any = SocketAddr::new(ip, 0);
    let socket = Socket::new(Domain::for_address(any), Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&any.into()).unwrap();
    let at = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, at)
}

/// Waits until nobody listens any more.
pub(crate) async fn refused(at: SocketAddr) {
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// A reply that was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An HTTP/1.1 connection.
pub(crate) struct Http1(http1::SendRequest<Full<bytes::Bytes>>);

impl Http1 {
    pub(crate) async fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn send(
        &mut self,
        request: http::request::Builder,
        body: impl Into<bytes::Bytes>,
    ) -> Reply {
        let request: Request<_> = request.header("host", "test").body(Full::new(body.into())).unwrap();
        self.0.ready().await.unwrap();
        let response: Response<_> = self.0.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: head.status, headers: head.headers, body }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send(Request::get(path), "").await
    }
}

/// HTTP/2 by hand: nothing is acknowledged, nothing is granted.
pub(crate) struct Http2(pub(crate) TcpStream);

/// Kinds of frames (RFC 9113, 6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GO_AWAY: u8 = 7;

impl Http2 {
    pub(crate) async fn connect(at: SocketAddr) -> Self {
        let mut this = Self(sent(at, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await);
        this.write(SETTINGS, 0, 0, &[]).await;
        this
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.0.write_all(&frame(kind, flags, stream, payload)).await.unwrap();
    }

    /// Sends a whole request without a body.
    pub(crate) async fn get(&mut self, stream: u32, path: &str) {
        self.0.write_all(&get_frame(stream, path)).await.unwrap();
    }

    /// Sends requests and takes each back, all in one write; their streams are `first`, `first + 2` and so on.
    pub(crate) async fn get_and_cancel(&mut self, first: u32, count: u32, path: &str) {
        const CANCEL: [u8; 4] = [0, 0, 0, 8];
        let streams = (0..count).map(|n| first + 2 * n);
        let frames = streams.flat_map(|s| [get_frame(s, path), frame(RST_STREAM, 0, s, &CANCEL)].concat());
        self.0.write_all(&frames.collect::<Vec<_>>()).await.unwrap();
    }

    /// Reads until a frame of this kind comes on this stream, and returns its payload.
    pub(crate) async fn wait_for(&mut self, kind: u8, stream: u32) -> Vec<u8> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            if head[3] == kind && head[5..] == stream.to_be_bytes() {
                return payload;
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn get_frame(stream: u32, path: &str) -> Vec<u8> {
    // `:method: GET` and `:scheme: http` by their numbers, the rest in full (RFC 7541, 6.1 and 6.2.2).
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(1, "test"), (4, path)] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend(value.as_bytes());
    }
    const END_STREAM_AND_HEADERS: u8 = 0x5;
    frame(HEADERS, END_STREAM_AND_HEADERS, stream, &block)
}
