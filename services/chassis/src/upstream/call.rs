//! One call: from the breaker through one or more replicas to the end of the reply.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, request};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tonic_types::StatusExt;

use super::body::Outgoing;
use super::pool::{Member, Pool, Ticket};
use super::{Shared, UNAVAILABLE, unavailable};
use crate::call::{Deadline, format_grpc_timeout};
use crate::grpc::status::{expired, trailers};

/// How often a call may be sent at most, counting those times that it did not get through.
const TIMES: usize = 3;

/// A call with less time than this that gets no answer says nothing about the service.
const FAIR: Duration = Duration::from_millis(100);

pub(super) struct Call {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    deadline: Option<Deadline>,
}

/// How an attempt ended that brought no reply.
enum Failure {
    /// There is nothing to be tried again.
    Final(Status),
    /// No service has worked on it. The request may be here.
    Untouched(Option<Box<Request<Outgoing>>>, Arc<Member>),
    /// A service may have worked on it.
    Broken(Arc<Member>),
    /// The service said so.
    Unavailable(Box<(Response<Incoming>, Ticket)>),
}

/// What it takes to send a request again.
struct Spare {
    head: request::Parts,
    body: Bytes,
}

impl Spare {
    fn request(&self) -> Request<Outgoing> {
        Request::from_parts(self.head.clone(), Outgoing::Whole(self.body.clone()))
    }
}

impl Call {
    pub(super) fn new(shared: Arc<Shared>, pool: Arc<Pool>, deadline: Option<Deadline>) -> Self {
        Self { shared, pool, deadline }
    }

    pub(super) async fn run(self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let (response, ticket) = self.answer(request).await?;
        Ok(response.map(|inner| Body::new(Reply { inner: Some(inner), call: self, ticket, alarm: None })))
    }

    /// The head of the reply, from whichever replica gave it.
    async fn answer(&self, request: Request<Body>) -> Result<(Response<Incoming>, Ticket), Status> {
        let (mut head, body) = request.into_parts();
        self.address(&mut head);
        let body = Outgoing::look(body)?;
        let Some(_pass) = self.shared.breaker.enter() else { return Err(unavailable()) };
        // A stream is sent once.
        let spare = body.whole().map(|body| Spare { head: head.clone(), body });
        let again = |member| Some((spare.as_ref()?.request(), Some(member)));
        let (mut request, mut avoided) = (Request::from_parts(head, body), None);
        let mut repeated = false;
        for times_left in (0..TIMES).rev() {
            let failure = match self.attempt(request, avoided.as_ref()).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let may_repeat = |repeated: bool| {
                let path = spare.as_ref().map_or("", |spare| spare.head.uri.path());
                !repeated && times_left > 0 && self.may_repeat(path)
            };
            let next = match failure {
                Failure::Final(status) => return Err(status),
                Failure::Untouched(Some(request), member) if times_left > 0 => Some((*request, Some(member))),
                Failure::Untouched(None, member) if times_left > 0 => again(member),
                Failure::Untouched(..) => None,
                Failure::Broken(member) if may_repeat(repeated) => {
                    repeated = true;
                    again(member)
                }
                Failure::Broken(_) => None,
                Failure::Unavailable(answer) if may_repeat(repeated) => {
                    repeated = true;
                    again(answer.1.member.clone())
                }
                Failure::Unavailable(answer) => return Ok(*answer),
            };
            let Some(next) = next else { return Err(self.broken()) };
            self.shared.repeated.fetch_add(1, Relaxed);
            (request, avoided) = next;
        }
        Err(self.broken())
    }

    async fn attempt(
        &self,
        mut request: Request<Outgoing>,
        avoided: Option<&Arc<Member>>,
    ) -> Result<(Response<Incoming>, Ticket), Failure> {
        let left = self.deadline.map(Deadline::left);
        if let Some(left) = left {
            if left.is_zero() {
                return Err(Failure::Final(expired()));
            }
            if let Ok(value) = HeaderValue::try_from(format_grpc_timeout(left)) {
                request.headers_mut().insert("grpc-timeout", value);
            }
        }
        let is_fair = left.is_none_or(|left| left >= FAIR);
        let (ticket, sent) = loop {
            request = match self.pool.send(request, avoided) {
                Ok(sent) => break sent,
                Err(request) => *request,
            };
            let ready = Box::pin(self.pool.ready());
            match self.in_time(ready).await {
                Some(Ok(())) => {}
                Some(Err(_unreachable)) => {
                    self.shared.breaker.failed();
                    return Err(Failure::Final(self.broken()));
                }
                None => {
                    if is_fair {
                        self.shared.breaker.failed();
                    }
                    return Err(Failure::Final(expired()));
                }
            }
        };
        match self.in_time(sent).await {
            Some(Ok(response)) => self.judge(response, ticket, is_fair),
            Some(Err(error)) => Err(self.untouched_or_broken(error, &ticket)),
            None => {
                if is_fair && !ticket.timed_out() {
                    self.shared.breaker.failed();
                }
                Err(Failure::Final(expired()))
            }
        }
    }

