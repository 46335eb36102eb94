//! Replies: JSON written straight from the services' messages, with the validators of RFC 9110.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LINK, LOCATION, VARY,
};
use http::{HeaderValue, StatusCode};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use xxhash_rust::xxh3::xxh3_64;

use crate::call::Call;
use crate::errors::Problem;
use crate::gzip;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

impl Call {
    /// A representation that can be asked for again: with its `ETag`, or 304 when the caller has it already.
    pub(crate) fn fresh(&self, view: &impl Serialize) -> Result<Response, Problem> {
        let body = to_json(view)?;
        let tag = etag(&body, "");
        let mut response = if self.has(&tag) { not_modified() } else { respond(StatusCode::OK, body) };
        let headers = response.headers_mut();
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, NO_CACHE);
        Ok(response)
    }

    /// A page of a list, as [`Call::fresh`], with a link to the next page when there is one.
    pub(crate) fn fresh_page(
        &self,
        view: &impl Serialize,
        next_page_token: &str,
    ) -> Result<Response, Problem> {
        let mut response = self.fresh(view)?;
        self.link(&mut response, next_page_token)?;
        Ok(response)
    }

    /// A page that may be large, as [`Call::fresh_page`]: gzipped when it is and the caller takes that. Its length is
    /// about `expected`.
    ///
    /// The gzipped form is another representation and has a tag of its own (RFC 9110, 8.8.3.3), a strong one as well: the
    /// same text makes the same bytes.
    pub(crate) fn fresh_large_page(
        &self,
        view: &impl Serialize,
        expected: usize,
        next_page_token: &str,
    ) -> Result<Response, Problem> {
        let mut body = Vec::with_capacity(expected);
        serde_json::to_writer(&mut body, view).map_err(Problem::internal)?;
        let zipped = body.len() >= gzip::WORTH_IT && gzip::accepted(&self.headers);
        let tag = if zipped { etag(&body, "-gzip") } else { etag(&body, "") };
        let mut response = if self.has(&tag) {
            not_modified()
        } else if zipped {
            let body = gzip::zip(&body).map_err(Problem::internal)?;
            let mut response = respond(StatusCode::OK, body);
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            respond(StatusCode::OK, body)
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, NO_CACHE);
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        self.link(&mut response, next_page_token)?;
        Ok(response)
    }

    fn link(&self, response: &mut Response, next_page_token: &str) -> Result<(), Problem> {
        if !next_page_token.is_empty() {
            let link = HeaderValue::try_from(self.next_page(next_page_token)).map_err(Problem::internal)?;
            response.headers_mut().insert(LINK, link);
        }
        Ok(())
    }

    /// Whether the caller changes something only when it is as he knows it.
    pub(crate) fn is_conditional(&self) -> bool {
        self.headers.contains_key(IF_MATCH)
    }

    /// Whether `If-Match` allows to change what is represented by `view`: strong comparison (RFC 9110, 13.1.1).
    pub(crate) fn matches(&self, view: &impl Serialize) -> Result<bool, Problem> {
        let tag = etag(&to_json(view)?, "");
        Ok(self.tags(IF_MATCH).any(|given| given == b"*" || given == tag.as_bytes()))
    }

    /// Whether `If-None-Match` names this representation: weak comparison (RFC 9110, 13.1.2).
    fn has(&self, tag: &HeaderValue) -> bool {
        self.tags(IF_NONE_MATCH)
            .any(|given| given == b"*" || given.strip_prefix(b"W/").unwrap_or(given) == tag.as_bytes())
    }

    /// The tags that a header lists. A comma within another server's tag splits it into parts that are no tag of ours.
    fn tags(&self, header: http::HeaderName) -> impl Iterator<Item = &[u8]> {
        let values = self.headers.get_all(header).into_iter();
        values.flat_map(|value| value.as_bytes().split(|&b| b == b',')).map(|tag| tag.trim_ascii())
    }
}

/// 200 with a body that is not worth asking for again.
pub(crate) fn ok(view: &impl Serialize) -> Result<Response, Problem> {
    Ok(respond(StatusCode::OK, to_json(view)?))
}

/// 200 with the representation after a change, and its `ETag` for the next one.
pub(crate) fn changed(view: &impl Serialize) -> Result<Response, Problem> {
    let body = to_json(view)?;
    let tag = etag(&body, "");
    let mut response = respond(StatusCode::OK, body);
    response.headers_mut().insert(ETAG, tag);
    Ok(response)
}

/// 201, and where to find what was made.
pub(crate) fn created(view: &impl Serialize, location: String) -> Result<Response, Problem> {
    let mut response = respond(StatusCode::CREATED, to_json(view)?);
    let location = HeaderValue::try_from(location).map_err(Problem::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// JSON as text.
pub(crate) fn to_json(view: &impl Serialize) -> Result<Vec<u8>, Problem> {
    let mut body = Vec::with_capacity(256);
    serde_json::to_writer(&mut body, view).map_err(Problem::internal)?;
    Ok(body)
}

fn respond(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn etag(body: &[u8], form: &str) -> HeaderValue {
    let tag = format!("\"{:016x}{form}\"", xxh3_64(body));
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// An amount of money.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"amountMinor": 2999, "currency": "EUR"}))]
pub(crate) struct Money<'a> {
    /// The amount in the currency's minor unit: 2999 is EUR 29.99. Never negative.
    #[schema(minimum = 0)]
    amount_minor: i64,
    /// ISO 4217 code; EUR throughout.
    currency: &'a str,
}

impl<'a> From<&'a proto::common::v1::Money> for Money<'a> {
    fn from(money: &'a proto::common::v1::Money) -> Self {
        Self { amount_minor: money.amount_minor, currency: &money.currency }
    }
}

/// Writes a part that services always send. One that is missing is their fault, not a value to make up.
pub(crate) fn promised<T: Serialize, S: Serializer>(
    part: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match part {
        Some(part) => part.serialize(serializer),
        None => Err(serde::ser::Error::custom("a service left out a part of its reply")),
    }
}

/// Writes messages as the views `V` of them, with no list of views in between.
pub(crate) fn each<'a, M, V, S>(messages: &&'a [M], serializer: S) -> Result<S::Ok, S::Error>
where
    V: From<&'a M> + Serialize,
    S: Serializer,
{
    serializer.collect_seq(messages.iter().map(V::from))
}
