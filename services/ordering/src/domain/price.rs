//! What an order costs.

use std::fmt;

use super::draft::reservation_lines;
use super::{Address, Draft, Fingerprint, Sku};

/// An ISO 4217 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Currency([u8; 3]);

impl Currency {
    /// What the suite trades in.
    pub(crate) const EUR: Currency = Currency(*b"EUR");

    /// The currency with this code, if it has the form of one.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        let code: [u8; 3] = code.as_bytes().try_into().ok()?;
        code.iter().all(u8::is_ascii_uppercase).then_some(Self(code))
    }

    pub(crate) fn as_str(&self) -> &str {
        // Always capitals, by construction.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Money {
    pub(crate) minor: i64,
    pub(crate) currency: Currency,
}

/// What the shop asks for a book now.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) book_id: i32,
    pub(crate) title: String,
    pub(crate) price: Money,
}

/// Copies of one book, as they were when the order was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) sku: Sku,
    pub(crate) book_id: i32,
    pub(crate) title: String,
    pub(crate) quantity: i32,
    pub(crate) unit_price: Money,
    pub(crate) line_total: Money,
}

/// The part of an order that never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) lines: Vec<Line>,
    pub(crate) total: Money,
    pub(crate) ship_to: Option<Address>,
    /// What was asked for, to tell a repeated request from another one.
    pub(crate) fingerprint: Fingerprint,
}

impl Content {
    /// The lines of a reservation for all copies: the same as those of the draft.
    pub(crate) fn reservation_lines(&self) -> impl Iterator<Item = (&Sku, i32)> {
        self.lines.iter().flat_map(|line| reservation_lines(&line.sku, line.quantity))
    }
}

/// Why an order has no price.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PriceError {
    #[error("unknown sku {0}")]
    UnknownSku(Sku),
    #[error("the total is more than an order can hold")]
    TotalTooLarge,
    #[error("sku {sku} costs {minor} minor units")]
    NegativePrice { sku: Sku, minor: i64 },
    #[error("sku {sku} is sold in {currency}, others in {others}")]
    MixedCurrencies { sku: Sku, currency: Currency, others: Currency },
}

impl Draft {
    /// The order's content at the prices of `offer`.
    pub(crate) fn price(&self, offer: impl Fn(&Sku) -> Option<Offer>) -> Result<Content, PriceError> {
        let mut total: Option<Money> = None;
        let mut lines = Vec::with_capacity(self.lines().len());
        for (sku, quantity) in self.lines() {
            let Offer { book_id, title, price } =
                offer(sku).ok_or_else(|| PriceError::UnknownSku(sku.clone()))?;
            let Money { minor, currency } = price;
            if minor < 0 {
                return Err(PriceError::NegativePrice { sku: sku.clone(), minor });
            }
            let line_minor = minor.checked_mul(i64::from(*quantity)).ok_or(PriceError::TotalTooLarge)?;
            total = Some(match total {
                Some(sum) if sum.currency != currency => {
                    let others = sum.currency;
                    return Err(PriceError::MixedCurrencies { sku: sku.clone(), currency, others });
                }
                Some(sum) => {
                    let minor = sum.minor.checked_add(line_minor).ok_or(PriceError::TotalTooLarge)?;
                    Money { minor, currency }
                }
                None => Money { minor: line_minor, currency },
            });
            let line_total = Money { minor: line_minor, currency };
            lines.push(Line {
                sku: sku.clone(),
                book_id,
                title,
                quantity: *quantity,
                unit_price: price,
                line_total,
            });
        }
        let total = total.unwrap_or(Money { minor: 0, currency: Currency::EUR });
        Ok(Content { lines, total, ship_to: self.ship_to().cloned(), fingerprint: self.fingerprint() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "9790000000018";
    const B: &str = "9790000000025";

    fn price(lines: &[(&str, i32)], prices: &[(&str, i64, &str)]) -> Result<Content, PriceError> {
        let lines = lines.iter().map(|&(sku, quantity)| (sku.to_owned(), quantity)).collect();
        Draft::new("r", lines, None).unwrap().price(|sku| {
            let &(_, minor, currency) = prices.iter().find(|(known, ..)| *known == sku.as_str())?;
            let price = Money { minor, currency: Currency::parse(currency).unwrap() };
            Some(Offer { book_id: 1, title: "T".to_owned(), price })
        })
    }

    #[test]
    fn a_total_is_the_sum_of_its_lines() {
        let content = price(&[(A, 2), (B, 3), (A, 1)], &[(A, 250, "EUR"), (B, 1999, "EUR")]).unwrap();
        let totals: Vec<_> =
            content.lines.iter().map(|line| (line.quantity, line.line_total.minor)).collect();
        assert_eq!(totals, [(3, 750), (3, 5997)]);
        assert_eq!(content.total, Money { minor: 6747, currency: Currency::EUR });
    }

    #[test]
    fn a_total_never_overflows() {
        assert_eq!(price(&[(A, 2)], &[(A, i64::MAX, "EUR")]), Err(PriceError::TotalTooLarge));
        let sum = price(&[(A, 1), (B, 1)], &[(A, i64::MAX, "EUR"), (B, 1, "EUR")]);
        assert_eq!(sum, Err(PriceError::TotalTooLarge));
        assert!(price(&[(A, 1), (B, 1)], &[(A, i64::MAX - 1, "EUR"), (B, 1, "EUR")]).is_ok());
    }

    #[test]
    fn what_can_not_be_priced_is_named() {
        let b = || Sku::new(B.to_owned()).unwrap();
        assert_eq!(price(&[(A, 1), (B, 1)], &[(A, 1, "EUR")]), Err(PriceError::UnknownSku(b())));
        assert_eq!(
            price(&[(B, 1)], &[(B, -1, "EUR")]),
            Err(PriceError::NegativePrice { sku: b(), minor: -1 })
        );
        let mixed = price(&[(A, 1), (B, 1)], &[(A, 1, "EUR"), (B, 1, "SEK")]);
        assert!(matches!(mixed, Err(PriceError::MixedCurrencies { sku, .. }) if sku == b()));
    }
}
