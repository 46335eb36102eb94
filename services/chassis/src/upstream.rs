//! Connections to the services in other processes.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::Service;

use crate::call::{Deadline, TraceParent, format_grpc_timeout};
use crate::grpc::refusal;

/// A transport for the adapters of `proto::client`: it connects on first use and again after a break, passes on what
/// is left of the deadline and the trace, and ends every call by its deadline.
///
/// A service that can't be reached answers as `UNAVAILABLE` with the reason `UPSTREAM_UNAVAILABLE`, one that is too
/// slow as `DEADLINE_EXCEEDED`.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Connections>);

#[derive(Debug)]
struct Connections {
    endpoint: Endpoint,
    /// One for each thread that serves: a connection that lives on another thread costs a wake-up there per call.
    by_thread: Vec<OnceLock<Channel>>,
}

thread_local! {
    /// Which of the threads that serve this one is.
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn name_this_thread(index: usize) {
    THREAD.set(index);
}

impl Upstream {
    /// A transport to `http://host:port`, for `threads` threads. An error says what is wrong with the address.
    pub fn new(address: &str, threads: usize) -> Result<Self, String> {
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| format!("{address:?} is no address of the form http://host:port: {error}"))?;
        let uri = endpoint.uri();
        if uri.scheme_str() != Some("http") || uri.port_u16().is_none() || uri.path() != "/" {
            return Err(format!("{address:?} is no address of the form http://host:port"));
        }
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20);
        let by_thread = (0..threads.max(1)).map(|_| OnceLock::new()).collect();
        Ok(Self(Arc::new(Connections { endpoint, by_thread })))
    }

    fn channel(&self) -> Channel {
        let connections = &self.0;
        let index = THREAD.get() % connections.by_thread.len().max(1);
        match connections.by_thread.get(index) {
            Some(channel) => channel.get_or_init(|| connections.endpoint.connect_lazy()).clone(),
            None => connections.endpoint.connect_lazy(),
        }
    }
}

impl Service<Request<Body>> for Upstream {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let deadline = request.extensions().get::<Deadline>().copied();
        if let Some(trace) = request.extensions().get::<TraceParent>().cloned() {
            request.headers_mut().insert("traceparent", trace.0);
        }
        if let Some(deadline) = deadline
            && let Ok(value) = HeaderValue::try_from(format_grpc_timeout(deadline.left()))
        {
            request.headers_mut().insert("grpc-timeout", value);
        }
        let channel = self.channel();
        let uri = self.0.endpoint.uri().clone();
        Box::pin(async move {
            let call = send(channel, request);
            let answer = match deadline {
                None => call.await,
                Some(deadline) if deadline.left().is_zero() => Err(expired()),
                Some(deadline) => {
                    tokio::time::timeout_at(deadline.0, call).await.unwrap_or_else(|_| Err(expired()))
                }
            };
            Ok(answer.unwrap_or_else(|status| {
                tracing::debug!(%uri, code = ?status.code(), message = status.message(), "call failed");
                status.into_http()
            }))
        })
    }
}

async fn send(mut channel: Channel, request: Request<Body>) -> Result<Response<Body>, Status> {
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(unavailable)?;
    channel.call(request).await.map_err(unavailable)
}

fn unavailable(error: tonic::transport::Error) -> Status {
    tracing::debug!(error = &error as &dyn std::error::Error, "transport failed");
    refusal(Code::Unavailable, "UPSTREAM_UNAVAILABLE", "a service behind this one can't be reached")
}

fn expired() -> Status {
    refusal(Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "the time this call had ran out")
}
