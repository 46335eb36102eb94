//! Adding the books of an upload.

use chassis::call::child;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_server::InventoryService;
use tonic::{Extensions, Status, Streaming};

use super::{settles, upstream, wire};
use crate::domain::{BookDraft, Fields, MAX_BATCH, Refused};
use crate::store::{Reservation, Store};

/// Refusals that the reply names.
const MAX_NAMED: usize = 100;

/// An upload under way: it holds a chunk at most.
pub(super) struct Import<'a> {
    store: &'a Store,
    inventory: &'a dyn InventoryService,
    extensions: &'a Extensions,
    /// The index of the next book.
    next: i32,
    /// Books read since the last chunk was dealt with.
    read: usize,
    /// What has been read and is not decided, by index. Dropped with the call, it leaves nothing behind.
    chunk: Vec<(i32, Reservation<'a>)>,
    /// What was refused of this chunk, in no order.
    refused: Vec<pb::ImportRefusal>,
    reply: pb::ImportBooksResponse,
}

impl<'a> Import<'a> {
    pub(super) fn new(
        store: &'a Store,
        inventory: &'a dyn InventoryService,
        extensions: &'a Extensions,
    ) -> Self {
        Self {
            store,
            inventory,
            extensions,
            next: 0,
            read: 0,
            chunk: Vec::new(),
            refused: Vec::new(),
            reply: pb::ImportBooksResponse::default(),
        }
    }

    /// Reads the upload to its end. A broken one ends here; the chunks before stay added.
    pub(super) async fn run(
        mut self,
        mut messages: Streaming<pb::ImportBooksRequest>,
    ) -> Result<pb::ImportBooksResponse, Status> {
        while let Some(message) = messages.message().await? {
            let pb::ImportBooksRequest { book, books, validate_only } = message;
            bounded(&books)?;
            if book.is_none() && books.is_empty() {
                let mut fields = Fields::default();
                fields.refuse("book", "must be set");
                self.read(Err(fields.into()), validate_only).await?;
            }
            for book in book.into_iter().chain(books) {
                self.read(wire::book_draft(book), validate_only).await?;
            }
        }
        self.settle().await?;
        Ok(self.reply)
    }

    /// Reads the books of one request.
    pub(super) async fn batch(
        mut self,
        request: pb::BatchCreateBooksRequest,
    ) -> Result<pb::BatchCreateBooksResponse, Status> {
        bounded(&request.books)?;
        for book in request.books {
            self.read(wire::book_draft(book), request.validate_only).await?;
        }
        self.settle().await?;
        let pb::ImportBooksResponse { imported_count, refused_count, refusals } = self.reply;
        Ok(pb::BatchCreateBooksResponse { imported_count, refused_count, refusals })
    }

    async fn read(&mut self, draft: Result<BookDraft, Refused>, validate_only: bool) -> Result<(), Status> {
        let index = self.next;
        self.next = index.saturating_add(1);
        let done = match draft {
            Ok(draft) if validate_only => self.store.check(&draft).map(|()| self.count(1)),
            Ok(draft) => self.store.reserve(draft).map(|reservation| self.chunk.push((index, reservation))),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = done {
            self.refuse(index, || refused.into());
        }
        self.read += 1;
        if self.read == MAX_BATCH {
            self.read = 0;
            self.settle().await?;
        }
        Ok(())
    }

    /// Registers the chunk and adds its books. Inventory takes all or none, so that a part which is refused is halved
    /// until what is refused stands alone.
    async fn settle(&mut self) -> Result<(), Status> {
        let mut parts = vec![std::mem::take(&mut self.chunk)];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.register(&mut part).await {
                Ok(()) => self.publish(part),
                Err(status) if Reason::of(&status) == Reason::DeadlineExceeded => return Err(status),
                Err(status) if settles(&status) && part.len() > 1 => {
                    let half = part.split_off(part.len() / 2);
                    parts.extend([half, part]);
                }
                Err(status) => {
                    let settled = settles(&status);
                    for (index, reservation) in part {
                        if settled {
                            reservation.refused();
                        }
                        self.refuse(index, || status.clone());
                    }
                }
            }
        }
        self.refused.sort_by_key(|refusal| refusal.index);
        let room = MAX_NAMED.saturating_sub(self.reply.refusals.len());
        self.reply.refusals.extend(self.refused.drain(..).take(room));
        Ok(())
    }

    async fn register(&self, part: &mut [(i32, Reservation<'_>)]) -> Result<(), Status> {
        let books = part.iter_mut().map(|(_, reservation)| {
            let (id, sku) = reservation.ask();
            inventory::BookKey { book_id: id.get(), sku }
        });
        let request = inventory::RegisterBooksRequest { books: books.collect() };
        self.inventory.register_books(child(self.extensions, request)).await.map_err(upstream)?;
        Ok(())
    }

    fn publish(&mut self, part: Vec<(i32, Reservation<'_>)>) {
        let added = part.into_iter().filter_map(|(_, reservation)| reservation.publish()).count();
        self.count(added);
    }

    fn count(&mut self, books: usize) {
        self.reply.imported_count =
            self.reply.imported_count.saturating_add(books.try_into().unwrap_or(i32::MAX));
    }

    /// Counts the refusal, and notes why as long as the reply has room.
    fn refuse(&mut self, index: i32, why: impl FnOnce() -> Status) {
        self.reply.refused_count = self.reply.refused_count.saturating_add(1);
        if self.reply.refusals.len() < MAX_NAMED {
            let status = why();
            self.refused.push(pb::ImportRefusal {
                index,
                reason: Reason::of(&status).as_str().to_owned(),
                message: status.message().to_owned(),
            });
        }
    }
}

/// Refuses a request or a message with too many books.
fn bounded(books: &[pb::CreateBookRequest]) -> Result<(), Refused> {
    let mut fields = Fields::default();
    if books.len() > MAX_BATCH {
        fields.refuse("books", format_args!("must have at most {MAX_BATCH} items, had {}", books.len()));
    }
    fields.finish()
}
