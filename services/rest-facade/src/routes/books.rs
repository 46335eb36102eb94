//! Books.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use proto::Reason;
use proto::catalog::v1 as pb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{Object, given};
use crate::call::{Call, CallWithQuery, promised};
use crate::errors::Problem;
use crate::reply::{self, Money};

/// About how long a book is.
pub(super) const BOOK_BYTES: usize = 112;

/// A book.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": 1, "sku": "9790000000018", "title": "Ember", "authorId": 1,
    "price": {"amountMinor": 2999, "currency": "EUR"},
}))]
pub(super) struct Book<'a> {
    /// Positive, never reused.
    #[schema(minimum = 1)]
    id: i32,
    /// The ISBN-13, 13 digits without dashes. Stock and orders know the book by it.
    sku: &'a str,
    /// The title.
    title: &'a str,
    /// The author's id.
    author_id: i32,
    /// What one copy costs now. An order keeps the price it was placed at.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = Money)]
    price: Option<Money<'a>>,
}

impl<'a> From<&'a pb::Book> for Book<'a> {
    fn from(book: &'a pb::Book) -> Self {
        Self {
            id: book.id,
            sku: &book.sku,
            title: &book.title,
            author_id: book.author_id,
            price: book.price.as_ref().map(Money::from),
        }
    }
}

/// A page of books in order of id.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookList<'a> {
    /// The books of this page.
    #[serde(serialize_with = "reply::each::<_, Book, _>")]
    #[schema(value_type = Vec<Book>)]
    books: &'a [pb::Book],
    /// `page_token` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    next_page_token: &'a str,
}

/// A price.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"amountMinor": 2999, "currency": "EUR"}))]
pub(super) struct NewPrice {
    /// The amount in cents.
    #[schema(minimum = 0, maximum = 100_000_000)]
    amount_minor: i64,
    /// ISO 4217 code; only EUR is taken.
    currency: String,
}

impl From<NewPrice> for proto::common::v1::Money {
    fn from(price: NewPrice) -> Self {
        Self { amount_minor: price.amount_minor, currency: price.currency }
    }
}

/// A book to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "sku": "9790001000017", "title": "Tidewater", "authorId": 1,
    "price": {"amountMinor": 1499, "currency": "EUR"},
}))]
pub(super) struct NewBook {
    /// The ISBN-13, 13 digits with a right check digit, that no other book has.
    #[serde(default)]
    #[schema(required, pattern = "^[0-9]{13}$")]
    sku: String,
    /// The title.
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 300)]
    title: String,
    /// An author that exists.
    #[serde(default, deserialize_with = "given")]
    #[schema(required, value_type = i32, minimum = 1)]
    author_id: Option<i32>,
    /// What one copy costs.
    #[serde(default)]
    #[schema(required, value_type = NewPrice)]
    price: Option<Object<NewPrice>>,
}

impl From<NewBook> for pb::CreateBookRequest {
    fn from(book: NewBook) -> Self {
        let NewBook { sku, title, author_id, price } = book;
        let author_id = author_id.unwrap_or_default();
        Self { sku, title, author_id, price: price.map(|Object(price)| price.into()) }
    }
}

/// What to change of a book. What is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"price": {"amountMinor": 999, "currency": "EUR"}}))]
pub(super) struct BookChange {
    /// The new title.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 300)]
    title: Option<String>,
    /// The new author, who must exist.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = i32, required = false, minimum = 1)]
    author_id: Option<i32>,
    /// The new price.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = NewPrice, required = false)]
    price: Option<Object<NewPrice>>,
}

/// A page of books
///
/// In order of id.
#[utoipa::path(
    get,
    path = "/api/v1/books",
    tag = "books",
    params(
        ("page_size" = Option<i32>, Query, minimum = 0, example = 10,
            description = "At most this many books: 0 means 50, over 1,000 means 1,000"),
        ("page_token" = Option<String>, Query, description = "`nextPageToken` of the page before"),
    ),
    responses(
        (status = 200, description = "The page, gzipped if it is large and `Accept-Encoding` allows it", body = BookList,
            headers(
                ("Link" = String, description = "The next page, `rel=\"next\"`, when there is one"),
                ("Vary" = String, description = "`accept-encoding`"),
            )),
        (status = 400, description = "INVALID_PAGE_TOKEN, INVALID_FIELD"),
    ),
)]
pub(super) async fn list_books(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let (page_size, page_token) = query.page();
    query.done()?;
    let message = pb::ListBooksRequest { page_size, page_token };
    let page = call.wait(call.services().catalog.list_books(call.request(message))).await?;
    let view = BookList { books: &page.books, next_page_token: &page.next_page_token };
    call.fresh_large_page(&view, BOOK_BYTES * (page.books.len() + 1), &page.next_page_token)
}

