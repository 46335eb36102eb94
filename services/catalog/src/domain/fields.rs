//! The rules of single fields. All broken ones of a request are collected, so that one refusal names them together.

use std::fmt;
use std::ops::RangeInclusive;

use proto::FieldError;

use super::{AuthorId, BookChange, BookDraft, BookId, Price, Refused, ReviewDraft, Sku};

/// The most ids that one call may name.
pub(crate) const MAX_BATCH: usize = 1_000;

/// The most reviews of one book that a call gives beside something else.
const MAX_REVIEWS_ASIDE: i32 = 100;

/// The most reviews that a call gives of all its books together: they are what makes a reply large.
const MAX_REVIEWS_IN_ALL: usize = 10_000;

/// A refusal names this many fields at most: it travels in headers, whose size is limited.
const MAX_NAMED: usize = 20;

/// The broken fields of one request. A check returns the parsed value, or `None` when it has noted the field.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<FieldError>);

impl From<Fields> for Refused {
    fn from(fields: Fields) -> Self {
        Self::Fields(fields.0)
    }
}

impl Fields {
    /// Notes a broken field.
    pub(crate) fn refuse(&mut self, field: impl fmt::Display, rule: impl fmt::Display) {
        if self.0.len() < MAX_NAMED {
            self.0.push(FieldError { field: field.to_string(), rule: rule.to_string() });
        }
    }

    /// Refuses when any field was noted.
    pub(crate) fn finish(self) -> Result<(), Refused> {
        if self.0.is_empty() { Ok(()) } else { Err(self.into()) }
    }

    /// An id of a book.
    pub(crate) fn book_id(&mut self, field: impl fmt::Display, id: i32) -> Option<BookId> {
        self.parsed(field, BookId::new(id), || format!("must be positive, was {id}"))
    }

    /// An id of an author.
    pub(crate) fn author_id(&mut self, field: impl fmt::Display, id: i32) -> Option<AuthorId> {
        self.parsed(field, AuthorId::new(id), || format!("must be positive, was {id}"))
    }

    /// A SKU.
    pub(crate) fn sku(&mut self, field: impl fmt::Display, text: &str) -> Option<Sku> {
        self.parsed(field, Sku::parse(text), || "must be 13 digits with a right check digit".to_owned())
    }

    /// A number within bounds.
    pub(crate) fn number(&mut self, field: &str, n: i32, bounds: RangeInclusive<i32>) -> Option<usize> {
        let value = usize::try_from(n).ok().filter(|_| bounds.contains(&n));
        self.parsed(field, value, || format!("must be from {} to {}, was {n}", bounds.start(), bounds.end()))
    }

    /// How many reviews of each of so many books, from `least` on.
    pub(crate) fn review_count(&mut self, n: i32, least: i32, books: usize) -> Option<usize> {
        let count = self.number("review_count", n, least..=MAX_REVIEWS_ASIDE)?;
        let most = MAX_REVIEWS_IN_ALL / books.max(1);
        self.parsed("review_count", (count <= most).then_some(count), || {
            format!("must be at most {most} for {books} books, was {n}")
        })
    }

    /// A number that has no upper bound.
    pub(crate) fn count(&mut self, field: &str, n: i32) -> Option<usize> {
        self.parsed(field, usize::try_from(n).ok(), || format!("must not be negative, was {n}"))
    }

    /// The size of a page.
    pub(crate) fn page_size(&mut self, n: i32) -> Option<usize> {
        chassis::page::size(n).map_err(|rule| self.refuse("page_size", rule)).ok()
    }

    /// A text of 1 to `max` characters.
    pub(crate) fn text(&mut self, field: &str, text: String, max: usize) -> Option<Box<str>> {
        let length = text.chars().count();
        let value = (1..=max).contains(&length).then(|| text.into_boxed_str());
        self.parsed(field, value, || format!("must have 1 to {max} characters, had {length}"))
    }

