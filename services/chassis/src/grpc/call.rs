//! What happens around every gRPC call: its deadline, its end at shutdown, and errors that name a reason.

use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;

use super::status::{expired, name_reason, refusal, trailers};
use super::{Protocol, Settings};
use crate::call::{Deadline, TraceParent, parse_grpc_timeout};
use crate::metrics::{Alive, Timer, code_of};

/// A generated server with deadlines (tonic's own answer CANCELLED and stop at the headers), streams that end at
/// shutdown, and reasons for the errors that tonic makes itself.
#[derive(Clone)]
pub(super) struct Call<S> {
    inner: S,
    protocol: Protocol,
    settings: Arc<Settings>,
}

impl<S> Call<S> {
    pub(super) fn new(inner: S, protocol: Protocol, settings: Arc<Settings>) -> Self {
        Self { inner, protocol, settings }
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
        let method = settings.methods.find(request.uri().path());
        let timer = settings.timer(method.map(|(at, _)| at), self.protocol);
        let named = match request.headers().get("grpc-timeout") {
            None => None,
            Some(value) => match value.to_str().ok().and_then(parse_grpc_timeout) {
                Some(time) => Some(time.min(settings.limits.max_deadline)),
                None => {
                    let message = "grpc-timeout: must be 1 to 8 digits and a unit of H M S m u n";
                    let status = refusal(Code::InvalidArgument, "MALFORMED_REQUEST", message);
                    return Box::pin(std::future::ready(Ok(refuse(timer, &status))));
                }
            },
        };
        let streams = method.is_some_and(|(_, method)| method.server_streams);
        let uploads = method.is_some_and(|(_, method)| method.client_streams);
        // Until the reply begins. A server stream that names no deadline has the default one until then, so that a
        // request whose end never comes doesn't stay for ever.
        let limit = match (named, uploads, streams) {
            (Some(time), ..) => Some(time),
            (None, false, _) => Some(settings.limits.default_deadline),
            (None, true, false) => Some(settings.limits.max_deadline),
            (None, true, true) => None,
        };
        let deadline = limit.map(|time| Instant::now() + time);
        // What bounds the whole call: a stream, the caller's wish only.
        let shown = if streams { named.and(deadline) } else { deadline };
        if let Some(at) = shown {
            request.extensions_mut().insert(Deadline(at));
        }
        if let Some(trace) = TraceParent::from_headers(request.headers()) {
            request.extensions_mut().insert(trace);
        }
        if uploads {
            request = request.map(|body| Body::new(body.map_err(cut_short)));
        }
        // A handler that panics ends its own call, and its caller hears of it.
        let answer = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        let settings = streams.then(|| self.settings.clone());
        Box::pin(async move {
            let answer = match deadline {
                None => Ok(answer.await),
                // A timer looks at the answer first, and one that is there at once would pass it by.
                Some(at) if at <= Instant::now() => return Ok(refuse(timer, &expired())),
                Some(at) => tokio::time::timeout_at(at, answer).await,
            };
            let response = match answer {
                Ok(Ok(response)) => response?,
                Ok(Err(_panic)) => return Ok(refuse(timer, &failed())),
                Err(_elapsed) => return Ok(refuse(timer, &expired())),
            };
            if let Some(status) = name_reason(response.headers()) {
                return Ok(refuse(timer, &status));
            }
            // Headers with a code are all there is; else one reply follows, which nothing can stop any more, or a stream.
            let code = code_of(response.headers());
            if code.is_none()
                && let Some(settings) = settings
            {
                return Ok(response.map(|body| Body::new(StreamBody::new(body, shown, &settings, timer))));
            }
            if let Some(timer) = timer {
                timer.end(code.unwrap_or(Code::Ok));
            }
            Ok(response)
        })
    }
}

/// Ends a call before it began, or in its place.
fn refuse(timer: Option<Timer<Code>>, status: &Status) -> Response<Body> {
    if let Some(timer) = timer {
        timer.end(status.code());
    }
    status.clone().into_http()
}

/// What a caller hears of a panic; the log has more.
fn failed() -> Status {
    refusal(Code::Internal, "INTERNAL", "the server failed")
}

/// A caller that leaves in the middle of an upload. Under the code CANCELLED, which is what it comes with, tonic would
/// show the service the proper end of the upload.
fn cut_short(status: Status) -> Status {
    match status.code() {
        Code::Cancelled => refusal(Code::Aborted, "CANCELLED", "the caller left"),
        _ => status,
    }
}

/// A streamed reply that ends by the caller's deadline, and at shutdown as soon as it would have to wait.
struct StreamBody {
    inner: Body,
    deadline: Option<Pin<Box<Sleep>>>,
    ending: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
    timer: Option<Timer<Code>>,
    _alive: Option<Alive>,
}

impl StreamBody {
    fn new(inner: Body, deadline: Option<Instant>, settings: &Settings, timer: Option<Timer<Code>>) -> Self {
        Self {
            inner,
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            ending: Box::pin(settings.ending.clone().cancelled_owned()),
            ended: false,
            timer,
            _alive: settings.counts.get().map(|counts| counts.streams.enter()),
        }
    }

    fn count(&mut self, code: Code) {
        if let Some(timer) = self.timer.take() {
            timer.end(code);
        }
    }

    fn end(&mut self, status: &Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.count(status.code());
        self.ended = true;
        Poll::Ready(Some(Ok(Frame::trailers(trailers(status)))))
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
            return self.end(&expired());
        }
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.inner).poll_frame(cx)));
        let Ok(polled) = polled else {
            self.inner = Body::empty();
            return self.end(&failed());
        };
        if let Poll::Ready(frame) = polled {
            let trailers = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.trailers_ref());
            let code = trailers.map(|trailers| code_of(trailers).unwrap_or(Code::Unknown));
            return match trailers.and_then(name_reason) {
                Some(status) => self.end(&status),
                None => {
                    if let Some(code) = code {
                        self.count(code);
                    }
                    Poll::Ready(frame)
                }
            };
        }
        ready!(self.ending.as_mut().poll(cx));
        self.end(&refusal(Code::Unavailable, "SHUTTING_DOWN", "the server is shutting down"))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}
