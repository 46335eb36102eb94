//! What goes back, as JSON.

use async_graphql::{Response, ServerError, Value};
use proto::Reason;
use serde::Serialize;

use crate::error::{Rejection, all_because};

/// The reply to an operation. Errors come first, so that nobody overlooks them.
#[derive(Debug, Serialize)]
pub(crate) struct Reply {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<ServerError>,
    /// None when the operation didn't run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl Reply {
    /// The reply to an operation that ran.
    pub(crate) fn ran(response: Response) -> Self {
        let errors = all_because(response.errors, Reason::InvalidQuery);
        let data = match response.data {
            // All was skipped; nothing failed.
            Value::Null if errors.is_empty() => Value::Object(Default::default()),
            data => data,
        };
        Self { errors, data: Some(data) }
    }

    /// Whether there is nothing but errors.
    pub(crate) fn failed(&self) -> bool {
        self.data.as_ref().is_none_or(|data| *data == Value::Null) && !self.errors.is_empty()
    }

    /// The reply to an operation that was refused.
    pub(crate) fn refused(rejection: Rejection) -> Self {
        Self { errors: rejection.errors, data: None }
    }
}

/// A message to the reader of a socket (`graphql-transport-ws`).
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToReader<'a> {
    ConnectionAck,
    Pong,
    Next { id: &'a str, payload: &'a Reply },
    Error { id: &'a str, payload: &'a [ServerError] },
    Complete { id: &'a str },
}

/// The JSON of a reply; it holds nothing that JSON can't.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| {
        tracing::error!(%error, "can't write a reply");
        br#"{"errors":[{"message":"internal error","extensions":{"reason":"INTERNAL","code":"INTERNAL"}}]}"#
            .to_vec()
    })
}
