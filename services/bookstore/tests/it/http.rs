//! A plain HTTP client: one connection for each request, over HTTP/1.1 or HTTP/2.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tonic::transport::Channel;

/// Longer than any call of ours may take: a test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The header's text; empty when it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A request for [`open`] or [`send`].
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::new(body.into())).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The reply once its head is there.
pub(crate) async fn open(
    version: Version,
    at: SocketAddr,
    request: Request<Full<Bytes>>,
) -> Response<Incoming> {
    try_open(version, at, request).await.unwrap()
}

/// As [`open`], at a server that may not be there.
pub(crate) async fn try_open(
    version: Version,
    at: SocketAddr,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Box<dyn std::error::Error>> {
    let answer = async {
        let io = TokioIo::new(TcpStream::connect(at).await?);
        Ok(match version {
            Version::Http1 => {
                let host = HeaderValue::try_from(at.to_string())?;
                request.headers_mut().entry(HOST).or_insert(host);
                let (mut sender, connection) = conn::http1::handshake(io).await?;
                tokio::spawn(connection);
                sender.send_request(request).await?
            }
            Version::Http2 => {
                *request.uri_mut() = format!("http://{at}{}", request.uri()).parse()?;
                let (mut sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await?;
                tokio::spawn(connection);
                sender.send_request(request).await?
            }
        })
    };
    tokio::time::timeout(LIMIT, answer).await.expect("no answer")
}

/// The whole reply.
pub(crate) async fn send(version: Version, at: SocketAddr, request: Request<Full<Bytes>>) -> Reply {
    let (parts, body) = open(version, at, request).await.into_parts();
    let whole = tokio::time::timeout(LIMIT, body.collect()).await.expect("no end").unwrap();
    let trailers = whole.trailers().cloned().unwrap_or_default();
    Reply { status: parts.status.as_u16(), headers: parts.headers, body: whole.to_bytes(), trailers }
}

/// A GET over HTTP/1.1.
pub(crate) async fn get(at: SocketAddr, path: &str) -> Reply {
    send(Version::Http1, at, request("GET", path, &[], Bytes::new())).await
}

/// A POST of JSON over HTTP/1.1.
pub(crate) async fn post_json(at: SocketAddr, path: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json")];
    send(Version::Http1, at, request("POST", path, &headers, body.to_string())).await
}

/// A connection for generated clients.
pub(crate) async fn connect(at: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{at}")).unwrap().connect().await.unwrap()
}

/// A frame of gRPC or gRPC-Web around a message.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// The frames of a body: their flags and contents.
pub(crate) fn frames(mut body: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [flags, a, b, c, d, rest @ ..] = body {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        frames.push((*flags, rest[..length].to_vec()));
        body = &rest[length..];
    }
    assert!(body.is_empty(), "half a frame: {body:?}");
    frames
}
