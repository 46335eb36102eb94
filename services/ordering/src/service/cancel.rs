//! Cancelling an order: its units first, then the record. Both are done even when the caller leaves.

use chassis::call::child;
use proto::inventory::v1::ReleaseReservationRequest;
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream::{self, Failure};
use super::{Ordering, detached, not_found, now};
use crate::domain::{CancelError, Order, OrderId, Reservation};

impl Ordering {
    /// Cancels the order. Of several callers at once one gives the units back, and the others wait for it.
    pub(super) async fn cancel(&self, call: &Extensions, id: OrderId) -> Result<Order, Status> {
        let missing = || not_found(&id.to_string());
        let mut order = self.store.get(id).ok_or_else(missing)?;
        if order.cancel(now()).map_err(refusal)?.is_none() {
            return Ok(order);
        }
        // Waited for here, so that callers who leave leave no more than one task for each order.
        let turn = self.store.cancel_turn(id).ok_or_else(missing)?.lock_owned().await;
        let (ordering, call) = (self.clone(), detached::extensions(call));
        detached::run(async move {
            let _turn = turn;
            ordering.cancel_in_turn(&call, id).await
        })
        .await
    }

    async fn cancel_in_turn(&self, call: &Extensions, id: OrderId) -> Result<Order, Status> {
        let missing = || not_found(&id.to_string());
        let mut order = self.store.get(id).ok_or_else(missing)?;
        match order.cancel(now()).map_err(refusal)? {
            Some(reservation) => self.take_back(call, reservation).await?,
            None => return Ok(order),
        }
        let cancelled = self.store.change(id, |order| order.cancel(now()).map(drop));
        cancelled.ok_or_else(missing)?.map_err(|error| refusal(error).into())
    }

    /// Gives the units of a placed order back.
    async fn take_back(&self, call: &Extensions, name: Reservation) -> Result<(), Status> {
        let request = ReleaseReservationRequest { order_id: name.to_string(), ..Default::default() };
        let release = self.inventory.release_reservation(child(call, request));
        match upstream::reply("inventory", call, release).await {
            Ok(_) => Ok(()),
            // Inventory forgets reservations in the end, and an order must not become impossible to cancel by that.
            Err(Failure::Refused(Reason::ReservationNotFound, _)) => {
                tracing::warn!(reservation = %name, "inventory has forgotten the reservation of a cancelled order");
                Ok(())
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

fn refusal(error: CancelError) -> Refusal {
    let (reason, id) = match error {
        CancelError::AlreadyShipped(id) => (Reason::OrderShipped, id),
        CancelError::StillPending(id) => (Reason::RequestInProgress, id),
    };
    Refusal::new(reason, error.to_string()).with("orderId", id)
}
