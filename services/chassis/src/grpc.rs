//! gRPC and gRPC-Web over any number of generated services.

use http::{Request, Response};
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use crate::Shutdown;

/// Limits that hold for every gRPC call.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// How long a call may take that names no deadline. A stream counts until its first header only.
    pub default_deadline: std::time::Duration,
    /// The longest deadline a caller may name; longer ones are cut to it.
    pub max_deadline: std::time::Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        use std::time::Duration;
        Self { default_deadline: Duration::from_secs(10), max_deadline: Duration::from_secs(3600) }
    }
}

/// The gRPC services of one listener, by name.
#[derive(Clone)]
pub struct Routes {}

impl Routes {
    /// No services yet but health (v1) and reflection (v1 and v1alpha) of `descriptors`, an encoded
    /// `FileDescriptorSet`.
    pub fn new(_limits: CallLimits, _descriptors: &'static [u8], _shutdown: &Shutdown) -> Self {
        todo!()
    }

    /// Adds a generated server, which from now on is reported as serving.
    pub fn service<S>(self, _service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = std::convert::Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        todo!()
    }
}
