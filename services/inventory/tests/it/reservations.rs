//! Reserving, confirming, releasing.

use proto::seed::STOCK;

use super::*;

#[tokio::test]
async fn a_reservation_holds_its_lines() {
    let shop = shop();
    let held = shop.reserve("order-1", &[(2, 3), (1, 2)]).await.unwrap();
    assert_eq!(held.state(), ReservationState::Held);
    assert!(held.reservation_id.starts_with("rsv_"));
    assert_eq!(held.reservation_id.len(), 36);
    assert_eq!(shop.stock(1).await, (STOCK - 2, 2, 0));
    assert_eq!(shop.stock(2).await, (STOCK - 3, 3, 0));
    let expected = pb::Reservation {
        reservation_id: held.reservation_id,
        order_id: "order-1".to_owned(),
        state: ReservationState::Held.into(),
        expires_at: held.expires_at,
        lines: lines(&[(1, 2), (2, 3)]),
    };
    assert_eq!(shop.reservation("order-1").await.unwrap(), expected);
}

#[tokio::test]
async fn a_reservation_expires_when_it_says() {
    let before = std::time::SystemTime::now();
    let shop = shop();
    let held = shop.reserve("a", &[(1, 1)]).await.unwrap();
    let after = std::time::SystemTime::now();
    let expires_at = std::time::SystemTime::try_from(held.expires_at.unwrap()).unwrap();
    // The clock is read once, at start; a monotonic one counts from there.
    let slack = Duration::from_secs(1);
    assert!(expires_at >= before + TTL - slack && expires_at <= after + TTL + slack);
}

#[tokio::test]
async fn lines_of_one_sku_add_up() {
    let shop = shop();
    shop.leave(1, 5).await;
    let refused = shop.reserve("a", &[(1, 3), (2, 1), (1, 3)]).await;
    assert_eq!(metadata(&refused, "wanted"), "6");
    assert_eq!(metadata(&refused, "inStock"), "5");
    assert_eq!(reason(refused), Reason::OutOfStock);
    shop.reserve("a", &[(1, 3), (2, 1), (1, 2)]).await.unwrap();
    assert_eq!(shop.stock(1).await, (0, 5, 0));
    assert_eq!(shop.reservation("a").await.unwrap().lines, lines(&[(1, 5), (2, 1)]));
}

#[tokio::test]
async fn the_largest_reservation_adds_up_too() {
    let shop = shop();
    let refused = shop.reserve("a", &[(1, 1_000_000); 1_000]).await;
    assert_eq!(metadata(&refused, "wanted"), "1000000000");
    assert_eq!(reason(refused), Reason::OutOfStock);
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
}

#[tokio::test]
async fn all_lines_are_held_or_none() {
    let shop = shop();
    shop.leave(3, 4).await;
    let refused = shop.reserve("a", &[(1, 1), (3, 5), (50, 1)]).await;
    assert_eq!(metadata(&refused, "sku"), sku(3));
    assert_eq!(reason(refused), Reason::OutOfStock);
    for id in [1, 3, 50] {
        assert_eq!(shop.stock(id).await.1, 0);
    }
    assert_eq!(reason(shop.reservation("a").await), Reason::ReservationNotFound);
    assert_eq!(shop.0.reservations(), 0);
    // A refused order id is as good as new.
    shop.reserve("a", &[(3, 4)]).await.unwrap();
}

#[tokio::test]
async fn a_thousand_lines_fit() {
    let shop = shop_with(|c| c.books = 1_000);
    let all: Vec<_> = (1..=1_000).rev().map(|id| (id, id)).collect();
    shop.reserve("a", &all).await.unwrap();
    assert_eq!(shop.stock(1_000).await, (STOCK - 1_000, 1_000, 0));
    let kept = shop.release("a").await.unwrap().lines;
    assert_eq!(kept.len(), 1_000);
    assert!(kept.is_sorted_by_key(|line| line.sku.clone()));
    assert_eq!(shop.stock(1_000).await, (STOCK, 0, 0));
}

#[tokio::test]
async fn an_unknown_sku_is_named_the_first_one_sent() {
    let shop = shop();
    shop.leave(1, 0).await;
    let refused = shop.reserve("a", &[(1, 1), (99, 1), (77, 1)]).await;
    assert_eq!(metadata(&refused, "sku"), sku(99));
    assert_eq!(reason(refused), Reason::UnknownSku);
}

