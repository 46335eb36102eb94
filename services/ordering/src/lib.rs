//! Orders: placed once per request id, with prices from catalog and units from inventory.
//!
//! What the service promises:
//!
//! - One order per request id, however often and from however many callers at once the request comes. The order's id
//!   follows from the request id, and so does the name under which inventory holds its units.
//! - A refused request leaves no order, and can be repeated. Units that it held are given back at once, or, where that
//!   fails, when the reservation expires. Where they may be sold already, or the giving back may come late, it is tried
//!   again for a minute, and the request counts as in progress meanwhile.
//! - A caller who leaves while units are reserved, sold or given back doesn't stop that: the order is placed or refused
//!   all the same, and a cancel is done.
//! - An order keeps titles and prices as they were when it was placed.
//! - Cancelling gives units back before it is recorded, so a cancelled order never keeps any.
//!
//! Orders live in memory: at most [`Config::max_orders`] of them, with [`Config::max_order_lines`] lines in all.

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

    /// How long a refused placement waits for inventory to take its units back. It is not the caller's time that
    /// counts, which may be over.
    #[arg(skip = RELEASE_TIMEOUT)]
    pub release_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_orders: MAX_ORDERS, max_order_lines: MAX_ORDER_LINES, release_timeout: RELEASE_TIMEOUT }
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
    let ordering = Arc::new(Ordering::new(&config, catalog, inventory));
    let service =
        OrderingServiceServer::from_arc(ordering).max_decoding_message_size(proto::MAX_MESSAGE_BYTES);
    let routes = Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET).service(service);
    Server::new(server, shutdown).grpc(listener, routes).run().await
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
}
