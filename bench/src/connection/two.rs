//! HTTP/2 from the client's side.

use std::collections::VecDeque;

use anyhow::{bail, ensure};

use super::{Answer, Tag, Traffic};
use crate::hpack::{self, Decoder};
use crate::http2::{self, Broken, DEFAULT_WINDOW, Frame, MAX_FRAME_BYTES, flag, kind, setting};
use crate::request::Prepared;

/// Room that the server gets, per stream and for all.
const WINDOW: u32 = 16 << 20;
/// Used room that is worth a frame to give back.
const GIVE_BACK: u32 = WINDOW / 2;

#[derive(Debug)]
struct Stream {
    id: u32,
    tag: Tag,
    status: u16,
    grpc_status: Option<u16>,
    body: Vec<u8>,
    used: u32,
    /// Room left to send on it.
    window: i64,
    /// What waits for room, and how much of it has left.
    unsent: Vec<u8>,
    sent: usize,
}

#[derive(Debug)]
pub(super) struct Two {
    next: u32,
    /// How many requests are under way at once, at most.
    wanted: usize,
    streams: Vec<Stream>,
    spare: Vec<Vec<u8>>,
    decoder: Decoder,
    /// A header block that goes on in the next frame: its stream and flags.
    unfinished: Option<(u32, u8)>,
    block: Vec<u8>,
    /// Room left to send.
    window: i64,
    stream_window: i64,
    /// Streams whose bodies wait for room.
    blocked: VecDeque<u32>,
    used: u32,
}

impl Two {
    pub(super) fn greet(out: &mut Vec<u8>, wanted: usize) -> Self {
        out.extend_from_slice(http2::PREFACE);
        http2::put_settings(out, &[(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, WINDOW)]);
        http2::put_window(out, 0, WINDOW - DEFAULT_WINDOW as u32);
        Self {
            next: 1,
            wanted,
            streams: Vec::new(),
            spare: Vec::new(),
            decoder: Decoder::default(),
            unfinished: None,
            block: Vec::new(),
            window: DEFAULT_WINDOW,
            stream_window: DEFAULT_WINDOW,
            blocked: VecDeque::new(),
            used: 0,
        }
    }

    pub(super) fn send(
        &mut self,
        out: &mut Vec<u8>,
        request: &Prepared,
        tag: Tag,
        order: u64,
    ) -> anyhow::Result<()> {
        let id = self.next;
        ensure!(id < 1 << 31, "the connection has no more stream ids");
        self.next += 2;
        let bytes = request.body_bytes as i64;
        let body = self.spare.pop().unwrap_or_default();
        let window = self.stream_window;
        let mut stream = Stream {
            id,
            tag,
            status: 0,
            grpc_status: None,
            body,
            used: 0,
            window,
            unsent: Vec::new(),
            sent: 0,
        };
        if bytes == 0 || self.blocked.is_empty() && bytes <= self.window.min(window) {
            self.window -= bytes;
            stream.window -= bytes;
            request.put_http2(out, id == 1, id, order);
            self.streams.push(stream);
        } else {
            stream.unsent = request.put_http2_head(out, id == 1, id, order);
            self.streams.push(stream);
            self.blocked.push_back(id);
            self.unblock(out);
        }
        Ok(())
    }

    /// Sends what waits, as far as there is room.
    fn unblock(&mut self, out: &mut Vec<u8>) {
        let (streams, window) = (&mut self.streams, &mut self.window);
        self.blocked.retain(|id| {
            let Some(stream) = streams.iter_mut().find(|stream| stream.id == *id) else { return false };
            loop {
                let rest = stream.unsent.get(stream.sent..).unwrap_or_default();
                let room = usize::try_from((*window).min(stream.window)).unwrap_or(0).min(MAX_FRAME_BYTES);
                let Some(part) = rest.get(..room.min(rest.len())).filter(|part| !part.is_empty()) else {
                    return true;
                };
                let is_last = part.len() == rest.len();
                http2::put(out, kind::DATA, if is_last { flag::END_STREAM } else { 0 }, *id, part);
                *window -= part.len() as i64;
                stream.window -= part.len() as i64;
                stream.sent += part.len();
                if is_last {
                    return false;
                }
            }
        });
    }

