//! `/metrics` after calls in every style, with the suite in one process and apart.

mod exposition;

use std::collections::BTreeMap;

use graphql_bff::OPERATIONS;
use prost::Message;
use proto::catalog::v1 as catalog;
use serde_json::{Value, json};

use self::exposition::Sample;
use crate::grpc::{CATALOG, GET_DETAIL, call, call_web, detail};
use crate::harness::{Shape, Suite};
use crate::http::{self, Version};

/// Everything that all processes of a suite count, by its name and labels; what several count is summed.
async fn counted(suite: &Suite) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for at in &suite.metrics {
        let reply = http::get(*at, "/metrics").await;
        assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        for Sample { name, labels, value } in exposition::parse(reply.text()) {
            let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            *all.entry(format!("{name} {}", labels.join(" "))).or_default() += value;
        }
    }
    all
}

/// The counts of one family.
fn of(all: &BTreeMap<String, f64>, family: &str) -> BTreeMap<String, u32> {
    let start = format!("{family}_count ");
    let rows =
        all.iter().filter_map(|(row, count)| Some((row.strip_prefix(&start)?.to_owned(), *count as u32)));
    rows.filter(|(row, _)| !row.contains("http_route=/readyz") && !row.contains("=grpc.health")).collect()
}

fn rows<const N: usize>(rows: [(&str, u32); N]) -> BTreeMap<String, u32> {
    rows.map(|(row, count)| (row.to_owned(), count)).into()
}

async fn graphql(suite: &Suite, request: Value) -> Value {
    http::post_json(suite.graphql, "/graphql", &request).await.json()
}

async fn counts_are_right(shape: Shape) {
    let suite = Suite::start(shape, &[]).await;
    for path in ["/api/v1/books/1", "/api/v1/books/2?", "/api/v1/books/0", "/api/v1/no/such/path"] {
        http::get(suite.rest, path).await;
    }
    let brew = http::request("BREW", "/api/v1/books", &[], "");
    assert_eq!(http::send(Version::Http1, suite.rest, brew).await.status, 405);
    let lines = json!([{"sku": proto::seed::sku(1), "quantity": 1}]);
    let reserve = json!({"orderId": "counted", "lines": lines});
    let reply = http::post_json(suite.rest, "/api/v1/reservations", &reserve).await;
    assert_eq!(reply.status, 201, "{reply:?}");

    let grpc = suite.grpc(CATALOG);
    let nobody = catalog::GetBookRequest { book_id: 0 }.encode_to_vec();
    call(grpc, GET_DETAIL, &[], http::frame(&detail())).await;
    call(grpc, "/bookstore.catalog.v1.CatalogService/GetBook", &[], http::frame(&nobody)).await;
    call(grpc, "/bookstore.catalog.v1.CatalogService/GetBooks", &[], http::frame(&[])).await;
    let kind = "application/grpc-web+proto";
    call_web(suite.web(CATALOG), GET_DETAIL, kind, http::frame(&detail())).await;
    call_web(suite.web(CATALOG), GET_DETAIL, "text/plain", "").await;

    let known = OPERATIONS.iter().find(|operation| operation.name == "BookDetail").unwrap();
    graphql(&suite, json!({"query": known.text, "variables": {"id": 1}})).await;
    graphql(&suite, json!({"query": "query Mine { book(id: 1) { title } }"})).await;
    graphql(&suite, json!({"query": "query Mine { nothing }"})).await;

    let all = counted(&suite).await;
    assert_eq!(
        of(&all, "http_server_request_duration_seconds"),
        rows([
            ("http_request_method=GET http_response_status_code=200 http_route=/api/v1/books/{bookId}", 2),
            ("http_request_method=GET http_response_status_code=400 http_route=/api/v1/books/{bookId}", 1),
            ("http_request_method=GET http_response_status_code=404 http_route=", 1),
            ("http_request_method=POST http_response_status_code=200 http_route=/graphql", 3),
            ("http_request_method=POST http_response_status_code=201 http_route=/api/v1/reservations", 1),
            ("http_request_method=POST http_response_status_code=415 http_route=", 1),
            ("http_request_method=_OTHER http_response_status_code=405 http_route=/api/v1/books", 1),
        ])
    );
    assert_eq!(
        of(&all, "graphql_server_operation_duration_seconds"),
        rows([
            ("graphql_operation_name=BookDetail graphql_operation_type=query outcome=complete", 1),
            ("graphql_operation_name=_OTHER graphql_operation_type= outcome=refused", 1),
            ("graphql_operation_name=_OTHER graphql_operation_type=query outcome=complete", 1),
        ])
    );
    // What a process was asked by others is what they asked; the rest came from here.
    let mut answered = of(&all, "rpc_server_call_duration_seconds");
    let mut asked = of(&all, "rpc_client_call_duration_seconds");
    // Ordering reconciles its books in its own time, also between a look at one process and at the next.
    for rows in [&mut answered, &mut asked] {
        rows.retain(|row, _| !row.contains("/ListReservations "));
    }
    assert_eq!(asked.is_empty(), shape == Shape::Up, "{asked:?}");
    for (row, count) in asked {
        let left = answered.get_mut(&row).unwrap_or_else(|| panic!("nobody was asked: {row}"));
        *left -= count;
    }
    answered.retain(|_, count| *count > 0);
    let catalog = |protocol: &str, method: &str, code: &str| {
        format!(
            "rpc_method={method} rpc_protocol={protocol} rpc_response_status_code={code} rpc_system_name=grpc"
        )
    };
    assert_eq!(
        answered,
        BTreeMap::from([
            (catalog("grpc", &GET_DETAIL[1..], "OK"), 1),
            (catalog("grpc", "bookstore.catalog.v1.CatalogService/GetBook", "INVALID_ARGUMENT"), 1),
            (catalog("grpc", "_OTHER", "UNIMPLEMENTED"), 1),
            (catalog("grpc-web", &GET_DETAIL[1..], "OK"), 1),
        ])
    );
    assert_eq!(all["bookstore_reservations_live "], 1.0);
    for live in
        ["rpc_server_streams_live ", "http_server_streams_live ", "graphql_server_subscriptions_live "]
    {
        assert_eq!(all[live], 0.0, "{live}");
    }
    assert!(all["process_cpu_seconds_total "] > 0.0);
}

#[tokio::test]
async fn calls_in_every_style_are_counted_in_one_process() {
    counts_are_right(Shape::Up).await;
}

#[tokio::test]
async fn calls_in_every_style_are_counted_in_processes_of_their_own() {
    counts_are_right(Shape::Apart).await;
}

#[tokio::test]
async fn the_list_in_the_docs_has_what_is_shown_and_nothing_else() {
    let documented = include_str!("../../../../docs/metrics.md");
    let documented: Vec<_> =
        documented.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let suite = Suite::start(Shape::Apart, &[]).await;
    let mut shown = Vec::new();
    for at in &suite.metrics {
        let reply = http::get(*at, "/metrics").await;
        shown.extend(exposition::families(reply.text()));
    }
    for name in &shown {
        assert!(documented.contains(&name.as_str()), "{name} is not in docs/metrics.md");
    }
    for name in documented {
        assert!(
            shown.iter().any(|shown| shown == name),
            "{name} is in docs/metrics.md, and no process shows it"
        );
    }
}
