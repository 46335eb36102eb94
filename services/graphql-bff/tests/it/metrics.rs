//! What is counted of operations.

use axum::body::Body;
use chassis::metrics::Metrics;
use graphql_bff::Config;
use http::Request;
use http_body_util::BodyExt;
use proto::{Reason, Refusal};
use serde_json::json;
use tower::ServiceExt;

use crate::fake::{App, Fake};
use crate::socket::{Client, WATCH};

async fn lines(metrics: &Metrics, start: &str) -> Vec<String> {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let body = metrics.router().oneshot(request).await.unwrap().into_body();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
}

async fn counts(metrics: &Metrics) -> Vec<String> {
    lines(metrics, "graphql_server_operation_duration_seconds_count").await
}

async fn live(metrics: &Metrics) -> Vec<String> {
    lines(metrics, "graphql_server_subscriptions_live ").await
}

fn count(name: &str, ty: &str, outcome: &str, count: u32) -> String {
    format!(
        "{{graphql_operation_name=\"{name}\",graphql_operation_type=\"{ty}\",outcome=\"{outcome}\"}} {count}"
    )
}

fn counted(fake: Fake) -> (App, Metrics) {
    let metrics = Metrics::new();
    let config = Config { metrics: metrics.clone(), ..Config::default() };
    (App::over(fake, &config), metrics)
}

/// Waits for what another task is about to do.
async fn until(wanted: &[String], mut look: impl AsyncFnMut() -> Vec<String>) {
    while look().await != wanted {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn operations_are_counted_by_published_name_type_and_outcome() {
    let (app, metrics) = counted(Fake::default());
    let detail = graphql_bff::OPERATIONS.iter().find(|operation| operation.name == "BookDetail").unwrap();
    for _ in 0..2 {
        app.post(&json!({ "query": detail.text, "variables": { "id": 1 } })).await;
    }
    // Refused for its variables: which operation it is, is known by then.
    app.post(&json!({ "query": detail.text, "variables": { "id": "one" } })).await;
    app.query("query BookDetail { __typename }").await;
    app.query("{ __typename }").await;
    app.query("mutation ReserveStock { __typename }").await;
    app.query("query Mine { __typename }").await;
    app.query("query Mine { nothing }").await;
    app.query("{").await;
    app.post(&json!({ "operationName": "Mine" })).await;
    assert_eq!(
        counts(&metrics).await,
        [
            count("BookDetail", "query", "complete", 3),
            count("BookDetail", "query", "refused", 1),
            count("ReserveStock", "mutation", "complete", 1),
            count("_OTHER", "", "refused", 3),
            count("_OTHER", "query", "complete", 2),
        ]
    );
}

#[tokio::test]
async fn errors_beside_data_and_in_its_place_are_told_apart() {
    let refused = Refusal::new(Reason::UpstreamUnavailable, "gone").into();
    let (app, metrics) = counted(Fake { inventory_fails: Some(refused), ..Fake::default() });
    app.query("{ book(id: 1) { title stock { inStock } } }").await;
    app.query("mutation { adjustStock(input: { sku: \"9790000000018\", delta: 1 }) { inStock } }").await;
    assert_eq!(
        counts(&metrics).await,
        [count("_OTHER", "mutation", "failed", 1), count("_OTHER", "query", "partial", 1)]
    );
}

#[tokio::test]
async fn an_operation_whose_time_is_over_has_expired() {
    let metrics = Metrics::new();
    let config = Config { graphql_deadline_ms: 20, metrics: metrics.clone(), ..Config::default() };
    let app = App::over(Fake { hangs: true, ..Fake::default() }, &config);
    app.query("{ book(id: 1) { title } }").await;
    assert_eq!(counts(&metrics).await, [count("_OTHER", "query", "expired", 1)]);
}

#[tokio::test]
async fn subscriptions_live_until_they_end() {
    let (app, metrics) = counted(Fake::default());
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    client.hear().await;
    assert_eq!(live(&metrics).await, ["1"]);
    client.say(json!({ "id": "s", "type": "complete" })).await;
    until(&["0".to_owned()], async || live(&metrics).await).await;
    client.subscribe("o", "subscription OrderChanged { orderChanged(id: \"o1\") { state } }").await;
    let mut expected = vec![
        count("OrderChanged", "subscription", "complete", 1),
        count("_OTHER", "subscription", "cancelled", 1),
    ];
    until(&expected, async || counts(&metrics).await).await;
    client.subscribe("f", WATCH).await;
    while client.hear().await["id"] != "f" {}
    let watch = app.fake.watches.lock().unwrap().pop().unwrap();
    watch.send(Err(Refusal::new(Reason::ShuttingDown, "going down").into())).unwrap();
    expected.push(count("_OTHER", "subscription", "failed", 1));
    until(&expected, async || counts(&metrics).await).await;
    assert_eq!(live(&metrics).await, ["0"]);
}

#[tokio::test]
async fn callers_make_no_rows_of_their_own() {
    let (app, metrics) = counted(Fake::default());
    for n in 0..1_000 {
        app.query(&format!("query Mine{n} {{ __typename }}")).await;
    }
    assert_eq!(counts(&metrics).await, [count("_OTHER", "query", "complete", 1_000)]);
}
