//! `/graphiql`: GraphiQL, whole, from this binary. The page asks nobody else for anything.
//!
//! What the files in `assets/` are and where they come from stands in `assets/README.md`. The large ones are stored
//! compressed, and sent so.

use std::fmt::Write;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::operations::EXAMPLES;
use crate::{OPERATIONS, reply};

/// Scripts, fonts and connections from here only. GraphiQL's editor sets styles by script; its icons are data.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    font-src 'self' data:; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

struct Asset {
    name: &'static str,
    media_type: &'static str,
    compressed: bool,
    body: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $media_type:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            compressed: false,
            body: include_bytes!(concat!("../assets/", $name)),
        }
    };
    ($name:literal, $media_type:literal, gzip) => {
        Asset {
            name: $name,
            media_type: $media_type,
            compressed: true,
            body: include_bytes!(concat!("../assets/", $name, ".gz")),
        }
    };
}

const PAGE: Asset = asset!("index.html", "text/html; charset=utf-8");

const ASSETS: &[Asset] = &[
    asset!("page.css", "text/css; charset=utf-8"),
    asset!("page.js", "text/javascript; charset=utf-8"),
    asset!("graphiql-4.1.2.css", "text/css; charset=utf-8", gzip),
    asset!("graphiql-4.1.2.js", "text/javascript; charset=utf-8", gzip),
    asset!("graphql-ws-5.16.2.js", "text/javascript; charset=utf-8", gzip),
    asset!("react-18.3.1.js", "text/javascript; charset=utf-8", gzip),
    asset!("react-dom-18.3.1.js", "text/javascript; charset=utf-8", gzip),
    asset!("LICENSES.txt", "text/plain; charset=utf-8"),
];

pub(crate) const ROUTES: [&str; 4] =
    ["/graphiql", "/graphiql/", "/graphiql/operations.json", "/graphiql/{name}"];

pub(crate) fn router() -> Router {
    let operations = Bytes::from(operations());
    Router::new()
        .route("/graphiql", get(async || send(&PAGE)))
        .route("/graphiql/", get(async || Redirect::permanent("/graphiql")))
        .route(
            "/graphiql/operations.json",
            get(async move || reply_with("application/json", "no-cache", operations.clone().into())),
        )
        .route("/graphiql/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => send(asset),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn send(asset: &Asset) -> Response {
    // A name with a version stands for the same bytes for ever.
    let cache = if asset.compressed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = reply_with(asset.media_type, cache, Body::from(Bytes::from_static(asset.body)));
    if asset.compressed {
        // Browsers all read it; a caller that names no encodings takes any (RFC 9110, 12.5.3).
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn reply_with(media_type: &'static str, cache: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, cache),
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The published operations for the page: `[{name, text, variables}]`.
fn operations() -> String {
    let examples: serde_json::Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
    let mut json = String::from("[");
    for operation in OPERATIONS {
        let variables = examples.get(operation.name).map_or_else(|| "{}".to_owned(), |v| format!("{v:#}"));
        let entry = serde_json::json!({
            "name": operation.name,
            "text": operation.text,
            "variables": variables,
        });
        let comma = if json.len() > 1 { "," } else { "" };
        let _ = write!(json, "{comma}{}", String::from_utf8_lossy(&reply::json(&entry)));
    }
    json.push(']');
    json
}
