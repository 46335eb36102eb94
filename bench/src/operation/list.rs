//! A page of books.

use proto::catalog::v1 as pb;
use serde::Deserialize;

use super::{Money, first_message};
use crate::case::Style;

/// The request.
pub fn message(page_size: i32) -> pb::ListBooksRequest {
    pb::ListBooksRequest { page_size, page_token: String::new() }
}

/// Books, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Books {
    /// In order of id.
    pub books: Vec<Book>,
    #[serde(default)]
    next_page_token: String,
}

impl Books {
    /// Those of a stream that came to its end.
    pub(super) fn all(books: Vec<Book>) -> Self {
        Self { books, next_page_token: String::new() }
    }
}

/// A book, as far as every style tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Book {
    id: i32,
    sku: String,
    title: String,
    author_id: i32,
    price: Money,
}

impl TryFrom<pb::Book> for Book {
    type Error = &'static str;

    fn try_from(book: pb::Book) -> Result<Self, Self::Error> {
        let pb::Book { id, sku, title, author_id, price, .. } = book;
        Ok(Self { id, sku, title, author_id, price: price.ok_or("no price")?.into() })
    }
}

/// Reads the books from a reply.
pub fn read(style: Style, body: &[u8]) -> Result<Books, String> {
    if !style.is_grpc() {
        return serde_json::from_slice(body).map_err(|error| format!("the JSON: {error}"));
    }
    let message = first_message(body).ok_or("no message")?;
    let reply: pb::ListBooksResponse =
        prost::Message::decode(message).map_err(|error| format!("the message: {error}"))?;
    let books = reply.books.into_iter().map(Book::try_from).collect::<Result<_, _>>()?;
    Ok(Books { books, next_page_token: reply.next_page_token })
}
