//! `/graphql` over HTTP, by the specification "GraphQL over HTTP".
//!
//! - `POST` with `application/json` runs queries and mutations. No other media type runs anything: a page of another
//!   site can send forms and plain text without asking, but not JSON.
//! - `GET` runs queries, given in the query string or by the hash of a document that the server knows.
//! - One request is one operation, of at most 1 MiB.
//! - With `application/graphql-response+json` accepted a refused request is 400 and an expired one 504; the older
//!   `application/json` answers 200 to both, as its clients expect. What is no GraphQL request at all has its HTTP
//!   status in both.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Query, Request, State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::MethodRouter;
use bytes::Bytes;
use chassis::Deadline;
use chassis::call::TraceParent;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE, UPGRADE, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proto::Reason;
use serde::Deserialize;

use crate::edge::{Edge, Parameters, Way};
use crate::error::Rejection;
use crate::reply::{Reply, json};
use crate::socket;

const JSON: &str = "application/json";
const GRAPHQL_RESPONSE: &str = "application/graphql-response+json";

pub(crate) fn router(edge: Arc<Edge>) -> Router {
    let graphql = MethodRouter::new().get(get).post(post).fallback(other_method);
    Router::new().route("/graphql", graphql.with_state(edge))
}

async fn post(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let deadline = edge.deadline();
    let (parts, body) = request.into_parts();
    let answer = answer_post(&edge, &parts.headers, body, deadline).await;
    respond(&parts.headers, answer)
}

async fn answer_post(
    edge: &Edge,
    headers: &HeaderMap,
    body: Body,
    deadline: Deadline,
) -> Result<Reply, Rejection> {
    if !is_json(headers) {
        let message = "the content type must be application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Rejection::http(status, Reason::UnsupportedMediaType, message));
    }
    let body = match tokio::time::timeout_at(deadline.0, read(body)).await {
        Ok(body) => body?,
        Err(_) => return Err(Rejection::late()),
    };
    let parameters = parse(&body)?;
    let prepared = edge.prepare(parameters, Way::Post, deadline, TraceParent::from_headers(headers))?;
    edge.run(prepared).await
}

async fn get(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let headers = &parts.headers;
    if headers.get(UPGRADE).is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        if !socket::origin_allowed(headers, &edge.config.graphql_origins) {
            let message = "pages of this origin may not open a socket here";
            let rejection = Rejection::http(StatusCode::FORBIDDEN, Reason::InvalidQuery, message);
            return respond(&parts.headers, Err(rejection));
        }
        let trace = TraceParent::from_headers(headers);
        return match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            Ok(upgrade) => socket::upgrade(edge, upgrade, trace),
            Err(rejection) => {
                let (status, message) = (rejection.status(), rejection.body_text());
                let rejection = Rejection::http(status, Reason::MalformedRequest, message);
                respond(&parts.headers, Err(rejection))
            }
        };
    }
    let answer = answer_get(&edge, &parts).await;
    let mut response = respond(&parts.headers, answer);
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

async fn answer_get(edge: &Edge, parts: &Parts) -> Result<Reply, Rejection> {
    let deadline = edge.deadline();
    let Query(asked) = Query::<QueryString>::try_from_uri(&parts.uri)
        .map_err(|error| malformed(format!("the query string: {}", error.body_text())))?;
    let parameters = Parameters {
        query: asked.query,
        operation_name: asked.operation_name,
        variables: from_json(asked.variables.as_deref(), "variables")?.unwrap_or_default(),
        extensions: from_json(asked.extensions.as_deref(), "extensions")?,
    };
    let prepared = edge.prepare(parameters, Way::Get, deadline, TraceParent::from_headers(&parts.headers))?;
    edge.run(prepared).await
}

async fn other_method(request: Request) -> Response {
    let message = format!("{} is not a method of this path", request.method());
    let rejection = Rejection::method("GET, POST", Reason::MethodNotAllowed, message);
    respond(request.headers(), Err(rejection))
}

