//! The byte stream under a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// The start of every HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// HTTP/2 replies gathered before they are written. More than one reply of ours, less than a send buffer.
const GATHER: usize = 64 << 10;

/// A socket with two habits that the HTTP stack leaves to others:
///
/// - A peer that has not said which version of HTTP it speaks within the time limit is gone. The stack's own timer
///   starts only once the version is known.
/// - Over HTTP/2, what is flushed waits until the connection is polled again, so that the replies of calls that end in
///   the same round leave in one write, and a reply of several frames does too.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    version: Version,
    unsent: BytesMut,
    flush_waits: bool,
}

#[derive(Debug)]
enum Version {
    /// So many bytes came, all of them as in [`PREFACE`].
    Unknown {
        matched: usize,
        limit: Pin<Box<Sleep>>,
    },
    Http1,
    Http2,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        let version = Version::Unknown { matched: 0, limit: Box::pin(tokio::time::sleep(limit)) };
        Self { stream, version, unsent: BytesMut::new(), flush_waits: false }
    }

    /// Learns from bytes that came in.
    fn learn(&mut self, bytes: &[u8]) {
        let Version::Unknown { matched, .. } = &mut self.version else { return };
        for byte in bytes {
            if PREFACE.get(*matched) != Some(byte) {
                self.version = Version::Http1;
                return;
            }
            *matched += 1;
            if *matched == PREFACE.len() {
                self.version = Version::Http2;
                return;
            }
        }
    }

    fn gathers(&self) -> bool {
        matches!(self.version, Version::Http2)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let n = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.unsent))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.stream).poll_read(cx, buf) {
            this.learn(buf.filled().get(before..).unwrap_or_default());
            return Poll::Ready(result);
        }
        if let Version::Unknown { limit, .. } = &mut this.version {
            ready!(limit.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.gathers() {
            return Pin::new(&mut self.stream).poll_write(cx, bytes);
        }
        if self.unsent.len() >= GATHER {
            ready!(self.poll_send(cx))?;
        }
        self.unsent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.gathers() {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        }
        if self.unsent.len() >= GATHER {
            ready!(self.poll_send(cx))?;
        }
        let mut taken = 0;
        for part in parts {
            self.unsent.extend_from_slice(part);
            taken += part.len();
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Pin::new(&mut self.stream).poll_flush(cx);
        }
        if !self.flush_waits {
            self.flush_waits = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_send(cx))?;
        self.flush_waits = false;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
