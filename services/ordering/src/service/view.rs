//! Orders as messages, as much of them as a view shows.

use proto::common::v1 as common;
use proto::ordering::v1 as pb;

use crate::domain::{Address, Event, Line, Money, Order, State};

/// State, total and times.
pub(crate) fn status(order: &Order) -> pb::Order {
    let content = order.content();
    pb::Order {
        order_id: order.id().to_string(),
        state: state(order.state()).into(),
        total: Some(money(content.total)),
        line_count: i32::try_from(content.lines.len()).unwrap_or(i32::MAX),
        created_at: Some(order.created_at().into()),
        updated_at: Some(order.updated_at().into()),
        lines: Vec::new(),
        ship_to: None,
        history: Vec::new(),
    }
}

/// Also lines and address.
pub(crate) fn full(order: &Order) -> pb::Order {
    let content = order.content();
    pb::Order {
        lines: content.lines.iter().map(line).collect(),
        ship_to: content.ship_to.as_ref().map(address),
        ..status(order)
    }
}

/// Also everything that happened.
pub(crate) fn history(order: &Order) -> pb::Order {
    pb::Order { history: (1..).zip(order.history()).map(event).collect(), ..full(order) }
}

/// The address that a message names.
pub(crate) fn from_address(address: pb::Address) -> Address {
    let pb::Address { name, street, city, postal_code, country } = address;
    Address { name, street, city, postal_code, country }
}

fn state(state: State) -> pb::OrderState {
    match state {
        State::Pending => pb::OrderState::Pending,
        State::Placed => pb::OrderState::Placed,
        State::Shipped => pb::OrderState::Shipped,
        State::Cancelling => pb::OrderState::Cancelling,
        State::Cancelled => pb::OrderState::Cancelled,
    }
}

fn money(money: Money) -> common::Money {
    common::Money { amount_minor: money.minor, currency: money.currency.as_str().to_owned() }
}

fn line(line: &Line) -> pb::OrderLine {
    pb::OrderLine {
        sku: line.sku.as_str().to_owned(),
        book_id: line.book_id,
        title: line.title.clone(),
        quantity: line.quantity,
        unit_price: Some(money(line.unit_price)),
        line_total: Some(money(line.line_total)),
    }
}

fn address(address: &Address) -> pb::Address {
    let Address { name, street, city, postal_code, country } = address.clone();
    pb::Address { name, street, city, postal_code, country }
}

fn event((sequence, event): (i32, &Event)) -> pb::OrderEvent {
    pb::OrderEvent {
        sequence,
        occurred_at: Some(event.at.into()),
        kind: event.kind.to_owned(),
        actor: event.actor.to_owned(),
        note: event.note.clone(),
    }
}
