//! Sends requests to the router and reads the replies.

use axum::body::Body;
use axum::response::Response;
use axum::{Router, http};
use bytes::Bytes;
use chassis::Shutdown;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use rest_facade::Config;
use serde_json::Value;
use tower::ServiceExt;

use crate::fakes::Shop;

/// The edge over this shop.
pub(crate) fn edge(shop: Shop) -> Router {
    rest_facade::router(shop.services(), &Config::default(), Shutdown::new())
}

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }

    /// The header's text; empty when it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that this is a problem of this status and reason that is well-formed in every other way.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, reason: &str) -> Value {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(self.status.as_u16(), status, "{problem}");
        assert_eq!(problem["reason"], reason, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], "about:blank");
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        crate::schema::assert_fits(&crate::schema::named("Problem"), &problem);
        problem
    }

    /// Asserts that this is INVALID_FIELD for exactly these fields.
    #[track_caller]
    pub(crate) fn assert_fields(&self, fields: &[&str]) -> Value {
        let problem = self.assert_problem(400, "INVALID_FIELD");
        let named: Vec<_> =
            problem["errors"].as_array().unwrap().iter().map(|e| e["field"].clone()).collect();
        assert_eq!(named, fields, "{problem}");
        problem
    }
}

/// The reply as it comes, for bodies that don't end.
pub(crate) async fn open(edge: &Router, request: Request<Body>) -> Response {
    edge.clone().oneshot(request).await.unwrap()
}

pub(crate) async fn send(edge: &Router, request: Request<Body>) -> Reply {
    let (parts, body) = open(edge, request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Reply { status: parts.status, headers: parts.headers, body }
}

/// A request with these headers.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    headers
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value))
        .body(body.into())
        .unwrap()
}

pub(crate) async fn get(edge: &Router, path: &str) -> Reply {
    get_with(edge, path, &[]).await
}

pub(crate) async fn get_with(edge: &Router, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(edge, request("GET", path, headers, Body::empty())).await
}

/// Sends JSON, with an idempotency key.
pub(crate) async fn send_json(edge: &Router, method: &str, path: &str, body: impl Into<Body>) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", "key-1")];
    send(edge, request(method, path, &headers, body)).await
}