#[tokio::test]
async fn every_broken_field_is_named_before_anything_else() {
    let shop = shop();
    let mut sent = lines(&[(1, 1), (99, 0), (2, -1), (3, 1_000_001), (4, i32::MIN)]);
    sent[0].sku = "9790000000019".to_owned();
    let refused = fields(shop.send("no spaces", sent).await);
    let refused: Vec<_> = refused.iter().map(|(f, r)| (f.as_str(), r.as_str())).collect();
    let expected = [
        ("order_id", "must be 1 to 64 letters, digits, '.', '_', ':' or '-'"),
        ("lines[0].sku", "must be 13 digits with a right check digit"),
        ("lines[1].quantity", "must be from 1 to 1000000, was 0"),
        ("lines[2].quantity", "must be from 1 to 1000000, was -1"),
        ("lines[3].quantity", "must be from 1 to 1000000, was 1000001"),
        ("lines[4].quantity", "must be from 1 to 1000000, was -2147483648"),
    ];
    assert_eq!(refused, expected);
    assert_eq!(names(shop.reserve("a", &[(1, 0); 30]).await).len(), 20);
}

#[tokio::test]
async fn a_reservation_has_one_to_a_thousand_lines() {
    let shop = shop();
    for (count, ok) in [(0, false), (1, true), (1_000, true), (1_001, false)] {
        let result = shop.reserve(&format!("order-{count}"), &vec![(1, 1); count]).await;
        if ok {
            result.unwrap();
        } else {
            let rule = format!("must have 1 to 1000 lines, had {count}");
            assert_eq!(fields(result), [("lines".to_owned(), rule)]);
        }
    }
}

#[tokio::test]
async fn the_same_order_id_with_the_same_lines_is_the_same_reservation() {
    let shop = shop();
    let first = shop.reserve("a", &[(1, 2), (2, 3)]).await.unwrap();
    for same in [&[(1, 2), (2, 3)][..], &[(2, 3), (1, 2)], &[(2, 1), (1, 2), (2, 2)]] {
        assert_eq!(shop.reserve("a", same).await.unwrap(), first);
    }
    assert_eq!(shop.stock(1).await, (STOCK - 2, 2, 0));
    assert_eq!(shop.0.reservations(), 1);
    // Even when nothing more could be had.
    shop.leave(1, 0).await;
    assert_eq!(shop.reserve("a", &[(1, 2), (2, 3)]).await.unwrap(), first);
}

#[tokio::test]
async fn a_repetition_is_refused_once_nothing_is_held_or_sold() {
    let shop = shop();
    let held = shop.reserve("a", &[(1, 2)]).await.unwrap();
    shop.confirm("a").await.unwrap();
    let repeated = shop.reserve("a", &[(1, 2)]).await.unwrap();
    assert_eq!(repeated.state(), ReservationState::Confirmed);
    assert_eq!(repeated.expires_at, held.expires_at);
    shop.release("a").await.unwrap();
    assert_eq!(reason(shop.reserve("a", &[(1, 2)]).await), Reason::ReservationReleased);
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
}

#[tokio::test]
async fn the_same_order_id_with_other_lines_is_a_conflict() {
    let shop = shop();
    shop.reserve("a", &[(1, 2), (2, 3)]).await.unwrap();
    for other in [&[(1, 2)][..], &[(1, 2), (2, 4)], &[(1, 2), (3, 3)], &[(1, 2), (2, 3), (3, 1)]] {
        assert_eq!(reason(shop.reserve("a", other).await), Reason::OrderIdConflict);
    }
    assert_eq!(shop.stock(3).await, (STOCK, 0, 0));
    shop.release("a").await.unwrap();
    assert_eq!(reason(shop.reserve("a", &[(1, 1)]).await), Reason::OrderIdConflict);
}

#[tokio::test]
async fn confirming_sells_once() {
    let shop = shop();
    shop.reserve("a", &[(1, 2), (2, 3)]).await.unwrap();
    for _ in 0..2 {
        let confirmed = shop.confirm("a").await.unwrap();
        assert_eq!(confirmed.state(), ReservationState::Confirmed);
        assert_eq!(confirmed.lines, lines(&[(1, 2), (2, 3)]));
        assert_eq!(shop.stock(1).await, (STOCK - 2, 0, 2));
        assert_eq!(shop.stock(2).await, (STOCK - 3, 0, 3));
    }
}

