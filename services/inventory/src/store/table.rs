//! An append-only table that is read without locks.

use std::sync::OnceLock;

use crate::domain::{Sku, Stock};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU32;

/// Items that get their memory together: a page of it.
const CHUNK: u32 = 64;

/// The first segment holds this many chunks, each further one twice as many as the one before.
const FIRST: u32 = 64;

/// Enough segments for every `u32`.
const SEGMENTS: usize = 21;

/// One book: its two names and where its units are.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) book_id: i32,
    pub(super) sku: Sku,
    pub(super) stock: Mutex<Stock>,
    /// How many watch it. A change looks here first, so that what nobody watches costs one load.
    pub(super) watchers: AtomicU32,
}

impl Item {
    /// An item that nobody watches.
    pub(super) fn new(book_id: i32, sku: Sku, stock: Stock) -> Self {
        Self { book_id, sku, stock: Mutex::new(stock), watchers: AtomicU32::new(0) }
    }
}

// Neighbours are often sold together: a cache line for each keeps their locks out of each other's way.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot(OnceLock<Item>);

// The locks of the model are larger.
#[cfg(not(test))]
const _: () = assert!(size_of::<Slot>() == 64);

/// Made when its first item comes, so that items far apart need memory for themselves and their neighbours only.
type Chunk = OnceLock<Box<[Slot]>>;

/// Items by their places. An item is never moved or removed.
#[derive(Debug, Default)]
pub(super) struct Table {
    segments: [OnceLock<Box<[Chunk]>>; SEGMENTS],
}

impl Table {
    /// The item at this place.
    pub(super) fn get(&self, index: u32) -> Option<&Item> {
        let Place { segment, chunk, offset } = locate(index);
        self.segments.get(segment)?.get()?.get(chunk)?.get()?.get(offset)?.0.get()
    }

    /// The item at this place, which is this one if there was none yet.
    pub(super) fn put(&self, index: u32, item: Item) -> Option<&Item> {
        let Place { segment, chunk, offset } = locate(index);
        let chunks = (FIRST as usize) << segment;
        let segment = self.segments.get(segment)?;
        let chunk = segment.get_or_init(|| (0..chunks).map(|_| Chunk::default()).collect()).get(chunk)?;
        let slot = chunk.get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect()).get(offset)?;
        // Made before, and not in here: the locks of the model must not be met while this one is held.
        let _ = slot.0.set(item);
        slot.0.get()
    }
}

struct Place {
    segment: usize,
    /// In the segment.
    chunk: usize,
    /// In the chunk.
    offset: usize,
}

/// Where an item is.
fn locate(index: u32) -> Place {
    let shifted = index / CHUNK + FIRST;
    let power = shifted.ilog2();
    Place {
        segment: (power - FIRST.ilog2()) as usize,
        chunk: (shifted - (1 << power)) as usize,
        offset: (index % CHUNK) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_segments_without_gaps() {
        let at = |index| {
            let Place { segment, chunk, offset } = locate(index);
            (segment, chunk, offset)
        };
        assert_eq!(at(0), (0, 0, 0));
        assert_eq!(at(63), (0, 0, 63));
        assert_eq!(at(64), (0, 1, 0));
        assert_eq!(at(4_095), (0, 63, 63));
        assert_eq!(at(4_096), (1, 0, 0));
        assert_eq!(at(12_287), (1, 127, 63));
        assert_eq!(at(12_288), (2, 0, 0));
        let (segment, chunk, _) = at(u32::MAX);
        assert!(segment < SEGMENTS);
        assert!(chunk < (FIRST as usize) << segment);
    }
}
