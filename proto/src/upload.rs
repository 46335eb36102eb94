//! Uploads to a service by a caller who has messages, not bytes.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame};
use tonic::codec::{DecodeBuf, Decoder};
use tonic::{Status, Streaming};

/// The upload that a server trait takes, made of these messages without encoding them. It is read at the pace of the
/// service, one message at a time; an error ends it.
pub fn upload<S, T>(messages: S) -> Streaming<T>
where
    S: Stream<Item = Result<T, Status>> + Send + 'static,
    T: Send + 'static,
{
    let handed = Hand(Arc::new(Mutex::new(None)));
    let body = Messages { messages: Box::pin(messages), handed: handed.clone() };
    Streaming::new_request(handed, body, None, None)
}

/// The message that is on its way from the body to the decoder: the decoder is asked after each frame.
struct Hand<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Hand<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A body of empty frames, each of which stands for a message that was handed over.
struct Messages<S, T> {
    messages: Pin<Box<S>>,
    handed: Hand<T>,
}

/// Not compressed, and no bytes long.
const EMPTY_FRAME: Bytes = Bytes::from_static(&[0; 5]);

impl<S, T> Body for Messages<S, T>
where
    S: Stream<Item = Result<T, Status>>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(match ready!(self.messages.as_mut().poll_next(cx)) {
            Some(Ok(message)) => {
                *self.handed.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
                Some(Ok(Frame::data(EMPTY_FRAME)))
            }
            Some(Err(status)) => Some(Err(status)),
            None => None,
        })
    }
}

impl<T: Send + 'static> Decoder for Hand<T> {
    type Item = T;
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<T>, Status> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, stream};

    use super::*;

    /// What a future that needs nothing to wait for comes to.
    fn now<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().unwrap()
    }

    #[test]
    fn messages_arrive_in_order_and_one_at_a_time() {
        let given = Arc::new(AtomicUsize::new(0));
        let count = given.clone();
        let messages = (0..5).map(move |n| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(n)
        });
        let mut upload = upload(stream::iter(messages));
        for n in 0..5 {
            assert_eq!(now(upload.message()).unwrap(), Some(n));
            assert_eq!(given.load(Ordering::Relaxed), n + 1, "none is taken before it is asked for");
        }
        assert_eq!(now(upload.message()).unwrap(), None);
    }

    #[test]
    fn an_error_ends_the_upload_and_says_what_it_was() {
        let mut upload = upload(stream::iter([Ok(1), Err(Status::data_loss("torn")), Ok(2)]));
        assert_eq!(now(upload.message()).unwrap(), Some(1));
        assert_eq!(now(upload.message()).unwrap_err().message(), "torn");
    }
}
