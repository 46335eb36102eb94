//! Screens: one request for all that a page shows.

use axum::response::Response;
use proto::Reason;
use proto::catalog::v1 as pb;
use serde::Serialize;
use utoipa::ToSchema;

use super::authors::Author;
use super::books::{BOOK_BYTES, Book};
use super::reviews::Review;
use super::stock::Stock;
use crate::call::{CallWithQuery, promised};
use crate::errors::Problem;
use crate::reply;

/// What a book's page shows.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BookDetail<'a> {
    /// The book.
    book: Book<'a>,
    /// Its author.
    author: Author<'a>,
    /// Its stock; null when it can't be told now, which `warnings` says.
    #[schema(required)]
    stock: Option<Stock>,
    /// Its latest reviews, latest first.
    #[serde(serialize_with = "reply::each::<_, Review, _>")]
    #[schema(value_type = Vec<Review>)]
    reviews: &'a [pb::Review],
    /// What is missing and why; left out when nothing is.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    warnings: &'a [Warning],
}

/// A part that is missing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"reason": "UPSTREAM_UNAVAILABLE", "message": "the stock can't be told now"}))]
pub(super) struct Warning {
    /// Why: the same names as in problems.
    reason: &'static str,
    /// For people.
    message: &'static str,
}

/// A page of the catalogue with all that belongs to each book.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CatalogPage<'a> {
    /// The books of this page, in order of id.
    details: Vec<BookDetail<'a>>,
    /// `page_token` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    next_page_token: &'a str,
    /// What is missing of every book and why; left out when nothing is.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    warnings: &'a [Warning],
}

const NO_STOCK: [Warning; 1] =
    [Warning { reason: Reason::UpstreamUnavailable.as_str(), message: "the stock can't be told now" }];

/// The book-detail screen in one request
///
/// The book, its author, its stock and its latest reviews. When inventory doesn't answer, the rest still comes.
#[utoipa::path(
    get,
    path = "/api/v1/screens/book-detail/{bookId}",
    tag = "screens",
    params(
        ("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1),
        ("reviews" = Option<i32>, Query, minimum = 0, maximum = 100, example = 2,
            description = "How many reviews; 2 when left out"),
    ),
    responses(
        (status = 200, description = "What the screen shows", body = BookDetail),
        (status = 404, description = "BOOK_NOT_FOUND"),
    ),
)]
pub(super) async fn book_detail(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let book_id = call.path_int("bookId")?;
    let mut query = call.query();
    let review_count = query.int("reviews").unwrap_or(2);
    query.done()?;
    let message = pb::GetBookDetailRequest { book_id, review_count };
    let detail = call.wait(call.services().catalog.get_book_detail(call.request(message))).await?;
    let (book, author) = (promised(detail.book)?, promised(detail.author)?);
    call.fresh(&BookDetail {
        book: (&book).into(),
        author: (&author).into(),
        stock: (!detail.stock_unavailable).then_some(Stock { book_id: book.id, in_stock: detail.in_stock }),
        reviews: &detail.reviews,
        warnings: if detail.stock_unavailable { &NO_STOCK } else { &[] },
    })
}

/// About how long what belongs to a book is without its reviews, and each of these.
const DETAIL_BYTES: usize = BOOK_BYTES + 160;
const REVIEW_BYTES: usize = 128;

/// A page of books in one request, each with its author, its stock and its latest reviews
///
/// When inventory doesn't answer, the rest still comes.
#[utoipa::path(
    get,
    path = "/api/v1/screens/catalog",
    tag = "screens",
    params(
        ("page_size" = Option<i32>, Query, minimum = 0, example = 10,
            description = "At most this many books: 0 means 50, over 1,000 means 1,000"),
        ("page_token" = Option<String>, Query, description = "`nextPageToken` of the page before"),
        ("reviews" = Option<i32>, Query, minimum = 0, maximum = 100, example = 2,
            description = "How many reviews of each book, 2 when left out; at most 10,000 of all books together"),
    ),
    responses(
        (status = 200, description = "The page, gzipped if it is large and `Accept-Encoding` allows it",
            body = CatalogPage,
            headers(
                ("Link" = String, description = "The next page, `rel=\"next\"`, when there is one"),
                ("Vary" = String, description = "`accept-encoding`"),
            )),
        (status = 400, description = "INVALID_PAGE_TOKEN, INVALID_FIELD"),
    ),
)]
pub(super) async fn catalog(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let (page_size, page_token) = query.page();
    let review_count = query.int("reviews").unwrap_or(2);
    query.done()?;
    let message = pb::ListBookDetailsRequest { page_size, page_token, review_count };
    let page = call.wait(call.services().catalog.list_book_details(call.request(message))).await?;
    let details: Result<Vec<_>, Problem> = page.details.iter().map(detail).collect();
    let view = CatalogPage {
        details: details?,
        next_page_token: &page.next_page_token,
        warnings: if page.stock_unavailable { &NO_STOCK } else { &[] },
    };
    let reviews: usize = page.details.iter().map(|detail| detail.reviews.len()).sum();
    let expected = DETAIL_BYTES * (page.details.len() + 1) + REVIEW_BYTES * reviews;
    call.fresh_large_page(&view, expected, &page.next_page_token)
}

fn detail(detail: &pb::BookDetail) -> Result<BookDetail<'_>, Problem> {
    let (book, author) = (promised(detail.book.as_ref())?, promised(detail.author.as_ref())?);
    Ok(BookDetail {
        book: book.into(),
        author: author.into(),
        stock: (!detail.stock_unavailable).then_some(Stock { book_id: book.id, in_stock: detail.in_stock }),
        reviews: &detail.reviews,
        warnings: &[],
    })
}
