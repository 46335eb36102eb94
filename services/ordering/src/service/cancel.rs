//! Cancelling an order: the decision is recorded first, so that it comes to its end whoever leaves and whatever fails,
//! by the reconciler if need be. Then the units go back, and only then the order is cancelled.

use chassis::call::{Deadline, child};
use proto::inventory::v1::ReleaseReservationRequest;
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream::{self, Failure};
use super::{Ordering, detached, not_found, now};
use crate::domain::{CancelError, Order, OrderId, Reservation};

impl Ordering {
    /// Cancels the order. Of several callers at once one gives the units back, and the others wait for it.
    pub(super) async fn cancel(&self, call: &Extensions, id: OrderId) -> Result<Order, Status> {
        let decided = self.store.change(id, |order| order.cancel(now()).map(drop));
        let order = decided.ok_or_else(|| not_found(&id.to_string()))?.map_err(refusal)?;
        if order.state().is_final() {
            return Ok(order);
        }
        // Waited for here, so that callers who leave leave no more than one task for each order.
        let turn = self.store.cancel_turn(id).ok_or_else(|| not_found(&id.to_string()))?.lock_owned();
        let turn = match call.get::<Deadline>() {
            Some(deadline) => tokio::time::timeout_at(deadline.0, turn).await.map_err(|_| {
                let message = "the time was over before the units were back; the order is being cancelled";
                Refusal::new(Reason::DeadlineExceeded, message)
            })?,
            None => turn.await,
        };
        let (ordering, own) = (self.clone(), detached::extensions(call));
        let work = async move {
            let _turn = turn;
            ordering.finish_cancel(&own, id).await
        };
        detached::run(&self.work, call, work).await
    }

    /// Gives the units of an order that is being cancelled back, and tells how it stands then. Only for who has the
    /// turn to cancel it.
    pub(super) async fn finish_cancel(&self, call: &Extensions, id: OrderId) -> Result<Order, Status> {
        let missing = || not_found(&id.to_string());
        let mut order = self.store.get(id).ok_or_else(missing)?;
        let Some(reservation) = order.cancel(now()).map_err(refusal)? else { return Ok(order) };
        match self.take_back(call, reservation).await {
            Ok(()) => {}
            Err(status) if Reason::of(&status) == Reason::DeadlineExceeded => return Err(status),
            // The reconciler goes on with it.
            Err(_) => return self.store.get(id).ok_or_else(missing),
        }
        self.store.change(id, |order| order.give_back(now())).ok_or_else(missing)?.map_err(|error| {
            tracing::error!(%error, "an order changed while it was being cancelled");
            upstream::internal()
        })
    }

    /// Gives the units of an order back, in the time that its caller has.
    async fn take_back(&self, call: &Extensions, name: Reservation) -> Result<(), Status> {
        let request = ReleaseReservationRequest { order_id: name.to_string(), ..Default::default() };
        let release = self.inventory.release_reservation(child(call, request));
        match upstream::reply("inventory", call, release).await {
            Ok(_) => Ok(()),
            // Inventory forgets reservations in the end, and an order must not become impossible to cancel by that.
            Err(Failure::Refused(Reason::ReservationNotFound, _)) => {
                tracing::warn!(reservation = %name, "inventory doesn't know the reservation of a cancelled order");
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
