//! The rules of stock and reservations: pure types and transitions.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

/// Lines of one reservation, at most.
pub(crate) const MAX_LINES: usize = 1_000;

/// Units of one line, at most.
pub(crate) const MAX_QUANTITY: u32 = 1_000_000;

/// Units of one SKU, at most, counting those in stock, held, and sold but still releasable. A release can therefore
/// always put its units back.
pub(crate) const MAX_UNITS: u32 = 1_000_000_000;

/// A field's rule that a caller broke. Displays as the rule, with what was sent where that is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenRule {
    #[error("must be positive, was {0}")]
    BookId(i32),
    #[error("must be 13 digits with a right check digit")]
    Sku,
    #[error("must be from 1 to {MAX_QUANTITY}, was {0}")]
    Quantity(i32),
    #[error("must be from -{MAX_QUANTITY} to {MAX_QUANTITY} and not 0, was {0}")]
    Delta(i32),
    #[error("must be 1 to 64 letters, digits, '.', '_', ':' or '-'")]
    OrderId,
    #[error("must add up to at most {MAX_UNITS} units of sku {0}")]
    Total(Sku),
}

/// Why a call was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("unknown sku {0}")]
    UnknownSku(Sku),
    #[error("unknown book {0}")]
    UnknownBook(i32),
    #[error("book {book_id} and sku {sku} are not known as a pair")]
    SkuTaken { book_id: i32, sku: Sku },
    #[error("only {in_stock} of sku {sku} left, {wanted} wanted")]
    OutOfStock { sku: Sku, wanted: u32, in_stock: u32 },
    #[error("must leave at most {MAX_UNITS} units, would leave {0}")]
    TooManyUnits(u64),
    #[error("the order id was used with other lines")]
    OrderIdConflict,
    #[error("no such reservation")]
    ReservationNotFound,
    #[error("the reservation expired and its units went back")]
    ReservationExpired,
    #[error("the reservation was released and its units went back")]
    ReservationReleased,
    #[error("inventory holds as many {0} as it may")]
    Full(&'static str),
}

/// An ISBN-13, kept as its number. Numbers of 13 digits are in the order of their texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sku(u64);

impl Sku {
    /// The SKU with these 13 digits, the last of which is the check digit of ISO 2108.
    pub(crate) fn parse(text: &str) -> Result<Self, BrokenRule> {
        let digits: &[u8; 13] = text.as_bytes().try_into().map_err(|_| BrokenRule::Sku)?;
        let mut number = 0;
        let mut sum = 0;
        let mut weight = 1;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(BrokenRule::Sku);
            }
            let digit = u64::from(digit - b'0');
            number = number * 10 + digit;
            sum += digit * weight;
            weight = 4 - weight;
        }
        if sum % 10 == 0 { Ok(Self(number)) } else { Err(BrokenRule::Sku) }
    }

    /// The SKU of the seeded book with this id.
    pub(crate) fn of_seeded(book_id: i32) -> Self {
        Self(proto::seed::sku_number(book_id))
    }

    /// The id of the seeded book that has this SKU, if there are so many.
    pub(crate) fn seeded_book(self) -> Option<i32> {
        proto::seed::book_of_number(self.0)
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:013}", self.0)
    }
}

/// The caller's name for an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderId(Box<str>);

impl OrderId {
    /// The order id with this text, which is kept without copying.
    pub(crate) fn parse(text: String) -> Result<Self, BrokenRule> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into_boxed_str()))
        } else {
            Err(BrokenRule::OrderId)
        }
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, without copying.
    pub(crate) fn into_text(self) -> String {
        self.0.into_string()
    }
}

/// Names a reservation: a 128-bit hash of its order id, so that both names lead to the same place.
///
/// Halves instead of a `u128`, whose alignment would cost 8 bytes in every entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReservationId {
    high: u64,
    low: u64,
}

impl ReservationId {
    const PREFIX: &str = "rsv_";

    /// The id of the reservation for this order.
    pub(crate) fn of(order: &OrderId) -> Self {
        Self::from_number(xxh3_128(order.as_str().as_bytes()))
    }

    /// The id in a text that [`Self::text`] made.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if digits.len() != 32 || !digits.bytes().all(lower_hex) {
            return None;
        }
        u128::from_str_radix(digits, 16).ok().map(Self::from_number)
    }

    /// `rsv_` and 32 hexadecimal digits.
    pub(crate) fn text(self) -> String {
        // Every reply carries one, and the formatting machinery costs several times as much.
        let mut text = String::with_capacity(Self::PREFIX.len() + 32);
        text.push_str(Self::PREFIX);
        for half in [self.high, self.low] {
            for shift in (0..64).step_by(4).rev() {
                let digit = (half >> shift & 0xf) as u8;
                text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }));
            }
        }
        text
    }

    /// Bits to choose a shard by.
    pub(crate) fn spread(self) -> u64 {
        self.high
    }

    fn from_number(number: u128) -> Self {
        Self { high: (number >> 64) as u64, low: number as u64 }
    }
}

/// Units of one SKU, wanted or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) sku: Sku,
    pub(crate) quantity: u32,
}

impl Line {
    /// The quantity of a line as sent.
    pub(crate) fn quantity(sent: i32) -> Result<u32, BrokenRule> {
        match u32::try_from(sent) {
            Ok(quantity @ 1..=MAX_QUANTITY) => Ok(quantity),
            _ => Err(BrokenRule::Quantity(sent)),
        }
    }
}

