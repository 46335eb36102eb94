//! One request on its way through a handler: what it names, how long it may take, and how it asks the services.

use std::future::Future;
use std::time::Duration;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, RawPathParams};
use chassis::call::{Deadline, TraceParent};
use http::request::Parts;
use http::{HeaderMap, Uri};
use proto::Services;
use tokio::time::timeout_at;
use tonic::{Request, Response, Status};

use crate::App;
use crate::errors::Problem;

/// The longest time a request may ask for; longer ones are cut to it.
pub(crate) const MAX_TIMEOUT_MS: u64 = 60_000;

/// A request without its body, to a route that has no parameters in the query: one that comes with any is refused.
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) deadline: Deadline,
    path: RawPathParams,
}

/// A request to a route that reads the query, and must read it to its end.
pub(crate) struct CallWithQuery(pub(crate) Call);

impl FromRequestParts<App> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let CallWithQuery(call) = CallWithQuery::from_request_parts(parts, app).await?;
        call.query().done()?;
        Ok(call)
    }
}

impl FromRequestParts<App> for CallWithQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let time = match parts.headers.get("request-timeout") {
            None => app.0.deadline,
            Some(value) => value.to_str().ok().and_then(parse_timeout).ok_or_else(|| {
                Problem::field("Request-Timeout", "must be a decimal number of seconds over 0, such as 2.5")
            })?,
        };
        let path = RawPathParams::from_request_parts(parts, app).await.map_err(not_utf8)?;
        Ok(Self(Call {
            app: app.clone(),
            uri: std::mem::take(&mut parts.uri),
            headers: std::mem::take(&mut parts.headers),
            deadline: Deadline::after(time),
            path,
        }))
    }
}

impl Call {
    /// The services behind this edge.
    pub(crate) fn services(&self) -> &Services {
        &self.app.0.services
    }

    /// The parameter of the path with this name.
    pub(crate) fn path_text(&self, name: &str) -> String {
        self.path.iter().find(|(key, _)| *key == name).map(|(_, text)| text.to_owned()).unwrap_or_default()
    }

    /// The parameter of the path with this name, a number of 32 bits.
    pub(crate) fn path_int(&self, name: &str) -> Result<i32, Problem> {
        let text = self.path.iter().find(|(key, _)| *key == name).map_or("", |(_, text)| text);
        parse_int(text).map_err(|rule| Problem::field(name, rule))
    }

    /// The only value of this header, if it is there.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.headers.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Problem::field(name, "must be given once"));
        }
        match value.to_str() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Problem::field(name, "must have printable ASCII characters only")),
        }
    }

    /// A message to a service, with the deadline and the trace of this request.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = self.open_ended(message);
        request.extensions_mut().insert(self.deadline);
        request
    }

    /// A message that asks a service for a stream, which may go on after the deadline.
    pub(crate) fn open_ended<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(trace) = TraceParent::from_headers(&self.headers) {
            request.extensions_mut().insert(trace);
        }
        request
    }

    /// What a service answers by the deadline.
    pub(crate) async fn wait<T>(
        &self,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Problem> {
        match timeout_at(self.deadline.0, answer).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(refused)) => Err(refused.into()),
            Err(_) => Err(Problem::late()),
        }
    }
}

/// What a service promises to send.
pub(crate) fn promised<T>(part: Option<T>) -> Result<T, Problem> {
    part.ok_or_else(|| Problem::internal("a service left out a part of its reply"))
}

/// A number of 32 bits, or the rule that the text breaks.
pub(crate) fn parse_int(text: &str) -> Result<i32, &'static str> {
    const RULE: &str = "must be a whole number of 32 bits";
    // Rust also reads `+1`; a path or a query never spells a number so.
    if text.starts_with('+') {
        return Err(RULE);
    }
    text.parse().map_err(|_| RULE)
}

fn parse_timeout(text: &str) -> Option<Duration> {
    // What is more than digits and a point (`inf`, `1e9`, `-1`) reads as a float too.
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let longest = Duration::from_millis(MAX_TIMEOUT_MS);
    let seconds: f64 = text.parse().ok()?;
    let time = Duration::from_secs_f64(seconds.min(longest.as_secs_f64()));
    (!time.is_zero()).then_some(time)
}

fn not_utf8(rejection: RawPathParamsRejection) -> Problem {
    match rejection {
        // axum tells the name of the parameter in its text only: "Invalid UTF-8 in `bookId`".
        RawPathParamsRejection::InvalidUtf8InPathParam(error) => {
            let text = error.body_text();
            Problem::field(text.split('`').nth(1).unwrap_or("path"), "must be UTF-8, percent-encoded")
        }
        other => Problem::internal(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_decimal_number_of_seconds_up_to_a_minute() {
        for (text, ms) in [
            ("10", Some(10_000)),
            ("0.25", Some(250)),
            ("60", Some(60_000)),
            ("3600", Some(60_000)),
            ("99999999999999999999999999999999999999999", Some(60_000)),
            ("0", None),
            ("0.0000000000001", None),
            ("", None),
            (".", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("inf", None),
            ("NaN", None),
            ("1,5", None),
            ("1.2.3", None),
            ("5s", None),
        ] {
            assert_eq!(parse_timeout(text), ms.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn a_number_is_plain_and_fits_32_bits() {
        for (text, number) in [
            ("1", Some(1)),
            ("-7", Some(-7)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("+1", None),
            ("", None),
            ("1.0", None),
            (" 1", None),
        ] {
            assert_eq!(parse_int(text).ok(), number, "{text}");
        }
    }
}
