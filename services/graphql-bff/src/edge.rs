//! From what a caller sent to what it gets back, however it came in.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::parser::types::OperationType;
use async_graphql::{Name, Request, Response, Variables};
use chassis::call::TraceParent;
use chassis::metrics::Timer;
use chassis::{Deadline, Shutdown};
use futures_util::stream::{self, Stream, StreamExt};
use http::StatusCode;
use proto::{Reason, Services};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::counts::{Counts, Outcome};
use crate::documents::{Document, Documents, Hash, hash};
use crate::error::Rejection;
use crate::load::{Caller, Driver, Loads};
use crate::reply::Reply;
use crate::{Config, schema};

/// The parameters of a GraphQL request ("GraphQL over HTTP", 5.1).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Parameters {
    pub(crate) query: Option<String>,
    pub(crate) operation_name: Option<String>,
    #[serde(default)]
    pub(crate) variables: Variables,
    /// What the request says beyond GraphQL; what we don't know of it is none of our business.
    pub(crate) extensions: Option<Map<String, Value>>,
}

/// A document named by its hash ("automatic persisted queries").
#[derive(Debug, Deserialize)]
struct PersistedQuery {
    version: i32,
    #[serde(rename = "sha256Hash")]
    sha256_hash: String,
}

impl PersistedQuery {
    fn of(extensions: Option<Map<String, Value>>) -> Result<Option<Self>, Rejection> {
        match extensions.and_then(|mut extensions| extensions.remove("persistedQuery")) {
            None | Some(Value::Null) => Ok(None),
            Some(object @ Value::Object(_)) => serde_json::from_value(object)
                .map(Some)
                .map_err(|error| malformed(&format!("persistedQuery: {error}"))),
            Some(_) => Err(malformed("persistedQuery must be an object")),
        }
    }
}

/// The way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Get,
    Post,
    Socket,
}

/// An operation that may run.
pub(crate) struct Prepared {
    pub(crate) ty: OperationType,
    request: Request,
    loads: Arc<Loads>,
    asked: Asked,
    timer: Timer<Outcome>,
}

/// An operation of a document.
struct Asked {
    document: Arc<Document>,
    operation: Option<Name>,
}

impl Asked {
    /// What it brought, as it goes back.
    fn reply(&self, mut response: Response) -> Reply {
        self.document.sort(self.operation.as_ref(), &mut response.data);
        Reply::ran(response)
    }
}

/// The edge: everything that its requests share.
pub(crate) struct Edge {
    services: Services,
    schema: schema::Schema,
    documents: Documents,
    counts: Arc<Counts>,
    pub(crate) config: Config,
    pub(crate) shutdown: Shutdown,
}

impl Edge {
    pub(crate) fn new(services: Services, config: Config, shutdown: Shutdown) -> Self {
        let counts = Arc::new(Counts::new(&config.metrics));
        let documents = Documents::new(config.graphql_limits.clone(), Arc::clone(&counts));
        Self { services, schema: schema::runner(), documents, counts, config, shutdown }
    }

