//! The floor's replies have the size that they are asked to have.

use bench::case::Http;
use bench::floor::{Size, reply};
use bench::{hpack, http1, http2};

#[test]
fn a_reply_of_http_1_has_its_size() {
    for (wire, body) in [(293, 110), (100, 10), (20_000, 19_000)] {
        let bytes = reply(Http::One, Size { wire, body, status: 201 });
        assert_eq!(bytes.len(), wire);
        let head = http1::head(&bytes).unwrap().unwrap();
        assert_eq!((head.status, head.body, head.len), (201, Some(body), wire - body));
    }
}

#[test]
fn a_reply_of_http_2_has_its_size() {
    for (wire, body) in [(180, 110), (61, 10), (40_100, 40_000)] {
        let bytes = reply(Http::Two, Size { wire, body, status: 200 });
        assert_eq!(bytes.len(), wire);
        let mut rest = bytes.as_slice();
        let headers = http2::take(&mut rest).unwrap().unwrap();
        let mut status = None;
        let read = |name: &[u8], value: &[u8]| {
            if name == b":status" {
                status = Some(value.to_vec());
            }
        };
        hpack::Decoder::default().decode(headers.payload, |_| true, read).unwrap();
        assert_eq!(status, Some(b"200".to_vec()));
        let (mut sum, mut last) = (0, headers);
        while let Some(frame) = http2::take(&mut rest).unwrap() {
            sum += frame.payload.len();
            last = frame;
        }
        assert_eq!(sum, body);
        assert!(last.has(http2::flag::END_STREAM) && rest.is_empty());
    }
}
