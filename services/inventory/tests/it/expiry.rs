//! What happens when time is up. Time stands still here until a test lets it pass.

use proto::seed::STOCK;
use tokio::time::{advance, sleep};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
const SECOND: Duration = Duration::from_secs(1);

/// A shop whose expired reservations are given back by themselves.
fn running(change: impl FnOnce(&mut Config)) -> Shop {
    let shop = shop_with(change);
    tokio::spawn(shop.0.clone().expire());
    shop
}

#[tokio::test(start_paused = true)]
async fn units_go_back_when_nobody_confirms() {
    let shop = running(|_| {});
    shop.reserve("a", &[(1, 2), (2, 3)]).await.unwrap();
    sleep(TTL - SECOND).await;
    assert_eq!(shop.stock(1).await, (STOCK - 2, 2, 0));
    assert_eq!(shop.reservation("a").await.unwrap().state(), ReservationState::Held);
    sleep(SECOND * 2).await;
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
    assert_eq!(shop.stock(2).await, (STOCK, 0, 0));
    assert_eq!(shop.reservation("a").await.unwrap().state(), ReservationState::Expired);
    assert_eq!(reason(shop.confirm("a").await), Reason::ReservationExpired);
    assert_eq!(shop.release("a").await.unwrap().state(), ReservationState::Expired);
    assert_eq!(reason(shop.reserve("a", &[(1, 2), (2, 3)]).await), Reason::ReservationExpired);
    assert_eq!(reason(shop.reserve("a", &[(1, 1)]).await), Reason::OrderIdConflict);
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn each_goes_back_at_its_own_time() {
    let shop = running(|_| {});
    for n in 1..=10 {
        shop.reserve(&format!("order-{n}"), &[(1, n)]).await.unwrap();
        sleep(SECOND).await;
    }
    sleep(TTL - SECOND * 10 + SECOND / 2).await;
    for n in 1..=10 {
        let held: i32 = (n + 1..=10).sum();
        assert_eq!(shop.stock(1).await, (STOCK - held, held, 0), "after {n}");
        sleep(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fraction_of_a_second_is_a_time_to_live() {
    let shop = running(|c| c.reservation_ttl = Duration::from_millis(50));
    shop.reserve("a", &[(1, 1)]).await.unwrap();
    sleep(Duration::from_millis(40)).await;
    assert_eq!(shop.stock(1).await, (STOCK - 1, 1, 0));
    sleep(Duration::from_millis(20)).await;
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_too_late_finds_it_expired_though_nothing_ran_yet() {
    for call in 0..4 {
        let shop = shop();
        shop.reserve("a", &[(1, 2)]).await.unwrap();
        advance(TTL).await;
        match call {
            0 => assert_eq!(reason(shop.confirm("a").await), Reason::ReservationExpired),
            1 => assert_eq!(shop.release("a").await.unwrap().state(), ReservationState::Expired),
            2 => assert_eq!(shop.reservation("a").await.unwrap().state(), ReservationState::Expired),
            _ => assert_eq!(reason(shop.reserve("a", &[(1, 2)]).await), Reason::ReservationExpired),
        }
        assert_eq!(shop.stock(1).await, (STOCK, 0, 0), "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_moment_before_its_time_it_can_be_confirmed() {
    let shop = running(|_| {});
    shop.reserve("a", &[(1, 2)]).await.unwrap();
    advance(TTL - Duration::from_nanos(1)).await;
    shop.confirm("a").await.unwrap();
    sleep(TTL * 3).await;
    assert_eq!(shop.stock(1).await, (STOCK - 2, 0, 2));
    assert_eq!(shop.reservation("a").await.unwrap().state(), ReservationState::Confirmed);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_refused_for_units_that_are_due() {
    let shop = shop();
    shop.leave(1, 100).await;
    for n in 0..100 {
        shop.reserve(&format!("order-{n}"), &[(1, 1)]).await.unwrap();
    }
    assert_eq!(reason(shop.reserve("late", &[(1, 1)]).await), Reason::OutOfStock);
    advance(TTL).await;
    shop.reserve("late", &[(1, 100)]).await.unwrap();
    assert_eq!(shop.stock(1).await, (0, 100, 0));
    advance(TTL).await;
    assert_eq!(shop.adjust(1, -100).await.unwrap(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_refused_for_room_that_is_due() {
    let shop = shop_with(|c| c.max_reservations = 3);
    for n in 0..3 {
        shop.reserve(&format!("order-{n}"), &[(1, 1)]).await.unwrap();
    }
    advance(TTL).await;
    // Expired by now, but remembered.
    assert_eq!(reason(shop.reserve("late", &[(1, 1)]).await), Reason::StoreFull);
    advance(TTL).await;
    shop.reserve("late", &[(1, 1)]).await.unwrap();
    assert_eq!(shop.0.reservations(), 1);
}

#[tokio::test(start_paused = true)]
async fn lines_have_a_bound_of_their_own() {
    let shop = shop_with(|c| c.max_reservation_lines = 5);
    // Lines of one SKU are one.
    shop.reserve("a", &[(1, 1), (2, 1), (1, 1)]).await.unwrap();
    shop.reserve("b", &[(1, 1), (2, 1)]).await.unwrap();
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (2, 4));
    let refused = shop.reserve("c", &[(3, 1), (4, 1)]).await;
    assert!(refused.as_ref().unwrap_err().message().contains("lines"), "{refused:?}");
    assert_eq!(reason(refused), Reason::StoreFull);
    // A repetition needs no room, and neither a refusal nor another state takes any.
    shop.reserve("a", &[(1, 2), (2, 1)]).await.unwrap();
    shop.release("a").await.unwrap();
    shop.confirm("b").await.unwrap();
    assert_eq!(reason(shop.reserve("c", &[(3, STOCK), (3, 1)]).await), Reason::OutOfStock);
    assert_eq!(reason(shop.reserve("a", &[(5, 1)]).await), Reason::OrderIdConflict);
    assert_eq!(
        reason(shop.reserve("never", &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]).await),
        Reason::StoreFull
    );
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (2, 4));
    assert_eq!(shop.stock(3).await, (STOCK, 0, 0));
    shop.reserve("d", &[(3, 1)]).await.unwrap();
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (3, 5));

    // What is due to be forgotten makes room.
    advance(TTL).await;
    shop.reserve("c", &[(3, 1), (4, 1)]).await.unwrap();
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (3, 5));
    advance(DAY).await;
    shop.reserve("e", &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]).await.unwrap();
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn closed_reservations_are_forgotten_after_once_more_their_time() {
    let shop = running(|_| {});
    shop.reserve("expires", &[(1, 1)]).await.unwrap();
    shop.reserve("released", &[(1, 1)]).await.unwrap();
    sleep(SECOND * 10).await;
    shop.release("released").await.unwrap();
    sleep(TTL - SECOND).await;
    assert_eq!(shop.reservation("released").await.unwrap().state(), ReservationState::Released);
    sleep(SECOND * 2).await;
    assert_eq!(reason(shop.reservation("released").await), Reason::ReservationNotFound);
    assert_eq!(shop.reservation("expires").await.unwrap().state(), ReservationState::Expired);
    sleep(TTL).await;
    assert_eq!(reason(shop.reservation("expires").await), Reason::ReservationNotFound);
    assert_eq!(shop.0.reservations(), 0);
    // Their order ids are as good as new.
    let anew = shop.reserve("expires", &[(2, 7)]).await.unwrap();
    assert_eq!(anew.state(), ReservationState::Held);
}

#[tokio::test(start_paused = true)]
async fn confirmed_reservations_are_forgotten_after_a_day_and_stay_sold() {
    let shop = running(|_| {});
    shop.reserve("a", &[(1, 2)]).await.unwrap();
    sleep(SECOND * 30).await;
    shop.confirm("a").await.unwrap();
    sleep(DAY - SECOND).await;
    // A repetition doesn't make it remembered for longer.
    shop.confirm("a").await.unwrap();
    sleep(SECOND * 2).await;
    assert_eq!(reason(shop.confirm("a").await), Reason::ReservationNotFound);
    assert_eq!(reason(shop.release("a").await), Reason::ReservationNotFound);
    assert_eq!(shop.stock(1).await, (STOCK - 2, 0, 2));
    assert_eq!(shop.0.reservations(), 0);
}

#[tokio::test(start_paused = true)]
async fn forgotten_sales_make_room_for_deliveries() {
    let shop = running(|_| {});
    for _ in 1..1_000 {
        shop.adjust(1, 1_000_000).await.unwrap();
    }
    shop.reserve("a", &[(1, 5)]).await.unwrap();
    shop.confirm("a").await.unwrap();
    assert_eq!(names(shop.adjust(1, 5).await), ["delta"]);
    sleep(DAY + SECOND).await;
    assert_eq!(shop.adjust(1, 5).await.unwrap(), (1_000_000_000, 0, 5));
    assert_eq!(names(shop.adjust(1, 1).await), ["delta"]);
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_by_forgetting() {
    let shop = running(|c| {
        c.max_reservations = 1_000;
        c.max_reservation_lines = 2_000;
    });
    for n in 0..50_000 {
        let order = format!("order-{n}");
        let wanted = [(n % 50 + 1, 1), ((n + 1) % 50 + 1, 1)];
        shop.reserve(&order, &wanted[..1 + n as usize % 2]).await.unwrap();
        if n % 3 == 0 {
            shop.confirm(&order).await.unwrap();
        }
        if n % 3 < 2 {
            shop.release(&order).await.unwrap();
        }
        sleep(Duration::from_millis(200)).await;
    }
    sleep(TTL * 2).await;
    assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (0, 0));
    for id in 1..=50 {
        assert_eq!(shop.stock(id).await, (STOCK, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_expiries_is_dealt_with_whole() {
    let shop = running(|_| {});
    for n in 0..5_000 {
        shop.reserve(&format!("order-{n}"), &[(n % 50 + 1, 1)]).await.unwrap();
    }
    sleep(TTL + SECOND).await;
    for id in 1..=50 {
        assert_eq!(shop.stock(id).await, (STOCK, 0, 0));
    }
    assert_eq!(shop.0.reservations(), 5_000);
    sleep(TTL).await;
    assert_eq!(shop.0.reservations(), 0);
}