#[tokio::test]
async fn releasing_gives_back_once_what_is_held_or_sold() {
    let shop = shop();
    for confirmed_first in [false, true] {
        let order = format!("order-{confirmed_first}");
        shop.reserve(&order, &[(1, 2)]).await.unwrap();
        if confirmed_first {
            shop.confirm(&order).await.unwrap();
        }
        for _ in 0..2 {
            assert_eq!(shop.release(&order).await.unwrap().state(), ReservationState::Released);
            assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
        }
        assert_eq!(reason(shop.confirm(&order).await), Reason::ReservationReleased);
    }
}

#[tokio::test]
async fn a_reservation_has_two_names() {
    let shop = shop();
    let reservation_id = shop.reserve("a", &[(1, 2)]).await.unwrap().reservation_id;
    let request = pb::GetReservationRequest { reservation_id: reservation_id.clone(), ..Default::default() };
    let found = shop.0.get_reservation(Request::new(request)).await.unwrap().into_inner().reservation;
    assert_eq!(found, Some(shop.reservation("a").await.unwrap()));
    let request =
        pb::ConfirmReservationRequest { reservation_id: reservation_id.clone(), ..Default::default() };
    shop.0.confirm_reservation(Request::new(request)).await.unwrap();
    assert_eq!(shop.stock(1).await, (STOCK - 2, 0, 2));
    let request = pb::ReleaseReservationRequest { reservation_id, ..Default::default() };
    shop.0.release_reservation(Request::new(request)).await.unwrap();
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
}

#[tokio::test]
async fn no_call_finds_a_reservation_that_is_not_there() {
    let shop = shop();
    assert_eq!(reason(shop.confirm("a").await), Reason::ReservationNotFound);
    assert_eq!(reason(shop.release("a").await), Reason::ReservationNotFound);
    assert_eq!(reason(shop.reservation("a").await), Reason::ReservationNotFound);
    let no_hash = format!("rsv_{:032x}", 7);
    for reservation_id in ["x", "rsv_", &no_hash] {
        let reservation_id = reservation_id.to_owned();
        let request = pb::GetReservationRequest { reservation_id, ..Default::default() };
        assert_eq!(reason(shop.0.get_reservation(Request::new(request)).await), Reason::ReservationNotFound);
    }
}

#[tokio::test]
async fn a_reservation_is_named_in_exactly_one_way() {
    let shop = shop();
    for (reservation_id, order_id, rule) in
        [("", "", "must be set"), ("rsv_1", "a", "must not be set beside order_id")]
    {
        let expected = [("reservation_id".to_owned(), rule.to_owned())];
        let (reservation_id, order_id) = (reservation_id.to_owned(), order_id.to_owned());
        let get =
            pb::GetReservationRequest { reservation_id: reservation_id.clone(), order_id: order_id.clone() };
        assert_eq!(fields(shop.0.get_reservation(Request::new(get)).await), expected);
        let confirm = pb::ConfirmReservationRequest {
            reservation_id: reservation_id.clone(),
            order_id: order_id.clone(),
        };
        assert_eq!(fields(shop.0.confirm_reservation(Request::new(confirm)).await), expected);
        let release = pb::ReleaseReservationRequest { reservation_id, order_id };
        assert_eq!(fields(shop.0.release_reservation(Request::new(release)).await), expected);
    }
    assert_eq!(names(shop.reservation("no spaces").await), ["order_id"]);
}

#[tokio::test]
async fn no_more_reservations_are_made_than_fit() {
    let shop = shop_with(|c| c.max_reservations = 2);
    shop.reserve("a", &[(1, 1)]).await.unwrap();
    shop.reserve("b", &[(1, 1)]).await.unwrap();
    assert_eq!(reason(shop.reserve("c", &[(1, 1)]).await), Reason::StoreFull);
    assert_eq!(shop.stock(1).await, (STOCK - 2, 2, 0));
    // A repetition makes none.
    shop.reserve("a", &[(1, 1)]).await.unwrap();
    // A released one is remembered, and so takes its place still.
    shop.release("a").await.unwrap();
    assert_eq!(reason(shop.reserve("c", &[(1, 1)]).await), Reason::StoreFull);
}
