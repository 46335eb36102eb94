//! Many clients at once on one inventory and one ordering, in one process: reservations and orders with races on shared
//! names, with deadlines that end anywhere and reservations that expire anywhere.
//!
//! What is claimed for every book: units received = in stock + reserved + sold and none is negative, whoever looks when.
//! At every quiet point, when all clients have stopped: sold are the units of the confirmed reservations and of the
//! placed orders, and what a client was told last of a name that only it uses is how things are.
//!
//! `BOOKSTORE_HISTORY_CALLS` is the number of calls, `BOOKSTORE_HISTORY_SEED` chooses them; who comes first is up to the
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use catalog::Catalog;
use chassis::Deadline;
use inventory::Inventory;
use ordering::Ordering;
use proto::Reason;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::inventory::v1::{self as stock, ReservationState};
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use tonic::Request;

use crate::dice::{Dice, setting};
use crate::harness::until;

const CLIENTS: u64 = 64;
/// Calls in a plain run.
const CALLS: u64 = 60_000;
const QUIET_POINTS: u64 = 4;
const BOOKS: i32 = 4;
/// There is one unit of each book for so many calls: few enough that calls meet the end of it.
const CALLS_PER_UNIT: u64 = 12;
const HELD: Duration = Duration::from_millis(20);

type Copies = BTreeMap<i32, i32>;

struct Shop {
    /// Units received of each book.
    units: i32,
    inventory: Arc<Inventory>,
    ordering: Ordering,
    calls: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
}

/// What one client knows.
#[derive(Default)]
struct Client {
    /// Reservations that nobody else names, and what it was told last; none where it doesn't know.
    own: BTreeMap<String, Option<ReservationState>>,
    /// All names of reservations that it used.
    names: BTreeSet<String>,
    /// Its orders, and whether they are placed; the others are cancelled.
    orders: BTreeMap<String, bool>,
    made: u64,
}

fn wanted(dice: &mut Dice) -> Copies {
    (0..dice.between(1, 3)).map(|_| (dice.between(1, BOOKS), dice.between(1, 3))).collect()
}

impl Shop {
    fn new(units: i32) -> Self {
        let inventory = inventory::Config { reservation_ttl: HELD, ..Default::default() };
        let inventory = Arc::new(Inventory::new(&inventory));
        let catalog = Arc::new(Catalog::new(&catalog::Config::default(), inventory.clone()));
        let config = ordering::Config {
            max_orders: 2_000_000,
            reconcile_interval: Duration::from_millis(20),
            ..Default::default()
        };
        let ordering = Ordering::new(&config, catalog, inventory.clone());
        Self { units, inventory, ordering, calls: 0.into(), refused: 0.into(), late: 0.into() }
    }

    fn count<T>(&self, result: Result<T, tonic::Status>) -> Result<T, Reason> {
        self.calls.fetch_add(1, Relaxed);
        result.map_err(|status| {
            let reason = Reason::of(&status);
            match reason {
                Reason::DeadlineExceeded | Reason::RequestInProgress => self.late.fetch_add(1, Relaxed),
                _ => self.refused.fetch_add(1, Relaxed),
            };
            assert_ne!(reason, Reason::Internal, "{status:?}");
            reason
        })
    }

    async fn reserve(&self, order_id: &str, copies: &Copies) -> Result<ReservationState, Reason> {
        let line =
            |(book, n): (&i32, &i32)| stock::ReservationLine { sku: proto::seed::sku(*book), quantity: *n };
        let lines = copies.iter().map(line).collect();
        let request = stock::ReserveStockRequest { order_id: order_id.to_owned(), lines };
        self.count(self.inventory.reserve_stock(Request::new(request)).await)
            .map(|reply| reply.get_ref().state())
    }

    async fn confirm(&self, order_id: &str) -> Result<ReservationState, Reason> {
        let request =
            stock::ConfirmReservationRequest { order_id: order_id.to_owned(), ..Default::default() };
        let reply = self.inventory.confirm_reservation(Request::new(request)).await;
        self.count(reply).map(|reply| reply.into_inner().reservation.unwrap().state())
    }

    async fn release(&self, order_id: &str) -> Result<ReservationState, Reason> {
        let request =
            stock::ReleaseReservationRequest { order_id: order_id.to_owned(), ..Default::default() };
        let reply = self.inventory.release_reservation(Request::new(request)).await;
        self.count(reply).map(|reply| reply.into_inner().reservation.unwrap().state())
    }

