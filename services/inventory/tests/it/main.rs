//! Inventory through its service interface.

// A test may stop at the first surprise; clippy knows only functions with `#[test]` as such.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod expiry;
mod listing;
mod model;
mod races;
mod reservations;
mod served;
mod stock;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use inventory::{Config, Inventory};
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::inventory::v1::{self as pb, ReservationState};
use proto::{Reason, field_errors};
use tonic::{Request, Status};

/// How long the reservations of [`shop`] are held.
const TTL: Duration = Duration::from_secs(60);

/// Inventory with the calls that tests make, in few words. SKUs are named by their seeded book.
#[derive(Clone)]
struct Shop(Arc<Inventory>);

fn shop() -> Shop {
    shop_with(|_| {})
}

fn shop_with(change: impl FnOnce(&mut Config)) -> Shop {
    let mut config = Config::default();
    change(&mut config);
    Shop(Arc::new(Inventory::new(&config)))
}

fn sku(book_id: i32) -> String {
    proto::seed::sku(book_id)
}

fn lines(lines: &[(i32, i32)]) -> Vec<pb::ReservationLine> {
    lines.iter().map(|&(id, quantity)| pb::ReservationLine { sku: sku(id), quantity }).collect()
}

/// In stock, reserved and sold.
type Units = (i32, i32, i64);

fn units(stock: &pb::Stock) -> Units {
    (stock.in_stock, stock.reserved, stock.sold)
}

impl Shop {
    async fn stock(&self, book_id: i32) -> Units {
        let request = Request::new(pb::GetStockRequest { book_id, ..Default::default() });
        units(&self.0.get_stock(request).await.unwrap().into_inner().stock.unwrap())
    }

    /// Leaves this many units of a book in stock.
    async fn leave(&self, book_id: i32, left: i32) {
        let now = self.stock(book_id).await.0;
        if left != now {
            self.adjust(book_id, left - now).await.unwrap();
        }
    }

    async fn adjust(&self, book_id: i32, delta: i32) -> Result<Units, Status> {
        let request = Request::new(pb::AdjustStockRequest { sku: sku(book_id), delta });
        Ok(units(&self.0.adjust_stock(request).await?.into_inner().stock.unwrap()))
    }

    async fn send(
        &self,
        order_id: &str,
        lines: Vec<pb::ReservationLine>,
    ) -> Result<pb::ReserveStockResponse, Status> {
        let request = Request::new(pb::ReserveStockRequest { order_id: order_id.to_owned(), lines });
        Ok(self.0.reserve_stock(request).await?.into_inner())
    }

    async fn reserve(
        &self,
        order_id: &str,
        wanted: &[(i32, i32)],
    ) -> Result<pb::ReserveStockResponse, Status> {
        self.send(order_id, lines(wanted)).await
    }

    async fn confirm(&self, order_id: &str) -> Result<pb::Reservation, Status> {
        let order_id = order_id.to_owned();
        let request = pb::ConfirmReservationRequest { order_id, ..Default::default() };
        Ok(self.0.confirm_reservation(Request::new(request)).await?.into_inner().reservation.unwrap())
    }

    async fn release(&self, order_id: &str) -> Result<pb::Reservation, Status> {
        let order_id = order_id.to_owned();
        let request = pb::ReleaseReservationRequest { order_id, ..Default::default() };
        Ok(self.0.release_reservation(Request::new(request)).await?.into_inner().reservation.unwrap())
    }

    async fn reservation(&self, order_id: &str) -> Result<pb::Reservation, Status> {
        let order_id = order_id.to_owned();
        let request = pb::GetReservationRequest { order_id, ..Default::default() };
        Ok(self.0.get_reservation(Request::new(request)).await?.into_inner().reservation.unwrap())
    }
}

/// The reason of a refusal, and whether its code is the one that goes with it.
#[track_caller]
fn reason<T: std::fmt::Debug>(result: Result<T, Status>) -> Reason {
    let status = result.unwrap_err();
    let reason = Reason::of(&status);
    assert_eq!(status.code(), reason.code(), "{status:?}");
    reason
}

/// The fields that a refusal names, and their rules.
#[track_caller]
fn fields<T: std::fmt::Debug>(result: Result<T, Status>) -> Vec<(String, String)> {
    let status = result.unwrap_err();
    assert_eq!(Reason::of(&status), Reason::InvalidField, "{status:?}");
    field_errors(&status).into_iter().map(|f| (f.field, f.rule)).collect()
}

/// The names of the fields that a refusal names.
#[track_caller]
fn names<T: std::fmt::Debug>(result: Result<T, Status>) -> Vec<String> {
    fields(result).into_iter().map(|f| f.0).collect()
}

/// A fact that a refusal carries for programs.
#[track_caller]
fn metadata<T: std::fmt::Debug>(result: &Result<T, Status>, key: &str) -> String {
    use tonic_types::StatusExt;
    let info = result.as_ref().unwrap_err().get_details_error_info().unwrap();
    info.metadata.get(key).cloned().unwrap_or_default()
}
