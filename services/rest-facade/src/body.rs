//! Reading JSON bodies: within a size and the deadline, strictly, and telling where a bad one is bad.
//!
//! A field that is left out mostly reads as its zero, as in a message of the contract: the services then refuse it along
//! with every other field that breaks a rule. Only where zero is a fair value, as in a price, does the edge insist.

use std::fmt;
use std::marker::PhantomData;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proto::{MAX_MESSAGE_BYTES, Reason};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use tokio::time::timeout_at;

use crate::call::Call;
use crate::errors::Problem;

/// How much of a body over the limit is read and thrown away before it is refused.
///
/// A client that is still sending when the connection closes sees a reset instead of the reply.
const DRAIN_BYTES: usize = 8 * MAX_MESSAGE_BYTES;

impl Call {
    /// Refuses a body that is encoded: it would be read as what it is not.
    pub(crate) fn is_plain(&self) -> Result<(), Problem> {
        let mut encodings = self.headers.get_all(CONTENT_ENCODING).iter();
        if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Ok(());
        }
        let detail = "the body must be sent as it is, without a Content-Encoding";
        Err(Problem::new(Reason::UnsupportedMediaType, detail))
    }

    /// Whether the body says that it is JSON.
    pub(crate) fn says_json(&self) -> bool {
        self.headers.get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()))
    }

    /// The body as JSON of this form.
    pub(crate) async fn json<T: DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        self.is_plain()?;
        if !self.says_json() {
            let detail = "the body must be application/json, and the header Content-Type must say so";
            return Err(Problem::new(Reason::UnsupportedMediaType, detail));
        }
        let patient = !self.headers.contains_key(EXPECT);
        match timeout_at(self.deadline.0, read(body, patient)).await {
            Ok(bytes) => parse(&bytes?, "the body"),
            Err(_) => Err(Problem::late()),
        }
    }
}

/// Reads a body up to the limit. A `patient` reader hears out a body that is over it; the others have asked before they
/// send, and get their answer at once.
async fn read(mut body: Body, patient: bool) -> Result<Bytes, Problem> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced <= MAX_MESSAGE_BYTES {
        match Limited::new(&mut body, MAX_MESSAGE_BYTES).collect().await {
            Ok(whole) => return Ok(whole.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => (),
            Err(_) => return Err(Problem::new(Reason::MalformedRequest, "the body broke off")),
        }
    }
    if patient && announced <= DRAIN_BYTES {
        let mut drained = 0;
        while let Some(Ok(frame)) = body.frame().await {
            drained += frame.data_ref().map_or(0, Bytes::len);
            if drained > DRAIN_BYTES {
                break;
            }
        }
    }
    Err(Problem::new(Reason::MessageTooLarge, format!("the body is over {MAX_MESSAGE_BYTES} bytes")))
}

/// Reads JSON; `what` it is is told when it is none. Following the path costs a third more, so only a body that is refused is read with it.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Problem> {
    let error = match serde_json::from_slice(bytes) {
        Ok(Object(value)) => return Ok(value),
        Err(error) => error,
    };
    if error.classify() != Category::Data {
        return Err(Problem::new(Reason::MalformedRequest, format!("{what} is not JSON: {error}")));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize(&mut json) {
        Ok(Object(value)) => Ok(value),
        Err(error) => {
            let path = error.path().to_string();
            Err(broken_rule(path, &error.into_inner()))
        }
    }
}

/// A JSON object. A derived type alone would also take an array of its fields' values.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A field may be left out, but `null` is not a value that it can have.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// What serde says of a value that doesn't fit, as a field and its rule.
fn broken_rule(path: String, error: &serde_json::Error) -> Problem {
    let path = if path == "." { String::new() } else { path };
    let text = error.to_string();
    let rule = text.rsplit_once(" at line ").map_or(text.as_str(), |(rule, _)| rule);
    // These two name the field in their text only: the path ends at the object around it.
    for (fault, rule_broken) in
        [("missing field `", "must be given"), ("duplicate field `", "must be given once")]
    {
        if let Some(field) = rule.strip_prefix(fault).and_then(|rest| rest.strip_suffix('`')) {
            let dot = if path.is_empty() { "" } else { "." };
            return Problem::quoting(&format!("{path}{dot}{field}"), rule_broken);
        }
    }
    Problem::quoting(if path.is_empty() { "body" } else { &path }, &in_words_of_json(rule))
}

/// A rule of serde without the types of the language that this is written in.
fn in_words_of_json(rule: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        (", expected i32", ", expected a whole number of 32 bits"),
        (", expected i64", ", expected a whole number of 64 bits"),
        (", expected a sequence", ", expected an array"),
        (", expected a map", ", expected an object"),
        ("invalid type: sequence,", "invalid type: array,"),
        ("invalid type: map,", "invalid type: object,"),
    ];
    WORDS.into_iter().fold(rule.to_owned(), |rule, (word, other)| {
        let fits = if word.starts_with(',') { rule.ends_with(word) } else { rule.starts_with(word) };
        if fits { rule.replacen(word, other, 1) } else { rule }
    })
}

/// Whether `Content-Type` says that a body is of this media type, with any parameters.
pub(crate) fn is(headers: &HeaderMap, media_type: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    given.is_some_and(|given| essence(given).eq_ignore_ascii_case(media_type.as_bytes()))
}

fn essence(media_type: &[u8]) -> &[u8] {
    media_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii()
}

/// `application/json`, or a media type that is JSON underneath (RFC 6839), with any parameters.
fn is_json(media_type: &[u8]) -> bool {
    let essence = essence(media_type);
    let suffixed = || {
        let (kind, suffix) =
            (essence.get(..12), essence.len().checked_sub(5).and_then(|at| essence.get(at..)));
        kind.is_some_and(|k| k.eq_ignore_ascii_case(b"application/"))
            && suffix.is_some_and(|s| s.eq_ignore_ascii_case(b"+json"))
    };
    essence.eq_ignore_ascii_case(b"application/json") || suffixed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_speak_of_json() {
        for (text, rule) in [
            (r#""7""#, "invalid type: string \"7\", expected a whole number of 32 bits"),
            ("2147483648", "invalid value: integer `2147483648`, expected a whole number of 32 bits"),
            ("[]", "invalid type: array, expected a whole number of 32 bits"),
            ("{}", "invalid type: object, expected a whole number of 32 bits"),
        ] {
            let error = serde_json::from_str::<i32>(text).unwrap_err();
            assert!(broken_rule("n".to_owned(), &error).detail().ends_with(rule), "{text}");
        }
        let error = serde_json::from_str::<Vec<i64>>("{}").unwrap_err();
        let problem = broken_rule(".".to_owned(), &error);
        assert_eq!(problem.detail(), "body: invalid type: object, expected an array");
    }

    #[test]
    fn json_is_known_by_its_media_type() {
        for yes in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert!(is_json(yes.as_bytes()), "{yes}");
        }
        for no in ["", "text/plain", "application/jsonx", "text/x+json", "application/x-www-form-urlencoded"]
        {
            assert!(!is_json(no.as_bytes()), "{no}");
        }
    }
}