    /// What the head of a reply says about the service.
    fn judge(
        &self,
        response: Response<Incoming>,
        ticket: Ticket,
        is_fair: bool,
    ) -> Result<(Response<Incoming>, Ticket), Failure> {
        match response.headers().get("grpc-status").map(HeaderValue::as_bytes) {
            Some(b"14") if !is_of_another(&response) => {
                self.failed(&ticket);
                return Err(Failure::Unavailable(Box::new((response, ticket))));
            }
            Some(b"4") => {
                if is_fair && !ticket.timed_out() {
                    self.shared.breaker.failed();
                }
            }
            _ => {
                ticket.succeeded();
                self.shared.breaker.succeeded();
                self.shared.budget.succeeded();
            }
        }
        Ok((response, ticket))
    }

    fn untouched_or_broken(&self, mut error: TrySendError<Request<Outgoing>>, ticket: &Ticket) -> Failure {
        tracing::debug!(name = %self.shared.network.authority(), error = %error.error(), "call failed");
        let request = error.take_message();
        let member = ticket.member.clone();
        if request.is_some() || is_untouched(error.error()) {
            // A connection that ends as it should is no failure of the service.
            return Failure::Untouched(request.map(Box::new), member);
        }
        self.failed(ticket);
        Failure::Broken(member)
    }

    fn failed(&self, ticket: &Ticket) {
        // As long as there is a replica that is well the service isn't out.
        if !ticket.failed() {
            self.shared.breaker.failed();
        }
    }

    fn may_repeat(&self, path: &str) -> bool {
        self.shared.idempotent.contains(path) && !self.shared.breaker.is_open() && self.shared.budget.take()
    }

    async fn in_time<F: Future>(&self, future: F) -> Option<F::Output> {
        match self.deadline {
            None => Some(future.await),
            Some(Deadline(at)) => tokio::time::timeout_at(at, future).await.ok(),
        }
    }

    fn broken(&self) -> Status {
        // A service may hang up on a call whose time is over before that is noticed here.
        if self.deadline.is_some_and(|deadline| deadline.left().is_zero()) {
            expired()
        } else {
            unavailable()
        }
    }

    /// Makes the path a whole address, as HTTP/2 wants it.
    fn address(&self, head: &mut request::Parts) {
        let mut uri = std::mem::take(&mut head.uri).into_parts();
        uri.scheme = Some(http::uri::Scheme::HTTP);
        uri.authority = Some(self.shared.network.authority().clone());
        head.uri = Uri::from_parts(uri).unwrap_or_default();
        head.version = http::Version::HTTP_2;
        head.extensions.clear();
    }
}

/// Whether the service is well, and says that one behind it is out.
fn is_of_another(response: &Response<Incoming>) -> bool {
    let details =
        Status::from_header_map(response.headers()).and_then(|status| status.get_details_error_info());
    details.is_some_and(|info| info.reason == UNAVAILABLE)
}

/// Whether the service says that it has not begun to work on the call.
fn is_untouched(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        cause.is_remote() && (cause.is_go_away() || cause.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// A reply on its way: it too ends by the deadline, and says so if the service breaks off.
struct Reply {
    /// Until it broke.
    inner: Option<Incoming>,
    call: Call,
    ticket: Ticket,
    /// Set once the reply has to be waited for, which a short one never has.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        let status = match Pin::new(inner).poll_frame(cx) {
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(name = %this.call.shared.network.authority(), %error, "reply broke off");
                if !is_untouched(&error) {
                    this.call.failed(&this.ticket);
                }
                this.call.broken()
            }
            Poll::Ready(frame) => return Poll::Ready(frame.map(|frame| frame.map_err(|_| unavailable()))),
            Poll::Pending => {
                let Some(deadline) = this.call.deadline else { return Poll::Pending };
                let alarm = this.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.0)));
                ready!(alarm.as_mut().poll(cx));
                expired()
            }
        };
        // The break is over and told; what is left of the reply goes with it.
        this.inner = None;
        Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(http_body::Body::is_end_stream)
    }
}
