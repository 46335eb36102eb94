//! Adding the books of an upload.

use chassis::call::child;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_server::InventoryService;
use tonic::{Extensions, Status, Streaming};

use super::{settles, upstream, wire};
use crate::domain::{Fields, MAX_BATCH, Refused};
use crate::store::{Reservation, Store};

/// Refusals that the reply names.
const MAX_NAMED: usize = 100;

/// An upload under way: it holds a chunk at most.
pub(super) struct Import<'a> {
    store: &'a Store,
    inventory: &'a dyn InventoryService,
    extensions: &'a Extensions,
    /// The index of the next message.
    next: i32,
    /// What has been read and is not decided, by index. Dropped with the call, it leaves nothing behind.
    chunk: Vec<(i32, Reservation<'a>)>,
    /// What was refused of the messages of this chunk, in no order.
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
        let mut read = 0;
        while let Some(message) = messages.message().await? {
            self.read(message);
            read += 1;
            if read == MAX_BATCH {
                read = 0;
                self.settle().await?;
            }
        }
        self.settle().await?;
        Ok(self.reply)
    }

    fn read(&mut self, message: pb::ImportBooksRequest) {
        let index = self.next;
        self.next = index.saturating_add(1);
        let draft = match message.book {
            Some(book) => wire::book_draft(book),
            None => {
                let mut fields = Fields::default();
                fields.refuse("book", "must be set");
                Err(Refused::from(fields))
            }
        };
        match draft.and_then(|draft| self.store.reserve(draft)) {
            Ok(reservation) => self.chunk.push((index, reservation)),
            Err(refused) => self.refuse(index, || refused.into()),
        }
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
        self.reply.imported_count =
            self.reply.imported_count.saturating_add(added.try_into().unwrap_or(i32::MAX));
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
