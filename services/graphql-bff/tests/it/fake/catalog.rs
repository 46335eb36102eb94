//! Books 1 to 5,000, and ten authors who wrote them.

use async_trait::async_trait;
use proto::catalog::v1 as catalog;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::common::v1::Money;
use proto::{Reason, Refusal, seed};
use tonic::{Request, Response, Status};

use super::{Answer, Fake};

fn book(id: i32) -> catalog::Book {
    catalog::Book {
        id,
        sku: seed::sku(id),
        title: format!("Book {id}"),
        author_id: id % 10 + 1,
        price: Some(Money { amount_minor: 2999, currency: "EUR".to_owned() }),
        version: 1,
    }
}

fn author(id: i32) -> catalog::Author {
    catalog::Author { id, name: format!("Author {id}"), country: "CH".to_owned(), born: 1950 }
}

fn reviews(book_id: i32, count: i32) -> catalog::BookReviews {
    let review =
        |id| catalog::Review { id, book_id, rating: 4, text: "Good.".to_owned(), ..Default::default() };
    catalog::BookReviews { book_id, reviews: (1..=count).map(review).collect() }
}

fn exists(id: i32) -> bool {
    (1..=5_000).contains(&id)
}

fn positive(field: &str, id: i32) -> Result<(), Status> {
    if id > 0 { Ok(()) } else { Err(Refusal::field(field, format!("must be positive, was {id}")).into()) }
}

#[async_trait]
impl CatalogService for Fake {
    async fn get_book(&self, request: Request<catalog::GetBookRequest>) -> Answer<catalog::GetBookResponse> {
        self.call(&request, "GetBook".to_owned(), self.catalog_fails.as_ref()).await?;
        let id = request.into_inner().book_id;
        positive("book_id", id)?;
        Ok(Response::new(catalog::GetBookResponse { book: Some(book(id)) }))
    }

    async fn batch_get_books(
        &self,
        request: Request<catalog::BatchGetBooksRequest>,
    ) -> Answer<catalog::BatchGetBooksResponse> {
        let of = request.get_ref();
        let call = format!(
            "BatchGetBooks {}{} reviews {}",
            of.book_ids.len(),
            if of.include_authors { " authors" } else { "" },
            of.review_count
        );
        self.call(&request, call, self.catalog_fails.as_ref()).await?;
        let of = request.into_inner();
        assert!(of.book_ids.len() <= 1_000 && of.book_ids.iter().all(|id| *id > 0));
        assert!(of.book_ids.len() * of.review_count as usize <= 10_000);
        let ids: Vec<i32> = of.book_ids.into_iter().filter(|id| exists(*id)).collect();
        Ok(Response::new(catalog::BatchGetBooksResponse {
            authors: if of.include_authors { (1..=10).map(author).collect() } else { Vec::new() },
            reviews: ids
                .iter()
                .filter(|_| of.review_count > 0)
                .map(|id| reviews(*id, of.review_count))
                .collect(),
            books: ids.into_iter().map(book).collect(),
        }))
    }

    async fn list_books(
        &self,
        request: Request<catalog::ListBooksRequest>,
    ) -> Answer<catalog::ListBooksResponse> {
        let of = request.get_ref();
        let call = format!("ListBooks {} {:?}", of.page_size, of.page_token);
        self.call(&request, call, self.catalog_fails.as_ref()).await?;
        let of = request.into_inner();
        if of.page_size < 0 {
            let rule = format!("must not be negative, was {}", of.page_size);
            return Err(Refusal::field("page_size", rule).into());
        }
        if of.page_token == "bad" {
            return Err(Refusal::new(Reason::InvalidPageToken, "not a token of this list").into());
        }
        let size = if of.page_size == 0 { 50 } else { of.page_size };
        let next_page_token = if of.page_token.is_empty() { "next".to_owned() } else { String::new() };
        Ok(Response::new(catalog::ListBooksResponse {
            books: (1..=size).map(book).collect(),
            next_page_token,
        }))
    }

