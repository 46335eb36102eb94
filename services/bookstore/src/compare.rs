//! The comparison, and how it learns that nobody wants more of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use tokio::sync::oneshot;

use crate::up::shutdown_on_signal;

/// The commit that this program was built from: see `build.rs`.
const COMMIT: &str = env!("BOOKSTORE_COMMIT");

/// Runs the comparison on a thread of its own; the exit code. A signal stops it, and it reports what it has.
pub(crate) async fn run(args: bench::Args) -> anyhow::Result<u8> {
    let shutdown = shutdown_on_signal()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (done, mut end) = oneshot::channel();
    let stopped = stop.clone();
    thread::Builder::new().name("compare".to_owned()).spawn(move || {
        let _ = done.send(bench::compare::run(args, COMMIT, &stopped));
    })?;
    let result = tokio::select! {
        result = &mut end => result,
        () = shutdown.begun() => {
            stop.store(true, Ordering::Relaxed);
            end.await
        }
    };
    result.context("the comparison broke off")?
}
