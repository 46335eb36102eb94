//! Many books at once.

use std::io::{self, Read};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use chassis::Shutdown;
use flate2::read::GzDecoder;
use futures_util::stream;
use http_body_util::BodyExt;
use rest_facade::Config;
use serde_json::{Value, json};

use crate::fakes::Shop;
use crate::http::{Reply, edge, get, get_with, open, request, send, send_json};

const EXPORT: &str = "/api/v1/books/export";
const IMPORT: &str = "/api/v1/books/import";
const GZIP: (&str, &str) = ("accept-encoding", "gzip");

fn unzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn an_export_has_a_book_of_the_lists_on_each_line() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let reply = get(&edge, &format!("{EXPORT}?limit=7&batch_size=3")).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "application/x-ndjson"));
    assert_eq!((reply.header("vary"), reply.header("etag")), ("accept-encoding", ""));
    assert!(shop.last().contains("delay_ms: 0, limit: 7, batch_size: 3"), "{}", shop.last());
    assert!(reply.text().ends_with('\n'));
    let lines: Vec<Value> = reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["id"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(lines[..2], get(&edge, "/api/v1/books").await.json()["books"].as_array().unwrap()[..]);

    let zipped = get_with(&edge, EXPORT, &[GZIP]).await;
    assert_eq!((zipped.header("content-encoding"), zipped.header("vary")), ("gzip", "accept-encoding"));
    assert_eq!(unzip(&zipped.body), reply.text());
    assert!(shop.last().contains("limit: 0, batch_size: 100"), "{}", shop.last());
}

#[tokio::test]
async fn an_export_that_breaks_is_broken_off() {
    let torn = edge(Shop { torn: true, ..Shop::default() });
    for headers in [&[][..], &[GZIP]] {
        let mut response = open(&torn, request("GET", EXPORT, headers, Body::empty())).await;
        assert_eq!(response.status(), 200);
        let mut parts = 0;
        let end = loop {
            match response.body_mut().frame().await {
                Some(Ok(_)) => parts += 1,
                end => break end,
            }
        };
        assert_eq!(parts, 2);
        assert!(end.unwrap().is_err(), "an end here would look like the end of the books");
    }
    get(&edge(Shop::default()), &format!("{EXPORT}?limit=x&page_size=1"))
        .await
        .assert_fields(&["limit", "page_size"]);
}

#[tokio::test]
async fn an_export_ends_at_shutdown_and_with_its_reader() {
    let (shop, shutdown) = (Shop::default(), Shutdown::new());
    let edge = rest_facade::router(shop.services(), &Config::default(), shutdown.clone());
    // The fake stops in the middle when it is asked for one.
    let start = async || {
        let path = format!("{EXPORT}?limit=1");
        let mut response = open(&edge, request("GET", &path, &[], Body::empty())).await;
        response.body_mut().frame().await.unwrap().unwrap();
        response.body_mut().frame().await.unwrap().unwrap();
        response
    };
    let idle = Arc::strong_count(&shop.running);
    let response = start().await;
    assert_eq!(Arc::strong_count(&shop.running), idle + 1);
    drop(response);
    assert_eq!(Arc::strong_count(&shop.running), idle);

    let mut response = start().await;
    shutdown.begin();
    assert!(response.body_mut().frame().await.unwrap().is_err());
}

fn new_book(n: usize) -> Value {
    json!({
        "sku": format!("97900010{n:05}"), "title": "Tidewater", "authorId": 1,
        "price": {"amountMinor": 1499, "currency": "EUR"},
    })
}

async fn import_lines(edge: &Router, query: &str, body: impl Into<Body>) -> Reply {
    let headers = [("content-type", "application/x-ndjson; charset=utf-8")];
    send(edge, request("POST", &format!("{IMPORT}{query}"), &headers, body)).await
}

