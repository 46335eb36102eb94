//! What happens around every gRPC call: its deadline, its end at shutdown, and errors that name a reason.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::Service;

use super::Settings;
use crate::call::{Deadline, TraceParent, parse_grpc_timeout};

/// `ErrorInfo.domain` of the refusals that are made here.
pub const DOMAIN: &str = "bookstore";

/// A status that names its reason.
pub fn refusal(code: Code, reason: &str, message: impl Into<String>) -> Status {
    let details = ErrorDetails::with_error_info(reason, DOMAIN, std::collections::HashMap::new());
    Status::with_error_details(code, message, details)
}

fn expired() -> Status {
    refusal(Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "the time this call had ran out")
}

/// A generated server with deadlines (tonic's own answer CANCELLED and stop at the headers), streams that end at
/// shutdown, and reasons for the errors that tonic makes itself.
#[derive(Clone)]
pub(super) struct Call<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> Call<S> {
    pub(super) fn new(inner: S, settings: Arc<Settings>) -> Self {
        Self { inner, settings }
    }
}

impl<S> Service<Request<Body>> for Call<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let settings = &self.settings;
        let named = match request.headers().get("grpc-timeout") {
            None => None,
            Some(value) => match value.to_str().ok().and_then(parse_grpc_timeout) {
                Some(time) => Some(time.min(settings.limits.max_deadline)),
                None => {
                    let message = "grpc-timeout: must be 1 to 8 digits and a unit of H M S m u n";
                    let status = refusal(Code::InvalidArgument, "MALFORMED_REQUEST", message);
                    return Box::pin(std::future::ready(Ok(status.into_http())));
                }
            },
        };
        let path = request.uri().path();
        let streams = settings.methods.server_streams.contains(path);
        let uploads = settings.methods.client_streams.contains(path);
        let limit = match (named, uploads, streams) {
            (Some(time), ..) => Some(time),
            (None, false, _) => Some(settings.limits.default_deadline),
            (None, true, false) => Some(settings.limits.max_deadline),
            (None, true, true) => None,
        };
        let deadline = limit.map(|time| Instant::now() + time);
        // A stream's own work is bounded by the caller's wish only.
        let shown = if streams { named.and(deadline) } else { deadline };
        if let Some(at) = shown {
            request.extensions_mut().insert(Deadline(at));
        }
        if let Some(trace) = TraceParent::from_headers(request.headers()) {
            request.extensions_mut().insert(trace);
        }
        let answer = self.inner.call(request);
        let settings = streams.then(|| self.settings.clone());
        Box::pin(async move {
            let response = match deadline {
                None => answer.await?,
                Some(at) => match tokio::time::timeout_at(at, answer).await {
                    Ok(response) => response?,
                    Err(_) => return Ok(expired().into_http()),
                },
            };
            let response = name_reason(response);
            Ok(match settings {
                Some(settings) if !response.body().is_end_stream() => {
                    response.map(|body| Body::new(StreamBody::new(body, shown, &settings)))
                }
                _ => response,
            })
        })
    }
}

/// Errors that tonic makes before a service sees the call carry no reason, and some an unfitting code.
fn name_reason(response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    if !headers.contains_key("grpc-status") || headers.contains_key("grpc-status-details-bin") {
        return response;
    }
    let Some(status) = Status::from_header_map(headers) else { return response };
    let Some(named) = named(&status) else { return response };
    named.into_http()
}

fn named(status: &Status) -> Option<Status> {
    let message = status.message();
    let (code, reason) = match status.code() {
        Code::OutOfRange if message.contains("message length too large") => {
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
        }
        // A body that is no sequence of gRPC messages. Faults of ours never read like this.
        Code::Internal
            if message.starts_with("protocol error")
                || message.starts_with("Missing request message")
                || message.starts_with("Unexpected EOF") =>
        {
            (Code::InvalidArgument, "MALFORMED_REQUEST")
        }
        Code::Unimplemented if message.starts_with("Content is compressed") => {
            (Code::Unimplemented, "UNSUPPORTED_MEDIA_TYPE")
        }
        Code::Unimplemented if message.is_empty() => {
            return Some(refusal(Code::Unimplemented, "ROUTE_NOT_FOUND", "no method has this name"));
        }
        _ => return None,
    };
    Some(refusal(code, reason, message))
}

/// A streamed reply that ends by the caller's deadline, and at shutdown as soon as it would have to wait.
struct StreamBody {
    inner: Body,
    deadline: Option<Pin<Box<Sleep>>>,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
}

impl StreamBody {
    fn new(inner: Body, deadline: Option<Instant>, settings: &Settings) -> Self {
        Self {
            inner,
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            shutdown: Box::pin(settings.shutdown.token().cancelled_owned()),
            ended: false,
        }
    }
}

impl http_body::Body for StreamBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // The deadline comes first: a stream that is always ready must end by it too.
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.ended = true;
            return Poll::Ready(Some(Ok(trailers(&expired()))));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        ready!(self.shutdown.as_mut().poll(cx));
        self.ended = true;
        let status = refusal(Code::Unavailable, "SHUTTING_DOWN", "the server is shutting down");
        Poll::Ready(Some(Ok(trailers(&status))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}

fn trailers(status: &Status) -> Frame<Bytes> {
    let mut headers = HeaderMap::new();
    // Fails only for a message that is no header value, which ours are.
    let _ = status.add_header(&mut headers);
    Frame::trailers(headers)
}
