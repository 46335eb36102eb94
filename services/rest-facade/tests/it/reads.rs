//! What reads answer, byte for byte.

use axum::body::Body;
use serde_json::json;

use crate::fakes::Shop;
use crate::http::{edge, get, get_with, request, send};

#[tokio::test]
async fn the_sizes_of_the_published_measurement_hold() {
    let edge = edge(Shop::default());
    for (path, body) in [
        (
            "/api/v1/books/1",
            r#"{"id":1,"sku":"9790000000018","title":"Ember","authorId":1,"price":{"amountMinor":2999,"currency":"EUR"}}"#,
        ),
        ("/api/v1/authors/1", r#"{"id":1,"name":"Mara Lindqvist","country":"SE","born":1961}"#),
        ("/api/v1/books/1/stock", r#"{"bookId":1,"inStock":1000000}"#),
        (
            "/api/v1/books/1/reviews?limit=1",
            r#"{"reviews":[{"id":1,"rating":5,"reviewer":"Ana Brook","text":"Read it \"twice\"."}]}"#,
        ),
    ] {
        let reply = get(&edge, path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.text(), body);
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("content-length"), body.len().to_string());
    }
}

#[tokio::test]
async fn a_reservation_and_an_order_have_all_their_parts() {
    let edge = edge(Shop::default());
    let reply = get(&edge, "/api/v1/reservations/rsv_1").await;
    let reservation = json!({
        "reservationId": "rsv_1", "orderId": "order-1", "state": "HELD", "expiresAt": "2026-11-30T11:04:05.000Z",
        "lines": [{"sku": "9790000000018", "quantity": 2}],
    });
    assert_eq!(reply.json(), reservation);

    let status = json!({
        "orderId": "ord_1", "state": "PLACED", "total": {"amountMinor": 5998, "currency": "EUR"}, "lineCount": 1,
        "createdAt": "2026-11-30T11:04:05.000Z", "updatedAt": "2026-11-30T11:04:06.000Z",
    });
    let mut full = status.clone();
    full["lines"] = json!([{
        "sku": "9790000000018", "bookId": 1, "title": "Ember", "quantity": 2,
        "unitPrice": {"amountMinor": 2999, "currency": "EUR"}, "lineTotal": {"amountMinor": 5998, "currency": "EUR"},
    }]);
    full["shipTo"] = json!({
        "name": "Ana Brook", "street": "Hafengasse 3", "city": "Bern", "postalCode": "3011", "country": "CH",
    });
    let mut history = full.clone();
    history["history"] = json!([{
        "sequence": 1, "occurredAt": "2026-11-30T11:04:05.000Z", "kind": "PLACED", "actor": "customer",
        "note": "placed",
    }]);
    for (query, order) in
        [("?view=status", &status), ("", &full), ("?view=full", &full), ("?view=history", &history)]
    {
        assert_eq!(&get(&edge, &format!("/api/v1/orders/ord_1{query}")).await.json(), order, "{query}");
    }
    crate::schema::assert_fits(&crate::schema::named("Order"), &history);
    get(&edge, "/api/v1/orders/ord_1?view=all").await.assert_fields(&["view"]);
}

#[tokio::test]
async fn the_screen_is_whole_or_says_what_is_missing() {
    let whole = get(&edge(Shop::default()), "/api/v1/screens/book-detail/1").await.json();
    assert_eq!(whole["stock"], json!({"bookId": 1, "inStock": 1_000_000}));
    assert_eq!(whole["author"]["name"], "Mara Lindqvist");
    assert_eq!(whole["reviews"].as_array().unwrap().len(), 2);
    assert!(whole.get("warnings").is_none());

    let partial = edge(Shop { no_stock: true, ..Shop::default() });
    let partial = get(&partial, "/api/v1/screens/book-detail/1?reviews=0").await.json();
    assert!(partial["stock"].is_null() && partial.as_object().unwrap().contains_key("stock"));
    assert_eq!(partial["warnings"][0]["reason"], "UPSTREAM_UNAVAILABLE");
    assert_eq!(partial["reviews"], json!([]));
}

#[tokio::test]
async fn a_page_tells_the_next_one_in_the_body_and_as_a_link() {
    let shop = Shop { more: true, ..Shop::default() };
    let edge = edge(shop.clone());
    for (path, link) in [
        ("/api/v1/books", "</api/v1/books?page_token=t%262>"),
        ("/api/v1/books?page_token=a&page_size=2", "</api/v1/books?page_size=2&page_token=t%262>"),
        ("/api/v1/authors?page_size=1", "</api/v1/authors?page_size=1&page_token=t%262>"),
        ("/api/v1/orders", "</api/v1/orders?page_token=t%262>"),
        ("/api/v1/books/1/reviews?limit=2", "</api/v1/books/1/reviews?limit=2&page_token=t%262>"),
    ] {
        let reply = get(&edge, path).await;
        assert_eq!(reply.header("link"), format!("{link}; rel=\"next\""));
        assert_eq!(reply.json()["nextPageToken"], "t&2");
        // The link leads back to the list with the token as it was given.
        let target = link.trim_start_matches('<').trim_end_matches('>');
        assert_eq!(get(&edge, target).await.status, 200);
        assert!(shop.last().contains(r#"page_token: "t&2""#), "{}", shop.last());
    }
}

#[tokio::test]
async fn the_last_page_has_no_next_one() {
    let reply = get(&edge(Shop::default()), "/api/v1/books").await;
    assert_eq!(reply.header("link"), "");
    assert!(reply.json().get("nextPageToken").is_none());
}

#[tokio::test]
async fn parameters_reach_the_service() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    for (path, message) in [
        ("/api/v1/books?page_size=7&page_token=x%20y", r#"page_size: 7, page_token: "x y""#),
        ("/api/v1/books/3/reviews?limit=2", r#"book_id: 3, page_size: 2, page_token: """#),
        ("/api/v1/books/3/reviews?page_size=4&page_token=t", r#"book_id: 3, page_size: 4, page_token: "t""#),
        ("/api/v1/screens/book-detail/4?reviews=9", "book_id: 4, review_count: 9"),
        ("/api/v1/reservations/a%2Fb%20c", r#"reservation_id: "a/b c", order_id: """#),
    ] {
        get(&edge, path).await;
        assert!(shop.last().contains(message), "{path}: {}", shop.last());
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let edge = edge(Shop::default());
    for path in ["/api/v1/books/1", "/api/v1/books", "/openapi.json", "/api/v1/books/99"] {
        let full = get(&edge, path).await;
        let head = send(&edge, request("HEAD", path, &[], Body::empty())).await;
        assert_eq!(head.status, full.status);
        assert!(head.body.is_empty());
        assert_eq!(head.headers, full.headers, "{path}");
        assert_eq!(head.header("content-length"), full.body.len().to_string());
    }
}

#[tokio::test]
async fn the_trace_goes_on_to_the_service() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for path in ["/api/v1/books/1", "/api/v1/books/1/stock/events"] {
        let response =
            crate::http::open(&edge, request("GET", path, &[("traceparent", trace)], Body::empty())).await;
        assert_eq!(response.status(), 200);
        assert_eq!(shop.trace.lock().unwrap().take().unwrap().0, trace);
    }
    assert_eq!(get_with(&edge, "/api/v1/books/1", &[("traceparent", "x")]).await.status, 200);
    assert!(shop.trace.lock().unwrap().is_none());
}
