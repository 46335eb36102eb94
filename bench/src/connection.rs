//! One connection of the load client: requests out, replies in, every byte counted.

mod two;

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use self::two::Two;
use crate::case::Http;
use crate::http1;
use crate::request::{Expect, Prepared};

/// Which request a reply is for: the client, and the place among the requests of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The client.
    pub client: u32,
    /// Which of the operation's requests.
    pub part: u32,
}

/// A reply.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status of HTTP; 0 when none came.
    pub status: u16,
    /// `grpc-status`, in headers or trailers.
    pub grpc_status: Option<u16>,
    /// The body in one piece.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// Says what is wrong with the reply, as far as that is seen without decoding it.
    pub fn check(&self, expect: Expect) -> Result<(), String> {
        let status = match expect {
            Expect::Status(status) => status,
            Expect::NotModified => 304,
            _ => 200,
        };
        if self.status != status {
            return Err(format!("status {} instead of {status}: {}", self.status, excerpt(self.body)));
        }
        match expect {
            Expect::Status(_) => Ok(()),
            Expect::Data if self.body.starts_with(b"{\"data\":{") => Ok(()),
            Expect::Data => Err(format!("errors: {}", excerpt(self.body))),
            Expect::NotModified if self.body.is_empty() => Ok(()),
            Expect::NotModified => Err(format!("a body: {}", excerpt(self.body))),
            Expect::Gzip if self.body.starts_with(&[0x1f, 0x8b]) => Ok(()),
            Expect::Gzip => Err(format!("not gzip: {}", excerpt(self.body))),
            Expect::Grpc | Expect::GrpcStream => match self.grpc_status {
                Some(0) => messages(self.body, expect == Expect::Grpc)
                    .filter(|rest| rest.is_empty())
                    .map(drop)
                    .ok_or_else(|| framing(self.body)),
                Some(status) => Err(format!("grpc-status {status}")),
                None => Err("no grpc-status".to_owned()),
            },
            Expect::GrpcWeb | Expect::GrpcWebStream => {
                let trailers = messages(self.body, expect == Expect::GrpcWeb);
                grpc_web_trailers(trailers.ok_or_else(|| framing(self.body))?)
            }
        }
    }
}

/// What follows the first message, or with a stream all of them; none when there is no message.
fn messages(body: &[u8], is_one: bool) -> Option<&[u8]> {
    let mut rest = one_message(body)?;
    while !is_one && rest.first() == Some(&0) {
        rest = one_message(rest)?;
    }
    Some(rest)
}

/// What follows the first message.
fn one_message(body: &[u8]) -> Option<&[u8]> {
    let (&[flags, a, b, c, d], rest) = body.split_first_chunk::<5>()?;
    (flags == 0).then(|| rest.get(u32::from_be_bytes([a, b, c, d]) as usize..)).flatten()
}

fn framing(body: &[u8]) -> String {
    format!("not the messages that were to come: {}", excerpt(body))
}

fn grpc_web_trailers(frame: &[u8]) -> Result<(), String> {
    let Some((&[0x80, a, b, c, d], text)) = frame.split_first_chunk::<5>() else {
        return Err("no frame of trailers".to_owned());
    };
    if text.len() != u32::from_be_bytes([a, b, c, d]) as usize {
        return Err("a frame of trailers of another length".to_owned());
    }
    for line in text.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"grpc-status") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            return if value == b"0" { Ok(()) } else { Err(format!("grpc-status {}", excerpt(value))) };
        }
    }
    Err("no grpc-status in the trailers".to_owned())
}

/// The start of a body, for people.
pub fn excerpt(body: &[u8]) -> String {
    let start = body.get(..300).unwrap_or(body);
    String::from_utf8_lossy(start).chars().map(|c| if c.is_control() { '.' } else { c }).collect()
}

/// Bytes through a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Written to the socket.
    pub sent: u64,
    /// Read from the socket.
    pub received: u64,
    /// Of those sent, bodies of requests.
    pub body_sent: u64,
    /// Of those received, bodies of replies.
    pub body_received: u64,
}

/// Replies that came to their end, and what was read up to the end of the last of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// How many.
    pub replies: u64,
    /// Bytes read from the socket.
    pub received: u64,
    /// Of those, bodies.
    pub body_received: u64,
}

const READ_BYTES: usize = 256 << 10;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    socket: mio::net::TcpStream,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    protocol: Protocol,
    traffic: Traffic,
    replies: u64,
    whole: Whole,
}

#[derive(Debug)]
enum Protocol {
    One { waiting: Option<Tag>, chunks: http1::Chunks },
    Two(Box<Two>),
}

