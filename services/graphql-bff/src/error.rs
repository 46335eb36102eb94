//! The only mapping from the suite's refusals to GraphQL errors.
//!
//! Every error carries `extensions: { reason, code, fields?, metadata? }`: the reason and gRPC code that the other API
//! styles give for the same refusal, for `INVALID_FIELD` each field with the rule that it breaks, spelled as in the
//! schema, and the facts that go with the reason.

use async_graphql::parser::types::Field;
use async_graphql::{
    ContextBase, ErrorExtensionValues, Name, Positioned, ServerError, Value, indexmap::IndexMap,
};
use chassis::grpc::code_name;
use http::StatusCode;
use proto::{FieldError, Reason};
use tonic::Status;

/// Fields that the schema names otherwise than the contract: `(contract, schema)`. A pair renames a path's beginning.
pub(crate) type Names = &'static [(&'static str, &'static str)];

/// The names differ in their case only.
pub(crate) const SAME_NAMES: Names = &[];

/// At most this many errors are told; a document with more is beyond help, and a reply must stay small.
const MAX_ERRORS: usize = 20;

/// A request that was refused before it ran.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) errors: Vec<ServerError>,
    /// The HTTP status, where HTTP is the way in.
    pub(crate) status: StatusCode,
    /// Whether this was GraphQL over HTTP at all: the old media type then answers 200 ("GraphQL over HTTP", 6.4.1).
    pub(crate) well_formed: bool,
    /// The methods that would have been allowed.
    pub(crate) allow: Option<&'static str>,
}

impl Rejection {
    /// GraphQL refuses the request.
    pub(crate) fn graphql(errors: Vec<ServerError>) -> Self {
        Self { errors, status: StatusCode::BAD_REQUEST, well_formed: true, allow: None }
    }

    /// GraphQL refuses the request, for one reason.
    pub(crate) fn because(reason: Reason, message: impl Into<String>) -> Self {
        Self::graphql(vec![error(reason, shorten(&message.into()))])
    }

    /// HTTP refuses the request.
    pub(crate) fn http(status: StatusCode, reason: Reason, message: impl Into<String>) -> Self {
        let errors = vec![error(reason, shorten(&message.into()))];
        Self { errors, status, well_formed: false, allow: None }
    }

    /// HTTP refuses the method.
    pub(crate) fn method(allow: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        let rejection = Self::http(StatusCode::METHOD_NOT_ALLOWED, reason, message);
        Self { allow: Some(allow), ..rejection }
    }

    /// The time is over.
    pub(crate) fn late() -> Self {
        let rejection = Self::because(Reason::DeadlineExceeded, "the operation took longer than it may");
        Self { status: StatusCode::GATEWAY_TIMEOUT, ..rejection }
    }

    /// Values break rules of the schema.
    pub(crate) fn fields(fields: Vec<FieldError>) -> Self {
        Self::graphql(vec![field_error(fields)])
    }
}

/// An error with no place in the document.
pub(crate) fn error(reason: Reason, message: impl Into<String>) -> ServerError {
    with_reason(ServerError::new(message, None), reason)
}

/// Gives errors that async-graphql made a reason, and drops those over the limit.
pub(crate) fn all_because(mut errors: Vec<ServerError>, reason: Reason) -> Vec<ServerError> {
    errors.truncate(MAX_ERRORS);
    let because = |error: ServerError| {
        if error.extensions.is_some() {
            return error;
        }
        let message = shorten(&error.message);
        with_reason(ServerError { message, ..error }, reason)
    };
    errors.into_iter().map(because).collect()
}

/// A message without its middle when it is long: libraries quote what was sent.
fn shorten(message: &str) -> String {
    const ENDS: usize = 200;
    let length = message.chars().count();
    if length <= 3 * ENDS {
        return message.to_owned();
    }
    let start: String = message.chars().take(ENDS).collect();
    let end: String = message.chars().skip(length - ENDS).collect();
    format!("{start} … {end}")
}

/// The result of a service call, or null and an error at this field.
pub(crate) fn or_null<T>(
    ctx: &ContextBase<'_, &Positioned<Field>>,
    result: Result<T, Status>,
    names: Names,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(status) => {
            let mut error = of_status(&status, names);
            error.locations = vec![ctx.item.pos];
            ctx.add_error(ctx.set_error_path(error));
            None
        }
    }
}

/// The error for what a service answered.
pub(crate) fn of_status(status: &Status, names: Names) -> ServerError {
    match Reason::of(status) {
        Reason::InvalidField => {
            let fields = proto::field_errors(status).into_iter();
            field_error(
                fields.map(|f| FieldError { field: translate(&f.field, names), rule: f.rule }).collect(),
            )
        }
        Reason::Internal => {
            tracing::error!(code = ?status.code(), message = status.message(), "a call failed");
            error(Reason::Internal, "internal error")
        }
        reason => {
            let mut error = error(reason, status.message());
            let facts = proto::facts(status).into_iter();
            let facts: IndexMap<_, _> =
                facts.map(|(name, value)| (Name::new(name), Value::String(value))).collect();
            if let Some(extensions) = error.extensions.as_mut().filter(|_| !facts.is_empty()) {
                extensions.set("metadata", Value::Object(facts));
            }
            error
        }
    }
}

fn field_error(fields: Vec<FieldError>) -> ServerError {
    let message = fields.iter().map(|f| format!("{}: {}", f.field, f.rule)).collect::<Vec<_>>().join("; ");
    let mut error = error(Reason::InvalidField, message);
    let object = |f: FieldError| {
        Value::Object(IndexMap::from([
            (Name::new("field"), Value::String(f.field)),
            (Name::new("rule"), Value::String(f.rule)),
        ]))
    };
    if let Some(extensions) = &mut error.extensions {
        extensions.set("fields", Value::List(fields.into_iter().take(MAX_ERRORS).map(object).collect()));
    }
    error
}

fn with_reason(mut error: ServerError, reason: Reason) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    extensions.set("reason", reason.as_str());
    extensions.set("code", code_name(reason.code()));
    error.extensions = Some(extensions);
    error
}

/// A path of the contract as the schema spells it: `lines[3].book_id` is `lines[3].bookId`.
fn translate(field: &str, names: Names) -> String {
    let renamed = names.iter().find_map(|(contract, schema)| {
        let rest = field.strip_prefix(contract)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then(|| format!("{schema}{rest}"))
    });
    let mut camel = String::with_capacity(field.len());
    let mut raise = false;
    for c in renamed.as_deref().unwrap_or(field).chars() {
        match c {
            '_' => raise = true,
            c if raise => {
                camel.extend(c.to_uppercase());
                raise = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_spelled_as_in_the_schema() {
        let names: Names = &[("book_id", "id"), ("page_size", "first")];
        for (contract, schema) in [
            ("book_id", "id"),
            ("page_size", "first"),
            ("book_ids[3]", "bookIds[3]"),
            ("lines[3].unit_price.amount_minor", "lines[3].unitPrice.amountMinor"),
            ("sku", "sku"),
        ] {
            assert_eq!(translate(contract, names), schema);
        }
    }
}
