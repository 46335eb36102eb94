//! Connections to the services in other processes.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body::Frame;
use tokio::runtime::{Handle, Id};
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::Service;

use crate::call::{Deadline, TraceParent, format_grpc_timeout};
use crate::grpc::refusal;
use crate::grpc::status::{expired, trailers};

/// A transport for the adapters of `proto::client`: it connects on first use and again after a break, passes on what
/// is left of the deadline and the trace, and ends every call by its deadline.
///
/// A service that can't be reached, or breaks off in the middle of a call, answers as `UNAVAILABLE` with the reason
/// `UPSTREAM_UNAVAILABLE`, one that is too slow as `DEADLINE_EXCEEDED`.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Connections>);

struct Connections {
    endpoint: Endpoint,
    /// Over TCP unless a test brings another network.
    connect: Box<dyn Fn(&Endpoint) -> Channel + Send + Sync>,
    /// One for each runtime: a connection that lives on another costs a wake-up there per call, and ends with it.
    by_runtime: RwLock<Vec<(Id, Channel)>>,
}

impl Upstream {
    /// A transport to `http://host:port`. An error says what is wrong with the address.
    pub fn new(address: &str) -> Result<Self, String> {
        Self::connected_by(address, Endpoint::connect_lazy)
    }

    /// A transport over another network than the machine's: `connector` opens a byte stream to the host and port of
    /// the address that it is called with.
    pub fn with_connector<C>(address: &str, connector: C) -> Result<Self, String>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send,
        C::Error: std::error::Error + Send + Sync + 'static,
        C::Future: Send,
    {
        Self::connected_by(address, move |endpoint| endpoint.connect_with_connector_lazy(connector.clone()))
    }

    fn connected_by(
        address: &str,
        connect: impl Fn(&Endpoint) -> Channel + Send + Sync + 'static,
    ) -> Result<Self, String> {
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
        let connect = Box::new(connect);
        Ok(Self(Arc::new(Connections { endpoint, connect, by_runtime: RwLock::default() })))
    }

    fn channel(&self) -> Channel {
        let id = Handle::current().id();
        let of =
            |channels: &[(Id, Channel)]| channels.iter().find(|(of, _)| *of == id).map(|(_, c)| c.clone());
        let by_runtime = &self.0.by_runtime;
        if let Some(channel) = of(&by_runtime.read().unwrap_or_else(PoisonError::into_inner)) {
            return channel;
        }
        let mut channels = by_runtime.write().unwrap_or_else(PoisonError::into_inner);
        of(&channels).unwrap_or_else(|| {
            let channel = (self.0.connect)(&self.0.endpoint);
            channels.push((id, channel.clone()));
            channel
        })
    }

    async fn send(
        &self,
        mut channel: Channel,
        request: Request<Body>,
        deadline: Option<Deadline>,
    ) -> Result<Response<Body>, Status> {
        let sent = async {
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
            channel.call(request).await
        };
        sent.await.map_err(|error| self.broken(&error, deadline))
    }

    fn broken(&self, error: &(dyn std::error::Error + 'static), deadline: Option<Deadline>) -> Status {
        tracing::debug!(uri = %self.0.endpoint.uri(), error, "call failed");
        // The channel reads `grpc-timeout` too, and may be the first to notice.
        if deadline.is_some_and(|deadline| deadline.left().is_zero()) {
            return expired();
        }
        refusal(Code::Unavailable, "UPSTREAM_UNAVAILABLE", "a service behind this one can't be reached")
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(self.endpoint.uri()).finish()
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
        let upstream = self.clone();
        Box::pin(async move {
            let answer = match deadline {
                None => upstream.send(channel, request, None).await,
                Some(deadline) if deadline.left().is_zero() => Err(expired()),
                Some(Deadline(at)) => tokio::time::timeout_at(at, upstream.send(channel, request, deadline))
                    .await
                    .unwrap_or_else(|_| Err(expired())),
            };
            Ok(match answer {
                Ok(response) => {
                    response.map(|inner| Body::new(Reply { inner, upstream, deadline, alarm: None }))
                }
                Err(status) => status.into_http(),
            })
        })
    }
}

/// A reply on its way: it too ends by the deadline, and says so if the service breaks off.
struct Reply {
    inner: Body,
    upstream: Upstream,
    deadline: Option<Deadline>,
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
        let status = match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Err(error))) => this.upstream.broken(&error, this.deadline),
            Poll::Ready(frame) => return Poll::Ready(frame),
            Poll::Pending => {
                let Some(deadline) = this.deadline else { return Poll::Pending };
                let alarm = this.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.0)));
                ready!(alarm.as_mut().poll(cx));
                expired()
            }
        };
        // The break is over and told; what is left of the reply goes with it.
        this.inner = Body::empty();
        this.deadline = None;
        Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}
