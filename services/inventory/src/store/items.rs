//! Books and where their units are.

use std::collections::HashMap;

use super::hash::Seeded;
use super::lock;
use super::table::{Item, Table};
use super::watch::Watchers;
use crate::domain::{Line, Movement, Refused, Sku, Stock};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{DashMap, Mutex};

/// More shards than threads by far: the maps are read by every call.
const SHARDS: usize = 64;

/// Units of one item. Half the size of a [`Line`], because every reservation keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Portion {
    item: u32,
    quantity: u32,
}

/// The stock of one book at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) book_id: i32,
    pub(crate) sku: Sku,
    pub(crate) in_stock: u32,
    pub(crate) reserved: u32,
    pub(crate) sold: u64,
}

impl Seen {
    fn new(item: &Item, stock: Stock) -> Self {
        let Stock { in_stock, reserved, .. } = stock;
        Self { book_id: item.book_id, sku: item.sku, in_stock, reserved, sold: stock.sold() }
    }
}

/// All books that inventory knows. None is ever removed.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) table: Table,
    pub(super) watchers: Watchers,
    /// Books 1 to this were known from the start, with their SKUs by rule and `units` of each in stock, at the places
    /// from 0. What nobody has asked to change needs no memory: it is put into the table by who does.
    seeded: u32,
    units: u32,
    /// The places of the others.
    by_sku: DashMap<Sku, u32, Seeded>,
    by_book: DashMap<i32, u32, Seeded>,
    /// How many there are. Whoever adds some holds it.
    count: Mutex<u32>,
    limit: u32,
}

impl Items {
    /// Room for `limit` books. The `seeded` ones, with `units` of each in stock, count, but are there in any case.
    pub(super) fn new(limit: u32, seeded: u32, units: u32) -> Self {
        Self {
            seeded,
            units,
            table: Table::default(),
            watchers: Watchers::default(),
            by_sku: DashMap::with_capacity_and_hasher_and_shard_amount(0, Seeded::default(), SHARDS),
            by_book: DashMap::with_capacity_and_hasher_and_shard_amount(0, Seeded::default(), SHARDS),
            count: Mutex::new(seeded),
            limit,
        }
    }

    /// The place of the book with this id.
    pub(super) fn find_book(&self, book_id: i32) -> Option<u32> {
        self.seeded_place(book_id).or_else(|| self.by_book.get(&book_id).map(|index| *index))
    }

    /// The place of the book with this SKU.
    pub(super) fn find(&self, sku: Sku) -> Option<u32> {
        let seeded = sku.seeded_book().and_then(|book_id| self.seeded_place(book_id));
        seeded.or_else(|| self.by_sku.get(&sku).map(|index| *index))
    }

    fn seeded_place(&self, book_id: i32) -> Option<u32> {
        u32::try_from(book_id).ok()?.checked_sub(1).filter(|place| *place < self.seeded)
    }

    /// The item at a place. A seeded one has its memory from then on.
    pub(super) fn item(&self, index: u32) -> Option<&Item> {
        self.table.get(index).or_else(|| self.table.put(index, self.seeded_item(index)?))
    }

    /// A seeded item as it was at first.
    fn seeded_item(&self, index: u32) -> Option<Item> {
        let book_id = i32::try_from(index).ok().filter(|_| index < self.seeded)?.checked_add(1)?;
        Some(Item::new(book_id, Sku::of_seeded(book_id), Stock::of(self.units)))
    }

    /// The stock of the book at this place.
    pub(super) fn read(&self, index: u32) -> Option<Seen> {
        match self.table.get(index) {
            Some(item) => Some(Seen::new(item, *lock(&item.stock))),
            // Nobody had touched it by then.
            None => Some(Seen::new(&self.seeded_item(index)?, Stock::of(self.units))),
        }
    }