impl Connection {
    /// Connects, and over HTTP/2 greets. `streams` is how many requests will be under way at once.
    pub fn open(address: SocketAddr, http: Http, streams: usize) -> anyhow::Result<Self> {
        let socket = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5))
            .with_context(|| format!("can't connect to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut out = Vec::new();
        let protocol = match http {
            Http::One => Protocol::One { waiting: None, chunks: http1::Chunks::default() },
            Http::Two => Protocol::Two(Box::new(Two::greet(&mut out, streams))),
        };
        let mut connection = Self {
            socket: mio::net::TcpStream::from_std(socket),
            out,
            written: 0,
            input: vec![0; READ_BYTES],
            filled: 0,
            protocol,
            traffic: Traffic::default(),
            replies: 0,
            whole: Whole::default(),
        };
        connection.flush()?;
        Ok(connection)
    }

    /// What the poll watches.
    pub fn socket(&mut self) -> &mut mio::net::TcpStream {
        &mut self.socket
    }

    /// Bytes so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Replies so far that nothing half read came after.
    pub fn whole(&self) -> Whole {
        self.whole
    }

    /// Puts a request in line; [`flush`](Self::flush) sends it.
    pub fn send(&mut self, request: &Prepared, tag: Tag, order: u64) -> anyhow::Result<()> {
        self.traffic.body_sent += request.body_bytes as u64;
        match &mut self.protocol {
            Protocol::One { waiting, .. } => {
                ensure!(waiting.replace(tag).is_none(), "two requests at once on one HTTP/1.1 connection");
                request.put_http1(&mut self.out, order);
                Ok(())
            }
            Protocol::Two(two) => two.send(&mut self.out, request, tag, order),
        }
    }

    /// Writes what is in line, as far as the socket takes it.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        while let Some(rest) = self.out.get(self.written..)
            && !rest.is_empty()
        {
            match self.socket.write(rest) {
                Ok(0) => bail!("the connection takes no more"),
                Ok(count) => {
                    self.written += count;
                    self.traffic.sent += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(anyhow::Error::new(error).context("can't write to the server")),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what has come, and hands over every reply that is complete. `ended` says that the server has no more to
    /// say, so that its end is to be read too.
    pub fn receive(
        &mut self,
        ended: bool,
        on_answer: &mut impl FnMut(Tag, Answer<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            if self.filled == self.input.len() {
                self.input.resize(self.input.len() * 2, 0);
            }
            let space = self.input.get_mut(self.filled..).unwrap_or_default();
            let room = space.len();
            let count = match self.socket.read(space) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(anyhow::Error::new(error).context("can't read from the server")),
            };
            self.filled += count;
            self.traffic.received += count as u64;
            let input = self.input.get(..self.filled).unwrap_or_default();
            let replies = &mut self.replies;
            let before = *replies;
            let mut on_answer = |tag: Tag, answer: Answer<'_>| {
                *replies += 1;
                on_answer(tag, answer)
            };
            let used = match &mut self.protocol {
                Protocol::One { waiting, chunks } => {
                    take(input, waiting, chunks, &mut self.traffic, &mut on_answer)?
                }
                Protocol::Two(two) => two.receive(input, &mut self.out, &mut self.traffic, &mut on_answer)?,
            };
            if self.replies > before && used == self.filled {
                let Traffic { received, body_received, .. } = self.traffic;
                self.whole = Whole { replies: self.replies, received, body_received };
            }
            if used > 0 {
                self.input.copy_within(used..self.filled, 0);
                self.filled -= used;
            }
            // Less than there was room for: the socket is empty, and asking again would cost a call.
            if count < room && !ended {
                return Ok(());
            }
        }
    }
}

fn take(
    input: &[u8],
    waiting: &mut Option<Tag>,
    chunks: &mut http1::Chunks,
    traffic: &mut Traffic,
    on_answer: &mut impl FnMut(Tag, Answer<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let odd = |http1::Malformed(what)| anyhow::anyhow!("not a reply of HTTP/1.1: {what}: {}", excerpt(input));
    if input.is_empty() {
        return Ok(0);
    }
    let Some(tag) = *waiting else { bail!("a reply that nothing asked for: {}", excerpt(input)) };
    let Some(head) = http1::head(input).map_err(odd)? else { return Ok(0) };
    let rest = input.get(head.len..).unwrap_or_default();
    let (body, used) = match head.body {
        Some(len) => match rest.get(..len) {
            Some(body) => (body, len),
            None => return Ok(0),
        },
        None => match chunks.read(rest).map_err(odd)? {
            Some(used) => (chunks.body(), used),
            None => return Ok(0),
        },
    };
    ensure!(rest.len() == used, "more than one reply to one request: {}", excerpt(input));
    *waiting = None;
    traffic.body_received += body.len() as u64;
    on_answer(tag, Answer { status: head.status, grpc_status: None, body })?;
    chunks.clear();
    Ok(head.len + used)
}
