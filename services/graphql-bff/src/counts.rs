//! What is counted of operations: by the name of a published one, and by how they end.

use std::sync::Arc;

use async_graphql::Value;
use async_graphql::parser::types::OperationType;
use chassis::metrics::{Durations, Labels, Live, Metrics, OTHER, Series, Timer};

use crate::OPERATIONS;
use crate::reply::Reply;

/// How an operation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With all that was asked for.
    Complete,
    /// With data, and errors beside it.
    Partial,
    /// With errors instead of data.
    Failed,
    /// It did not run.
    Refused,
    /// Its time was over.
    Expired,
    /// Its caller left, which is also how most subscriptions end.
    Cancelled,
}

impl chassis::metrics::Outcome for Outcome {
    const ABANDONED: Self = Self::Cancelled;

    fn labels(self) -> Labels {
        let name = match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        };
        vec![("outcome", name.into())]
    }
}

impl Outcome {
    /// How an operation that ran went.
    pub(crate) fn of(reply: &Reply) -> Self {
        let is_null = |value: &Value| *value == Value::Null;
        match &reply.data {
            _ if reply.errors.is_empty() => Self::Complete,
            None | Some(Value::Null) => Self::Failed,
            // A mutation that is refused is null in the place of its result.
            Some(Value::Object(fields)) if fields.values().all(is_null) => Self::Failed,
            Some(_) => Self::Partial,
        }
    }
}

/// The counts of one edge.
#[derive(Debug)]
pub(crate) struct Counts {
    durations: Arc<Durations<Outcome>>,
    unknown: Arc<Series<Outcome>>,
    /// Subscriptions that run.
    pub(crate) subscriptions: Live,
}

impl Counts {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let durations = metrics.durations(
            "graphql_server_operation_duration_seconds",
            "How long GraphQL operations took; subscriptions until they ended.",
        );
        let subscriptions = metrics.live(
            "graphql_server_subscriptions_live",
            "GraphQL subscriptions that have not ended.",
            Labels::new(),
        );
        let unknown = durations.series(labels(OTHER, ""));
        Self { durations, unknown, subscriptions }
    }

    /// Times an operation of which nothing is known yet.
    pub(crate) fn begin(&self) -> Timer<Outcome> {
        Timer::start(Arc::clone(&self.unknown))
    }

    /// What counts the operations of this name and type. Only published names are known: callers make others up.
    pub(crate) fn of(&self, name: Option<&str>, ty: OperationType) -> Arc<Series<Outcome>> {
        let known = OPERATIONS.iter().map(|operation| operation.name).find(|known| name == Some(*known));
        let ty = match ty {
            OperationType::Query => "query",
            OperationType::Mutation => "mutation",
            OperationType::Subscription => "subscription",
        };
        self.durations.series(labels(known.unwrap_or(OTHER), ty))
    }
}

fn labels(name: &'static str, ty: &'static str) -> Labels {
    vec![("graphql_operation_name", name.into()), ("graphql_operation_type", ty.into())]
}
