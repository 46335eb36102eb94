//! Every call that ordering makes fails in every way, and ordering or inventory is killed on the way. Whatever happens,
//! in the end there is one order or none, and the stock adds up. Time passes by itself here as soon as nothing else
//! happens.

use std::time::Duration;

use chassis::Deadline;
use proto::ordering::v1::OrderState;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, Refusal, seed};
use tokio::time::{Instant, sleep};
use tonic::{Request, Status};

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, leave, refused, request};

/// What callers wait.
const TIME: Duration = Duration::from_secs(3);

/// The ways in which a call fails: before its work, after it, too late, never, and for a reason.
fn faults() -> Vec<Fault> {
    let away = || Status::unavailable("away");
    vec![
        Fault::Refuse(away()),
        Fault::LoseReply(away()),
        Fault::LoseReply(Status::deadline_exceeded("late")),
        Fault::Late(Duration::ZERO),
        Fault::Late(TIME * 2),
        Fault::Hang,
        Fault::Refuse(proto::out_of_stock(&seed::sku(1), 2, 1).into()),
        Fault::Refuse(Refusal::new(Reason::StoreFull, "full").into()),
        Fault::Refuse(Refusal::new(Reason::ReservationExpired, "over").into()),
    ]
}

async fn place_in_time(shop: &Shop, lines: &[(i32, i32)]) -> Result<(), Status> {
    let mut request = Request::new(request("a", lines));
    request.extensions_mut().insert(Deadline::after(TIME));
    let began = Instant::now();
    let placed = shop.ordering.place_order(request).await;
    assert!(began.elapsed() <= TIME, "the caller waited for {:?}", began.elapsed());
    placed.map(drop)
}

/// Waits until everything has come to its end, and checks that there is this order or none, and the stock that goes
/// with it. How many copies were sold.
async fn sold(shop: &Shop, case: &str) -> i32 {
    shop.reconcile(Duration::from_secs(120)).await;
    shop.inventory.expire_all();
    shop.settle().await;
    let made = shop.made().await;
    assert!(made.len() <= 1, "{case}");
    let mut copies = 0;
    for id in &made {
        let order = shop.get(id, proto::ordering::v1::OrderView::Full).await.unwrap();
        if order.state() == OrderState::Placed {
            copies += order.lines[0].quantity;
        }
    }
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - copies, "{case}");
    copies
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_leaves_one_order_or_none() {
    let mut tried = 0;
    for step in [Step::Price, Step::Reserve, Step::Confirm] {
        for fault in faults() {
            for release in faults().into_iter().map(Some).chain([None]) {
                for again in [None, Some(2), Some(3)] {
                    let case = format!("{step:?} {fault:?}, then {release:?}, then {again:?}");
                    let shop = Shop::new();
                    shop.script.fail(step, fault.clone());
                    release.iter().for_each(|fault| shop.script.fail(Step::Release, fault.clone()));
                    let first = place_in_time(&shop, &[(1, 2)]).await;
                    let second = match again {
                        Some(copies) => Some((copies, place_in_time(&shop, &[(1, copies)]).await)),
                        None => None,
                    };
                    let copies = sold(&shop, &case).await;
                    // What was acknowledged stands, and what was refused doesn't.
                    match (first, second) {
                        (Ok(()), _) => assert_eq!(copies, 2, "{case}"),
                        (Err(_), Some((wanted, Ok(())))) => assert_eq!(copies, wanted, "{case}"),
                        (Err(_), _) => assert_eq!(copies, 0, "{case}"),
                    }
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} ways to fail");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_fails_ends_all_the_same() {
    for first in faults() {
        for second in faults() {
            let case = format!("{first:?}, then {second:?}");
            let shop = Shop::new();
            let order = shop.place("a", &[(1, 2)]).await.unwrap();
            shop.script.fail(Step::Release, first.clone());
            shop.script.fail(Step::Release, second);
            if let Some(Err(refusal)) = leave(shop.cancel(&order.order_id), 9).await {
                assert_eq!(Reason::of(&refusal), Reason::DeadlineExceeded, "{case}");
            }
            assert_eq!(sold(&shop, &case).await, 0);
            assert_eq!(shop.state(&order.order_id).await.unwrap(), OrderState::Cancelled, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordering_killed_between_any_two_steps_leaves_no_units_behind() {
    for calls in 0..5 {
        for worked in [false, true] {
            for repeated in [false, true] {
                let case = format!("killed in call {calls}, its work done: {worked}, repeated: {repeated}");
                let shop = Shop::new();
                // Price, reserve, confirm, and a cancel's release.
                shop.script.die_after(calls, worked);
                if let Some(order) = leave(shop.place("a", &[(1, 2)]), 9).await {
                    leave(shop.cancel(&order.unwrap().order_id), 9).await;
                }
                sleep(Duration::from_millis(1)).await;
                let shop = shop.kill_ordering();
                if repeated {
                    shop.place("a", &[(1, 2)]).await.unwrap();
                }
                assert_eq!(sold(&shop, &case).await, if repeated { 2 } else { 0 }, "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_inventory_killed_between_any_two_steps_knows_the_order_in_the_end() {
    for turns in 0..30 {
        let shop = Shop::new();
        shop.script.slow.store(true, std::sync::atomic::Ordering::Relaxed);
        let reconciler = tokio::spawn(shop.ordering.clone().reconcile());
        let mut placing = Box::pin(shop.place("a", &[(1, 2)]));
        let early = leave(&mut placing, turns).await;
        shop.inventory.restart();
        let placed = match early {
            Some(placed) => placed,
            None => placing.await,
        };
        sleep(Duration::from_secs(20)).await;
        reconciler.abort();
        assert_eq!(sold(&shop, &format!("{turns}")).await, if placed.is_ok() { 2 } else { 0 }, "{turns}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_before_a_step_goes_no_further() {
    for step in [Step::Price, Step::Reserve] {
        let shop = Shop::new();
        shop.script.fail(step, Fault::Late(TIME * 2));
        refused(place_in_time(&shop, &[(1, 2)]).await, Reason::DeadlineExceeded);
        let next = if step == Step::Price { Step::Reserve } else { Step::Confirm };
        sleep(TIME * 3).await;
        assert!(shop.script.steps().iter().all(|(done, _)| *done != next), "{step:?}");
        assert_eq!(sold(&shop, "late").await, 0);
    }
}
