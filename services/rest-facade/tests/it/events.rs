//! Server-sent events.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use chassis::Shutdown;
use http_body_util::BodyExt;
use proto::{Reason, Refusal};
use rest_facade::Config;

use crate::fakes::Shop;
use crate::http::{edge, get, get_with, open, request};

const STOCK: &str = "/api/v1/books/1/stock/events";
const ORDER: &str = "/api/v1/orders/ord_1/events";

async fn watch(edge: &Router, path: &str) -> Response {
    let response = open(edge, request("GET", path, &[], Body::empty())).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-cache");
    response
}

/// The next event as it is on the wire; `None` at the end.
async fn next(response: &mut Response) -> Option<String> {
    let frame = response.body_mut().frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

/// The value of a field of an event.
fn field<'a>(event: &'a str, name: &str) -> &'a str {
    event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
}

#[tokio::test]
async fn the_stock_comes_at_once() {
    let mut response = watch(&edge(Shop::default()), STOCK).await;
    let event = next(&mut response).await.unwrap();
    assert_eq!(field(&event, "event"), "stock");
    assert_eq!(field(&event, "data"), r#"{"bookId":1,"inStock":1000000}"#);
    assert_eq!(field(&event, "id").len(), 16);
    assert!(event.ends_with("\n\n"));
}

#[tokio::test]
async fn a_stream_ends_at_shutdown_and_says_so() {
    let shutdown = Shutdown::new();
    let edge = rest_facade::router(Shop::default().services(), &Config::default(), shutdown.clone());
    let mut response = watch(&edge, STOCK).await;
    next(&mut response).await.unwrap();
    shutdown.begin();
    let event = next(&mut response).await.unwrap();
    assert_eq!(field(&event, "event"), "problem");
    let problem: serde_json::Value = serde_json::from_str(field(&event, "data")).unwrap();
    assert_eq!(problem["reason"], "SHUTTING_DOWN");
    assert_eq!(next(&mut response).await, None);
}

#[tokio::test]
async fn an_order_s_stream_ends_with_the_order() {
    let reply = get(&edge(Shop::default()), ORDER).await;
    let events: Vec<_> = reply.text().split_terminator("\n\n").collect();
    assert_eq!(events.iter().map(|event| field(event, "event")).collect::<Vec<_>>(), ["order", "end"]);
    let order: serde_json::Value = serde_json::from_str(field(events[0], "data")).unwrap();
    assert_eq!(order["state"], "PLACED");
    crate::schema::assert_fits(&crate::schema::named("Order"), &order);
}

#[tokio::test]
async fn a_client_that_comes_back_is_told_news_only() {
    let edge = edge(Shop::default());
    let reply = get(&edge, ORDER).await;
    let id = field(reply.text(), "id");
    let again = get_with(&edge, ORDER, &[("last-event-id", id)]).await;
    assert!(!again.text().contains("event: order"), "{}", again.text());
    let stale = get_with(&edge, ORDER, &[("last-event-id", "0000000000000000")]).await;
    assert_eq!(stale.text(), reply.text());
}

#[tokio::test]
async fn the_work_ends_when_the_client_leaves() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let idle = Arc::strong_count(&shop.running);
    let mut response = watch(&edge, STOCK).await;
    next(&mut response).await.unwrap();
    assert_eq!(Arc::strong_count(&shop.running), idle + 1);
    drop(response);
    assert_eq!(Arc::strong_count(&shop.running), idle);
}

#[tokio::test]
async fn a_stream_that_can_t_start_is_a_problem() {
    let edge = edge(Shop::refusing(Refusal::new(Reason::UnknownSku, "no book 1")));
    get(&edge, STOCK).await.assert_problem(404, "UNKNOWN_SKU");
}

#[tokio::test]
async fn a_stream_may_outlive_its_deadline() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    watch(&edge, STOCK).await;
    assert!(shop.deadline.lock().unwrap().is_none());
}
