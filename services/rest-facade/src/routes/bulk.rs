//! Many books at once: all of them as a stream, and uploads.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use chassis::call::Deadline;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use proto::catalog::v1 as pb;
use proto::{Reason, Refusal};
use serde::{Deserialize, Serialize};
use tonic::Status;
use utoipa::ToSchema;

use super::books::{Book, NewBook};
use crate::body::{self, Object};
use crate::call::CallWithQuery;
use crate::errors::{Problem, spell};
use crate::gzip;
use crate::ndjson::{Line, Lines, MAX_LINE};
use crate::reply;

/// A JSON text on each line.
const NDJSON: &str = "application/x-ndjson";

/// Books that an export takes from catalog at once, and an upload passes on together, unless they are large.
const BATCH: i32 = 100;

/// How many bytes of lines are passed on together at most, but for the last line.
const BATCH_BYTES: usize = 128 << 10;

/// How long an upload of lines may take, unless the request says.
const UPLOAD_TIME: Duration = Duration::from_secs(3600);

/// So many refusals are told in the reply.
const MAX_NAMED: usize = 100;

/// Every book
///
/// In order of id, one JSON object on each line, as fast as they are read. A reader who stops reading stops the server,
/// which holds some hundred books at most. When something goes wrong on the way the connection is broken off: a body
/// that ends properly is whole. Books that are added or removed ahead of where the reader is are seen or missing.
/// With gzip each part can be read as it arrives.
#[utoipa::path(
    get,
    path = "/api/v1/books/export",
    tag = "books",
    params(
        ("limit" = Option<i32>, Query, minimum = 0, example = 2,
            description = "Stop after this many books; 0 means all of them"),
        ("batch_size" = Option<i32>, Query, minimum = 0, maximum = 1_000, example = 100,
            description = "Books that are sent on together: 100 when left out, 0 means one"),
    ),
    responses(
        (status = 200, description = "A book on each line, gzipped if `Accept-Encoding` allows it",
            content_type = "application/x-ndjson", body = String,
            headers(("Vary" = String, description = "`accept-encoding`")),
            example = "{\"id\":1,\"sku\":\"9790000000018\",\"title\":\"Ember\",\"authorId\":1,\
                \"price\":{\"amountMinor\":2999,\"currency\":\"EUR\"}}\n"),
    ),
)]
pub(super) async fn export_books(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let limit = query.int("limit").unwrap_or_default();
    let batch_size = query.int("batch_size").unwrap_or(BATCH);
    query.done()?;
    let message = pb::StreamBooksRequest { delay_ms: 0, limit, batch_size };
    let books = call.wait(call.services().catalog.stream_books(call.open_ended(message))).await?;
    let parts = books.map(|books| lines(&books.map_err(Problem::from)?)).map_err(broken_off);
    let going_down = Problem::new(Reason::ShuttingDown, "the server is going down");
    let parts = call.app.0.shutdown.end(parts, Some(Err(broken_off(going_down))));

    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if gzip::accepted(&call.headers) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        *response.body_mut() = Body::from_stream(gzip::zip_parts(Box::pin(parts)));
    } else {
        *response.body_mut() = Body::from_stream(parts);
    }
    Ok(response)
}

/// The books of a message, one on each line.
fn lines(message: &pb::StreamBooksResponse) -> Result<Bytes, Problem> {
    let mut lines = Vec::with_capacity(128 * message.books.len().max(1));
    for book in message.book.iter().chain(&message.books) {
        serde_json::to_writer(&mut lines, &Book::from(book)).map_err(Problem::internal)?;
        lines.push(b'\n');
    }
    Ok(lines.into())
}

/// Ends a body in the middle, which every client sees. The reason can't be told any more.
fn broken_off(problem: Problem) -> io::Error {
    tracing::debug!(reason = %problem.reason(), detail = problem.detail(), "an export broke off");
    io::Error::other(problem.detail().to_owned())
}

/// Books to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"books": [{
    "sku": "9790001000017", "title": "Tidewater", "authorId": 1,
    "price": {"amountMinor": 1499, "currency": "EUR"},
}]}))]
pub(super) struct NewBooks {
    /// The books.
    #[serde(default)]
    #[schema(required, value_type = Vec<NewBook>, max_items = 1_000)]
    books: Vec<Object<NewBook>>,
}

