//! Callers who leave in the middle. Time passes by itself here as soon as nothing else happens.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::ordering::v1::OrderState;
use proto::{Reason, seed};
use tokio::time::sleep;
use tonic::Status;

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, leave, refused};

/// Longer than the work goes on without its caller when a service doesn't answer.
const LONG: Duration = Duration::from_secs(31);

/// More turns than any call here takes.
const TURNS: usize = 20;

fn away() -> Status {
    Status::unavailable("away")
}

fn late() -> Status {
    Status::deadline_exceeded("late")
}

#[tokio::test(start_paused = true)]
async fn leaving_while_prices_are_asked_for_leaves_nothing() {
    // That call waits twice.
    for turns in 0..3 {
        let shop = Shop::new();
        shop.script.slow.store(true, Ordering::Relaxed);
        assert!(leave(shop.place("a", &[(1, 2)]), turns).await.is_none());
        shop.settle().await;
        assert!(shop.made().await.is_empty());
        assert!(shop.inventory.states().is_empty());
        shop.place("a", &[(2, 3)]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_later_does_not_stop_the_order() {
    let mut stayed = false;
    for turns in 3..TURNS {
        let shop = Shop::new();
        shop.script.slow.store(true, Ordering::Relaxed);
        stayed = leave(shop.place("a", &[(1, 2)]), turns).await.is_some();
        shop.settle().await;
        let made = shop.made().await;
        let order = shop.place("a", &[(1, 2)]).await.unwrap();
        assert_eq!((made, order.state()), (vec![order.order_id], OrderState::Placed), "{turns}");
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 2);
    }
    assert!(stayed, "there is no later point to leave at");
}

#[tokio::test(start_paused = true)]
async fn leaving_at_any_point_of_a_failing_call_leaves_no_units_behind() {
    for faults in [
        &[(Step::Price, Fault::Refuse(away()))][..],
        &[(Step::Price, Fault::Hang)],
        &[(Step::Reserve, Fault::Refuse(away()))],
        &[(Step::Reserve, Fault::LoseReply(away()))],
        &[(Step::Reserve, Fault::LoseReply(late()))],
        &[(Step::Reserve, Fault::LoseReply(late())), (Step::Release, Fault::Hang)],
        &[(Step::Reserve, Fault::Hang)],
        &[(Step::Confirm, Fault::Refuse(away()))],
        &[(Step::Confirm, Fault::LoseReply(away()))],
        &[(Step::Confirm, Fault::Hang)],
        &[(Step::Confirm, Fault::Hang), (Step::Release, Fault::Hang), (Step::Release, Fault::Hang)],
        &[(Step::Confirm, Fault::LoseReply(away())), (Step::Release, Fault::Refuse(away()))],
        &[(Step::Confirm, Fault::LoseReply(late())), (Step::Release, Fault::LoseReply(late()))],
    ] {
        for turns in 0..TURNS {
            let shop = Shop::new();
            shop.script.slow.store(true, Ordering::Relaxed);
            faults.iter().for_each(|(step, fault)| shop.script.fail(*step, fault.clone()));
            leave(shop.place("a", &[(1, 2)]), turns).await;
            shop.settle().await;
            assert!(shop.made().await.is_empty(), "{faults:?} {turns}");
            assert_eq!(shop.inventory.in_stock(1), seed::STOCK, "{faults:?} {turns}");

            // There is room for other content.
            shop.script.heal();
            let order = shop.place("a", &[(2, 3)]).await.unwrap();
            shop.settle().await;
            shop.cancel(&order.order_id).await.unwrap();
            shop.settle().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_price_that_hangs_is_asked_for_until_the_caller_leaves() {
    let shop = Shop::new();
    shop.script.fail(Step::Price, Fault::Hang);
    let mut first = Box::pin(shop.place("a", &[(1, 2)]));
    assert!(leave(&mut first, 9).await.is_none());
    refused(shop.place("a", &[(1, 2)]).await, Reason::RequestInProgress);
    drop(first);
    shop.place("a", &[(1, 2)]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn units_are_waited_for_without_the_caller_but_not_for_ever() {
    for step in [Step::Reserve, Step::Confirm] {
        let shop = Shop::new();
        shop.script.fail(step, Fault::Hang);
        assert!(leave(shop.place("a", &[(1, 2)]), TURNS).await.is_none());
        sleep(LONG - Duration::from_secs(2)).await;
        refused(shop.place("a", &[(1, 2)]).await, Reason::RequestInProgress);
        refused(shop.place("a", &[(1, 3)]).await, Reason::RequestInProgress);
        sleep(Duration::from_secs(2)).await;
        shop.place("a", &[(1, 3)]).await.unwrap();
        shop.settle().await;
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 3);
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_a_cancel_at_any_point_leaves_it_decided_or_not_begun() {
    for fault in [None, Some(Fault::Refuse(away())), Some(Fault::Hang)] {
        for turns in 0..TURNS {
            let shop = Shop::new();
            let order = shop.place("a", &[(1, 2)]).await.unwrap();
            shop.script.slow.store(true, Ordering::Relaxed);
            fault.iter().for_each(|fault| shop.script.fail(Step::Release, fault.clone()));
            leave(shop.cancel(&order.order_id), turns).await;
            // Placed with its units, or cancelled without: what is decided comes to its end.
            shop.settle().await;
            let done = turns > 0;
            let state = if done { OrderState::Cancelled } else { OrderState::Placed };
            assert_eq!(shop.state(&order.order_id).await.unwrap(), state, "{fault:?} {turns}");

            shop.script.heal();
            assert_eq!(shop.cancel(&order.order_id).await.unwrap().state(), OrderState::Cancelled);
            shop.settle().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_cancels_that_are_left_one_goes_on() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 2)]).await.unwrap();
    shop.script.steps();
    shop.script.fail(Step::Release, Fault::Hang);
    for _ in 0..5 {
        assert!(leave(shop.cancel(&order.order_id), TURNS).await.is_none());
    }
    sleep(LONG).await;
    assert_eq!(shop.script.steps(), [(Step::Release, order.order_id.clone())]);
    assert_eq!(shop.state(&order.order_id).await.unwrap(), OrderState::Cancelling);
    shop.settle().await;
    assert_eq!(shop.script.steps(), [(Step::Release, order.order_id.clone())]);
    assert_eq!(shop.cancel(&order.order_id).await.unwrap().state(), OrderState::Cancelled);
}
