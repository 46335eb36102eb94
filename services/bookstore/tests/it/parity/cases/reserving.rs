//! Reservations.

use proto::seed::sku;
use serde_json::json;

use super::{Case, book, done, fields, is, lines, one, refused, reserve, step, stocked, story};
use crate::parity::Expect;
use crate::parity::Style::{GraphQl, Rest};

pub(in crate::parity) fn reserving() -> Vec<Case> {
    let (known, unknown) = (sku(1), sku(999_999));
    let reserve_one = |n| reserve("$key", &[(&sku(1), n)]);
    let quantity = || fields(&["lines[0].quantity"]);
    let many = |n| json!({"order_id": "$key", "lines": vec![json!({"sku": sku(2), "quantity": 1}); n]});
    let named = || json!({"reservation_id": "$reservation"});
    let nobody = || json!({"reservation_id": "rsv_00000000000000000000000000000000"});
    vec![
        story(
            "a reservation",
            [
                step("ReserveStock", reserve("$key", &[(&known, 2)]), is(json!({"state": "HELD"})))
                    .keep("reservation", "/reservationId"),
                step(
                    "GetReservation",
                    named(),
                    is(json!({"orderId": "$key", "state": "HELD", "lines": lines(&[(&known, 2)])})),
                ),
            ],
        ),
        stocked(
            "more than there is",
            3,
            [
                step(
                    "ReserveStock",
                    reserve("$key", &[("$sku", 4)]),
                    Expect::RefusedWith(
                        "OUT_OF_STOCK",
                        json!({"sku": "$sku", "wanted": "4", "inStock": "3"}),
                    ),
                ),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
                step("ReserveStock", reserve("$key", &[("$sku", 3)]), is(json!({"state": "HELD"}))),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 0}))),
            ],
        ),
        stocked(
            "all lines or none",
            3,
            [
                step("CreateBook", book(json!({"sku": "$other_sku"})), done()),
                step(
                    "ReserveStock",
                    reserve("$key", &[("$sku", 1), ("$other_sku", 1)]),
                    refused("OUT_OF_STOCK"),
                ),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
            ],
        ),
        stocked(
            "lines of one SKU",
            5,
            [
                step("ReserveStock", reserve("$key", &[("$sku", 3), ("$sku", 3)]), refused("OUT_OF_STOCK")),
                step(
                    "ReserveStock",
                    reserve("$key", &[("$sku", 2), ("$sku", 3)]),
                    is(json!({"state": "HELD"})),
                )
                .keep("reservation", "/reservationId"),
                step("GetReservation", named(), is(json!({"lines": lines(&[("$sku", 5)])}))),
            ],
        ),
        one("an unknown SKU", "ReserveStock", reserve("$key", &[(&unknown, 1)]), refused("UNKNOWN_SKU")),
        one("no SKU", "ReserveStock", reserve("$key", &[("", 1)]), fields(&["lines[0].sku"])),
        one("a short SKU", "ReserveStock", reserve("$key", &[("979", 1)]), fields(&["lines[0].sku"])),
        one(
            "a SKU with a wrong check digit",
            "ReserveStock",
            reserve("$key", &[(&known, 1), ("9790000000019", 1)]),
            fields(&["lines[1].sku"]),
        ),
        one("nothing of a book", "ReserveStock", reserve_one(0), quantity()),
        one("less than nothing", "ReserveStock", reserve_one(-1), quantity()),
        one("more than a line may have", "ReserveStock", reserve_one(1_000_001), quantity()),
        one("the largest number", "ReserveStock", reserve_one(i32::MAX), quantity()),
        one("the smallest number", "ReserveStock", reserve_one(i32::MIN), quantity()),
        one(
            "a thousand lines of a million",
            "ReserveStock",
            json!({"order_id": "$key", "lines": vec![json!({"sku": sku(2), "quantity": 1_000_000}); 1000]}),
            refused("OUT_OF_STOCK"),
        ),
        one("no lines", "ReserveStock", reserve("$key", &[]), fields(&["lines"])),
        one("a thousand lines", "ReserveStock", many(1000), is(json!({"state": "HELD"}))),
        one("a thousand and one lines", "ReserveStock", many(1001), fields(&["lines"])),
        one("no order id", "ReserveStock", reserve("", &[(&known, 1)]), fields(&["order_id"])),
        one(
            "a long order id",
            "ReserveStock",
            reserve(&"o".repeat(65), &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "an order id with a space",
            "ReserveStock",
            reserve("a b", &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "an order id with an accent",
            "ReserveStock",
            reserve("é", &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "everything wrong at once",
            "ReserveStock",
            reserve("", &[("1", 0), (&known, -1)]),
            fields(&["order_id", "lines[0].sku", "lines[0].quantity", "lines[1].quantity"]),
        ),
        story(
            "the same reservation again",
            [
                step("ReserveStock", reserve("$key", &[(&known, 1), (&sku(2), 4)]), done()),
                step("ReserveStock", reserve("$key", &[(&known, 1), (&sku(2), 4)]), Expect::Same(0)),
                step(
                    "ReserveStock",
                    reserve("$key", &[(&sku(2), 3), (&known, 1), (&sku(2), 1)]),
                    Expect::Same(0),
                ),
                step("ReserveStock", reserve("$key", &[(&known, 2)]), refused("ORDER_ID_CONFLICT")),
            ],
        ),
        stocked(
            "a sale, taken back",
            3,
            [
                step("ReserveStock", reserve("$key", &[("$sku", 2)]), done())
                    .keep("reservation", "/reservationId"),
                step(
                    "ConfirmReservation",
                    named(),
                    is(json!({"state": "CONFIRMED", "lines": [{"quantity": 2}]})),
                ),
                step("ConfirmReservation", named(), Expect::Same(3)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 1}))),
                step("ReleaseReservation", named(), is(json!({"state": "RELEASED"}))),
                step("ReleaseReservation", named(), Expect::Same(6)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
                step("ConfirmReservation", named(), refused("RESERVATION_RELEASED")),
                step("ReserveStock", reserve("$key", &[("$sku", 2)]), refused("RESERVATION_RELEASED")),
            ],
        ),
        one("no such reservation", "GetReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one("a sale of no reservation", "ConfirmReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one("nothing to release", "ReleaseReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one(
            "no name of a reservation",
            "GetReservation",
            json!({"reservation_id": "x"}),
            refused("RESERVATION_NOT_FOUND"),
        ),
        one(
            "a reservation by its order",
            "GetReservation",
            json!({"order_id": "never used"}),
            fields(&["order_id"]),
        )
        .silent(&[Rest, GraphQl]),
    ]
}

/// Cases for an inventory that holds reservations for a moment only.
pub(in crate::parity) fn expiring() -> Vec<Case> {
    let named = || json!({"reservation_id": "$reservation"});
    vec![stocked(
        "a reservation whose time is up",
        3,
        [
            step("ReserveStock", reserve("$key", &[("$sku", 3)]), done())
                .keep("reservation", "/reservationId"),
            step("GetStock", json!({"book_id": "$book"}), Expect::Becomes(json!({"inStock": 3}))),
            step("ConfirmReservation", named(), refused("RESERVATION_EXPIRED")),
            step("ReserveStock", reserve("$key", &[("$sku", 3)]), refused("RESERVATION_EXPIRED")),
            step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
        ],
    )]
}