    /// When an operation that comes in now must be done.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.time())
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.config.graphql_deadline_ms)
    }

    /// Checks a request as far as it can be checked without running it.
    pub(crate) fn prepare(
        &self,
        parameters: Parameters,
        way: Way,
        deadline: Deadline,
        trace: Option<TraceParent>,
    ) -> Result<Prepared, Rejection> {
        let mut timer = self.counts.begin();
        match self.check(parameters, way, deadline, trace, &mut timer) {
            Ok((ty, request, loads, asked)) => Ok(Prepared { ty, request, loads, asked, timer }),
            Err(rejection) => {
                timer.end(Outcome::Refused);
                Err(rejection)
            }
        }
    }

    fn check(
        &self,
        parameters: Parameters,
        way: Way,
        deadline: Deadline,
        trace: Option<TraceParent>,
        timer: &mut Timer<Outcome>,
    ) -> Result<(OperationType, Request, Arc<Loads>, Asked), Rejection> {
        let Parameters { query, operation_name, mut variables, extensions } = parameters;
        let persisted = PersistedQuery::of(extensions)?;
        let document = self.document(query, persisted, way)?;
        let operation = document.operation(operation_name.as_deref().filter(|name| !name.is_empty()))?;
        timer.is(&operation.counts);
        match (way, operation.ty) {
            (Way::Socket, _) | (_, OperationType::Query) | (Way::Post, OperationType::Mutation) => {}
            (Way::Get, OperationType::Mutation) => {
                let message = "a mutation needs POST";
                return Err(Rejection::method("POST", Reason::MethodNotAllowed, message));
            }
            (Way::Get | Way::Post, OperationType::Subscription) => {
                let message = "a subscription needs a WebSocket with the sub-protocol graphql-transport-ws";
                return Err(Rejection::because(Reason::InvalidQuery, message));
            }
        }
        self.documents.check_variables(&document, operation, &mut variables)?;

        // A subscription goes on for as long as its reader likes; each of its calls has the time of an operation.
        let deadline = (operation.ty != OperationType::Subscription).then_some(deadline);
        let caller = Caller { services: self.services.clone(), trace, deadline, time: self.time() };
        let loads = Arc::new(Loads::new(caller));
        let mut request = Request::new(String::new()).variables(variables).data(Arc::clone(&loads));
        request.operation_name = operation.name.as_ref().map(ToString::to_string);
        request.set_parsed_query(document.parsed.clone());
        let (ty, operation) = (operation.ty, operation.name.clone());
        Ok((ty, request, loads, Asked { document, operation }))
    }

    /// Runs a query or mutation. When the time is over its calls are dropped.
    pub(crate) async fn run(&self, prepared: Prepared) -> Result<Reply, Rejection> {
        let Prepared { request, loads, asked, timer, .. } = prepared;
        let deadline = loads.caller.deadline.unwrap_or_else(|| self.deadline());
        let work = Driver::new(loads).run(self.schema.execute(request));
        match tokio::time::timeout_at(deadline.0, work).await {
            Ok(response) => {
                let reply = asked.reply(response);
                timer.end(Outcome::of(&reply));
                Ok(reply)
            }
            Err(_) => {
                timer.end(Outcome::Expired);
                Err(Rejection::late())
            }
        }
    }

    /// Runs a subscription as a stream of replies, which ends with the first that failed.
    pub(crate) fn stream(&self, prepared: Prepared) -> impl Stream<Item = Reply> + Send + use<> {
        let Prepared { request, loads, asked, timer, .. } = prepared;
        let replies = Driver::new(loads).stream(self.schema.execute_stream(request));
        let running = (Box::pin(replies), asked, timer, self.counts.subscriptions.enter());
        stream::unfold(Some(running), async |running| {
            let (mut replies, asked, timer, alive) = running?;
            let Some(response) = replies.next().await else {
                timer.end(Outcome::Complete);
                return None;
            };
            let reply = asked.reply(response);
            if reply.failed() {
                // Nothing comes after a failure; don't wait for the far side to find out.
                timer.end(Outcome::Failed);
                return Some((reply, None));
            }
            Some((reply, Some((replies, asked, timer, alive))))
        })
    }

    fn document(
        &self,
        query: Option<String>,
        persisted: Option<PersistedQuery>,
        way: Way,
    ) -> Result<Arc<Document>, Rejection> {
        let wanted = match persisted {
            Some(persisted) if persisted.version == 1 => Some(
                parse_hash(&persisted.sha256_hash)
                    .ok_or_else(|| malformed("sha256Hash must have 64 hexadecimal digits"))?,
            ),
            Some(_) => return Err(malformed("the version of persistedQuery must be 1")),
            None => None,
        };
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            let wanted = wanted.ok_or_else(|| malformed("query is missing"))?;
            return self.documents.by_hash(&wanted).ok_or_else(|| {
                // Clients of automatic persisted queries look for this very message, and send the text.
                Rejection::because(Reason::PersistedQueryNotFound, "PersistedQueryNotFound")
            });
        };
        if wanted.is_some_and(|wanted| wanted != hash(&query)) {
            return Err(malformed("sha256Hash is not the hash of query"));
        }
        let document = self.documents.by_text(&query)?;
        if let Some(wanted) = wanted
            && way == Way::Post
        {
            self.documents.register(wanted, &document);
        }
        Ok(document)
    }
}

fn malformed(message: &str) -> Rejection {
    Rejection::http(StatusCode::BAD_REQUEST, Reason::MalformedRequest, message)
}

fn parse_hash(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(hash)
}
