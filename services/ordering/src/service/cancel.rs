//! Cancelling an order: its units first, then the record.

use chassis::call::child;
use proto::inventory::v1::ReleaseReservationRequest;
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream::Failure;
use super::{Ordering, not_found, now};
use crate::domain::{CancelError, Order, OrderId, Reservation};

impl Ordering {
    /// Cancels the order. Of several callers at once one gives the units back, and the others wait for it.
    pub(super) async fn cancel(&self, call: &Extensions, id: OrderId) -> Result<Order, Status> {
        let missing = || not_found(&id.to_string());
        let mut order = self.store.get(id).ok_or_else(missing)?;
        if order.cancel(now()).map_err(refusal)?.is_none() {
            return Ok(order);
        }
        let turn = self.store.cancel_turn(id).ok_or_else(missing)?;
        let _turn = turn.lock().await;
        let mut order = self.store.get(id).ok_or_else(missing)?;
        match order.cancel(now()).map_err(refusal)? {
            Some(reservation) => self.release(call, reservation).await?,
            None => return Ok(order),
        }
        let cancelled = self.store.change(id, |order| order.cancel(now()).map(drop));
        cancelled.ok_or_else(missing)?.map_err(|error| refusal(error).into())
    }

    /// Gives the units of a placed order back.
    async fn release(&self, call: &Extensions, name: Reservation) -> Result<(), Status> {
        let request = ReleaseReservationRequest { order_id: name.to_string(), ..Default::default() };
        let Err(status) = self.inventory.release_reservation(child(call, request)).await else {
            return Ok(());
        };
        match Failure::of("inventory", status) {
            // Inventory forgets reservations in the end, and an order must not become impossible to cancel by that.
            Failure::Refused(Reason::ReservationNotFound, _) => {
                tracing::warn!(reservation = %name, "inventory has forgotten the reservation of a cancelled order");
                Ok(())
            }
            failure => Err(failure.into()),
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
