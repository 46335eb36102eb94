//! How many calls an operation makes.

use http::StatusCode;
use proto::{Reason, Refusal};
use serde_json::json;

use crate::fake::{App, Fake};

const BOOK: &str = "{ id title author { name } stock { inStock } reviews(last: 2) { text } }";

fn aliased(ids: impl Iterator<Item = i32>, selection: &str) -> String {
    let fields: String = ids.map(|id| format!("b{id}: book(id: {id}) {selection} ")).collect();
    format!("{{ {fields} }}")
}

#[tokio::test]
async fn the_book_detail_screen_makes_one_call_to_each_service() {
    let app = App::new();
    let data = app.data(&format!("{{ book(id: 3) {BOOK} }}")).await;
    assert_eq!(data["book"]["author"]["name"], "Author 4");
    assert_eq!(data["book"]["stock"]["inStock"], 7);
    assert_eq!(data["book"]["reviews"].as_array().map(Vec::len), Some(2));
    assert_eq!(app.fake.calls(), ["BatchGetBooks 1 authors reviews 2", "BatchGetStock 1"]);
}

#[tokio::test]
async fn a_hundred_screens_in_one_operation_make_one_call_to_each_service() {
    let app = App::new();
    let data = app.data(&aliased(1..=100, BOOK)).await;
    assert_eq!(data["b100"]["title"], "Book 100");
    assert_eq!(app.fake.calls(), ["BatchGetBooks 100 authors reviews 2", "BatchGetStock 100"]);
}

#[tokio::test]
async fn the_same_book_twice_is_asked_for_once() {
    let app = App::new();
    let data = app.data("{ a: book(id: 1) { title } b: book(id: 1) { sku stock { sold } } }").await;
    assert_eq!(data["b"]["stock"]["sold"], 5_000_000_000_i64);
    assert_eq!(app.fake.calls(), ["BatchGetBooks 1 reviews 0", "BatchGetStock 1"]);
}

#[tokio::test]
async fn a_list_with_all_its_parts_makes_one_call_for_each_kind() {
    for list in ["nodes", "edges { node"] {
        let app = App::new();
        let close = if list == "nodes" { "" } else { "}" };
        let data = app.data(&format!("{{ books(first: 50) {{ {list} {BOOK} {close} }} }}")).await;
        let last = match list {
            "nodes" => &data["books"]["nodes"][49],
            _ => &data["books"]["edges"][49]["node"],
        };
        assert_eq!(last["reviews"][1]["text"], "Good.");
        let mut calls = app.fake.calls();
        calls[1..].sort();
        assert_eq!(
            calls,
            ["ListBooks 50 \"\"", "BatchGetAuthors 10", "BatchGetStock 50", "BatchListReviews 2 of 50"]
        );
    }
}

#[tokio::test]
async fn what_no_one_looked_ahead_for_is_batched_too() {
    let app = App::new();
    let review = "reviews(last: 1) { id } more: reviews(last: 3) { id }";
    app.data(&format!("{{ books(first: 40) {{ nodes {{ {review} }} }} }}")).await;
    let calls = app.fake.calls();
    assert_eq!(calls, ["ListBooks 40 \"\"", "BatchListReviews 1 of 40", "BatchListReviews 3 of 40"]);

    let input = r#"input: {sku: "1", title: "t", authorId: 1, price: {amountMinor: 1, currency: "EUR"}}"#;
    app.data(&format!("mutation {{ createBook({input}) {{ author {{ name }} stock {{ inStock }} }} }}"))
        .await;
    assert_eq!(app.fake.calls(), ["CreateBook", "BatchGetAuthors 1", "BatchGetStock 1"]);
}

#[tokio::test]
async fn more_than_a_thousand_keys_are_split() {
    let config = graphql_bff::Config {
        graphql_limits: graphql_bff::Limits { tokens: 100_000, selections: 10_000, ..Default::default() },
        ..Default::default()
    };
    let app = App::over(Fake::default(), &config);
    let data = app.data(&aliased(1..=2_100, "{ id }")).await;
    assert_eq!(data["b2100"]["id"], 2_100);
    assert_eq!(
        app.fake.calls(),
        ["BatchGetBooks 1000 reviews 0", "BatchGetBooks 1000 reviews 0", "BatchGetBooks 100 reviews 0"]
    );
}

#[tokio::test]
async fn more_than_ten_thousand_reviews_are_split() {
    let limits = graphql_bff::Limits { cost: 1_000_000, ..Default::default() };
    let app =
        App::over(Fake::default(), &graphql_bff::Config { graphql_limits: limits, ..Default::default() });
    let data = app.data("{ books(first: 250) { nodes { reviews(last: 100) { id } } } }").await;
    assert_eq!(data["books"]["nodes"][249]["reviews"].as_array().map(Vec::len), Some(100));
    let reviews = |books| format!("BatchListReviews 100 of {books}");
    assert_eq!(app.fake.calls(), ["ListBooks 250 \"\"", &reviews(100), &reviews(100), &reviews(50)]);

    let data = app.data(&aliased(1..=101, "{ reviews(last: 100) { id } }")).await;
    assert_eq!(data["b101"]["reviews"].as_array().map(Vec::len), Some(100));
    assert_eq!(app.fake.calls(), ["BatchGetBooks 101 reviews 0", &reviews(100), &reviews(1)]);
}

