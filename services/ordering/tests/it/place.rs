//! Placing orders.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chassis::Deadline;
use ordering::Config;
use proto::inventory::v1::ReservationState;
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, Refusal, field_errors, seed};
use tokio::time::sleep;
use tonic::{Request, Status};

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, refused, request};

fn address() -> pb::Address {
    pb::Address {
        name: "Ada".to_owned(),
        street: "Weg 1".to_owned(),
        city: "Ulm".to_owned(),
        postal_code: "89073".to_owned(),
        country: "DE".to_owned(),
    }
}

/// Minor units of a message's money.
fn minor(money: &Option<proto::common::v1::Money>) -> i64 {
    let money = money.as_ref().unwrap();
    assert_eq!(money.currency, "EUR");
    money.amount_minor
}

#[tokio::test]
async fn an_order_has_catalogs_prices_and_sells_inventorys_units() {
    let shop = Shop::new();
    let order = shop
        .send(pb::PlaceOrderRequest { ship_to: Some(address()), ..request("a", &[(3, 2), (1, 1), (3, 4)]) });
    let order = order.await.unwrap();
    assert_eq!(order.state(), pb::OrderState::Placed);
    assert_eq!((order.line_count, minor(&order.total)), (2, 6 * 300 + 100));
    let lines =
        order.lines.iter().map(|l| (l.book_id, l.quantity, minor(&l.unit_price), minor(&l.line_total)));
    assert_eq!(lines.collect::<Vec<_>>(), [(3, 6, 300, 1800), (1, 1, 100, 100)]);
    assert_eq!(
        (order.lines[0].sku.as_str(), order.lines[0].title.as_str()),
        (seed::sku(3).as_str(), "Title 3")
    );
    assert_eq!(order.ship_to, Some(address()));
    assert!(order.history.is_empty());

    let id = &order.order_id;
    let steps = [(Step::Price, String::new()), (Step::Reserve, id.clone()), (Step::Confirm, id.clone())];
    assert_eq!(shop.script.steps(), steps);
    assert_eq!(shop.inventory.in_stock(3), seed::STOCK - 6);
    assert_eq!(shop.inventory.states()[id], ReservationState::Confirmed);

    assert_eq!(shop.get(id, pb::OrderView::Full).await.unwrap(), order);
    assert_eq!(shop.get(id, pb::OrderView::Unspecified).await.unwrap(), order);
    let status = shop.get(id, pb::OrderView::Status).await.unwrap();
    assert_eq!(status, pb::Order { lines: vec![], ship_to: None, ..order.clone() });
    let history = shop.get(id, pb::OrderView::History).await.unwrap().history;
    let kinds: Vec<_> = history.iter().map(|event| (event.sequence, event.kind.as_str())).collect();
    assert_eq!(kinds, [(1, "RESERVED"), (2, "PLACED")]);
}

#[tokio::test]
async fn a_sku_may_have_more_copies_than_one_line() {
    let shop = Shop::new();
    shop.inventory.stock(1, 3_000_000);
    let order = shop.place("a", &[(1, 1_000_000), (1, 1_000_000), (1, 5)]).await.unwrap();
    assert_eq!(order.lines[0].quantity, 2_000_005);
    assert_eq!(shop.inventory.in_stock(1), 999_995);
}

#[tokio::test]
async fn an_order_keeps_its_prices() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 1)]).await.unwrap();
    shop.catalog.change(1, |book| {
        book.title = "New".to_owned();
        book.price.as_mut().unwrap().amount_minor = 7;
    });
    assert_eq!(shop.get(&order.order_id, pb::OrderView::Full).await.unwrap(), order);
    assert_eq!(minor(&shop.place("b", &[(1, 1)]).await.unwrap().total), 7);
}

#[tokio::test]
async fn broken_fields_are_all_named_and_nothing_is_asked() {
    let shop = Shop::new();
    let mut broken = request("", &[(1, 0), (2, 1), (3, 1_000_001)]);
    broken.lines[1].sku = "x".to_owned();
    broken.ship_to = Some(pb::Address { country: "Germany".to_owned(), ..address() });
    let status = refused(shop.send(broken).await, Reason::InvalidField);
    let fields: Vec<_> = field_errors(&status).into_iter().map(|error| error.field).collect();
    let expected =
        ["request_id", "lines[0].quantity", "lines[1].sku", "lines[2].quantity", "ship_to.country"];
    assert_eq!(fields, expected);
    refused(shop.place("a", &[]).await, Reason::InvalidField);
    refused(shop.place("a", &[(1, 1); 1001]).await, Reason::InvalidField);
    assert!(shop.script.steps().is_empty());
}

