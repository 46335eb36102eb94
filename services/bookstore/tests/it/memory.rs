//! A catalogue of any size takes no memory, and neither does sending it or reading an upload, however slow the reader.

use std::fmt::Write as _;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use prost::Message;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_client::CatalogServiceClient;
use serde_json::json;

use crate::grpc::STREAM_BOOKS;
use crate::harness::{Process, up};
use crate::http::{self, Version};

const BOOKS: &str = "--books=1000000";

/// What the README promises, for a million books: well over what the server has when it is idle.
const LIMIT_MB: usize = 60;

/// Books of one export: more by far than any buffer on the way holds.
const EXPORTED: usize = 100_000;

#[track_caller]
fn check(suite: &Process, after: &str) {
    let peak = suite.peak_memory_mb();
    assert!(peak < LIMIT_MB, "{peak} MB after {after}");
}

fn stream_request(limit: usize, batch_size: i32) -> pb::StreamBooksRequest {
    pb::StreamBooksRequest { delay_ms: 0, limit: limit.try_into().unwrap(), batch_size }
}

#[tokio::test]
async fn an_export_holds_a_page_of_it() {
    let (suite, http, grpc) = up(&[BOOKS]).await;
    check(&suite, "the start");

    for (path, headers) in [
        (format!("/api/v1/books/export?limit={EXPORTED}"), &[][..]),
        (format!("/api/v1/books/export?limit={EXPORTED}&batch_size=1"), &[]),
        (format!("/api/v1/books/export?limit={EXPORTED}"), &[("accept-encoding", "gzip")]),
    ] {
        let mut reply = http::open(Version::Http1, http, http::request("GET", &path, headers, "")).await;
        let mut bytes = Vec::new();
        while let Some(frame) = reply.body_mut().frame().await {
            bytes.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
        }
        let lines = bytes.split(|b| *b == b'\n').count() - 1;
        assert!(lines == EXPORTED || !headers.is_empty(), "{path}: {lines} lines");
        assert!(bytes.len() > EXPORTED, "{path}: {} bytes", bytes.len());
        check(&suite, &path);
    }

    let mut client = CatalogServiceClient::new(http::connect(grpc).await);
    for batch_size in [1, 100] {
        let mut stream =
            client.stream_books(stream_request(EXPORTED, batch_size)).await.unwrap().into_inner();
        let mut books = 0;
        while let Some(message) = stream.next().await {
            let message = message.unwrap();
            books += message.books.len() + usize::from(message.book.is_some());
        }
        assert_eq!(books, EXPORTED);
        check(&suite, &format!("a stream in batches of {batch_size}"));
    }

    let message = stream_request(EXPORTED, 100).encode_to_vec();
    let web = [("content-type", "application/grpc-web+proto")];
    let reply =
        http::open(Version::Http1, http, http::request("POST", STREAM_BOOKS, &web, http::frame(&message)))
            .await;
    assert!(reply.into_body().collect().await.unwrap().to_bytes().len() > EXPORTED);
    check(&suite, "a stream over gRPC-Web");
}

#[tokio::test]
async fn a_reader_who_stops_costs_what_one_page_costs() {
    let (suite, http, grpc) = up(&[BOOKS]).await;
    let before = suite.peak_memory_mb();
    let mut stalled = Vec::new();
    for headers in [&[][..], &[("accept-encoding", "gzip")]] {
        for version in [Version::Http1, Version::Http2] {
            let request = http::request("GET", "/api/v1/books/export", headers, "");
            let mut reply = http::open(version, http, request).await;
            reply.body_mut().frame().await.unwrap().unwrap();
            stalled.push(reply);
        }
    }
    let mut client = CatalogServiceClient::new(http::connect(grpc).await);
    let mut stream = client.stream_books(stream_request(0, 100)).await.unwrap().into_inner();
    stream.next().await.unwrap().unwrap();
    // Each of these gives the server a turn in which it could send on.
    for _ in 0..1_000 {
        assert_eq!(http::get(http, "/api/v1/books/1").await.status, 200);
    }
    let grown = suite.peak_memory_mb() - before;
    assert!(grown < 20, "{grown} MB for five readers, of 110 MB for each");
    // They are still served.
    for reply in &mut stalled {
        reply.body_mut().frame().await.unwrap().unwrap();
    }
    stream.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn an_upload_holds_a_page_of_it() {
    const UPLOADED: usize = 50_000;
    let (suite, http, grpc) = up(&[BOOKS]).await;
    let book = |n: usize| pb::CreateBookRequest {
        sku: proto::seed::sku(2_000_000 + i32::try_from(n).unwrap()),
        title: format!("Uploaded {n}"),
        author_id: 1,
        price: Some(proto::common::v1::Money { amount_minor: 1499, currency: "EUR".to_owned() }),
    };
    let mut lines = String::new();
    for n in 0..UPLOADED {
        let pb::CreateBookRequest { sku, title, .. } = book(n);
        let price = json!({"amountMinor": 1499, "currency": "EUR"});
        let line = json!({ "sku": sku, "title": title, "authorId": 1, "price": price });
        writeln!(lines, "{line}").unwrap();
    }
    let headers = [("content-type", "application/x-ndjson")];
    let path = "/api/v1/books/import?validate_only=true";
    let reply = http::send(Version::Http1, http, http::request("POST", path, &headers, lines)).await;
    assert_eq!(reply.json()["importedCount"], UPLOADED);
    check(&suite, "lines");

    let mut client = CatalogServiceClient::new(http::connect(grpc).await);
    for batch in [1, 100] {
        let messages = futures_util::stream::iter(0..UPLOADED / batch).map(move |n| {
            let books = (batch * n..batch * (n + 1)).map(book).collect();
            pb::ImportBooksRequest { book: None, books, validate_only: true }
        });
        let reply = client.import_books(messages).await.unwrap().into_inner();
        assert_eq!(reply.imported_count, i32::try_from(UPLOADED).unwrap());
        check(&suite, &format!("a stream in batches of {batch}"));
    }
}
