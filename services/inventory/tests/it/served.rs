//! Inventory as its own process has it: over the wire, giving units back by itself, until told to stop.

use std::num::NonZeroUsize;

use chassis::upstream::Upstream;
use chassis::{Listener, ServerConfig, Shutdown};
use futures_util::StreamExt;
use proto::seed::STOCK;

use super::*;

#[tokio::test]
async fn a_served_inventory_answers_expires_and_stops() {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), NonZeroUsize::MIN).unwrap();
    let address = format!("http://{}", listener.local_addr());
    let config = Config { reservation_ttl: Duration::from_millis(20), ..Config::default() };
    let server = ServerConfig { threads: 1, ..ServerConfig::default() };
    let shutdown = Shutdown::new();
    let serving = tokio::spawn(inventory::serve(listener, config, server, shutdown.clone()));

    let client = proto::client::Inventory::new(Upstream::new(&address).unwrap());
    let watched = Request::new(pb::WatchStockRequest { book_ids: vec![1], ..Default::default() });
    let mut changes = client.watch_stock(watched).await.unwrap().into_inner();
    let first = changes.next().await.unwrap().unwrap().stock.unwrap();
    assert_eq!(units(&first), (STOCK, 0, 0));
    let wanted = Request::new(pb::ReserveStockRequest { order_id: "a".to_owned(), lines: lines(&[(1, 2)]) });
    client.reserve_stock(wanted).await.unwrap();
    // No call meets the reservation, so it is the background that expires it.
    loop {
        let asked = Request::new(pb::GetStockRequest { book_id: 1, ..Default::default() });
        let stock = client.get_stock(asked).await.unwrap().into_inner().stock.unwrap();
        if units(&stock) == (STOCK, 0, 0) {
            break;
        }
        assert_eq!(units(&stock), (STOCK - 2, 2, 0));
    }

    shutdown.begin();
    let told = loop {
        match changes.next().await.unwrap() {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(Reason::of(&told), Reason::ShuttingDown);
    serving.await.unwrap().unwrap();
}