    /// Places an order, sometimes with no time for it, and asks again until it knows.
    async fn place(&self, request_id: &str, copies: &Copies, dice: &mut Dice) -> Result<String, Reason> {
        let line =
            |(book, n): (&i32, &i32)| pb::PlaceOrderLine { sku: proto::seed::sku(*book), quantity: *n };
        let lines = copies.iter().map(line).collect();
        let message =
            pb::PlaceOrderRequest { request_id: request_id.to_owned(), lines, ..Default::default() };
        loop {
            let mut request = Request::new(message.clone());
            if dice.percent(20) {
                let time = Duration::from_micros(dice.below(60));
                request.extensions_mut().insert(Deadline::after(time));
            }
            match self.count(self.ordering.place_order(request).await) {
                Ok(reply) => return Ok(reply.into_inner().order.unwrap().order_id),
                Err(Reason::DeadlineExceeded | Reason::RequestInProgress) => tokio::task::yield_now().await,
                Err(reason) => return Err(reason),
            }
        }
    }

    async fn cancel(&self, order_id: &str) {
        loop {
            let request = pb::CancelOrderRequest { order_id: order_id.to_owned() };
            match self.count(self.ordering.cancel_order(Request::new(request)).await) {
                Ok(reply) if reply.get_ref().order.as_ref().unwrap().state() == pb::OrderState::Cancelled => {
                    return;
                }
                Ok(_) | Err(Reason::DeadlineExceeded) => tokio::task::yield_now().await,
                Err(reason) => panic!("cancel {order_id}: {reason}"),
            }
        }
    }

    async fn stock(&self, book_id: i32) -> stock::Stock {
        let request = stock::GetStockRequest { book_id, ..Default::default() };
        self.inventory.get_stock(Request::new(request)).await.unwrap().into_inner().stock.unwrap()
    }

    /// Whether the units of a book add up to what was received. Right at every moment.
    async fn adds_up(&self, book: i32) -> stock::Stock {
        let now = self.stock(book).await;
        assert!(now.in_stock >= 0 && now.reserved >= 0 && now.sold >= 0, "{now:?}");
        assert_eq!(
            i64::from(now.in_stock) + i64::from(now.reserved) + now.sold,
            i64::from(self.units),
            "{now:?}"
        );
        now
    }
}

impl Client {
    /// So many calls, chosen by the dice.
    async fn trade(&mut self, shop: &Shop, number: u64, mut dice: Dice, calls: u64) {
        for _ in 0..calls {
            self.made += 1;
            let shared = format!("shared-{}", dice.below(200));
            let own: Vec<&String> = self.own.keys().rev().take(8).collect();
            let name = match own.is_empty() || dice.percent(25) {
                true => shared.clone(),
                false => (*dice.one(&own)).clone(),
            };
            match dice.below(10) {
                0..=3 => {
                    let new = format!("own-{number}-{:08}", self.made);
                    let name = if dice.percent(70) { new } else { shared };
                    let told = shop.reserve(&name, &wanted(&mut dice)).await;
                    self.told(name, told);
                }
                4 | 5 => {
                    let told = shop.confirm(&name).await;
                    self.told(name, told);
                }
                6 | 7 => {
                    let told = shop.release(&name).await;
                    self.told(name, told);
                }
                8 => {
                    let request_id = format!("order-{number}-{:08}", self.made);
                    if let Ok(order_id) = shop.place(&request_id, &wanted(&mut dice), &mut dice).await {
                        self.orders.insert(order_id, true);
                    }
                }
                _ => {
                    let placed: Vec<&String> =
                        self.orders.iter().filter(|o| *o.1).map(|o| o.0).take(8).collect();
                    if !placed.is_empty() {
                        let order_id = (*dice.one(&placed)).clone();
                        shop.cancel(&order_id).await;
                        self.orders.insert(order_id, false);
                    }
                }
            }
        }
    }

    fn told(&mut self, name: String, told: Result<ReservationState, Reason>) {
        self.names.insert(name.clone());
        if name.starts_with("own-") {
            self.own.insert(name, told.ok());
        }
    }

