//! Work that goes on when its caller leaves.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Tasks that a server which goes down waits for, as long as its grace time lasts. Clones share one count.
#[derive(Debug, Clone, Default)]
pub struct Work(TaskTracker);

impl Work {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the task beside its caller. Needs a runtime, on which it stays.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.spawn(task)
    }

    /// Tasks that run now.
    pub fn running(&self) -> usize {
        self.0.len()
    }

    /// Waits until no task runs.
    pub(crate) async fn done(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
