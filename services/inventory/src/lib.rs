//! Stock and reservations.
//!
//! For every SKU, at every moment: units received = in stock + reserved + sold, and none of them is negative. A
//! reservation takes all its lines or none; one that nobody confirms gives its units back when its time is up. What the
//! methods promise is written in `bookstore/inventory/v1/inventory.proto`.
//!
//! Everything is in memory and bounded: see [`Config`].

mod domain;
mod service;
mod store;
mod sync;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chassis::grpc::{CallLimits, Routes};
use chassis::metrics::{Labels, Metrics};
use chassis::{Listener, Server, ServerConfig, Shutdown};
use proto::inventory::v1::inventory_service_server::InventoryServiceServer;

use crate::store::{Limits, Store};

/// Settings of inventory.
#[derive(clap::Args, Debug, Clone)]
#[group(skip)]
pub struct Config {
    /// Books 1 to N are known from the start, with the SKUs and the stock of `proto::seed`.
    #[arg(skip = proto::seed::BOOKS)]
    pub books: i32,

    /// Seconds until a reservation that nobody confirms gives its units back: over 0, at most 86400
    #[arg(
        long,
        env = "BOOKSTORE_RESERVATION_TTL",
        value_name = "SECONDS",
        default_value = "60",
        value_parser = reservation_ttl
    )]
    pub reservation_ttl: Duration,

    /// Reservations remembered at once, at most; one takes about 200 bytes, and 8 more for each line. Held ones are remembered until
    /// they are confirmed, released or expired, the latter two for one more reservation time, confirmed ones for a day
    #[arg(long, env = "BOOKSTORE_MAX_RESERVATIONS", value_name = "COUNT", default_value_t = MAX_RESERVATIONS)]
    pub max_reservations: usize,

    /// Lines of the remembered reservations together, at most; those of one SKU in a reservation count as one
    #[arg(
        long,
        env = "BOOKSTORE_MAX_RESERVATION_LINES",
        value_name = "COUNT",
        default_value_t = MAX_RESERVATION_LINES
    )]
    pub max_reservation_lines: usize,

    /// Books known to inventory, at most. The seeded ones count, and are never refused
    #[arg(long, env = "BOOKSTORE_MAX_ITEMS", value_name = "COUNT", default_value_t = MAX_ITEMS)]
    pub max_items: u32,
}

const MAX_RESERVATIONS: usize = 2_000_000;
const MAX_RESERVATION_LINES: usize = 20_000_000;
const MAX_ITEMS: u32 = 2_000_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            books: proto::seed::BOOKS,
            reservation_ttl: Duration::from_secs(60),
            max_reservations: MAX_RESERVATIONS,
            max_reservation_lines: MAX_RESERVATION_LINES,
            max_items: MAX_ITEMS,
        }
    }
}

fn reservation_ttl(text: &str) -> Result<Duration, String> {
    let rule = "must be a number of seconds over 0, at most 86400";
    let seconds: f64 = text.parse().map_err(|_| rule.to_owned())?;
    // A time so short that it rounds to nothing is no time either.
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time <= Duration::from_secs(86_400) => Ok(time),
        _ => Err(rule.to_owned()),
    }
}

/// Inventory itself: implements `InventoryService`.
#[derive(Debug)]
pub struct Inventory {
    store: Store,
    /// Another one with each start.
    instance_id: String,
}

impl Inventory {
    /// Inventory with the seeded books and no reservations.
    pub fn new(config: &Config) -> Self {
        let limits = Limits {
            ttl: config.reservation_ttl,
            reservations: config.max_reservations,
            lines: config.max_reservation_lines,
            items: config.max_items,
        };
        let seeded = u32::try_from(config.books).unwrap_or_default();
        let store = Store::new(limits, seeded, proto::seed::STOCK as u32);
        Self { store, instance_id: instance_id() }
    }

    /// Gives back the units of reservations whose time is up, for ever.
    ///
    /// Calls treat a reservation whose time is up as expired even before this gets to it, and refuse nothing for want
    /// of units that are due to come back; what this adds is that stock readings and watchers learn of it by
    /// themselves.
    pub async fn expire(self: Arc<Self>) {
        /// Between two looks, at least: several expiries are dealt with at once when there are many.
        const PAUSE: Duration = Duration::from_millis(5);
        /// Before other tasks of the thread get a turn.
        const BATCH: usize = 256;
        loop {
            while self.store.collect(BATCH) {
                tokio::task::yield_now().await;
            }
            let next = self.store.next_due().max(tokio::time::Instant::now() + PAUSE);
            tokio::time::sleep_until(next).await;
        }
    }

    /// Reservations that are remembered now.
    pub fn reservations(&self) -> usize {
        self.store.remembered()
    }

    /// Reservations that hold units now. Not to be asked for all the time.
    pub fn live_reservations(&self) -> usize {
        self.store.held()
    }

    /// Shows what lives in it.
    pub fn show(self: &Arc<Self>, metrics: &Metrics) {
        let inventory = Arc::downgrade(self);
        let live = move || inventory.upgrade().map_or(0, |inventory| inventory.live_reservations()) as f64;
        let help = "Reservations that hold units: neither confirmed nor released nor expired.";
        metrics.gauge("bookstore_reservations_live", help, Labels::new(), live);
    }

    /// Lines of the reservations that are remembered now.
    pub fn reservation_lines(&self) -> usize {
        self.store.lines()
    }

    /// Watches that are running now, counted once for each book watched.
    pub fn watchers(&self) -> usize {
        self.store.watchers()
    }
}

/// 32 hexadecimal digits by chance, which the standard library's hashers are seeded with.
fn instance_id() -> String {
    let half = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", half(), half())
}

/// Serves inventory over gRPC until shutdown has begun and running calls are done.
pub async fn serve(
    listener: Listener,
    config: Config,
    server: ServerConfig,
    shutdown: Shutdown,
) -> io::Result<()> {
    let inventory = Arc::new(Inventory::new(&config));
    inventory.show(&server.metrics);
    let service = InventoryServiceServer::from_arc(inventory.clone());
    let routes = Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET)
        .service(service.max_decoding_message_size(proto::MAX_MESSAGE_BYTES));
    Server::new(server, shutdown).grpc(listener, routes).background(inventory.expire()).run().await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        config: Config,
    }

    fn ttl(text: &str) -> Option<Duration> {
        Cli::try_parse_from(["inventory", "--reservation-ttl", text])
            .ok()
            .map(|cli| cli.config.reservation_ttl)
    }

    #[test]
    fn flags_and_default_agree() {
        let parsed = Cli::try_parse_from(["inventory"]).unwrap().config;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn a_reservation_time_is_a_number_of_seconds_up_to_a_day() {
        assert_eq!(ttl("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(ttl("86400"), Some(Duration::from_secs(86_400)));
        for bad in ["0", "-1", "86400.1", "1e-12", "nan", "inf", "60s", ""] {
            assert_eq!(ttl(bad), None, "{bad}");
        }
    }
}
