//! gRPC and gRPC-Web as their own users meet them: methods, call kinds, health, reflection, limits, deadlines, pages.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use hyper::header::HeaderMap;
use prost::Message;
use prost_reflect::{DescriptorPool, ServiceDescriptor};
use proto::catalog::v1 as catalog;
use proto::catalog::v1::catalog_service_client::CatalogServiceClient;
use proto::common::v1::Money;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_client::InventoryServiceClient;
use proto::ordering::v1 as ordering;
use proto::ordering::v1::ordering_service_client::OrderingServiceClient;
use tokio::sync::mpsc;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::harness::{Shape, Suite, both};
use crate::http::{self, Reply, Version, connect};
use crate::parity::{grpc, message};

pub(crate) const CATALOG: &str = "bookstore.catalog.v1.CatalogService";
pub(crate) const INVENTORY: &str = "bookstore.inventory.v1.InventoryService";
pub(crate) const ORDERING: &str = "bookstore.ordering.v1.OrderingService";

pub(crate) const GET_DETAIL: &str = "/bookstore.catalog.v1.CatalogService/GetBookDetail";
pub(crate) const STREAM_BOOKS: &str = "/bookstore.catalog.v1.CatalogService/StreamBooks";

/// Book 1 with two reviews.
pub(crate) fn detail() -> Vec<u8> {
    let bytes = catalog::GetBookDetailRequest { book_id: 1, review_count: 2 }.encode_to_vec();
    assert_eq!(bytes, [8, 1, 16, 2], "the bytes that others have published");
    bytes
}

