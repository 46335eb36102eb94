//! What writes ask the services and answer.

use axum::body::Body;
use serde_json::json;

use crate::fakes::Shop;
use crate::http::{edge, request, send, send_json};

#[tokio::test]
async fn a_reservation_is_made() {
    let shop = Shop::default();
    let body = r#"{"orderId":"order-1","lines":[{"sku":"9790000000018","quantity":2},{"sku":"9790000000025","quantity":1}]}"#;
    let reply = send_json(&edge(shop.clone()), "POST", "/api/v1/reservations", body).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), "/api/v1/reservations/rsv_1");
    assert_eq!(
        reply.text(),
        r#"{"reservationId":"rsv_1","state":"HELD","expiresAt":"2026-11-30T11:04:05.000Z"}"#
    );
    assert_eq!(
        shop.last(),
        r#"ReserveStockRequest { order_id: "order-1", lines: [ReservationLine { sku: "9790000000018", quantity: 2 }, ReservationLine { sku: "9790000000025", quantity: 1 }] }"#
    );
}

#[tokio::test]
async fn a_reservation_is_confirmed_or_released_without_a_body() {
    let edge = edge(Shop::default());
    for (verb, state) in [("confirm", "CONFIRMED"), ("release", "RELEASED")] {
        let path = format!("/api/v1/reservations/rsv_1/{verb}");
        let reply = send(&edge, request("POST", &path, &[], Body::empty())).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json()["state"], state);
        assert_eq!(reply.header("etag"), "");
    }
}

#[tokio::test]
async fn an_order_is_placed_under_its_key() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let body = json!({
        "lines": [{"sku": "9790000000018", "quantity": 2}],
        "shipTo": {"name": "Ana Brook", "postalCode": "3011"},
    });
    let reply = send_json(&edge, "POST", "/api/v1/orders", body.to_string()).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), "/api/v1/orders/ord_1");
    assert_eq!(reply.json()["lines"][0]["quantity"], 2);
    let message = shop.last();
    assert!(message.contains(r#"request_id: "key-1""#), "{message}");
    assert!(message.contains(r#"name: "Ana Brook", street: "", city: "", postal_code: "3011""#), "{message}");
}

#[tokio::test]
async fn an_order_needs_one_key_of_printable_ascii() {
    let edge = edge(Shop::default());
    let body = r#"{"lines":[]}"#;
    let json = ("content-type", "application/json");
    for headers in [
        &[json][..],
        &[json, ("idempotency-key", "ключ")],
        &[json, ("idempotency-key", "a"), ("idempotency-key", "b")],
    ] {
        send(&edge, request("POST", "/api/v1/orders", headers, body))
            .await
            .assert_fields(&["Idempotency-Key"]);
    }
}

#[tokio::test]
async fn an_order_is_cancelled() {
    let edge = edge(Shop::default());
    let reply = send(&edge, request("POST", "/api/v1/orders/ord_1/cancel", &[], Body::empty())).await;
    assert_eq!(reply.json()["orderId"], "ord_1");
}

#[tokio::test]
async fn a_book_is_added_changed_and_removed() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let body = r#"{"sku":"9790001000017","title":"Tidewater","authorId":1,"price":{"amountMinor":1499,"currency":"EUR"}}"#;
    let reply = send_json(&edge, "POST", "/api/v1/books", body).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), "/api/v1/books/51");
    assert_eq!(reply.json()["title"], "Tidewater");

    let reply = send_json(&edge, "PATCH", "/api/v1/books/1", r#"{"title":"Embers"}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["title"]), (200, &json!("Embers")));
    assert_eq!(
        shop.last(),
        r#"UpdateBookRequest { book_id: 1, title: Some("Embers"), author_id: None, price: None, expected_version: None }"#
    );

    let reply = send(&edge, request("DELETE", "/api/v1/books/1", &[], Body::empty())).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
}

#[tokio::test]
async fn stock_and_reviews_are_added() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let reply =
        send_json(&edge, "POST", "/api/v1/stock-adjustments", r#"{"sku":"9790000000018","delta":-3}"#).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (200, r#"{"bookId":1,"inStock":1000000}"#));
    assert!(shop.last().contains("delta: -3"));

    let body = r#"{"rating":4,"reviewer":"Ana Brook","text":"Fine."}"#;
    let reply = send_json(&edge, "POST", "/api/v1/books/1/reviews", body).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["text"]), (201, &json!("Fine.")));
}
