//! One thread that serves: its runtime, its accept loops, its drain.

use std::io;
use std::net;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Connection, Limits, Seat};
use super::handler::Handler;
use super::{ServerConfig, Task};
use crate::{Shutdown, Work};

/// One thread with its runtime.
pub(super) struct Worker {
    index: usize,
    grace: Duration,
    limits: Limits,
    /// This thread's own branch of the shutdown: every poll of a connection looks at it, and one that all threads
    /// share would be a lock that all threads take.
    closing: CancellationToken,
    ports: Vec<(net::TcpListener, Handler, Arc<Semaphore>)>,
    background: Vec<Task>,
    work: Vec<Work>,
}

impl Worker {
    pub(super) fn new(index: usize, config: &ServerConfig, shutdown: &Shutdown, work: &[Work]) -> Self {
        Self {
            index,
            grace: Duration::from_secs_f64(config.grace_s),
            limits: Limits {
                head: Duration::from_secs_f64(config.header_timeout_s),
                write: Duration::from_secs_f64(config.write_timeout_s),
            },
            closing: shutdown.child_token(),
            ports: Vec::new(),
            background: Vec::new(),
            work: work.to_vec(),
        }
    }

    pub(super) fn port(&mut self, socket: net::TcpListener, handler: Handler, seats: Arc<Semaphore>) {
        self.ports.push((socket, handler, seats));
    }

    pub(super) fn background(&mut self, tasks: Vec<Task>) {
        self.background = tasks;
    }

    /// Starts the thread. The receiver hears when everything is drained or cut.
    pub(super) fn start(self) -> io::Result<oneshot::Receiver<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let open = TaskTracker::new();
        let mut loops = Vec::new();
        for (socket, handler, seats) in self.ports {
            let _inside = runtime.enter();
            let accept = Accept {
                listener: TcpListener::from_std(socket)?,
                handler,
                seats,
                closing: self.closing.clone(),
                open: open.clone(),
                limits: self.limits,
            };
            loops.push(accept.run());
        }
        let (closing, grace, background, work) = (self.closing, self.grace, self.background, self.work);
        let serve = async move {
            let background: Vec<_> = background.into_iter().map(tokio::spawn).collect();
            for accept in loops {
                tokio::spawn(accept);
            }
            closing.cancelled().await;
            open.close();
            let drained = async {
                open.wait().await;
                // Only now: a call that still runs may leave work behind.
                for work in &work {
                    work.done().await;
                }
            };
            if tokio::time::timeout(grace, drained).await.is_err() {
                let tasks: usize = work.iter().map(Work::running).sum();
                tracing::warn!(connections = open.len(), tasks, "grace time is over, connections are cut");
            }
            for task in background {
                task.abort();
            }
        };
        let (done, end) = oneshot::channel();
        thread::Builder::new().name(format!("serve-{}", self.index)).spawn(move || {
            runtime.block_on(serve);
            // What is left of the connections ends here, and nothing that blocks is waited for, such as the lookup of
            // a name.
            runtime.shutdown_background();
            let _ = done.send(());
        })?;
        Ok(end)
    }
}

/// The accept loop of one socket.
struct Accept {
    listener: TcpListener,
    handler: Handler,
    /// One for each connection that the port may have, on any thread.
    seats: Arc<Semaphore>,
    closing: CancellationToken,
    /// The connections of this thread, for the drain.
    open: TaskTracker,
    limits: Limits,
}

impl Accept {
    async fn run(self) {
        let closing = self.closing.clone();
        let builder = self.builder();
        let accept = async {
            loop {
                let stream = self.next().await;
                // Only now: a loop that took a seat before it has a connection would keep it from the other threads.
                let Ok(permit) = self.seats.clone().acquire_owned().await else { return };
                let seat = Seat { _permit: permit, _open: self.open.token() };
                self.serve(&builder, stream, seat);
            }
        };
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = accept => {}
        }
    }

    async fn next(&self) -> TcpStream {
        let mut failed = false;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return stream,
                // The peer's doing, and no trouble of ours.
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    // Out of file descriptors, most likely: give connections time to end instead of spinning.
                    if !failed {
                        tracing::warn!(%error, "can't accept connections for now");
                    }
                    failed = true;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn serve(&self, builder: &auto::Builder<TokioExecutor>, stream: TcpStream, seat: Seat) {
        // Without it a reply in two writes waits for the peer's delayed acknowledgement: 40 ms.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Connection::new(stream, self.limits, seat));
        let (builder, handler, closing) = (builder.clone(), self.handler.clone(), self.closing.clone());
        tokio::spawn(async move {
            let connection = builder.serve_connection_with_upgrades(io, handler);
            tokio::pin!(connection);
            let result = tokio::select! {
                biased;
                result = connection.as_mut() => result,
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = result {
                tracing::debug!(error, "connection ended");
            }
        });
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.limits.head).max_buf_size(64 << 10);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .max_concurrent_streams(256)
            // Of each stream: what one connection gathers for a write, and as much again meanwhile.
            .max_send_buf_size(128 << 10)
            .max_header_list_size(32 << 10)
            .max_local_error_reset_streams(1024)
            // As many calls as may run may be cancelled at once; the default of 20 fails the other calls of the connection.
            .max_pending_accept_reset_streams(256)
            // Static windows: the adaptive one starts at 64 KiB and makes large replies slower.
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20);
        builder
    }
}

/// Whether the connection broke before it was accepted.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
