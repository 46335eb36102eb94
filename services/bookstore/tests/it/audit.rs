//! Whether orders and stock are what they should be, in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::inventory::v1 as stock;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use tokio::time::Instant;
use tonic::Status;

use crate::shopper::{BOOKS, Outcome, Shared, Told, request};

/// What an auditor knows beside what shoppers were told.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Units received of each book.
    pub(crate) units: i32,
    pub(crate) crashes: u64,
    /// When ordering died last.
    pub(crate) ordering_died: Option<Duration>,
}

/// By then everything is right: attempts that failed are given back for 93 seconds at the latest, the reconciler comes
/// every 5 seconds and has a handful of things to do.
const IN_THE_END: Duration = Duration::from_secs(150);

/// Leaves so many units of each traded book in stock.
pub(crate) async fn set_stock(inventory: impl InventoryService, units: i32) -> turmoil::Result {
    for book in 1..=BOOKS {
        let adjust =
            stock::AdjustStockRequest { sku: proto::seed::sku(book), delta: units - proto::seed::STOCK };
        inventory.adjust_stock(request(adjust)).await?;
    }
    Ok(())
}

/// Looks again and again until everything is right.
pub(crate) async fn audit(
    known: Known,
    ordering: impl OrderingService,
    inventory: impl InventoryService,
    history: Shared,
) -> turmoil::Result {
    let mut wrong = Vec::new();
    let told = history.borrow().told.clone();
    let begun = Instant::now();
    while begun.elapsed() < IN_THE_END {
        wrong = faults(&known, &told, &ordering, &inventory)
            .await
            .unwrap_or_else(|status| vec![status.to_string()]);
        if wrong.is_empty() {
            history.borrow_mut().note("books balance");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    panic!("{}\n{known:?}\n{}", wrong.join("\n"), history.borrow().trace.join("\n"));
}

async fn faults(
    known: &Known,
    told: &BTreeMap<String, Told>,
    ordering: &impl OrderingService,
    inventory: &impl InventoryService,
) -> Result<Vec<String>, Status> {
    let mut wrong = Vec::new();
    let orders = orders(ordering).await?;
    let seeded: Vec<String> = (1..=proto::seed::ORDERS).map(proto::seed::order_id).collect();
    let mut made: BTreeMap<&str, &pb::Order> = BTreeMap::new();
    for order in orders.iter().filter(|order| !seeded.contains(&order.order_id)) {
        if made.insert(&order.order_id, order).is_some() {
            wrong.push(format!("{} is there twice", order.order_id));
        }
    }
    for (request, told) in told {
        let order = made.remove(told.order_id.as_str());
        let state = order.map(|order| order.state());
        let forgotten = known.ordering_died.is_some_and(|died| told.at <= died);
        let right = match told.outcome {
            Outcome::Placed => state == Some(pb::OrderState::Placed) || (forgotten && state.is_none()),
            Outcome::Cancelled => state == Some(pb::OrderState::Cancelled) || (forgotten && state.is_none()),
            Outcome::Refused(_) => true,
            Outcome::Gone => known.ordering_died.is_some() && state.is_none(),
        };
        if !right {
            wrong.push(format!("{request}: told {:?}, is {state:?}", told.outcome));
        }
        if let Some(order) = order
            && copies(order) != told.copies
        {
            wrong.push(format!("{request} has become {:?}", copies(order)));
        }
    }
    wrong.extend(made.keys().map(|id| format!("nobody was told of {id}")));

    for book in 1..=BOOKS {
        let asked = stock::GetStockRequest { book_id: book, ..Default::default() };
        let units = inventory.get_stock(request(asked)).await?.into_inner().stock.unwrap_or_default();
        let placed = orders.iter().filter(|order| order.state() == pb::OrderState::Placed);
        let placed = placed.filter(|order| !seeded.contains(&order.order_id));
        let sold: i32 = placed.filter_map(|order| copies(order).get(&book).copied()).sum();
        let expected = (known.units - sold, 0, i64::from(sold));
        let is = (units.in_stock, units.reserved, units.sold);
        if is != expected {
            wrong.push(format!("book {book}: in stock, reserved, sold should be {expected:?}, are {is:?}"));
        }
    }
    Ok(wrong)
}

fn copies(order: &pb::Order) -> BTreeMap<i32, i32> {
    order.lines.iter().map(|line| (line.book_id, line.quantity)).collect()
}

/// All orders, with their lines.
async fn orders(ordering: &impl OrderingService) -> Result<Vec<pb::Order>, Status> {
    let mut orders = Vec::new();
    let mut page_token = String::new();
    loop {
        let page = pb::ListOrdersRequest { page_size: 100, page_token };
        let page = ordering.list_orders(request(page)).await?.into_inner();
        for order in page.orders {
            let full = pb::GetOrderRequest { order_id: order.order_id, view: pb::OrderView::Full.into() };
            orders.extend(ordering.get_order(request(full)).await?.into_inner().order);
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(orders);
        }
    }
}
