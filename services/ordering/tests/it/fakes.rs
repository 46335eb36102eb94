//! A catalog and an inventory that work, note what they are asked, and fail where a test wants it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use chassis::Deadline;
use proto::catalog::v1 as catalog;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::common::v1::Money;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::ReservationState as State;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::{Reason, Refusal, seed};
use tonic::{Request, Response, Status};

/// The calls that ordering makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Step {
    Price,
    Reserve,
    Confirm,
    Release,
    List,
}

/// What one call does instead of working.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Does nothing and answers this.
    Refuse(Status),
    /// Does its work and answers this.
    LoseReply(Status),
    /// Does nothing and never answers.
    Hang,
    /// Answers nothing, and does its work after this time even when its caller has given up.
    Late(Duration),
}

/// A call as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) step: Step,
    /// The reservation's order id; empty for prices.
    pub(crate) name: String,
    pub(crate) deadline: Option<Deadline>,
}

/// The faults to come and the calls that were, of both services.
#[derive(Debug, Default)]
pub(crate) struct Script {
    faults: Mutex<HashMap<Step, VecDeque<Fault>>>,
    calls: Mutex<Vec<Call>>,
    /// How many calls are answered before the process that makes them is dead, and whether the next one still does its
    /// work. Calls of the dead do nothing.
    dies: Mutex<Option<(usize, bool)>>,
    /// Whether every call waits once before and once after its work.
    pub(crate) slow: AtomicBool,
}

impl Script {
    /// The next call of this step, not counting those that have a fault already, fails like this.
    pub(crate) fn fail(&self, step: Step, fault: Fault) {
        self.faults.lock().unwrap().entry(step).or_default().push_back(fault);
    }

    /// The process that makes the calls dies after so many more, in the middle of the next one: before or after its work.
    pub(crate) fn die_after(&self, calls: usize, worked: bool) {
        *self.dies.lock().unwrap() = Some((calls, worked));
    }

    /// What becomes of the next call for the death of its caller.
    fn death(&self) -> Option<Fault> {
        let mut dies = self.dies.lock().unwrap();
        let (calls, worked) = dies.as_mut()?;
        if let Some(left) = calls.checked_sub(1) {
            *calls = left;
            return None;
        }
        Some(if std::mem::take(worked) { Fault::Late(Duration::ZERO) } else { Fault::Hang })
    }

    /// Drops the faults that did not come to pass.
    pub(crate) fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// The calls since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// Only what was called, and under which name.
    pub(crate) fn steps(&self) -> Vec<(Step, String)> {
        self.calls().into_iter().map(|call| (call.step, call.name)).collect()
    }

