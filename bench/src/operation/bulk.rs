//! Many books at once: as a stream, and as an upload.

use prost::Message as _;
use proto::catalog::v1 as pb;
use proto::common::v1::Money;
use serde::Deserialize;
use serde_json::{Value, json};

use super::list::{Book, Books};
use super::{first_message, framed, messages};
use crate::case::Style;

/// The request of a stream.
pub fn export(limit: i32, batch: usize) -> pb::StreamBooksRequest {
    pb::StreamBooksRequest { delay_ms: 0, limit, batch_size: batch as i32 }
}

/// Reads the books of a stream.
pub fn read(style: Style, body: &[u8]) -> Result<Books, String> {
    let mut books = Vec::new();
    if style.is_grpc() {
        for message in messages(body) {
            let odd = |error| format!("a message: {error}");
            let reply = pb::StreamBooksResponse::decode(message.ok_or("a cut message")?).map_err(odd)?;
            for book in reply.book.into_iter().chain(reply.books) {
                books.push(Book::try_from(book)?);
            }
        }
    } else {
        for line in body.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            books.push(serde_json::from_slice(line).map_err(|error| format!("a line: {error}"))?);
        }
    }
    Ok(Books::all(books))
}

/// Books that no suite has, all of one length.
fn new_books(count: i32) -> Vec<pb::CreateBookRequest> {
    let book = |number: i32| pb::CreateBookRequest {
        sku: proto::seed::sku(900_000_000 + number),
        title: format!("New arrival {number:04}"),
        author_id: 1 + number % proto::seed::AUTHORS,
        price: Some(Money { amount_minor: 1_000 + i64::from(number), currency: "EUR".to_owned() }),
    };
    (1..=count).map(book).collect()
}

fn json(book: &pb::CreateBookRequest) -> Value {
    let pb::CreateBookRequest { sku, title, author_id, price } = book;
    let price = price.as_ref().map(|p| json!({ "amountMinor": p.amount_minor, "currency": p.currency }));
    json!({ "sku": sku, "title": title, "authorId": author_id, "price": price })
}

/// The body of an upload to REST, and its type.
pub fn upload(style: Style, count: i32) -> (Vec<u8>, &'static str) {
    let books: Vec<Value> = new_books(count).iter().map(json).collect();
    if style == Style::RestNdjson {
        let lines: String = books.iter().map(|book| format!("{book}\n")).collect();
        return (lines.into_bytes(), "application/x-ndjson");
    }
    (json!({ "books": books }).to_string().into_bytes(), "application/json")
}

/// The body of an upload to gRPC, to be checked only: one request, or a stream.
pub fn framed_upload(style: Style, count: i32) -> Vec<u8> {
    let mut books = new_books(count);
    let message = |mut books: Vec<pb::CreateBookRequest>, batch: usize| {
        let book = if batch == 1 { books.pop() } else { None };
        pb::ImportBooksRequest { book, books, validate_only: true }.encode_to_vec()
    };
    let Some(batch) = style.batch() else {
        return framed(&pb::BatchCreateBooksRequest { books, validate_only: true }.encode_to_vec());
    };
    let mut body = Vec::new();
    while !books.is_empty() {
        let rest = books.split_off(batch.min(books.len()));
        body.extend_from_slice(&framed(&message(books, batch)));
        books = rest;
    }
    body
}

/// What became of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Books that were added, or would have been.
    pub imported_count: i32,
    refused_count: i32,
}

/// Reads the outcome from a reply.
pub fn outcome(style: Style, body: &[u8]) -> Result<Outcome, String> {
    if !style.is_grpc() {
        return serde_json::from_slice(body).map_err(|error| format!("the JSON: {error}"));
    }
    let message = first_message(body).ok_or("no message")?;
    // Both replies have the same fields.
    let reply = pb::ImportBooksResponse::decode(message).map_err(|error| format!("the message: {error}"))?;
    Ok(Outcome { imported_count: reply.imported_count, refused_count: reply.refused_count })
}
