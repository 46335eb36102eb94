//! Books, authors and reviews in memory.
//!
//! Every function copies out and returns: no guard of a map ever leaves this file.

mod ids;
mod reservation;
mod seeded;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use chassis::Quota;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::domain::{
    Author, AuthorId, Book, BookChange, BookId, Refused, Review, ReviewDraft, ReviewId, Sku,
};
use ids::Ids;
use seeded::Seeded;

pub(crate) use reservation::Reservation;

/// What a store starts with.
pub(crate) struct Contents<R> {
    pub(crate) authors: Vec<Author>,
    /// How many books, numbered from 1.
    pub(crate) books: i32,
    /// The rule that makes one.
    pub(crate) book: fn(BookId) -> Option<Book>,
    /// Ids must go up, and the books be among the first [`proto::seed::REVIEWED_BOOKS`].
    pub(crate) reviews: R,
}

/// The books, authors and reviews.
pub(crate) struct Store {
    /// What was there from the start. Where `books` has one as well, that is how it is now.
    seeded: Seeded,
    /// All books but the seeded ones that nobody has changed.
    books: DashMap<BookId, Shelf>,
    /// The ids of books that were added, for reading in order. Deletions leave holes of any size in the ids, and a tree
    /// steps over them. An id is added before its book and removed after it, so that no book is without.
    ids: RwLock<BTreeSet<BookId>>,
    /// The SKUs of books that were added, and of those about to be. With those of the seeded books, which follow from
    /// their ids, this is what makes a SKU unique.
    skus: DashMap<Sku, BookId>,
    /// Books that inventory was asked to register and perhaps did, but that were not added. Who tries again gets the
    /// same id: with another one inventory would refuse the SKU for ever.
    unsettled: DashMap<Sku, BookId>,
    authors: BTreeMap<AuthorId, Arc<Author>>,
    book_ids: Ids,
    review_ids: Ids,
    /// Books, and those about to be added.
    book_quota: Quota,
    review_quota: Quota,
}

/// A book and what was said about it, in order of id. Together, so that they go together.
struct Shelf {
    book: Arc<Book>,
    reviews: Vec<Arc<Review>>,
}

impl Shelf {
    /// Whether a seeded book is not as it was at first.
    fn is_changed(&self) -> bool {
        self.book.version > 1 || !self.reviews.is_empty()
    }

    /// Up to `limit` reviews, latest first, of those before `before`.
    fn latest(&self, before: Option<ReviewId>, limit: usize) -> Vec<Arc<Review>> {
        let end = before.map_or(self.reviews.len(), |id| self.reviews.partition_point(|r| r.id < id));
        self.reviews.iter().take(end).rev().take(limit).cloned().collect()
    }
}

impl Store {
    /// A store with these contents, which may be more than the most it takes afterwards.
    pub(crate) fn new(
        contents: Contents<impl Iterator<Item = Review>>,
        max_books: usize,
        max_reviews: usize,
    ) -> Self {
        let seeded = Seeded::new(contents.books, contents.book);
        let books = DashMap::new();
        for book in seeded.kept() {
            books.insert(book.id, Shelf { book: Arc::new(book), reviews: Vec::new() });
        }
        let (mut reviews, mut last_review) = (0, 0);
        for review in contents.reviews {
            last_review = review.id.get();
            if let Some(mut shelf) = books.get_mut(&review.book_id) {
                shelf.reviews.push(Arc::new(review));
                reviews += 1;
            }
        }
        let (book_quota, review_quota) = (Quota::new(max_books), Quota::new(max_reviews));
        book_quota.take_anyway(seeded.count().try_into().unwrap_or_default());
        review_quota.take_anyway(reviews);
        Self {
            books,
            skus: DashMap::new(),
            unsettled: DashMap::new(),
            authors: contents.authors.into_iter().map(|author| (author.id, Arc::new(author))).collect(),
            book_ids: Ids::after(seeded.count()),
            review_ids: Ids::after(last_review),
            book_quota,
            review_quota,
            ids: RwLock::default(),
            seeded,
        }
    }

    /// Looks at a book.
    fn read<T>(&self, id: BookId, look: impl FnOnce(&Shelf) -> T) -> Result<T, Refused> {
        if let Some(shelf) = self.books.get(&id) {
            return Ok(look(&shelf));
        }
        // Nobody had changed it by then, or it is deleted: then it was noted as that before it went from the map.
        self.seeded.shelf(id).map(|shelf| look(&shelf)).ok_or(Refused::BookNotFound(id))
    }

    /// Changes a book, or refuses and leaves it.
    fn change<T>(
        &self,
        id: BookId,
        change: impl FnOnce(&mut Shelf) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        match self.books.entry(id) {
            Entry::Occupied(mut entry) => change(entry.get_mut()),
            Entry::Vacant(entry) => {
                let mut shelf = self.seeded.shelf(id).ok_or(Refused::BookNotFound(id))?;
                let done = change(&mut shelf)?;
                if shelf.is_changed() {
                    entry.insert(shelf);
                }
                Ok(done)
            }
        }
    }

    /// One book.
    pub(crate) fn book(&self, id: BookId) -> Result<Arc<Book>, Refused> {
        self.read(id, |shelf| shelf.book.clone())
    }