/// The units of an adjustment as sent: more when positive, fewer when negative.
pub(crate) fn delta(sent: i32) -> Result<i32, BrokenRule> {
    if (1..=MAX_QUANTITY).contains(&sent.unsigned_abs()) { Ok(sent) } else { Err(BrokenRule::Delta(sent)) }
}

/// Brings lines into the form in which reservations are compared and kept: one line per SKU, in order of SKU.
pub(crate) fn normalise(lines: &mut Vec<Line>) -> Result<(), BrokenRule> {
    lines.sort_unstable_by_key(|line| line.sku);
    let mut broken = None;
    lines.dedup_by(|line, kept| {
        if line.sku != kept.sku {
            return false;
        }
        match kept.quantity.checked_add(line.quantity).filter(|&total| total <= MAX_UNITS) {
            Some(total) => kept.quantity = total,
            None => broken = broken.or(Some(BrokenRule::Total(kept.sku))),
        }
        true
    });
    broken.map_or(Ok(()), Err)
}

/// Where the units of one SKU are. Their sum, the units received, is changed by [`Stock::adjust`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stock {
    /// Units that can be reserved.
    pub(crate) in_stock: u32,
    /// Units of held reservations.
    pub(crate) reserved: u32,
    /// Units of confirmed reservations that are remembered, and so may be released yet.
    returnable: u32,
    /// Units of confirmed reservations that are forgotten.
    settled: u64,
}

/// A way of units from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Movement {
    /// From the stock to a reservation.
    Hold,
    /// From a reservation to the buyer.
    Sell,
    /// From a reservation back to the stock.
    GiveBack,
    /// From the buyer back to the stock.
    TakeBack,
    /// Sold for good.
    Settle,
}

impl Stock {
    /// This many units, all in stock.
    pub(crate) fn of(units: u32) -> Self {
        Self { in_stock: units, ..Self::default() }
    }

    /// Units of confirmed reservations.
    pub(crate) fn sold(self) -> u64 {
        u64::from(self.returnable) + self.settled
    }

    /// What it is after these units have moved; nothing when there are fewer to move.
    pub(crate) fn after(mut self, movement: Movement, units: u32) -> Option<Self> {
        let Self { in_stock, reserved, returnable, .. } = &mut self;
        let from = match movement {
            Movement::Hold => &mut *in_stock,
            Movement::Sell | Movement::GiveBack => &mut *reserved,
            Movement::TakeBack | Movement::Settle => &mut *returnable,
        };
        *from = from.checked_sub(units)?;
        let to = match movement {
            Movement::Hold => reserved,
            Movement::Sell => returnable,
            Movement::GiveBack | Movement::TakeBack => in_stock,
            Movement::Settle => {
                self.settled = self.settled.checked_add(u64::from(units))?;
                return Some(self);
            }
        };
        *to = to.checked_add(units)?;
        Some(self)
    }

    /// What it is after a delivery or, when negative, a loss.
    pub(crate) fn adjust(self, sku: Sku, delta: i32) -> Result<Self, Refused> {
        let units = delta.unsigned_abs();
        if delta < 0 {
            let in_stock = self.in_stock.checked_sub(units).ok_or(Refused::OutOfStock {
                sku,
                wanted: units,
                in_stock: self.in_stock,
            })?;
            return Ok(Self { in_stock, ..self });
        }
        let parts = [self.in_stock, self.reserved, self.returnable, units];
        let total = parts.into_iter().map(u64::from).sum();
        if total > u64::from(MAX_UNITS) {
            return Err(Refused::TooManyUnits(total));
        }
        Ok(Self { in_stock: self.in_stock + units, ..self })
    }
}

/// Where a reservation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Units are held until its time is up.
    Held,
    /// Units are sold.
    Confirmed,
    /// Units were given back on request.
    Released,
    /// Units were given back because nobody confirmed in time.
    Expired,
}

/// A reservation's way to another state, and what its units do on that way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) to: State,
    pub(crate) movement: Movement,
}

impl State {
    /// Sells what is held. Confirming twice is harmless: the second time is no step.
    pub(crate) fn confirm(self) -> Result<Option<Step>, Refused> {
        match self {
            State::Held => Ok(Some(Step { to: State::Confirmed, movement: Movement::Sell })),
            State::Confirmed => Ok(None),
            State::Released => Err(Refused::ReservationReleased),
            State::Expired => Err(Refused::ReservationExpired),
        }
    }

    /// Whether the same reservation asked for again has what it had: units that are held or sold.
    pub(crate) fn again(self) -> Result<(), Refused> {
        match self {
            State::Held | State::Confirmed => Ok(()),
            State::Released => Err(Refused::ReservationReleased),
            State::Expired => Err(Refused::ReservationExpired),
        }
    }

    /// Gives back what is held or sold. Releasing twice, or after expiry, is harmless: it is no step.
    pub(crate) fn release(self) -> Option<Step> {
        match self {
            State::Held => Some(Step { to: State::Released, movement: Movement::GiveBack }),
            State::Confirmed => Some(Step { to: State::Released, movement: Movement::TakeBack }),
            State::Released | State::Expired => None,
        }
    }

    /// Gives back what is held, because its time is up.
    pub(crate) fn expire(self) -> Option<Step> {
        (self == State::Held).then_some(Step { to: State::Expired, movement: Movement::GiveBack })
    }
}

#[cfg(test)]
mod tests;
