//! Names of things.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

/// An order's id: `ord_` and 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OrderId(u128);

impl OrderId {
    /// Every order's id begins like this.
    pub(crate) const PREFIX: &str = "ord_";

    /// The id of the order that this request places, always the same: a repeated request finds the order, or the
    /// reservation, of the first time.
    pub(crate) fn of_request(request_id: &str) -> Self {
        Self(xxh3_128(request_id.as_bytes()))
    }

    /// The name under which inventory holds the units of the `attempt`th try to place this order, counted from 1.
    pub(crate) fn reservation(self, attempt: u32) -> Reservation {
        Reservation { order: self, attempt }
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:032x}", Self::PREFIX, self.0)
    }
}

/// Not the form of an order's id, so there is no such order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAnOrderId;

impl FromStr for OrderId {
    type Err = NotAnOrderId;

    fn from_str(text: &str) -> Result<Self, NotAnOrderId> {
        let digits =
            text.strip_prefix(Self::PREFIX).filter(|digits| digits.len() == 32).ok_or(NotAnOrderId)?;
        // One order, one spelling: `from_str_radix` alone would take capitals and a sign.
        if !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(NotAnOrderId);
        }
        u128::from_str_radix(digits, 16).map(Self).map_err(|_| NotAnOrderId)
    }
}

/// What inventory calls the units of an order: the order's id, from the second attempt on with the attempt's number.
/// A new attempt needs a new name because inventory remembers what happened to the reservation of the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    order: OrderId,
    attempt: u32,
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempt {
            0 | 1 => write!(f, "{}", self.order),
            attempt => write!(f, "{}.{attempt}", self.order),
        }
    }
}

impl Reservation {
    /// The order that it is for.
    pub(crate) fn order(self) -> OrderId {
        self.order
    }
}

impl FromStr for Reservation {
    type Err = NotAnOrderId;

    /// The reservation that has this name in inventory, when it is one that ordering gives.
    fn from_str(text: &str) -> Result<Self, NotAnOrderId> {
        let (order, attempt) = text.split_once('.').unwrap_or((text, "1"));
        let attempt: u32 = attempt.parse().map_err(|_| NotAnOrderId)?;
        let reservation = order.parse::<OrderId>()?.reservation(attempt);
        // One reservation, one spelling.
        if reservation.to_string() == text { Ok(reservation) } else { Err(NotAnOrderId) }
    }
}

/// A SKU: the 13 digits of an ISBN-13, the last of which checks the others (ISO 2108).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sku(String);

impl Sku {
    /// A SKU, or the text that is none.
    pub(crate) fn new(text: String) -> Result<Self, String> {
        let digits = text.len() == 13 && text.bytes().all(|b| b.is_ascii_digit());
        let weights = [1, 3].into_iter().cycle();
        let weighted = text.bytes().zip(weights).map(|(b, weight)| u32::from(b.wrapping_sub(b'0')) * weight);
        if digits && weighted.sum::<u32>().is_multiple_of(10) { Ok(Self(text)) } else { Err(text) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_id_survives_its_text() {
        for request_id in ["a", "b", "7e0c8a3e-21e2-4e0c-a6b1-111111111111"] {
            let id = OrderId::of_request(request_id);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(proto::seed::order_id(7).parse(), Ok(OrderId(7)));
    }

    #[test]
    fn the_id_of_a_request_never_changes() {
        assert_eq!(OrderId::of_request("seed").to_string(), "ord_ad2a2f84aeac24e6495b7d56acb64e72");
    }

    #[test]
    fn other_spellings_are_no_order_ids() {
        let good = OrderId(0xabc).to_string();
        for bad in [
            "",
            "ord_",
            "ord_1",
            &good.to_uppercase(),
            &good.replace("abc", "ABC"),
            &good.replace("ord_0", "ord_+"),
        ] {
            assert_eq!(bad.parse::<OrderId>(), Err(NotAnOrderId), "{bad}");
        }
    }

    #[test]
    fn a_sku_is_thirteen_digits_with_a_right_check_digit() {
        for good in ["9790000000018", "9783161484100", "0000000000000"] {
            assert_eq!(Sku::new(good.to_owned()).unwrap().as_str(), good);
        }
        for bad in ["", "9790000000019", "979000000001", "97900000000180", "978-316148410", "979000000001é"]
        {
            assert_eq!(Sku::new(bad.to_owned()), Err(bad.to_owned()));
        }
    }

    #[test]
    fn the_name_of_a_reservation_leads_back_to_it() {
        for attempt in [1, 2, 64] {
            let reservation = OrderId(7).reservation(attempt);
            assert_eq!(reservation.to_string().parse(), Ok(reservation));
        }
        let id = OrderId(7);
        for other in
            ["", "order-1", &format!("{id}."), &format!("{id}.1"), &format!("{id}.02"), &format!("{id}.-2")]
        {
            assert_eq!(other.parse::<Reservation>(), Err(NotAnOrderId), "{other}");
        }
    }

    #[test]
    fn only_later_attempts_are_numbered() {
        let id = OrderId(1);
        assert_eq!(id.reservation(1).to_string(), id.to_string());
        assert_eq!(id.reservation(2).to_string(), format!("{id}.2"));
    }
}
