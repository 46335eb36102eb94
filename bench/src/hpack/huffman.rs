//! The string code of HPACK (RFC 7541, appendix B). It is canonical: the lengths of the codes say what they are.

use super::Malformed;

/// Length in bits of the code of each byte.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LONGEST: usize = 30;

/// What the lengths say: the code of each byte, how many codes have each length, and the bytes in order of code.
struct Code {
    codes: [u32; 256],
    counts: [u32; LONGEST + 1],
    bytes: [u8; 256],
}

static CODE: Code = code();

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which would refuse an index out of bounds"
)]
const fn code() -> Code {
    let mut made = Code { codes: [0; 256], counts: [0; LONGEST + 1], bytes: [0; 256] };
    let (mut code, mut place, mut length) = (0, 0, 1);
    while length <= LONGEST {
        let mut byte = 0;
        while byte < 256 {
            if LENGTHS[byte] as usize == length {
                made.codes[byte] = code;
                made.counts[length] += 1;
                made.bytes[place] = byte as u8;
                place += 1;
                code += 1;
            }
            byte += 1;
        }
        code <<= 1;
        length += 1;
    }
    made
}

/// Appends the code of the text.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0);
    for &byte in text {
        let at = usize::from(byte);
        let (Some(&code), Some(&length)) = (CODE.codes.get(at), LENGTHS.get(at)) else { continue };
        bits = (bits << length) | u64::from(code);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // Filled up with ones, which begin the code that ends everything.
        out.push(((bits << (8 - count)) as u8) | (0xff >> count));
    }
}

/// Appends the text of the code.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (mut code, mut first, mut place, mut length) = (0u32, 0u32, 0u32, 0usize);
    let mut ones = true;
    for &byte in coded {
        for bit in (0..8).rev() {
            let bit = u32::from(byte >> bit) & 1;
            code = (code << 1) | bit;
            ones &= bit == 1;
            length += 1;
            let Some(&count) = CODE.counts.get(length) else {
                return Err(Malformed("a code of no character"));
            };
            first <<= 1;
            if code.wrapping_sub(first) < count {
                let at = (place + code - first) as usize;
                out.push(CODE.bytes.get(at).copied().unwrap_or_default());
                (code, first, place, length, ones) = (0, 0, 0, 0, true);
            } else {
                first += count;
                place += count;
            }
        }
    }
    if length > 7 || !ones { Err(Malformed("a string that ends inside a character")) } else { Ok(()) }
}