/// Add a book
///
/// It is known to stock at once, with nothing in stock.
#[utoipa::path(
    post,
    path = "/api/v1/books",
    tag = "books",
    request_body = NewBook,
    responses(
        (status = 201, description = "The book as added", body = Book,
            headers(("Location" = String, description = "The book's path"))),
        (status = 404, description = "AUTHOR_NOT_FOUND"),
        (status = 409, description = "SKU_TAKEN"),
        (status = 503, description = "STORE_FULL, UPSTREAM_UNAVAILABLE, SHUTTING_DOWN"),
    ),
)]
pub(super) async fn create_book(call: Call, body: Body) -> Result<Response, Problem> {
    let book: NewBook = call.json(body).await?;
    let left_out = book.author_id.is_none().then(|| "authorId".to_owned());
    let reply = call.wait(call.services().catalog.create_book(call.request(book.into()))).await;
    let reply = reply.map_err(|problem| problem.left_out(left_out))?;
    let book = promised(reply.book)?;
    reply::created(&Book::from(&book), format!("/api/v1/books/{}", book.id))
}

/// One book
#[utoipa::path(
    get,
    path = "/api/v1/books/{bookId}",
    tag = "books",
    params(("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1)),
    responses(
        (status = 200, description = "The book", body = Book),
        (status = 404, description = "BOOK_NOT_FOUND"),
    ),
)]
pub(super) async fn get_book(call: Call) -> Result<Response, Problem> {
    let book = current(&call, call.path_int("bookId")?).await?;
    call.fresh(&Book::from(&book))
}

/// Change a book
///
/// Changes the fields that are given and leaves the others.
#[utoipa::path(
    patch,
    path = "/api/v1/books/{bookId}",
    tag = "books",
    params(
        ("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1),
        ("If-Match" = Option<String>, Header,
            description = "The `ETag` of the book as you know it: if it has changed since, nothing is done"),
    ),
    request_body(content = BookChange),
    responses(
        (status = 200, description = "The book as changed", body = Book,
            headers(("ETag" = String, description = "For `If-Match` of the next change"))),
        (status = 404, description = "BOOK_NOT_FOUND, AUTHOR_NOT_FOUND"),
        (status = 412, description = "VERSION_MISMATCH"),
    ),
)]
pub(super) async fn update_book(call: Call, body: Body) -> Result<Response, Problem> {
    let book_id = call.path_int("bookId")?;
    let change: BookChange = call.json(body).await?;
    let message = pb::UpdateBookRequest {
        book_id,
        title: change.title,
        author_id: change.author_id,
        price: change.price.map(|Object(price)| price.into()),
        expected_version: expected_version(&call, book_id).await?,
    };
    let reply = call.wait(call.services().catalog.update_book(call.request(message))).await?;
    reply::changed(&Book::from(&promised(reply.book)?))
}

/// Remove a book
///
/// Its reviews go with it. Its stock stays, and orders keep what they recorded of it.
#[utoipa::path(
    delete,
    path = "/api/v1/books/{bookId}",
    tag = "books",
    params(
        ("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 50),
        ("If-Match" = Option<String>, Header,
            description = "The `ETag` of the book as you know it: if it has changed since, nothing is done"),
    ),
    responses(
        (status = 204, description = "The book is gone"),
        (status = 404, description = "BOOK_NOT_FOUND"),
        (status = 412, description = "VERSION_MISMATCH"),
    ),
)]
pub(super) async fn delete_book(call: Call) -> Result<Response, Problem> {
    let book_id = call.path_int("bookId")?;
    let expected_version = expected_version(&call, book_id).await?;
    let message = pb::DeleteBookRequest { book_id, expected_version };
    call.wait(call.services().catalog.delete_book(call.request(message))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn current(call: &Call, book_id: i32) -> Result<pb::Book, Problem> {
    let message = pb::GetBookRequest { book_id };
    let reply = call.wait(call.services().catalog.get_book(call.request(message))).await?;
    promised(reply.book)
}

/// The version that a conditional change is for. The tag is compared here; the version makes the service refuse when
/// somebody else's change comes in between.
async fn expected_version(call: &Call, book_id: i32) -> Result<Option<i32>, Problem> {
    if !call.is_conditional() {
        return Ok(None);
    }
    let book = current(call, book_id).await?;
    if call.matches(&Book::from(&book))? {
        return Ok(Some(book.version));
    }
    Err(Problem::new(Reason::VersionMismatch, format!("book {book_id} is not the one that If-Match names")))
}
