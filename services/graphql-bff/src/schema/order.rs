//! Orders.

use async_graphql::{Context, Enum, ID, Lookahead, Object, SimpleObject};
use proto::ordering::v1 as ordering;
use proto::ordering::v1::OrderView;
use tonic::Status;

use super::loads;
use super::scalar::{DateTime, Money};
use crate::error::{SAME_NAMES, or_null};

/// The smallest view that holds all that the selection asks for.
pub(crate) fn view_of(order: &Lookahead<'_>) -> OrderView {
    if order.field("history").exists() {
        OrderView::History
    } else if order.field("lines").exists() || order.field("shipTo").exists() {
        OrderView::Full
    } else {
        OrderView::Status
    }
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum OrderState {
    /// Not said, or a state that is newer than this server.
    Unspecified,
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
}

impl From<i32> for OrderState {
    fn from(state: i32) -> Self {
        match ordering::OrderState::try_from(state) {
            Ok(ordering::OrderState::Pending) => Self::Pending,
            Ok(ordering::OrderState::Placed) => Self::Placed,
            Ok(ordering::OrderState::Shipped) => Self::Shipped,
            Ok(ordering::OrderState::Cancelling) => Self::Cancelling,
            Ok(ordering::OrderState::Cancelled) => Self::Cancelled,
            Ok(ordering::OrderState::Unspecified) | Err(_) => Self::Unspecified,
        }
    }
}

/// An order, and how much of it is here.
pub(crate) struct Order {
    order: ordering::Order,
    view: OrderView,
}

impl Order {
    pub(crate) fn new(order: ordering::Order, view: OrderView) -> Self {
        Self { order, view }
    }

    /// A part of the order that only larger views hold; asked for when it is not here.
    async fn part<T>(
        &self,
        ctx: &Context<'_>,
        view: OrderView,
        part: impl FnOnce(&ordering::Order) -> T,
    ) -> Result<T, Status> {
        if self.view >= view {
            return Ok(part(&self.order));
        }
        loads(ctx).order(self.order.order_id.clone(), view).await.map(|order| part(&order))
    }
}

/// An order. What `orders`, `cancelOrder` and `orderChanged` give holds lines, address and history only at the cost of
/// a further call.
#[Object]
impl Order {
    /// Names the order in other fields.
    async fn order_id(&self) -> ID {
        ID(self.order.order_id.clone())
    }

    /// Where it stands.
    async fn state(&self) -> OrderState {
        self.order.state.into()
    }

    /// The sum of all lines.
    async fn total(&self) -> Money {
        Money::of(self.order.total.as_ref())
    }

    /// How many lines it has.
    async fn line_count(&self) -> i32 {
        self.order.line_count
    }

    /// When it was placed.
    async fn created_at(&self) -> DateTime {
        DateTime::of(self.order.created_at)
    }

    /// When it last changed.
    async fn updated_at(&self) -> DateTime {
        DateTime::of(self.order.updated_at)
    }

    /// Its lines. Null only with an error.
    async fn lines(&self, ctx: &Context<'_>) -> Option<Vec<OrderLine>> {
        let lines = self.part(ctx, OrderView::Full, |order| order.lines.iter().map(OrderLine::of).collect());
        or_null(ctx, lines.await, SAME_NAMES)
    }

    /// Where it goes, when an address was given.
    async fn ship_to(&self, ctx: &Context<'_>) -> Option<Address> {
        let ship_to = self.part(ctx, OrderView::Full, |order| order.ship_to.as_ref().map(Address::of));
        or_null(ctx, ship_to.await, SAME_NAMES).flatten()
    }

    /// What happened to it, oldest first. Null only with an error.
    async fn history(&self, ctx: &Context<'_>) -> Option<Vec<OrderEvent>> {
        let history =
            self.part(ctx, OrderView::History, |order| order.history.iter().map(OrderEvent::of).collect());
        or_null(ctx, history.await, SAME_NAMES)
    }
}

/// Copies of one book in an order, as they were when it was placed.
#[derive(Debug, SimpleObject)]
pub(crate) struct OrderLine {
    /// The ISBN-13, 13 digits.
    sku: String,
    /// The book's id.
    book_id: i32,
    /// The title then.
    title: String,
    /// How many copies.
    quantity: i32,
    /// The price of one copy then.
    unit_price: Money,
    /// quantity times unitPrice.
    line_total: Money,
}

impl OrderLine {
    fn of(line: &ordering::OrderLine) -> Self {
        Self {
            sku: line.sku.clone(),
            book_id: line.book_id,
            title: line.title.clone(),
            quantity: line.quantity,
            unit_price: Money::of(line.unit_price.as_ref()),
            line_total: Money::of(line.line_total.as_ref()),
        }
    }
}

/// Where an order goes.
#[derive(Debug, SimpleObject)]
pub(crate) struct Address {
    /// Who receives it.
    name: String,
    /// Street and number.
    street: String,
    /// City.
    city: String,
    /// Postal code.
    postal_code: String,
    /// ISO 3166-1 alpha-2 code of the country, or empty.
    country: String,
}

impl Address {
    fn of(address: &ordering::Address) -> Self {
        Self {
            name: address.name.clone(),
            street: address.street.clone(),
            city: address.city.clone(),
            postal_code: address.postal_code.clone(),
            country: address.country.clone(),
        }
    }
}

/// Something that happened to an order.
#[derive(Debug, SimpleObject)]
pub(crate) struct OrderEvent {
    /// Counts from 1 within the order.
    sequence: i32,
    /// When.
    occurred_at: DateTime,
    /// What, as an upper-case word: PLACED, PACKED, SCANNED, SHIPPED, CANCELLING, CANCELLED and others; expect new
    /// ones.
    kind: String,
    /// Who or what caused it.
    actor: String,
    /// For people.
    note: String,
}

impl OrderEvent {
    fn of(event: &ordering::OrderEvent) -> Self {
        Self {
            sequence: event.sequence,
            occurred_at: DateTime::of(event.occurred_at),
            kind: event.kind.clone(),
            actor: event.actor.clone(),
            note: event.note.clone(),
        }
    }
}