    /// One book with its latest reviews, latest first.
    pub(crate) fn book_with_reviews(
        &self,
        id: BookId,
        count: usize,
    ) -> Result<(Arc<Book>, Vec<Arc<Review>>), Refused> {
        self.read(id, |shelf| (shelf.book.clone(), shelf.latest(None, count)))
    }

    /// The id of the book with this SKU. The book may not be there yet, or not any more.
    pub(crate) fn id_of(&self, sku: Sku) -> Option<BookId> {
        self.seeded.owner(sku).or_else(|| self.skus.get(&sku).map(|id| *id))
    }

    /// Up to `limit` books in order of id, from the one after `after`. Fewer only when there are no more.
    pub(crate) fn books_after(&self, after: Option<BookId>, limit: usize) -> Vec<Arc<Book>> {
        self.after(after, limit, |id| self.book(id).ok())
    }

    /// The same, each with this many of its latest reviews.
    pub(crate) fn books_with_reviews_after(
        &self,
        after: Option<BookId>,
        limit: usize,
        count: usize,
    ) -> Vec<(Arc<Book>, Vec<Arc<Review>>)> {
        self.after(after, limit, |id| self.book_with_reviews(id, count).ok())
    }

    fn after<T>(&self, after: Option<BookId>, limit: usize, get: impl Fn(BookId) -> Option<T>) -> Vec<T> {
        let mut books = Vec::with_capacity(limit);
        let mut after = after;
        while books.len() < limit {
            let ids = self.ids_after(after, limit - books.len());
            let Some(&last) = ids.last() else { break };
            after = Some(last);
            // A book deleted since its id was read is no book.
            books.extend(ids.into_iter().filter_map(&get));
        }
        books
    }

    fn ids_after(&self, after: Option<BookId>, limit: usize) -> Vec<BookId> {
        let mut found = Vec::with_capacity(limit);
        found.extend(self.seeded.ids_after(after).take(limit));
        if found.len() < limit {
            let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            found.extend(ids.range((from, Bound::Unbounded)).take(limit - found.len()));
        }
        found
    }

    /// Changes a book.
    pub(crate) fn update(
        &self,
        id: BookId,
        change: BookChange,
        expected_version: Option<i32>,
    ) -> Result<Arc<Book>, Refused> {
        self.change(id, |shelf| {
            if let Some(author_id) = change.author_id {
                self.author(author_id)?;
            }
            shelf.book.expect_version(expected_version)?;
            shelf.book = Arc::new(shelf.book.changed(change));
            Ok(shelf.book.clone())
        })
    }

    /// Removes a book and its reviews.
    pub(crate) fn delete(&self, id: BookId, expected_version: Option<i32>) -> Result<(), Refused> {
        let shelf = match self.books.entry(id) {
            Entry::Occupied(entry) => {
                entry.get().book.expect_version(expected_version)?;
                // While the entry is held nobody looks at the book, and then nobody takes it for unchanged.
                self.seeded.remove(id);
                entry.remove()
            }
            Entry::Vacant(_entry) => {
                let shelf = self.seeded.shelf(id).ok_or(Refused::BookNotFound(id))?;
                shelf.book.expect_version(expected_version)?;
                self.seeded.remove(id);
                shelf
            }
        };
        self.ids.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.skus.remove_if(&shelf.book.sku, |_, owner| *owner == id);
        self.book_quota.give_back(1);
        self.review_quota.give_back(shelf.reviews.len());
        Ok(())
    }

    /// One author.
    pub(crate) fn author(&self, id: AuthorId) -> Result<&Arc<Author>, Refused> {
        self.authors.get(&id).ok_or(Refused::AuthorNotFound(id))
    }

    /// All authors in order of id.
    pub(crate) fn authors(&self) -> impl Iterator<Item = &Arc<Author>> {
        self.authors.values()
    }

    /// Up to `limit` authors in order of id, from the one after `after`.
    pub(crate) fn authors_after(&self, after: Option<AuthorId>, limit: usize) -> Vec<Arc<Author>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let authors = self.authors.range((from, Bound::Unbounded));
        authors.take(limit).map(|(_, author)| author.clone()).collect()
    }

    /// Up to `limit` reviews of a book, latest first, of those before `before`.
    pub(crate) fn reviews_before(
        &self,
        id: BookId,
        before: Option<ReviewId>,
        limit: usize,
    ) -> Result<Vec<Arc<Review>>, Refused> {
        self.read(id, |shelf| shelf.latest(before, limit))
    }

    /// Adds a review.
    pub(crate) fn add_review(
        &self,
        book_id: BookId,
        draft: ReviewDraft,
        created_at: SystemTime,
    ) -> Result<Arc<Review>, Refused> {
        // While the shelf is held nobody else adds to it, so that the reviews of a book are in order of id.
        self.change(book_id, |shelf| {
            if !self.review_quota.take(1) {
                return Err(Refused::ReviewsFull);
            }
            let Some(id) = self.review_ids.next().and_then(ReviewId::new) else {
                self.review_quota.give_back(1);
                return Err(Refused::ReviewsFull);
            };
            let review = Arc::new(Review { id, book_id, draft, created_at });
            shelf.reviews.push(review.clone());
            Ok(review)
        })
    }
}
