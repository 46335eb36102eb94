//! How orders look.

use proto::ordering::v1 as pb;
use serde::Serialize;
use utoipa::ToSchema;

use crate::reply::{self, Money};
use crate::time::Time;

/// Where an order stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum OrderState {
    /// Being placed: units are held, not yet sold.
    Pending,
    /// Placed: units are sold.
    Placed,
    /// On its way: it can't be cancelled any more.
    Shipped,
    /// Being cancelled, for good: units go back as soon as inventory takes them.
    Cancelling,
    /// Cancelled: it has no units any more.
    Cancelled,
    /// This server can't tell.
    Unspecified,
}

impl From<pb::OrderState> for OrderState {
    fn from(state: pb::OrderState) -> Self {
        match state {
            pb::OrderState::Pending => Self::Pending,
            pb::OrderState::Placed => Self::Placed,
            pb::OrderState::Shipped => Self::Shipped,
            pb::OrderState::Cancelling => Self::Cancelling,
            pb::OrderState::Cancelled => Self::Cancelled,
            pb::OrderState::Unspecified => Self::Unspecified,
        }
    }
}

/// An order, as much of it as was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "orderId": "ord_00000000000000000000000000000001", "state": "PLACED", "total": {"amountMinor": 5998, "currency": "EUR"},
    "lineCount": 1, "createdAt": "2026-11-30T12:00:00.000Z", "updatedAt": "2026-11-30T12:00:00.000Z",
    "lines": [{
        "sku": "9790000000018", "bookId": 1, "title": "Ember", "quantity": 2,
        "unitPrice": {"amountMinor": 2999, "currency": "EUR"}, "lineTotal": {"amountMinor": 5998, "currency": "EUR"},
    }],
    "shipTo": {"name": "Ana Brook", "street": "Hafengasse 3", "city": "Bern", "postalCode": "3011", "country": "CH"},
}))]
pub(super) struct Order<'a> {
    /// The order's id.
    order_id: &'a str,
    /// Where it stands.
    state: OrderState,
    /// The sum of all lines.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = Money)]
    total: Option<Money<'a>>,
    /// How many lines it has.
    line_count: i32,
    /// When it was placed.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Option<Time>,
    /// When it last changed.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Option<Time>,
    /// Its lines, with `view=full` or `view=history`.
    #[serde(serialize_with = "reply::each::<_, OrderLine, _>", skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<OrderLine>, required = false)]
    lines: &'a [pb::OrderLine],
    /// Where it goes, with `view=full` or `view=history`, when an address was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Address, required = false)]
    ship_to: Option<Address<'a>>,
    /// What happened to it, oldest first, with `view=history`.
    #[serde(serialize_with = "reply::each::<_, OrderEvent, _>", skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<OrderEvent>, required = false)]
    history: &'a [pb::OrderEvent],
}

impl<'a> From<&'a pb::Order> for Order<'a> {
    fn from(order: &'a pb::Order) -> Self {
        Self {
            order_id: &order.order_id,
            state: order.state().into(),
            total: order.total.as_ref().map(Money::from),
            line_count: order.line_count,
            created_at: Time::of(&order.created_at),
            updated_at: Time::of(&order.updated_at),
            lines: &order.lines,
            ship_to: order.ship_to.as_ref().map(Address::from),
            history: &order.history,
        }
    }
}

/// A page of orders, latest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderList<'a> {
    /// The orders of this page.
    #[serde(serialize_with = "reply::each::<_, Order, _>")]
    #[schema(value_type = Vec<Order>)]
    pub(super) orders: &'a [pb::Order],
    /// `page_token` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    pub(super) next_page_token: &'a str,
}

/// Copies of one book in an order, as they were when it was placed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderLine<'a> {
    /// The ISBN-13, 13 digits.
    sku: &'a str,
    /// The book's id.
    book_id: i32,
    /// The title then.
    title: &'a str,
    /// How many copies.
    quantity: i32,
    /// The price of one copy then.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = Money)]
    unit_price: Option<Money<'a>>,
    /// `quantity` times `unitPrice`.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = Money)]
    line_total: Option<Money<'a>>,
}

impl<'a> From<&'a pb::OrderLine> for OrderLine<'a> {
    fn from(line: &'a pb::OrderLine) -> Self {
        Self {
            sku: &line.sku,
            book_id: line.book_id,
            title: &line.title,
            quantity: line.quantity,
            unit_price: line.unit_price.as_ref().map(Money::from),
            line_total: line.line_total.as_ref().map(Money::from),
        }
    }
}

/// Where an order goes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Address<'a> {
    /// Who receives it.
    name: &'a str,
    /// Street and number.
    street: &'a str,
    /// City.
    city: &'a str,
    /// Postal code.
    postal_code: &'a str,
    /// ISO 3166-1 alpha-2 code of the country, or empty.
    country: &'a str,
}

impl<'a> From<&'a pb::Address> for Address<'a> {
    fn from(address: &'a pb::Address) -> Self {
        Self {
            name: &address.name,
            street: &address.street,
            city: &address.city,
            postal_code: &address.postal_code,
            country: &address.country,
        }
    }
}

/// Something that happened to an order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderEvent<'a> {
    /// Counts from 1 within the order.
    sequence: i32,
    /// When.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Option<Time>,
    /// What, as an upper-case word: PLACED, PACKED, SCANNED, SHIPPED, CANCELLING, CANCELLED and others;
    /// expect new ones.
    kind: &'a str,
    /// Who or what caused it.
    actor: &'a str,
    /// For people.
    note: &'a str,
}

impl<'a> From<&'a pb::OrderEvent> for OrderEvent<'a> {
    fn from(event: &'a pb::OrderEvent) -> Self {
        Self {
            sequence: event.sequence,
            occurred_at: Time::of(&event.occurred_at),
            kind: &event.kind,
            actor: &event.actor,
            note: &event.note,
        }
    }
}
