//! gRPC calls that go out to other processes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;

use super::rpc::{code_of, labels};
use super::{Metrics, OTHER, Series, Timer};
use crate::grpc::Methods;

/// A transport whose calls are counted: what a call takes, all attempts together, until its reply has ended.
#[derive(Debug, Clone)]
pub struct Measured<T> {
    inner: T,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    methods: HashMap<String, Arc<Series<Code>>>,
    other: Arc<Series<Code>>,
}

impl Metrics {
    /// Counts the calls that go through this transport, to the methods of `descriptors`, an encoded
    /// `FileDescriptorSet`.
    pub fn measure_calls<T>(&self, transport: T, descriptors: &[u8]) -> Measured<T> {
        let durations = self.durations(
            "rpc_client_call_duration_seconds",
            "How long gRPC calls to other processes took until their replies ended, all attempts together.",
        );
        let series = |method: &str| {
            let labels = labels("grpc", method.to_owned());
            durations.series(labels)
        };
        let methods = Methods::of([descriptors]);
        let methods =
            methods.paths().map(|path| (path.to_owned(), series(path.trim_start_matches('/')))).collect();
        Measured { inner: transport, counts: Arc::new(Counts { methods, other: series(OTHER) }) }
    }
}

impl<T> Service<Request<Body>> for Measured<T>
where
    T: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    T::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let series = self.counts.methods.get(request.uri().path()).unwrap_or(&self.counts.other);
        let timer = Timer::start(Arc::clone(series));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            if let Some(code) = code_of(response.headers()) {
                timer.end(code);
                return Ok(response);
            }
            Ok(response.map(|inner| Body::new(Reply { inner, timer: Some(timer) })))
        })
    }
}

/// A reply on its way, which says at its end how the call ended.
struct Reply {
    inner: Body,
    timer: Option<Timer<Code>>,
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let ended = match &polled {
            Poll::Pending => None,
            Poll::Ready(None) => Some(Code::Unknown),
            Poll::Ready(Some(Err(status))) => Some(status.code()),
            Poll::Ready(Some(Ok(frame))) => {
                frame.trailers_ref().map(|trailers| code_of(trailers).unwrap_or(Code::Unknown))
            }
        };
        if let Some(code) = ended
            && let Some(timer) = self.timer.take()
        {
            timer.end(code);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
