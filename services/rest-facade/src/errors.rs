//! Every refusal as REST tells it: the only mapping from reasons to HTTP, and from the contract's field names to JSON's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use proto::{FieldError, Reason};
use serde::Serialize;
use tonic::Status;
use utoipa::ToSchema;

/// The media type of RFC 9457.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was refused. Nothing was changed.
#[derive(Debug)]
pub(crate) struct Problem {
    reason: Reason,
    detail: Cow<'static, str>,
    fields: Vec<FieldError>,
    facts: BTreeMap<String, String>,
}

impl Problem {
    /// A problem with a text for people.
    pub(crate) fn new(reason: Reason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { reason, detail: detail.into(), fields: Vec::new(), facts: BTreeMap::new() }
    }

    /// `INVALID_FIELD` for one field, header or parameter, spelled as the caller sends it.
    pub(crate) fn field(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::fields(vec![FieldError { field: field.into(), rule: rule.into() }])
    }

    /// The same for a name and a rule that quote what was sent, however long that was.
    pub(crate) fn quoting(field: &str, rule: &str) -> Self {
        Self::field(shorten(field), shorten(rule))
    }

    /// `INVALID_FIELD` for one or more fields.
    pub(crate) fn fields(fields: Vec<FieldError>) -> Self {
        let detail = fields.iter().map(|f| format!("{}: {}", f.field, f.rule)).collect::<Vec<_>>().join("; ");
        Self { fields, ..Self::new(Reason::InvalidField, detail) }
    }

    /// The deadline passed.
    pub(crate) fn late() -> Self {
        Self::new(Reason::DeadlineExceeded, "the request took longer than it may")
    }

    /// A fault of ours: `what` goes to the log, not to the caller.
    pub(crate) fn internal(what: impl std::fmt::Display) -> Self {
        tracing::error!("{what}");
        Self::new(Reason::Internal, "a fault of the server")
    }

    /// The same problem with one field under another name: that of the parameter it came from.
    pub(crate) fn renamed(self, from: &str, to: &str) -> Self {
        if !self.fields.iter().any(|f| f.field == from) {
            return self;
        }
        let rename =
            |f: FieldError| if f.field == from { FieldError { field: to.to_owned(), ..f } } else { f };
        Self::fields(self.fields.into_iter().map(rename).collect())
    }

    /// The same problem where these numbers were left out: the service took them for zeros.
    pub(crate) fn left_out(mut self, names: impl IntoIterator<Item = String>) -> Self {
        let mut found = false;
        for name in names {
            for field in self.fields.iter_mut().filter(|field| field.field == name) {
                field.rule = "must be given".to_owned();
                found = true;
            }
        }
        if found { Self::fields(self.fields) } else { self }
    }

    /// Why, for programs.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    /// Why, for people.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The body of the reply.
    pub(crate) fn document(&self) -> ProblemDocument<'_> {
        let status = status(self.reason);
        ProblemDocument {
            kind: "about:blank",
            title: title(status),
            status: status.as_u16(),
            detail: &self.detail,
            reason: self.reason.as_str(),
            metadata: &self.facts,
            errors: self.fields.iter().map(|f| FieldProblem { field: &f.field, rule: &f.rule }).collect(),
        }
    }
}

/// A text without its middle when it is long: a reply must not be larger than what it refuses.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    const ENDS: usize = 100;
    let (Some((start, _)), Some((end, _))) =
        (text.char_indices().nth(ENDS), text.char_indices().nth_back(ENDS - 1))
    else {
        return Cow::Borrowed(text);
    };
    match (text.get(..start), text.get(end..)) {
        (Some(first), Some(last)) if start < end => Cow::Owned(format!("{first} … {last}")),
        _ => Cow::Borrowed(text),
    }
}

impl From<Status> for Problem {
    fn from(refused: Status) -> Self {
        let reason = Reason::of(&refused);
        if reason == Reason::Internal {
            return Self::internal(format_args!("{:?}: {}", refused.code(), refused.message()));
        }
        let fields = proto::field_errors(&refused);
        if !fields.is_empty() {
            let spelled = fields.into_iter().map(|f| FieldError { field: spell(&f.field).into_owned(), ..f });
            return Self { reason, ..Self::fields(spelled.collect()) };
        }
        if refused.details().is_empty() {
            // Not one of our refusals: the text comes from a transport and may name what is behind this edge.
            tracing::warn!("{:?}: {}", refused.code(), refused.message());
            return Self::new(reason, title(status(reason)).to_ascii_lowercase());
        }
        Self { facts: proto::facts(&refused), ..Self::new(reason, refused.message().to_owned()) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // The document holds strings and numbers only, so that writing it can't fail.
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        let mut response = Response::new(body.into());
        *response.status_mut() = status(self.reason);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if worth_retrying(self.reason) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An error (RFC 9457). `reason` is for programs and never changes its meaning; `detail` is for people.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "about:blank",
    "title": "Bad Request",
    "status": 400,
    "detail": "lines[3].quantity: must be from 1 to 1000000, was 0",
    "reason": "INVALID_FIELD",
    "errors": [{"field": "lines[3].quantity", "rule": "must be from 1 to 1000000, was 0"}],
}))]
pub(crate) struct ProblemDocument<'a> {
    /// Always `about:blank`: `reason` tells problems apart.
    #[serde(rename = "type")]
    kind: &'a str,
    /// The HTTP status in words.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// What is wrong with this request.
    detail: &'a str,
    /// The same name in every API style: INVALID_FIELD, BOOK_NOT_FOUND, OUT_OF_STOCK and so on.
    reason: &'a str,
    /// Facts for programs that go with the reason, at most ten: OUT_OF_STOCK has `sku`, `wanted` and `inStock`. Left
    /// out when there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    /// The fields, parameters or headers that break a rule, at most 20; left out when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem<'a>>,
}