/// A call over HTTP/2 with these headers, its body as it is.
pub(crate) async fn call(
    at: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> Reply {
    let headers = [&[("content-type", "application/grpc"), ("te", "trailers")], headers].concat();
    http::send(Version::Http2, at, http::request("POST", path, &headers, body)).await
}

/// A call over HTTP/1.1 as gRPC-Web, with this media type.
pub(crate) async fn call_web(at: SocketAddr, path: &str, kind: &str, body: impl Into<bytes::Bytes>) -> Reply {
    let headers = [("content-type", kind), ("origin", "http://localhost:3000")];
    http::send(Version::Http1, at, http::request("POST", path, &headers, body)).await
}

pub(crate) fn status(headers: &HeaderMap, trailers: &HeaderMap) -> Status {
    let status = Status::from_header_map(trailers).or_else(|| Status::from_header_map(headers));
    status.unwrap_or_else(|| panic!("no status: {headers:?} {trailers:?}"))
}

/// Asserts that the call was refused for this reason, with the code that goes with it.
#[track_caller]
pub(crate) fn assert_refused(reply: &Reply, reason: &str) -> Status {
    let status = status(&reply.headers, &reply.trailers);
    assert_eq!(grpc::refusal(&status).reason, reason, "{status:?}");
    status
}

/// The services that every port for gRPC has.
fn common() -> Vec<ServiceDescriptor> {
    let sets = [
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    sets.iter().flat_map(|set| DescriptorPool::decode(*set).unwrap().services().collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn every_method_that_a_contract_names_is_there() {
    both(async |suite| {
        let mut methods = 0;
        for served in [CATALOG, INVENTORY, ORDERING] {
            let own = message::POOL.get_service_by_name(served).unwrap();
            for service in common().into_iter().chain([own]) {
                for method in service.methods() {
                    let path = format!("/{}/{}", service.full_name(), method.name());
                    for at in [suite.grpc(served), suite.web(served)] {
                        let status = first_status(at, &path).await;
                        assert_ne!(status.map(|status| status.code()), Some(Code::Unimplemented), "{path}");
                    }
                    methods += 1;
                }
            }
        }
        assert_eq!(methods, 18 + 10 + 5 + 3 * (2 + 1 + 1));
    })
    .await;
}

/// The status of a call with an empty message, unless a message comes first.
async fn first_status(at: SocketAddr, path: &str) -> Option<Status> {
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let request = http::request("POST", path, &headers, http::frame(&[]));
    let mut response = http::open(Version::Http2, at, request).await;
    assert_eq!(response.status(), 200, "{path}");
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Some(status);
    }
    // A watch of health says something at once, and everything else that is a stream ends.
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    frame.trailers_ref().map(|trailers| status(response.headers(), trailers))
}

#[tokio::test]
async fn a_name_that_is_no_method_is_unimplemented() {
    both(async |suite| {
        let at = suite.grpc(CATALOG);
        for path in
            ["/bookstore.catalog.v1.CatalogService/Nothing", "/bookstore.nothing.v1.NoService/Get", "/x"]
        {
            assert_refused(&call(at, path, &[], http::frame(&[])).await, "ROUTE_NOT_FOUND");
        }
        let path = "/bookstore.catalog.v1.CatalogService/Nothing";
        let reply = call_web(suite.web(CATALOG), path, "application/grpc-web+proto", http::frame(&[])).await;
        assert_refused(&reply, "ROUTE_NOT_FOUND");
    })
    .await;
}

#[tokio::test]
async fn grpc_leaves_all_other_paths_to_rest() {
    let suite = Suite::shared(Shape::Up).await;
    for path in [
        "/api/v1/nothing",
        "/nothing",
        "/bookstore.catalog.v1.CatalogService",
        "/bookstore.nothing.v1.NoService/Get",
    ] {
        for version in [Version::Http1, Version::Http2] {
            let reply = http::send(version, suite.rest, http::request("GET", path, &[], "")).await;
            assert_eq!(reply.status, 404, "{path}");
            assert_eq!(reply.header("content-type"), "application/problem+json", "{path}");
            assert_eq!(reply.json()["reason"], "ROUTE_NOT_FOUND");
            assert!(!reply.headers.contains_key("grpc-status"));
        }
    }
    // The port for gRPC has nothing else but health.
    let at = suite.grpc(CATALOG);
    assert_eq!(http::get(at, "/readyz").await.status, 200);
    assert_eq!(http::get(at, "/api/v1/books/1").await.status, 415);
    assert_eq!(http::get(at, GET_DETAIL).await.status, 415);
}

#[tokio::test]
async fn all_four_kinds_of_calls_work() {
    both(async |suite| {
        let mut client = CatalogServiceClient::new(connect(suite.grpc(CATALOG)).await);
        let book = client.get_book(catalog::GetBookRequest { book_id: 1 }).await.unwrap().into_inner().book;
        assert_eq!(book.unwrap().id, 1);

        let stream = client
            .stream_books(catalog::StreamBooksRequest { delay_ms: 0, limit: 250, batch_size: 0 })
            .await
            .unwrap();
        let ids: Vec<_> = stream.into_inner().map(|item| item.unwrap().book.unwrap().id).collect().await;
        assert_eq!(ids, (1..=250).collect::<Vec<_>>());

        let new = |sku: String| catalog::ImportBooksRequest {
            book: Some(catalog::CreateBookRequest {
                sku,
                title: "Imported".to_owned(),
                author_id: 1,
                price: Some(Money { amount_minor: 100, currency: "EUR".to_owned() }),
            }),
            ..Default::default()
        };
        let upload = [new(proto::seed::sku(2_000_001)), new("1".to_owned()), new(proto::seed::sku(1))];
        let reply = client.import_books(futures_util::stream::iter(upload)).await.unwrap().into_inner();
        assert_eq!((reply.imported_count, reply.refused_count), (1, 2));
        let reasons: Vec<_> = reply.refusals.iter().map(|r| (r.index, r.reason.as_str())).collect();
        assert_eq!(reasons, [(1, "INVALID_FIELD"), (2, "SKU_TAKEN")]);
        // The shared suite is as it was, for the next one who imports.
        let found =
            catalog::BatchGetBooksRequest { skus: vec![proto::seed::sku(2_000_001)], ..Default::default() };
        let book_id = client.batch_get_books(found).await.unwrap().into_inner().books[0].id;
        client.delete_book(catalog::DeleteBookRequest { book_id, expected_version: None }).await.unwrap();

        // Each query is answered while the stream is open for more.
        let (ask, queries) = mpsc::channel(1);
        let queries =
            futures_util::stream::unfold(queries, async |mut queries| Some((queries.recv().await?, queries)));
        let mut answers = client.search_books(queries).await.unwrap().into_inner();
        for query in ["a", "e"] {
            ask.send(catalog::SearchBooksRequest { query: query.to_owned(), limit: 3 }).await.unwrap();
            let answer = answers.message().await.unwrap().unwrap();
            assert_eq!((answer.query.as_str(), answer.books.len()), (query, 3));
        }
        drop(ask);
        assert_eq!(answers.message().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn watchers_see_changes_that_other_styles_make() {
    both(async |suite| {
        let book_id = 40;
        let mut client = InventoryServiceClient::new(connect(suite.grpc(INVENTORY)).await);
        let watch = inventory::WatchStockRequest { book_ids: vec![book_id], skus: Vec::new() };
        let mut stocks = client.watch_stock(watch).await.unwrap().into_inner();
        let before = stocks.message().await.unwrap().unwrap().stock.unwrap();

        let order = serde_json::json!({"lines": [{"sku": before.sku, "quantity": 2}]});
        let headers = [("content-type", "application/json"), ("idempotency-key", "watched")];
        let request = http::request("POST", "/api/v1/orders", &headers, order.to_string());
        let placed = http::send(Version::Http1, suite.rest, request).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        let order_id = placed.json()["orderId"].as_str().unwrap().to_owned();

        let mut client = OrderingServiceClient::new(connect(suite.grpc(ORDERING)).await);
        let watch = ordering::WatchOrderRequest { order_id: order_id.clone() };
        let mut orders = client.watch_order(watch).await.unwrap().into_inner();
        let first = orders.message().await.unwrap().unwrap().order.unwrap();
        assert_eq!(first.state(), ordering::OrderState::Placed);

        let cancel = format!("mutation {{ cancelOrder(id: \"{order_id}\") {{ state }} }}");
        let reply = http::post_json(suite.graphql, "/graphql", &serde_json::json!({ "query": cancel })).await;
        assert_eq!(reply.json(), serde_json::json!({ "data": { "cancelOrder": { "state": "CANCELLED" } } }));
        let mut next = orders.message().await.unwrap().unwrap().order.unwrap();
        if next.state() == ordering::OrderState::Cancelling {
            next = orders.message().await.unwrap().unwrap().order.unwrap();
        }
        assert_eq!(next.state(), ordering::OrderState::Cancelled);
        assert_eq!(orders.message().await.unwrap(), None, "no state comes after this one");

        // What a slow reader misses is not told; the last value is.
        while stocks.message().await.unwrap().unwrap().stock.unwrap() != before {}
    })
    .await;
}

#[tokio::test]
async fn health_tells_of_each_service() {
    both(async |suite| {
        for service in [CATALOG, INVENTORY, ORDERING] {
            let mut health = HealthClient::new(connect(suite.grpc(service)).await);
            for name in ["", service, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
                let ask = || HealthCheckRequest { service: name.to_owned() };
                let checked = health.check(ask()).await.unwrap().into_inner();
                assert_eq!(checked.status(), ServingStatus::Serving, "{name}");
                let mut watch = health.watch(ask()).await.unwrap().into_inner();
                assert_eq!(
                    watch.message().await.unwrap().unwrap().status(),
                    ServingStatus::Serving,
                    "{name}"
                );
            }
            let unknown = HealthCheckRequest { service: "nothing".to_owned() };
            assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
        }
    })
    .await;
}

/// Asks reflection of one version; the two have the same names and no type in common.
macro_rules! reflect {
    ($version:ident, $at:expr, $expected:expr) => {{
        use pb::server_reflection_request::MessageRequest;
        use pb::server_reflection_response::MessageResponse;
        use tonic_reflection::pb::$version as pb;
        let mut client = pb::server_reflection_client::ServerReflectionClient::new(connect($at).await);
        let ask =
            |message| pb::ServerReflectionRequest { host: String::new(), message_request: Some(message) };
        let asked = [
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol($expected.to_owned())),
            ask(MessageRequest::FileContainingSymbol("grpc.health.v1.Health".to_owned())),
        ];
        let replies = client.server_reflection_info(futures_util::stream::iter(asked)).await.unwrap();
        let replies: Vec<_> =
            replies.into_inner().map(|reply| reply.unwrap().message_response.unwrap()).collect().await;
        let [
            MessageResponse::ListServicesResponse(list),
            MessageResponse::FileDescriptorResponse(own),
            MessageResponse::FileDescriptorResponse(health),
        ] = &replies[..]
        else {
            panic!("{replies:?}")
        };
        let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
        for name in [$expected, "grpc.health.v1.Health"] {
            assert!(names.contains(&name), "{names:?}");
        }
        for files in [own, health] {
            assert!(!files.file_descriptor_proto.is_empty());
        }
    }};
}

#[tokio::test]
async fn reflection_describes_each_service_in_both_versions() {
    both(async |suite| {
        for service in [CATALOG, INVENTORY, ORDERING] {
            reflect!(v1, suite.grpc(service), service);
            reflect!(v1alpha, suite.grpc(service), service);
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused() {
    both(async |suite| {
        let title = "x".repeat(proto::MAX_MESSAGE_BYTES);
        let message = catalog::CreateBookRequest { title, ..Default::default() };
        let body = http::frame(&message.encode_to_vec());
        let path = "/bookstore.catalog.v1.CatalogService/CreateBook";
        assert_refused(&call(suite.grpc(CATALOG), path, &[], body.clone()).await, "MESSAGE_TOO_LARGE");
        let web = call_web(suite.web(CATALOG), path, "application/grpc-web+proto", body).await;
        assert_refused(&web_trailers(web), "MESSAGE_TOO_LARGE");

        // A promise of four gigabytes is no reason to wait for them.
        let promise = [&[0, 255, 255, 255, 255][..], &[0; 100]].concat();
        assert_refused(&call(suite.grpc(CATALOG), path, &[], promise).await, "MESSAGE_TOO_LARGE");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_malformed() {
    both(async |suite| {
        let at = suite.grpc(CATALOG);
        for (what, body) in [
            ("a field that ends early", http::frame(&[10, 200, 1])),
            ("a string that is no UTF-8", http::frame(&[10, 1, 255])),
            ("a wire type that isn't", http::frame(&[15])),
            ("half a frame", vec![0, 0, 0, 0, 9, 8, 1]),
            ("a frame with flags that aren't", vec![9, 0, 0, 0, 0]),
            ("no frame", Vec::new()),
        ] {
            let path = "/bookstore.catalog.v1.CatalogService/CreateBook";
            let reply = call(at, path, &[], body).await;
            let status = status(&reply.headers, &reply.trailers);
            assert_eq!(grpc::refusal(&status).reason, "MALFORMED_REQUEST", "{what}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_compressed_message_is_refused_as_such() {
    let suite = Suite::shared(Shape::Up).await;
    let body = [&[1][..], &http::frame(&detail())[1..]].concat();
    let reply = call(suite.grpc(CATALOG), GET_DETAIL, &[("grpc-encoding", "gzip")], body).await;
    let status = assert_refused(&reply, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(status.code(), Code::Unimplemented, "as the specification of gRPC has it");
}

#[tokio::test]
async fn a_call_ends_by_its_deadline() {
    both(async |suite| {
        let at = suite.grpc(CATALOG);
        let timeout = |value| [("grpc-timeout", value)];
        let reply = call(at, GET_DETAIL, &timeout("1n"), http::frame(&detail())).await;
        assert_refused(&reply, "DEADLINE_EXCEEDED");
        for bad in ["", "1", "1x", "-1S", "123456789S"] {
            assert_refused(
                &call(at, GET_DETAIL, &timeout(bad), http::frame(&detail())).await,
                "MALFORMED_REQUEST",
            );
        }
        let reply = call(at, GET_DETAIL, &timeout("99999999H"), http::frame(&detail())).await;
        assert_eq!(status(&reply.headers, &reply.trailers).code(), Code::Ok);

        // A stream ends by it too, though it has begun.
        let path = "/bookstore.catalog.v1.CatalogService/StreamBooks";
        let slow = catalog::StreamBooksRequest { delay_ms: 60_000, limit: 0, batch_size: 0 }.encode_to_vec();
        let reply = call(at, path, &timeout("200m"), http::frame(&slow)).await;
        assert_eq!(http::frames(&reply.body).len(), 1);
        assert_refused(&reply, "DEADLINE_EXCEEDED");
    })
    .await;
}

/// The reply with the trailers that gRPC-Web has in its body.
pub(crate) fn web_trailers(mut reply: Reply) -> Reply {
    reply.trailers = web_trailers_of(&reply);
    reply
}

pub(crate) fn web_trailers_of(reply: &Reply) -> HeaderMap {
    assert_eq!(reply.status, 200, "{reply:?}");
    let frames = http::frames(&reply.body);
    frames
        .last()
        .filter(|(flags, _)| flags & 0x80 != 0)
        .map(|(_, block)| grpc::headers_of(block))
        .unwrap_or_default()
}

#[tokio::test]
async fn grpc_speaks_on_the_http_port_of_the_suite_too() {
    let suite = Suite::shared(Shape::Up).await;
    let mut client = CatalogServiceClient::new(connect(suite.rest).await);
    let wanted = catalog::GetBookDetailRequest { book_id: 1, review_count: 2 };
    let call = tokio::time::timeout(Duration::from_secs(30), client.get_book_detail(wanted));
    assert_eq!(call.await.unwrap().unwrap().into_inner().reviews.len(), 2);
}
