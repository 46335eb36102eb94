//! Orders.

use proto::seed::{order_id, sku};
use serde_json::json;

use super::{Case, done, fields, is, lines, one, order, refused, step, stocked};
use crate::parity::Expect;

pub(in crate::parity) fn ordering() -> Vec<Case> {
    let shipped = order_id(1);
    let named = || json!({"order_id": "$order"});
    let lines_of = |of: &[(&str, i32)]| order(json!({"lines": lines(of)}));
    let euros = |minor: i64| json!({"amountMinor": minor, "currency": "EUR"});
    vec![
        stocked(
            "an order, at the catalog's price, once",
            10,
            [
                step(
                    "PlaceOrder",
                    lines_of(&[("$sku", 2), ("$sku", 1)]),
                    is(json!({
                        "state": "PLACED", "total": euros(3750), "lineCount": 1,
                        "lines": [{"sku": "$sku", "quantity": 3, "title": "On $key", "lineTotal": euros(3750)}],
                    })),
                )
                .keep("order", "/orderId"),
                step("PlaceOrder", lines_of(&[("$sku", 2), ("$sku", 1)]), Expect::Same(2)),
                step("PlaceOrder", lines_of(&[("$sku", 3)]), Expect::Same(2)),
                step("PlaceOrder", lines_of(&[("$sku", 2)]), refused("IDEMPOTENCY_KEY_REUSED")),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 7}))),
                step("GetOrder", named(), is(json!({"state": "PLACED", "total": euros(3750)}))),
            ],
        ),
        stocked(
            "a cancelled order",
            10,
            [
                step("PlaceOrder", lines_of(&[("$sku", 4)]), done()).keep("order", "/orderId"),
                step("CancelOrder", named(), is(json!({"orderId": "$order", "state": "CANCELLED"}))),
                step("CancelOrder", named(), Expect::Same(3)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 10}))),
                // The order as it was placed, whatever has become of it.
                step("PlaceOrder", lines_of(&[("$sku", 4)]), Expect::Same(2)),
                step("GetOrder", named(), is(json!({"state": "CANCELLED"}))),
            ],
        ),
        stocked(
            "an order that can be filled later",
            1,
            [
                step("PlaceOrder", lines_of(&[("$sku", 2)]), refused("OUT_OF_STOCK")),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 1}))),
                step("AdjustStock", json!({"sku": "$sku", "delta": 1}), done()),
                step("PlaceOrder", lines_of(&[("$sku", 2)]), is(json!({"state": "PLACED"}))),
            ],
        ),
        stocked(
            "an order keeps its price",
            1,
            [
                step("PlaceOrder", lines_of(&[("$sku", 1)]), is(json!({"total": euros(1250)}))).keep("order", "/orderId"),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "price": {"amount_minor": 1, "currency": "EUR"}}),
                    is(json!({"price": euros(1)})),
                ),
                step("GetOrder", named(), is(json!({"total": euros(1250)}))),
            ],
        ),
        one("an order of an unknown SKU", "PlaceOrder", lines_of(&[(&sku(999_999), 1)]), refused("UNKNOWN_SKU")),
        one("an order of a short SKU", "PlaceOrder", lines_of(&[("979", 1)]), fields(&["lines[0].sku"])),
        one(
            "an order of a SKU with a wrong check digit",
            "PlaceOrder",
            lines_of(&[(&sku(4), 1), ("9790000000019", 1)]),
            fields(&["lines[1].sku"]),
        ),
        one("an order of nothing", "PlaceOrder", lines_of(&[]), fields(&["lines"])),
        one("an order of no copies", "PlaceOrder", lines_of(&[(&sku(4), 0)]), fields(&["lines[0].quantity"])),
        one("an order of less", "PlaceOrder", lines_of(&[(&sku(4), -1)]), fields(&["lines[0].quantity"])),
        one("an order of too many", "PlaceOrder", lines_of(&[(&sku(4), 1_000_001)]), fields(&["lines[0].quantity"])),
        one(
            "an order of a thousand lines",
            "PlaceOrder",
            order(json!({"lines": vec![json!({"sku": sku(4), "quantity": 1}); 1000]})),
            is(json!({"state": "PLACED", "lineCount": 1})),
        ),
        one(
            "an order of a thousand and one lines",
            "PlaceOrder",
            order(json!({"lines": vec![json!({"sku": sku(4), "quantity": 1}); 1001]})),
            fields(&["lines"]),
        ),
        one("an order without a name", "PlaceOrder", order(json!({"request_id": ""})), fields(&["request_id"])),
        one("an order with the longest name", "PlaceOrder", order(json!({"request_id": "$longest"})), is(json!({"state": "PLACED"}))),
        one("an order with a long name", "PlaceOrder", order(json!({"request_id": "r".repeat(256)})), fields(&["request_id"])),
        one(
            "an order to nowhere",
            "PlaceOrder",
            order(json!({"ship_to": {"postal_code": "1".repeat(201), "country": "ch"}})),
            fields(&["ship_to.postal_code", "ship_to.country"]),
        ),
        one(
            "an order to somewhere",
            "PlaceOrder",
            order(json!({"ship_to": {"name": "Ana Brook", "city": "Bern", "country": "CH"}})),
            is(json!({"state": "PLACED"})),
        ),
        one("a shipped order stays", "CancelOrder", json!({"order_id": shipped}), refused("ORDER_SHIPPED")),
        one("no order to cancel", "CancelOrder", json!({"order_id": order_id(999)}), refused("ORDER_NOT_FOUND")),
        one("nothing to cancel", "CancelOrder", json!({"order_id": "order-1"}), refused("ORDER_NOT_FOUND")),
        one("a long name to cancel", "CancelOrder", json!({"order_id": "o".repeat(65)}), fields(&["order_id"])),
    ]
}
