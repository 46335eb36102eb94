//! The floor: a server that reads each request to its end and writes a prepared reply. What it costs is what the
//! machine and the kernel cost.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, bail, ensure};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::case::Http;
use crate::hpack;
use crate::http2::{self, Broken, DEFAULT_WINDOW, flag, kind, setting};

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

struct Client {
    socket: TcpStream,
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    greeted: bool,
    used: u32,
}

const READ_BYTES: usize = 64 << 10;
const LISTENER: Token = Token(usize::MAX);

/// Serves for ever, on a free port of loopback that `announce` is told.
pub fn serve(http: Http, size: Size, announce: impl FnOnce(SocketAddr)) -> anyhow::Result<()> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).context("can't listen")?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    announce(listener.local_addr()?);
    let reply = reply(http, size);
    let mut clients: HashMap<usize, Client> = HashMap::new();
    let mut next = 0;
    let mut events = Events::with_capacity(1024);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut socket, Token(next), interest)?;
                    let input = vec![0; READ_BYTES];
                    let client =
                        Client { socket, input, filled: 0, out: Vec::new(), greeted: false, used: 0 };
                    clients.insert(next, client);
                    next += 1;
                }
            } else if let Some(client) = clients.get_mut(&event.token().0)
                && (client.read(http, &reply).is_err() || client.flush().is_err())
            {
                clients.remove(&event.token().0);
            }
        }
    }
}

impl Client {
    fn read(&mut self, http: Http, reply: &[u8]) -> anyhow::Result<()> {
        loop {
            ensure!(self.filled < self.input.len(), "a request that doesn't end");
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
            let used = match http {
                Http::One => requests(input, reply, &mut self.out),
                Http::Two => frames(input, reply, &mut self.out, &mut self.greeted, &mut self.used)?,
            };
            self.input.copy_within(used..self.filled, 0);
            self.filled -= used;
            if count < room {
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.socket.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
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

/// Answers every complete request of HTTP/2; the bytes that they took.
fn frames(
    input: &[u8],
    reply: &[u8],
    out: &mut Vec<u8>,
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
        http2::put_settings(out, &[(setting::MAX_CONCURRENT_STREAMS, 4096)]);
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
            if i64::from(*used) > DEFAULT_WINDOW / 2 {
                http2::put_window(out, 0, std::mem::take(used));
            }
        }
        if matches!(frame.kind, kind::HEADERS | kind::DATA) && frame.has(flag::END_STREAM) {
            let start = out.len();
            out.extend_from_slice(reply);
            let mut at = start;
            while let Some(head) = out.get_mut(at..at + http2::HEADER_BYTES)
                && let Some((&mut [a, b, c, ..], _)) = head.split_first_chunk_mut::<3>()
            {
                let len = u32::from_be_bytes([0, a, b, c]) as usize;
                if let Some(stream) = head.get_mut(5..) {
                    stream.copy_from_slice(&frame.stream.to_be_bytes());
                }
                at += http2::HEADER_BYTES + len;
            }
        }
    }
    Ok(input.len() - rest.len())
}
