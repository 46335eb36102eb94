use proptest::prelude::*;

use super::*;

fn sku(book_id: i32) -> Sku {
    Sku::parse(&proto::seed::sku(book_id)).unwrap()
}

fn line(book_id: i32, quantity: u32) -> Line {
    Line { sku: sku(book_id), quantity }
}

#[test]
fn a_sku_is_thirteen_digits_with_a_right_check_digit() {
    for good in ["9790000000018", "9780306406157", "0000000000000"] {
        assert_eq!(Sku::parse(good).unwrap().to_string(), good);
    }
    for bad in [
        "",
        "9790000000019",
        "979000000001",
        "97900000000180",
        "979-000000018",
        "979000000001x",
        "+790000000018",
        "９790000000",
    ] {
        assert_eq!(Sku::parse(bad), Err(BrokenRule::Sku), "{bad}");
    }
}

#[test]
fn an_order_id_is_one_to_sixty_four_plain_characters() {
    let longest = "x".repeat(64);
    for good in ["a", "Order-1:2.3_4", &longest] {
        assert_eq!(OrderId::parse(good.to_owned()).unwrap().as_str(), good);
    }
    let too_long = "x".repeat(65);
    for bad in ["", " ", "a b", "a/b", "ä", "a\n", "a\0", &too_long] {
        assert_eq!(OrderId::parse(bad.to_owned()), Err(BrokenRule::OrderId), "{bad:?}");
    }
}

