//! gRPC-Web, and what pages of other origins may do.

use axum::Router;
use axum::routing::get;
use chassis::ServerConfig;
use http::header::{CACHE_CONTROL, ETAG, VARY};
use http::{Method, Request, StatusCode};
use tonic::{Code, Status};

use crate::service::{Running, Test, config, routes};
use crate::wire::{Http1, Reply};

/// A frame with the message `a`.
const A: &[u8] = b"\0\0\0\0\x03\x0a\x01a";
const A_IN_BASE64: &str = "AAAAAAMKAWE=";

fn unary(kind: &str) -> http::request::Builder {
    Request::post("/test.Test/Unary").header("content-type", kind)
}

#[tokio::test]
async fn grpc_web_is_spoken_in_all_its_forms() {
    let server = Running::grpc(Test::new());
    let mut client = Http1::connect(server.at).await;
    for kind in [
        "application/grpc-web",
        "application/grpc-web+proto",
        "application/grpc-web+proto; charset=utf-8",
        "application/grpc-web;charset=utf-8",
    ] {
        let reply = client.send(unary(kind), A).await;
        assert_eq!(reply.status, StatusCode::OK, "{kind}");
        assert!(reply.header("content-type").starts_with("application/grpc-web"), "{reply:?}");
        let (message, trailers) = reply.body.split_at(A.len());
        assert_eq!(message, A, "{kind}");
        assert!(trailers.starts_with(b"\x80"), "{kind}");
        assert!(String::from_utf8_lossy(trailers).contains("grpc-status:0"), "{kind}");
    }
    for kind in ["application/grpc-web-text", "application/grpc-web-text+proto; charset=utf-8"] {
        let request = unary(kind).header("accept", "application/grpc-web-text");
        let reply = client.send(request, A_IN_BASE64).await;
        assert!(String::from_utf8(reply.body).unwrap().starts_with(A_IN_BASE64), "{kind}");
    }
    for kind in [
        "application/json",
        "application/grpc-webby",
        "application/grpcs",
        "application/grpc-web+json",
        "application/grpc-web-text+json",
        "application/grpc-web+protobuf",
        "application/grpc-web+proto+proto",
    ] {
        assert_eq!(client.send(unary(kind), A).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
    }
    server.stop().await;
}

#[tokio::test]
async fn grpc_web_tells_errors_in_the_headers() {
    let server =
        Running::grpc(Test::new().unary(async |_| Err(Status::new(Code::NotFound, "no such thing"))));
    let mut client = Http1::connect(server.at).await;
    let refused = client.send(unary("application/grpc-web+proto"), A).await;
    assert_eq!((refused.header("grpc-status"), refused.header("grpc-message")), ("5", "no%20such%20thing"));
    // Made by the library, named on the way out.
    let broken = client.send(unary("application/grpc-web+proto"), &b"\x07\0\0\0\0"[..]).await;
    assert_eq!(broken.header("grpc-status"), "3");
    assert_ne!(broken.header("grpc-status-details-bin"), "");
    let late = unary("application/grpc-web+proto").header("grpc-timeout", "soon");
    assert_eq!(client.send(late, A).await.header("grpc-status"), "3");
    server.stop().await;
}

/// Serves gRPC-Web and a thing that caches keep, to pages of these origins.
fn shop(origins: &[&str]) -> Running {
    let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let thing = || async { ([(ETAG, "\"1\""), (CACHE_CONTROL, "max-age=60"), (VARY, "accept")], "thing") };
    let router = Router::new().route("/thing", get(thing));
    let config = ServerConfig { origins, ..config() };
    Running::start(config, |server, listener| server.http_and_grpc(listener, router, routes(Test::new())))
}

const HERE: &str = "https://shop.example";
const ELSEWHERE: &str = "https://evil.example";

#[tokio::test]
async fn a_page_of_a_listed_origin_may_ask_first_and_then_call() {
    let server = shop(&[HERE]);
    let mut client = Http1::connect(server.at).await;
    let ask = |origin: &str, method: &Method| {
        Request::options("/test.Test/Unary")
            .header("origin", origin)
            .header("access-control-request-method", method.as_str())
            .header("access-control-request-headers", "content-type,x-grpc-web,authorization")
    };
    for origin in [HERE, "http://localhost:8080"] {
        for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
            let answer = client.send(ask(origin, &method), "").await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            assert_eq!(
                answer.header("access-control-allow-headers"),
                "content-type,x-grpc-web,authorization"
            );
            assert!(answer.header("access-control-allow-methods").contains(method.as_str()));
        }
    }
    let asked = client.send(ask(ELSEWHERE, &Method::POST), "").await;
    assert_eq!(asked.header("access-control-allow-origin"), "");

    let request = unary("application/grpc-web+proto").header("origin", HERE);
    let reply = client.send(request, &b"\x07\0\0\0\0"[..]).await;
    assert_eq!(reply.header("access-control-allow-origin"), HERE);
    for header in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
        assert!(reply.header("access-control-expose-headers").contains(header), "{header}");
    }
    server.stop().await;
}

fn varies(reply: &Reply) -> Vec<String> {
    let values = reply.headers.get_all(VARY).iter().map(|value| value.to_str().unwrap());
    values.flat_map(|value| value.split(',')).map(|name| name.trim().to_lowercase()).collect()
}

#[tokio::test]
async fn only_pages_get_the_headers_for_pages_and_caches_keep_them_apart() {
    let server = shop(&[HERE]);
    let mut client = Http1::connect(server.at).await;
    let plain = client.get("/thing").await;
    assert!(!plain.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    assert_eq!(varies(&plain), ["accept", "origin"]);
    assert_eq!(varies(&client.get("/healthz").await), [""; 0]);
    for (origin, allowed) in [(HERE, HERE), (ELSEWHERE, "")] {
        let page = client.send(Request::get("/thing").header("origin", origin), "").await;
        assert_eq!(page.header("access-control-allow-origin"), allowed);
        assert_eq!(varies(&page).iter().filter(|name| *name == "origin").count(), 1, "{page:?}");
        assert!(varies(&page).contains(&"accept".to_owned()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_star_lets_pages_of_all_origins_in() {
    let server = shop(&["*"]);
    let request = Request::get("/thing").header("origin", ELSEWHERE);
    let page = Http1::connect(server.at).await.send(request, "").await;
    assert_eq!(page.header("access-control-allow-origin"), "*");
    server.stop().await;
}

#[tokio::test]
async fn a_text_that_is_no_base64_is_malformed() {
    let server = Running::grpc(Test::new());
    let mut client = Http1::connect(server.at).await;
    for body in ["!!!!", "AAAAA", "=AAA", "AAAAAAE="] {
        let reply = client.send(unary("application/grpc-web-text"), body).await;
        assert_eq!(reply.header("grpc-status"), "3", "{body}: {reply:?}");
        assert!(!reply.header("grpc-status-details-bin").is_empty(), "{body}: {reply:?}");
        assert!(!reply.header("grpc-message").contains("tonic"), "{body}: {reply:?}");
    }
    server.stop().await;
}