/// What became of an upload.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportReport<'a> {
    /// How many books were added, or would have been.
    #[schema(minimum = 0)]
    imported_count: i32,
    /// How many were refused.
    #[schema(minimum = 0)]
    refused_count: i32,
    /// Why, for the first 100 that were refused, in order of index.
    #[serde(serialize_with = "reply::each::<_, ImportRefusal, _>")]
    #[schema(value_type = Vec<ImportRefusal>, max_items = 100)]
    refusals: &'a [pb::ImportRefusal],
}

/// Why one book of an upload was refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"index": 3, "reason": "SKU_TAKEN", "message": "another book has sku 9790000000018"}))]
pub(super) struct ImportRefusal<'a> {
    /// Its place, from 0, in `books` or among the lines that are not blank.
    #[schema(minimum = 0)]
    index: i32,
    /// Why: the same names as in problems.
    reason: &'a str,
    /// For people.
    message: &'a str,
}

impl<'a> From<&'a pb::ImportRefusal> for ImportRefusal<'a> {
    fn from(refusal: &'a pb::ImportRefusal) -> Self {
        Self { index: refusal.index, reason: &refusal.reason, message: &refusal.message }
    }
}

/// Add many books
///
/// As JSON up to 1,000 books in a body of a mebibyte, or as lines (`application/x-ndjson`), one JSON object on each, any
/// number of them. A book that is refused is counted and reported and does not stop the rest. Blank lines don't count;
/// a line that is no JSON is refused as MALFORMED_REQUEST, one that has not the form of a book as INVALID_FIELD, one
/// over 64 KiB as MESSAGE_TOO_LARGE, and the next one is read. Lines are read as fast as books are added, and may take an
/// hour unless `Request-Timeout` says less; one that says nothing for 30 seconds is taken for broken off, and what was
/// added before stays. JSON that has not the form of books is refused as a whole.
#[utoipa::path(
    post,
    path = "/api/v1/books/import",
    tag = "books",
    params(
        ("validate_only" = Option<bool>, Query, example = true,
            description = "Only check: nothing is added, and the report counts what would have been. Each book is \
                checked by itself, so that a SKU that comes twice in the upload goes unnoticed"),
    ),
    request_body(content(
        (NewBooks = "application/json"),
        (String = "application/x-ndjson",
            example = "{\"sku\":\"9790001000017\",\"title\":\"Tidewater\",\"authorId\":1,\
                \"price\":{\"amountMinor\":1499,\"currency\":\"EUR\"}}\n"),
    )),
    responses(
        (status = 200, description = "What became of the books", body = ImportReport),
    ),
)]
pub(super) async fn import_books(
    CallWithQuery(mut call): CallWithQuery,
    body: Body,
) -> Result<Response, Problem> {
    let mut query = call.query();
    let validate_only = query.flag("validate_only");
    query.done()?;
    call.is_plain()?;
    let catalog = call.services().catalog.clone();
    let reply = if body::is(&call.headers, NDJSON) {
        if !call.headers.contains_key("request-timeout") {
            call.deadline = Deadline::after(UPLOAD_TIME);
        }
        let refused = Arc::new(Mutex::new(Refused::default()));
        let lines = Upload { lines: Lines::new(body), validate_only, next: 0, refused: refused.clone() };
        let upload = proto::upload(lines.messages());
        let reply = call.wait(catalog.import_books(call.request(upload))).await?;
        let refused = std::mem::take(&mut *refused.lock().unwrap_or_else(PoisonError::into_inner));
        refused.explain(spelled(reply))?
    } else {
        if !call.says_json() {
            let detail =
                "the body must be application/json or application/x-ndjson, and Content-Type must say which";
            return Err(Problem::new(Reason::UnsupportedMediaType, detail));
        }
        let NewBooks { books } = call.json(body).await?;
        let books = books.into_iter().map(|Object(book)| book.into()).collect();
        let message = pb::BatchCreateBooksRequest { books, validate_only };
        let reply = call.wait(catalog.batch_create_books(call.request(message))).await?;
        let pb::BatchCreateBooksResponse { imported_count, refused_count, refusals } = reply;
        spelled(pb::ImportBooksResponse { imported_count, refused_count, refusals })
    };
    let pb::ImportBooksResponse { imported_count, refused_count, refusals } = &reply;
    let report = ImportReport { imported_count: *imported_count, refused_count: *refused_count, refusals };
    reply::ok(&report)
}

