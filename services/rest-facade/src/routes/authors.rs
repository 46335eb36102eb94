//! Authors.

use axum::response::Response;
use proto::catalog::v1 as pb;
use serde::Serialize;
use utoipa::ToSchema;

use crate::call::{Call, CallWithQuery, promised};
use crate::errors::Problem;
use crate::reply;

/// An author.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"id": 1, "name": "Mara Lindqvist", "country": "SE", "born": 1961}))]
pub(super) struct Author<'a> {
    /// Positive, never reused.
    #[schema(minimum = 1)]
    id: i32,
    /// The name as printed on the cover.
    name: &'a str,
    /// ISO 3166-1 alpha-2 code of the country.
    country: &'a str,
    /// Year of birth.
    born: i32,
}

impl<'a> From<&'a pb::Author> for Author<'a> {
    fn from(author: &'a pb::Author) -> Self {
        Self { id: author.id, name: &author.name, country: &author.country, born: author.born }
    }
}

/// A page of authors in order of id.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthorList<'a> {
    /// The authors of this page.
    #[serde(serialize_with = "reply::each::<_, Author, _>")]
    #[schema(value_type = Vec<Author>)]
    authors: &'a [pb::Author],
    /// `page_token` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    next_page_token: &'a str,
}

/// A page of authors
///
/// In order of id.
#[utoipa::path(
    get,
    path = "/api/v1/authors",
    tag = "authors",
    params(
        ("page_size" = Option<i32>, Query, minimum = 0, example = 10,
            description = "At most this many authors: 0 means 50, over 1,000 means 1,000"),
        ("page_token" = Option<String>, Query, description = "`nextPageToken` of the page before"),
    ),
    responses(
        (status = 200, description = "The page", body = AuthorList,
            headers(("Link" = String, description = "The next page, `rel=\"next\"`, when there is one"))),
        (status = 400, description = "INVALID_PAGE_TOKEN, INVALID_FIELD"),
    ),
)]
pub(super) async fn list_authors(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let mut query = call.query();
    let (page_size, page_token) = query.page();
    query.done()?;
    let message = pb::ListAuthorsRequest { page_size, page_token };
    let page = call.wait(call.services().catalog.list_authors(call.request(message))).await?;
    let view = AuthorList { authors: &page.authors, next_page_token: &page.next_page_token };
    call.fresh_page(&view, &page.next_page_token)
}

/// One author
#[utoipa::path(
    get,
    path = "/api/v1/authors/{authorId}",
    tag = "authors",
    params(("authorId" = i32, Path, minimum = 1, description = "The author's id", example = 1)),
    responses(
        (status = 200, description = "The author", body = Author),
        (status = 404, description = "AUTHOR_NOT_FOUND"),
    ),
)]
pub(super) async fn get_author(call: Call) -> Result<Response, Problem> {
    let message = pb::GetAuthorRequest { author_id: call.path_int("authorId")? };
    let reply = call.wait(call.services().catalog.get_author(call.request(message))).await?;
    call.fresh(&Author::from(&promised(reply.author)?))
}
