//! Header compression of HTTP/2 (RFC 7541): what a client needs of it.
//!
//! Requests are encoded once: a first block that puts the headers which never change into the peer's table, and a
//! later block that names them by their place in it. Replies are decoded in full, the peer's table included.

pub mod huffman;

use std::collections::VecDeque;

/// A block that breaks RFC 7541.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The static table (RFC 7541, appendix A), from index 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Bytes that an entry counts for beside its name and value.
const ENTRY_OVERHEAD: usize = 32;
/// Size of the table unless settings say another.
const DEFAULT_TABLE_BYTES: usize = 4096;
/// No header of ours or of a server is near it.
const MAX_TEXT_BYTES: usize = 1 << 16;

/// A name and a value.
type Entry = (Box<[u8]>, Box<[u8]>);

/// Decodes the header blocks of one connection.
#[derive(Debug)]
pub struct Decoder {
    table: VecDeque<Entry>,
    bytes: usize,
    limit: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            bytes: 0,
            limit: DEFAULT_TABLE_BYTES,
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl Decoder {
    /// Calls `header` with the name and value of each header of the block.
    ///
    /// A literal that goes into no table and whose name `wanted` refuses is skipped without a look.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        wanted: impl Fn(&[u8]) -> bool,
        mut header: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        while let Some(&first) = block.first() {
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                let (name, value) = self.entry(index)?;
                header(name, value);
            } else if first & 0x40 != 0 {
                self.literal(&mut block, 6)?;
                header(&self.name, &self.value);
                self.insert();
            } else if first & 0x20 != 0 {
                let limit = integer(&mut block, 5)?;
                if limit > DEFAULT_TABLE_BYTES {
                    return Err(Malformed("a table larger than allowed"));
                }
                self.limit = limit;
                self.evict(limit);
            } else {
                let index = integer(&mut block, 4)?;
                if index == 0 {
                    text(&mut block, &mut self.name)?;
                } else {
                    let mut name = std::mem::take(&mut self.name);
                    name.clear();
                    let found = self.entry(index).map(|(known, _)| name.extend_from_slice(known));
                    self.name = name;
                    found?;
                }
                if wanted(&self.name) {
                    text(&mut block, &mut self.value)?;
                    header(&self.name, &self.value);
                } else {
                    raw(&mut block)?;
                }
            }
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Malformed> {
        let index = index.checked_sub(1).ok_or(Malformed("index 0"))?;
        if let Some((name, value)) = STATIC.get(index) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.table.get(index - STATIC.len()).ok_or(Malformed("an index beyond the table"))?;
        Ok((&entry.0, &entry.1))
    }

    fn literal(&mut self, block: &mut &[u8], bits: u8) -> Result<(), Malformed> {
        let index = integer(block, bits)?;
        let mut name = std::mem::take(&mut self.name);
        let result = if index == 0 {
            text(block, &mut name)
        } else {
            name.clear();
            self.entry(index).map(|(known, _)| name.extend_from_slice(known))
        };
        self.name = name;
        result?;
        text(block, &mut self.value)
    }

    fn insert(&mut self) {
        let bytes = self.name.len() + self.value.len() + ENTRY_OVERHEAD;
        self.evict(self.limit.saturating_sub(bytes));
        // An entry larger than the table empties it, and is in it never.
        if bytes <= self.limit {
            self.bytes += bytes;
            self.table.push_front((self.name.as_slice().into(), self.value.as_slice().into()));
        }
    }

    fn evict(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((name, value)) = self.table.pop_back() else { return };
            self.bytes -= name.len() + value.len() + ENTRY_OVERHEAD;
        }
    }
}

/// An integer with a prefix of `bits` bits (RFC 7541, 5.1).
fn integer(block: &mut &[u8], bits: u8) -> Result<usize, Malformed> {
    let short = Malformed("it ends inside an integer");
    let (&first, mut rest) = block.split_first().ok_or(short)?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(short)?;
            rest = after;
            if shift > 21 {
                return Err(Malformed("an integer that is too large"));
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(value)
}

/// The bytes of a string as sent, and whether Huffman's code is on them.
fn raw<'a>(block: &mut &'a [u8]) -> Result<(&'a [u8], bool), Malformed> {
    let coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let len = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(len).ok_or(Malformed("it ends inside a string"))?;
    *block = rest;
    Ok((text, coded))
}

fn text(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (bytes, coded) = raw(block)?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Malformed("a string that is too long"));
    }
    out.clear();
    if coded {
        return huffman::decode(bytes, out);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// The header blocks of one kind of request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// For the first request of a connection.
    pub first: Vec<u8>,
    /// For the ones after it.
    pub later: Vec<u8>,
}

/// Encodes a request's headers: those that are the same in every request of a connection, and the others, which come
/// after the first `before` constant ones.
///
/// The constant ones take one byte each from the second request on. All requests of a connection must have the same
/// constant ones, and together they must fit into the table's 4,096 bytes.
pub fn encode(constant: &[(&str, &str)], before: usize, other: &[(&str, &str)]) -> Blocks {
    let known = |name: &str, value: &str| STATIC.iter().position(|entry| *entry == (name, value));
    let inserted = constant.iter().filter(|(name, value)| known(name, value).is_none()).count();
    let mut blocks = Blocks { first: Vec::new(), later: Vec::new() };
    let mut place = STATIC.len() + inserted;
    for (at, &(name, value)) in constant.iter().enumerate() {
        if at == before {
            blocks.put_others(other);
        }
        if let Some(index) = known(name, value) {
            put_integer(&mut blocks.first, 7, 0x80, index + 1);
            put_integer(&mut blocks.later, 7, 0x80, index + 1);
        } else {
            put_literal(&mut blocks.first, 6, 0x40, name, value);
            // The newest entry is the first of the table, so the earliest of these comes last.
            put_integer(&mut blocks.later, 7, 0x80, place);
            place -= 1;
        }
    }
    if before >= constant.len() {
        blocks.put_others(other);
    }
    blocks
}

impl Blocks {
    fn put_others(&mut self, headers: &[(&str, &str)]) {
        for &(name, value) in headers {
            put_literal(&mut self.first, 4, 0, name, value);
            put_literal(&mut self.later, 4, 0, name, value);
        }
    }
}

/// Writes a header that goes into no table.
pub fn put_plain(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    put_integer(out, 4, 0, 0);
    for text in [name.as_bytes(), value] {
        put_integer(out, 7, 0, text.len());
        out.extend_from_slice(text);
    }
}

fn put_literal(out: &mut Vec<u8>, bits: u8, kind: u8, name: &str, value: &str) {
    let index = STATIC.iter().position(|entry| entry.0 == name).map_or(0, |at| at + 1);
    put_integer(out, bits, kind, index);
    if index == 0 {
        put_text(out, name);
    }
    put_text(out, value);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut coded = Vec::new();
    huffman::encode(text.as_bytes(), &mut coded);
    if coded.len() < text.len() {
        put_integer(out, 7, 0x80, coded.len());
        out.append(&mut coded);
    } else {
        put_integer(out, 7, 0, text.len());
        out.extend_from_slice(text.as_bytes());
    }
}

fn put_integer(out: &mut Vec<u8>, bits: u8, kind: u8, value: usize) {
    let most = (1usize << bits) - 1;
    if value < most {
        out.push(kind | value as u8);
        return;
    }
    out.push(kind | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}