/// The reply of catalog with broken fields as REST spells them.
fn spelled(mut reply: pb::ImportBooksResponse) -> pb::ImportBooksResponse {
    for refusal in &mut reply.refusals {
        if refusal.reason == Reason::InvalidField.as_str() {
            refusal.message = spelled_rules(&refusal.message);
        }
    }
    reply
}

/// Broken rules: `field: rule; field: rule`.
fn spelled_rules(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for (i, part) in message.split("; ").enumerate() {
        let (field, rule) = part.split_once(": ").unwrap_or((part, ""));
        let between = if i == 0 { "" } else { "; " };
        let colon = if rule.is_empty() { "" } else { ": " };
        // Writing to a string can't fail.
        let _ = write!(text, "{between}{}{colon}{rule}", spell(field));
    }
    text
}

/// Lines on their way to catalog.
struct Upload {
    lines: Lines,
    validate_only: bool,
    /// The index of the next book.
    next: i32,
    refused: Arc<Mutex<Refused>>,
}

/// What this edge knows of an upload that catalog doesn't.
#[derive(Default)]
struct Refused {
    /// The first lines that are no books, by index. In their place an empty book is passed on, which catalog refuses:
    /// so it counts them, and knows the place of the others.
    lines: Vec<pb::ImportRefusal>,
    /// The body broke off. Over the wire catalog takes that for its end.
    broken: bool,
}

impl Refused {
    /// Puts the reasons of this edge into the reply.
    fn explain(self, mut reply: pb::ImportBooksResponse) -> Result<pb::ImportBooksResponse, Problem> {
        if self.broken {
            return Err(Problem::new(Reason::MalformedRequest, "the body broke off"));
        }
        let mut own = self.lines.into_iter().peekable();
        for refusal in &mut reply.refusals {
            if let Some(known) = own.next_if(|known| known.index == refusal.index) {
                *refusal = known;
            }
        }
        Ok(reply)
    }
}

impl Upload {
    fn messages(self) -> impl Stream<Item = Result<pb::ImportBooksRequest, Status>> + Send + 'static {
        stream::try_unfold(self, async |mut upload| {
            let books = upload.batch().await?;
            let message = pb::ImportBooksRequest { book: None, validate_only: upload.validate_only, books };
            Ok((!message.books.is_empty()).then_some((message, upload)))
        })
    }

    /// The next books; none at the end.
    async fn batch(&mut self) -> Result<Vec<pb::CreateBookRequest>, Status> {
        let (mut books, mut bytes) = (Vec::new(), 0);
        while books.len() < BATCH as usize && bytes < BATCH_BYTES {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(_) => {
                    self.refused.lock().unwrap_or_else(PoisonError::into_inner).broken = true;
                    return Err(Refusal::new(Reason::MalformedRequest, "the body broke off").into());
                }
            };
            let book = match line {
                Line::Text(text) => {
                    bytes += text.len();
                    body::parse::<NewBook>(&text, "the line").map(NewBook::into)
                }
                Line::TooLong => {
                    let rule = format!("the line is over {MAX_LINE} bytes");
                    Err(Problem::new(Reason::MessageTooLarge, rule))
                }
            };
            books.push(book.unwrap_or_else(|problem| self.refuse(&problem)));
            self.next = self.next.saturating_add(1);
        }
        Ok(books)
    }

    /// Notes why the next book is none, and gives one that is refused in its place.
    fn refuse(&mut self, problem: &Problem) -> pb::CreateBookRequest {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.lines.len() < MAX_NAMED {
            refused.lines.push(pb::ImportRefusal {
                index: self.next,
                reason: problem.reason().as_str().to_owned(),
                message: problem.detail().to_owned(),
            });
        }
        pb::CreateBookRequest::default()
    }
}
