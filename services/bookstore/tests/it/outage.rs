//! What the suite does while a part of it is gone or hangs.

use chassis::probe::probe;
use prost::Message;
use proto::catalog::v1::GetBookDetailResponse;
use rustix::process::Signal;
use tonic::Code;

use crate::grpc::{CATALOG, GET_DETAIL, ORDERING, call, call_web, detail, status};
use crate::harness::{LIMIT, Process, Shape, Suite, is_ready, until};
use crate::http::{self, Version};

#[tokio::test]
async fn an_edge_does_without_a_service_that_died_and_finds_it_again() {
    let mut suite = Suite::start(Shape::Apart, &[]).await;
    let stock = async |at| http::get(at, "/api/v1/books/1/stock").await;
    let at = suite.grpc("bookstore.inventory.v1.");
    assert_eq!(stock(suite.rest).await.status, 200);

    suite.processes[0].signal(Signal::KILL);
    until("inventory is gone", async || (!suite.processes[0].is_running()).then_some(())).await;
    let reply = stock(suite.rest).await;
    assert_eq!((reply.status, &reply.json()["reason"]), (503, &"UPSTREAM_UNAVAILABLE".into()));
    assert_eq!(reply.header("retry-after"), "1");
    // What needs no stock is as it was, and a screen shows what there is.
    assert_eq!(http::get(suite.rest, "/api/v1/books/1").await.status, 200);
    let screen = http::get(suite.rest, "/api/v1/screens/book-detail/1").await;
    assert_eq!((screen.status, &screen.json()["stock"]), (200, &serde_json::Value::Null));
    assert_eq!(screen.json()["warnings"].as_array().map(Vec::len), Some(1));
    let kind = "application/grpc-web+proto";
    let reply = call_web(suite.grpc(CATALOG), GET_DETAIL, kind, http::frame(&detail())).await;
    let length = u32::from_be_bytes(reply.body[1..5].try_into().unwrap());
    let message = &reply.body[5..5 + usize::try_from(length).unwrap()];
    assert!(GetBookDetailResponse::decode(message).unwrap().stock_unavailable);
    let query = serde_json::json!({ "query": "{ book(id: 1) { title stock { inStock } } }" });
    let partial = http::post_json(suite.graphql, "/graphql", &query).await.json();
    assert!(partial["data"]["book"]["title"].is_string(), "{partial}");
    assert_eq!(partial["errors"][0]["extensions"]["reason"], "UPSTREAM_UNAVAILABLE", "{partial}");
    let order = r#"{"lines":[{"sku":"9790000000018","quantity":1}]}"#;
    let headers = [("content-type", "application/json"), ("idempotency-key", "without inventory")];
    let place = async || {
        http::send(Version::Http1, suite.rest, http::request("POST", "/api/v1/orders", &headers, order)).await
    };
    let reply = place().await;
    assert_eq!((reply.status, &reply.json()["reason"]), (503, &"UPSTREAM_UNAVAILABLE".into()));

    // Those who need inventory say that they are not ready, and why; catalog does without.
    for (who, at) in
        [("rest-facade", suite.rest), ("graphql-bff", suite.graphql), ("ordering", suite.grpc(ORDERING))]
    {
        until(who, async || (!is_ready(at).await).then_some(())).await;
        let reply = http::get(at, "/readyz").await;
        assert_eq!((reply.status, reply.body.as_ref()), (503, &b"inventory is missing\n"[..]), "{who}");
    }
    let health = probe(&format!("grpc://{}", suite.grpc(ORDERING)), LIMIT).await;
    assert!(health.unwrap_err().contains("NOT_SERVING"));
    assert!(is_ready(suite.grpc(CATALOG)).await);

    let port = format!("--port={}", at.port());
    let mut inventory = Process::start(&["inventory", &port, "--metrics-port=0", "--threads=2"]);
    assert_eq!(inventory.address("inventory").await, at);
    until("the edge finds it", async || (stock(suite.rest).await.status == 200).then_some(())).await;
    // The order was not placed, and can be now.
    until("ordering finds it", async || (place().await.status == 201).then_some(())).await;
    for at in [suite.rest, suite.graphql, suite.grpc(ORDERING)] {
        until("ready again", async || is_ready(at).await.then_some(())).await;
    }
    assert_eq!(probe(&format!("grpc://{}", suite.grpc(ORDERING)), LIMIT).await, Ok(()));
    assert_eq!(probe(&format!("http://{}", suite.rest), LIMIT).await, Ok(()));
}

#[tokio::test]
async fn a_deadline_is_passed_on_to_a_service_that_hangs() {
    let suite = Suite::start(Shape::Apart, &[]).await;
    let inventory = &suite.processes[0];
    let stock_within = async |timeout| {
        let stock = http::request("GET", "/api/v1/books/1/stock", &[("request-timeout", timeout)], "");
        http::send(Version::Http1, suite.rest, stock).await
    };
    assert_eq!(stock_within("10").await.status, 200);

    inventory.stop().await;
    let reply = stock_within("0.2").await;
    assert_eq!((reply.status, &reply.json()["reason"]), (504, &"DEADLINE_EXCEEDED".into()));
    // Catalog is not held up by it, and who can do without it does, in the time that there is.
    assert_eq!(http::get(suite.rest, "/api/v1/books/1").await.status, 200);
    let timeout = [("grpc-timeout", "2S")];
    let reply = call(suite.grpc(CATALOG), GET_DETAIL, &timeout, http::frame(&detail())).await;
    assert_eq!(status(&reply.headers, &reply.trailers).code(), Code::Ok);
    assert!(GetBookDetailResponse::decode(&reply.body[5..]).unwrap().stock_unavailable);
    for path in ["/api/v1/screens/book-detail/1", "/api/v1/screens/catalog?page_size=2"] {
        let screen = http::request("GET", path, &[("request-timeout", "2")], "");
        let reply = http::send(Version::Http1, suite.rest, screen).await;
        assert_eq!(
            (reply.status, &reply.json()["warnings"][0]["reason"]),
            (200, &"UPSTREAM_UNAVAILABLE".into())
        );
    }
    let query = serde_json::json!({ "query": "{ book(id: 1) { title stock { inStock } } }" });
    let headers = [("content-type", "application/json"), ("request-timeout", "2")];
    let asked = http::request("POST", "/graphql", &headers, query.to_string());
    let partial = http::send(Version::Http1, suite.graphql, asked).await.json();
    assert!(partial["data"]["book"]["title"].is_string(), "{partial}");
    assert_eq!(partial["errors"][0]["extensions"]["reason"], "DEADLINE_EXCEEDED", "{partial}");

    inventory.signal(Signal::CONT);
    until("inventory answers again", async || (stock_within("1").await.status == 200).then_some(())).await;
}
