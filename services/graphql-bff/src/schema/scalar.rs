//! Values that GraphQL's own scalars can't carry.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use proto::common::v1 as common;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Int64(pub(crate) i64);

/// A 64-bit signed integer as a JSON number: amounts of money and counts that outgrow `Int`. Readers that keep numbers
/// as doubles hold it exactly up to 2^53.
#[Scalar(name = "Int64")]
impl ScalarType for Int64 {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::Number(number) => match number.as_i64() {
                Some(number) => Ok(Self(number)),
                None => Err(InputValueError::expected_type(value)),
            },
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::Number(number) if number.is_i64())
    }

    fn to_value(&self) -> Value {
        Value::Number(self.0.into())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct DateTime(String);

impl DateTime {
    /// Services always say when; the epoch stands for one that did not.
    pub(crate) fn of<T: ToString + Default>(time: Option<T>) -> Self {
        Self(time.unwrap_or_default().to_string())
    }
}

/// A moment in UTC as RFC 3339 writes it: `2026-11-30T12:00:00Z`.
#[Scalar(name = "DateTime", specified_by_url = "https://www.rfc-editor.org/rfc/rfc3339")]
impl ScalarType for DateTime {
    fn parse(value: Value) -> InputValueResult<Self> {
        match value {
            Value::String(text) => Ok(Self(text)),
            other => Err(InputValueError::expected_type(other)),
        }
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.clone())
    }
}

/// An amount of money in whole minor units, never a fraction: EUR 29.99 is `amountMinor` 2999.
#[derive(Debug, Clone, async_graphql::SimpleObject)]
pub(crate) struct Money {
    /// Minor units, cents for EUR. Never negative.
    pub(crate) amount_minor: Int64,
    /// ISO 4217 code. The bookstore trades in EUR only.
    pub(crate) currency: String,
}

impl Money {
    pub(crate) fn of(money: Option<&common::Money>) -> Self {
        let amount_minor = Int64(money.map_or(0, |money| money.amount_minor));
        Self { amount_minor, currency: money.map_or_else(String::new, |money| money.currency.clone()) }
    }
}

/// An amount of money in whole minor units: EUR 29.99 is `amountMinor` 2999.
#[derive(Debug, async_graphql::InputObject)]
pub(crate) struct MoneyInput {
    /// Minor units, cents for EUR: 0 to 100,000,000.
    amount_minor: Int64,
    /// ISO 4217 code: EUR.
    currency: String,
}

impl From<MoneyInput> for common::Money {
    fn from(money: MoneyInput) -> Self {
        Self { amount_minor: money.amount_minor.0, currency: money.currency }
    }
}
