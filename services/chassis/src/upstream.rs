//! Connections to the services in other processes.

/// A transport for the adapters of `proto::client`.
#[derive(Debug, Clone)]
pub struct Upstream {}
