//! Services that answer from thin air, count their calls, and fail or hang when told.

mod catalog;
mod inventory;
mod ordering;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use chassis::{Deadline, Shutdown};
use futures_util::Stream;
use graphql_bff::Config;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Request as HttpRequest, StatusCode};
use http_body_util::BodyExt;
use proto::Services;
use proto::inventory::v1::Stock;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};
use tower::ServiceExt;

type Answer<T> = Result<Response<T>, Status>;
type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;

/// All three services.
#[derive(Default)]
pub(crate) struct Fake {
    /// The calls that were made.
    pub(crate) log: Mutex<Vec<String>>,
    /// What every call to inventory answers, when set.
    pub(crate) inventory_fails: Option<Status>,
    /// What every call to catalog answers, when set.
    pub(crate) catalog_fails: Option<Status>,
    /// No call is ever answered.
    pub(crate) hangs: bool,
    /// Calls that have begun and neither ended nor been dropped.
    pub(crate) running: Arc<AtomicUsize>,
    /// Who sends the events of each stock watch, in the order of their calls.
    pub(crate) watches: Mutex<Vec<mpsc::UnboundedSender<Result<Stock, Status>>>>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Fake {
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    async fn call<M>(
        &self,
        request: &Request<M>,
        call: String,
        fails: Option<&Status>,
    ) -> Result<(), Status> {
        assert!(request.extensions().get::<Deadline>().is_some(), "{call} has no deadline");
        self.log.lock().unwrap().push(call);
        self.running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(Arc::clone(&self.running));
        if self.hangs {
            std::future::pending::<()>().await;
        }
        // As a call over the wire would.
        tokio::task::yield_now().await;
        fails.map_or(Ok(()), |status| Err(status.clone()))
    }
}

/// The edge over a fake.
pub(crate) struct App {
    pub(crate) fake: Arc<Fake>,
    pub(crate) router: Router,
    pub(crate) shutdown: Shutdown,
}

impl App {
    pub(crate) fn new() -> Self {
        Self::over(Fake::default(), &Config::default())
    }

    pub(crate) fn over(fake: Fake, config: &Config) -> Self {
        let fake = Arc::new(fake);
        let services = Services { catalog: fake.clone(), inventory: fake.clone(), ordering: fake.clone() };
        let shutdown = Shutdown::new();
        Self { router: graphql_bff::router(services, config, shutdown.clone()), fake, shutdown }
    }

    pub(crate) async fn send(&self, request: HttpRequest<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    /// Sends a request of the newer media type.
    pub(crate) async fn post(&self, request: &Value) -> (StatusCode, Value) {
        let request = HttpRequest::post("/graphql")
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/graphql-response+json")
            .body(request.to_string().into())
            .unwrap();
        let (status, _, body) = self.send(request).await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Sends a document that needs no variables.
    pub(crate) async fn query(&self, text: &str) -> (StatusCode, Value) {
        self.post(&json!({ "query": text })).await
    }

    /// The data of a document that must succeed.
    pub(crate) async fn data(&self, text: &str) -> Value {
        let (status, mut reply) = self.query(text).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        assert_eq!(reply.get("errors"), None, "{reply}");
        reply["data"].take()
    }
}

/// The reason of the first error.
pub(crate) fn reason(reply: &Value) -> String {
    reply["errors"][0]["extensions"]["reason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}