#[tokio::test]
async fn an_unknown_sku_is_named_before_anything_is_reserved() {
    let shop = Shop::new();
    let status = refused(shop.place("a", &[(1, 1), (51, 1)]).await, Reason::UnknownSku);
    assert!(status.message().contains(&seed::sku(51)), "{status}");
    assert_eq!(shop.script.steps(), [(Step::Price, String::new())]);
    assert!(shop.made().await.is_empty());
}

#[tokio::test]
async fn out_of_stock_passes_through_and_can_be_repeated_later() {
    let shop = Shop::new();
    shop.inventory.stock(1, 2);
    let status = refused(shop.place("a", &[(1, 3)]).await, Reason::OutOfStock);
    assert_eq!(status.message(), Status::from(proto::out_of_stock(&seed::sku(1), 3, 2)).message());
    assert!(shop.made().await.is_empty());
    // Nothing was held, so there was nothing to give back.
    assert!(shop.script.steps().iter().all(|(step, _)| *step != Step::Release));

    // Other content may follow, because the refused request is not remembered.
    shop.place("a", &[(1, 2)]).await.unwrap();
    assert_eq!(shop.inventory.in_stock(1), 0);
}

#[tokio::test]
async fn a_total_that_does_not_fit_is_refused() {
    let shop = Shop::new();
    shop.catalog.change(1, |book| book.price.as_mut().unwrap().amount_minor = i64::MAX);
    let status = refused(shop.place("a", &[(1, 2)]).await, Reason::InvalidField);
    assert_eq!(field_errors(&status)[0].field, "lines");
    assert!(shop.place("a", &[(1, 1)]).await.is_ok());
}

#[tokio::test]
async fn prices_without_sense_are_our_fault() {
    let shop = Shop::new();
    shop.catalog.change(1, |book| book.price = None);
    shop.catalog.change(2, |book| book.price.as_mut().unwrap().amount_minor = -1);
    shop.catalog.change(3, |book| book.price.as_mut().unwrap().currency = "SEK".to_owned());
    for lines in [&[(1, 1)][..], &[(2, 1)], &[(3, 1), (4, 1)]] {
        refused(shop.place("a", lines).await, Reason::Internal);
    }
    assert!(shop.made().await.is_empty());
}

#[tokio::test]
async fn a_full_store_refuses_new_orders_only() {
    let shop = Shop::with(Config { max_orders: 21, ..Config::default() });
    let order = shop.place("a", &[(1, 1)]).await.unwrap();
    shop.script.steps();
    refused(shop.place("b", &[(1, 1)]).await, Reason::StoreFull);
    assert!(shop.script.steps().is_empty());
    assert_eq!(shop.place("a", &[(1, 1)]).await.unwrap(), order);
}

#[tokio::test]
async fn a_store_full_of_lines_refuses_new_orders_only() {
    // The seeded orders have 160.
    let shop = Shop::with(Config { max_order_lines: 163, ..Config::default() });
    let order = shop.place("a", &[(1, 1), (2, 1), (1, 1)]).await.unwrap();
    refused(shop.place("b", &[(1, 1), (2, 1)]).await, Reason::StoreFull);
    assert_eq!(shop.place("a", &[(1, 2), (2, 1)]).await.unwrap(), order);
    // What is refused takes no room.
    refused(shop.place("b", &[(51, 1)]).await, Reason::UnknownSku);
    shop.place("b", &[(1, 1)]).await.unwrap();
    refused(shop.place("c", &[(1, 1)]).await, Reason::StoreFull);
}

#[tokio::test]
async fn the_same_request_is_answered_with_the_same_order() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 1), (2, 3)]).await.unwrap();
    shop.script.steps();
    assert_eq!(shop.place("a", &[(1, 1), (2, 3)]).await.unwrap(), order);
    assert_eq!(shop.place("a", &[(2, 1), (1, 1), (2, 2)]).await.unwrap(), order);
    refused(shop.place("a", &[(1, 1), (2, 4)]).await, Reason::IdempotencyKeyReused);
    let elsewhere = pb::PlaceOrderRequest { ship_to: Some(address()), ..request("a", &[(1, 1), (2, 3)]) };
    refused(shop.send(elsewhere).await, Reason::IdempotencyKeyReused);
    assert!(shop.script.steps().is_empty());

    shop.cancel(&order.order_id).await.unwrap();
    assert_eq!(shop.place("a", &[(1, 1), (2, 3)]).await.unwrap(), order);
    assert_eq!(shop.state(&order.order_id).await.unwrap(), pb::OrderState::Cancelled);
    assert_eq!(shop.made().await, [order.order_id]);
}

