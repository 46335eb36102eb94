//! Stock and reservations.

use async_graphql::{Enum, ID, Object, SimpleObject};
use proto::inventory::v1 as inventory;

use super::scalar::{DateTime, Int64};

pub(crate) struct Stock(pub(crate) inventory::Stock);

/// The stock of one book: units received = inStock + reserved + sold, at every moment.
#[Object]
impl Stock {
    /// The book's id.
    async fn book_id(&self) -> i32 {
        self.0.book_id
    }

    /// The book's SKU: the ISBN-13, 13 digits.
    async fn sku(&self) -> &str {
        &self.0.sku
    }

    /// Units that can be reserved now.
    async fn in_stock(&self) -> i32 {
        self.0.in_stock
    }

    /// Units held by reservations that are neither confirmed nor given back.
    async fn reserved(&self) -> i32 {
        self.0.reserved
    }

    /// Units of confirmed reservations.
    async fn sold(&self) -> Int64 {
        Int64(self.0.sold)
    }
}

/// Where a reservation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum ReservationState {
    /// Not said, or a state that is newer than this server.
    Unspecified,
    /// Units are held until `expiresAt`.
    Held,
    /// Units are sold.
    Confirmed,
    /// Units were given back on request.
    Released,
    /// Units were given back because nobody confirmed in time.
    Expired,
}

impl From<i32> for ReservationState {
    fn from(state: i32) -> Self {
        match inventory::ReservationState::try_from(state) {
            Ok(inventory::ReservationState::Held) => Self::Held,
            Ok(inventory::ReservationState::Confirmed) => Self::Confirmed,
            Ok(inventory::ReservationState::Released) => Self::Released,
            Ok(inventory::ReservationState::Expired) => Self::Expired,
            Ok(inventory::ReservationState::Unspecified) | Err(_) => Self::Unspecified,
        }
    }
}

/// Units of one SKU.
#[derive(Debug, SimpleObject)]
pub(crate) struct ReservationLine {
    /// The ISBN-13, 13 digits.
    sku: String,
    /// How many units.
    quantity: i32,
}

pub(crate) struct Reservation(pub(crate) inventory::Reservation);

/// Units held or sold for one order.
#[Object]
impl Reservation {
    /// Names the reservation in other fields.
    async fn reservation_id(&self) -> ID {
        ID(self.0.reservation_id.clone())
    }

    /// The order that it is for.
    async fn order_id(&self) -> ID {
        ID(self.0.order_id.clone())
    }

    /// Where it stands.
    async fn state(&self) -> ReservationState {
        self.0.state.into()
    }

    /// When held units go back.
    async fn expires_at(&self) -> DateTime {
        DateTime::of(self.0.expires_at)
    }

    /// What it holds, one line per SKU in order of SKU.
    async fn lines(&self) -> Vec<ReservationLine> {
        let lines = self.0.lines.iter();
        lines.map(|line| ReservationLine { sku: line.sku.clone(), quantity: line.quantity }).collect()
    }
}

pub(crate) struct ReserveStockPayload(pub(crate) inventory::ReserveStockResponse);

/// What `reserveStock` answers: small, and the same size whatever was reserved.
#[Object]
impl ReserveStockPayload {
    /// Names the reservation in other fields.
    async fn reservation_id(&self) -> ID {
        ID(self.0.reservation_id.clone())
    }

    /// HELD, or CONFIRMED when the call is a repetition and the units are sold by now.
    async fn state(&self) -> ReservationState {
        self.0.state.into()
    }

    /// When held units go back.
    async fn expires_at(&self) -> DateTime {
        DateTime::of(self.0.expires_at)
    }
}
