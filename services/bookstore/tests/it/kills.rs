//! Services in processes of their own that are killed (`kill -9`) one after the other while shoppers shop.
//!
//! Everything is in memory, so a killed service loses what it had. What is claimed is what [`crate::audit`] checks once
//! all run again: orders that shoppers were told of are there once unless ordering died after that; inventory, also one
//! that was started anew, has sold exactly what the placed orders have; nothing stays reserved.
//!
//! `BOOKSTORE_KILLS_SEED` chooses what shoppers buy; when a process dies is up to the machine.

use std::net::SocketAddr;
use std::rc::Rc;

use chassis::Upstream;
use proto::client;
use rustix::process::Signal;
use tokio::task::LocalSet;

use crate::audit::{Known, audit};
use crate::dice::{Dice, setting};
use crate::harness::{Process, until};
use crate::shopper::{Outcome, Shared, shop};

const SHOPPERS: u64 = 64;
const ORDERS: u32 = 8;
/// Milliseconds between a shopper's orders, at most.
const PACE: u64 = 400;

/// A service and how it is started again where it was.
struct Service {
    name: &'static str,
    process: Process,
    at: SocketAddr,
    settings: Vec<String>,
}

impl Service {
    async fn start(name: &'static str, settings: Vec<String>) -> Self {
        let mut process = run(name, 0, &settings);
        let at = process.address(name).await;
        Self { name, process, at, settings }
    }

    fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    fn kill(&self) {
        self.process.signal(Signal::KILL);
    }

    async fn start_again(&mut self) {
        until("it is gone", async || (!self.process.is_running()).then_some(())).await;
        self.process = run(self.name, self.at.port(), &self.settings);
        assert_eq!(self.process.address(self.name).await, self.at);
    }
}

fn run(name: &str, port: u16, settings: &[String]) -> Process {
    let port = format!("--port={port}");
    let mut args = vec![name, &port, "--metrics-port=0", "--threads=1"];
    args.extend(settings.iter().map(String::as_str));
    Process::start(&args)
}

#[tokio::test]
async fn orders_and_stock_survive_services_that_are_killed() {
    println!("{}", LocalSet::new().run_until(kill_in_turn()).await);
}

/// What was tried.
async fn kill_in_turn() -> String {
    let seed = setting("BOOKSTORE_KILLS_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed);
    let inventory = Service::start("inventory", vec!["--reservation-ttl=2".to_owned()]).await;
    let inventory_url = inventory.url();
    let catalog = Service::start("catalog", vec![format!("--inventory-url={inventory_url}")]).await;
    let settings = vec![
        format!("--catalog-url={}", catalog.url()),
        format!("--inventory-url={inventory_url}"),
        "--reconcile-interval=0.2".to_owned(),
    ];
    let ordering = Service::start("ordering", settings).await;
    let ordering_client = client::Ordering::new(Upstream::new(&ordering.url()).unwrap());
    let inventory_client = client::Inventory::new(Upstream::new(&inventory_url).unwrap());

    let history = Shared::default();
    let shoppers: Vec<_> = (0..SHOPPERS)
        .map(|n| {
            let (dice, history) = (Dice::new(dice.below(u64::MAX)), Rc::clone(&history));
            let shopping = shop(format!("shopper-{n}"), ordering_client.clone(), PACE, dice, ORDERS, history);
            tokio::task::spawn_local(shopping)
        })
        .collect();

    // Each dies in the middle of the shopping, and stays away until some have noticed.
    let mut known = Known { units: proto::seed::STOCK, ..Known::default() };
    let mut services = [inventory, catalog, ordering];
    let all = SHOPPERS as usize * ORDERS as usize;
    for (n, which) in [0, 1, 2, 0, 2].into_iter().enumerate() {
        let told = all * (n + 1) / 8;
        until("shoppers shop", async || (history.borrow().told.len() >= told).then_some(())).await;
        let service = &mut services[which];
        service.kill();
        history.borrow_mut().note(format!("killed: {}", service.name));
        known.crashes += 1;
        let failed = history.borrow().failed;
        until("shoppers notice", async || (history.borrow().failed >= failed + 20).then_some(())).await;
        if service.name == "ordering" {
            known.ordering_died = Some(history.borrow().elapsed());
        }
        service.start_again().await;
    }
    for shopper in shoppers {
        shopper.await.unwrap().unwrap();
    }
    let kills = known.crashes;
    audit(known, ordering_client, inventory_client, Rc::clone(&history)).await.unwrap();

    let history = history.borrow();
    let count = |wanted: fn(&Outcome) -> bool| history.told.values().filter(|t| wanted(&t.outcome)).count();
    format!(
        "killed services, seed {seed}: {SHOPPERS} shoppers, {} calls, {} of them failed and were repeated, {kills} \
         kills; orders: {} placed, {} cancelled, {} gone with ordering; books balanced",
        history.calls,
        history.failed,
        count(|outcome| *outcome == Outcome::Placed),
        count(|outcome| *outcome == Outcome::Cancelled),
        count(|outcome| *outcome == Outcome::Gone),
    )
}
