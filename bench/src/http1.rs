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
        (Some(_), true) => return Err(Malformed("a length and chunks")),
        (None, true) => None,
        (Some(length), false) => Some(length),
        (None, false) if matches!(status, 204 | 304) => Some(0),
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

/// Reads a body in chunks at the start of `bytes` into `out`: the bytes it takes, nothing while it isn't complete.
pub fn chunks(bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Malformed> {
    out.clear();
    let mut lines = Lines { bytes, at: 0 };
    loop {
        let Some(line) = lines.next() else { return Ok(None) };
        let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let len = number(digits, 16).ok_or(Malformed("a chunk without a size"))?;
        if len == 0 {
            break;
        }
        let Some(chunk) = bytes.get(lines.at..lines.at + len) else { return Ok(None) };
        lines.at += len;
        if out.len() + len > MAX_BODY_BYTES {
            return Err(Malformed("a body that is too long"));
        }
        match lines.next() {
            Some([]) => out.extend_from_slice(chunk),
            Some(_) => return Err(Malformed("a chunk longer than its size")),
            None => return Ok(None),
        }
    }
    // Trailers, until an empty line.
    loop {
        match lines.next() {
            Some([]) => return Ok(Some(lines.at)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}
