//! The GraphQL edge: one graph over the three services, made for screens.
//!
//! It holds no rules. It translates, and it composes: what one operation asks for is gathered into one call for each
//! service and kind (`load`), however many books the operation names. A service that is out costs its own fields
//! only; they are null, with an error beside the data.
//!
//! What it promises on the way in: no document, however small, ends the process or burns seconds (`guard`); only
//! `POST` with `application/json` changes anything; errors carry the suite's vocabulary (`extensions.reason`).

mod counts;
mod documents;
mod edge;
mod error;
mod graphiql;
mod guard;
mod http;
mod inputs;
mod load;
mod operations;
mod order;
mod reply;
mod schema;
mod socket;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use chassis::metrics::Metrics;

pub use crate::operations::{OPERATIONS, Operation};

/// Settings of the GraphQL edge.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Config {
    /// How long a GraphQL operation may take, in milliseconds; a subscription's events count one by one
    #[arg(long, env = "BOOKSTORE_GRAPHQL_DEADLINE_MS", default_value_t = 10_000)]
    pub graphql_deadline_ms: u64,

    /// Web origins whose pages may open GraphQL WebSockets besides the server's own and loopback: those of
    /// [`chassis::ServerConfig`].
    #[arg(skip)]
    pub graphql_origins: Vec<String>,

    /// What one request and one socket may ask for.
    #[arg(skip)]
    pub graphql_limits: Limits,

    /// Where operations are counted.
    #[arg(skip)]
    pub metrics: Metrics,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            graphql_deadline_ms: 10_000,
            graphql_origins: Vec::new(),
            graphql_limits: Limits::default(),
            metrics: Metrics::default(),
        }
    }
}

/// Bounds on documents and sockets. They are checked before any work whose size they bound.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a document's text.
    pub document_bytes: usize,
    /// Nesting of brackets in the text. Parsers recurse on it, and a deep enough text ends the process.
    pub bracket_depth: usize,
    /// Names, values and brackets in the text.
    pub tokens: usize,
    /// Fields and directives of a document once all its fragments are expanded.
    pub selections: u64,
    /// Nesting of selections once all fragments are expanded.
    pub levels: u32,
    /// How deep introspection may nest lists of fields; each level multiplies the reply.
    pub introspection_levels: u32,
    /// What an operation may cost: about one for each value of its reply at its largest, and more for each call.
    pub cost: u64,
    /// Time until a socket must have said `connection_init`.
    pub init_timeout: Duration,
    /// Pause between two pings. A peer that was silent for two of them is gone.
    pub keep_alive: Duration,
    /// Operations that run on one socket at a time.
    pub socket_operations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes: 64 << 10,
            bracket_depth: 64,
            tokens: 10_000,
            selections: 2_000,
            levels: 30,
            introspection_levels: 3,
            cost: 100_000,
            init_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(25),
            socket_operations: 100,
        }
    }
}

/// `/graphql` (POST, GET, WebSocket) and `/graphiql`, and no fallback.
///
/// WebSockets are closed when `shutdown` begins.
pub fn router(services: proto::Services, config: &Config, shutdown: chassis::Shutdown) -> Router {
    config.metrics.routes(["/graphql"].into_iter().chain(graphiql::ROUTES));
    let edge = Arc::new(edge::Edge::new(services, config.clone(), shutdown));
    Router::new().merge(http::router(edge)).merge(graphiql::router())
}

/// The schema in the schema definition language.
pub fn sdl() -> String {
    schema::sdl()
}

/// Serves GraphQL on the listener until shutdown.
pub async fn serve(
    listener: chassis::Listener,
    mut config: Config,
    services: proto::Services,
    server: chassis::ServerConfig,
    shutdown: chassis::Shutdown,
) -> io::Result<()> {
    config.graphql_origins.clone_from(&server.origins);
    config.metrics = server.metrics.clone();
    let router = router(services, &config, shutdown.clone());
    chassis::Server::new(server, shutdown).http(listener, router).run().await
}
