//! An order, as much of it as a view has.

use prost_types::Timestamp;
use proto::ordering::v1 as pb;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Money, first_message};
use crate::case::{Style, View};

/// The request.
pub fn message(number: i32, view: View) -> pb::GetOrderRequest {
    let view = match view {
        View::Status => pb::OrderView::Status,
        View::Full => pb::OrderView::Full,
        View::History => pb::OrderView::History,
    };
    pb::GetOrderRequest { order_id: proto::seed::order_id(number), view: view.into() }
}

/// An order, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    order_id: String,
    state: String,
    total: Money,
    line_count: i32,
    #[serde(deserialize_with = "time")]
    created_at: Time,
    #[serde(deserialize_with = "time")]
    updated_at: Time,
    #[serde(default)]
    lines: Vec<Line>,
    ship_to: Option<Address>,
    #[serde(default)]
    history: Vec<Event>,
}

/// Seconds since 1970 and milliseconds, which is as much as every style tells.
type Time = (i64, i32);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    sku: String,
    book_id: i32,
    title: String,
    quantity: i32,
    unit_price: Money,
    line_total: Money,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    name: String,
    street: String,
    city: String,
    postal_code: String,
    country: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    sequence: i32,
    #[serde(deserialize_with = "time")]
    occurred_at: Time,
    kind: String,
    actor: String,
    note: String,
}

fn time<'de, D: Deserializer<'de>>(text: D) -> Result<Time, D::Error> {
    let time: Timestamp = String::deserialize(text)?.parse().map_err(serde::de::Error::custom)?;
    Ok(moment(time))
}

fn moment(time: Timestamp) -> Time {
    (time.seconds, time.nanos / 1_000_000)
}

/// Reads the order from a reply.
pub fn read(style: Style, body: &[u8]) -> Result<Order, String> {
    if style.is_grpc() {
        let message = first_message(body).ok_or("no message")?;
        let reply: pb::GetOrderResponse =
            prost::Message::decode(message).map_err(|error| format!("the message: {error}"))?;
        return from_message(reply.order.ok_or("no order")?);
    }
    let odd = |error| format!("the JSON: {error}");
    if style.is_rest() {
        return serde_json::from_slice(body).map_err(odd);
    }
    let mut reply: Value = serde_json::from_slice(body).map_err(odd)?;
    let order = reply.pointer_mut("/data/order").ok_or("no order")?.take();
    serde_json::from_value(order).map_err(odd)
}

fn from_message(order: pb::Order) -> Result<Order, String> {
    let state = order.state().as_str_name().trim_start_matches("ORDER_STATE_").to_owned();
    let lines = order.lines.into_iter().map(|line| {
        Ok(Line {
            sku: line.sku,
            book_id: line.book_id,
            title: line.title,
            quantity: line.quantity,
            unit_price: line.unit_price.ok_or("no price of a line")?.into(),
            line_total: line.line_total.ok_or("no sum of a line")?.into(),
        })
    });
    let history = order.history.into_iter().map(|event| {
        Ok(Event {
            sequence: event.sequence,
            occurred_at: moment(event.occurred_at.ok_or("no time of an event")?),
            kind: event.kind,
            actor: event.actor,
            note: event.note,
        })
    });
    Ok(Order {
        order_id: order.order_id,
        state,
        total: order.total.ok_or("no total")?.into(),
        line_count: order.line_count,
        created_at: moment(order.created_at.ok_or("no time of the order")?),
        updated_at: moment(order.updated_at.ok_or("no time of the order")?),
        lines: lines.collect::<Result<_, &str>>()?,
        ship_to: order.ship_to.map(|to| Address {
            name: to.name,
            street: to.street,
            city: to.city,
            postal_code: to.postal_code,
            country: to.country,
        }),
        history: history.collect::<Result<_, &str>>()?,
    })
}
