//! Reviews.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use proto::catalog::v1 as pb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::given;
use crate::call::{Call, CallWithQuery, promised};
use crate::errors::Problem;
use crate::reply;

/// What a reader wrote about a book. When it was written is not told here: this is what a book's page shows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": 1, "rating": 5, "reviewer": "Ana Brook", "text": "Read it in one night and started again at breakfast.",
}))]
pub(super) struct Review<'a> {
    /// Positive, never reused.
    #[schema(minimum = 1)]
    id: i32,
    /// 1 (worst) to 5 (best).
    #[schema(minimum = 1, maximum = 5)]
    rating: i32,
    /// Who wrote it.
    reviewer: &'a str,
    /// The review.
    text: &'a str,
}

impl<'a> From<&'a pb::Review> for Review<'a> {
    fn from(review: &'a pb::Review) -> Self {
        Self { id: review.id, rating: review.rating, reviewer: &review.reviewer, text: &review.text }
    }
}

/// A page of a book's reviews, latest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewList<'a> {
    /// The reviews of this page.
    #[serde(serialize_with = "reply::each::<_, Review, _>")]
    #[schema(value_type = Vec<Review>)]
    reviews: &'a [pb::Review],
    /// `page_token` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    next_page_token: &'a str,
}

/// A review to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"rating": 4, "reviewer": "Ana Brook", "text": "Slow at first, then not at all."}))]
pub(super) struct NewReview {
    /// 1 (worst) to 5 (best).
    #[serde(default, deserialize_with = "given")]
    #[schema(required, value_type = i32, minimum = 1, maximum = 5)]
    rating: Option<i32>,
    /// Who writes it.
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 80)]
    reviewer: String,
    /// The review.
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 2000)]
    text: String,
}

/// A page of a book's reviews
///
/// Latest first.
#[utoipa::path(
    get,
    path = "/api/v1/books/{bookId}/reviews",
    tag = "books",
    params(
        ("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1),
        ("limit" = Option<i32>, Query, minimum = 0, example = 2, description = "Another name of `page_size`"),
        ("page_size" = Option<i32>, Query, minimum = 0,
            description = "At most this many reviews: 0 means 50, over 1,000 means 1,000"),
        ("page_token" = Option<String>, Query, description = "`nextPageToken` of the page before"),
    ),
    responses(
        (status = 200, description = "The page", body = ReviewList,
            headers(("Link" = String, description = "The next page, `rel=\"next\"`, when there is one"))),
        (status = 400, description = "INVALID_PAGE_TOKEN, INVALID_FIELD"),
        (status = 404, description = "BOOK_NOT_FOUND"),
    ),
)]
pub(super) async fn list_reviews(CallWithQuery(call): CallWithQuery) -> Result<Response, Problem> {
    let book_id = call.path_int("bookId")?;
    let mut query = call.query();
    let limit = query.int("limit");
    let (mut page_size, page_token) = query.page();
    if let Some(limit) = limit {
        if page_size != 0 {
            query.refuse("limit", "is another name of page_size: give one of them");
        }
        page_size = limit;
    }
    query.done()?;
    let message = pb::ListReviewsRequest { book_id, page_size, page_token };
    let page = call.wait(call.services().catalog.list_reviews(call.request(message))).await;
    let page = page
        .map_err(|problem| if limit.is_some() { problem.renamed("page_size", "limit") } else { problem })?;
    let view = ReviewList { reviews: &page.reviews, next_page_token: &page.next_page_token };
    call.fresh_page(&view, &page.next_page_token)
}

/// Add a review to a book
///
/// It is the first of the list from then on. A review has no path of its own, so there is no `Location`.
#[utoipa::path(
    post,
    path = "/api/v1/books/{bookId}/reviews",
    tag = "books",
    params(("bookId" = i32, Path, minimum = 1, description = "The book's id", example = 1)),
    request_body = NewReview,
    responses(
        (status = 201, description = "The review as added", body = Review),
        (status = 404, description = "BOOK_NOT_FOUND"),
        (status = 503, description = "STORE_FULL, UPSTREAM_UNAVAILABLE, SHUTTING_DOWN"),
    ),
)]
pub(super) async fn add_review(call: Call, body: Body) -> Result<Response, Problem> {
    let book_id = call.path_int("bookId")?;
    let review: NewReview = call.json(body).await?;
    let NewReview { rating, reviewer, text } = review;
    let message = pb::AddReviewRequest { book_id, rating: rating.unwrap_or_default(), reviewer, text };
    let reply = call.wait(call.services().catalog.add_review(call.request(message))).await;
    let left_out = rating.is_none().then(|| "rating".to_owned());
    let reply = reply.map_err(|problem| problem.left_out(left_out))?;
    let mut response = reply::ok(&Review::from(&promised(reply.review)?))?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}
