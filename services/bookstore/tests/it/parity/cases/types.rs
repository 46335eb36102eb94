//! Values that only JSON can hold.

use proto::seed::sku;
use serde_json::{Value, json};

use super::{Case, TYPED, book, fields, one, order, review};

pub(in crate::parity) fn types() -> Vec<Case> {
    let line = |sku: Value, quantity: Value| json!({"order_id": "$key", "lines": [{"sku": sku, "quantity": quantity}]});
    let good = || json!(sku(1));
    let too_large = || json!(99_999_999_999_i64);
    let case = |name, method, input, field: &str| {
        one(name, method, input, fields(&[field])).silent(TYPED).own_words()
    };
    vec![
        case("a book with a name", "GetBook", json!({"book_id": "one"}), "book_id"),
        case("a book over 32 bits", "GetBook", json!({"book_id": too_large()}), "book_id"),
        case("an author over 32 bits", "GetAuthor", json!({"author_id": too_large()}), "author_id"),
        case("half a book", "GetBook", json!({"book_id": 1.5}), "book_id"),
        case("a page in words", "ListBooks", json!({"page_size": "ten"}), "page_size"),
        case("a page over 32 bits", "ListOrders", json!({"page_size": too_large()}), "page_size"),
        case("a quantity in words", "ReserveStock", line(good(), json!("two")), "lines[0].quantity"),
        case("a quantity over 32 bits", "ReserveStock", line(good(), too_large()), "lines[0].quantity"),
        case("half a copy", "ReserveStock", line(good(), json!(0.5)), "lines[0].quantity"),
        case("no number of copies", "ReserveStock", line(good(), Value::Null), "lines[0].quantity"),
        case(
            "a SKU that is a number",
            "ReserveStock",
            line(json!(9_790_000_000_018_i64), json!(1)),
            "lines[0].sku",
        ),
        case(
            "an order's quantity in words",
            "PlaceOrder",
            order(json!({"lines": [{"sku": sku(1), "quantity": "2"}]})),
            "lines[0].quantity",
        ),
        case(
            "a price in words",
            "CreateBook",
            book(json!({"price": {"amount_minor": "1", "currency": "EUR"}})),
            "price.amount_minor",
        ),
        case(
            "a price over 64 bits",
            "CreateBook",
            book(json!({"price": {"amount_minor": 1e30, "currency": "EUR"}})),
            "price.amount_minor",
        ),
        case("stars in words", "AddReview", review(json!({"rating": "five"})), "rating"),
        case("a delivery over 32 bits", "AdjustStock", json!({"sku": sku(3), "delta": too_large()}), "delta"),
        case(
            "a field that nobody knows",
            "AdjustStock",
            json!({"sku": sku(3), "delta": 1, "colour": "red"}),
            "colour",
        ),
        case(
            "a field of a line that nobody knows",
            "ReserveStock",
            json!({"order_id": "$key", "lines": [{"sku": sku(1), "quantity": 1, "price": 1}]}),
            "lines[0].price",
        ),
    ]
}