    /// The ids of a batch. `total` counts what other fields of the same batch name as well.
    pub(crate) fn batch<'a, T, U>(
        &mut self,
        field: &str,
        items: &'a [T],
        total: usize,
        mut check: impl FnMut(&mut Self, String, &'a T) -> Option<U>,
    ) -> Vec<U> {
        if total > MAX_BATCH {
            if !items.is_empty() {
                self.refuse(field, format_args!("must have at most {MAX_BATCH} items, had {total}"));
            }
            return Vec::new();
        }
        // Naming a place costs a string, so only places that turn out to be broken are named.
        let mut parsed = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match check(&mut Self::default(), String::new(), item) {
                Some(value) => parsed.push(value),
                None => _ = check(self, format!("{field}[{place}]"), item),
            }
        }
        parsed
    }

    /// An amount of money.
    pub(crate) fn price(&mut self, price: Option<(i64, &str)>) -> Option<Price> {
        let Some((amount, currency)) = price else {
            self.refuse("price", "must be set");
            return None;
        };
        if currency != Price::CURRENCY {
            // What was sent may be long, and headers are not.
            let sent: String = currency.chars().take(10).collect();
            self.refuse("price.currency", format_args!("must be {}, was {sent:?}", Price::CURRENCY));
        }
        self.parsed("price.amount_minor", Price::new(amount), || {
            format!("must be from 0 to {}, was {amount}", Price::MAX_MINOR)
        })
    }

    /// A book to add.
    pub(crate) fn book_draft(
        mut self,
        sku: &str,
        title: String,
        author_id: i32,
        price: Option<(i64, &str)>,
    ) -> Result<BookDraft, Refused> {
        let sku = self.sku("sku", sku);
        let title = self.text("title", title, 300);
        let author_id = self.author_id("author_id", author_id);
        let price = self.price(price);
        match (sku, title, author_id, price) {
            (Some(sku), Some(title), Some(author_id), Some(price)) if self.0.is_empty() => {
                Ok(BookDraft { sku, title, author_id, price })
            }
            _ => Err(self.into()),
        }
    }

    /// A change of a book.
    pub(crate) fn book_change(
        mut self,
        book_id: i32,
        title: Option<String>,
        author_id: Option<i32>,
        price: Option<(i64, &str)>,
    ) -> Result<(BookId, BookChange), Refused> {
        let book_id = self.book_id("book_id", book_id);
        let change = BookChange {
            title: title.and_then(|title| self.text("title", title, 300)),
            author_id: author_id.and_then(|id| self.author_id("author_id", id)),
            price: price.and_then(|price| self.price(Some(price))),
        };
        match book_id {
            Some(book_id) if self.0.is_empty() => Ok((book_id, change)),
            _ => Err(self.into()),
        }
    }

    /// A review to add.
    pub(crate) fn review_draft(
        mut self,
        book_id: i32,
        rating: i32,
        reviewer: String,
        text: String,
    ) -> Result<(BookId, ReviewDraft), Refused> {
        let book_id = self.book_id("book_id", book_id);
        let rating = self.number("rating", rating, 1..=5).and_then(|rating| u8::try_from(rating).ok());
        let reviewer = self.text("reviewer", reviewer, 80);
        let text = self.text("text", text, 2_000);
        match (book_id, rating, reviewer, text) {
            (Some(book_id), Some(rating), Some(reviewer), Some(text)) => {
                Ok((book_id, ReviewDraft { rating, reviewer, text }))
            }
            _ => Err(self.into()),
        }
    }

    fn parsed<T>(
        &mut self,
        field: impl fmt::Display,
        value: Option<T>,
        rule: impl FnOnce() -> String,
    ) -> Option<T> {
        if value.is_none() {
            self.refuse(field, rule());
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(refused: Refused) -> Vec<String> {
        match refused {
            Refused::Fields(fields) => {
                fields.into_iter().map(|f| format!("{}: {}", f.field, f.rule)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_broken_fields_of_a_book_are_named_together() {
        let refused = Fields::default().book_draft("1", String::new(), 0, Some((-1, "USD"))).unwrap_err();
        assert_eq!(
            named(refused),
            [
                "sku: must be 13 digits with a right check digit",
                "title: must have 1 to 300 characters, had 0",
                "author_id: must be positive, was 0",
                "price.currency: must be EUR, was \"USD\"",
                "price.amount_minor: must be from 0 to 100000000, was -1",
            ]
        );
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        let fields =
            |n: usize| Fields::default().book_draft("9790000000018", "é".repeat(n), 1, Some((1, "EUR")));
        assert!(fields(300).is_ok());
        assert_eq!(named(fields(301).unwrap_err()), ["title: must have 1 to 300 characters, had 301"]);
    }

    #[test]
    fn a_change_checks_only_what_is_set() {
        assert!(Fields::default().book_change(1, None, None, None).is_ok());
        let refused =
            Fields::default().book_change(-1, Some(String::new()), Some(0), Some((1, ""))).unwrap_err();
        assert_eq!(named(refused).len(), 4);
    }

    #[test]
    fn a_review_has_bounds() {
        let refused = Fields::default().review_draft(0, 6, "x".repeat(81), String::new()).unwrap_err();
        assert_eq!(
            named(refused),
            [
                "book_id: must be positive, was 0",
                "rating: must be from 1 to 5, was 6",
                "reviewer: must have 1 to 80 characters, had 81",
                "text: must have 1 to 2000 characters, had 0",
            ]
        );
    }

    #[test]
    fn broken_places_of_a_batch_are_named_up_to_twenty() {
        let mut fields = Fields::default();
        let ids = [&[1, 0, 2, -3][..], &[0; 50]].concat();
        let parsed =
            fields.batch("book_ids", &ids, ids.len(), |fields, place, &id| fields.book_id(place, id));
        assert_eq!(parsed.len(), 2);
        let named = named(fields.into());
        assert_eq!(named.len(), 20);
        assert_eq!(
            named[..2],
            ["book_ids[1]: must be positive, was 0", "book_ids[3]: must be positive, was -3"]
        );
    }
}
