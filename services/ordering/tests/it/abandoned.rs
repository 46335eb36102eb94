//! Callers who leave in the middle.

use std::sync::atomic::Ordering;

use proto::inventory::v1::ReservationState;
use proto::ordering::v1::OrderState;
use proto::{Reason, seed};

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, abandon, refused};

#[tokio::test]
async fn leaving_at_any_point_leaves_no_order_and_no_mark() {
    for polls in 0.. {
        let shop = Shop::new();
        shop.script.slow.store(true, Ordering::Relaxed);
        if abandon(shop.place("a", &[(1, 2)]), polls).is_some() {
            // Three calls, each of which waits twice.
            assert_eq!(polls, 7);
            break;
        }
        assert!(shop.made().await.is_empty(), "{polls}");

        let order = shop.place("a", &[(1, 2)]).await.unwrap();
        assert_eq!(shop.state(&order.order_id).await.unwrap(), OrderState::Placed);
        // What the first attempt held belongs to the second.
        assert_eq!(
            shop.inventory.states(),
            [(order.order_id, ReservationState::Confirmed)].into(),
            "{polls}"
        );
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
    }
}

#[tokio::test]
async fn leaving_at_any_point_leaves_room_for_other_content() {
    for polls in 0..7 {
        let shop = Shop::new();
        shop.script.slow.store(true, Ordering::Relaxed);
        assert!(abandon(shop.place("a", &[(1, 2)]), polls).is_none());
        let order = shop.place("a", &[(2, 3)]).await.unwrap();
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK, "{polls}");
        assert_eq!(shop.inventory.in_stock(2), seed::STOCK - 3, "{polls}");
        shop.cancel(&order.order_id).await.unwrap();
        assert_eq!(shop.inventory.in_stock(2), seed::STOCK, "{polls}");
    }
}

#[tokio::test]
async fn what_an_abandoned_attempt_held_expires_and_does_not_hinder_the_next() {
    let shop = Shop::new();
    shop.script.fail(Step::Confirm, Fault::Hang);
    assert!(abandon(shop.place("a", &[(1, 2)]), 1).is_none());
    let names: Vec<_> = shop.inventory.states().into_keys().collect();
    shop.inventory.expire(&names[0]);
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    shop.place("a", &[(1, 2)]).await.unwrap();
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
}

#[tokio::test]
async fn leaving_while_units_are_given_back_leaves_no_mark_either() {
    let shop = Shop::with(ordering::Config::default());
    shop.script.fail(Step::Confirm, Fault::Refuse(tonic::Status::unavailable("gone")));
    shop.script.fail(Step::Release, Fault::Hang);
    assert!(abandon(shop.place("a", &[(1, 2)]), 1).is_none());
    assert!(shop.made().await.is_empty());
    shop.place("a", &[(1, 2)]).await.unwrap();
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
}

#[tokio::test]
async fn a_call_that_hangs_is_in_progress_until_its_caller_leaves() {
    for step in [Step::Price, Step::Reserve, Step::Confirm] {
        let shop = Shop::new();
        shop.script.fail(step, Fault::Hang);
        let mut first = Box::pin(shop.place("a", &[(1, 2)]));
        assert!(abandon(&mut first, 1).is_none());
        refused(shop.place("a", &[(1, 2)]).await, Reason::RequestInProgress);
        refused(shop.place("a", &[(1, 3)]).await, Reason::RequestInProgress);
        drop(first);
        shop.place("a", &[(1, 2)]).await.unwrap();
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
    }
}

#[tokio::test]
async fn leaving_a_cancel_at_any_point_leaves_an_order_that_can_be_cancelled() {
    for polls in 0..3 {
        let shop = Shop::new();
        let order = shop.place("a", &[(1, 2)]).await.unwrap();
        shop.script.slow.store(true, Ordering::Relaxed);
        assert!(abandon(shop.cancel(&order.order_id), polls).is_none());
        assert_eq!(shop.state(&order.order_id).await.unwrap(), OrderState::Placed);
        shop.cancel(&order.order_id).await.unwrap();
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK);
    }
}
