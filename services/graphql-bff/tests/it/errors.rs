//! What refusals look like.

use http::StatusCode;
use proto::{Reason, Refusal};
use serde_json::{Value, json};
use tonic::Status;

use crate::fake::{App, Fake, reason};

#[tokio::test]
async fn a_refusal_of_a_service_keeps_its_reason_and_data_is_null_there() {
    let app = App::new();
    for (query, field, reason, code) in [
        ("{ book(id: 9999) { id } }", "book", "BOOK_NOT_FOUND", "NOT_FOUND"),
        ("{ author(id: 77) { id } }", "author", "AUTHOR_NOT_FOUND", "NOT_FOUND"),
        ("{ order(id: \"missing\") { state } }", "order", "ORDER_NOT_FOUND", "NOT_FOUND"),
        ("{ books(after: \"bad\") { nodes { id } } }", "books", "INVALID_PAGE_TOKEN", "INVALID_ARGUMENT"),
        (
            "mutation { reserveStock(input: {orderId: \"o\", lines: [{sku: \"1\", quantity: 8}]}) { state } }",
            "reserveStock",
            "OUT_OF_STOCK",
            "FAILED_PRECONDITION",
        ),
    ] {
        let (status, reply) = app.query(query).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(reply["data"], json!({ field: null }), "{reply}");
        let error = &reply["errors"][0];
        let extensions = error["extensions"].as_object().unwrap();
        assert_eq!((&extensions["reason"], &extensions["code"]), (&reason.into(), &code.into()), "{reply}");
        assert_eq!(error["path"], json!([field]));
        assert!(error["locations"][0]["line"].as_i64() > Some(0), "{reply}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn facts_that_go_with_a_reason_are_told() {
    let out = proto::out_of_stock("9790000000018", 3, 2).into();
    let app = App::over(Fake { inventory_fails: Some(out), ..Fake::default() }, &Default::default());
    let query = "mutation { adjustStock(input: { sku: \"9790000000018\", delta: 1 }) { inStock } }";
    let (_, reply) = app.query(query).await;
    assert_eq!(
        reply["errors"][0]["extensions"],
        json!({
            "reason": "OUT_OF_STOCK",
            "code": "FAILED_PRECONDITION",
            "metadata": { "sku": "9790000000018", "wanted": "3", "inStock": "2" },
        })
    );
}

#[tokio::test]
async fn a_typename_is_checked_like_any_field() {
    let app = App::new();
    for bad in [
        "{ __typename @nonsense }",
        "{ book(id: 1) { __typename @nonsense } }",
        "{ ...F } fragment F on Query { ... { __typename @nonsense } }",
        "{ __typename @skip }",
        "{ __typename @skip(if: \"x\") }",
        "{ __typename @include(if: true, x: 1) }",
        "{ __typename @skip(if: true) @skip(if: false) }",
        "query { __typename @skip(if: $a) }",
        "query($a: Int!) { __typename @skip(if: $a) }",
        "{ __typename(x: 1) }",
        "{ __typename { a } }",
    ] {
        let (status, reply) = app.query(bad).await;
        assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, "INVALID_QUERY"), "{bad}");
        assert!(reply["errors"][0]["locations"][0]["column"].as_i64() > Some(1), "{reply}");
    }
    assert_eq!(app.data("{ a: __typename @include(if: true) __typename }").await, {
        json!({ "a": "Query", "__typename": "Query" })
    });
    assert_eq!(
        app.data("{ a: __typename @skip(if: true) __typename }").await,
        json!({ "__typename": "Query" })
    );
    let asked =
        json!({ "query": "query($a: Boolean!) { __typename @skip(if: $a) }", "variables": { "a": false } });
    assert_eq!(app.post(&asked).await.1, json!({ "data": { "__typename": "Query" } }));
    // As deep as may be.
    let deep = ["{ ", &"... { ".repeat(29), "__typename @include(if: true)", &" }".repeat(30)].concat();
    assert_eq!(app.data(&deep).await, json!({ "__typename": "Query" }));
}

