//! HTTP requests that come in, those of gRPC and gRPC-Web apart.

use std::array;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};

use super::{Alive, Labels, Live, Metrics, OTHER, Outcome, Series, Timer};

/// The status of a reply; none where the caller left before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered(Option<StatusCode>);

impl Outcome for Answered {
    const ABANDONED: Self = Self(None);

    fn labels(self) -> Labels {
        let status = self.0.map_or_else(String::new, |status| status.as_str().to_owned());
        vec![("http_response_status_code", status.into())]
    }
}

/// The methods that are known, the usual ones first.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PATCH,
    Method::DELETE,
    Method::PUT,
    Method::HEAD,
    Method::OPTIONS,
    Method::TRACE,
    Method::CONNECT,
];

/// The counts of one route, for each of [`METHODS`] and any other word.
type Route = [Arc<Series<Answered>>; METHODS.len() + 1];

/// The counts of one port.
#[derive(Debug)]
pub(crate) struct HttpServer {
    /// Finds a route as axum does, with what axum does it with. Asking axum costs more: a layer around each route,
    /// which is two more boxes for every request.
    routes: matchit::Router<Route>,
    other: Route,
    streams: Live,
}

impl HttpServer {
    /// Counts requests by the routes that are known by now.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let durations = metrics.durations::<Answered>(
            "http_server_request_duration_seconds",
            "How long HTTP requests took until the reply began; those whose reply is a stream, until it ended.",
        );
        let route = |path: &str| -> Route {
            array::from_fn(|method| {
                let method = METHODS.get(method).map_or(OTHER, Method::as_str).to_owned();
                let path = path.to_owned();
                durations.series(vec![("http_route", path.into()), ("http_request_method", method.into())])
            })
        };
        let mut routes = matchit::Router::new();
        for path in metrics.known_routes() {
            if let Err(error) = routes.insert(path.as_str(), route(&path)) {
                tracing::error!(path, %error, "requests to this path are counted as if it were unknown");
            }
        }
        let streams = metrics.live(
            "http_server_streams_live",
            "HTTP replies of no fixed length that have not ended.",
            Labels::new(),
        );
        Self { routes, other: route(""), streams }
    }

    /// A request has come in.
    pub(crate) fn begin(&self, method: &Method, path: &str) -> Timer<Answered> {
        let route = self.routes.at(path).map_or(&self.other, |found| found.value);
        Timer::start(Arc::clone(of(route, method)))
    }

    /// A request that was answered on the spot, because it was none of the kind that this port takes.
    pub(crate) fn refused(&self, method: &Method, status: StatusCode) {
        of(&self.other, method).record(Answered(Some(status)), std::time::Duration::ZERO);
    }

    /// The reply begins, which is the end of it unless it is a stream.
    pub(crate) fn reply(&self, timer: Timer<Answered>, response: Response<Body>) -> Response<Body> {
        let answered = Answered(Some(response.status()));
        if response.body().size_hint().exact().is_some() {
            timer.end(answered);
            return response;
        }
        let alive = self.streams.enter();
        response.map(|inner| Body::new(Streamed { inner, timer: Some(timer), answered, _alive: alive }))
    }
}

fn of<'a>(route: &'a Route, method: &Method) -> &'a Arc<Series<Answered>> {
    let [.., other] = route;
    METHODS.iter().position(|known| known == method).and_then(|at| route.get(at)).unwrap_or(other)
}

/// A reply of no fixed length, which is counted as it ends. One whose reader leaves has ended too: its status is known.
struct Streamed {
    inner: Body,
    timer: Option<Timer<Answered>>,
    answered: Answered,
    _alive: Alive,
}

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.end(self.answered);
        }
    }
}