#[tokio::test]
async fn an_upload_of_lines_is_passed_on_as_it_comes() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let text: String = (0..250).map(|n| format!("{}\n", new_book(n))).collect();
    for (query, validate_only) in
        [("", false), ("?validate_only=true", true), ("?validate_only=false", false)]
    {
        shop.asked.lock().unwrap().clear();
        let pieces: Vec<_> = text
            .as_bytes()
            .chunks(1_000)
            .map(|piece| io::Result::Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let reply = import_lines(&edge, query, Body::from_stream(stream::iter(pieces))).await;
        assert_eq!(reply.json(), json!({"importedCount": 250, "refusedCount": 0, "refusals": []}));
        let asked = shop.asked.lock().unwrap();
        let messages: Vec<_> = asked.iter().filter(|m| m.starts_with("ImportBooksRequest")).collect();
        assert_eq!(messages.len(), 3, "a hundred at a time");
        assert!(messages.iter().all(|m| m.contains(&format!("validate_only: {validate_only}"))));
    }
    assert_eq!(import_lines(&edge, "", "").await.json()["importedCount"], 0);
    import_lines(&edge, "?validate_only=yes&x=1", "").await.assert_fields(&["validate_only", "x"]);
}

#[tokio::test]
async fn a_line_that_is_no_book_is_refused_by_itself() {
    let edge = edge(Shop::default());
    let lines = [
        new_book(0).to_string(),
        "{oops".to_owned(),
        String::new(),
        r#"{"author_id":1}"#.to_owned(),
        r#"{"title":"no sku"}"#.to_owned(),
        format!(r#"{{"title":"{}"}}"#, "x".repeat(70_000)),
        "[]".to_owned(),
        new_book(1).to_string(),
    ];
    let report = import_lines(&edge, "", lines.join("\n")).await.json();
    assert_eq!((&report["importedCount"], &report["refusedCount"]), (&json!(2), &json!(5)));
    let refusals: Vec<_> = report["refusals"].as_array().unwrap().iter().collect();
    let told: Vec<_> = refusals
        .iter()
        .map(|refusal| (refusal["index"].as_i64().unwrap(), refusal["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            (1, "MALFORMED_REQUEST"),
            (2, "INVALID_FIELD"),
            (3, "INVALID_FIELD"),
            (4, "MESSAGE_TOO_LARGE"),
            (5, "INVALID_FIELD"),
        ]
    );
    let message = |at: usize| refusals[at]["message"].as_str().unwrap();
    assert!(message(0).starts_with("the line is not JSON: "), "{}", message(0));
    assert!(message(1).starts_with("author_id: unknown field"), "{}", message(1));
    assert_eq!(message(2), "sku: must be 13 digits; authorId: must be positive, was 0");
}

#[tokio::test]
async fn any_number_of_broken_lines_is_counted() {
    let edge = edge(Shop::default());
    let report = import_lines(&edge, "", "{\n".repeat(1_000)).await.json();
    assert_eq!(report["refusedCount"], 1_000);
    let refusals = report["refusals"].as_array().unwrap();
    assert!(refusals[..100].iter().all(|refusal| refusal["reason"] == "MALFORMED_REQUEST"), "{refusals:?}");
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_refused() {
    let pieces = [Ok(Bytes::from(format!("{}\n", new_book(0)))), Err(io::Error::other("reset"))];
    let reply = import_lines(&edge(Shop::default()), "", Body::from_stream(stream::iter(pieces))).await;
    reply.assert_problem(400, "MALFORMED_REQUEST");
}

#[tokio::test]
async fn an_upload_of_lines_has_an_hour_unless_it_says() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let left = || shop.deadline.lock().unwrap().unwrap().left().as_secs();
    import_lines(&edge, "", "").await;
    assert!((3_000..=3_600).contains(&left()), "{}", left());
    let headers = [("content-type", "application/x-ndjson"), ("request-timeout", "30")];
    send(&edge, request("POST", IMPORT, &headers, Body::empty())).await;
    assert!(left() <= 30, "{}", left());
    send_json(&edge, "POST", IMPORT, json!({"books": []}).to_string()).await;
    assert!(left() <= 10, "{}", left());
}

#[tokio::test]
async fn an_upload_of_json_is_one_message() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let books: Vec<_> = (0..3).map(new_book).chain([json!({"title": "no sku"})]).collect();
    let body = json!({ "books": books }).to_string();
    let report = send_json(&edge, "POST", &format!("{IMPORT}?validate_only=true"), body).await.json();
    assert_eq!((&report["importedCount"], &report["refusedCount"]), (&json!(3), &json!(1)));
    let refused = "sku: must be 13 digits; authorId: must be positive, was 0";
    assert_eq!(report["refusals"], json!([{"index": 3, "reason": "INVALID_FIELD", "message": refused}]));
    assert!(
        shop.last().starts_with("BatchCreateBooksRequest") && shop.last().contains("validate_only: true")
    );
    for (body, field) in [
        (r#"{"books":[{},{"id":1}]}"#, "books[1].id"),
        (r#"{"books":{}}"#, "books"),
        (r#"{"book":[]}"#, "book"),
        ("[]", "body"),
    ] {
        send_json(&edge, "POST", IMPORT, body).await.assert_fields(&[field]);
    }
    let plain = request("POST", IMPORT, &[("content-type", "text/plain")], "{}");
    for kind in ["application/json", "application/x-ndjson"] {
        let headers = [("content-type", kind), ("content-encoding", "gzip")];
        let zipped = request("POST", IMPORT, &headers, Body::from("{}"));
        send(&edge, zipped).await.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    let refused = send(&edge, plain).await;
    refused.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    assert!(refused.text().contains("application/json or application/x-ndjson"), "{}", refused.text());
}

const SCREEN: &str = "/api/v1/screens/catalog?page_size=20&reviews=4";

#[tokio::test]
async fn the_screen_of_many_books_has_all_their_parts() {
    let shop = Shop { more: true, ..Shop::default() };
    let edge = edge(shop.clone());
    let one = get(&edge, "/api/v1/screens/book-detail/2?reviews=4").await.json();
    let reply = get(&edge, SCREEN).await;
    assert!(shop.last().contains(r#"page_size: 20, page_token: "", review_count: 4"#), "{}", shop.last());
    let screen = reply.json();
    assert_eq!(screen["details"].as_array().unwrap().len(), 20);
    assert_eq!(screen["details"][1], one);
    assert_eq!(screen["nextPageToken"], "t&2");
    assert!(reply.header("link").contains("page_token=t%262"), "{}", reply.header("link"));
    assert!(screen.get("warnings").is_none());

    let partial = get(&crate::http::edge(Shop { no_stock: true, ..Shop::default() }), SCREEN).await.json();
    assert_eq!(partial["warnings"][0]["reason"], "UPSTREAM_UNAVAILABLE");
    assert!(partial["details"].as_array().unwrap().iter().all(|detail| detail["stock"].is_null()));
}

#[tokio::test]
async fn a_large_reply_is_zipped_for_those_who_take_it_and_has_another_tag_then() {
    let edge = edge(Shop::default());
    let plain = get(&edge, SCREEN).await;
    let zipped = get_with(&edge, SCREEN, &[GZIP]).await;
    assert_eq!((plain.header("content-encoding"), zipped.header("content-encoding")), ("", "gzip"));
    assert_eq!(unzip(&zipped.body), plain.text());
    assert!(zipped.body.len() * 3 < plain.body.len());
    assert_eq!(zipped.header("content-length"), zipped.body.len().to_string());
    for reply in [&plain, &zipped] {
        assert_eq!(reply.header("vary"), "accept-encoding");
        assert!(reply.header("etag").starts_with('"'), "strong");
    }
    let (tag, zipped_tag) = (plain.header("etag"), zipped.header("etag"));
    assert_ne!(tag, zipped_tag);
    let with = async |headers: &[(&str, &str)]| get_with(&edge, SCREEN, headers).await;
    assert_eq!(with(&[GZIP]).await.body, zipped.body, "the same bytes each time");
    for (headers, status) in [
        (&[("if-none-match", tag)][..], 304),
        (&[("if-none-match", zipped_tag), GZIP], 304),
        (&[("if-none-match", "*"), GZIP], 304),
        (&[("if-none-match", &format!("W/{tag}, {zipped_tag}")), GZIP], 304),
        (&[("if-none-match", zipped_tag)], 200),
        (&[("if-none-match", tag), GZIP], 200),
    ] {
        let reply = with(headers).await;
        assert_eq!(reply.status, status, "{headers:?}");
        assert_eq!(reply.header("vary"), "accept-encoding");
        assert_eq!(reply.body.is_empty(), status == 304);
    }
}

#[tokio::test]
async fn a_small_reply_stays_as_it_is() {
    let edge = edge(Shop::default());
    for path in ["/api/v1/books", "/api/v1/screens/catalog?page_size=1", "/api/v1/books/1"] {
        let reply = get_with(&edge, path, &[GZIP]).await;
        assert_eq!(reply.header("content-encoding"), "", "{path}");
        reply.json();
    }
}
