//! gRPC-Web, and what pages may do.

use prost::Message;
use proto::catalog::v1 as catalog;
use tonic::Code;

use crate::grpc::{
    CATALOG, GET_DETAIL, assert_refused, call_web, detail, status, web_trailers, web_trailers_of,
};
use crate::harness::both;
use crate::http::{self, Version};

#[tokio::test]
async fn pages_may_call_and_see_why_they_are_refused() {
    both(async |suite| {
        let at = suite.web(CATALOG);
        let headers = [
            ("origin", "http://localhost:3000"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-grpc-web,grpc-timeout"),
        ];
        let preflight =
            http::send(Version::Http1, at, http::request("OPTIONS", GET_DETAIL, &headers, "")).await;
        assert!((200..300).contains(&preflight.status), "{preflight:?}");
        assert_eq!(preflight.header("access-control-allow-origin"), "http://localhost:3000");
        assert!(preflight.header("access-control-allow-methods").contains("POST"));
        assert!(["*", headers[2].1].contains(&preflight.header("access-control-allow-headers")));

        // An error without messages comes as headers of HTTP.
        let path = "/bookstore.catalog.v1.CatalogService/GetBook";
        let reply = call_web(at, path, "application/grpc-web+proto", http::frame(&[])).await;
        let exposed: Vec<_> =
            reply.header("access-control-expose-headers").split(',').map(str::trim).collect();
        for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
            assert!(exposed.contains(&name), "{exposed:?}");
        }
        assert_eq!(reply.header("access-control-allow-origin"), "http://localhost:3000");
        assert_refused(&web_trailers(reply), "INVALID_FIELD");

        let elsewhere =
            [("content-type", "application/grpc-web+proto"), ("origin", "http://elsewhere.example")];
        let request = http::request("POST", GET_DETAIL, &elsewhere, http::frame(&detail()));
        let reply = http::send(Version::Http1, at, request).await;
        assert_eq!(reply.header("access-control-allow-origin"), "");
    })
    .await;
}

#[tokio::test]
async fn grpc_web_is_known_by_all_names_of_its_media_type() {
    both(async |suite| {
        let mut bodies = Vec::new();
        for kind in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpc-web+proto; charset=utf-8",
            "application/grpc-web+proto;charset=utf-8",
        ] {
            let reply = call_web(suite.web(CATALOG), GET_DETAIL, kind, http::frame(&detail())).await;
            assert_eq!(reply.status, 200, "{kind}");
            assert_eq!(status(&reply.headers, &web_trailers_of(&reply)).code(), Code::Ok, "{kind}");
            bodies.push(reply.body);
        }
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    })
    .await;
}

#[tokio::test]
async fn grpc_web_streams_too() {
    both(async |suite| {
        let path = "/bookstore.catalog.v1.CatalogService/StreamBooks";
        let message = catalog::StreamBooksRequest { delay_ms: 0, limit: 3, batch_size: 0 }.encode_to_vec();
        let kind = "application/grpc-web+proto";
        let reply = call_web(suite.web(CATALOG), path, kind, http::frame(&message)).await;
        let frames = http::frames(&reply.body);
        let books = frames.iter().filter(|(flags, _)| *flags == 0);
        let books = books
            .map(|(_, bytes)| catalog::StreamBooksResponse::decode(&bytes[..]).unwrap().book.unwrap().id);
        assert_eq!(books.collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(status(&reply.headers, &web_trailers_of(&reply)).code(), Code::Ok);
    })
    .await;
}
