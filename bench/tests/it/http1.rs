//! Replies of HTTP/1.1, whole, split and odd.

use bench::http1::{Chunks, Head, head, header};

#[test]
fn a_head_is_read_once_it_is_complete() {
    let reply = b"HTTP/1.1 201 Created\r\nServer: x\r\nContent-Length:  12 \r\n\r\n{\"a\":\"b\\n\\n\"}";
    let len = reply.len() - 13;
    let end = reply.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    for cut in 0..end {
        assert_eq!(head(&reply[..cut]), Ok(None), "{cut}");
    }
    assert_eq!(head(reply), Ok(Some(Head { status: 201, len: end, body: Some(12) })), "{len}");
}

#[test]
fn odd_heads_are_refused() {
    for odd in [
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 99\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
    ] {
        assert!(head(odd.as_bytes()).is_err(), "{odd:?}");
    }
    assert!(head(&vec![b'x'; 100 << 10]).is_err());
    assert!(head(b"HTTP/1.1 304 Not Modified\r\n\r\n").unwrap().is_some());
}

#[test]
fn chunks_are_joined_once_they_are_complete() {
    let body = b"4\r\nWiki\r\n6;name=value\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\n";
    let mut piecemeal = Chunks::default();
    for cut in 0..body.len() {
        assert_eq!(Chunks::default().read(&body[..cut]), Ok(None), "{cut}");
        assert_eq!(piecemeal.read(&body[..cut]), Ok(None), "{cut}");
    }
    for chunks in [&mut piecemeal, &mut Chunks::default()] {
        assert_eq!(chunks.read(body), Ok(Some(body.len())));
        assert_eq!(chunks.body(), b"Wikipedia in \r\n\r\nchunks.");
    }
    piecemeal.clear();
    assert_eq!(piecemeal.read(b"1\r\nx\r\n0\r\n\r\nmore"), Ok(Some(11)));
    assert_eq!(piecemeal.take(), b"x");
    for odd in ["x\r\n", "\r\n", "4\r\nWikipedia\r\n0\r\n\r\n", "fffffffff\r\n", "-1\r\n"] {
        assert!(Chunks::default().read(odd.as_bytes()).is_err(), "{odd:?}");
    }
}

#[test]
fn a_reply_that_nothing_has_changed_has_no_body_whatever_it_says_of_its_length() {
    let reply = b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\ncontent-length: 50\r\n\r\n";
    assert_eq!(head(reply).unwrap().unwrap().body, Some(0));
    assert_eq!(header(reply, "etag"), Some(b"\"a\"".as_slice()));
    assert_eq!(header(reply, "vary"), None);
}
