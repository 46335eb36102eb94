//! Cancelling orders.

use std::sync::atomic::Ordering;

use proto::ordering::v1 as pb;
use proto::{Reason, field_errors, seed};
use tonic::Status;

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, refused};

#[tokio::test]
async fn cancelling_gives_units_back_once() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 5)]).await.unwrap();
    shop.script.steps();
    let cancelled = shop.cancel(&order.order_id).await.unwrap();
    assert_eq!((cancelled.state(), cancelled.lines.len()), (pb::OrderState::Cancelled, 0));
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    assert_eq!(shop.cancel(&order.order_id).await.unwrap(), cancelled);
    assert_eq!(shop.script.steps(), [(Step::Release, order.order_id.clone())]);

    let history = shop.get(&order.order_id, pb::OrderView::History).await.unwrap().history;
    assert_eq!(history.last().unwrap().kind, "CANCELLED");
    let kinds: Vec<_> = history.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["RESERVED", "PLACED", "CANCELLING", "CANCELLED"]);
}

#[tokio::test]
async fn a_shipped_order_cannot_be_cancelled() {
    let shop = Shop::new();
    refused(shop.cancel(&seed::order_id(1)).await, Reason::OrderShipped);
    assert!(shop.script.steps().is_empty());
    assert_eq!(shop.state(&seed::order_id(1)).await.unwrap(), pb::OrderState::Shipped);
}

#[tokio::test]
async fn a_cancel_is_decided_while_inventory_is_away_and_done_when_it_is_back() {
    for fault in [
        Fault::Refuse(Status::unavailable("gone")),
        Fault::LoseReply(Status::unavailable("gone")),
        Fault::Refuse(Status::internal("boom")),
    ] {
        let shop = Shop::new();
        let order = shop.place("a", &[(1, 5)]).await.unwrap();
        for _ in 0..2 {
            shop.script.fail(Step::Release, fault.clone());
            assert_eq!(shop.cancel(&order.order_id).await.unwrap().state(), pb::OrderState::Cancelling);
        }
        assert_eq!(shop.state(&order.order_id).await.unwrap(), pb::OrderState::Cancelling);
        // The first outcome of the request is what it was.
        assert_eq!(shop.place("a", &[(1, 5)]).await.unwrap(), order);
        assert_eq!(shop.cancel(&order.order_id).await.unwrap().state(), pb::OrderState::Cancelled);
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    }
}

#[tokio::test]
async fn a_cancel_whose_time_is_over_is_decided_too() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 5)]).await.unwrap();
    shop.script.fail(Step::Release, Fault::Refuse(Status::deadline_exceeded("late")));
    refused(shop.cancel(&order.order_id).await, Reason::DeadlineExceeded);
    assert_eq!(shop.state(&order.order_id).await.unwrap(), pb::OrderState::Cancelling);
    assert_eq!(shop.cancel(&order.order_id).await.unwrap().state(), pb::OrderState::Cancelled);
}

#[tokio::test]
async fn a_forgotten_reservation_does_not_keep_an_order_alive() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 5)]).await.unwrap();
    shop.inventory.forget();
    // Seeded orders never had a reservation.
    for id in [order.order_id, seed::order_id(2)] {
        assert_eq!(shop.cancel(&id).await.unwrap().state(), pb::OrderState::Cancelled);
    }
}

#[tokio::test]
async fn callers_at_once_release_once() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 5)]).await.unwrap();
    shop.script.steps();
    shop.script.slow.store(true, Ordering::Relaxed);
    let (first, second) = tokio::join!(shop.cancel(&order.order_id), shop.cancel(&order.order_id));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(shop.script.steps(), [(Step::Release, order.order_id)]);
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
}

#[tokio::test]
async fn an_order_that_does_not_exist_cannot_be_cancelled() {
    let shop = Shop::new();
    for id in ["x", "ord_1", &seed::order_id(21), &seed::order_id(1).to_uppercase()] {
        refused(shop.cancel(id).await, Reason::OrderNotFound);
    }
    for id in ["", &"x".repeat(65)] {
        let status = refused(shop.cancel(id).await, Reason::InvalidField);
        assert_eq!(field_errors(&status)[0].field, "order_id");
    }
}