    /// Adds books with nothing in stock: all that are new, or none. Those known with the same id and SKU stay as they
    /// are.
    pub(super) fn register(&self, books: &[(i32, Sku)]) -> Result<(), Refused> {
        let mut count = lock(&self.count);
        let mut fresh = Vec::new();
        let mut fresh_books = HashMap::new();
        let mut fresh_skus = HashMap::new();
        for &(book_id, sku) in books {
            match (self.find_book(book_id), self.find(sku)) {
                (Some(a), Some(b)) if a == b => continue,
                (None, None) => {}
                _ => return Err(Refused::SkuTaken { book_id, sku }),
            }
            match (fresh_books.insert(book_id, sku), fresh_skus.insert(sku, book_id)) {
                (None, None) => fresh.push((book_id, sku)),
                (Some(same_sku), Some(same_book)) if same_sku == sku && same_book == book_id => {}
                _ => return Err(Refused::SkuTaken { book_id, sku }),
            }
        }
        if fresh.len() > self.limit.saturating_sub(*count) as usize {
            return Err(Refused::Full("books"));
        }
        for (book_id, sku) in fresh {
            self.append(&mut count, book_id, sku);
        }
        Ok(())
    }

    fn append(&self, count: &mut u32, book_id: i32, sku: Sku) {
        let index = *count;
        *count += 1;
        self.table.put(index, Item::new(book_id, sku, Stock::default()));
        self.by_sku.insert(sku, index);
        self.by_book.insert(book_id, index);
    }

    /// Where the units of normalised lines are, or the first line of an unknown SKU.
    pub(super) fn portions(&self, lines: &[Line]) -> Result<Box<[Portion]>, Refused> {
        let portion = |line: &Line| match self.find(line.sku) {
            Some(item) => Ok(Portion { item, quantity: line.quantity }),
            None => Err(Refused::UnknownSku(line.sku)),
        };
        // Sized at once: collecting results would grow step by step.
        let mut portions = Vec::with_capacity(lines.len());
        for line in lines {
            portions.push(portion(line)?);
        }
        Ok(portions.into_boxed_slice())
    }

    /// The lines that these portions were made of.
    pub(super) fn lines(&self, portions: &[Portion]) -> Vec<Line> {
        let line =
            |p: &Portion| self.table.get(p.item).map(|item| Line { sku: item.sku, quantity: p.quantity });
        portions.iter().filter_map(line).collect()
    }

    /// Moves the units of all portions or of none, at one moment for whoever looks through this method.
    ///
    /// The locks of all items are held together, taken in the order of their SKUs, which is the order of portions. So
    /// no two calls wait for each other in a circle, and none is refused for units that another one takes for a moment
    /// and puts back.
    pub(super) fn shift(&self, portions: &[Portion], movement: Movement) -> Result<(), Refused> {
        let mut locked = Vec::with_capacity(portions.len());
        let mut watched = false;
        for portion in portions {
            let Some(item) = self.item(portion.item) else { continue };
            let stock = lock(&item.stock);
            let Some(after) = stock.after(movement, portion.quantity) else {
                let (wanted, in_stock) = (portion.quantity, stock.in_stock);
                return Err(Refused::OutOfStock { sku: item.sku, wanted, in_stock });
            };
            // Under the lock, so that either this sees a new watcher or the watcher sees the change.
            watched |= item.watchers.load(Relaxed) > 0;
            locked.push((stock, after));
        }
        for (mut stock, after) in locked {
            *stock = after;
        }
        if watched && movement != Movement::Settle {
            portions.iter().for_each(|portion| self.changed(portion.item));
        }
        Ok(())
    }

    /// Adds units, or takes some away when `delta` is negative.
    pub(super) fn adjust(&self, sku: Sku, delta: i32) -> Result<Seen, Refused> {
        let index = self.find(sku).ok_or(Refused::UnknownSku(sku))?;
        let item = self.item(index).ok_or(Refused::UnknownSku(sku))?;
        let seen = {
            let mut stock = lock(&item.stock);
            *stock = stock.adjust(sku, delta)?;
            Seen::new(item, *stock)
        };
        self.changed(index);
        Ok(seen)
    }

    fn changed(&self, index: u32) {
        if self.table.get(index).is_some_and(|item| item.watchers.load(Relaxed) > 0) {
            self.watchers.tell(index);
        }
    }
}
