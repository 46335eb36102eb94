//! The books that a store starts with.
//!
//! They follow from their numbers, so that a million of them needs no memory: one is made when it is asked for, and only
//! what has become of it is kept.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::Shelf;
use crate::domain::{Book, BookId, Sku};

/// Those up to this number are asked for most, and are kept ready. They are the ones that can have reviews.
pub(super) const KEPT: i32 = 1_000;

const _: () = assert!(proto::seed::REVIEWED_BOOKS <= KEPT);

/// The seeded books, numbered from 1 without gaps, and which of them are deleted.
pub(super) struct Seeded {
    count: i32,
    make: fn(BookId) -> Option<Book>,
    /// A bit for each, set for good when it is deleted.
    gone: Box<[AtomicU64]>,
}

impl Seeded {
    /// This many, made by this rule.
    pub(super) fn new(count: i32, make: fn(BookId) -> Option<Book>) -> Self {
        let words = usize::try_from(count).unwrap_or_default() / 64 + 1;
        Self { count, make, gone: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// How many there were at first.
    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Those that are kept ready.
    pub(super) fn kept(&self) -> impl Iterator<Item = Book> {
        (1..=self.count.min(KEPT)).filter_map(BookId::new).filter_map(self.make)
    }

    /// The book as it was at first, unless it is deleted.
    pub(super) fn shelf(&self, id: BookId) -> Option<Shelf> {
        let book = self.has(id).then(|| (self.make)(id))??;
        Some(Shelf { book: book.into(), reviews: Vec::new() })
    }

    /// The seeded book with this SKU, unless it is deleted.
    pub(super) fn owner(&self, sku: Sku) -> Option<BookId> {
        proto::seed::book_of(sku.as_str()).and_then(BookId::new).filter(|id| self.has(*id))
    }

    /// Notes that the book is deleted. One that is not seeded is none of ours.
    pub(super) fn remove(&self, id: BookId) {
        let (word, bit) = place(id);
        if id.get() <= self.count
            && let Some(gone) = self.gone.get(word)
        {
            gone.fetch_or(bit, Release);
        }
    }

    /// The ids after this one, in order, without those of deleted books.
    pub(super) fn ids_after(&self, after: Option<BookId>) -> impl Iterator<Item = BookId> {
        let mut next = after.map_or(0, BookId::get).saturating_add(1);
        std::iter::from_fn(move || {
            while next <= self.count {
                let id = BookId::new(next)?;
                let (word, bit) = place(id);
                let gone = self.gone.get(word)?.load(Acquire);
                if gone & bit == 0 {
                    next = next.saturating_add(1);
                    return Some(id);
                }
                // Of the bits from here on, as many are set as there are ones in a row.
                let run = (gone >> bit.trailing_zeros()).trailing_ones();
                next = next.saturating_add(i32::try_from(run).unwrap_or(1));
            }
            None
        })
    }

    fn has(&self, id: BookId) -> bool {
        let (word, bit) = place(id);
        id.get() <= self.count && self.gone.get(word).is_some_and(|gone| gone.load(Acquire) & bit == 0)
    }
}

/// The word with the bit of a book, and the bit.
fn place(id: BookId) -> (usize, u64) {
    let number = id.get().unsigned_abs() as usize;
    (number / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    fn ids(seeded: &Seeded, after: i32) -> Vec<i32> {
        seeded.ids_after(BookId::new(after)).map(BookId::get).collect()
    }

    #[test]
    fn the_ids_are_those_that_are_not_deleted() {
        let seeded = Seeded::new(200, seed::book);
        assert_eq!(ids(&seeded, 0), (1..=200).collect::<Vec<_>>());
        assert_eq!(ids(&seeded, 199), [200]);
        assert_eq!(ids(&seeded, 200), [0; 0]);
        assert_eq!(ids(&seeded, i32::MAX), [0; 0]);
        for id in (2..=199).chain([200, 201, i32::MAX]) {
            seeded.remove(BookId::new(id).unwrap());
        }
        assert_eq!(ids(&seeded, 0), [1]);
        assert_eq!(ids(&seeded, 1), [0; 0]);
        assert_eq!(ids(&seeded, 100), [0; 0]);
    }

    #[test]
    fn a_deleted_book_has_no_sku_and_is_not_made() {
        let seeded = Seeded::new(2_000, seed::book);
        let id = BookId::new(1_500).unwrap();
        let sku = Sku::parse(&proto::seed::sku(1_500)).unwrap();
        assert_eq!(seeded.owner(sku), Some(id));
        assert_eq!(seeded.shelf(id).unwrap().book.sku, sku);
        seeded.remove(id);
        assert_eq!(seeded.owner(sku), None);
        assert!(seeded.shelf(id).is_none());
        for beyond in [2_001, i32::MAX] {
            assert!(seeded.shelf(BookId::new(beyond).unwrap()).is_none());
        }
        assert_eq!(seeded.owner(Sku::parse(&proto::seed::sku(2_001)).unwrap()), None);
        assert_eq!(seeded.owner(Sku::parse("9783161484100").unwrap()), None);
    }
}
