//! Documents by their hash.

use axum::body::Body;
use graphql_bff::OPERATIONS;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fake::{App, reason};

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect()
}

fn persisted(hash: &str) -> Value {
    json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } })
}

async fn get(app: &App, parameters: &[(&str, &str)]) -> (StatusCode, Value) {
    let encode = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    let query: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let request = Request::get(format!("/graphql?{}", query.join("&")))
        .header(ACCEPT, "application/graphql-response+json")
        .body(Body::empty())
        .unwrap();
    let (status, _, body) = app.send(request).await;
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn published_operations_are_known_by_their_hash() {
    let app = App::new();
    let detail = OPERATIONS.iter().find(|operation| operation.name == "BookDetail").unwrap();
    let extensions = persisted(&hash(detail.text)).to_string();
    let (status, reply) = get(&app, &[("extensions", &extensions), ("variables", r#"{"id":1}"#)]).await;
    assert_eq!((status, &reply["data"]["book"]["title"]), (StatusCode::OK, &json!("Book 1")));

    let reserve = OPERATIONS.iter().find(|operation| operation.name == "ReserveStock").unwrap();
    let input = json!({ "orderId": "o", "lines": [{ "sku": "1", "quantity": 1 }] });
    let extensions = persisted(&hash(reserve.text));
    let request = json!({ "extensions": extensions, "variables": { "input": input } });
    let (_, reply) = app.post(&request).await;
    assert_eq!(reply["data"]["reserveStock"]["reservationId"], "r-o");
    let (status, _) = get(&app, &[("extensions", &extensions.to_string()), ("variables", "{}")]).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "a hash doesn't make a mutation safe");
}

#[tokio::test]
async fn a_document_is_registered_by_post_only() {
    let app = App::new();
    let text = "{ book(id: 5) { title } }";
    let extensions = persisted(&hash(text));
    let by_hash = json!({ "extensions": extensions });
    let not_found = |reply: &Value| {
        assert_eq!(reason(reply), "PERSISTED_QUERY_NOT_FOUND");
        assert_eq!(reply["errors"][0]["message"], "PersistedQueryNotFound");
    };
    not_found(&app.post(&by_hash).await.1);

    let (status, _) = get(&app, &[("query", text), ("extensions", &extensions.to_string())]).await;
    assert_eq!(status, StatusCode::OK);
    not_found(&app.post(&by_hash).await.1);

    let (_, reply) = app.post(&json!({ "query": text, "extensions": extensions })).await;
    assert_eq!(reply["data"]["book"]["title"], "Book 5");
    let (_, reply) = app.post(&by_hash).await;
    assert_eq!(reply["data"]["book"]["title"], "Book 5");
    let (_, reply) = get(&app, &[("extensions", &extensions.to_string())]).await;
    assert_eq!(reply["data"]["book"]["title"], "Book 5");
}

#[tokio::test]
async fn only_what_passes_is_registered_and_only_under_its_own_hash() {
    let app = App::new();
    let bad = "{ nothing }";
    let (_, reply) = app.post(&json!({ "query": bad, "extensions": persisted(&hash(bad)) })).await;
    assert_eq!(reason(&reply), "INVALID_QUERY");
    let (_, reply) = app.post(&json!({ "extensions": persisted(&hash(bad)) })).await;
    assert_eq!(reason(&reply), "PERSISTED_QUERY_NOT_FOUND");

    let other = hash("{ __typename }");
    let (status, reply) =
        app.post(&json!({ "query": "{ book(id: 1) { id } }", "extensions": persisted(&other) })).await;
    assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST"));
    for hash in ["", "xyz", &"g".repeat(64), &"é".repeat(32)] {
        let (_, reply) = app.post(&json!({ "extensions": persisted(hash) })).await;
        assert_eq!(reason(&reply), "MALFORMED_REQUEST", "{hash}");
    }
    for odd in
        [json!({ "version": 2, "sha256Hash": other }), json!({ "version": 1 }), json!([1, other]), json!("x")]
    {
        let (_, reply) = app.post(&json!({ "extensions": { "persistedQuery": odd } })).await;
        assert_eq!(reason(&reply), "MALFORMED_REQUEST", "{odd}");
    }
}

#[tokio::test]
async fn registering_without_end_forgets_the_oldest() {
    let app = App::new();
    let text = |n: usize| format!("{{ book(id: {n}) {{ title }} }} # {}", "x".repeat(1_000));
    for n in 1..=1_500 {
        let text = text(n);
        let (status, _) = app.post(&json!({ "query": text, "extensions": persisted(&hash(&text)) })).await;
        assert_eq!(status, StatusCode::OK);
    }
    let (_, reply) = app.post(&json!({ "extensions": persisted(&hash(&text(1))) })).await;
    assert_eq!(reason(&reply), "PERSISTED_QUERY_NOT_FOUND");
    let (_, reply) = app.post(&json!({ "extensions": persisted(&hash(&text(1_500))) })).await;
    assert_eq!(reply["data"]["book"]["title"], "Book 1500");
}

#[tokio::test]
async fn a_kept_document_is_checked_with_each_request_s_variables() {
    let app = App::new();
    let query = "query($n: Int!) { books(first: $n) { nodes { title } } }";
    for (n, reason_wanted) in [(json!(2), None), (json!("x"), Some("INVALID_FIELD")), (json!(2), None)] {
        let (_, reply) = app.post(&json!({ "query": query, "variables": { "n": n } })).await;
        match reason_wanted {
            None => assert_eq!(reply["data"]["books"]["nodes"].as_array().map(Vec::len), Some(2)),
            Some(wanted) => assert_eq!(reason(&reply), wanted),
        }
    }
}
