//! The one way a part of the suite learns that it is going down.

use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Says that the process is going down. Clones share one state; it never goes back.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
    work: TaskTracker,
}

/// Work that the drain waits for; it is done when this is dropped.
#[derive(Debug)]
pub struct Work {
    _token: TaskTrackerToken,
}

impl Shutdown {
    /// One that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins it. Readiness drops and listeners close at once; running calls finish.
    pub fn begin(&self) {
        self.token.cancel();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until it begins.
    pub async fn begun(&self) {
        self.token.cancelled().await;
    }

    /// Begins it when the process is told to stop: SIGTERM or Ctrl-C. Needs a runtime; an error says that signals
    /// can't be heard.
    pub async fn begin_on_signal(&self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => tracing::info!("told to stop"),
            _ = interrupt.recv() => tracing::info!("interrupted"),
        }
        self.begin();
        Ok(())
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Makes the drain wait for work that no connection stands for, such as a WebSocket.
    pub fn working(&self) -> Work {
        Work { _token: self.work.token() }
    }

    /// Waits until shutdown has begun and all [`Work`] is done.
    pub async fn idle(&self) {
        self.begun().await;
        self.work.close();
        self.work.wait().await;
    }

    /// The stream until shutdown begins, then `last`, if any, and the end.
    pub fn end<S>(&self, stream: S, last: Option<S::Item>) -> impl Stream<Item = S::Item> + Send + use<S>
    where
        S: Stream + Send,
        S::Item: Send,
    {
        let told = futures_util::stream::iter(last);
        let ended = self.token.clone().cancelled_owned();
        // `Some` marks items of the stream, so that `last` comes only when the stream was cut.
        let cut = self.clone();
        stream.take_until(ended).chain(told.filter(move |_| std::future::ready(cut.has_begun())))
    }
}
