//! One vocabulary of refusals for every API style.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

/// `ErrorInfo.domain` of every refusal.
pub const DOMAIN: &str = "bookstore";

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:ident;)*) => {
        /// Why a call was refused. The names cross the wire: `ErrorInfo.reason` in gRPC, `reason` in a problem+json,
        /// `extensions.reason` in GraphQL. A name never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// All of them, in the order of their declaration.
            pub const ALL: &[Reason] = &[$(Reason::$variant,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// The gRPC code that goes with it, always the same.
            pub const fn code(self) -> Code {
                match self { $(Reason::$variant => Code::$code,)* }
            }

            /// The reason with this name on the wire.
            pub fn parse(name: &str) -> Option<Reason> {
                match name { $($name => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    /// A field breaks a rule; the refusal names the field and the rule.
    InvalidField = "INVALID_FIELD", InvalidArgument;
    /// The page token is not one that this list gave out.
    InvalidPageToken = "INVALID_PAGE_TOKEN", InvalidArgument;
    /// The request can't be read at all: broken protobuf, JSON or GraphQL.
    MalformedRequest = "MALFORMED_REQUEST", InvalidArgument;
    /// The GraphQL document reads well but doesn't fit the schema, or is not allowed on this way in.
    InvalidQuery = "INVALID_QUERY", InvalidArgument;
    /// The GraphQL document asks for more than one request may.
    QueryTooComplex = "QUERY_TOO_COMPLEX", ResourceExhausted;
    /// The hash names no document that the server knows; send the text with it.
    PersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND", NotFound;
    /// The message or body is over the limit.
    MessageTooLarge = "MESSAGE_TOO_LARGE", ResourceExhausted;
    /// No book has this id.
    BookNotFound = "BOOK_NOT_FOUND", NotFound;
    /// No author has this id.
    AuthorNotFound = "AUTHOR_NOT_FOUND", NotFound;
    /// Inventory knows no such book or SKU.
    UnknownSku = "UNKNOWN_SKU", NotFound;
    /// No reservation has this id.
    ReservationNotFound = "RESERVATION_NOT_FOUND", NotFound;
    /// No order has this id.
    OrderNotFound = "ORDER_NOT_FOUND", NotFound;
    /// No route or method has this name.
    RouteNotFound = "ROUTE_NOT_FOUND", Unimplemented;
    /// The route exists, but not for this HTTP method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", Unimplemented;
    /// The body's media type is not one that this route reads.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", Unimplemented;
    /// Another book has this SKU.
    SkuTaken = "SKU_TAKEN", AlreadyExists;
    /// Fewer units are left than were asked for.
    OutOfStock = "OUT_OF_STOCK", FailedPrecondition;
    /// The order id was used for a reservation of other lines.
    OrderIdConflict = "ORDER_ID_CONFLICT", AlreadyExists;
    /// The reservation ran out; its units went back.
    ReservationExpired = "RESERVATION_EXPIRED", FailedPrecondition;
    /// The reservation was released; its units went back.
    ReservationReleased = "RESERVATION_RELEASED", FailedPrecondition;
    /// The order has left the house.
    OrderShipped = "ORDER_SHIPPED", FailedPrecondition;
    /// The request id was used with other content.
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", FailedPrecondition;
    /// The first call with this request id is still running.
    RequestInProgress = "REQUEST_IN_PROGRESS", Aborted;
    /// The thing has changed since the version that the caller expects.
    VersionMismatch = "VERSION_MISMATCH", Aborted;
    /// The store holds as much as it may.
    StoreFull = "STORE_FULL", ResourceExhausted;
    /// Too many things at once on this connection.
    TooManyRequests = "TOO_MANY_REQUESTS", ResourceExhausted;
    /// The time the call had ran out.
    DeadlineExceeded = "DEADLINE_EXCEEDED", DeadlineExceeded;
    /// The caller left.
    Cancelled = "CANCELLED", Cancelled;
    /// A service behind this one can't be reached.
    UpstreamUnavailable = "UPSTREAM_UNAVAILABLE", Unavailable;
    /// The server is going down; another one, or the same one later, will answer.
    ShuttingDown = "SHUTTING_DOWN", Unavailable;
    /// A fault of ours. The log has more.
    Internal = "INTERNAL", Internal;
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Reason {
    /// The reason of a refused call: the one it carries, else the one that fits its code.
    pub fn of(status: &Status) -> Reason {
        if !status.details().is_empty()
            && let Some(info) = status.get_details_error_info()
            && info.domain == DOMAIN
            && let Some(reason) = Reason::parse(&info.reason)
        {
            return reason;
        }
        match status.code() {
            Code::InvalidArgument => Reason::MalformedRequest,
            Code::DeadlineExceeded => Reason::DeadlineExceeded,
            Code::Cancelled => Reason::Cancelled,
            Code::Unavailable => Reason::UpstreamUnavailable,
            Code::ResourceExhausted => Reason::TooManyRequests,
            Code::Unimplemented => Reason::RouteNotFound,
            _ => Reason::Internal,
        }
    }
}

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path as the contract spells it: `lines[3].quantity`.
    pub field: String,
    /// The rule: `must be from 1 to 1000000, was 0`.
    pub rule: String,
}

/// A refused call on its way to the caller. Nothing was changed.
#[derive(Debug, Clone)]
pub struct Refusal {
    reason: Reason,
    message: String,
    fields: Vec<FieldError>,
    metadata: HashMap<String, String>,
}

impl Refusal {
    /// A refusal with a message for people.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), fields: Vec::new(), metadata: HashMap::new() }
    }

    /// `INVALID_FIELD` for one field. `rule` says what must hold, and what was sent.
    pub fn field(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::fields(vec![FieldError { field: field.into(), rule: rule.into() }])
    }

    /// `INVALID_FIELD` for one or more fields.
    pub fn fields(fields: Vec<FieldError>) -> Self {
        let message =
            fields.iter().map(|f| format!("{}: {}", f.field, f.rule)).collect::<Vec<_>>().join("; ");
        Self { reason: Reason::InvalidField, message, fields, metadata: HashMap::new() }
    }

    /// Adds a fact for programs, such as the SKU that is out of stock.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.metadata.insert(key.to_owned(), value.to_string());
        self
    }

    /// The reason.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

/// The refusal that inventory and ordering share: `metadata` names the SKU, what was wanted and what is left.
pub fn out_of_stock(sku: &str, wanted: i64, in_stock: i64) -> Refusal {
    Refusal::new(Reason::OutOfStock, format!("only {in_stock} of sku {sku} left, {wanted} wanted"))
        .with("sku", sku)
        .with("wanted", wanted)
        .with("inStock", in_stock)
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let mut details = ErrorDetails::new();
        details.set_error_info(refusal.reason.as_str(), DOMAIN, refusal.metadata);
        if !refusal.fields.is_empty() {
            let fields = refusal.fields.into_iter();
            details.set_bad_request(fields.map(|f| FieldViolation::new(f.field, f.rule)).collect::<Vec<_>>());
        }
        Status::with_error_details(refusal.reason.code(), refusal.message, details)
    }
}

/// The fields that a refused call names.
pub fn field_errors(status: &Status) -> Vec<FieldError> {
    if status.details().is_empty() {
        return Vec::new();
    }
    status.get_details_bad_request().map_or_else(Vec::new, |bad| {
        let fields = bad.field_violations.into_iter();
        fields.map(|v| FieldError { field: v.field, rule: v.description }).collect()
    })
}

/// The facts for programs that a refused call carries in `ErrorInfo.metadata`, such as the SKU that is out of stock, by
/// their names in camelCase. At most ten, and none over 200 bytes: what is more is left out.
pub fn facts(status: &Status) -> BTreeMap<String, String> {
    const MOST: usize = 10;
    const LONGEST: usize = 200;
    if status.details().is_empty() {
        return BTreeMap::new();
    }
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
    let facts: BTreeMap<_, _> = info.map(|info| info.metadata.into_iter().collect()).unwrap_or_default();
    let short = |(name, value): &(String, String)| name.len().max(value.len()) <= LONGEST;
    facts.into_iter().filter(short).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_the_wire() {
        for &reason in Reason::ALL {
            let status = Status::from(Refusal::new(reason, "because"));
            assert_eq!(status.code(), reason.code());
            assert_eq!(Reason::of(&status), reason);
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
    }

    #[test]
    fn a_field_is_named_with_its_rule() {
        let status = Status::from(Refusal::field("lines[3].quantity", "must be from 1 to 1000000, was 0"));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "lines[3].quantity: must be from 1 to 1000000, was 0");
        let fields = field_errors(&status);
        assert_eq!(fields.len(), 1);
        assert_eq!(fields.first().map(|f| f.field.as_str()), Some("lines[3].quantity"));
    }

    #[test]
    fn facts_are_few_and_short() {
        let refusal = out_of_stock("9790000000018", 3, 2);
        let expected = [("inStock", "2"), ("sku", "9790000000018"), ("wanted", "3")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(facts(&refusal.clone().into()), BTreeMap::from(expected));

        let many = (0..20).fold(refusal, |refusal, n| refusal.with(&format!("x{n:02}"), n));
        let many = many.with("a", "a".repeat(201));
        let many = facts(&many.into());
        assert_eq!(many.len(), 10);
        assert!(many.contains_key("inStock") && !many.contains_key("a"), "{many:?}");
        assert!(facts(&Status::not_found("no details")).is_empty());
    }

    #[test]
    fn a_status_without_details_gets_the_reason_of_its_code() {
        assert_eq!(Reason::of(&Status::deadline_exceeded("late")), Reason::DeadlineExceeded);
        assert_eq!(Reason::of(&Status::unknown("odd")), Reason::Internal);
    }
}
