//! The table. An input is a message of the contract, and a value is a reply as JSON has it, of which a case names what
//! matters.
//!
//! In both, `$key` is a text, `$longest` one of 255 characters, and `$sku` and `$other_sku` are the SKUs of books that
//! nobody has added yet, all of them new for each telling of a case; other names stand for what an earlier step of the case kept. A name ends its text.

mod keeping;
mod ordering;
mod reading;
mod reserving;
pub(super) mod sequences;
mod types;

use proto::seed::sku;
use serde_json::{Value, json};

pub(super) use self::reserving::expiring;
use super::Expect;
use super::Style::{self, Grpc, GrpcWeb};

/// A story of one or more calls.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) steps: Vec<Step>,
    /// The styles that can't say the last step.
    pub(super) silent: &'static [Style],
    /// The styles that say something else.
    pub(super) except: &'static [Style],
    /// Whether what it reads changes meanwhile, so that no two readers need to see the same.
    pub(super) live: bool,
}

/// A call and what it must come to.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) input: Value,
    pub(super) expect: Expect,
    /// A name for a part of the reply.
    pub(super) keep: Option<(&'static str, &'static str)>,
    /// Some styles refuse this at the edge: the fields are the same, the words are not.
    pub(super) own_words: bool,
}

impl Case {
    fn silent(mut self, styles: &'static [Style]) -> Self {
        self.silent = styles;
        self
    }

    fn except(mut self, styles: &'static [Style]) -> Self {
        self.except = styles;
        self
    }

    fn live(mut self) -> Self {
        self.live = true;
        self
    }

    fn own_words(mut self) -> Self {
        self.steps.last_mut().unwrap().own_words = true;
        self
    }
}

impl Step {
    fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keep = Some((name, pointer));
        self
    }
}

fn step(method: &'static str, input: Value, expect: Expect) -> Step {
    Step { method, input, expect, keep: None, own_words: false }
}

fn one(name: &'static str, method: &'static str, input: Value, expect: Expect) -> Case {
    story(name, [step(method, input, expect)])
}

fn story<const N: usize>(name: &'static str, steps: [Step; N]) -> Case {
    Case { name, steps: steps.into(), silent: &[], except: &[], live: false }
}

/// A case that begins with a book of its own: `$book` with the SKU `$sku` at 12.50, so many in stock.
fn stocked<const N: usize>(name: &'static str, units: i32, steps: [Step; N]) -> Case {
    let delivery = step("AdjustStock", json!({"sku": "$sku", "delta": units}), is(json!({"inStock": units})));
    let told = story(name, steps);
    Case { steps: [added(), delivery].into_iter().chain(told.steps).collect(), ..told }
}

fn added() -> Step {
    step("CreateBook", book(json!({})), is(json!({"sku": "$sku"}))).keep("book", "/id")
}

/// A book to add, with these fields instead of good ones.
fn book(fields: Value) -> Value {
    let good = json!({
        "sku": "$sku", "title": "On $key", "author_id": 2, "price": {"amount_minor": 1250, "currency": "EUR"},
    });
    with(good, fields)
}

fn review(fields: Value) -> Value {
    with(json!({"book_id": 3, "rating": 4, "reviewer": "Ana Brook", "text": "Slow at first."}), fields)
}

/// An order of one copy of book 4, with these fields instead.
fn order(fields: Value) -> Value {
    with(json!({"request_id": "$key", "lines": lines(&[(&sku(4), 1)])}), fields)
}

fn with(mut message: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

fn lines(lines: &[(&str, i32)]) -> Value {
    lines.iter().map(|(sku, quantity)| json!({"sku": sku, "quantity": quantity})).collect()
}

fn reserve(order_id: &str, of: &[(&str, i32)]) -> Value {
    json!({"order_id": order_id, "lines": lines(of)})
}

fn is(value: Value) -> Expect {
    Expect::Is(value)
}

fn done() -> Expect {
    is(json!({}))
}

fn refused(reason: &'static str) -> Expect {
    Expect::Refused(reason)
}

fn fields(fields: &[&str]) -> Expect {
    Expect::Fields(fields.iter().map(|field| (*field).to_owned()).collect())
}

/// Styles whose messages have types, so that a value of another type can't be sent.
const TYPED: &[Style] = &[Grpc, GrpcWeb];

/// Every case that needs no settings.
pub(super) fn all() -> Vec<Case> {
    let parts = [
        reading::reading(),
        reading::listing(),
        reserving::reserving(),
        ordering::ordering(),
        keeping::keeping(),
        types::types(),
    ];
    parts.into_iter().flatten().collect()
}
