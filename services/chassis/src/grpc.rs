//! gRPC and gRPC-Web over any number of generated services.

mod call;
pub(crate) mod status;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body as HttpBody;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_web::GrpcWebLayer;
use tower::{Layer, Service};

use self::call::Call;
pub use self::status::{DOMAIN, code_name, refusal};
use crate::metrics::{Metrics, RpcServer, Timer};

/// Limits that hold for every gRPC call.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// How long a unary call may take that names no deadline, and a server stream to begin.
    pub default_deadline: Duration,
    /// The longest deadline a caller may name; longer ones are cut to it. An upload that names none gets it. A stream
    /// of replies that names none may last for ever.
    pub max_deadline: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { default_deadline: Duration::from_secs(10), max_deadline: Duration::from_secs(3600) }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<HttpBody>, Infallible>> + Send>>;

/// A generated server whose type is forgotten.
trait Target: Send + Sync {
    fn call(&self, request: Request<Body>) -> Answer;
}

impl<S> Target for S
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync,
    S::Future: Send + 'static,
{
    fn call(&self, request: Request<Body>) -> Answer {
        let answer = Service::call(&mut self.clone(), request);
        Box::pin(async move { Ok(answer.await?.map(HttpBody::new)) })
    }
}

#[derive(Clone)]
struct Entry {
    name: &'static str,
    grpc: Arc<dyn Target>,
    web: Arc<dyn Target>,
}

/// The gRPC services of one listener, by name. Each is served as gRPC and as gRPC-Web.
#[derive(Clone)]
pub struct Routes {
    entries: Arc<Vec<Entry>>,
    settings: Arc<Settings>,
}

/// What all calls share.
struct Settings {
    limits: CallLimits,
    methods: Methods,
    health: HealthReporter,
    /// What was last said of each service, and under the empty name of all.
    reported: Mutex<HashMap<&'static str, ServingStatus>>,
    /// Cancelled when the streams are to end.
    ending: CancellationToken,
    /// Set once it is known where calls are counted: by whoever serves first.
    counts: OnceLock<RpcServer>,
}

/// What is known of methods from their descriptors.
pub(crate) struct Methods {
    methods: Vec<Method>,
    /// Places among the methods.
    by_path: HashMap<String, usize>,
}

struct Method {
    path: String,
    server_streams: bool,
    client_streams: bool,
}

/// Requests of health and reflection are small.
const OWN_MESSAGE_LIMIT: usize = 64 << 10;

impl Routes {
    /// No services yet but health (v1), and reflection (v1 and v1alpha) of `descriptors`, an encoded
    /// `FileDescriptorSet`. Descriptors that can't be read are a defect of the build: reflection then is missing.
    pub fn new(limits: CallLimits, descriptors: &'static [u8]) -> Self {
        let health = HealthReporter::new();
        let methods = Methods::of([
            descriptors,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ]);
        let service = HealthService::from_health_reporter(health.clone());
        let settings = Arc::new(Settings {
            limits,
            methods,
            health,
            reported: Mutex::default(),
            ending: CancellationToken::new(),
            counts: OnceLock::new(),
        });
        let routes = Self { entries: Arc::default(), settings }
            .service(HealthServer::new(service).max_decoding_message_size(OWN_MESSAGE_LIMIT));
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(descriptors)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        // Older tools know v1alpha only.
        match (reflection().build_v1(), reflection().build_v1alpha()) {
            (Ok(v1), Ok(v1alpha)) => routes
                .service(v1.max_decoding_message_size(OWN_MESSAGE_LIMIT))
                .service(v1alpha.max_decoding_message_size(OWN_MESSAGE_LIMIT)),
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "no reflection: the descriptors can't be read");
                routes
            }
        }
    }

    /// Adds a generated server, which is reported as serving once the listeners run.
    pub fn service<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let call = |protocol| Call::new(service.clone(), protocol, self.settings.clone());
        let web = GrpcWebLayer::new().layer(call(Protocol::Web));
        let entry = Entry { name: S::NAME, grpc: Arc::new(call(Protocol::Grpc)), web: Arc::new(web) };
        Arc::make_mut(&mut self.entries).push(entry);
        self
    }

    /// Whether the path belongs to one of the services.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    fn find(&self, path: &str) -> Option<&Entry> {
        let (service, _method) = path.strip_prefix('/')?.split_once('/')?;
        self.entries.iter().find(|entry| entry.name == service)
    }

    /// Counts the calls here from now on, if nobody does yet.
    pub(crate) fn count_in(&self, metrics: &Metrics) {
        let Settings { counts, methods, .. } = &*self.settings;
        counts.get_or_init(|| RpcServer::new(metrics, methods.paths()));
    }

    /// Answers a request of a network that a test brings: what a port for gRPC does, without its socket.
    pub async fn answer_one(&self, request: Request<Body>) -> Result<Response<HttpBody>, Infallible> {
        match self.answer(request) {
            Ok(answer) => answer.await,
            Err(no_call) => Ok(no_call.into_http()),
        }
    }

    /// Answers a request in the protocol that it came in. The error says why a request is no call at all.
    pub(crate) fn answer(&self, mut request: Request<Body>) -> Result<Answer, NoCall> {
        let Some(protocol) = Protocol::of(&request) else {
            let text = "this path speaks gRPC and gRPC-Web\n";
            return Err(NoCall { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, text });
        };
        if request.method() != http::Method::POST {
            return Err(NoCall { status: StatusCode::METHOD_NOT_ALLOWED, text: "gRPC is POST only\n" });
        }
        if protocol == Protocol::Grpc && request.version() != Version::HTTP_2 {
            let text = "gRPC needs HTTP/2; gRPC-Web doesn't\n";
            return Err(NoCall { status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, text });
        }
        let Some(entry) = self.find(request.uri().path()) else {
            if let Some(timer) = self.settings.timer(None, protocol) {
                timer.end(Code::Unimplemented);
            }
            let status = refusal(Code::Unimplemented, "ROUTE_NOT_FOUND", "no service has this name");
            return Ok(Box::pin(std::future::ready(Ok(status.into_http()))));
        };
        Ok(match protocol {
            Protocol::Grpc => entry.grpc.call(request),
            Protocol::Web => {
                strip_parameters(&mut request);
                entry.web.call(request)
            }
        })
    }

    /// Tells those who ask for the health, and those who watch it if it is news.
    pub(crate) async fn report(&self, status: ServingStatus) {
        let Settings { health, reported, .. } = &*self.settings;
        for name in std::iter::once("").chain(self.entries.iter().map(|entry| entry.name)) {
            // Watchers are told whatever the reporter is, and several ports may serve the same routes.
            let before = reported.lock().unwrap_or_else(PoisonError::into_inner).insert(name, status);
            if before != Some(status) {
                health.set_service_status(name, status).await;
            }
        }
    }

    /// Tells the callers of streams to go elsewhere.
    ///
    /// To be called after [`Self::report`], so that those who watch the health still hear of it.
    pub(crate) fn end_streams(&self) {
        self.settings.ending.cancel();
    }
}

