//! The REST edge: the public HTTP API over the three services.
//!
//! It translates between HTTP and the service interface and holds no rules: whether a quantity or an id is right is the
//! services' business, so that all API styles agree. What it promises by itself:
//!
//! - Every error, a wrong path and a broken body among them, is `application/problem+json` (RFC 9457) with a `reason`
//!   of [`proto::Reason`] and, where fields are to blame, their names as JSON spells them.
//! - Bodies are strict: an unknown field, a wrong type or a number that doesn't fit is refused and named.
//! - Reads carry a strong `ETag` and answer `If-None-Match` with 304; changes to a book take `If-Match`.
//! - Lists of books, the screen of many books and the export come gzipped to callers who take it, when they are large.
//!   The gzipped form has a tag of its own, as strong: `"…-gzip"`.
//! - Lists have `nextPageToken` in the body and the same step as a `Link` header.
//! - Every request ends by its deadline, the body's arrival included: `Request-Timeout`, else
//!   [`Config::rest_deadline_ms`]. Event streams and the export are exempt once they have started, and end at shutdown;
//!   an upload of lines has an hour.
//! - The OpenAPI document is made from the handlers; `openapi.json` beside this crate is its snapshot.

mod body;
mod call;
mod docs;
mod errors;
mod events;
mod gzip;
mod ndjson;
mod openapi;
mod query;
mod reply;
mod routes;
mod time;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use chassis::metrics::Metrics;
use chassis::{Listener, Server, ServerConfig, Shutdown};
use proto::{Reason, Services};

use crate::errors::Problem;

/// How the REST edge behaves.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Config {
    /// Milliseconds a REST request may take that names no Request-Timeout
    #[arg(long, env = "BOOKSTORE_REST_DEADLINE_MS", default_value_t = DEADLINE_MS,
        value_parser = clap::value_parser!(u64).range(1..=call::MAX_TIMEOUT_MS))]
    pub rest_deadline_ms: u64,

    /// Where the routes are made known, so that requests are counted by them.
    #[arg(skip)]
    pub metrics: Metrics,
}

const DEADLINE_MS: u64 = 10_000;

impl Default for Config {
    fn default() -> Self {
        Self { rest_deadline_ms: DEADLINE_MS, metrics: Metrics::default() }
    }
}

/// What every handler works with.
#[derive(Clone)]
struct App(Arc<Parts>);

struct Parts {
    services: Services,
    deadline: Duration,
    shutdown: Shutdown,
}

/// The routes: `/api/v1/...`, `/openapi.json`, `/docs`, `/`, and a problem for every other path.
///
/// Merged with other routers it takes none of their paths, but it brings the fallback, so they must have none.
pub fn router(services: Services, config: &Config, shutdown: Shutdown) -> Router {
    let deadline = Duration::from_millis(config.rest_deadline_ms);
    let app = App(Arc::new(Parts { services, deadline, shutdown }));
    let (api, document) = openapi::with_document(routes::all());
    config.metrics.routes(document.paths.paths.keys().map(String::as_str).chain(docs::ROUTES));
    api.with_state(app)
        .merge(docs::router(openapi::to_json(&document)))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(route_not_found)
}

/// The OpenAPI 3.1 document, as `/openapi.json` serves it.
pub fn openapi() -> String {
    let (_, document) = openapi::with_document(routes::all());
    openapi::to_json(&document)
}

/// Serves the API on this port until shutdown.
pub async fn serve(
    listener: Listener,
    mut config: Config,
    services: Services,
    server: ServerConfig,
    shutdown: Shutdown,
) -> std::io::Result<()> {
    config.metrics = server.metrics.clone();
    let router = router(services, &config, shutdown.clone());
    Server::new(server, shutdown).http(listener, router).run().await
}

async fn route_not_found() -> Problem {
    Problem::new(Reason::RouteNotFound, "no route has this path; /openapi.json lists them")
}

// The router adds `Allow`.
async fn method_not_allowed() -> Problem {
    Problem::new(Reason::MethodNotAllowed, "this path exists, but not for this method; see the header Allow")
}
