//! What a port does with a request.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http::header::{ETAG, HeaderName, ORIGIN, VARY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tower::{Layer, Service, ServiceExt};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

use super::ServerConfig;
use crate::grpc::Routes;
use crate::metrics::HttpServer;
use crate::origin;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// Answers the requests of one port.
#[derive(Clone)]
pub(super) struct Handler {
    target: Target,
    cors: Arc<CorsLayer>,
}

#[derive(Clone)]
struct Target {
    /// Takes the paths of its services.
    grpc: Option<Routes>,
    /// Takes everything else, where there is more to take than health.
    http: Router,
    /// A port for gRPC answers unknown paths as gRPC does.
    grpc_first: bool,
    counts: Arc<HttpServer>,
}

impl Handler {
    pub(super) fn grpc(routes: Routes, router: Router, config: &ServerConfig) -> Self {
        Self::new(Some(routes), router, true, config)
    }

    pub(super) fn http(router: Router, config: &ServerConfig) -> Self {
        Self::new(None, router, false, config)
    }

    pub(super) fn both(routes: Routes, router: Router, config: &ServerConfig) -> Self {
        Self::new(Some(routes), router, false, config)
    }

    fn new(grpc: Option<Routes>, http: Router, grpc_first: bool, config: &ServerConfig) -> Self {
        let counts = Arc::new(HttpServer::new(&config.metrics));
        let target = Target { grpc, http, grpc_first, counts };
        Self { target, cors: Arc::new(cors(&config.origins)) }
    }
}

impl hyper::service::Service<Request<Incoming>> for Handler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        // Only a page has an origin. Everybody else is spared the headers that only a browser reads.
        if request.headers().contains_key(ORIGIN) {
            return self.answer_page(request);
        }
        self.target.answer(request)
    }
}

impl Handler {
    fn answer_page(&self, request: Request<Incoming>) -> Answer {
        let counts = Arc::clone(&self.target.counts);
        // The layer answers these by itself.
        let asks = request.method() == Method::OPTIONS;
        let timer = asks.then(|| counts.begin(request.method(), request.uri().path()));
        let answer = self.cors.layer(self.target.clone()).oneshot(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(match timer {
                Some(timer) => counts.reply(timer, response),
                None => response,
            })
        })
    }
}

impl Service<Request<Incoming>> for Target {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answer {
        self.answer(request)
    }
}

impl Target {
    fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        match &self.grpc {
            Some(routes) if routes.has(path) || (self.grpc_first && !is_health(path)) => {
                let method = request.method().clone();
                routes.answer(request.map(tonic::body::Body::new)).unwrap_or_else(|refused| {
                    self.counts.refused(&method, refused.status);
                    Box::pin(std::future::ready(Ok(refused.into_http())))
                })
            }
            _ => self.answer_http(request),
        }
    }

    fn answer_http(&self, request: Request<Incoming>) -> Answer {
        let page = request.headers().contains_key(ORIGIN);
        let counts = Arc::clone(&self.counts);
        let timer = counts.begin(request.method(), request.uri().path());
        let answer = self.http.clone().call(request.map(Body::new));
        // A handler that panics ends its own call, not the connection.
        let answer = AssertUnwindSafe(answer).catch_unwind();
        Box::pin(async move {
            let Ok(answer) = answer.await else {
                let failed = (StatusCode::INTERNAL_SERVER_ERROR, "the server failed\n").into_response();
                return Ok(counts.reply(timer, failed));
            };
            let mut response = answer?;
            // A cache must not give a page what it kept for somebody else: that lacks the headers for pages.
            if !page && response.headers().contains_key(ETAG) {
                response.headers_mut().append(VARY, HeaderValue::from_static("origin"));
            }
            Ok(counts.reply(timer, response))
        })
    }
}

fn is_health(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Pages that [`origin::may_call`] lets in may call with any header, and read what each API style answers with.
fn cors(origins: &[String]) -> CorsLayer {
    // gRPC-Web sends an error without messages as HTTP headers, which a page sees only when they are exposed.
    let exposed = [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "etag",
        "link",
        "location",
        "retry-after",
        "allow",
    ];
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::PUT, Method::DELETE])
        // The ones that the page asks for: `*` would leave `authorization` out.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(Duration::from_secs(600));
    if origin::all(origins) {
        return layer.allow_origin(Any);
    }
    let origins = origins.to_vec();
    layer.allow_origin(AllowOrigin::predicate(move |origin: &HeaderValue, _: &_| {
        origin.to_str().is_ok_and(|origin| origin::may_call(origin, &origins))
    }))
}
