//! Books about to be added.

use std::sync::{Arc, PoisonError};

use dashmap::mapref::entry::Entry;

use super::{Shelf, Store};
use crate::domain::{Book, BookDraft, BookId, Refused};

/// So many ids are kept for another try. Those beyond are forgotten, and inventory will refuse their SKUs.
const MAX_UNSETTLED: usize = 10_000;

/// A book about to be added: it holds its SKU, its id and its place, and nobody sees it. Dropped, it leaves no book
/// behind, so that a cancelled call needs no care.
pub(crate) struct Reservation<'a> {
    store: &'a Store,
    id: BookId,
    /// Taken when the book is published.
    draft: Option<BookDraft>,
    /// Whether inventory may know the book.
    asked: bool,
}

impl Store {
    /// Whether a book could be added now, as far as this store knows.
    pub(crate) fn check(&self, draft: &BookDraft) -> Result<(), Refused> {
        self.author(draft.author_id)?;
        if self.id_of(draft.sku).is_some() {
            return Err(Refused::SkuTaken(draft.sku));
        }
        if self.book_quota.has_room() { Ok(()) } else { Err(Refused::BooksFull) }
    }

    /// Reserves the SKU of a book, an id and a place.
    pub(crate) fn reserve(&self, draft: BookDraft) -> Result<Reservation<'_>, Refused> {
        self.author(draft.author_id)?;
        // While the entry is held nobody else gets the SKU.
        let Entry::Vacant(entry) = self.skus.entry(draft.sku) else {
            return Err(Refused::SkuTaken(draft.sku));
        };
        if self.seeded.owner(draft.sku).is_some() {
            return Err(Refused::SkuTaken(draft.sku));
        }
        if !self.book_quota.take(1) {
            return Err(Refused::BooksFull);
        }
        let earlier = self.unsettled.remove(&draft.sku).map(|(_, id)| id);
        let Some(id) = earlier.or_else(|| self.book_ids.next().and_then(BookId::new)) else {
            self.book_quota.give_back(1);
            return Err(Refused::BooksFull);
        };
        entry.insert(id);
        Ok(Reservation { store: self, id, asked: earlier.is_some(), draft: Some(draft) })
    }
}

impl Reservation<'_> {
    /// The id and the SKU, for inventory, which from now on may know the book.
    pub(crate) fn ask(&mut self) -> (BookId, String) {
        self.asked = true;
        (self.id, self.draft.as_ref().map_or_else(String::new, |draft| draft.sku.to_string()))
    }

    /// Ends the reservation after inventory has said that it won't register the book.
    pub(crate) fn refused(mut self) {
        self.asked = false;
    }

    /// Adds the book.
    pub(crate) fn publish(mut self) -> Option<Arc<Book>> {
        let book = Arc::new(self.draft.take()?.into_book(self.id));
        self.store.ids.write().unwrap_or_else(PoisonError::into_inner).insert(self.id);
        self.store.books.insert(self.id, Shelf { book: book.clone(), reviews: Vec::new() });
        Some(book)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let Some(draft) = &self.draft else { return };
        let store = self.store;
        // Before the SKU is free, so that whoever takes it finds the id.
        if self.asked && store.unsettled.len() < MAX_UNSETTLED {
            store.unsettled.insert(draft.sku, self.id);
        }
        store.skus.remove(&draft.sku);
        store.book_quota.give_back(1);
    }
}
