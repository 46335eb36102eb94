//! Orders: placed once per request id, with prices from catalog and units from inventory.
//!
//! What the service promises:
//!
//! - One order per request id, however often and from however many callers at once the request comes. The order's id
//!   follows from the request id, and so does the name under which inventory holds its units.
//! - A refused request leaves no order, and can be repeated. Units that it held are given back at once, or, where that
//!   fails, when the reservation expires. Where they may be sold already, or the giving back may come late, it is tried
//!   again for a minute, and the request counts as in progress meanwhile.
//! - A caller who leaves, or whose time is over, while units are reserved, sold or given back doesn't stop that: the
//!   order is placed or refused all the same. A server that goes down waits for it as long as it may.
//! - A cancel that was accepted comes to its end, however often inventory fails.
//! - [`Ordering::reconcile`] compares these books with inventory's. Units sold for an order that is not there, because
//!   ordering was killed, go back; placed orders whose units are unknown, because inventory was killed, are sold again,
//!   or cancelled when there are no units. For that all reservations whose order id has the form of an order's id belong
//!   to ordering, and there must be no more than one ordering for an inventory.
//! - An order keeps titles and prices as they were when it was placed.
//! - An order is cancelled only once its units are back, so a cancelled order never keeps any.
//!
//! Orders live in memory: at most [`Config::max_orders`] of them, with [`Config::max_order_lines`] lines in all. None is
//! forgotten while ordering runs, and so no request id is: a full store refuses new orders.

mod domain;
mod seed;
mod service;
mod store;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use chassis::grpc::{CallLimits, Routes};
use chassis::{Listener, Server, ServerConfig, Shutdown};
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::ordering::v1::ordering_service_server::OrderingServiceServer;

pub use service::Ordering;

const MAX_ORDERS: usize = 200_000;
const MAX_ORDER_LINES: usize = 2_000_000;
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
const RECONCILE_INTERVAL: Duration = Duration::from_secs(5);

/// How ordering behaves.
#[derive(clap::Args, Debug, Clone)]
#[group(skip)]
pub struct Config {
    /// Orders to hold in memory at most, the seeded ones included; more are refused with STORE_FULL. An order takes
    /// less than 1 KB besides its lines, and up to 4 KB for its address
    #[arg(long, env = "BOOKSTORE_MAX_ORDERS", default_value_t = MAX_ORDERS)]
    pub max_orders: usize,

    /// Lines of all orders together to hold in memory at most; a line takes about 150 bytes with a short title, and at
    /// most 1,350 with the longest
    #[arg(long, env = "BOOKSTORE_MAX_ORDER_LINES", default_value_t = MAX_ORDER_LINES)]
    pub max_order_lines: usize,

    /// Seconds between two comparisons of the orders with what inventory has sold for them: over 0, at most 3600
    #[arg(
        long,
        env = "BOOKSTORE_RECONCILE_INTERVAL",
        value_name = "SECONDS",
        default_value = "5",
        value_parser = reconcile_interval
    )]
    pub reconcile_interval: Duration,

    /// How long a refused placement waits for inventory to take its units back, and the reconciler for an answer. It is
    /// not the caller's time that counts, which may be over.
    #[arg(skip = RELEASE_TIMEOUT)]
    pub release_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_orders: MAX_ORDERS,
            max_order_lines: MAX_ORDER_LINES,
            reconcile_interval: RECONCILE_INTERVAL,
            release_timeout: RELEASE_TIMEOUT,
        }
    }
}

fn reconcile_interval(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(time)) if !time.is_zero() && time <= Duration::from_secs(3_600) => Ok(time),
        _ => Err("must be a number of seconds over 0, at most 3600".to_owned()),
    }
}

/// Serves ordering alone over gRPC and gRPC-Web until shutdown is through.
pub async fn serve(
    listener: Listener,
    config: Config,
    catalog: Arc<dyn CatalogService>,
    inventory: Arc<dyn InventoryService>,
    server: ServerConfig,
    shutdown: Shutdown,
) -> io::Result<()> {
    let ordering = Ordering::new(&config, catalog, inventory);
    let service =
        OrderingServiceServer::new(ordering.clone()).max_decoding_message_size(proto::MAX_MESSAGE_BYTES);
    let routes = Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET).service(service);
    let server = Server::new(server, shutdown).grpc(listener, routes);
    server.work(ordering.work()).background(ordering.reconcile()).run().await
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

    #[test]
    fn the_default_is_what_no_flags_give() {
        let parsed = Cli::parse_from(["test"]).config;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", Config::default()));
        let parsed = Cli::parse_from(["test", "--max-orders", "7", "--max-order-lines", "8"]).config;
        assert_eq!((parsed.max_orders, parsed.max_order_lines), (7, 8));
    }

    #[test]
    fn an_interval_is_a_number_of_seconds_up_to_an_hour() {
        let interval = |text: &str| {
            Cli::try_parse_from(["test", "--reconcile-interval", text])
                .ok()
                .map(|cli| cli.config.reconcile_interval)
        };
        assert_eq!(interval("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(interval("3600"), Some(RECONCILE_INTERVAL * 720));
        for bad in ["0", "-1", "3601", "1e-12", "nan", "inf", "5s", ""] {
            assert_eq!(interval(bad), None, "{bad}");
        }
    }
}
