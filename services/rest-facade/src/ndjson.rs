//! Bodies of lines, read one line at a time.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use tokio::time::timeout;

/// A line may have this many bytes.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// A sender that says nothing for this long has gone, or holds a connection for nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// A line of a body, without its end. Lines of nothing but white space are left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// What it says.
    Text(Bytes),
    /// It was over [`MAX_LINE`], and was thrown away.
    TooLong,
}

/// The lines of a body. Holds one frame of it and one line at most.
pub(crate) struct Lines {
    body: Body,
    /// What is read and not given out.
    frame: Bytes,
    /// The beginning of a line that goes on in `frame`.
    start: Vec<u8>,
    /// The line is too long already.
    overflown: bool,
}

impl Lines {
    /// The lines of this body.
    pub(crate) fn new(body: Body) -> Self {
        Self { body, frame: Bytes::new(), start: Vec::new(), overflown: false }
    }

    /// The next line; `None` at the end. An error says that the body broke off, or that nothing came for 30 s.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, axum::Error> {
        loop {
            if let Some(line) = self.whole_line() {
                return Ok(Some(line));
            }
            // Most of a fast upload is there already, and needs no timer.
            let frame = match self.body.frame().now_or_never() {
                Some(frame) => frame,
                None => timeout(SILENCE, self.body.frame())
                    .await
                    .map_err(|_| axum::Error::new(io::Error::from(io::ErrorKind::TimedOut)))?,
            };
            match frame {
                Some(frame) => self.frame = frame?.into_data().unwrap_or_default(),
                // The last line may lack its end.
                None => return Ok(self.line(Bytes::new())),
            }
        }
    }

    /// A line that ends in the frame. What is left of the frame without one moves to `start`.
    fn whole_line(&mut self) -> Option<Line> {
        while let Some(at) = self.frame.iter().position(|&b| b == b'\n') {
            let end = self.frame.split_to(at);
            // The end of the line itself.
            let _ = self.frame.split_to(1);
            if let Some(line) = self.line(end) {
                return Some(line);
            }
        }
        let rest = std::mem::take(&mut self.frame);
        if self.start.len() + rest.len() > MAX_LINE {
            self.overflown = true;
            self.start = Vec::new();
        } else if !self.overflown {
            self.start.extend_from_slice(&rest);
        }
        None
    }

    /// The line that ends with this.
    fn line(&mut self, end: Bytes) -> Option<Line> {
        let line = if self.start.is_empty() {
            end
        } else {
            self.start.extend_from_slice(&end);
            Bytes::from(std::mem::take(&mut self.start))
        };
        if std::mem::take(&mut self.overflown) || line.len() > MAX_LINE {
            return Some(Line::TooLong);
        }
        (!line.trim_ascii().is_empty()).then_some(Line::Text(line))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    /// The lines of a body that comes in pieces of this size.
    fn read(text: &[u8], size: usize) -> Vec<Line> {
        let pieces: Vec<_> =
            text.chunks(size).map(|piece| io::Result::Ok(Bytes::copy_from_slice(piece))).collect();
        let mut lines = Lines::new(Body::from_stream(stream::iter(pieces)));
        let mut found = Vec::new();
        while let Some(line) = lines.next().now_or_never().unwrap().unwrap() {
            found.push(line);
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"\n{\"a\":1}\r\n  \n\n{\"b\":\"\xff\"}\nlast";
        let expected = [&b"{\"a\":1}\r"[..], b"{\"b\":\"\xff\"}", b"last"]
            .map(|line| Line::Text(Bytes::copy_from_slice(line)));
        for size in 1..=text.len() {
            assert_eq!(read(text, size), expected, "{size}");
        }
        assert_eq!(read(b"", 1), []);
        assert_eq!(read(b" \n\r\n", 1), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let line = |length: usize| "x".repeat(length);
        let text = format!("{}\n{}\nshort\n{}", line(MAX_LINE), line(MAX_LINE + 1), line(5 * MAX_LINE));
        for size in [1_000, MAX_LINE, text.len()] {
            let found = read(text.as_bytes(), size);
            assert_eq!(found.len(), 4, "{size}");
            assert_eq!(found[0], Line::Text(line(MAX_LINE).into()));
            assert_eq!(found[1], Line::TooLong);
            assert_eq!(found[2], Line::Text("short".into()));
            assert_eq!(found[3], Line::TooLong);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_breaks_off() {
        let first = stream::iter([io::Result::Ok(Bytes::from_static(b"one\ntw"))]);
        let mut lines = Lines::new(Body::from_stream(first.chain(stream::pending())));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Text("one".into())));
        assert!(lines.next().await.is_err());
    }

    #[test]
    fn a_body_that_breaks_off_is_no_end() {
        let pieces = [Ok(Bytes::from_static(b"one\ntw")), Err(io::Error::other("reset"))];
        let mut lines = Lines::new(Body::from_stream(stream::iter(pieces)));
        let mut next = || lines.next().now_or_never().unwrap();
        assert_eq!(next().unwrap(), Some(Line::Text("one".into())));
        assert!(next().is_err());
    }
}
