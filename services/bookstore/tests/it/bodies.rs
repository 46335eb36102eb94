//! Bodies that no style can read: each says so in its own form, for the same reason.

use serde_json::{Value, json};

use crate::harness::{Suite, both};
use crate::http::{self, Reply, Version};
use crate::parity::rest;

const JSON: &str = "application/json";

async fn post(suite: &Suite, graphql: bool, kind: &str, body: impl Into<bytes::Bytes>) -> Reply {
    let (at, path) = if graphql { (suite.graphql, "/graphql") } else { (suite.rest, "/api/v1/reservations") };
    http::send(Version::Http1, at, http::request("POST", path, &[("content-type", kind)], body)).await
}

/// The reason of a problem or of GraphQL's only error, and what it says.
fn refused(reply: &Reply) -> (u16, String, String) {
    let body = reply.json();
    if body.get("errors").is_some_and(|errors| errors[0].get("extensions").is_some()) {
        let error = &body["errors"][0];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        return (reply.status, text(&error["extensions"]["reason"]), text(&error["message"]));
    }
    let problem = rest::refusal(reply);
    (reply.status, problem.reason, problem.message)
}

#[tokio::test]
async fn broken_json_is_malformed_and_its_place_is_named() {
    both(async |suite| {
        for graphql in [false, true] {
            let field = if graphql { "query" } else { "orderId" };
            for broken in ["{\"x\": \"{ book", "{\"x\" 1}", "", "\u{feff}{}", "nul", "{\"x\": \"y\"} {}"] {
                let broken = broken.replace("x", field);
                let reply = post(suite, graphql, JSON, broken.clone()).await;
                let (status, reason, message) = refused(&reply);
                assert_eq!((status, reason.as_str()), (400, "MALFORMED_REQUEST"), "{broken}: {message}");
                assert!(message.contains("line 1"), "{broken}: {message}");
            }
        }
        let reply = post(suite, true, JSON, json!({ "query": "{ book(id: 1) {" }).to_string()).await;
        let (_, reason, _) = refused(&reply);
        assert_eq!(reason, "MALFORMED_REQUEST");
        assert!(reply.json()["errors"][0]["locations"][0]["line"].is_u64(), "{}", reply.json());
    })
    .await;
}

#[tokio::test]
async fn json_nested_without_end_is_refused() {
    both(async |suite| {
        for graphql in [false, true] {
            let reply = post(suite, graphql, JSON, "[".repeat(100_000)).await;
            assert_eq!(reply.status, 400, "{reply:?}");
            let within = format!("{{\"orderId\":{}", "{\"x\":".repeat(100_000));
            assert_eq!(post(suite, graphql, JSON, within).await.status, 400);
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    both(async |suite| {
        let large = format!("{{\"query\":\"{}\"}}", " ".repeat(proto::MAX_MESSAGE_BYTES));
        for graphql in [false, true] {
            let (status, reason, _) = refused(&post(suite, graphql, JSON, large.clone()).await);
            assert_eq!((status, reason.as_str()), (413, "MESSAGE_TOO_LARGE"));
        }
    })
    .await;
}

#[tokio::test]
async fn other_media_types_are_not_read() {
    both(async |suite| {
        for graphql in [false, true] {
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
            {
                let body = json!({ "query": "{ __typename }" }).to_string();
                let (status, reason, _) = refused(&post(suite, graphql, kind, body).await);
                assert_eq!((status, reason.as_str()), (415, "UNSUPPORTED_MEDIA_TYPE"), "{kind}");
            }
        }
    })
    .await;
}