#[test]
fn a_reservation_id_is_the_hash_of_its_order_id() {
    let order = OrderId::parse("order-1".to_owned()).unwrap();
    let id = ReservationId::of(&order);
    let text = id.text();
    assert_eq!(text, format!("rsv_{:032x}", xxh3_128(b"order-1")));
    assert_eq!(ReservationId::parse(&text), Some(id));
    let upper = text.to_uppercase();
    let signed = format!("rsv_+{}", &text[5..]);
    for bad in ["", "rsv_", &text[1..], &text[..35], &upper, &signed, &format!("{text}0")] {
        assert_eq!(ReservationId::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_quantity_is_from_one_to_a_million() {
    assert_eq!(Line::quantity(1), Ok(1));
    assert_eq!(Line::quantity(1_000_000), Ok(1_000_000));
    for bad in [0, -1, i32::MIN, 1_000_001, i32::MAX] {
        assert_eq!(Line::quantity(bad), Err(BrokenRule::Quantity(bad)));
    }
    assert_eq!(BrokenRule::Quantity(0).to_string(), "must be from 1 to 1000000, was 0");
}

#[test]
fn lines_of_one_sku_add_up_and_come_in_order_of_sku() {
    let mut lines = vec![line(3, 1), line(1, 2), line(3, 4), line(2, 8), line(1, 16)];
    assert_eq!(normalise(&mut lines), Ok(()));
    assert_eq!(lines, [line(1, 18), line(2, 8), line(3, 5)]);
}

#[test]
fn a_total_that_no_sku_can_hold_is_refused() {
    for (a, b, fits) in [(MAX_UNITS - 1, 1, true), (MAX_UNITS, 1, false), (u32::MAX, u32::MAX, false)] {
        let mut lines = vec![line(1, a), line(1, b)];
        let expected = if fits { Ok(()) } else { Err(BrokenRule::Total(sku(1))) };
        assert_eq!(normalise(&mut lines), expected, "{a} and {b}");
    }
}

#[test]
fn a_held_reservation_can_take_every_step_once() {
    let sold = State::Held.confirm().unwrap().unwrap();
    assert_eq!(sold, Step { to: State::Confirmed, movement: Movement::Sell });
    let released = State::Held.release().unwrap();
    assert_eq!(released, Step { to: State::Released, movement: Movement::GiveBack });
    let expired = State::Held.expire().unwrap();
    assert_eq!(expired, Step { to: State::Expired, movement: Movement::GiveBack });
}

#[test]
fn a_confirmed_reservation_can_only_be_released() {
    assert_eq!(State::Confirmed.confirm(), Ok(None));
    assert_eq!(State::Confirmed.expire(), None);
    let released = State::Confirmed.release().unwrap();
    assert_eq!(released, Step { to: State::Released, movement: Movement::TakeBack });
}

#[test]
fn a_closed_reservation_takes_no_step() {
    assert_eq!(State::Released.confirm(), Err(Refused::ReservationReleased));
    assert_eq!(State::Expired.confirm(), Err(Refused::ReservationExpired));
    for state in [State::Released, State::Expired] {
        assert_eq!(state.release(), None);
        assert_eq!(state.expire(), None);
    }
}

#[test]
fn units_move_and_come_back() {
    let start = Stock::of(10);
    let held = start.after(Movement::Hold, 10).unwrap();
    assert_eq!((held.in_stock, held.reserved, held.sold()), (0, 10, 0));
    let sold = held.after(Movement::Sell, 4).unwrap();
    assert_eq!((sold.in_stock, sold.reserved, sold.sold()), (0, 6, 4));
    let back = sold.after(Movement::GiveBack, 6).unwrap().after(Movement::TakeBack, 4).unwrap();
    assert_eq!(back, start);
}

#[test]
fn settled_units_stay_sold_and_make_room_for_deliveries() {
    let full = Stock::of(MAX_UNITS);
    assert_eq!(full.adjust(sku(1), 1), Err(Refused::TooManyUnits(u64::from(MAX_UNITS) + 1)));
    let sold = full.after(Movement::Hold, 5).unwrap().after(Movement::Sell, 5).unwrap();
    assert!(sold.adjust(sku(1), 1).is_err(), "what may come back needs its place");
    let settled = sold.after(Movement::Settle, 5).unwrap();
    assert_eq!(settled.sold(), 5);
    assert_eq!(settled.after(Movement::TakeBack, 1), None);
    assert_eq!(settled.adjust(sku(1), 5).unwrap().in_stock, MAX_UNITS);
}

#[test]
fn a_loss_takes_no_more_than_is_in_stock() {
    let stock = Stock::of(3).after(Movement::Hold, 1).unwrap();
    assert_eq!(stock.adjust(sku(1), -2).unwrap().in_stock, 0);
    let refused = Refused::OutOfStock { sku: sku(1), wanted: 3, in_stock: 2 };
    assert_eq!(stock.adjust(sku(1), -3), Err(refused));
    assert!(stock.adjust(sku(1), i32::MIN).is_err());
}

proptest! {
    #[test]
    fn movements_never_make_or_lose_units(
        moves in prop::collection::vec((0..5usize, 0..20u32), 0..200),
    ) {
        let movements =
            [Movement::Hold, Movement::Sell, Movement::GiveBack, Movement::TakeBack, Movement::Settle];
        let mut stock = Stock::of(50);
        for (movement, units) in moves {
            stock = stock.after(movements[movement], units).unwrap_or(stock);
            let total = u64::from(stock.in_stock) + u64::from(stock.reserved) + stock.sold();
            prop_assert_eq!(total, 50);
        }
    }

    #[test]
    fn lines_keep_their_totals(quantities in prop::collection::vec((1..5i32, 1..=MAX_QUANTITY), 1..100)) {
        let mut lines: Vec<Line> = quantities.iter().map(|&(id, n)| line(id, n)).collect();
        normalise(&mut lines).unwrap();
        prop_assert!(lines.is_sorted_by(|a, b| a.sku < b.sku));
        for id in 1..5 {
            let wanted: u32 = quantities.iter().filter(|q| q.0 == id).map(|q| q.1).sum();
            let kept: u32 = lines.iter().filter(|l| l.sku == sku(id)).map(|l| l.quantity).sum();
            prop_assert_eq!(wanted, kept);
        }
    }
}
