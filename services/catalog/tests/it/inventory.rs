//! An inventory that does what it is told.

use std::collections::HashMap;
use std::sync::Mutex;

use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::inventory::v1::{
    BatchGetStockRequest, BatchGetStockResponse, GetStockRequest, GetStockResponse, RegisterBooksRequest,
    RegisterBooksResponse, Stock,
};
use proto::{Reason, Refusal};
use tonic::{Request, Response, Status, async_trait};

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Mode {
    Answer,
    Fail(Status),
    /// Never answers, and does nothing.
    Hang,
    /// Does what is asked, and never answers.
    DoAndHang,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<i32, String>,
    by_sku: HashMap<String, i32>,
}

impl Known {
    fn fits(&self, id: i32, sku: &String) -> bool {
        self.by_id.get(&id).is_none_or(|known| known == sku)
            && self.by_sku.get(sku).is_none_or(|known| *known == id)
    }

    fn add(&mut self, id: i32, sku: &str) {
        self.by_id.insert(id, sku.to_owned());
        self.by_sku.insert(sku.to_owned(), id);
    }
}

/// Registers books as inventory promises, and has 7 of each in stock.
pub(crate) struct FakeInventory {
    mode: Mutex<Mode>,
    known: Mutex<Known>,
    /// How many books each batched look at stock was for.
    batches: Mutex<Vec<usize>>,
    /// How many books each call wanted to register.
    registered: Mutex<Vec<usize>>,
}

impl FakeInventory {
    pub(crate) fn with_books(books: i32) -> Self {
        let mut known = Known::default();
        for id in 1..=books {
            known.add(id, &proto::seed::sku(id));
        }
        Self {
            mode: Mutex::new(Mode::Answer),
            known: Mutex::new(known),
            batches: Mutex::default(),
            registered: Mutex::default(),
        }
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    /// Makes a pair known that catalog doesn't know of.
    pub(crate) fn know(&self, id: i32, sku: &str) {
        self.known.lock().unwrap().add(id, sku);
    }

    /// Makes a book unknown.
    pub(crate) fn forget(&self, id: i32) {
        self.known.lock().unwrap().by_id.remove(&id);
    }

    /// The sizes of the batched looks at stock so far.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.batches.lock().unwrap().clone()
    }

    pub(crate) fn id_of(&self, sku: &str) -> Option<i32> {
        self.known.lock().unwrap().by_sku.get(sku).copied()
    }

    /// The sizes of the registrations so far.
    pub(crate) fn registrations(&self) -> Vec<usize> {
        self.registered.lock().unwrap().clone()
    }

    fn mode(&self) -> Mode {
        self.mode.lock().unwrap().clone()
    }

    /// What happens to a call that only looks.
    async fn mood(&self) -> Result<(), Status> {
        match self.mode() {
            Mode::Answer => Ok(()),
            Mode::Fail(status) => Err(status),
            Mode::Hang | Mode::DoAndHang => std::future::pending().await,
        }
    }

    fn register(&self, request: &RegisterBooksRequest) -> Result<(), Status> {
        let mut known = self.known.lock().unwrap();
        if let Some(book) = request.books.iter().find(|book| !known.fits(book.book_id, &book.sku)) {
            return Err(Refusal::new(Reason::SkuTaken, format!("sku {} is known", book.sku)).into());
        }
        for book in &request.books {
            known.add(book.book_id, &book.sku);
        }
        Ok(())
    }
}

#[async_trait]
impl InventoryService for FakeInventory {
    async fn register_books(
        &self,
        request: Request<RegisterBooksRequest>,
    ) -> Result<Response<RegisterBooksResponse>, Status> {
        let request = request.into_inner();
        assert!((1..=1_000).contains(&request.books.len()));
        self.registered.lock().unwrap().push(request.books.len());
        match self.mode() {
            Mode::Answer => self.register(&request)?,
            Mode::Fail(status) => return Err(status),
            Mode::Hang => std::future::pending().await,
            Mode::DoAndHang => {
                self.register(&request)?;
                std::future::pending().await
            }
        }
        Ok(Response::new(RegisterBooksResponse {}))
    }

    async fn get_stock(
        &self,
        request: Request<GetStockRequest>,
    ) -> Result<Response<GetStockResponse>, Status> {
        let book_id = request.into_inner().book_id;
        self.mood().await?;
        let sku = self.known.lock().unwrap().by_id.get(&book_id).cloned();
        let sku = sku.ok_or_else(|| Refusal::new(Reason::UnknownSku, "inventory knows no such book"))?;
        let stock = Stock { book_id, sku, in_stock: 7, reserved: 0, sold: 0 };
        Ok(Response::new(GetStockResponse { stock: Some(stock) }))
    }

    async fn batch_get_stock(
        &self,
        request: Request<BatchGetStockRequest>,
    ) -> Result<Response<BatchGetStockResponse>, Status> {
        let ids = request.into_inner().book_ids;
        self.batches.lock().unwrap().push(ids.len());
        self.mood().await?;
        let known = self.known.lock().unwrap();
        let stock = |id: &i32| {
            let sku = known.by_id.get(id)?.clone();
            Some(Stock { book_id: *id, sku, in_stock: 7, reserved: 0, sold: 0 })
        };
        Ok(Response::new(BatchGetStockResponse { stocks: ids.iter().filter_map(stock).collect() }))
    }
}
