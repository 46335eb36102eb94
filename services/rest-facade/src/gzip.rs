//! gzip for large replies, to callers who take it.

use std::io::{self, Write};

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// The fastest level: JSON shrinks to a sixth by it, and to a seventh at three times the work.
const LEVEL: Compression = Compression::new(1);

/// Smaller replies fit in a packet or two as they are.
pub(crate) const WORTH_IT: usize = 1_400;

/// Whether `Accept-Encoding` takes gzip, and doesn't like the plain form better (RFC 9110, 12.5.3).
pub(crate) fn accepted(headers: &HeaderMap) -> bool {
    let (mut gzip, mut plain, mut others) = (None, None, None);
    for value in headers.get_all(ACCEPT_ENCODING) {
        for coding in value.to_str().unwrap_or_default().split(',') {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let weight = weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok()).unwrap_or_default();
            if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
                gzip = Some(weight);
            } else if name.eq_ignore_ascii_case("identity") {
                plain = Some(weight);
            } else if name == "*" {
                others = Some(weight);
            }
        }
    }
    let gzip = gzip.or(others).unwrap_or_default();
    gzip > 0.0 && plain.is_none_or(|plain| plain <= gzip)
}

/// The whole, shorter: the same bytes each time.
pub(crate) fn zip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), LEVEL);
    encoder.write_all(body)?;
    encoder.finish()
}

/// The parts, shorter, each of them readable when it has arrived. An error goes through, and what came before it stays
/// without an end.
pub(crate) fn zip_parts(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let encoder = GzEncoder::new(Vec::new(), LEVEL);
    futures_util::stream::unfold((parts, Some(encoder)), async |(mut parts, encoder)| {
        let mut encoder = encoder?;
        let (zipped, left) = match parts.next().await {
            Some(Ok(part)) => {
                let written = encoder.write_all(&part).and_then(|()| encoder.flush());
                (written.map(|()| std::mem::take(encoder.get_mut())), Some(encoder))
            }
            Some(Err(error)) => (Err(error), None),
            None => (encoder.finish(), None),
        };
        Some((zipped.map(Bytes::from), (parts, left)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, value.parse().unwrap());
        }
        accepted(&headers)
    }

    #[test]
    fn gzip_is_used_for_those_who_ask_for_it() {
        for yes in ["gzip", "GZIP", "x-gzip", "deflate, gzip;q=0.5, br", "gzip;q=1.0, identity; q=0.5", "*"] {
            assert!(takes(&[yes]), "{yes}");
        }
        assert!(takes(&["br", "gzip"]));
        for no in
            ["", "br", "identity", "gzip;q=0", "gzip;q=0, *", "*;q=0", "gzip;q=0.5, identity", "gzip;q=x"]
        {
            assert!(!takes(&[no]), "{no}");
        }
        assert!(!takes(&[]));
    }
}
