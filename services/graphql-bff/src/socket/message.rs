//! What a reader may say.

use serde::Deserialize;
use serde_json::Value;

use crate::edge::Parameters;

/// A message of the protocol.
pub(crate) enum FromReader {
    ConnectionInit,
    Ping,
    Pong,
    Subscribe {
        id: String,
        /// The request, or what is wrong with it.
        payload: Result<Parameters, String>,
    },
    Complete {
        id: String,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Raw {
    ConnectionInit { payload: Option<Value> },
    Ping { payload: Option<Value> },
    Pong { payload: Option<Value> },
    Subscribe { id: String, payload: serde_json::Map<String, Value> },
    Complete { id: String },
}

impl FromReader {
    /// None when it is no message of the protocol.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let object = |payload: Option<Value>| matches!(payload, None | Some(Value::Null | Value::Object(_)));
        match serde_json::from_str(text).ok()? {
            Raw::ConnectionInit { payload } => object(payload).then_some(Self::ConnectionInit),
            Raw::Ping { payload } => object(payload).then_some(Self::Ping),
            Raw::Pong { payload } => object(payload).then_some(Self::Pong),
            Raw::Subscribe { id, payload } => {
                let payload = serde_json::from_value(Value::Object(payload));
                let payload = payload.map_err(|error| format!("the payload: {error}"));
                (!id.is_empty()).then_some(Self::Subscribe { id, payload })
            }
            Raw::Complete { id } => Some(Self::Complete { id }),
        }
    }
}
