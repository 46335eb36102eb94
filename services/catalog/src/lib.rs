//! Books, their authors and their reviews.
//!
//! What the methods promise is written in `catalog.proto`. Beyond that:
//! - A book is seen by everybody or by nobody: one that inventory has not registered yet is not there, and a call that
//!   is refused, cancelled or out of time leaves nothing of it behind.
//! - Everything is in memory and bounded by [`Config`]. Reading never waits for writing longer than one map access.
//! - Streams go at the pace of their reader and hold a page at most. A reader who leaves ends the work.

mod domain;
mod seed;
mod service;
mod store;

use std::io;
use std::sync::Arc;

use chassis::grpc::{CallLimits, Routes};
use chassis::{Listener, Server, ServerConfig, Shutdown};
use proto::catalog::v1::catalog_service_server::CatalogServiceServer;
use proto::inventory::v1::inventory_service_server::InventoryService;

pub use service::Catalog;

/// What a catalog holds.
#[derive(clap::Args, Debug, Clone)]
#[group(skip)]
pub struct Config {
    /// Books to start with, made by rule: the same ones in every run
    #[arg(
        long,
        env = "BOOKSTORE_BOOKS",
        default_value_t = proto::seed::BOOKS,
        value_parser = clap::value_parser!(i32).range(1..=2_000_000)
    )]
    pub books: i32,

    /// The most books to hold; more are refused with STORE_FULL
    #[arg(long, env = "BOOKSTORE_MAX_BOOKS", default_value_t = MAX_BOOKS)]
    pub max_books: usize,

    /// The most reviews to hold; more are refused with STORE_FULL. A review takes about 250 bytes when it is short, and
    /// at most 8,600, so that the default comes to at most 1.7 GB
    #[arg(long, env = "BOOKSTORE_MAX_REVIEWS", default_value_t = MAX_REVIEWS)]
    pub max_reviews: usize,
}

const MAX_BOOKS: usize = 2_000_000;
const MAX_REVIEWS: usize = 200_000;

impl Default for Config {
    fn default() -> Self {
        Self { books: proto::seed::BOOKS, max_books: MAX_BOOKS, max_reviews: MAX_REVIEWS }
    }
}

/// Serves a catalog over gRPC and gRPC-Web until shutdown. Stock is asked of, and new books are registered with,
/// `inventory`.
pub async fn serve(
    listener: Listener,
    config: Config,
    inventory: Arc<dyn InventoryService>,
    server: ServerConfig,
    shutdown: Shutdown,
) -> io::Result<()> {
    let catalog = Arc::new(Catalog::new(&config, inventory));
    let service = CatalogServiceServer::from_arc(catalog).max_decoding_message_size(proto::MAX_MESSAGE_BYTES);
    let routes = Routes::new(CallLimits::default(), proto::DESCRIPTOR_SET).service(service);
    Server::new(server, shutdown).grpc(listener, routes).run().await
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parse(args: &[&str]) -> Result<Config, clap::Error> {
        let command = Config::augment_args(Command::new("catalog").no_binary_name(true));
        Config::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn defaults_are_the_same_with_and_without_a_command_line() {
        assert_eq!(format!("{:?}", parse(&[]).unwrap()), format!("{:?}", Config::default()));
    }

    #[test]
    fn the_number_of_books_is_bounded() {
        assert_eq!(parse(&["--books", "2000000"]).unwrap().books, 2_000_000);
        for bad in ["0", "-1", "2000001", "many"] {
            assert!(parse(&["--books", bad]).is_err(), "{bad}");
        }
    }
}