    /// Compares what this client was told with how things are, and adds up what was sold.
    async fn check(&mut self, shop: &Shop, counted: &mut BTreeSet<String>, sold: &mut BTreeMap<i32, i64>) {
        for name in &self.names {
            let request = stock::GetReservationRequest { order_id: name.clone(), ..Default::default() };
            let found = shop.inventory.get_reservation(Request::new(request)).await;
            let found = found.ok().map(|reply| reply.into_inner().reservation.unwrap());
            let state = found.as_ref().map(|reservation| reservation.state());
            // What was held may have expired and be forgotten by now, what was sold may not.
            if let Some(Some(told)) = self.own.get(name) {
                let sold = |state: Option<ReservationState>| state == Some(ReservationState::Confirmed);
                assert_eq!(sold(Some(*told)), sold(state), "{name}: told {told:?}, is {state:?}");
            }
            if state == Some(ReservationState::Confirmed) && counted.insert(name.clone()) {
                for line in found.unwrap().lines {
                    let book = (1..=BOOKS).find(|book| proto::seed::sku(*book) == line.sku).unwrap();
                    *sold.entry(book).or_default() += i64::from(line.quantity);
                }
            }
        }
        for (order_id, placed) in &self.orders {
            let request =
                pb::GetOrderRequest { order_id: order_id.clone(), view: pb::OrderView::Full.into() };
            let order =
                shop.ordering.get_order(Request::new(request)).await.unwrap().into_inner().order.unwrap();
            let expected = if *placed { pb::OrderState::Placed } else { pb::OrderState::Cancelled };
            assert_eq!(order.state(), expected, "{order_id}");
            assert!(counted.insert(order_id.clone()), "{order_id} was given to two");
            for line in order.lines.iter().filter(|_| *placed) {
                *sold.entry(line.book_id).or_default() += i64::from(line.quantity);
            }
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

#[test]
fn stock_adds_up_at_every_quiet_point() {
    let seed = setting("BOOKSTORE_HISTORY_SEED").unwrap_or(1);
    let calls = setting("BOOKSTORE_HISTORY_CALLS").unwrap_or(CALLS);
    let mut dice = Dice::new(seed);
    let shop = Shop::new(i32::try_from(calls / CALLS_PER_UNIT).unwrap().clamp(1, proto::seed::STOCK - 1));
    block_on(async {
        for book in 1..=BOOKS {
            let delta = shop.units - proto::seed::STOCK;
            let request = stock::AdjustStockRequest { sku: proto::seed::sku(book), delta };
            shop.inventory.adjust_stock(Request::new(request)).await.unwrap();
        }
    });
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::default()).collect();
    let over = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                tokio::spawn(shop.inventory.clone().expire());
                tokio::spawn(shop.ordering.clone().reconcile());
                let mut looking = tokio::time::interval(Duration::from_millis(1));
                while !over.load(Relaxed) {
                    for book in 1..=BOOKS {
                        shop.adds_up(book).await;
                        looks.fetch_add(1, Relaxed);
                    }
                    looking.tick().await;
                }
            });
        });
        for _ in 0..QUIET_POINTS {
            let traded = std::thread::scope(|scope| {
                let traders = clients.iter_mut().zip(0..).map(|(client, number)| {
                    let (shop, dice) = (&shop, Dice::new(dice.below(u64::MAX)));
                    let calls = calls / CLIENTS / QUIET_POINTS;
                    scope.spawn(move || block_on(client.trade(shop, number, dice, calls)))
                });
                let traders: Vec<_> = traders.collect();
                traders.into_iter().map(|trader| trader.join()).filter(Result::is_err).count() == 0
            });
            over.fetch_or(!traded, Relaxed);
            assert!(traded, "a client failed, seed {seed}");
            let balanced = catch_unwind(AssertUnwindSafe(|| block_on(quiet(&shop, &mut clients))));
            over.fetch_or(balanced.is_err(), Relaxed);
            assert!(balanced.is_ok(), "the books don't balance, seed {seed}");
        }
        over.store(true, Relaxed);
    });
    println!(
        "history, seed {seed}: {CLIENTS} clients, {} calls, {} refused, {} out of time or in progress, {QUIET_POINTS} \
         quiet points, {} looks in between; books balanced",
        shop.calls.load(Relaxed),
        shop.refused.load(Relaxed),
        shop.late.load(Relaxed),
        looks.load(Relaxed)
    );
}

/// What holds when all clients have stopped.
async fn quiet(shop: &Shop, clients: &mut [Client]) {
    for book in 1..=BOOKS {
        until("nothing is reserved", async || (shop.adds_up(book).await.reserved == 0).then_some(())).await;
    }
    let (mut counted, mut sold) = (BTreeSet::new(), BTreeMap::new());
    for client in clients {
        client.check(shop, &mut counted, &mut sold).await;
    }
    for book in 1..=BOOKS {
        assert_eq!(
            shop.adds_up(book).await.sold,
            sold.get(&book).copied().unwrap_or_default(),
            "book {book}"
        );
    }
}
