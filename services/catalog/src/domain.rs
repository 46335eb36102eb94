//! The rules of books, authors and reviews. Pure: no clock, no wire, no store.

mod fields;

use std::fmt;
use std::time::SystemTime;

use proto::{FieldError, Reason};

pub(crate) use fields::{Fields, MAX_BATCH};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(i32);

        impl $name {
            /// An id, when the number is positive.
            pub(crate) fn new(id: i32) -> Option<Self> {
                (id > 0).then_some(Self(id))
            }

            /// The number.
            pub(crate) fn get(self) -> i32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Names a book: positive, never reused.
    BookId
}
id! {
    /// Names an author: positive, never reused.
    AuthorId
}
id! {
    /// Names a review: positive, never reused, and later reviews have higher ones.
    ReviewId
}

/// An ISBN-13: 13 digits, the last of which checks the others (ISO 2108).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sku([u8; 13]);

impl Sku {
    /// The SKU, when the digits are right.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 13] = text.as_bytes().try_into().ok()?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let weights = [1, 3].into_iter().cycle();
        let sum: u32 = digits.iter().zip(weights).map(|(&d, weight)| u32::from(d - b'0') * weight).sum();
        sum.is_multiple_of(10).then_some(Self(digits))
    }

    /// The 13 digits.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sku({self})")
    }
}

/// What one copy costs, in cents of EUR: 0 to 100,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price(i64);

impl Price {
    /// The only currency of this suite.
    pub(crate) const CURRENCY: &str = "EUR";
    /// A million euros.
    pub(crate) const MAX_MINOR: i64 = 100_000_000;

    /// The price, when it is in bounds.
    pub(crate) fn new(amount_minor: i64) -> Option<Self> {
        (0..=Self::MAX_MINOR).contains(&amount_minor).then_some(Self(amount_minor))
    }

    /// Cents.
    pub(crate) fn minor(self) -> i64 {
        self.0
    }
}

/// A book as it stands. A change makes a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) id: BookId,
    pub(crate) sku: Sku,
    pub(crate) title: Box<str>,
    pub(crate) author_id: AuthorId,
    pub(crate) price: Price,
    pub(crate) version: i32,
}

/// Who wrote books. Authors don't change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) id: AuthorId,
    pub(crate) name: Box<str>,
    /// ISO 3166-1 alpha-2.
    pub(crate) country: Box<str>,
    pub(crate) born: i32,
}

/// What a reader wrote about a book. Reviews don't change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Review {
    pub(crate) id: ReviewId,
    pub(crate) book_id: BookId,
    pub(crate) draft: ReviewDraft,
    pub(crate) created_at: SystemTime,
}

/// A book to add: all rules that need nothing but the request hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BookDraft {
    pub(crate) sku: Sku,
    pub(crate) title: Box<str>,
    pub(crate) author_id: AuthorId,
    pub(crate) price: Price,
}

impl BookDraft {
    /// The first version of the book.
    pub(crate) fn into_book(self, id: BookId) -> Book {
        let Self { sku, title, author_id, price } = self;
        Book { id, sku, title, author_id, price, version: 1 }
    }
}

/// A review to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewDraft {
    /// 1 (worst) to 5 (best).
    pub(crate) rating: u8,
    pub(crate) reviewer: Box<str>,
    pub(crate) text: Box<str>,
}

/// What is to change in a book; `None` leaves the field as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BookChange {
    pub(crate) title: Option<Box<str>>,
    pub(crate) author_id: Option<AuthorId>,
    pub(crate) price: Option<Price>,
}

impl Book {
    /// Refuses when the caller expects another version.
    pub(crate) fn expect_version(&self, expected: Option<i32>) -> Result<(), Refused> {
        match expected {
            Some(expected) if expected != self.version => {
                Err(Refused::VersionMismatch { book_id: self.id, expected, current: self.version })
            }
            _ => Ok(()),
        }
    }

    /// The book after the change. The version goes up unless the change changes nothing.
    pub(crate) fn changed(&self, change: BookChange) -> Book {
        let mut book = Book {
            title: change.title.unwrap_or_else(|| self.title.clone()),
            author_id: change.author_id.unwrap_or(self.author_id),
            price: change.price.unwrap_or(self.price),
            ..self.clone()
        };
        if book != *self {
            book.version = self.version.saturating_add(1);
        }
        book
    }
}

/// Why a call was refused. Nothing was changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{} fields break a rule", .0.len())]
    Fields(Vec<FieldError>),
    #[error("the page token is not one that this list gave out")]
    PageToken,
    #[error("no book has id {0}")]
    BookNotFound(BookId),
    #[error("no author has id {0}")]
    AuthorNotFound(AuthorId),
    #[error("another book has sku {0}")]
    SkuTaken(Sku),
    #[error("book {book_id} has version {current}, expected was {expected}")]
    VersionMismatch { book_id: BookId, expected: i32, current: i32 },
    #[error("no room for more books")]
    BooksFull,
    #[error("no room for more reviews")]
    ReviewsFull,
}

impl Refused {
    /// The name that crosses the wire.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Fields(_) => Reason::InvalidField,
            Self::PageToken => Reason::InvalidPageToken,
            Self::BookNotFound(_) => Reason::BookNotFound,
            Self::AuthorNotFound(_) => Reason::AuthorNotFound,
            Self::SkuTaken(_) => Reason::SkuTaken,
            Self::VersionMismatch { .. } => Reason::VersionMismatch,
            Self::BooksFull | Self::ReviewsFull => Reason::StoreFull,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        let draft = BookDraft {
            sku: Sku::parse("9790000000018").unwrap(),
            title: "Ember".into(),
            author_id: AuthorId(1),
            price: Price(2999),
        };
        draft.into_book(BookId(1))
    }

    #[test]
    fn a_sku_is_thirteen_digits_with_a_right_check_digit() {
        for good in ["9790000000018", "9783161484100", "0000000000000"] {
            assert_eq!(Sku::parse(good).unwrap().to_string(), good);
        }
        for bad in ["", "9790000000019", "979000000001", "97900000000180", "978-316148410", "979000000001é"]
        {
            assert_eq!(Sku::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ids_are_positive_and_prices_are_bounded() {
        assert_eq!(BookId::new(0), None);
        assert_eq!(BookId::new(i32::MIN), None);
        assert_eq!(BookId::new(7).map(BookId::get), Some(7));
        assert_eq!(Price::new(-1), None);
        assert_eq!(Price::new(100_000_001), None);
        assert_eq!(Price::new(100_000_000).map(Price::minor), Some(100_000_000));
    }

    #[test]
    fn a_change_touches_what_is_set_and_counts() {
        let change = BookChange { price: Some(Price(5)), ..BookChange::default() };
        let changed = book().changed(change.clone());
        assert_eq!(changed, Book { price: Price(5), version: 2, ..book() });
        assert_eq!(changed.changed(change), changed, "the same again is no change");
        assert_eq!(book().changed(BookChange::default()), book());
    }

    #[test]
    fn a_version_is_checked_only_when_one_is_expected() {
        assert_eq!(book().expect_version(None), Ok(()));
        assert_eq!(book().expect_version(Some(1)), Ok(()));
        let refused = book().expect_version(Some(3)).unwrap_err();
        assert_eq!(refused, Refused::VersionMismatch { book_id: BookId(1), expected: 3, current: 1 });
        assert_eq!(refused.reason(), Reason::VersionMismatch);
    }
}
