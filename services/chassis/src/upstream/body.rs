//! What a call sends.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tonic::Status;
use tonic::body::Body;

/// The largest request that is kept so that it can be sent again: what our services read at most, and its frame.
const KEPT: usize = (1 << 20) + 5;

/// The body of a request.
pub(super) enum Outgoing {
    /// One piece, which can be sent again.
    Whole(Bytes),
    /// Something that comes bit by bit: what has come, and the rest.
    Stream(Option<Frame<Bytes>>, Body),
}

impl Outgoing {
    /// Looks at what is there of a body without waiting. A body that ends with its first piece is whole, and that is
    /// what a single message comes as.
    pub(super) async fn look(mut body: Body) -> Result<Self, Status> {
        let mut next = async || {
            std::future::poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
                Poll::Pending => Poll::Ready(Next::Later),
                Poll::Ready(None) => Poll::Ready(Next::End),
                Poll::Ready(Some(frame)) => Poll::Ready(Next::Frame(frame)),
            })
            .await
        };
        let first = match next().await {
            Next::Frame(frame) => frame?,
            Next::End => return Ok(Self::Whole(Bytes::new())),
            Next::Later => return Ok(Self::Stream(None, body)),
        };
        let first = match first.into_data() {
            Ok(data) if data.len() <= KEPT => data,
            Ok(data) => return Ok(Self::Stream(Some(Frame::data(data)), body)),
            Err(other) => return Ok(Self::Stream(Some(other), body)),
        };
        match next().await {
            Next::End => Ok(Self::Whole(first)),
            Next::Later => Ok(Self::Stream(Some(Frame::data(first)), body)),
            Next::Frame(second) => {
                let rest = Stream { ahead: Some(second?), rest: body };
                Ok(Self::Stream(Some(Frame::data(first)), Body::new(rest)))
            }
        }
    }

    /// All of it, if that can be sent again.
    pub(super) fn whole(&self) -> Option<Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes.clone()),
            Self::Stream(..) => None,
        }
    }
}

enum Next {
    Frame(Result<Frame<Bytes>, Status>),
    End,
    Later,
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
            Self::Stream(ahead, rest) => poll_stream(ahead, rest, cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Stream(ahead, rest) => ahead.is_none() && rest.is_end_stream(),
        }
    }
}

struct Stream {
    ahead: Option<Frame<Bytes>>,
    rest: Body,
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        poll_stream(&mut this.ahead, &mut this.rest, cx)
    }
}

fn poll_stream(
    ahead: &mut Option<Frame<Bytes>>,
    rest: &mut Body,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
    match ahead.take() {
        Some(frame) => Poll::Ready(Some(Ok(frame))),
        None => Pin::new(rest).poll_frame(cx),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, StreamExt};
    use http_body_util::{BodyExt, StreamBody};

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
            let outgoing = Outgoing::look(body(pieces, true)).await.unwrap();
            assert_eq!(outgoing.whole().is_some_and(|bytes| bytes == all), whole);
            assert_eq!(outgoing.collect().await.unwrap().to_bytes(), all);
        }
    }

    #[tokio::test]
    async fn a_stream_is_not_waited_for() {
        for pieces in [vec![], vec![&b"a"[..]], vec![b"a", b"b"]] {
            let mut outgoing = Outgoing::look(body(pieces.clone(), false)).await.unwrap();
            assert!(outgoing.whole().is_none());
            for piece in pieces {
                assert_eq!(outgoing.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
            }
        }
    }

    #[tokio::test]
    async fn a_request_too_large_to_keep_is_sent_once() {
        let large = &*Vec::leak(vec![0; KEPT + 1]);
        let outgoing = Outgoing::look(body(vec![large], true)).await.unwrap();
        assert!(outgoing.whole().is_none());
        assert_eq!(outgoing.collect().await.unwrap().to_bytes().len(), KEPT + 1);
    }
}
