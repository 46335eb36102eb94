//! An append-only table that is read without locks.

use std::sync::OnceLock;

use crate::domain::{Sku, Stock};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU32;

/// The first segment holds this many items, each further one twice as many as the one before.
const FIRST: u64 = 64;

/// Enough segments for every `u32`.
const SEGMENTS: usize = 27;

/// One book: its two names and where its units are.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) book_id: i32,
    pub(super) sku: Sku,
    pub(super) stock: Mutex<Stock>,
    /// How many watch it. A change looks here first, so that what nobody watches costs one load.
    pub(super) watchers: AtomicU32,
}

// Neighbours are often sold together: a cache line for each keeps their locks out of each other's way.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot(OnceLock<Item>);

// The locks of the model are larger.
#[cfg(not(test))]
const _: () = assert!(size_of::<Slot>() == 64);

/// Items by the order in which they came. An item is never moved or removed.
#[derive(Debug, Default)]
pub(super) struct Table {
    segments: [OnceLock<Box<[Slot]>>; SEGMENTS],
}

impl Table {
    /// The item at this place.
    pub(super) fn get(&self, index: u32) -> Option<&Item> {
        let (segment, offset) = locate(index);
        self.segments.get(segment)?.get()?.get(offset)?.0.get()
    }

    /// Puts an item at a place that has none yet.
    pub(super) fn put(&self, index: u32, item: Item) {
        let (segment, offset) = locate(index);
        let size = (FIRST as usize) << segment;
        let slots = self
            .segments
            .get(segment)
            .map(|s| s.get_or_init(|| (0..size).map(|_| Slot::default()).collect()));
        let fresh = slots.and_then(|slots| slots.get(offset)).is_some_and(|slot| slot.0.set(item).is_ok());
        debug_assert!(fresh, "place {index} was taken");
    }
}

/// The segment of a place, and the offset in it.
fn locate(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + FIRST;
    let power = shifted.ilog2();
    ((power - FIRST.ilog2()) as usize, (shifted - (1 << power)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_segments_without_gaps() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(63), (0, 63));
        assert_eq!(locate(64), (1, 0));
        assert_eq!(locate(191), (1, 127));
        assert_eq!(locate(192), (2, 0));
        let (segment, offset) = locate(u32::MAX);
        assert!(segment < SEGMENTS);
        assert!(offset < (FIRST as usize) << segment);
    }
}
