//! What ordering puts right by itself. Time passes by itself here as soon as nothing else happens.

use std::time::Duration;

use proto::inventory::v1 as inventory;
use proto::inventory::v1::ReservationState;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::ordering::v1::{OrderState, OrderView};
use proto::{Reason, seed};
use tokio::time::sleep;
use tonic::{Request, Status};

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, refused};

const ROUND: Duration = Duration::from_secs(5);

fn away() -> Status {
    Status::unavailable("away")
}

/// Holds copies of book 1 under a name, and sells them if wanted.
async fn reserve(shop: &Shop, name: &str, quantity: i32, confirm: bool) {
    let line = inventory::ReservationLine { sku: seed::sku(1), quantity };
    let request = inventory::ReserveStockRequest { order_id: name.to_owned(), lines: vec![line] };
    shop.inventory.reserve_stock(Request::new(request)).await.unwrap();
    if confirm {
        let request =
            inventory::ConfirmReservationRequest { order_id: name.to_owned(), ..Default::default() };
        shop.inventory.confirm_reservation(Request::new(request)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn units_sold_by_an_ordering_that_was_killed_go_back_at_the_start_of_the_next() {
    let shop = Shop::new();
    // More than one round looks at.
    for n in 0..400 {
        shop.place(&n.to_string(), &[(1, 1)]).await.unwrap();
    }
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 400);
    let shop = shop.kill_ordering();
    shop.reconcile(Duration::from_millis(1)).await;
    assert!(shop.inventory.in_stock(1) > seed::STOCK - 400);
    shop.reconcile(ROUND * 4).await;
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    // The same requests place orders anew.
    shop.place("0", &[(1, 2)]).await.unwrap();
    shop.settle().await;
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_sold_under_the_name_of_an_order_is_looked_at() {
    let shop = Shop::new();
    let id = seed::order_id(77);
    for name in ["order-1", "ord_1", &format!("{id}.02"), &format!("{id}.1"), &id.to_uppercase()] {
        reserve(&shop, name, 1, true).await;
    }
    // What is held may belong to an order that is being placed, and expires otherwise.
    reserve(&shop, &id, 1, false).await;
    let before = shop.inventory.states();
    shop.reconcile(ROUND * 3).await;
    assert_eq!(shop.inventory.states(), before);
}

#[tokio::test(start_paused = true)]
async fn units_of_other_attempts_go_back_and_those_of_the_order_stay() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 2)]).await.unwrap();
    let other = format!("{}.3", order.order_id);
    reserve(&shop, &other, 5, true).await;
    shop.reconcile(ROUND).await;
    let states = [(order.order_id.clone(), ReservationState::Confirmed), (other, ReservationState::Released)];
    assert_eq!(shop.inventory.states(), states.into());

    // A cancelled order has no units, whoever sold it some.
    shop.cancel(&order.order_id).await.unwrap();
    shop.inventory.forget();
    reserve(&shop, &order.order_id, 2, true).await;
    shop.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_while_its_units_go_back_waits() {
    let shop = Shop::new();
    shop.place("a", &[(1, 2)]).await.unwrap();
    let shop = shop.kill_ordering();
    shop.script.fail(Step::Release, Fault::Late(Duration::from_secs(3)));
    shop.script.fail(Step::Release, Fault::Refuse(away()));
    shop.reconcile(ROUND / 2).await;
    refused(shop.place("a", &[(1, 2)]).await, Reason::RequestInProgress);
    sleep(Duration::from_secs(60)).await;
    // The late release met no attempt.
    shop.place("a", &[(1, 2)]).await.unwrap();
    shop.settle().await;
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_the_units_over_keeps_them() {
    let shop = Shop::new();
    shop.place("a", &[(1, 2)]).await.unwrap();
    let shop = shop.kill_ordering();
    // Ordering has just been started, and the caller is quicker than the reconciler.
    let order = shop.place("a", &[(1, 2)]).await.unwrap();
    shop.settle().await;
    assert_eq!(shop.inventory.states(), [(order.order_id, ReservationState::Confirmed)].into());
}

#[tokio::test(start_paused = true)]
async fn cancels_come_to_their_end() {
    let shop = Shop::new();
    let mut orders = Vec::new();
    for n in 0..100 {
        orders.push(shop.place(&n.to_string(), &[(1, 1)]).await.unwrap().order_id);
        shop.script.fail(Step::Release, Fault::Refuse(away()));
    }
    for id in &orders {
        assert_eq!(shop.cancel(id).await.unwrap().state(), OrderState::Cancelling);
    }
    // One that never works doesn't hold the others up.
    (0..3).for_each(|_| shop.script.fail(Step::Release, Fault::Refuse(Status::internal("boom"))));
    shop.settle().await;
    for id in &orders {
        assert_eq!(shop.state(id).await.unwrap(), OrderState::Cancelled);
    }
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
}

#[tokio::test(start_paused = true)]
async fn placed_orders_are_sold_again_by_an_inventory_that_was_started_anew() {
    let shop = Shop::new();
    let mut orders = Vec::new();
    for n in 1..=100 {
        orders.push(shop.place(&n.to_string(), &[(1, 1), (n % 3 + 2, 2)]).await.unwrap());
    }
    let cancelled = orders.pop().unwrap();
    shop.cancel(&cancelled.order_id).await.unwrap();
    shop.reconcile(ROUND).await;
    shop.inventory.restart();
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    // On the way things fail.
    shop.script.fail(Step::List, Fault::Refuse(away()));
    shop.script.fail(Step::Reserve, Fault::LoseReply(away()));
    shop.script.fail(Step::Reserve, Fault::Hang);
    shop.script.fail(Step::Confirm, Fault::LoseReply(away()));
    shop.script.fail(Step::Confirm, Fault::Late(ROUND * 2));
    shop.settle().await;
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 99);
    for order in &orders {
        assert_eq!(shop.get(&order.order_id, OrderView::Full).await.unwrap(), *order);
    }
    // Seeded orders never sold anything.
    assert_eq!(shop.inventory.states().len(), 99);
    assert_eq!(shop.state(&seed::order_id(2)).await.unwrap(), OrderState::Placed);
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_units_are_lost_is_cancelled_and_says_why() {
    let shop = Shop::new();
    let first = shop.place("a", &[(1, 2)]).await.unwrap();
    let second = shop.place("b", &[(1, 2), (2, 1)]).await.unwrap();
    shop.reconcile(ROUND).await;
    shop.inventory.restart();
    shop.inventory.stock(1, 3);
    shop.settle().await;
    // The latest order is the first one that is asked for.
    assert_eq!(shop.state(&second.order_id).await.unwrap(), OrderState::Placed);
    let lost = shop.get(&first.order_id, OrderView::History).await.unwrap();
    assert_eq!(lost.state(), OrderState::Cancelled);
    let last = lost.history.last().unwrap();
    let why = format!("units lost: only 1 of sku {} left, 2 wanted", seed::sku(1));
    assert_eq!((last.kind.as_str(), last.note.as_str()), ("CANCELLED", why.as_str()));
    assert_eq!(shop.inventory.in_stock(1), 1);
    // The first outcome of its request is what it was.
    assert_eq!(shop.place("a", &[(1, 2)]).await.unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_cancelled_while_it_is_sold_again_ends_without_units() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 2)]).await.unwrap();
    shop.inventory.restart();
    shop.script.fail(Step::Confirm, Fault::Late(Duration::from_secs(2)));
    let reconciler = tokio::spawn(shop.ordering.clone().reconcile());
    sleep(Duration::from_micros(500)).await;
    let cancelled = shop.cancel(&order.order_id).await.unwrap();
    assert_eq!(cancelled.state(), OrderState::Cancelled);
    reconciler.abort();
    shop.settle().await;
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
}

#[tokio::test(start_paused = true)]
async fn an_inventory_that_lives_is_not_asked_about_every_order_again() {
    let shop = Shop::new();
    shop.reconcile(ROUND).await;
    for n in 0..10 {
        shop.place(&n.to_string(), &[(1, 1)]).await.unwrap();
    }
    let reconciler = tokio::spawn(shop.ordering.clone().reconcile());
    sleep(ROUND / 2).await;
    shop.script.steps();
    sleep(ROUND * 20).await;
    assert_eq!(shop.script.steps(), []);
    reconciler.abort();
}