#[tokio::test]
async fn a_request_that_runs_is_not_run_again() {
    let shop = Shop::new();
    shop.script.slow.store(true, std::sync::atomic::Ordering::Relaxed);
    let (first, second) = tokio::join!(shop.place("a", &[(1, 1)]), shop.place("a", &[(1, 1)]));
    refused(second, Reason::RequestInProgress);
    assert_eq!(shop.place("a", &[(1, 1)]).await.unwrap(), first.unwrap());
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 1);
}

#[test]
fn many_callers_at_once_place_one_order() {
    let shop = Arc::new(Shop::new());
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let shop = Arc::clone(&shop);
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(shop.place("a", &[(1, 1)]))
            })
        })
        .collect();
    let mut placed = Vec::new();
    for caller in callers {
        match caller.join().unwrap() {
            Ok(order) => placed.push(order),
            refusal => drop(refused(refusal, Reason::RequestInProgress)),
        }
    }
    placed.dedup();
    assert_eq!(placed.len(), 1);
    let reserved = shop.script.steps().into_iter().filter(|(step, _)| *step == Step::Reserve);
    assert_eq!(reserved.count(), 1);
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 1);
}

#[tokio::test]
async fn upstream_failures_give_everything_back_and_can_be_repeated() {
    let unavailable = || Status::unavailable("connection refused");
    let late = || Status::deadline_exceeded("late");
    let invalid = || Status::from(Refusal::field("lines", "must have fewer entries"));
    for (step, fault, reason) in [
        (Step::Price, Fault::Refuse(unavailable()), Reason::UpstreamUnavailable),
        (Step::Price, Fault::Refuse(late()), Reason::DeadlineExceeded),
        (Step::Price, Fault::Refuse(invalid()), Reason::Internal),
        (Step::Reserve, Fault::Refuse(unavailable()), Reason::UpstreamUnavailable),
        (Step::Reserve, Fault::LoseReply(unavailable()), Reason::UpstreamUnavailable),
        (Step::Reserve, Fault::LoseReply(late()), Reason::DeadlineExceeded),
        (Step::Reserve, Fault::Refuse(invalid()), Reason::Internal),
        (Step::Confirm, Fault::Refuse(unavailable()), Reason::UpstreamUnavailable),
        (Step::Confirm, Fault::LoseReply(unavailable()), Reason::UpstreamUnavailable),
        (Step::Confirm, Fault::LoseReply(late()), Reason::DeadlineExceeded),
        (Step::Confirm, Fault::Refuse(Status::internal("boom")), Reason::UpstreamUnavailable),
    ] {
        let case = format!("{step:?} {fault:?}");
        let shop = Shop::new();
        shop.script.fail(step, fault);
        refused(shop.place("a", &[(1, 1)]).await, reason);
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK, "{case}");
        assert!(shop.made().await.is_empty(), "{case}");

        let order = shop.place("a", &[(1, 1)]).await.unwrap();
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 1, "{case}");
        assert_eq!(shop.made().await, [order.order_id.as_str()], "{case}");
        // The order knows which reservation is its own.
        shop.cancel(&order.order_id).await.unwrap();
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_holds_no_refusal_up_but_the_next_attempt() {
    let gone = || Status::unavailable("gone");
    let late = || Status::deadline_exceeded("late");
    for (step, fault, release) in [
        // The units may be sold.
        (Step::Confirm, Fault::LoseReply(gone()), Fault::Refuse(gone())),
        (Step::Confirm, Fault::LoseReply(gone()), Fault::Hang),
        (Step::Confirm, Fault::Refuse(late()), Fault::LoseReply(gone())),
        // The release may come late, and must not meet the next attempt.
        (Step::Reserve, Fault::LoseReply(gone()), Fault::Hang),
        (Step::Reserve, Fault::LoseReply(late()), Fault::LoseReply(late())),
    ] {
        let case = format!("{step:?} {fault:?} {release:?}");
        let shop = Shop::new();
        shop.script.fail(step, fault);
        shop.script.fail(Step::Release, release);
        shop.place("a", &[(1, 1)]).await.unwrap_err();
        assert!(shop.made().await.is_empty(), "{case}");
        refused(shop.place("a", &[(1, 1)]).await, Reason::RequestInProgress);
        sleep(Duration::from_secs(2)).await;
        let order = shop.place("a", &[(1, 1)]).await.unwrap();
        let second = format!("{}.2", order.order_id);
        let states = [(order.order_id, ReservationState::Released), (second, ReservationState::Confirmed)];
        assert_eq!(shop.inventory.states(), states.into(), "{case}");
        shop.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_while_inventory_is_away_expires_or_is_taken_over() {
    let gone = || Status::unavailable("gone");
    for expired in [false, true] {
        let shop = Shop::new();
        shop.script.fail(Step::Reserve, Fault::LoseReply(gone()));
        shop.script.fail(Step::Release, Fault::Refuse(gone()));
        refused(shop.place("a", &[(1, 1)]).await, Reason::UpstreamUnavailable);
        let (name, state) = shop.inventory.states().pop_first().unwrap();
        assert_eq!(state, ReservationState::Held);
        if expired {
            shop.inventory.expire(&name);
        }
        shop.place("a", &[(1, 1)]).await.unwrap();
        assert_eq!(shop.inventory.states().len(), 1 + usize::from(expired));
        shop.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_given_back_for_long_is_taken_over_too() {
    let gone = || Status::unavailable("gone");
    for lines in [[(1, 1)], [(2, 5)]] {
        let shop = Shop::new();
        shop.script.fail(Step::Confirm, Fault::LoseReply(gone()));
        (0..99).for_each(|_| shop.script.fail(Step::Release, Fault::Refuse(gone())));
        refused(shop.place("a", &[(1, 1)]).await, Reason::UpstreamUnavailable);
        sleep(Duration::from_secs(600)).await;
        let steps = shop.script.steps();
        assert_eq!(steps.iter().filter(|(step, _)| *step == Step::Release).count(), 7);
        assert_eq!(shop.inventory.in_stock(1), seed::STOCK - 1);

        shop.script.heal();
        shop.place("a", &lines).await.unwrap();
        shop.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_answer_is_given_up_at_the_deadline() {
    for step in [Step::Price, Step::Reserve, Step::Confirm] {
        let shop = Shop::new();
        shop.script.fail(step, Fault::Hang);
        let mut request = Request::new(request("a", &[(1, 1)]));
        let deadline = Deadline::after(Duration::from_secs(3));
        request.extensions_mut().insert(deadline);
        refused(shop.ordering.place_order(request).await, Reason::DeadlineExceeded);
        assert!(deadline.left().is_zero());
        shop.settle().await;
        assert!(shop.made().await.is_empty());
    }
}

#[tokio::test]
async fn a_repeated_attempt_makes_a_new_reservation_when_the_old_one_is_over() {
    let shop = Shop::new();
    for _ in 0..2 {
        shop.script.fail(Step::Confirm, Fault::Refuse(Status::unavailable("gone")));
        refused(shop.place("a", &[(1, 1)]).await, Reason::UpstreamUnavailable);
    }
    let order = shop.place("a", &[(1, 1)]).await.unwrap();
    let name = |suffix| format!("{}{suffix}", order.order_id);
    let states = [
        (name(""), ReservationState::Released),
        (name(".2"), ReservationState::Released),
        (name(".3"), ReservationState::Confirmed),
    ];
    assert_eq!(shop.inventory.states(), states.into());
}

#[tokio::test]
async fn a_reservation_that_ends_before_it_is_confirmed_is_made_again() {
    for reason in [Reason::ReservationExpired, Reason::ReservationReleased, Reason::ReservationNotFound] {
        let shop = Shop::new();
        shop.script.fail(Step::Confirm, Fault::Refuse(Refusal::new(reason, "over").into()));
        let order = shop.place("a", &[(1, 1)]).await.unwrap();
        assert_eq!(shop.made().await, [order.order_id.as_str()]);
        let second = format!("{}.2", order.order_id);
        assert_eq!(shop.inventory.states()[&second], ReservationState::Confirmed);
        shop.script.steps();
        shop.cancel(&order.order_id).await.unwrap();
        assert_eq!(shop.script.steps(), [(Step::Release, second)]);
    }
}

#[tokio::test]
async fn inventory_is_not_asked_for_ever() {
    let shop = Shop::new();
    for _ in 0..1000 {
        shop.script
            .fail(Step::Confirm, Fault::Refuse(Refusal::new(Reason::ReservationExpired, "over").into()));
    }
    refused(shop.place("a", &[(1, 1)]).await, Reason::UpstreamUnavailable);
    assert!(shop.script.steps().len() < 200);
    assert!(shop.made().await.is_empty());
}

#[tokio::test]
async fn the_deadline_is_passed_on_but_giving_back_has_its_own() {
    let shop = Shop::new();
    let deadline = Deadline::after(Duration::from_secs(9));
    shop.script.fail(Step::Confirm, Fault::Refuse(Status::deadline_exceeded("late")));
    let mut request = Request::new(request("a", &[(1, 1)]));
    request.extensions_mut().insert(deadline);
    refused(shop.ordering.place_order(request).await, Reason::DeadlineExceeded);
    for call in shop.script.calls() {
        let passed_on = call.deadline == Some(deadline);
        assert_eq!(passed_on, call.step != Step::Release, "{call:?}");
        assert!(call.deadline.is_some_and(|d| d <= deadline), "{call:?}");
    }
}
