//! Every refusal is a problem, wherever it comes from.

use axum::body::Body;
use axum::routing::get as get_route;
use proto::{FieldError, Reason, Refusal};
use tonic::Status;

use crate::fakes::Shop;
use crate::http::{edge, get, request, send, send_json};
use crate::schema::DOCUMENT;

/// The status of every reason.
pub(crate) const STATUSES: [(Reason, u16); 31] = [
    (Reason::InvalidField, 400),
    (Reason::InvalidPageToken, 400),
    (Reason::MalformedRequest, 400),
    (Reason::InvalidQuery, 400),
    (Reason::QueryTooComplex, 400),
    (Reason::PersistedQueryNotFound, 404),
    (Reason::MessageTooLarge, 413),
    (Reason::BookNotFound, 404),
    (Reason::AuthorNotFound, 404),
    (Reason::UnknownSku, 404),
    (Reason::ReservationNotFound, 404),
    (Reason::OrderNotFound, 404),
    (Reason::RouteNotFound, 404),
    (Reason::MethodNotAllowed, 405),
    (Reason::UnsupportedMediaType, 415),
    (Reason::SkuTaken, 409),
    (Reason::OutOfStock, 409),
    (Reason::OrderIdConflict, 409),
    (Reason::ReservationExpired, 409),
    (Reason::ReservationReleased, 409),
    (Reason::OrderShipped, 409),
    (Reason::IdempotencyKeyReused, 422),
    (Reason::RequestInProgress, 409),
    (Reason::VersionMismatch, 412),
    (Reason::StoreFull, 503),
    (Reason::TooManyRequests, 429),
    (Reason::DeadlineExceeded, 504),
    (Reason::Cancelled, 499),
    (Reason::UpstreamUnavailable, 503),
    (Reason::ShuttingDown, 503),
    (Reason::Internal, 500),
];

#[tokio::test]
async fn every_reason_has_one_status() {
    assert!(Reason::ALL.iter().all(|reason| STATUSES.iter().any(|(known, _)| known == reason)));
    for (reason, status) in STATUSES {
        let edge = edge(Shop::refusing(Refusal::new(reason, "because of this")));
        let reply = get(&edge, "/api/v1/books/1").await;
        let problem = reply.assert_problem(status, reason.as_str());
        assert_eq!(problem["detail"] == "because of this", reason != Reason::Internal);
        assert_eq!(reply.header("retry-after") == "1", matches!(status, 429 | 503), "{reason}");
        assert_eq!(reply.header("etag"), "");
    }
}

/// Each of the services is refused in each of its routes: nothing lets a status through.
#[tokio::test]
async fn every_route_tells_a_refusal() {
    let edge = edge(Shop::refusing(Refusal::new(Reason::TooManyRequests, "slow down")));
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let path = path.replace("{bookId}", "1").replace("{authorId}", "1");
            let reply = send_json(&edge, &method.to_uppercase(), &path, "{}").await;
            reply.assert_problem(429, "TOO_MANY_REQUESTS");
        }
    }
}

#[tokio::test]
async fn all_broken_fields_are_named_as_json_spells_them() {
    let field = |field: &str| FieldError { field: field.into(), rule: "must be better".into() };
    let fields = ["lines[3].quantity", "ship_to.postal_code", "request_id"].map(field);
    let edge = edge(Shop::refusing(Refusal::fields(fields.to_vec())));
    let reply = send_json(&edge, "POST", "/api/v1/orders", "{}").await;
    let problem = reply.assert_fields(&["lines[3].quantity", "shipTo.postalCode", "Idempotency-Key"]);
    assert_eq!(problem["errors"][0]["rule"], "must be better");
    assert!(problem["detail"].as_str().unwrap().contains("shipTo.postalCode: must be better"));
}

#[tokio::test]
async fn what_is_behind_the_edge_stays_there() {
    for (refused, status, reason) in [
        (Status::unavailable("connect to 10.0.0.7:5311"), 503, "UPSTREAM_UNAVAILABLE"),
        (Status::unknown("worker 10.0.0.7 panicked"), 500, "INTERNAL"),
        (Status::unimplemented("no GetBook at 10.0.0.7"), 404, "ROUTE_NOT_FOUND"),
        (Status::resource_exhausted("queue of 10.0.0.7"), 429, "TOO_MANY_REQUESTS"),
        (Status::deadline_exceeded("at 10.0.0.7"), 504, "DEADLINE_EXCEEDED"),
    ] {
        let reply = get(&edge(Shop::refusing(refused)), "/api/v1/books/1").await;
        reply.assert_problem(status, reason);
        assert!(!reply.text().contains("10.0.0.7"), "{}", reply.text());
    }
}

