//! Refusals that are made here, and reasons for the errors that the gRPC library makes itself.

use std::collections::HashMap;

use http::HeaderMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// `ErrorInfo.domain` of the refusals that are made here.
pub const DOMAIN: &str = "bookstore";

/// A status that names its reason.
pub fn refusal(code: Code, reason: &str, message: impl Into<String>) -> Status {
    let details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new());
    Status::with_error_details(code, message, details)
}

pub(crate) fn expired() -> Status {
    refusal(Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "the time this call had ran out")
}

/// The headers that end a reply.
pub(crate) fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Fails only for a message that is no header value, which ours are.
    let _ = status.add_header(&mut headers);
    headers
}

/// The status that headers or trailers carry, with a reason, if it was made before a service saw the call. Such errors
/// come without a reason, and some with an unfitting code.
pub(super) fn name_reason(headers: &HeaderMap) -> Option<Status> {
    let code = headers.get("grpc-status")?;
    if code == "0" || headers.contains_key("grpc-status-details-bin") {
        return None;
    }
    let status = Status::from_header_map(headers)?;
    let message = status.message();
    let (code, reason) = match status.code() {
        Code::OutOfRange if message.contains("message length too large") => {
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
        }
        // A body that is no sequence of gRPC messages. Faults of ours never read like this.
        Code::Internal if MALFORMED.iter().any(|start| message.starts_with(start)) => {
            (Code::InvalidArgument, "MALFORMED_REQUEST")
        }
        // The code that gRPC lays down for this; tonic puts the encodings that are known into the metadata.
        Code::Unimplemented if message.starts_with("Content is compressed") => {
            (Code::Unimplemented, "UNSUPPORTED_MEDIA_TYPE")
        }
        Code::Unimplemented if message.is_empty() => {
            return Some(refusal(Code::Unimplemented, "ROUTE_NOT_FOUND", "no method has this name"));
        }
        _ => return None,
    };
    // Whose library reads the body is none of the caller's business.
    let mut named = refusal(code, reason, message.strip_prefix(GRPC_WEB).unwrap_or(message));
    *named.metadata_mut() = status.metadata().clone();
    Some(named)
}

const MALFORMED: [&str; 5] = [
    "protocol error",
    "Missing request message",
    "Unexpected EOF",
    "failed to decode Protobuf message",
    GRPC_WEB,
];

/// How an error in the encoding of gRPC-Web starts.
const GRPC_WEB: &str = "tonic-web: ";

/// The name that the specification of gRPC gives a code.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
