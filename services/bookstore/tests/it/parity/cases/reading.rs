//! Things that are there, or not, one by one and in lists.

use proto::seed::{BOOKS, order_id, sku};
use serde_json::json;

use super::{Case, done, fields, is, one, refused, step, story};
use crate::parity::Style::{GraphQl, Rest};

pub(in crate::parity) fn reading() -> Vec<Case> {
    let nobody = i32::MAX;
    vec![
        one("a book", "GetBook", json!({"book_id": 1}), is(json!({"id": 1, "sku": sku(1)}))),
        one("a book that isn't there", "GetBook", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one("book 0", "GetBook", json!({"book_id": 0}), fields(&["book_id"])),
        one("a negative book", "GetBook", json!({"book_id": -1}), fields(&["book_id"])),
        one("an author", "GetAuthor", json!({"author_id": 1}), is(json!({"id": 1}))),
        one(
            "an author that isn't there",
            "GetAuthor",
            json!({"author_id": nobody}),
            refused("AUTHOR_NOT_FOUND"),
        ),
        one("author 0", "GetAuthor", json!({"author_id": 0}), fields(&["author_id"])),
        one("stock", "GetStock", json!({"book_id": 1}), is(json!({"bookId": 1}))),
        // GraphQL knows stock as a part of a book: there is no book, and there it ends.
        one("stock of no book", "GetStock", json!({"book_id": nobody}), refused("UNKNOWN_SKU"))
            .except(&[GraphQl]),
        one("stock of book -1", "GetStock", json!({"book_id": -1}), fields(&["book_id"])),
        one("stock by SKU", "GetStock", json!({"sku": sku(2)}), is(json!({"bookId": 2})))
            .silent(&[Rest, GraphQl]),
        one(
            "a screen",
            "GetBookDetail",
            json!({"book_id": 1, "review_count": 2}),
            is(json!({"book": {"id": 1}, "author": {}, "reviews": [{}, {}]})),
        ),
        one(
            "a screen without a book",
            "GetBookDetail",
            json!({"book_id": nobody, "review_count": 2}),
            refused("BOOK_NOT_FOUND"),
        ),
        one(
            "a screen of book 0",
            "GetBookDetail",
            json!({"book_id": 0, "review_count": 2}),
            fields(&["book_id"]),
        ),
        one(
            "a screen of too much",
            "GetBookDetail",
            json!({"book_id": 1, "review_count": 101}),
            fields(&["review_count"]),
        )
        .own_words(),
        one(
            "a screen of many books",
            "ListBookDetails",
            json!({"page_size": 2, "review_count": 3}),
            is(json!({"details": [
                {"book": {"id": 1}, "author": {}, "reviews": [{}, {}, {}]},
                {"book": {"id": 2}, "author": {}, "reviews": [{}, {}, {}]},
            ]})),
        )
        .silent(&[GraphQl]),
        one(
            "a screen of too many reviews",
            "ListBookDetails",
            json!({"page_size": 1_000, "review_count": 11}),
            fields(&["review_count"]),
        )
        .silent(&[GraphQl]),
        one(
            "a screen by a token of another list",
            "ListBookDetails",
            json!({"page_token": "nonsense", "review_count": 1}),
            refused("INVALID_PAGE_TOKEN"),
        )
        .silent(&[GraphQl]),
        one(
            "reviews",
            "ListReviews",
            json!({"book_id": 1, "page_size": 2}),
            is(json!({"reviews": [{}, {}]})),
        ),
        one("reviews of no book", "ListReviews", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one(
            "a shipped order",
            "GetOrder",
            json!({"order_id": order_id(1), "view": "ORDER_VIEW_STATUS"}),
            is(json!({"orderId": order_id(1), "state": "SHIPPED", "lineCount": 8})),
        ),
        one(
            "a placed order in full",
            "GetOrder",
            json!({"order_id": order_id(2), "view": "ORDER_VIEW_FULL"}),
            is(json!({"state": "PLACED", "lines": vec![json!({}); 8], "shipTo": {}})),
        ),
        one(
            "an order with all that happened",
            "GetOrder",
            json!({"order_id": order_id(1), "view": "ORDER_VIEW_HISTORY"}),
            is(json!({"state": "SHIPPED", "lines": vec![json!({}); 8]})),
        ),
        one(
            "an order that isn't there",
            "GetOrder",
            json!({"order_id": order_id(999)}),
            refused("ORDER_NOT_FOUND"),
        ),
        one(
            "an order by another name",
            "GetOrder",
            json!({"order_id": "order-1"}),
            refused("ORDER_NOT_FOUND"),
        ),
        one(
            "an order by a long name",
            "GetOrder",
            json!({"order_id": "o".repeat(65)}),
            fields(&["order_id"]),
        ),
    ]
}

pub(in crate::parity) fn listing() -> Vec<Case> {
    let mut cases = vec![
        story(
            "books, page by page",
            [
                step("ListBooks", json!({"page_size": 2}), is(json!({"books": [{"id": 1}, {"id": 2}]})))
                    .keep("next", "/nextPageToken"),
                step(
                    "ListBooks",
                    json!({"page_size": 1, "page_token": "$next"}),
                    is(json!({"books": [{"id": 3}], "count": 1})),
                ),
            ],
        ),
        story(
            "orders, page by page",
            [
                step("ListOrders", json!({"page_size": 1}), is(json!({"count": 1})))
                    .keep("next", "/nextPageToken"),
                step("ListOrders", json!({"page_size": 3, "page_token": "$next"}), is(json!({"count": 3}))),
            ],
        )
        .live(),
        one("all authors", "ListAuthors", json!({}), is(json!({"count": 10, "nextPageToken": ""}))),
        one("a page of the usual size", "ListBooks", json!({}), is(json!({"count": BOOKS}))),
        one("a page larger than any", "ListBooks", json!({"page_size": 100_000}), is(json!({"count": 1000}))),
        story(
            "a token of another list",
            [
                step("ListBooks", json!({"page_size": 1}), done()).keep("next", "/nextPageToken"),
                step("ListAuthors", json!({"page_token": "$next"}), refused("INVALID_PAGE_TOKEN")),
            ],
        ),
        story(
            "a token of another list of orders",
            [
                step("ListAuthors", json!({"page_size": 1}), done()).keep("next", "/nextPageToken"),
                step("ListOrders", json!({"page_token": "$next"}), refused("INVALID_PAGE_TOKEN")),
            ],
        ),
        story(
            "a token of another book's reviews",
            [
                step("ListReviews", json!({"book_id": 1, "page_size": 1}), done())
                    .keep("next", "/nextPageToken"),
                step(
                    "ListReviews",
                    json!({"book_id": 2, "page_token": "$next"}),
                    refused("INVALID_PAGE_TOKEN"),
                ),
            ],
        )
        .except(&[GraphQl]),
    ];
    for (name, method) in [
        ("a token that no list of books gave", "ListBooks"),
        ("a token that no list of authors gave", "ListAuthors"),
        ("a token that no list of orders gave", "ListOrders"),
    ] {
        cases.push(one(name, method, json!({"page_token": "nonsense"}), refused("INVALID_PAGE_TOKEN")));
        cases.push(one(
            "a page of less than nothing",
            method,
            json!({"page_size": -1}),
            fields(&["page_size"]),
        ));
        cases.push(one("a page of everything", method, json!({"page_size": i32::MAX}), done()).live());
    }
    let token = json!({"book_id": 1, "page_token": "nonsense"});
    cases.push(
        one("a token that no list of reviews gave", "ListReviews", token, refused("INVALID_PAGE_TOKEN"))
            .silent(&[GraphQl]),
    );
    let less = json!({"book_id": 0, "page_size": -1});
    cases.push(
        one("less than no reviews of book 0", "ListReviews", less, fields(&["book_id", "page_size"]))
            .silent(&[GraphQl]),
    );
    cases
}
