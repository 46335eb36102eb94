//! Bodies that can't be read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures_util::stream;
use http_body::{Frame, SizeHint};

use proto::{FieldError, Refusal};

use crate::fakes::Shop;
use crate::http::{edge, request, send, send_json};

const RESERVATIONS: &str = "/api/v1/reservations";

#[tokio::test]
async fn broken_json_is_told_with_its_place() {
    let edge = edge(Shop::default());
    for (body, place) in [
        ("", "line 1 column 0"),
        ("{", "line 1 column 1"),
        ("{\n  \"orderId\": oops}", "line 2 column 14"),
        (r#"{"orderId":"a"} x"#, "line 1 column 17"),
        ("\u{feff}{}", "line 1 column 1"),
    ] {
        let problem =
            send_json(&edge, "POST", RESERVATIONS, body).await.assert_problem(400, "MALFORMED_REQUEST");
        assert!(problem["detail"].as_str().unwrap().ends_with(place), "{body:?}: {problem}");
    }
    let nested = "[".repeat(100_000);
    send_json(&edge, "POST", RESERVATIONS, nested).await.assert_problem(400, "INVALID_FIELD");
    let nested = format!("{{\"orderId\":{}", "[".repeat(100_000));
    send_json(&edge, "POST", RESERVATIONS, nested).await.assert_problem(400, "INVALID_FIELD");
    let not_utf8 = Bytes::from_static(b"{\"orderId\":\"\xff\"}");
    send_json(&edge, "POST", RESERVATIONS, not_utf8).await.assert_problem(400, "MALFORMED_REQUEST");
}

#[tokio::test]
async fn what_is_quoted_is_short_however_long_it_came() {
    let edge = edge(Shop::default());
    let long = "\u{1F4DA}".repeat(50_000);
    for body in [
        format!(r#"{{"{long}":1}}"#),
        format!(r#"{{"lines":[{{"quantity":"{long}"}}]}}"#),
        format!(r#"{{"orderId":"a","{long}":{long}"#),
    ] {
        let reply = send_json(&edge, "POST", RESERVATIONS, body).await;
        reply.assert_problem(400, "INVALID_FIELD");
        assert!(reply.text().len() < 4_000, "{}", reply.text().len());
    }
    let query = format!("/api/v1/books?{}=1", "x".repeat(50_000));
    let reply = crate::http::get(&edge, &query).await;
    reply.assert_problem(400, "INVALID_FIELD");
    assert!(reply.text().len() < 4_000, "{}", reply.text().len());
}

#[tokio::test]
async fn a_field_that_does_not_fit_is_named() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    for (method, path, body, field) in [
        ("POST", RESERVATIONS, r#"{"orderId":1}"#, "orderId"),
        ("POST", RESERVATIONS, r#"{"orderId":null}"#, "orderId"),
        ("POST", RESERVATIONS, r#"{"order_id":"a"}"#, "order_id"),
        ("POST", RESERVATIONS, r#"{"orderId":"a","orderId":"b"}"#, "orderId"),
        ("POST", RESERVATIONS, r#"{"lines":{}}"#, "lines"),
        ("POST", RESERVATIONS, r#"{"lines":[{},{"quantity":"2"}]}"#, "lines[1].quantity"),
        ("POST", RESERVATIONS, r#"{"lines":[{"quantity":2147483648}]}"#, "lines[0].quantity"),
        ("POST", RESERVATIONS, r#"{"lines":[{"quantity":-2147483649}]}"#, "lines[0].quantity"),
        ("POST", RESERVATIONS, r#"{"lines":[{"quantity":1e3}]}"#, "lines[0].quantity"),
        ("POST", RESERVATIONS, r#"{"lines":[{"quantity":1.5}]}"#, "lines[0].quantity"),
        ("POST", RESERVATIONS, r#"{"lines":[{"price":1}]}"#, "lines[0].price"),
        ("POST", RESERVATIONS, "[]", "body"),
        ("POST", RESERVATIONS, r#"["a",[]]"#, "body"),
        ("POST", RESERVATIONS, r#"{"lines":[["9790000000018",2]]}"#, "lines[0]"),
        ("POST", "/api/v1/books", r#"{"price":[1,"EUR"]}"#, "price"),
        ("POST", RESERVATIONS, "null", "body"),
        ("POST", RESERVATIONS, "17", "body"),
        ("POST", "/api/v1/orders", r#"{"shipTo":{"zip":"1"}}"#, "shipTo.zip"),
        ("POST", "/api/v1/orders", r#"{"total":1}"#, "total"),
        ("POST", "/api/v1/books", r#"{"price":{"amountMinor":1}}"#, "price.currency"),
        ("POST", "/api/v1/books", r#"{"price":{"currency":"EUR"}}"#, "price.amountMinor"),
        ("POST", "/api/v1/books", r#"{"price":{"amountMinor":9223372036854775808}}"#, "price.amountMinor"),
        ("POST", "/api/v1/books", r#"{"id":7}"#, "id"),
        ("PATCH", "/api/v1/books/1", r#"{"title":null}"#, "title"),
        ("PATCH", "/api/v1/books/1", r#"{"sku":"9790000000018"}"#, "sku"),
        ("POST", "/api/v1/books/1/reviews", r#"{"createdAt":"now"}"#, "createdAt"),
        ("POST", "/api/v1/stock-adjustments", r#"{"delta":true}"#, "delta"),
    ] {
        let problem = send_json(&edge, method, path, body).await.assert_fields(&[field]);
        let rule = problem["errors"][0]["rule"].as_str().unwrap();
        assert!(!rule.contains(" at line ") && !rule.contains("struct "), "{body}: {rule}");
    }
    assert_eq!(shop.last(), "", "a body that can't be read must not reach a service");
}

#[tokio::test]
async fn a_field_left_out_is_the_service_s_to_judge() {
    let shop = Shop::default();
    assert_eq!(send_json(&edge(shop.clone()), "POST", RESERVATIONS, "{}").await.status, 201);
    assert_eq!(shop.last(), r#"ReserveStockRequest { order_id: "", lines: [] }"#);
}

/// The service says "was 0", which is not what was sent.
#[tokio::test]
async fn a_number_left_out_is_told_as_that() {
    for (path, fields, left_out, sent) in [
        ("/api/v1/books", &["author_id", "title"][..], r#"{"title":""}"#, r#"{"authorId":0}"#),
        ("/api/v1/books/1/reviews", &["rating", "text"], "{}", r#"{"rating":0}"#),
        ("/api/v1/stock-adjustments", &["delta", "sku"], "{}", r#"{"delta":0}"#),
        (
            RESERVATIONS,
            &["lines[1].quantity"],
            r#"{"lines":[{"quantity":1},{}]}"#,
            r#"{"lines":[{},{"quantity":0}]}"#,
        ),
        ("/api/v1/orders", &["lines[0].quantity"], r#"{"lines":[{}]}"#, r#"{"lines":[{"quantity":0}]}"#),
    ] {
        let refused =
            |field: &&str| FieldError { field: (*field).into(), rule: "must be better, was 0".into() };
        let edge = edge(Shop::refusing(Refusal::fields(fields.iter().map(refused).collect())));
        let rules = async |body: &'static str| {
            let problem = send_json(&edge, "POST", path, body).await.assert_problem(400, "INVALID_FIELD");
            let errors = problem["errors"].as_array().unwrap().clone();
            errors.iter().map(|error| error["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let mut expected = vec!["must be better, was 0"; fields.len()];
        assert_eq!(rules(sent).await, expected, "{path}");
        expected[0] = "must be given";
        assert_eq!(rules(left_out).await, expected, "{path}");
    }
}

#[tokio::test]
async fn a_body_over_one_mebibyte_is_refused() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let body = |size: usize| format!("{{\"orderId\":\"{}\"}}", "x".repeat(size - 14));
    assert_eq!(send_json(&edge, "POST", RESERVATIONS, body(1 << 20)).await.status, 201);

    send_json(&edge, "POST", RESERVATIONS, body((1 << 20) + 1))
        .await
        .assert_problem(413, "MESSAGE_TOO_LARGE");
    // One that doesn't say its size, in pieces, and one without an end.
    let piece = Bytes::from(vec![b' '; 1 << 16]);
    let pieces = stream::iter(vec![piece.clone(); 17].into_iter().map(Ok::<_, std::io::Error>));
    let reply = send_json(&edge, "POST", RESERVATIONS, Body::from_stream(pieces)).await;
    reply.assert_problem(413, "MESSAGE_TOO_LARGE");
    let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
    let reply = send_json(&edge, "POST", RESERVATIONS, Body::from_stream(endless)).await;
    reply.assert_problem(413, "MESSAGE_TOO_LARGE");
    assert_eq!(shop.asked.lock().unwrap().len(), 1);
}

/// A body that says it is large and sends nothing.
struct Announced;

impl HttpBody for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(2_000_000)
    }
}

#[tokio::test]
async fn who_asks_before_sending_is_answered_without_being_read() {
    let headers = [("content-type", "application/json"), ("expect", "100-continue")];
    let announced = Body::new(Announced);
    let reply = send(&edge(Shop::default()), request("POST", RESERVATIONS, &headers, announced)).await;
    reply.assert_problem(413, "MESSAGE_TOO_LARGE");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let parts = stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("reset"))]);
    let reply = send_json(&edge(Shop::default()), "POST", RESERVATIONS, Body::from_stream(parts)).await;
    reply.assert_problem(400, "MALFORMED_REQUEST");
}

#[tokio::test]
async fn only_json_is_read() {
    let edge = edge(Shop::default());
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "multipart/form-data; boundary=x")],
    ] {
        let reply = send(&edge, request("POST", RESERVATIONS, headers, "{}")).await;
        reply.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    for media_type in ["application/json; charset=utf-8", "application/merge-patch+json"] {
        let headers = [("content-type", media_type)];
        assert_eq!(send(&edge, request("PATCH", "/api/v1/books/1", &headers, "{}")).await.status, 200);
    }
}
