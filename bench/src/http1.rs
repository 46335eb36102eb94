//! Replies of HTTP/1.1, as far as a load client needs them: the status, and the body in one piece.

/// A reply that is no HTTP/1.1, or one that this client doesn't take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// No server of ours sends a head near it.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Larger than any reply of a scenario.
const MAX_BODY_BYTES: usize = 256 << 20;

/// The head of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Bytes up to the body.
    pub len: usize,
    /// Bytes of the body; none when it comes in chunks.
    pub body: Option<usize>,
}

/// Reads the head of a reply at the start of `bytes`; nothing while it isn't complete.
pub fn head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut lines = Lines { bytes, at: 0 };
    let Some(line) = lines.next() else { return incomplete(bytes) };
    let status = status(line)?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let Some(line) = lines.next() else { return incomplete(bytes) };
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|b| *b == b':').ok_or(Malformed("a header without a colon"))?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            if length.is_some() {
                return Err(Malformed("two lengths"));
            }
            length = Some(number(value, 10).ok_or(Malformed("a length that is no number"))?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Malformed("a transfer encoding other than chunked"));
            }
            chunked = true;
        }
    }
    let body = match (length, chunked) {
        // Whatever its headers say of the body that it stands for.
        _ if matches!(status, 204 | 304) => Some(0),
        (Some(_), true) => return Err(Malformed("a length and chunks")),
        (None, true) => None,
        (Some(length), false) => Some(length),
        (None, false) => return Err(Malformed("neither a length nor chunks")),
    };
    Ok(Some(Head { status, len: lines.at, body }))
}

fn incomplete(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    if bytes.len() > MAX_HEAD_BYTES { Err(Malformed("a head that doesn't end")) } else { Ok(None) }
}

fn status(line: &[u8]) -> Result<u16, Malformed> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").ok_or(Malformed("it doesn't begin with HTTP/1.1"))?;
    let digits = rest.get(..3).ok_or(Malformed("a status that is no number"))?;
    let ended = matches!(rest.get(3), None | Some(b' '));
    let status = number(digits, 10).filter(|n| ended && (100..600).contains(n));
    status.and_then(|n| u16::try_from(n).ok()).ok_or(Malformed("a status that is no number"))
}

fn number(digits: &[u8], radix: u32) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let mut value = 0usize;
    for &digit in digits {
        value = value * radix as usize + char::from(digit).to_digit(radix)? as usize;
    }
    (value <= MAX_BODY_BYTES).then_some(value)
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|b| *b == b'\n')?;
        self.at += end + 1;
        let line = rest.get(..end)?;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The value of a header in the complete head at the start of `bytes`.
pub fn header<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    for line in (Lines { bytes, at: 0 }).take_while(|line| !line.is_empty()) {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let (found, value) = line.split_at(colon);
        if found.eq_ignore_ascii_case(name.as_bytes()) {
            return value.get(1..).map(<[u8]>::trim_ascii);
        }
    }
    None
}

/// A body in chunks, read as it comes.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Bytes that were read.
    at: usize,
    /// Whether the chunk of no bytes was among them.
    ended: bool,
    body: Vec<u8>,
}

impl Chunks {
    /// Reads on in `bytes`, which begin where the body does and have what was there before: how many the body takes,
    /// nothing while it isn't complete.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        loop {
            let mut lines = Lines { bytes, at: self.at };
            let Some(line) = lines.next() else { return Ok(None) };
            if self.ended {
                // Trailers, until an empty line.
                self.at = lines.at;
                if line.is_empty() {
                    return Ok(Some(self.at));
                }
                continue;
            }
            let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            let len = number(digits, 16).ok_or(Malformed("a chunk without a size"))?;
            if len == 0 {
                self.ended = true;
                self.at = lines.at;
                continue;
            }
            let Some(chunk) = bytes.get(lines.at..lines.at + len) else { return Ok(None) };
            lines.at += len;
            if self.body.len() + len > MAX_BODY_BYTES {
                return Err(Malformed("a body that is too long"));
            }
            match lines.next() {
                Some([]) => self.body.extend_from_slice(chunk),
                Some(_) => return Err(Malformed("a chunk longer than its size")),
                None => return Ok(None),
            }
            self.at = lines.at;
        }
    }

    /// The body, as far as it was read.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes the body away.
    pub fn take(&mut self) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        self.clear();
        body
    }

    /// Makes ready for the next body.
    pub fn clear(&mut self) {
        (self.at, self.ended) = (0, false);
        self.body.clear();
    }
}
