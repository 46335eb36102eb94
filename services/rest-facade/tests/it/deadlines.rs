//! Nothing takes longer than it may.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use chassis::Shutdown;
use futures_util::stream;
use rest_facade::Config;

use crate::fakes::Shop;
use crate::http::{edge, get, get_with, request, send};

#[tokio::test]
async fn a_service_that_stalls_is_given_up() {
    let edge = edge(Shop::stalling());
    for path in
        ["/api/v1/books/1", "/api/v1/books", "/api/v1/books/1/stock/events", "/api/v1/orders/ord_1/events"]
    {
        let reply = get_with(&edge, path, &[("request-timeout", "0.01")]).await;
        reply.assert_problem(504, "DEADLINE_EXCEEDED");
    }
}

#[tokio::test]
async fn the_default_holds_where_a_request_names_none() {
    let config = Config { rest_deadline_ms: 10, ..Config::default() };
    let edge = rest_facade::router(Shop::stalling().services(), &config, Shutdown::new());
    get(&edge, "/api/v1/books/1").await.assert_problem(504, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
    let stalled = Body::from_stream(futures_util::StreamExt::chain(first, stream::pending()));
    let headers = [("content-type", "application/json"), ("request-timeout", "0.01")];
    let reply =
        send(&edge(Shop::default()), request("POST", "/api/v1/reservations", &headers, stalled)).await;
    reply.assert_problem(504, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn the_deadline_goes_on_to_the_service() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    for (header, longest) in [(None, 10), (Some("2.5"), 3), (Some("60"), 60), (Some("86400"), 60)] {
        let headers: Vec<_> = header.map(|value| ("request-timeout", value)).into_iter().collect();
        assert_eq!(get_with(&edge, "/api/v1/books/1", &headers).await.status, 200);
        let left = shop.deadline.lock().unwrap().take().unwrap().left();
        assert!(left <= Duration::from_secs(longest), "{header:?}: {left:?}");
        // Half a minute of doubt for a machine that stands still; enough to tell 60 from 10.
        assert!(longest < 60 || left > Duration::from_secs(30), "{header:?}: {left:?}");
    }
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused() {
    let edge = edge(Shop::default());
    for value in ["", "0", "-1", "soon", "1e3", "inf", "NaN", "1,5", "5s"] {
        let reply = get_with(&edge, "/api/v1/books/1", &[("request-timeout", value)]).await;
        reply.assert_fields(&["Request-Timeout"]);
    }
}
