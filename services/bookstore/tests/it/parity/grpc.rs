//! Calls as gRPC and as gRPC-Web say them.

use hyper::header::HeaderMap;
use prost_reflect::DynamicMessage;
use prost_reflect::prost::Message as _;
use serde_json::Value;
use tonic_types::StatusExt;

use super::{Answer, Refusal, message};
use crate::harness::Suite;
use crate::http::{self, Version};

/// What the service answers; none when its message has no place for the input.
pub(super) async fn call(suite: &Suite, web: bool, name: &str, input: &Value) -> Option<Answer> {
    let method = message::method(name);
    let sent = message::from_json(&method.input(), input)?;
    let service = method.parent_service().full_name().to_owned();
    let path = format!("/{service}/{name}");
    let body = http::frame(&sent.encode_to_vec());
    let (received, trailers) = if web {
        let headers = [("content-type", "application/grpc-web+proto"), ("x-grpc-web", "1")];
        let reply =
            http::send(Version::Http1, suite.web(&service), http::request("POST", &path, &headers, body))
                .await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let (trailers, messages): (Vec<_>, Vec<_>) =
            http::frames(&reply.body).into_iter().partition(|(flags, _)| flags & 0x80 != 0);
        (messages, trailers.first().map_or(reply.headers, |(_, block)| headers_of(block)))
    } else {
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let reply =
            http::send(Version::Http2, suite.grpc(&service), http::request("POST", &path, &headers, body))
                .await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let trailers = if reply.trailers.is_empty() { reply.headers } else { reply.trailers };
        (http::frames(&reply.body), trailers)
    };
    let status =
        tonic::Status::from_header_map(&trailers).unwrap_or_else(|| panic!("no status: {trailers:?}"));
    if status.code() != tonic::Code::Ok {
        assert!(received.is_empty(), "{name}: a refusal has no message");
        return Some(Answer::Refused(refusal(&status)));
    }
    let [(0, bytes)] = &received[..] else { panic!("{name}: {received:?}") };
    let reply = DynamicMessage::decode(method.output(), &bytes[..]).unwrap();
    Some(Answer::Done { value: plain(message::to_json(&reply)), bytes: bytes.clone().into() })
}

/// The refusal that a status carries, after checking that it carries all it should.
pub(crate) fn refusal(status: &tonic::Status) -> Refusal {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
    assert_eq!(info.domain, proto::DOMAIN);
    let reason =
        proto::Reason::parse(&info.reason).unwrap_or_else(|| panic!("unknown reason {}", info.reason));
    assert_eq!(status.code(), reason.code(), "{status:?}");
    let fields = proto::field_errors(status).into_iter().map(|error| (error.field, error.rule)).collect();
    let facts = info.metadata.iter().map(|(name, value)| (name.clone(), value.clone().into()));
    let facts = Value::Object(facts.collect());
    Refusal { reason: info.reason.clone(), message: status.message().to_owned(), fields, facts }
}

/// The trailers of gRPC-Web: a block of HTTP/1.1 headers.
pub(crate) fn headers_of(block: &[u8]) -> HeaderMap {
    let lines = std::str::from_utf8(block).unwrap().split("\r\n").filter(|line| !line.is_empty());
    let pairs = lines.map(|line| line.split_once(':').unwrap());
    pairs.map(|(name, value)| (name.parse().unwrap(), value.trim().parse().unwrap())).collect()
}

/// A reply that holds one thing only is that thing; a list also tells how long it is.
fn plain(reply: Value) -> Value {
    let Value::Object(mut fields) = reply else { return reply };
    if fields.len() == 1 && fields.values().all(Value::is_object) {
        return fields.into_iter().map(|(_, value)| value).next().unwrap();
    }
    if fields.contains_key("nextPageToken") {
        let count = fields.values().find_map(Value::as_array).map_or(0, Vec::len);
        fields.insert("count".to_owned(), count.into());
    }
    Value::Object(fields)
}
