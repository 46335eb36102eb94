//! Any sequence of operations on one book, and what a plain model says each comes to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Case, Step, is, lines, refused, reserve, step, stocked};
use crate::parity::Expect;

/// Names of reservations and of orders in a sequence: few, so that operations meet.
const NAMES: usize = 4;
const RESERVATIONS: [&str; NAMES] = ["reservation0", "reservation1", "reservation2", "reservation3"];
const ORDERS: [&str; NAMES] = ["order0", "order1", "order2", "order3"];

/// Units in stock at the beginning.
const UNITS: i32 = 12;

/// One operation. What it names may not be there yet; then it is left out.
#[derive(Debug, Clone)]
pub(in crate::parity) enum Op {
    Reserve(usize, i32),
    Confirm(usize),
    Release(usize),
    GetReservation(usize),
    Adjust(i32),
    GetStock,
    Price(i64),
    Place(usize, i32),
    Cancel(usize),
    GetOrder(usize),
}

pub(in crate::parity) fn op() -> impl Strategy<Value = Op> {
    let name = || 0..NAMES;
    prop_oneof![
        3 => (name(), 1..6).prop_map(|(name, n)| Op::Reserve(name, n)),
        2 => name().prop_map(Op::Confirm),
        2 => name().prop_map(Op::Release),
        1 => name().prop_map(Op::GetReservation),
        1 => (-6..6).prop_map(|n| Op::Adjust(if n < 0 { n } else { n + 1 })),
        1 => Just(Op::GetStock),
        1 => (1..5_000_i64).prop_map(Op::Price),
        3 => (name(), 1..5).prop_map(|(name, n)| Op::Place(name, n)),
        2 => name().prop_map(Op::Cancel),
        1 => name().prop_map(Op::GetOrder),
    ]
}

/// How many units a name has, and how it stands.
type Named = BTreeMap<usize, (i32, &'static str)>;

struct Model {
    in_stock: i32,
    price: i64,
    reservations: Named,
    orders: Named,
    /// What was asked for, and what that cost then.
    totals: BTreeMap<usize, i64>,
}

/// The story of these operations.
pub(in crate::parity) fn sequence(ops: &[Op]) -> Case {
    let mut model = Model {
        in_stock: UNITS,
        price: 1_250,
        reservations: Named::new(),
        orders: Named::new(),
        totals: BTreeMap::new(),
    };
    let mut case = stocked("a sequence", UNITS, []);
    for op in ops {
        case.steps.extend(model.tell(op));
    }
    case.steps.push(step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": model.in_stock}))));
    case
}

impl Model {
    fn tell(&mut self, op: &Op) -> Option<Step> {
        match *op {
            Op::Reserve(name, n) => Some(self.reserve(name, n)),
            Op::Confirm(name) => {
                let (_, state) = self.reservations.get_mut(&name)?;
                let expect = match *state {
                    "RELEASED" => refused("RESERVATION_RELEASED"),
                    _ => {
                        *state = "CONFIRMED";
                        is(json!({"state": "CONFIRMED"}))
                    }
                };
                Some(step("ConfirmReservation", reservation(name), expect))
            }
            Op::Release(name) => {
                let (n, state) = self.reservations.get_mut(&name)?;
                if *state != "RELEASED" {
                    self.in_stock += *n;
                    *state = "RELEASED";
                }
                Some(step("ReleaseReservation", reservation(name), is(json!({"state": "RELEASED"}))))
            }
            Op::GetReservation(name) => {
                let (n, state) = self.reservations.get(&name)?;
                let expect = is(json!({"state": state, "lines": lines(&[("$sku", *n)])}));
                Some(step("GetReservation", reservation(name), expect))
            }
            Op::Adjust(delta) => {
                let expect = if self.in_stock + delta < 0 {
                    refused("OUT_OF_STOCK")
                } else {
                    self.in_stock += delta;
                    is(json!({"inStock": self.in_stock}))
                };
                Some(step("AdjustStock", json!({"sku": "$sku", "delta": delta}), expect))
            }
            Op::GetStock => {
                Some(step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": self.in_stock}))))
            }
            Op::Price(minor) => {
                self.price = minor;
                let price = json!({"amount_minor": minor, "currency": "EUR"});
                let expect = is(json!({"price": {"amountMinor": minor, "currency": "EUR"}}));
                Some(step("UpdateBook", json!({"book_id": "$book", "price": price}), expect))
            }
            Op::Place(name, n) => Some(self.place(name, n)),
            Op::Cancel(name) => {
                let (n, state) = self.orders.get_mut(&name)?;
                if *state == "PLACED" {
                    self.in_stock += *n;
                    *state = "CANCELLED";
                }
                Some(step("CancelOrder", order(name), is(json!({"state": "CANCELLED"}))))
            }
            Op::GetOrder(name) => {
                let (n, state) = self.orders.get(&name)?;
                let lines = lines(&[("$sku", *n)]);
                let expect = is(json!({"state": state, "total": euros(self.totals[&name]), "lines": lines}));
                Some(step("GetOrder", order(name), expect))
            }
        }
    }

    fn reserve(&mut self, name: usize, n: i32) -> Step {
        let told = |expect| step("ReserveStock", reserve(&format!("r{name}-$key"), &[("$sku", n)]), expect);
        match self.reservations.get(&name) {
            Some((had, _)) if *had != n => told(refused("ORDER_ID_CONFLICT")),
            Some((_, "RELEASED")) => told(refused("RESERVATION_RELEASED")),
            Some((_, state)) => told(is(json!({"state": state}))),
            None if n > self.in_stock => told(refused("OUT_OF_STOCK")),
            None => {
                self.in_stock -= n;
                self.reservations.insert(name, (n, "HELD"));
                told(is(json!({"state": "HELD"}))).keep(RESERVATIONS[name], "/reservationId")
            }
        }
    }

    fn place(&mut self, name: usize, n: i32) -> Step {
        let request = json!({"request_id": format!("p{name}-$key"), "lines": lines(&[("$sku", n)])});
        let told = |expect: Expect| step("PlaceOrder", request, expect);
        match self.orders.get(&name) {
            Some((had, _)) if *had != n => told(refused("IDEMPOTENCY_KEY_REUSED")),
            // As it was placed, whatever became of it.
            Some(_) => told(is(json!({"state": "PLACED", "total": euros(self.totals[&name])}))),
            None if n > self.in_stock => told(refused("OUT_OF_STOCK")),
            None => {
                self.in_stock -= n;
                self.orders.insert(name, (n, "PLACED"));
                self.totals.insert(name, i64::from(n) * self.price);
                told(is(json!({"state": "PLACED", "total": euros(self.totals[&name])})))
                    .keep(ORDERS[name], "/orderId")
            }
        }
    }
}

fn euros(minor: i64) -> serde_json::Value {
    json!({"amountMinor": minor, "currency": "EUR"})
}

fn reservation(name: usize) -> serde_json::Value {
    json!({"reservation_id": format!("${}", RESERVATIONS[name])})
}

fn order(name: usize) -> serde_json::Value {
    json!({"order_id": format!("${}", ORDERS[name])})
}
