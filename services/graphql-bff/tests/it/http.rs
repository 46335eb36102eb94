//! The rules of HTTP.

use axum::body::{Body, Bytes};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE, VARY};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::fake::{App, reason};

const NEW: &str = "application/graphql-response+json";
const OLD: &str = "application/json";
const MUTATION: &str =
    "mutation { reserveStock(input: {orderId: \"o\", lines: [{sku: \"1\", quantity: 1}]}) { state } }";

fn post(content_type: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post("/graphql").header(CONTENT_TYPE, content_type).body(body.into()).unwrap()
}

fn encode(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}

fn get(query: &str) -> Request<Body> {
    Request::get(format!("/graphql?{query}")).header(ACCEPT, NEW).body(Body::empty()).unwrap()
}

async fn json(app: &App, request: Request<Body>) -> (StatusCode, Value) {
    let (status, headers, body) = app.send(request).await;
    assert!(headers[CONTENT_TYPE].to_str().unwrap().contains("json"));
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn only_json_is_executed() {
    let app = App::new();
    let body = json!({ "query": MUTATION }).to_string();
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/graphql",
        "application/json; charset=latin1",
    ] {
        let (status, reply) = json(&app, post(content_type, body.clone())).await;
        assert_eq!(
            (status, reason(&reply).as_str()),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE")
        );
    }
    let form = Request::post("/graphql").body(Body::from(body.clone())).unwrap();
    assert_eq!(json(&app, form).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(app.fake.calls(), Vec::<String>::new());
    for content_type in ["application/json", "application/json; charset=utf-8"] {
        assert_eq!(json(&app, post(content_type, body.clone())).await.0, StatusCode::OK);
    }
    assert_eq!(app.fake.calls().len(), 2);
}

#[tokio::test]
async fn a_body_is_bounded_whether_or_not_it_says_its_length() {
    let app = App::new();
    let large = format!("{{\"query\":\"{{__typename}}\",\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let chunks = (0..1_000).map(|_| Ok::<_, std::io::Error>(Bytes::from("[".repeat(64 << 10))));
    for body in [Body::from(large), Body::from_stream(futures_util::stream::iter(chunks.collect::<Vec<_>>()))]
    {
        let (status, reply) = json(&app, post(OLD, body)).await;
        assert_eq!((status, reason(&reply).as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "MESSAGE_TOO_LARGE"));
        assert_eq!(reply["errors"][0]["extensions"]["code"], "RESOURCE_EXHAUSTED");
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_named() {
    let app = App::new();
    for (body, names) in [
        (r#"{"query":"{__typename}","qeury":1}"#.to_owned(), "unknown field `qeury`"),
        (format!(r#"{{"{}":1}}"#, "x".repeat(100_000)), "unknown field `xxx"),
        (r#"{"query":5}"#.to_owned(), "line 1 column 10"),
        (r#"{"query":"{__typename}","variables":[1]}"#.to_owned(), "line 1"),
        (r#"{"query":"{__typename}""#.to_owned(), "line 1 column 23"),
        (r#"{"variables":{}}"#.to_owned(), "query is missing"),
        (r#"{"query":""}"#.to_owned(), "query is missing"),
        (r#"  [{"query":"{__typename}"}]"#.to_owned(), "a list of them"),
        (String::new(), "line 1"),
        ("null".to_owned(), "expected an object"),
        ("7".to_owned(), "expected an object"),
        ("[".repeat(10_000), "a list of them"),
        (
            format!("{{\"query\":\"{{__typename}}\",\"variables\":{{\"a\":{}", "[".repeat(10_000)),
            "recursion limit",
        ),
    ] {
        for accept in [NEW, OLD] {
            let mut request = post(OLD, body.clone());
            request.headers_mut().insert(ACCEPT, accept.parse().unwrap());
            let (status, reply) = json(&app, request).await;
            assert_eq!(
                (status, reason(&reply).as_str()),
                (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST"),
                "{body:.60}"
            );
            let message = reply["errors"][0]["message"].as_str().unwrap();
            assert!(message.contains(names), "{message}");
            assert!(message.len() < 1_000, "{message}");
        }
    }
}

#[tokio::test]
async fn the_reply_has_the_media_type_that_was_asked_for() {
    let app = App::new();
    let bad = json!({ "query": "{ nothing }" }).to_string();
    for (accept, content_type, status) in [
        (Some(NEW), "application/graphql-response+json; charset=utf-8", StatusCode::BAD_REQUEST),
        (Some(OLD), "application/json", StatusCode::OK),
        (Some("*/*"), "application/json", StatusCode::OK),
        (None, "application/json", StatusCode::OK),
    ] {
        let mut request = post(OLD, bad.clone());
        if let Some(accept) = accept {
            request.headers_mut().insert(ACCEPT, accept.parse().unwrap());
        }
        let (got, headers, body) = app.send(request).await;
        assert_eq!((got, headers[CONTENT_TYPE].to_str().unwrap()), (status, content_type));
        let reply: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(reason(&reply), "INVALID_QUERY");
        assert_eq!(reply.get("data"), None);
    }
}

#[tokio::test]
async fn get_runs_queries() {
    let app = App::new();
    let query = encode("query Q($id: Int!) { book(id: $id) { title } } query R { __typename }");
    let variables = encode(r#"{"id": 4}"#);
    let request = get(&format!("query={query}&variables={variables}&operationName=Q"));
    let (status, headers, body) = app.send(request).await;
    assert_eq!((status, &headers[VARY]), (StatusCode::OK, &"accept".parse().unwrap()));
    let reply: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(reply, json!({ "data": { "book": { "title": "Book 4" } } }));

    let (_, reply) = json(&app, get(&format!("query={query}&operationName=R"))).await;
    assert_eq!(reply["data"]["__typename"], "Query");
}

#[tokio::test]
async fn get_changes_nothing() {
    let app = App::new();
    for accept in [NEW, OLD, "text/html,*/*"] {
        let mut request = get(&format!("query={}", encode(MUTATION)));
        request.headers_mut().insert(ACCEPT, accept.parse().unwrap());
        let (status, headers, body) = app.send(request).await;
        assert_eq!((status, &headers[ALLOW]), (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap()));
        assert_eq!(reason(&serde_json::from_slice(&body).unwrap()), "METHOD_NOT_ALLOWED");
    }
    // Nor beside a query, when it is the mutation that is to run.
    let both = encode(&format!("query Q {{ __typename }} {}", MUTATION.replace("mutation", "mutation M")));
    let (status, _) = json(&app, get(&format!("query={both}&operationName=M"))).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(app.fake.calls(), Vec::<String>::new());
    let (status, _) = json(&app, get(&format!("query={both}&operationName=Q"))).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_query_string_that_says_something_else_is_refused() {
    let app = App::new();
    for query in
        ["", "query=%7B__typename%7D&qeury=1", "query=%7B__typename%7D&variables=%7B", "query=a&query=b"]
    {
        let (status, reply) = json(&app, get(query)).await;
        assert_eq!(
            (status, reason(&reply).as_str()),
            (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn other_methods_are_named_as_such() {
    let app = App::new();
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let request = Request::builder().method(method).uri("/graphql").body(Body::empty()).unwrap();
        let (status, headers, body) = app.send(request).await;
        assert_eq!(
            (status, &headers[ALLOW]),
            (StatusCode::METHOD_NOT_ALLOWED, &"GET, POST".parse().unwrap())
        );
        assert_eq!(reason(&serde_json::from_slice(&body).unwrap()), "METHOD_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn other_paths_are_left_to_others() {
    let app = App::new();
    let router = axum::Router::new().fallback(async || "elsewhere").merge(app.router.clone());
    let app = App { router, ..app };
    for path in ["/", "/graphq", "/graphql/x", "/api/v1/books"] {
        let (_, _, body) = app.send(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(body, b"elsewhere", "{path}");
    }
}