    /// Reads frames; the bytes that were used.
    pub(super) fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        traffic: &mut Traffic,
        on_answer: &mut impl FnMut(Tag, Answer<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let mut rest = input;
        while let Some(frame) = http2::take(&mut rest).map_err(broken)? {
            let content = self.unfinished.is_none() || frame.kind == kind::CONTINUATION;
            ensure!(content, "a header block that another frame interrupts");
            match frame.kind {
                kind::DATA => {
                    let content = frame.content().map_err(broken)?;
                    traffic.body_received += content.len() as u64;
                    self.data(frame, content, out)?;
                    if frame.has(flag::END_STREAM) {
                        self.end(frame.stream, on_answer)?;
                    }
                }
                kind::HEADERS => {
                    self.block.clear();
                    self.block.extend_from_slice(frame.content().map_err(broken)?);
                    self.headers(frame.stream, frame.flags, on_answer)?;
                }
                kind::CONTINUATION => {
                    let Some((stream, flags)) = self.unfinished.take() else {
                        bail!("a CONTINUATION of nothing");
                    };
                    ensure!(
                        stream == frame.stream && self.block.len() < 1 << 20,
                        "a CONTINUATION gone wrong"
                    );
                    self.block.extend_from_slice(frame.payload);
                    self.headers(stream, flags | (frame.flags & flag::END_HEADERS), on_answer)?;
                }
                kind::SETTINGS if !frame.has(flag::ACK) => {
                    self.settings(frame)?;
                    self.unblock(out);
                    http2::put(out, kind::SETTINGS, flag::ACK, 0, &[]);
                }
                kind::PING if !frame.has(flag::ACK) => {
                    http2::put(out, kind::PING, flag::ACK, 0, frame.payload);
                }
                kind::WINDOW_UPDATE => {
                    let more = i64::from(frame.number().map_err(broken)? & 0x7fff_ffff);
                    let stream = self.streams.iter_mut().find(|stream| stream.id == frame.stream);
                    match stream {
                        _ if frame.stream == 0 => self.window += more,
                        Some(stream) => stream.window += more,
                        // Of one that has ended.
                        None => {}
                    }
                    self.unblock(out);
                }
                kind::RST_STREAM => {
                    let code = frame.number().map_err(broken)?;
                    let known = self.streams.iter().any(|stream| stream.id == frame.stream);
                    ensure!(!known, "the server reset a stream with error code {code}");
                }
                kind::GOAWAY => {
                    let code = frame
                        .payload
                        .get(4..8)
                        .map(|code| code.iter().fold(0u32, |n, b| (n << 8) | u32::from(*b)));
                    bail!("the server said goodbye with error code {}", code.unwrap_or_default());
                }
                kind::PUSH_PROMISE => bail!("a push, which was turned off"),
                // What is left needs no answer; frames of other types are to be ignored.
                _ => {}
            }
        }
        Ok(input.len() - rest.len())
    }

    fn stream(&mut self, id: u32) -> anyhow::Result<&mut Stream> {
        let found = self.streams.iter_mut().find(|stream| stream.id == id);
        found.ok_or_else(|| anyhow::anyhow!("a frame of stream {id}, which is not open"))
    }

    fn data(&mut self, frame: Frame<'_>, content: &[u8], out: &mut Vec<u8>) -> anyhow::Result<()> {
        let bytes = frame.payload.len() as u32;
        let stream = self.stream(frame.stream)?;
        stream.body.extend_from_slice(content);
        stream.used += bytes;
        if stream.used >= GIVE_BACK {
            http2::put_window(out, stream.id, std::mem::take(&mut stream.used));
        }
        self.used += bytes;
        if self.used >= GIVE_BACK {
            http2::put_window(out, 0, std::mem::take(&mut self.used));
        }
        Ok(())
    }

    fn headers(
        &mut self,
        id: u32,
        flags: u8,
        on_answer: &mut impl FnMut(Tag, Answer<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if flags & flag::END_HEADERS == 0 {
            self.unfinished = Some((id, flags));
            return Ok(());
        }
        let (mut status, mut grpc_status) = (None, None);
        let wanted = |name: &[u8]| name == b":status" || name == b"grpc-status";
        let decoded = self.decoder.decode(&self.block, wanted, |name, value| match name {
            b":status" => status = Some(number(value)),
            b"grpc-status" => grpc_status = Some(number(value)),
            _ => {}
        });
        if let Err(hpack::Malformed(what)) = decoded {
            bail!("a header block that breaks HPACK: {what}");
        }
        let stream = self.stream(id)?;
        // Informational replies come before the real one.
        if let Some(status) = status.filter(|status| *status >= 200) {
            stream.status = status;
        }
        stream.grpc_status = grpc_status.or(stream.grpc_status);
        if flags & flag::END_STREAM != 0 { self.end(id, on_answer) } else { Ok(()) }
    }

    fn end(
        &mut self,
        id: u32,
        on_answer: &mut impl FnMut(Tag, Answer<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else {
            bail!("the end of stream {id}, which is not open");
        };
        let mut stream = self.streams.remove(at);
        let Stream { status, grpc_status, .. } = stream;
        on_answer(stream.tag, Answer { status, grpc_status, body: &stream.body })?;
        stream.body.clear();
        self.spare.push(stream.body);
        Ok(())
    }

    fn settings(&mut self, frame: Frame<'_>) -> anyhow::Result<()> {
        for (id, value) in frame.settings() {
            match id {
                setting::MAX_CONCURRENT_STREAMS => {
                    let wanted = self.wanted;
                    ensure!(
                        value as usize >= wanted,
                        "the server allows {value} streams, {wanted} are wanted"
                    );
                }
                setting::INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value) - self.stream_window;
                    self.stream_window = value.into();
                    self.streams.iter_mut().for_each(|stream| stream.window += more);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A status; one that can't be right when it is no number.
fn number(digits: &[u8]) -> u16 {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    text.parse().unwrap_or(u16::MAX)
}

fn broken(Broken(what): Broken) -> anyhow::Error {
    anyhow::anyhow!("not HTTP/2: {what}")
}
