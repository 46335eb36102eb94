//! Frames of HTTP/2.

use bench::http2::{self, Frame, flag, kind};

#[test]
fn a_frame_is_taken_once_it_is_complete() {
    let mut bytes = Vec::new();
    http2::put(&mut bytes, kind::DATA, flag::END_STREAM, 7, b"hello");
    http2::put_window(&mut bytes, 0, 99);
    for cut in 0..14 {
        assert_eq!(http2::take(&mut &bytes[..cut]), Ok(None), "{cut}");
    }
    let mut rest = bytes.as_slice();
    let frame = http2::take(&mut rest).unwrap().unwrap();
    assert_eq!(frame, Frame { kind: kind::DATA, flags: flag::END_STREAM, stream: 7, payload: b"hello" });
    assert_eq!(http2::take(&mut rest).unwrap().unwrap().number(), Ok(99));
    assert!(rest.is_empty());
}

#[test]
fn a_frame_larger_than_allowed_is_refused_before_it_has_come() {
    assert!(http2::take(&mut [0, 0x40, 1, 0, 0, 0, 0, 0, 1].as_slice()).is_err());
}

#[test]
fn padding_and_priority_are_taken_off() {
    let frame = |kind, flags, payload| Frame { kind, flags, stream: 1, payload };
    let content = |kind, flags, payload: &'static [u8]| frame(kind, flags, payload).content();
    assert_eq!(content(kind::DATA, flag::PADDED, b"\x02abXX"), Ok(b"ab".as_slice()));
    assert_eq!(content(kind::HEADERS, flag::PADDED | flag::PRIORITY, b"\x01PPPPPabX"), Ok(b"ab".as_slice()));
    assert_eq!(content(kind::DATA, 0, b"ab"), Ok(b"ab".as_slice()));
    for (kind, flags, payload) in [
        (kind::DATA, flag::PADDED, b"".as_slice()),
        (kind::DATA, flag::PADDED, b"\x03ab"),
        (kind::HEADERS, flag::PRIORITY, b"abcd"),
    ] {
        assert!(frame(kind, flags, payload).content().is_err());
    }
}

#[test]
fn settings_are_pairs() {
    let mut bytes = Vec::new();
    http2::put_settings(&mut bytes, &[(3, 100), (4, 1 << 20)]);
    let frame = http2::take(&mut bytes.as_slice()).unwrap().unwrap();
    assert_eq!(frame.settings().collect::<Vec<_>>(), [(3, 100), (4, 1 << 20)]);
}