#[tokio::test]
async fn broken_fields_are_named_as_the_schema_spells_them() {
    let app = App::new();
    let query = "mutation($input: ReserveStockInput!) { reserveStock(input: $input) { state } }";
    let input =
        json!({ "orderId": "", "lines": [{ "sku": "1", "quantity": 1 }, { "sku": "1", "quantity": -5 }] });
    let (status, reply) = app.post(&json!({ "query": query, "variables": { "input": input } })).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        reply["errors"][0]["extensions"],
        json!({
            "reason": "INVALID_FIELD",
            "code": "INVALID_ARGUMENT",
            "fields": [
                { "field": "lines[1].quantity", "rule": "must be from 1 to 1000000, was -5" },
                { "field": "orderId", "rule": "must have 1 to 64 characters, had 0" },
            ],
        })
    );

    for (query, field) in [
        ("{ book(id: -1) { id } }", "id"),
        ("{ author(id: 0) { id } }", "id"),
        ("{ books(first: -1) { nodes { id } } }", "first"),
        ("{ book(id: 1) { reviews(last: 101) { id } } }", "last"),
        ("{ book(id: 1) { reviews(last: 0) { id } } }", "last"),
    ] {
        let (_, reply) = app.query(query).await;
        let error = &reply["errors"][0];
        assert_eq!(error["extensions"]["fields"][0]["field"], field, "{reply}");
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{field}: must")), "{reply}");
    }
}

