//! What the house does: books, reviews, deliveries.

use proto::seed::sku;
use serde_json::json;

use super::{Case, added, book, done, fields, is, one, refused, review, step, stocked, story};
use crate::parity::Style::GraphQl;

pub(in crate::parity) fn keeping() -> Vec<Case> {
    let nobody = i32::MAX;
    let price =
        |amount: i64, currency: &str| book(json!({"price": {"amount_minor": amount, "currency": currency}}));
    vec![
        story(
            "a new book",
            [
                step(
                    "CreateBook",
                    book(json!({})),
                    is(json!({"sku": "$sku", "title": "On $key", "price": {"amountMinor": 1250, "currency": "EUR"}})),
                )
                .keep("book", "/id"),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"sku": "$sku", "authorId": 2}))),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 0}))),
                step("CreateBook", book(json!({})), refused("SKU_TAKEN")),
            ],
        ),
        one(
            "many books at once",
            "BatchCreateBooks",
            json!({"books": [book(json!({})), book(json!({"sku": sku(1)})), book(json!({"sku": "$other_sku", "title": ""}))]}),
            is(json!({
                "importedCount": 1, "refusedCount": 2,
                "refusals": [{"index": 1, "reason": "SKU_TAKEN"}, {"index": 2, "reason": "INVALID_FIELD"}],
            })),
        )
        .silent(&[GraphQl]),
        one(
            "many books to check",
            "BatchCreateBooks",
            json!({"books": [book(json!({})), book(json!({"author_id": nobody}))], "validate_only": true}),
            is(json!({"importedCount": 1, "refusals": [{"index": 1, "reason": "AUTHOR_NOT_FOUND"}]})),
        )
        .silent(&[GraphQl]),
        one(
            "too many books at once",
            "BatchCreateBooks",
            json!({"books": vec![json!({}); 1_001]}),
            fields(&["books"]),
        )
        .silent(&[GraphQl]),
        one("a title of 300 characters", "CreateBook", book(json!({"title": "é".repeat(300)})), done()),
        one("a title of 301 characters", "CreateBook", book(json!({"title": "é".repeat(301)})), fields(&["title"])),
        one("no title", "CreateBook", book(json!({"title": ""})), fields(&["title"])),
        one("a wrong check digit", "CreateBook", book(json!({"sku": "9790000000019"})), fields(&["sku"])),
        one("a taken SKU", "CreateBook", book(json!({"sku": sku(1)})), refused("SKU_TAKEN")),
        one("an unknown author", "CreateBook", book(json!({"author_id": nobody})), refused("AUTHOR_NOT_FOUND")),
        one("author -1 of a book", "CreateBook", book(json!({"author_id": -1})), fields(&["author_id"])),
        one("dollars", "CreateBook", price(1, "USD"), fields(&["price.currency"])),
        one("a negative price", "CreateBook", price(-1, "EUR"), fields(&["price.amount_minor"])),
        one("a price over a million", "CreateBook", price(100_000_001, "EUR"), fields(&["price.amount_minor"])),
        one("the largest price", "CreateBook", price(i64::MAX, "EUR"), fields(&["price.amount_minor"])),
        one("a book for nothing", "CreateBook", price(0, "EUR"), done()),
        one(
            "a book with nothing right",
            "CreateBook",
            json!({"sku": "1", "title": "", "author_id": 0, "price": {"amount_minor": -1, "currency": ""}}),
            fields(&["sku", "title", "author_id", "price.currency", "price.amount_minor"]),
        ),
        story(
            "a changed book",
            [
                added(),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "title": "Of $key", "expected_version": 1}),
                    is(json!({"title": "Of $key"})),
                ),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"title": "Of $key", "authorId": 2}))),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "title": "By $key", "expected_version": 1}),
                    refused("VERSION_MISMATCH"),
                ),
                step("DeleteBook", json!({"book_id": "$book", "expected_version": 1}), refused("VERSION_MISMATCH")),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"title": "Of $key"}))),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "author_id": 3, "expected_version": 2}),
                    is(json!({"title": "Of $key"})),
                ),
            ],
        ),
        story(
            "a change that breaks rules",
            [
                added(),
                step(
                    "UpdateBook",
                    json!({
                        "book_id": "$book", "title": "", "author_id": 0,
                        "price": {"amount_minor": -1, "currency": "EUR"},
                    }),
                    fields(&["title", "author_id", "price.amount_minor"]),
                ),
                step("UpdateBook", json!({"book_id": "$book", "author_id": nobody}), refused("AUTHOR_NOT_FOUND")),
            ],
        ),
        one("a change of no book", "UpdateBook", json!({"book_id": nobody, "title": "x"}), refused("BOOK_NOT_FOUND")),
        one("a change of book 0", "UpdateBook", json!({"book_id": 0, "title": "x"}), fields(&["book_id"])),
        story(
            "a book that is gone",
            [
                added(),
                step("DeleteBook", json!({"book_id": "$book", "expected_version": 1}), done()),
                step("GetBook", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
                step("DeleteBook", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
                step("ListReviews", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
            ],
        ),
        one("no book to remove", "DeleteBook", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one("book 0 to remove", "DeleteBook", json!({"book_id": 0}), fields(&["book_id"])),
        story(
            "a review",
            [
                added(),
                step("AddReview", review(json!({"book_id": "$book"})), is(json!({"rating": 4, "reviewer": "Ana Brook"}))),
                step("ListReviews", json!({"book_id": "$book"}), is(json!({"reviews": [{"rating": 4}]}))),
            ],
        ),
        one("a review with no stars", "AddReview", review(json!({"rating": 0})), fields(&["rating"])),
        one("a review with six stars", "AddReview", review(json!({"rating": 6})), fields(&["rating"])),
        one("a review of no book", "AddReview", review(json!({"book_id": nobody})), refused("BOOK_NOT_FOUND")),
        one(
            "a review with nothing right",
            "AddReview",
            json!({"book_id": -1, "rating": -1, "reviewer": "r".repeat(81), "text": ""}),
            fields(&["book_id", "rating", "reviewer", "text"]),
        ),
        one("a delivery of nothing", "AdjustStock", json!({"sku": sku(3), "delta": 0}), fields(&["delta"])),
        one("a delivery too large", "AdjustStock", json!({"sku": sku(3), "delta": 1_000_001}), fields(&["delta"])),
        one("a delivery of a number", "AdjustStock", json!({"sku": "1", "delta": i32::MIN}), fields(&["sku", "delta"])),
        one("a delivery of no book", "AdjustStock", json!({"sku": sku(999_999), "delta": 1}), refused("UNKNOWN_SKU")),
        stocked(
            "a loss of more than there is",
            2,
            [
                step("AdjustStock", json!({"sku": "$sku", "delta": -3}), refused("OUT_OF_STOCK")),
                step("AdjustStock", json!({"sku": "$sku", "delta": -2}), is(json!({"inStock": 0}))),
            ],
        ),
    ]
}
