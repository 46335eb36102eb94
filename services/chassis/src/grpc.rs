//! gRPC and gRPC-Web over any number of generated services.

mod call;

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_web::GrpcWebLayer;
use tower::{Layer, Service};

use self::call::Call;
pub use self::call::{DOMAIN, refusal};
use crate::Shutdown;

/// Limits that hold for every gRPC call.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// How long a unary call may take that names no deadline.
    pub default_deadline: Duration,
    /// The longest deadline a caller may name; longer ones are cut to it. An upload that names none gets it. A server
    /// stream that names none may last for ever.
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
    shutdown: Shutdown,
    methods: Methods,
    health: HealthReporter,
}

/// The paths of methods that stream.
struct Methods {
    server_streams: HashSet<String>,
    client_streams: HashSet<String>,
}

/// Requests of health and reflection are small.
const OWN_MESSAGE_LIMIT: usize = 64 << 10;

impl Routes {
    /// No services yet but health (v1), and reflection (v1 and v1alpha) of `descriptors`, an encoded
    /// `FileDescriptorSet`. Descriptors that can't be read are a defect of the build: reflection then is missing.
    pub fn new(limits: CallLimits, descriptors: &'static [u8], shutdown: &Shutdown) -> Self {
        let health = HealthReporter::new();
        let methods = Methods::of([descriptors, tonic_health::pb::FILE_DESCRIPTOR_SET]);
        let service = HealthService::from_health_reporter(health.clone());
        let settings = Arc::new(Settings { limits, shutdown: shutdown.clone(), methods, health });
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
        let call = Call::new(service, self.settings.clone());
        let web = GrpcWebLayer::new().layer(call.clone());
        let entry = Entry { name: S::NAME, grpc: Arc::new(call), web: Arc::new(web) };
        let mut entries: Vec<Entry> = match Arc::try_unwrap(self.entries) {
            Ok(entries) => entries,
            Err(shared) => shared.iter().map(Entry::clone).collect(),
        };
        entries.push(entry);
        self.entries = Arc::new(entries);
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

    /// Answers a request in the protocol that it came in.
    pub(crate) fn answer(&self, mut request: Request<Body>) -> Answer {
        let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let web = kind.starts_with(b"application/grpc-web");
        if !kind.starts_with(b"application/grpc") {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "this port speaks gRPC and gRPC-Web\n");
        }
        if !web && request.version() != Version::HTTP_2 {
            return plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2; gRPC-Web doesn't\n");
        }
        let Some(entry) = self.find(request.uri().path()) else {
            let status = refusal(tonic::Code::Unimplemented, "ROUTE_NOT_FOUND", "no service has this name");
            return Box::pin(std::future::ready(Ok(status.into_http())));
        };
        if web {
            strip_parameters(&mut request);
            return entry.web.call(request);
        }
        entry.grpc.call(request)
    }

    pub(crate) async fn report_serving(&self) {
        for entry in self.entries.iter() {
            self.settings.health.set_service_status(entry.name, ServingStatus::Serving).await;
        }
    }

    pub(crate) async fn report_not_serving(&self) {
        self.settings.health.set_service_status("", ServingStatus::NotServing).await;
        for entry in self.entries.iter() {
            self.settings.health.set_service_status(entry.name, ServingStatus::NotServing).await;
        }
    }
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self { name: self.name, grpc: self.grpc.clone(), web: self.web.clone() }
    }
}

impl Methods {
    fn of<const N: usize>(sets: [&[u8]; N]) -> Self {
        let mut methods = Self { server_streams: HashSet::new(), client_streams: HashSet::new() };
        for set in sets.iter().filter_map(|set| FileDescriptorSet::decode(*set).ok()) {
            for file in &set.file {
                for service in &file.service {
                    for method in &service.method {
                        let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                        if method.server_streaming() {
                            methods.server_streams.insert(path.clone());
                        }
                        if method.client_streaming() {
                            methods.client_streams.insert(path);
                        }
                    }
                }
            }
        }
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            methods.server_streams.insert(path.clone());
            methods.client_streams.insert(path);
        }
        methods
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

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut response = Response::new(HttpBody::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Box::pin(std::future::ready(Ok(response)))
}