    async fn create_book(
        &self,
        request: Request<catalog::CreateBookRequest>,
    ) -> Answer<catalog::CreateBookResponse> {
        self.call(&request, "CreateBook".to_owned(), self.catalog_fails.as_ref()).await?;
        let of = request.into_inner();
        let new = catalog::Book { sku: of.sku, title: of.title, price: of.price, ..book(51) };
        Ok(Response::new(catalog::CreateBookResponse { book: Some(new) }))
    }

    async fn update_book(
        &self,
        request: Request<catalog::UpdateBookRequest>,
    ) -> Answer<catalog::UpdateBookResponse> {
        self.call(&request, "UpdateBook".to_owned(), self.catalog_fails.as_ref()).await?;
        Ok(Response::new(catalog::UpdateBookResponse { book: Some(book(request.into_inner().book_id)) }))
    }

    async fn delete_book(
        &self,
        request: Request<catalog::DeleteBookRequest>,
    ) -> Answer<catalog::DeleteBookResponse> {
        self.call(&request, "DeleteBook".to_owned(), self.catalog_fails.as_ref()).await?;
        Ok(Response::new(catalog::DeleteBookResponse {}))
    }

    async fn get_author(
        &self,
        request: Request<catalog::GetAuthorRequest>,
    ) -> Answer<catalog::GetAuthorResponse> {
        self.call(&request, "GetAuthor".to_owned(), self.catalog_fails.as_ref()).await?;
        let id = request.into_inner().author_id;
        positive("author_id", id)?;
        Ok(Response::new(catalog::GetAuthorResponse { author: Some(author(id)) }))
    }

    async fn batch_get_authors(
        &self,
        request: Request<catalog::BatchGetAuthorsRequest>,
    ) -> Answer<catalog::BatchGetAuthorsResponse> {
        let call = format!("BatchGetAuthors {}", request.get_ref().author_ids.len());
        self.call(&request, call, self.catalog_fails.as_ref()).await?;
        let ids = request.into_inner().author_ids.into_iter().filter(|id| (1..=10).contains(id));
        Ok(Response::new(catalog::BatchGetAuthorsResponse { authors: ids.map(author).collect() }))
    }

    async fn list_authors(
        &self,
        request: Request<catalog::ListAuthorsRequest>,
    ) -> Answer<catalog::ListAuthorsResponse> {
        self.call(&request, "ListAuthors".to_owned(), self.catalog_fails.as_ref()).await?;
        Ok(Response::new(catalog::ListAuthorsResponse {
            authors: (1..=10).map(author).collect(),
            next_page_token: String::new(),
        }))
    }

    async fn batch_list_reviews(
        &self,
        request: Request<catalog::BatchListReviewsRequest>,
    ) -> Answer<catalog::BatchListReviewsResponse> {
        let of = request.get_ref();
        let call = format!("BatchListReviews {} of {}", of.review_count, of.book_ids.len());
        self.call(&request, call, self.catalog_fails.as_ref()).await?;
        let of = request.into_inner();
        if !(1..=100).contains(&of.review_count) {
            let rule = format!("must be from 1 to 100, was {}", of.review_count);
            return Err(Refusal::field("review_count", rule).into());
        }
        assert!(of.book_ids.len() * of.review_count as usize <= 10_000);
        let books = of.book_ids.into_iter().map(|id| reviews(id, of.review_count)).collect();
        Ok(Response::new(catalog::BatchListReviewsResponse { books }))
    }

    async fn add_review(
        &self,
        request: Request<catalog::AddReviewRequest>,
    ) -> Answer<catalog::AddReviewResponse> {
        self.call(&request, "AddReview".to_owned(), self.catalog_fails.as_ref()).await?;
        let review = reviews(request.into_inner().book_id, 1).reviews.pop();
        Ok(Response::new(catalog::AddReviewResponse { review }))
    }
}
