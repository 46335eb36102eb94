//! Services that are killed while they hold each other's data: all of it is in memory, so the one that lives must notice.

use std::net::SocketAddr;

use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_client::InventoryServiceClient;
use proto::seed;
use rustix::process::Signal;

use crate::grpc::{CATALOG, INVENTORY, ORDERING};
use crate::harness::{Process, Shape, Suite, until};
use crate::http::{self, Version, connect};

/// Copies of book 1 in each order here.
const COPIES: i32 = 5;

/// In stock and sold of book 1; nothing while inventory can't be reached.
async fn stock(at: SocketAddr) -> Option<(i32, i64)> {
    let request = inventory::GetStockRequest { book_id: 1, ..Default::default() };
    let stock = InventoryServiceClient::new(connect(at).await).get_stock(request).await.ok()?;
    stock.into_inner().stock.map(|stock| (stock.in_stock, stock.sold))
}

async fn place(suite: &Suite, key: &str) -> http::Reply {
    let order = serde_json::json!({"lines": [{"sku": seed::sku(1), "quantity": COPIES}]}).to_string();
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    http::send(Version::Http1, suite.rest, http::request("POST", "/api/v1/orders", &headers, order)).await
}

async fn kill(process: &mut Process) {
    process.signal(Signal::KILL);
    until("the process is gone", async || (!process.is_running()).then_some(())).await;
}

#[tokio::test]
async fn units_sold_by_an_ordering_that_was_killed_go_back() {
    let mut suite = Suite::start(Shape::Apart, &[]).await;
    let (at, ordering_at) = (suite.grpc(INVENTORY), suite.grpc(ORDERING));
    for key in ["a", "b"] {
        assert_eq!(place(&suite, key).await.status, 201);
    }
    assert_eq!(stock(at).await, Some((seed::STOCK - 2 * COPIES, i64::from(2 * COPIES))));

    kill(&mut suite.processes[2]).await;
    let urls =
        [format!("--catalog-url=http://{}", suite.grpc(CATALOG)), format!("--inventory-url=http://{at}")];
    let port = format!("--port={}", ordering_at.port());
    let args = ["ordering", &port, "--metrics-port=0", "--reconcile-interval=0.1", &urls[0], &urls[1]];
    let mut again = Process::start(&args);
    assert_eq!(again.address("ordering").await, ordering_at);
    until("the units are back", async || (stock(at).await == Some((seed::STOCK, 0))).then_some(())).await;
    // The request places an order anew, once ordering is found again.
    until("the order is placed", async || (place(&suite, "a").await.status == 201).then_some(())).await;
    assert_eq!(stock(at).await, Some((seed::STOCK - COPIES, i64::from(COPIES))));
}

#[tokio::test]
async fn orders_are_sold_again_by_an_inventory_that_was_killed() {
    let mut suite = Suite::start(Shape::Apart, &[]).await;
    let at = suite.grpc(INVENTORY);
    let placed = place(&suite, "a").await;
    let cancelled = place(&suite, "b").await.json()["orderId"].as_str().unwrap().to_owned();

    kill(&mut suite.processes[0]).await;
    // The decision stands while there is nobody to take the units back.
    let cancel = http::request("POST", &format!("/api/v1/orders/{cancelled}/cancel"), &[], "");
    let reply = http::send(Version::Http1, suite.rest, cancel).await;
    assert_eq!((reply.status, &reply.json()["state"]), (200, &"CANCELLING".into()));

    let port = format!("--port={}", at.port());
    let mut again = Process::start(&["inventory", &port, "--metrics-port=0"]);
    assert_eq!(again.address("inventory").await, at);
    let sold = Some((seed::STOCK - COPIES, i64::from(COPIES)));
    until("the order has its units", async || (stock(at).await == sold).then_some(())).await;
    let state = async || http::get(suite.rest, &format!("/api/v1/orders/{cancelled}")).await.json();
    until("the cancel is done", async || (state().await["state"] == "CANCELLED").then_some(())).await;
    let again = place(&suite, "a").await;
    assert_eq!((again.status, again.body), (201, placed.body));
    assert_eq!(stock(at).await, sold);
}