#[tokio::test]
async fn a_bad_variable_is_a_bad_field_and_nothing_runs() {
    let app = App::new();
    let query = "query($id: Int!) { book(id: $id) { id } }";
    for (variables, rule) in [
        (json!({ "id": "x" }), "must be a 32-bit integer, was \"x\""),
        (json!({ "id": 2_147_483_648_i64 }), "must be a 32-bit integer, was 2147483648"),
        (json!({ "id": -2_147_483_649_i64 }), "must be a 32-bit integer, was -2147483649"),
        (json!({ "id": 1e300 }), "must be a 32-bit integer, was 1e+300"),
        (json!({ "id": 1.5 }), "must be a 32-bit integer, was 1.5"),
        (json!({ "id": null }), "must not be null"),
        (json!({}), "is required"),
        (json!({ "id": [1, 2] }), "must be a 32-bit integer, was a list"),
    ] {
        let (status, reply) = app.post(&json!({ "query": query, "variables": variables })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(reply.get("data"), None, "nothing ran, so there is no data: {reply}");
        let extensions = &reply["errors"][0]["extensions"];
        assert_eq!(extensions["reason"], "INVALID_FIELD");
        assert_eq!(extensions["fields"], json!([{ "field": "id", "rule": rule }]));
    }
    let query = "mutation($input: ReserveStockInput!) { reserveStock(input: $input) { state } }";
    let input =
        json!({ "orderId": "o", "lines": [{ "sku": "1", "quantity": 99_999_999_999_i64, "note": "" }] });
    let (_, reply) = app.post(&json!({ "query": query, "variables": { "input": input } })).await;
    assert_eq!(
        reply["errors"][0]["extensions"]["fields"],
        json!([
            { "field": "lines[0].note", "rule": "is no field of ReservationLineInput" },
            { "field": "lines[0].quantity", "rule": "must be a 32-bit integer, was 99999999999" },
        ])
    );
    assert_eq!(app.fake.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_literal_out_of_range_is_a_bad_field_too() {
    let app = App::new();
    let (status, reply) = app.query("{ book(id: 99999999999) { id } }").await;
    assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, "INVALID_FIELD"));
    assert_eq!(reply["errors"][0]["extensions"]["fields"][0]["field"], "id");
    let query = "mutation($o: ID!) { reserveStock(input: {orderId: $o, lines: [], x: 1}) { state } }";
    let (_, reply) = app.post(&json!({ "query": query, "variables": { "o": "o" } })).await;
    assert_eq!(reason(&reply), "INVALID_QUERY", "what stands beside a variable is checked: {reply}");
}

#[tokio::test]
async fn a_document_that_does_not_fit_the_schema_is_an_invalid_query() {
    let app = App::new();
    for query in [
        "{ nothing }",
        "{ book { id } }",
        "{ book(id: \"1\") { id } }",
        "{ book(id: 1) }",
        "{ book(id: 1) { id { x } } }",
        "query($x: Int!) { book(id: 1) { id } }",
        "query($x: String) { book(id: $x) { id } }",
        "{ book(id: $x) { id } }",
        "{ ...F } fragment F on Nothing { id }",
        "{ ...F }",
        "{ book(id: 1) { id } books: book(id: 2) { id } books: author(id: 1) { id } }",
        "query A { book(id: 1) { id } } query B { book(id: 1) { id } }",
        "subscription { stockChanged(bookIds: [1]) { sku } }",
    ] {
        let (status, reply) = app.query(query).await;
        assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, "INVALID_QUERY"), "{query}");
        assert_eq!(reply.get("data"), None);
    }
    assert_eq!(app.fake.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_syntax_error_says_where() {
    let app = App::new();
    let (status, reply) = app.query("{\n  book(id: 1) { id \n").await;
    assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST"));
    assert_eq!(reply["errors"][0]["locations"][0]["line"], 3);
    // Also of a text whose every line is a book.
    let long = format!("{{ book(id: \"{}\" }}", "x".repeat(60_000));
    let (_, reply) = app.query(&long).await;
    assert!(reply.to_string().len() < 2_000, "the text isn't sent back");
}

#[tokio::test]
async fn errors_of_the_library_are_few_and_short() {
    let app = App::new();
    let unknown: String = (0..300).map(|n| format!("n{n} ")).collect();
    let (_, reply) = app.query(&format!("{{ {unknown} }}")).await;
    assert_eq!(reply["errors"].as_array().unwrap().len(), 20, "{reply}");
    let (_, reply) = app.query(&format!("{{ {} }}", "x".repeat(60_000))).await;
    assert!(reply.to_string().len() < 2_000);
}

#[tokio::test]
async fn a_fault_of_ours_tells_nothing_of_the_inside() {
    let fault = Status::internal("disk /dev/secret is on fire");
    let app = App::over(Fake { catalog_fails: Some(fault), ..Fake::default() }, &Default::default());
    let (_, reply) = app.query("{ book(id: 1) { id } }").await;
    let error = &reply["errors"][0];
    assert_eq!(error["message"], "internal error");
    assert_eq!(error["extensions"], json!({ "reason": "INTERNAL", "code": "INTERNAL" }));
}

#[tokio::test]
async fn every_reason_crosses_unchanged() {
    for &expected in Reason::ALL.iter().filter(|reason| **reason != Reason::Internal) {
        let status = Refusal::new(expected, "because").into();
        let app = App::over(Fake { catalog_fails: Some(status), ..Fake::default() }, &Default::default());
        let (_, reply) = app.query("{ books { nodes { id } } }").await;
        assert_eq!(reason(&reply), expected.as_str());
    }
}

#[tokio::test]
async fn all_that_was_skipped_is_an_empty_object() {
    let app = App::new();
    assert_eq!(app.data("{ book(id: 1) @skip(if: true) { id } }").await, Value::Object(Default::default()));
}

#[tokio::test]
async fn an_operation_that_takes_too_long_is_ended_with_all_its_calls() {
    let config = graphql_bff::Config { graphql_deadline_ms: 20, ..Default::default() };
    let app = App::over(Fake { hangs: true, ..Fake::default() }, &config);
    let (status, reply) =
        app.query("{ book(id: 1) { id stock { inStock } } order(id: \"o\") { state } }").await;
    assert_eq!((status, reason(&reply).as_str()), (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"));
    assert_eq!(app.fake.calls().len(), 3);
    assert_eq!(app.fake.running.load(std::sync::atomic::Ordering::SeqCst), 0);
}
