//! HTTP/2 frames (RFC 9113), as far as a load client and the floor server need them.

/// A peer that breaks the protocol, or does what this client doesn't take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before the payload of a frame.
pub const HEADER_BYTES: usize = 9;
/// The largest payload unless settings say another; ours never do.
pub const MAX_FRAME_BYTES: usize = 16_384;
/// Room to send before the peer gives more.
pub const DEFAULT_WINDOW: i64 = 65_535;

/// Types of frames.
pub mod kind {
    #![allow(missing_docs)]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs)]
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// Settings that are read or sent.
pub mod setting {
    #![allow(missing_docs)]
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
}

/// A frame as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Whether the flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// What it carries without padding and priority.
    pub fn content(&self) -> Result<&'a [u8], Broken> {
        let mut content = self.payload;
        let mut padding = 0;
        if self.has(flag::PADDED) {
            let (&count, rest) =
                content.split_first().ok_or_else(|| broken("a frame without its padding"))?;
            (padding, content) = (usize::from(count), rest);
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            content = content.get(5..).ok_or_else(|| broken("a frame without its priority"))?;
        }
        let len = content.len().checked_sub(padding).ok_or_else(|| broken("more padding than frame"))?;
        Ok(content.get(..len).unwrap_or_default())
    }

    /// The number in a WINDOW_UPDATE or RST_STREAM.
    pub fn number(&self) -> Result<u32, Broken> {
        let bytes = self.payload.first_chunk::<4>().ok_or_else(|| broken("a frame that is too short"))?;
        Ok(u32::from_be_bytes(*bytes))
    }

    /// The pairs in a SETTINGS.
    pub fn settings(&self) -> impl Iterator<Item = (u16, u32)> + use<'a> {
        let (pairs, _) = self.payload.as_chunks::<6>();
        pairs.iter().map(|&[a, b, c, d, e, f]| (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
    }
}

fn broken(what: &str) -> Broken {
    Broken(what.to_owned())
}

/// Takes the frame at the start of `bytes` off them; nothing while it isn't complete.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Broken> {
    let Some(&[a, b, c, kind, flags, e, f, g, h]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    if len > MAX_FRAME_BYTES {
        return Err(Broken(format!("a frame of {len} bytes")));
    }
    let Some(payload) = bytes.get(HEADER_BYTES..HEADER_BYTES + len) else { return Ok(None) };
    *bytes = bytes.get(HEADER_BYTES + len..).unwrap_or_default();
    let stream = u32::from_be_bytes([e, f, g, h]) & 0x7fff_ffff;
    Ok(Some(Frame { kind, flags, stream, payload }))
}

/// Writes a frame; a payload over the largest size is the caller's mistake, and cut.
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let payload = payload.get(..MAX_FRAME_BYTES).unwrap_or(payload);
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Writes a WINDOW_UPDATE.
pub fn put_window(out: &mut Vec<u8>, stream: u32, more: u32) {
    put(out, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
}

/// Writes a SETTINGS.
pub fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (id, value) in settings {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    put(out, kind::SETTINGS, 0, 0, &payload);
}