/// A field that breaks a rule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FieldProblem<'a> {
    /// The path of the field in the body, or the name of the parameter or header.
    field: &'a str,
    /// The rule, and what was sent.
    rule: &'a str,
}

/// The HTTP status of a reason, always the same.
pub(crate) fn status(reason: Reason) -> StatusCode {
    match reason {
        Reason::InvalidField
        | Reason::InvalidPageToken
        | Reason::MalformedRequest
        | Reason::InvalidQuery
        | Reason::QueryTooComplex => StatusCode::BAD_REQUEST,
        Reason::BookNotFound
        | Reason::AuthorNotFound
        | Reason::UnknownSku
        | Reason::ReservationNotFound
        | Reason::OrderNotFound
        | Reason::RouteNotFound
        | Reason::PersistedQueryNotFound => StatusCode::NOT_FOUND,
        Reason::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Reason::SkuTaken
        | Reason::OutOfStock
        | Reason::OrderIdConflict
        | Reason::ReservationExpired
        | Reason::ReservationReleased
        | Reason::OrderShipped
        | Reason::RequestInProgress => StatusCode::CONFLICT,
        Reason::VersionMismatch => StatusCode::PRECONDITION_FAILED,
        Reason::MessageTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        // The status that the IETF's draft of Idempotency-Key names.
        Reason::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        // Nobody reads it: the caller left. The number is nginx's custom, for logs.
        Reason::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Reason::StoreFull | Reason::UpstreamUnavailable | Reason::ShuttingDown => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Reason::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
    }
}

fn title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Client Closed Request")
}

/// Whether the same request may succeed a moment later.
pub(crate) fn worth_retrying(reason: Reason) -> bool {
    let status = status(reason);
    status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS
}

/// A field of the contract as REST spells it: camelCase, but for what travels outside of the body.
pub(crate) fn spell(field: &str) -> Cow<'_, str> {
    match field {
        "page_size" | "page_token" | "batch_size" => field.into(),
        "review_count" => "reviews".into(),
        "request_id" => "Idempotency-Key".into(),
        "expected_version" => "If-Match".into(),
        _ if !field.contains('_') => field.into(),
        _ => {
            let mut words = field.split('_');
            let first = words.next().unwrap_or_default().to_owned();
            words
                .fold(first, |mut camel, word| {
                    let mut letters = word.chars();
                    camel.extend(letters.next().map(|c| c.to_ascii_uppercase()));
                    camel.push_str(letters.as_str());
                    camel
                })
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_as_rest_spells_them() {
        for (contract, rest) in [
            ("sku", "sku"),
            ("book_id", "bookId"),
            ("lines[3].quantity", "lines[3].quantity"),
            ("ship_to.postal_code", "shipTo.postalCode"),
            ("price.amount_minor", "price.amountMinor"),
            ("page_size", "page_size"),
            ("request_id", "Idempotency-Key"),
        ] {
            assert_eq!(spell(contract), rest);
        }
    }

    #[test]
    fn only_a_long_text_loses_its_middle() {
        for short in ["", "sku", &"é".repeat(200)] {
            assert_eq!(shorten(short), short);
        }
        let long = format!("{}é{}", "a".repeat(100), "z".repeat(100));
        assert_eq!(shorten(&long), format!("{} … {}", "a".repeat(100), "z".repeat(100)));
    }

    #[test]
    fn every_reason_has_a_status_that_says_error_and_a_title() {
        for &reason in Reason::ALL {
            assert!(status(reason).as_u16() >= 400, "{reason}");
            assert!(!title(status(reason)).is_empty(), "{reason}");
        }
    }

    #[test]
    fn what_a_transport_says_stays_inside() {
        for refused in [Status::unavailable("connect 10.0.0.7:5311"), Status::unknown("panicked at 10.0.0.7")]
        {
            let problem = Problem::from(refused);
            assert!(!problem.detail.contains("10.0.0.7"), "{}", problem.detail);
        }
    }
}
