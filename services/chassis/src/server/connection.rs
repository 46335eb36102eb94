//! The byte stream under a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The start of every HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Most bytes of HTTP/2 replies that are gathered before they are written: more than one reply of ours, less than a
/// send buffer.
const GATHER: usize = 64 << 10;

/// What an empty buffer may keep: a connection that once sent a large reply must not hold its memory for ever.
const KEEP: usize = 16 << 10;

/// How long a closed connection listens on to a peer that says nothing, and to any peer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_IN_ALL: Duration = Duration::from_secs(30);

/// A socket with five habits that the HTTP stack leaves to others:
///
/// - A peer that has not said which version of HTTP it speaks within the time limit is gone. The stack's own timer
///   starts only once the version is known.
/// - Over HTTP/2, what is flushed waits until the connection is polled again, so that the replies of calls that end in
///   the same round leave in one write, and a reply of several frames does too. The wait is asked for and short: the
///   connection is woken at once, behind the calls that are about to end.
/// - A peer that takes nothing for the time limit while there is something for it is gone. What it was to get would be
///   kept as long as it stays. The kernel says that it has room when a good part of its own buffer is free, so a peer
///   is only seen to take something in steps of that size.
/// - Once closed it listens on for a while. A socket that is let go while the peer still sends, be it the rest of a
///   body or the news that it reads, takes what is on the way to the peer with it.
/// - It has its [`Seat`] for as long as it is open, also when a handler took it over, as for a WebSocket.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    version: Version,
    stall: Stall,
    unsent: BytesMut,
    flush_waits: bool,
    linger: Option<Linger>,
    _seat: Seat,
}

/// Counts an open connection.
#[derive(Debug)]
pub(super) struct Seat {
    /// Against the number that the port may have.
    pub(super) _permit: OwnedSemaphorePermit,
    /// For the drain, which waits until none is left.
    pub(super) _open: TaskTrackerToken,
}

/// How long a peer may keep a connection waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// For the head of a request.
    pub(super) head: Duration,
    /// For room to write to.
    pub(super) write: Duration,
}

/// The wait for a peer that takes nothing.
#[derive(Debug)]
struct Stall {
    limit: Duration,
    /// Set while there is something to write and no room for it.
    end: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
struct Linger {
    silence: Pin<Box<Sleep>>,
    end: Instant,
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
    pub(super) fn new(stream: TcpStream, limits: Limits, seat: Seat) -> Self {
        let version = Version::Unknown { matched: 0, limit: Box::pin(tokio::time::sleep(limits.head)) };
        let stall = Stall { limit: limits.write, end: None };
        Self {
            stream,
            version,
            stall,
            unsent: BytesMut::new(),
            flush_waits: false,
            linger: None,
            _seat: seat,
        }
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

    /// Takes what there is room for.
    fn gather(&mut self, bytes: &[u8]) -> usize {
        let room = GATHER.saturating_sub(self.unsent.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.unsent.extend_from_slice(taken);
        taken.len()
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.len() < GATHER { Poll::Ready(Ok(())) } else { self.poll_send(cx) }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.unsent);
            let n = ready!(self.stall.poll(written, &self.stream, cx))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(n);
        }
        if self.unsent.capacity() > KEEP {
            self.unsent = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl Stall {
    /// What came of a write, or an error once nothing came of any for too long.
    fn poll(
        &mut self,
        written: Poll<io::Result<usize>>,
        stream: &TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        ready!(end.as_mut().poll(cx));
        // Else the kernel would go on offering the peer what it holds.
        let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Linger {
    fn new() -> Self {
        let now = Instant::now();
        Self { silence: Box::pin(tokio::time::sleep_until(now + LINGER)), end: now + LINGER_IN_ALL }
    }

    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut dropped = [0; 4096];
        loop {
            let mut dropped = ReadBuf::new(&mut dropped);
            match Pin::new(&mut *stream).poll_read(cx, &mut dropped) {
                Poll::Ready(Ok(())) if !dropped.filled().is_empty() => {
                    self.silence.as_mut().reset(self.end.min(Instant::now() + LINGER));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.silence.as_mut().poll(cx),
            }
        }
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
            let this = &mut *self;
            let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
            return this.stall.poll(written, &this.stream, cx);
        }
        ready!(self.poll_room(cx))?;
        Poll::Ready(Ok(self.gather(bytes)))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.gathers() {
            let this = &mut *self;
            let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
            return this.stall.poll(written, &this.stream, cx);
        }
        ready!(self.poll_room(cx))?;
        Poll::Ready(Ok(parts.iter().map(|part| self.gather(part)).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unsent.is_empty() && !self.flush_waits {
            self.flush_waits = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_send(cx))?;
        self.flush_waits = false;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(this.poll_send(cx))?;
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        this.linger.get_or_insert_with(Linger::new).poll(&mut this.stream, cx).map(Ok)
    }
}