    async fn run<M: Send + 'static, R: Send + 'static>(
        &self,
        step: Step,
        name: &str,
        request: Request<M>,
        work: impl FnOnce(M) -> Result<R, Status> + Send + 'static,
    ) -> Result<Response<R>, Status> {
        let deadline = request.extensions().get::<Deadline>().copied();
        // When the reconciler looks is its own affair.
        if step != Step::List {
            self.calls.lock().unwrap().push(Call { step, name: name.to_owned(), deadline });
        }
        let fault = self.faults.lock().unwrap().get_mut(&step).and_then(VecDeque::pop_front);
        let fault = self.death().or(fault);
        self.wait().await;
        let reply = match fault {
            None => work(request.into_inner()),
            Some(Fault::Refuse(status)) => Err(status),
            Some(Fault::LoseReply(status)) => {
                drop(work(request.into_inner()));
                Err(status)
            }
            Some(Fault::Hang) => pending().await,
            Some(Fault::Late(time)) => {
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    drop(work(request.into_inner()));
                });
                pending().await
            }
        };
        self.wait().await;
        reply.map(Response::new)
    }

    async fn wait(&self) {
        let mut waited = !self.slow.load(Ordering::Relaxed);
        poll_fn(|context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Knows the seeded books; book n costs n euros.
#[derive(Debug)]
pub(crate) struct FakeCatalog {
    pub(crate) script: Arc<Script>,
    pub(crate) books: Arc<Mutex<BTreeMap<String, catalog::Book>>>,
}

impl FakeCatalog {
    pub(crate) fn new(script: &Arc<Script>) -> Self {
        let books = (1..=seed::BOOKS).map(|id| {
            let price = Some(Money { amount_minor: i64::from(id) * 100, currency: "EUR".to_owned() });
            let (sku, title) = (seed::sku(id), format!("Title {id}"));
            (sku.clone(), catalog::Book { id, sku, title, author_id: 1, price, version: 1 })
        });
        Self { script: Arc::clone(script), books: Arc::new(Mutex::new(books.collect())) }
    }

    /// Changes a book from now on.
    pub(crate) fn change(&self, book_id: i32, change: impl FnOnce(&mut catalog::Book)) {
        change(self.books.lock().unwrap().get_mut(&seed::sku(book_id)).unwrap());
    }
}

#[tonic::async_trait]
impl CatalogService for FakeCatalog {
    async fn batch_get_books(
        &self,
        request: Request<catalog::BatchGetBooksRequest>,
    ) -> Result<Response<catalog::BatchGetBooksResponse>, Status> {
        let books = Arc::clone(&self.books);
        let work = move |request: catalog::BatchGetBooksRequest| {
            let books = books.lock().unwrap();
            let books = request.skus.iter().filter_map(|sku| books.get(sku).cloned()).collect();
            Ok(catalog::BatchGetBooksResponse { books, ..Default::default() })
        };
        self.script.run(Step::Price, "", request, work).await
    }
}

/// Holds 1,000,000 of each seeded book unless it is told another number.
#[derive(Debug)]
pub(crate) struct FakeInventory {
    pub(crate) script: Arc<Script>,
    shelves: Arc<Mutex<Shelves>>,
}

#[derive(Debug, Default)]
struct Shelves {
    in_stock: BTreeMap<String, i32>,
    reservations: HashMap<String, Reserved>,
    starts: u32,
}

#[derive(Debug, Clone)]
struct Reserved {
    state: State,
    lines: BTreeMap<String, i32>,
}

impl FakeInventory {
    pub(crate) fn new(script: &Arc<Script>) -> Self {
        Self { script: Arc::clone(script), shelves: Arc::new(Mutex::new(Shelves::new(1))) }
    }

    /// The same inventory, called by somebody else.
    pub(crate) fn called_by(&self, script: &Arc<Script>) -> Self {
        Self { script: Arc::clone(script), shelves: Arc::clone(&self.shelves) }
    }

    /// Ends and starts anew: all is as at the first start.
    pub(crate) fn restart(&self) {
        let mut shelves = self.shelves.lock().unwrap();
        *shelves = Shelves::new(shelves.starts + 1);
    }

    /// Lets the time of all that is held run out.
    pub(crate) fn expire_all(&self) {
        for (name, state) in self.states() {
            if state == State::Held {
                self.expire(&name);
            }
        }
    }

    /// Sets the units of a book that can be reserved.
    pub(crate) fn stock(&self, book_id: i32, units: i32) {
        self.shelves.lock().unwrap().in_stock.insert(seed::sku(book_id), units);
    }

    /// The units of a book that can be reserved.
    pub(crate) fn in_stock(&self, book_id: i32) -> i32 {
        self.shelves.lock().unwrap().in_stock[&seed::sku(book_id)]
    }

    /// Lets the reservation's time run out.
    pub(crate) fn expire(&self, name: &str) {
        self.shelves.lock().unwrap().end(name, State::Expired).unwrap();
    }

    /// Loses all memory of reservations.
    pub(crate) fn forget(&self) {
        self.shelves.lock().unwrap().reservations.clear();
    }

    /// The state of every reservation, by name.
    pub(crate) fn states(&self) -> BTreeMap<String, State> {
        let shelves = self.shelves.lock().unwrap();
        shelves.reservations.iter().map(|(name, reserved)| (name.clone(), reserved.state)).collect()
    }
}

impl Shelves {
    fn new(starts: u32) -> Self {
        let in_stock = (1..=seed::BOOKS).map(|id| (seed::sku(id), seed::STOCK)).collect();
        Self { in_stock, reservations: HashMap::new(), starts }
    }

    /// A page that begins at the reservation after the one that the token names.
    fn list(&self, request: &inventory::ListReservationsRequest) -> inventory::ListReservationsResponse {
        let mut names: Vec<_> = self.reservations.keys().collect();
        names.sort_unstable();
        let wanted = |name: &&&String| {
            let state = self.reservations[**name].state.into();
            request.states.contains(&state) && name.starts_with(&request.order_id_prefix)
        };
        let after = names.into_iter().filter(|name| **name > request.page_token);
        let mut page: Vec<_> = after.take(3).collect();
        let next_page_token = if page.len() == 3 { page[2].clone() } else { String::new() };
        page.retain(|name| wanted(&name));
        let reservation =
            |name: &String| inventory::Reservation { order_id: name.clone(), ..Default::default() };
        inventory::ListReservationsResponse {
            reservations: page.into_iter().map(reservation).collect(),
            next_page_token,
            instance_id: self.starts.to_string(),
        }
    }

    fn reserve(&mut self, request: inventory::ReserveStockRequest) -> Result<State, Status> {
        let mut lines = BTreeMap::new();
        for line in request.lines {
            // The bound is inventory's own: ordering must keep to it.
            assert!((1..=1_000_000).contains(&line.quantity), "{line:?}");
            *lines.entry(line.sku).or_default() += line.quantity;
        }
        if let Some(known) = self.reservations.get(&request.order_id) {
            if known.lines != lines {
                return Err(Refusal::new(Reason::OrderIdConflict, "other lines").into());
            }
            return match known.state {
                State::Expired => Err(Refusal::new(Reason::ReservationExpired, "too late").into()),
                State::Released => Err(Refusal::new(Reason::ReservationReleased, "gone").into()),
                state => Ok(state),
            };
        }
        for (sku, wanted) in &lines {
            let Some(&in_stock) = self.in_stock.get(sku) else {
                return Err(Refusal::new(Reason::UnknownSku, "unknown").with("sku", sku).into());
            };
            if in_stock < *wanted {
                return Err(proto::out_of_stock(sku, i64::from(*wanted), i64::from(in_stock)).into());
            }
        }
        for (sku, wanted) in &lines {
            *self.in_stock.get_mut(sku).unwrap() -= wanted;
        }
        self.reservations.insert(request.order_id, Reserved { state: State::Held, lines });
        Ok(State::Held)
    }

    fn confirm(&mut self, name: &str) -> Result<(), Status> {
        let reserved = self.reservations.get_mut(name).ok_or_else(missing)?;
        match reserved.state {
            State::Expired => Err(Refusal::new(Reason::ReservationExpired, "too late").into()),
            State::Released => Err(Refusal::new(Reason::ReservationReleased, "gone").into()),
            _ => {
                reserved.state = State::Confirmed;
                Ok(())
            }
        }
    }

    fn end(&mut self, name: &str, state: State) -> Result<(), Status> {
        let reserved = self.reservations.get_mut(name).ok_or_else(missing)?;
        if matches!(reserved.state, State::Held | State::Confirmed) {
            reserved.state = state;
            for (sku, units) in &reserved.lines {
                *self.in_stock.get_mut(sku).unwrap() += units;
            }
        }
        Ok(())
    }
}

fn missing() -> Status {
    Refusal::new(Reason::ReservationNotFound, "no such reservation").into()
}

#[tonic::async_trait]
impl InventoryService for FakeInventory {
    async fn list_reservations(
        &self,
        request: Request<inventory::ListReservationsRequest>,
    ) -> Result<Response<inventory::ListReservationsResponse>, Status> {
        let shelves = Arc::clone(&self.shelves);
        let work = move |request| Ok(shelves.lock().unwrap().list(&request));
        self.script.run(Step::List, "", request, work).await
    }

    async fn reserve_stock(
        &self,
        request: Request<inventory::ReserveStockRequest>,
    ) -> Result<Response<inventory::ReserveStockResponse>, Status> {
        let name = request.get_ref().order_id.clone();
        let shelves = Arc::clone(&self.shelves);
        let work = move |request| {
            let state = shelves.lock().unwrap().reserve(request)?.into();
            Ok(inventory::ReserveStockResponse {
                reservation_id: "res_1".to_owned(),
                state,
                expires_at: None,
            })
        };
        self.script.run(Step::Reserve, &name, request, work).await
    }

    async fn confirm_reservation(
        &self,
        request: Request<inventory::ConfirmReservationRequest>,
    ) -> Result<Response<inventory::ConfirmReservationResponse>, Status> {
        let name = request.get_ref().order_id.clone();
        let (shelves, own) = (Arc::clone(&self.shelves), name.clone());
        let work = move |_| {
            shelves.lock().unwrap().confirm(&own)?;
            Ok(inventory::ConfirmReservationResponse::default())
        };
        self.script.run(Step::Confirm, &name, request, work).await
    }

    async fn release_reservation(
        &self,
        request: Request<inventory::ReleaseReservationRequest>,
    ) -> Result<Response<inventory::ReleaseReservationResponse>, Status> {
        let name = request.get_ref().order_id.clone();
        let (shelves, own) = (Arc::clone(&self.shelves), name.clone());
        let work = move |_| {
            shelves.lock().unwrap().end(&own, State::Released)?;
            Ok(inventory::ReleaseReservationResponse::default())
        };
        self.script.run(Step::Release, &name, request, work).await
    }
}
