//! The one way a part of the suite learns that it is going down.

use std::io;

use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// Says that the process is going down. Clones share one state; it never goes back.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// One that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that begins when the process is told to stop: by SIGTERM or Ctrl-C. Needs a runtime that goes on running.
    ///
    /// Signals are heard from here on. A process calls this before it lets anybody in and before it starts another
    /// thread: until then a signal kills it, and one that comes while a second runtime runs may be lost.
    pub fn on_signal() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = Self::new();
        let told = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("told to stop"),
                _ = interrupt.recv() => tracing::info!("interrupted"),
            }
            told.begin();
        });
        Ok(shutdown)
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

    /// A token that is cancelled when it begins.
    pub(crate) fn child_token(&self) -> CancellationToken {
        self.token.child_token()
    }

    /// The stream until shutdown begins, then `last`, if any, and the end.
    pub fn end<S>(&self, stream: S, last: Option<S::Item>) -> impl Stream<Item = S::Item> + Send + use<S>
    where
        S: Stream + Send,
        S::Item: Send,
    {
        let told = futures_util::stream::iter(last);
        let ended = self.token.clone().cancelled_owned();
        // A stream that came to its own end gets no `last`.
        let cut = self.clone();
        stream.take_until(ended).chain(told.filter(move |_| std::future::ready(cut.has_begun())))
    }
}
