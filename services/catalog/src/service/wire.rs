//! Between the domain's types and the messages.

use std::sync::Arc;

use proto::catalog::v1 as pb;
use proto::common::v1::Money;

use crate::domain::{Author, Book, BookDraft, Fields, Price, Refused, Review};

pub(super) fn book(book: &Book) -> pb::Book {
    pb::Book {
        id: book.id.get(),
        sku: book.sku.as_str().to_owned(),
        title: book.title.as_ref().to_owned(),
        author_id: book.author_id.get(),
        price: Some(Money { amount_minor: book.price.minor(), currency: Price::CURRENCY.to_owned() }),
        version: book.version,
    }
}

pub(super) fn author(author: &Author) -> pb::Author {
    pb::Author {
        id: author.id.get(),
        name: author.name.as_ref().to_owned(),
        country: author.country.as_ref().to_owned(),
        born: author.born,
    }
}

pub(super) fn review(review: &Review) -> pb::Review {
    pb::Review {
        id: review.id.get(),
        book_id: review.book_id.get(),
        rating: review.draft.rating.into(),
        reviewer: review.draft.reviewer.as_ref().to_owned(),
        text: review.draft.text.as_ref().to_owned(),
        created_at: Some(review.created_at.into()),
    }
}

pub(super) fn reviews(reviews: &[Arc<Review>]) -> Vec<pb::Review> {
    reviews.iter().map(|r| review(r)).collect()
}

pub(super) fn book_draft(request: pb::CreateBookRequest) -> Result<BookDraft, Refused> {
    let pb::CreateBookRequest { sku, title, author_id, price } = request;
    let price = price.as_ref().map(|price| (price.amount_minor, price.currency.as_str()));
    Fields::default().book_draft(&sku, title, author_id, price)
}
