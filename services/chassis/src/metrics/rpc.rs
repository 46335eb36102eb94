//! gRPC calls that come in.

use std::sync::Arc;

use http::HeaderMap;
use tonic::Code;

use super::{Labels, Live, Metrics, OTHER, Outcome, Series};
use crate::grpc::code_name;

impl Outcome for Code {
    const ABANDONED: Self = Self::Cancelled;

    fn labels(self) -> Labels {
        vec![("rpc_response_status_code", code_name(self).into())]
    }
}

/// The code in headers or trailers, if they end a call.
pub(crate) fn code_of(headers: &HeaderMap) -> Option<Code> {
    headers.get("grpc-status").map(|value| Code::from_bytes(value.as_bytes()))
}

pub(super) fn labels(protocol: &'static str, method: String) -> Labels {
    vec![("rpc_system_name", "grpc".into()), ("rpc_protocol", protocol.into()), ("rpc_method", method.into())]
}

/// The counts of the methods of one set of services.
#[derive(Debug)]
pub(crate) struct RpcServer {
    /// For each method, as gRPC and as gRPC-Web.
    methods: Vec<[Arc<Series<Code>>; 2]>,
    other: [Arc<Series<Code>>; 2],
    pub(crate) streams: Live,
}

impl RpcServer {
    /// Counts calls of these methods, which are named by their paths.
    pub(crate) fn new<'a>(metrics: &Metrics, paths: impl Iterator<Item = &'a str>) -> Self {
        let durations = metrics.durations::<Code>(
            "rpc_server_call_duration_seconds",
            "How long gRPC calls took until the reply began; those that stream replies, until they ended.",
        );
        let series = |method: &str| {
            ["grpc", "grpc-web"].map(|protocol| durations.series(labels(protocol, method.to_owned())))
        };
        Self {
            methods: paths.map(|path| series(path.trim_start_matches('/'))).collect(),
            other: series(OTHER),
            streams: metrics.live(
                "rpc_server_streams_live",
                "gRPC calls that stream replies and have not ended.",
                Labels::new(),
            ),
        }
    }

    /// What counts the calls of a method by its place among the paths; none is one that nobody knows.
    pub(crate) fn series(&self, method: Option<usize>, web: bool) -> Arc<Series<Code>> {
        let [grpc, grpc_web] = method.and_then(|at| self.methods.get(at)).unwrap_or(&self.other);
        Arc::clone(if web { grpc_web } else { grpc })
    }
}
