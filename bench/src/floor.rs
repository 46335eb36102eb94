//! The floor: a server that reads each request to its end and writes a prepared reply. What it costs is what the
//! machine and the kernel cost.
//!
//! It is faster than the client, so it would mostly sleep, be woken for whatever has come, and answer that: one request
//! or twenty, as chance has it, and a run could cost twice what the next one does. A service that is kept busy neither
//! sleeps nor is woken. So the floor looks for work all the time and counts only the time in which it has some; and
//! where clients share a connection it answers once all of them have asked.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::case::Http;
use crate::http2::{self, Broken, DEFAULT_WINDOW, flag, kind, setting};
use crate::{hpack, process};

/// How the floor serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving {
    /// The version of HTTP.
    pub http: Http,
    /// The size of its replies.
    pub size: Size,
    /// Requests on a connection of HTTP/2 that are answered together. There must always be as many under way.
    pub together: usize,
    /// Whether to look for work all the time. Not for a server that shares its core with the client.
    pub spin: bool,
}

/// The size of the reply, as it is on the wire and as a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the reply with all that frames it.
    pub wire: usize,
    /// Bytes of its body.
    pub body: usize,
    /// The status.
    pub status: u16,
}

/// Makes a reply of this size. Over HTTP/2 its stream is to be filled in.
pub fn reply(http: Http, size: Size) -> Vec<u8> {
    let Size { wire, body, status } = size;
    match http {
        Http::One => {
            let start = format!("HTTP/1.1 {status} OK\r\ncontent-length: {body}\r\nx: ");
            let filling = wire.saturating_sub(start.len() + 4 + body);
            let mut bytes = start.into_bytes();
            bytes.resize(bytes.len() + filling, b'x');
            bytes.extend_from_slice(b"\r\n\r\n");
            bytes.resize(bytes.len() + body, b' ');
            bytes
        }
        Http::Two => {
            let mut block = Vec::new();
            hpack::put_plain(&mut block, ":status", status.to_string().as_bytes());
            let frames = 1 + body.div_ceil(http2::MAX_FRAME_BYTES);
            let filling = wire.saturating_sub(frames * http2::HEADER_BYTES + block.len() + body + 4);
            hpack::put_plain(&mut block, "x", &vec![b'x'; filling]);
            let mut bytes = Vec::new();
            let end = if body == 0 { flag::END_STREAM } else { 0 };
            http2::put(&mut bytes, kind::HEADERS, flag::END_HEADERS | end, 0, &block);
            let body = vec![b' '; body];
            let mut chunks = body.chunks(http2::MAX_FRAME_BYTES).peekable();
            while let Some(chunk) = chunks.next() {
                let end = if chunks.peek().is_none() { flag::END_STREAM } else { 0 };
                http2::put(&mut bytes, kind::DATA, end, 0, chunk);
            }
            bytes
        }
    }
}

const READ_BYTES: usize = 64 << 10;
/// No request of a scenario is near it.
const MAX_INPUT_BYTES: usize = 64 << 20;
/// Room that a client gets, for a stream and for all: more than the largest requests need.
const WINDOW: u32 = 64 << 20;
const LISTENER: Token = Token(usize::MAX);
/// What asks for the CPU time that requests have cost, instead of a request: eight bytes come back, little end first.
const ASK_CPU: &[u8] = b"?";
/// A look takes less, unless the thread lost its core meanwhile, which is no CPU time of its own.
const LOOK: Duration = Duration::from_micros(10);

/// Serves for ever, on a free port of loopback that `announce` is told.
pub fn serve(serving: Serving, announce: impl FnOnce(SocketAddr)) -> anyhow::Result<()> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).context("can't listen")?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    announce(listener.local_addr()?);
    let reply = reply(serving.http, serving.size);
    let mut clients: HashMap<usize, Client> = HashMap::new();
    let mut next = 0;
    let mut events = Events::with_capacity(1024);
    let (mut looked, mut since) = (Duration::ZERO, Instant::now());
    loop {
        match poll.poll(&mut events, serving.spin.then_some(Duration::ZERO)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        if serving.spin {
            let now = Instant::now();
            looked += now.duration_since(since).min(LOOK);
            since = now;
            if events.is_empty() {
                continue;
            }
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut socket, Token(next), interest)?;
                    clients.insert(next, Client::new(socket));
                    next += 1;
                }
            } else if let Some(client) = clients.get_mut(&event.token().0)
                && (client.read(serving, &reply, looked).is_err() || client.flush().is_err())
            {
                clients.remove(&event.token().0);
            }
        }
        if serving.spin {
            since = Instant::now();
        }
    }
}