#[tokio::test]
async fn reviews_come_along_unless_the_books_disagree_on_their_number() {
    let app = App::new();
    app.data("{ a: book(id: 1) { reviews(last: 2) { id } } b: book(id: 2) { title } }").await;
    assert_eq!(app.fake.calls(), ["BatchGetBooks 2 reviews 2"]);
    let data =
        app.data("{ a: book(id: 1) { reviews(last: 2) { id } } b: book(id: 2) { reviews { id } } }").await;
    assert_eq!(data["b"]["reviews"].as_array().map(Vec::len), Some(10));
    assert_eq!(
        app.fake.calls(),
        ["BatchGetBooks 2 reviews 0", "BatchListReviews 2 of 1", "BatchListReviews 10 of 1"]
    );
}

#[tokio::test]
async fn an_order_is_asked_for_in_the_smallest_view_that_will_do() {
    let app = App::new();
    for (selection, view) in [
        ("orderId total { amountMinor }", "GetOrder ORDER_VIEW_STATUS"),
        ("lines { sku }", "GetOrder ORDER_VIEW_FULL"),
        ("...F } } fragment F on Order { ... on Order { shipTo { city } ", "GetOrder ORDER_VIEW_FULL"),
        ("state history { kind }", "GetOrder ORDER_VIEW_HISTORY"),
        ("state history @skip(if: true) { kind }", "GetOrder ORDER_VIEW_STATUS"),
    ] {
        app.data(&format!("{{ order(id: \"o\") {{ {selection} }} }}")).await;
        assert_eq!(app.fake.calls(), [view], "{selection}");
    }
    let data = app.data("{ order(id: \"o\") { total { amountMinor } } }").await;
    assert_eq!(data["order"]["total"]["amountMinor"], 5_000_000_000_i64);
}

#[tokio::test]
async fn parts_of_an_order_that_are_not_here_are_asked_for() {
    let app = App::new();
    let data =
        app.data("mutation { cancelOrder(id: \"o\") { state lines { bookId } shipTo { city } } }").await;
    assert_eq!(data["cancelOrder"]["shipTo"]["city"], "Bern");
    assert_eq!(app.fake.calls(), ["CancelOrder", "GetOrder ORDER_VIEW_FULL"]);
}

#[tokio::test]
async fn an_error_of_one_call_reaches_each_field_that_waits_for_it() {
    let down = Refusal::new(Reason::UpstreamUnavailable, "inventory can't be reached").into();
    let app = App::over(Fake { inventory_fails: Some(down), ..Fake::default() }, &Default::default());
    let (status, reply) = app.query(&aliased(1..=3, BOOK)).await;
    assert_eq!(status, StatusCode::OK);
    for id in 1..=3 {
        let book = &reply["data"][format!("b{id}")];
        assert_eq!(book["title"], format!("Book {id}"), "the catalog's half is there");
        assert_eq!(book["stock"], json!(null));
    }
    let errors = reply["errors"].as_array().unwrap();
    let paths: Vec<_> = errors.iter().map(|error| error["path"].to_string()).collect();
    assert_eq!(paths, [r#"["b1","stock"]"#, r#"["b2","stock"]"#, r#"["b3","stock"]"#]);
    for error in errors {
        assert_eq!(error["extensions"]["reason"], "UPSTREAM_UNAVAILABLE");
        assert_eq!(error["extensions"]["code"], "UNAVAILABLE");
    }
    assert_eq!(app.fake.calls(), ["BatchGetBooks 3 authors reviews 2", "BatchGetStock 3"]);
}

#[tokio::test]
async fn an_id_that_cannot_be_spoils_no_other() {
    let app = App::new();
    let (_, reply) =
        app.query("{ a: book(id: 0) { id } b: book(id: 1) { id } c: book(id: 9999) { id } }").await;
    assert_eq!(reply["data"], json!({ "a": null, "b": { "id": 1 }, "c": null }));
    let mut reasons: Vec<_> =
        reply["errors"].as_array().unwrap().iter().map(|e| &e["extensions"]["reason"]).collect();
    reasons.sort_by_key(|reason| reason.to_string());
    assert_eq!(reasons, ["BOOK_NOT_FOUND", "INVALID_FIELD"]);
}

#[tokio::test]
async fn a_book_that_inventory_does_not_know_has_none_in_stock() {
    let app = App::new();
    let data = app.data("{ book(id: 13) { stock { bookId sku inStock } } }").await;
    assert_eq!(data["book"]["stock"], json!({ "bookId": 13, "sku": proto::seed::sku(13), "inStock": 0 }));
}

#[tokio::test]
async fn fields_come_back_in_the_order_they_were_asked_for() {
    let app = App::new();
    for (query, data) in [
        (
            "{ books(first: 1) { nodes { stock { inStock } id title author { born } } } }",
            r#"{"books":{"nodes":[{"stock":{"inStock":7},"id":1,"title":"Book 1","author":{"born":1950}}]}}"#,
        ),
        (
            r#"{ b: book(id: 1) { title } a: __typename c: reservation(id: "r") { reservationId } }"#,
            r#"{"b":{"title":"Book 1"},"a":"Query","c":{"reservationId":"r"}}"#,
        ),
        (
            "{ ...F z: __typename } fragment F on Query { b: book(id: 1) { title } ... { y: __typename } }",
            r#"{"b":{"title":"Book 1"},"y":"Query","z":"Query"}"#,
        ),
    ] {
        let request = axum::http::Request::post("/graphql")
            .header("content-type", "application/json")
            .body(json!({ "query": query }).to_string().into())
            .unwrap();
        let (_, _, body) = app.send(request).await;
        assert_eq!(String::from_utf8(body).unwrap(), format!("{{\"data\":{data}}}"));
    }
}
