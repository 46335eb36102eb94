//! What a call sends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;

/// The largest request that is kept so that it can be sent again: what our services read at most, and its frame.
const KEPT: usize = (1 << 20) + 5;

/// The body of a request.
pub(super) enum Outgoing {
    /// One piece, which can be sent again.
    Whole(Bytes),
    /// Something that comes bit by bit: what has come, and the rest.
    Stream(VecDeque<Frame<Bytes>>, Body),
}

impl Outgoing {
    /// Looks at what is there of a body without waiting. A body that ends with its first piece is whole, and that is
    /// what a single message comes as.
    pub(super) fn look(mut body: Body) -> Result<Self, Status> {
        let first = match body.frame().now_or_never() {
            Some(Some(frame)) => frame?,
            Some(None) => return Ok(Self::Whole(Bytes::new())),
            None => return Ok(Self::Stream(VecDeque::new(), body)),
        };
        let first = match first.into_data() {
            Ok(data) if data.len() <= KEPT => data,
            Ok(data) => return Ok(Self::Stream([Frame::data(data)].into(), body)),
            Err(other) => return Ok(Self::Stream([other].into(), body)),
        };
        Ok(match body.frame().now_or_never() {
            Some(None) => Self::Whole(first),
            Some(Some(second)) => Self::Stream([Frame::data(first), second?].into(), body),
            None => Self::Stream([Frame::data(first)].into(), body),
        })
    }

    /// All of it, if that can be sent again.
    pub(super) fn whole(&self) -> Option<Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes.clone()),
            Self::Stream(..) => None,
        }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(ahead, rest) => match ahead.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(frame))),
                None => Pin::new(rest).poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Stream(ahead, rest) => ahead.is_empty() && rest.is_end_stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, StreamExt};
    use http_body_util::StreamBody;

    use super::*;

    fn body(pieces: Vec<&'static [u8]>, ends: bool) -> Body {
        let frame = |piece| Ok::<_, Status>(Frame::data(Bytes::from_static(piece)));
        let pieces = stream::iter(pieces.into_iter().map(frame));
        let rest = if ends { stream::empty().left_stream() } else { stream::pending().right_stream() };
        Body::new(StreamBody::new(pieces.chain(rest)))
    }

    #[tokio::test]
    async fn one_piece_can_be_sent_again_and_a_stream_comes_whole() {
        for (pieces, whole) in [
            (vec![], true),
            (vec![&b"a"[..]], true),
            (vec![b"a", b"b"], false),
            (vec![b"a", b"b", b"c"], false),
        ] {
            let all = pieces.concat();
            let outgoing = Outgoing::look(body(pieces, true)).unwrap();
            assert_eq!(outgoing.whole().is_some_and(|bytes| bytes == all), whole);
            assert_eq!(outgoing.collect().await.unwrap().to_bytes(), all);
        }
    }

    #[tokio::test]
    async fn a_stream_is_not_waited_for() {
        for pieces in [vec![], vec![&b"a"[..]], vec![b"a", b"b"]] {
            let mut outgoing = Outgoing::look(body(pieces.clone(), false)).unwrap();
            assert!(outgoing.whole().is_none());
            for piece in pieces {
                assert_eq!(outgoing.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
            }
        }
    }

    #[tokio::test]
    async fn a_request_too_large_to_keep_is_sent_once() {
        let large = &*Vec::leak(vec![0; KEPT + 1]);
        let outgoing = Outgoing::look(body(vec![large], true)).unwrap();
        assert!(outgoing.whole().is_none());
        assert_eq!(outgoing.collect().await.unwrap().to_bytes().len(), KEPT + 1);
    }
}