/// Nanoseconds of CPU that the requests have cost until now, as the floor at the other end of this connection says.
pub fn cpu_ns(mut floor: &std::net::TcpStream) -> io::Result<u64> {
    floor.write_all(ASK_CPU)?;
    let mut bytes = [0; 8];
    floor.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

struct Client {
    socket: TcpStream,
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    written: usize,
    greeted: bool,
    used: u32,
    /// Streams whose requests are complete and not answered.
    asked: Vec<u32>,
}

impl Client {
    fn new(socket: TcpStream) -> Self {
        let input = vec![0; READ_BYTES];
        let (out, asked) = (Vec::new(), Vec::new());
        Self { socket, input, filled: 0, out, written: 0, greeted: false, used: 0, asked }
    }

    fn read(&mut self, serving: Serving, reply: &[u8], looked: Duration) -> anyhow::Result<()> {
        loop {
            if self.filled == self.input.len() {
                ensure!(self.filled < MAX_INPUT_BYTES, "a request that doesn't end");
                self.input.resize(self.filled * 2, 0);
            }
            let space = self.input.get_mut(self.filled..).unwrap_or_default();
            let room = space.len();
            let count = match self.socket.read(space) {
                Ok(0) => bail!("closed"),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            self.filled += count;
            let input = self.input.get(..self.filled).unwrap_or_default();
            let used = if input == ASK_CPU {
                let spent = process::thread_cpu_ns().unwrap_or_default();
                let cost = spent.saturating_sub(looked.as_nanos() as u64);
                self.out.extend_from_slice(&cost.to_le_bytes());
                input.len()
            } else {
                match serving.http {
                    Http::One => requests(input, reply, &mut self.out),
                    Http::Two => {
                        let asked = &mut self.asked;
                        let used = frames(input, &mut self.out, asked, &mut self.greeted, &mut self.used)?;
                        if asked.len() >= serving.together {
                            asked.drain(..).for_each(|stream| answer(&mut self.out, reply, stream));
                        }
                        used
                    }
                }
            };
            self.input.copy_within(used..self.filled, 0);
            self.filled -= used;
            if count < room {
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(rest) = self.out.get(self.written..)
            && !rest.is_empty()
        {
            match self.socket.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}

/// Answers every complete request of HTTP/1.1; the bytes that they took.
fn requests(input: &[u8], reply: &[u8], out: &mut Vec<u8>) -> usize {
    let mut used = 0;
    while let Some(rest) = input.get(used..)
        && let Some(head) = rest.windows(4).position(|window| window == b"\r\n\r\n")
    {
        let lines = rest.get(..head).unwrap_or_default().split(|b| *b == b'\n');
        let length = lines
            .filter_map(|line| {
                std::str::from_utf8(line).ok()?.strip_prefix("content-length:")?.trim().parse().ok()
            })
            .next()
            .unwrap_or(0);
        let all = head + 4 + length;
        if rest.len() < all {
            break;
        }
        used += all;
        out.extend_from_slice(reply);
    }
    used
}

/// Reads frames of HTTP/2, and notes the streams whose requests are complete; the bytes that they took.
fn frames(
    input: &[u8],
    out: &mut Vec<u8>,
    asked: &mut Vec<u32>,
    greeted: &mut bool,
    used: &mut u32,
) -> anyhow::Result<usize> {
    let mut rest = input;
    if !*greeted {
        let Some(after) = rest.strip_prefix(http2::PREFACE) else {
            ensure!(http2::PREFACE.starts_with(rest), "not HTTP/2");
            return Ok(0);
        };
        rest = after;
        let settings = [(setting::MAX_CONCURRENT_STREAMS, 4096), (setting::INITIAL_WINDOW_SIZE, WINDOW)];
        http2::put_settings(out, &settings);
        http2::put_window(out, 0, WINDOW - DEFAULT_WINDOW as u32);
        *greeted = true;
    }
    while let Some(frame) = http2::take(&mut rest).map_err(|Broken(what)| anyhow::anyhow!(what))? {
        if frame.kind == kind::SETTINGS && !frame.has(flag::ACK) {
            http2::put(out, kind::SETTINGS, flag::ACK, 0, &[]);
        }
        if frame.kind == kind::PING && !frame.has(flag::ACK) {
            http2::put(out, kind::PING, flag::ACK, 0, frame.payload);
        }
        if frame.kind == kind::DATA {
            *used += frame.payload.len() as u32;
            if *used > WINDOW / 2 {
                http2::put_window(out, 0, std::mem::take(used));
            }
        }
        if matches!(frame.kind, kind::HEADERS | kind::DATA) && frame.has(flag::END_STREAM) {
            asked.push(frame.stream);
        }
    }
    Ok(input.len() - rest.len())
}

/// Writes the reply on a stream.
fn answer(out: &mut Vec<u8>, reply: &[u8], stream: u32) {
    let mut at = out.len();
    out.extend_from_slice(reply);
    while let Some(head) = out.get_mut(at..at + http2::HEADER_BYTES)
        && let Some((&mut [a, b, c, ..], _)) = head.split_first_chunk_mut::<3>()
    {
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        if let Some(place) = head.get_mut(5..) {
            place.copy_from_slice(&stream.to_be_bytes());
        }
        at += http2::HEADER_BYTES + len;
    }
}