impl Settings {
    /// Times a call of the method at this place.
    fn timer(&self, method: Option<usize>, protocol: Protocol) -> Option<Timer<Code>> {
        let counts = self.counts.get()?;
        Some(Timer::start(counts.series(method, protocol == Protocol::Web)))
    }
}

impl Methods {
    pub(crate) fn of<const N: usize>(sets: [&[u8]; N]) -> Self {
        let mut methods = Self { methods: Vec::new(), by_path: HashMap::new() };
        for set in sets.iter().filter_map(|set| FileDescriptorSet::decode(*set).ok()) {
            for file in &set.file {
                for service in &file.service {
                    for method in &service.method {
                        methods.add(Method {
                            path: format!("/{}.{}/{}", file.package(), service.name(), method.name()),
                            server_streams: method.server_streaming(),
                            client_streams: method.client_streaming(),
                        });
                    }
                }
            }
        }
        methods
    }

    fn add(&mut self, method: Method) {
        // A set may hold what another holds too.
        let at = self.methods.len();
        if *self.by_path.entry(method.path.clone()).or_insert(at) == at {
            self.methods.push(method);
        }
    }

    /// All of them, in the order of their places.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.methods.iter().map(|method| method.path.as_str())
    }

    /// The method with this path, and its place.
    fn find(&self, path: &str) -> Option<(usize, &Method)> {
        let at = *self.by_path.get(path)?;
        Some((at, self.methods.get(at)?))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Grpc,
    Web,
}

impl Protocol {
    /// What the content type says: `application/grpc` with any `+format`, or `-web` or `-web-text` with `+proto` or
    /// without, each with parameters or without.
    fn of(request: &Request<Body>) -> Option<Self> {
        let kind = request.headers().get(CONTENT_TYPE)?.as_bytes();
        let rest = kind.strip_prefix(b"application/grpc")?;
        let (protocol, rest) = match rest.strip_prefix(b"-web") {
            Some(rest) => {
                let rest = rest.strip_prefix(b"-text").unwrap_or(rest);
                let rest = rest.strip_prefix(b"+proto").unwrap_or(rest);
                if rest.starts_with(b"+") {
                    return None;
                }
                (Self::Web, rest)
            }
            None => (Self::Grpc, rest),
        };
        matches!(rest.first(), None | Some(b'+' | b';' | b' ')).then_some(protocol)
    }
}

/// tonic-web knows its media types without parameters only, and browsers' clients send them.
fn strip_parameters(request: &mut Request<Body>) {
    let Some(kind) = request.headers().get(CONTENT_TYPE) else { return };
    let bytes = kind.as_bytes();
    if let Some(bare) = bytes.split(|b| *b == b';').next()
        && bare.len() < bytes.len()
        && let Ok(kind) = HeaderValue::from_bytes(bare.trim_ascii())
    {
        request.headers_mut().insert(CONTENT_TYPE, kind);
    }
}

/// Why a request to a port or path of gRPC is no call of gRPC or gRPC-Web.
pub(crate) struct NoCall {
    pub(crate) status: StatusCode,
    text: &'static str,
}

impl NoCall {
    pub(crate) fn into_http(self) -> Response<HttpBody> {
        let mut response = Response::new(HttpBody::from(self.text));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_server::Health;

    use super::*;

    #[tokio::test]
    async fn watchers_of_the_health_are_told_news_only() {
        let routes = Routes::new(CallLimits::default(), &[]);
        routes.report(ServingStatus::Serving).await;
        let service = HealthService::from_health_reporter(routes.settings.health.clone());
        let mut watch =
            service.watch(tonic::Request::new(HealthCheckRequest::default())).await.unwrap().into_inner();
        for status in [ServingStatus::Serving, ServingStatus::NotServing, ServingStatus::Serving] {
            // Two ports may serve the same.
            for same in [&routes, &routes.clone()] {
                same.report(status).await;
            }
            let told = watch.next().now_or_never().unwrap().unwrap().unwrap();
            assert_eq!(told.status, status as i32);
            routes.report(status).await;
            assert!(watch.next().now_or_never().is_none(), "{status}");
        }
    }
}