/// The parameters in a query string; those that hold JSON are text there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct QueryString {
    query: Option<String>,
    operation_name: Option<String>,
    variables: Option<String>,
    extensions: Option<String>,
}

fn from_json<'a, T: Deserialize<'a>>(text: Option<&'a str>, name: &str) -> Result<Option<T>, Rejection> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => serde_json::from_str(text).map_err(|error| malformed(format!("{name}: {error}"))),
    }
}

fn parse(body: &[u8]) -> Result<Parameters, Rejection> {
    let start = body.iter().find(|b| !b.is_ascii_whitespace());
    if start == Some(&b'[') {
        return Err(malformed("a request is one operation; a list of them is not accepted".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| malformed(format!("the body: {error}")))
}

fn malformed(message: String) -> Rejection {
    Rejection::http(StatusCode::BAD_REQUEST, Reason::MalformedRequest, message)
}

async fn read(body: Body) -> Result<Bytes, Rejection> {
    match Limited::new(body, proto::MAX_MESSAGE_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("the body is over {} bytes", proto::MAX_MESSAGE_BYTES);
            Err(Rejection::http(StatusCode::PAYLOAD_TOO_LARGE, Reason::MessageTooLarge, message))
        }
        Err(error) => Err(malformed(format!("the body broke off: {error}"))),
    }
}

/// `application/json`, with `charset=utf-8` or without parameters that change its meaning.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let mut parts = value.split(';').map(str::trim);
    parts.next().is_some_and(|ty| ty.eq_ignore_ascii_case(JSON))
        && parts.filter_map(|parameter| parameter.split_once('=')).all(|(name, value)| {
            !name.trim().eq_ignore_ascii_case("charset")
                || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
}

/// Whether the caller names the newer media type, and not the older one above it.
fn prefers_graphql_response(headers: &HeaderMap) -> bool {
    let weight = |ty: &str| {
        let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        ranges
            .flat_map(|value| value.split(','))
            .filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let named = parts.next()?.eq_ignore_ascii_case(ty);
                let q = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
                named.then(|| q.map_or(Some(1.0), |q| q.parse::<f32>().ok()))?
            })
            .reduce(f32::max)
    };
    let newer = weight(GRAPHQL_RESPONSE).unwrap_or(0.0);
    newer > 0.0 && newer >= weight(JSON).unwrap_or(0.0)
}

fn respond(headers: &HeaderMap, answer: Result<Reply, Rejection>) -> Response {
    let newer = prefers_graphql_response(headers);
    let (status, allow, reply) = match answer {
        Ok(reply) => (StatusCode::OK, None, reply),
        Err(rejection) => {
            let status = if newer || !rejection.well_formed { rejection.status } else { StatusCode::OK };
            (status, rejection.allow, Reply::refused(rejection))
        }
    };
    let mut response = Response::new(Body::from(json(&reply)));
    *response.status_mut() = status;
    let media_type = if newer { "application/graphql-response+json; charset=utf-8" } else { JSON };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(allow) = allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn only_json_is_json() {
        for good in
            ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""]
        {
            assert!(is_json(&headers(CONTENT_TYPE, good)), "{good}");
        }
        for bad in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/json",
            "application/json; charset=utf-16",
            "application/jsonx",
            "text/plain; application/json",
            "",
        ] {
            assert!(!is_json(&headers(CONTENT_TYPE, bad)), "{bad}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn the_newer_media_type_must_be_named() {
        for (accept, newer) in [
            ("application/graphql-response+json", true),
            ("application/graphql-response+json, application/json", true),
            ("application/graphql-response+json;q=0.5, application/json;q=0.4", true),
            ("application/graphql-response+json;q=0.5, application/json", false),
            ("application/graphql-response+json;q=0", false),
            ("application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(prefers_graphql_response(&headers(ACCEPT, accept)), newer, "{accept}");
        }
    }
}
