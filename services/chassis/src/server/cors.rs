//! What a port does with a request, and whose pages may send one.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{HeaderName, ORIGIN};
use http::{HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use tower::{Layer, Service, ServiceExt};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::grpc::Routes;

type BoxFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

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
}

impl Handler {
    pub(super) fn grpc(routes: Routes, router: Router, origins: &[String]) -> Self {
        Self::new(Target { grpc: Some(routes), http: router, grpc_first: true }, origins)
    }

    pub(super) fn http(router: Router, origins: &[String]) -> Self {
        Self::new(Target { grpc: None, http: router, grpc_first: false }, origins)
    }

    pub(super) fn both(routes: Routes, router: Router, origins: &[String]) -> Self {
        Self::new(Target { grpc: Some(routes), http: router, grpc_first: false }, origins)
    }

    fn new(target: Target, origins: &[String]) -> Self {
        Self { target, cors: Arc::new(cors(origins)) }
    }
}

impl hyper::service::Service<Request<Incoming>> for Handler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture;

    fn call(&self, request: Request<Incoming>) -> BoxFuture {
        // Only a page has an origin. Everybody else is spared the headers that only a browser reads.
        if request.headers().contains_key(ORIGIN) {
            let service = self.cors.layer(self.target.clone());
            return Box::pin(service.oneshot(request));
        }
        self.target.answer(request)
    }
}

impl Target {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture {
        if let Some(routes) = &self.grpc {
            let path = request.uri().path();
            let health = matches!(path, "/healthz" | "/readyz");
            if routes.has(path) || (self.grpc_first && !health) {
                return routes.answer(request.map(tonic::body::Body::new));
            }
        }
        let mut router = self.http.clone();
        Box::pin(router.call(request.map(Body::new)))
    }
}

impl Service<Request<Incoming>> for Target {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> BoxFuture {
        self.answer(request)
    }
}

/// Pages from loopback and from `origins` may call with any header and read what each API style answers with.
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
        .allow_headers(Any)
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(Duration::from_secs(600));
    if origins.iter().any(|origin| origin == "*") {
        return layer.allow_origin(Any);
    }
    let origins = origins.to_vec();
    layer.allow_origin(AllowOrigin::predicate(move |origin: &HeaderValue, _: &_| {
        let Ok(origin) = origin.to_str() else { return false };
        is_loopback(origin) || origins.iter().any(|allowed| allowed == origin)
    }))
}

fn is_loopback(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_loopback() {
        for (origin, loopback) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1:5300", true),
            ("http://[::1]:5300", true),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example:80", false),
            ("null", false),
        ] {
            assert_eq!(is_loopback(origin), loopback, "{origin}");
        }
    }
}
