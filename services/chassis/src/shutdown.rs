//! The one way a part of the suite learns that it is going down.

use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// Says that the process is going down. Clones share one state; it never goes back.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// One that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins it. Readiness drops and listeners close at once; running calls finish.
    pub fn begin(&self) {
        self.0.cancel();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it begins.
    pub async fn begun(&self) {
        self.0.cancelled().await;
    }

    /// The stream until shutdown begins, then `last`, if any, and the end.
    pub fn end<S>(&self, stream: S, last: Option<S::Item>) -> impl Stream<Item = S::Item> + Send + use<S>
    where
        S: Stream + Send,
        S::Item: Send,
    {
        let told = futures_util::stream::iter(last);
        let ended = self.clone().0.cancelled_owned();
        // `Some` marks items of the stream, so that `last` comes only when the stream was cut.
        let cut = self.clone();
        stream.take_until(ended).chain(told.filter(move |_| std::future::ready(cut.has_begun())))
    }
}
