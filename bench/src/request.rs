//! Requests as bytes that are ready to send, in either version of HTTP.

use crate::case::Http;
use crate::hpack;
use crate::http2::{self, HEADER_BYTES, MAX_FRAME_BYTES, flag, kind};

/// Digits of an order's number in its id.
pub const ORDER_DIGITS: usize = 10;

/// What a reply must look like to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// This status.
    Status(u16),
    /// Status 200 and a body that begins with data: errors come first.
    Data,
    /// Status 200, `grpc-status: 0`, and one message.
    Grpc,
    /// Status 200, `grpc-status: 0`, and messages.
    GrpcStream,
    /// Status 200, one message and a frame of trailers that says `grpc-status: 0`.
    GrpcWeb,
    /// The same with messages.
    GrpcWebStream,
    /// Status 200 and a body of gzip.
    Gzip,
    /// Status 304 and no body.
    NotModified,
}

/// A request, whatever the version of HTTP.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method of HTTP.
    pub method: &'static str,
    /// The path with its query.
    pub path: String,
    /// The headers besides host, method, path, user agent and length.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The tag of the reply that the client has.
    pub if_none_match: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// Where in the body the number of the order stands.
    pub order_at: Option<usize>,
    /// What the reply must look like.
    pub expect: Expect,
}

/// A request as bytes.
#[derive(Debug, Clone)]
pub struct Prepared {
    first: Vec<u8>,
    later: Vec<u8>,
    /// From the end, which is where both have the same bytes.
    order_from_end: Option<usize>,
    /// Bytes of the header block's frame, in either form: where the frames of the body begin.
    heads: Option<(usize, usize)>,
    /// Bytes of the body.
    pub body_bytes: usize,
    /// What the reply must look like.
    pub expect: Expect,
}

const USER_AGENT: &str = "bookstore-compare";

impl Call {
    /// Makes the bytes for a server at `authority`.
    pub fn prepare(&self, http: Http, authority: &str) -> anyhow::Result<Prepared> {
        let order_from_end = self.order_at.map(|at| self.body.len() - at);
        let (expect, body_bytes) = (self.expect, self.body.len());
        let (first, later, heads) = match http {
            Http::One => (self.http1(authority), Vec::new(), None),
            Http::Two => {
                anyhow::ensure!(
                    body_bytes <= MAX_FRAME_BYTES || self.order_at.is_none(),
                    "an order's number must not fall between two frames"
                );
                let blocks = self.blocks(authority);
                let (first, later) = (self.http2(&blocks.first), self.http2(&blocks.later));
                (first, later, Some((HEADER_BYTES + blocks.first.len(), HEADER_BYTES + blocks.later.len())))
            }
        };
        Ok(Prepared { first, later, order_from_end, heads, body_bytes, expect })
    }

    fn http1(&self, authority: &str) -> Vec<u8> {
        let Self { method, path, .. } = self;
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: {USER_AGENT}\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(tag) = &self.if_none_match {
            head.push_str(&format!("if-none-match: {tag}\r\n"));
        }
        if *method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// As clients of each style do it: what names a resource goes into no table, the method of gRPC does.
    fn blocks(&self, authority: &str) -> hpack::Blocks {
        let length = self.body.len().to_string();
        let mut constant = vec![(":method", self.method), (":scheme", "http"), (":authority", authority)];
        let mut other = Vec::new();
        if matches!(self.expect, Expect::Grpc | Expect::GrpcStream) {
            constant.insert(2, (":path", &self.path));
        } else {
            other.push((":path", self.path.as_str()));
            if self.method != "GET" {
                other.push(("content-length", &length));
            }
        }
        if let Some(tag) = &self.if_none_match {
            other.push(("if-none-match", tag));
        }
        let regular = constant.len();
        constant.push(("user-agent", USER_AGENT));
        constant.extend(self.headers.iter().copied());
        // Fields whose names begin with a colon come before all others.
        hpack::encode(&constant, regular, &other)
    }

    fn http2(&self, block: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let end = if self.method == "GET" { flag::END_STREAM } else { 0 };
        http2::put(&mut bytes, kind::HEADERS, flag::END_HEADERS | end, 0, block);
        let mut parts = self.body.chunks(MAX_FRAME_BYTES).peekable();
        while let Some(part) = parts.next() {
            let end = if parts.peek().is_none() { flag::END_STREAM } else { 0 };
            http2::put(&mut bytes, kind::DATA, end, 0, part);
        }
        bytes
    }
}

impl Prepared {
    /// Writes the request for HTTP/1.1.
    pub fn put_http1(&self, out: &mut Vec<u8>, order: u64) {
        out.extend_from_slice(&self.first);
        self.number(out, order);
    }

    /// Writes the request for HTTP/2 on this stream, the connection's first one or a later one.
    pub fn put_http2(&self, out: &mut Vec<u8>, is_first: bool, stream: u32, order: u64) {
        let start = out.len();
        out.extend_from_slice(if is_first { &self.first } else { &self.later });
        self.number(out, order);
        let (first, later) = self.heads.unwrap_or_default();
        let head = start + if is_first { first } else { later };
        let bodies = (head..out.len()).step_by(HEADER_BYTES + MAX_FRAME_BYTES);
        for frame in std::iter::once(start).chain(bodies) {
            if let Some(place) = out.get_mut(frame + 5..frame + 9) {
                place.copy_from_slice(&stream.to_be_bytes());
            }
        }
    }

    /// Writes the same but for the frames of the body, and returns the body: what waits for room.
    pub fn put_http2_head(&self, out: &mut Vec<u8>, is_first: bool, stream: u32, order: u64) -> Vec<u8> {
        let start = out.len();
        self.put_http2(out, is_first, stream, order);
        let (first, later) = self.heads.unwrap_or_default();
        let frames = out.split_off(start + if is_first { first } else { later });
        let frames = frames.chunks(HEADER_BYTES + MAX_FRAME_BYTES);
        frames.filter_map(|frame| frame.get(HEADER_BYTES..)).collect::<Vec<_>>().concat()
    }

    fn number(&self, out: &mut [u8], order: u64) {
        let Some(from_end) = self.order_from_end else { return };
        let Some(at) = out.len().checked_sub(from_end) else { return };
        let Some(place) = out.get_mut(at..at + ORDER_DIGITS) else { return };
        let mut rest = order;
        for digit in place.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}