#[tokio::test]
async fn ids_and_parameters_are_named() {
    let edge = edge(Shop::default());
    for (path, fields) in [
        ("/api/v1/books/abc", &["bookId"][..]),
        ("/api/v1/books/0", &["bookId"]),
        ("/api/v1/books/2147483648", &["bookId"]),
        ("/api/v1/books/+1", &["bookId"]),
        ("/api/v1/books/1.0/stock", &["bookId"]),
        ("/api/v1/books/0/stock/events", &["bookId"]),
        ("/api/v1/authors/x", &["authorId"]),
        ("/api/v1/books/%ff", &["bookId"]),
        ("/api/v1/books/%zz", &["bookId"]),
        ("/api/v1/books/1%2Fstock", &["bookId"]),
        ("/api/v1/books/%00", &["bookId"]),
        ("/api/v1/books//stock", &["bookId"]),
        ("/api/v1/orders/%c3%28", &["orderId"]),
        ("/api/v1/books?page_size=-1", &["page_size"]),
        ("/api/v1/books?page_size=ten", &["page_size"]),
        ("/api/v1/books?page_size=2147483648&offset=3&sort=x", &["page_size", "offset", "sort"]),
        ("/api/v1/books?page_size=1&page_size=2", &["page_size"]),
        ("/api/v1/books?pageSize=1", &["pageSize"]),
        ("/api/v1/books/1/reviews?limit=-1", &["limit"]),
        ("/api/v1/books/1/reviews?page_size=-1", &["page_size"]),
        ("/api/v1/books/1/reviews?limit=1&page_size=2", &["limit"]),
        ("/api/v1/orders?limit=1", &["limit"]),
        ("/api/v1/screens/book-detail/1?reviews=two", &["reviews"]),
        ("/api/v1/orders/ord_1?fields=all", &["fields"]),
        ("/api/v1/books/1?fields=all&v=2", &["fields", "v"]),
        ("/api/v1/books/1/stock/events?since=0", &["since"]),
    ] {
        get(&edge, path).await.assert_fields(fields);
    }
    get(&edge, "/api/v1/books?page_token=stale").await.assert_problem(400, "INVALID_PAGE_TOKEN");
    let many: String = (0..100).map(|i| format!("p{i}=1&")).collect();
    let problem = get(&edge, &format!("/api/v1/books?{many}")).await.assert_problem(400, "INVALID_FIELD");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn a_path_that_leads_nowhere_is_a_problem() {
    let edge = edge(Shop::default());
    for path in [
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/books/",
        "/api/v1/books/1/stock/",
        "/api/v2/books",
        "/API/v1/books",
        "/api/v1/shelves",
        "/%ff",
        "/%zz%00",
        "/openapi.yaml",
        "/docs/nothing.js",
        "/docs/%ff",
        "/docs/../openapi.json",
    ] {
        for method in ["GET", "POST", "OPTIONS", "BREW"] {
            if path.starts_with("/docs") && method != "GET" {
                continue;
            }
            let reply = send(&edge, request(method, path, &[], Body::empty())).await;
            reply.assert_problem(404, "ROUTE_NOT_FOUND");
        }
    }
}

#[tokio::test]
async fn a_method_that_a_path_lacks_is_a_problem_that_names_the_others() {
    let edge = edge(Shop::default());
    for (method, path, allow) in [
        ("PUT", "/api/v1/books/1", "GET,HEAD,PATCH,DELETE"),
        ("DELETE", "/api/v1/books", "GET,HEAD,POST"),
        ("GET", "/api/v1/reservations", "POST"),
        ("BREW", "/api/v1/authors/1", "GET,HEAD"),
        ("OPTIONS", "/api/v1/books/1/stock", "GET,HEAD"),
        ("POST", "/api/v1/books/1/stock/events", "GET,HEAD"),
        ("POST", "/openapi.json", "GET,HEAD"),
        ("POST", "/docs/", "GET,HEAD"),
        ("DELETE", "/docs", "GET,HEAD"),
    ] {
        let reply = send(&edge, request(method, path, &[], Body::empty())).await;
        reply.assert_problem(405, "METHOD_NOT_ALLOWED");
        let sorted = |list: &str| {
            let mut methods: Vec<_> = list.split(',').map(str::to_owned).collect();
            methods.sort();
            methods
        };
        assert_eq!(sorted(reply.header("allow")), sorted(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn other_routers_keep_their_paths_when_merged() {
    let others = axum::Router::new()
        .route("/healthz", get_route(async || "well"))
        .route("/bookstore.catalog.v1.CatalogService/{method}", get_route(async || "grpc"));
    for edge in [others.clone().merge(edge(Shop::default())), edge(Shop::default()).merge(others)] {
        assert_eq!(get(&edge, "/healthz").await.text(), "well");
        assert_eq!(get(&edge, "/bookstore.catalog.v1.CatalogService/GetBook").await.text(), "grpc");
        assert_eq!(get(&edge, "/docs/").await.status, 200);
        assert_eq!(get(&edge, "/docs").await.header("location"), "/docs/");
        assert_eq!(get(&edge, "/api/v1/books/1").await.status, 200);
        get(&edge, "/nothing").await.assert_problem(404, "ROUTE_NOT_FOUND");
        send_json(&edge, "PUT", "/api/v1/books/1", "{}").await.assert_problem(405, "METHOD_NOT_ALLOWED");
    }
}
