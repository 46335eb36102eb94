//! Giving back what inventory holds, or has sold, for no order.

use std::time::Duration;

use chassis::call::{Deadline, child};
use proto::Reason;
use proto::inventory::v1::ReleaseReservationRequest;
use tonic::{Extensions, Status};

use super::Ordering;
use super::upstream::{self, Failure};
use crate::domain::Reservation;
use crate::store::Attempt;

/// Seconds between two tries to give units back, from the first one that failed.
const RELEASE_PAUSES_S: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// After the last try. A message that is on its way for longer than this was lost with its connection.
const RELEASE_LATE: Duration = Duration::from_secs(30);

impl Ordering {
    /// Gives back what inventory may hold or have sold under this name, and ends the attempt. This caller is not kept
    /// waiting for an inventory that doesn't answer, but other attempts at the order are.
    pub(super) async fn give_back(
        &self,
        call: &Extensions,
        name: Reservation,
        sold: bool,
        attempt: Attempt,
    ) -> Result<(), Status> {
        let Err(status) = self.release(call, name).await else { return Ok(()) };
        // What is held expires by itself. But a release that is late would take the units of the next attempt.
        if !sold && Reason::of(&status) != Reason::DeadlineExceeded {
            return Err(status);
        }
        attempt.forget();
        let (ordering, call) = (self.clone(), call.clone());
        self.work.spawn(async move {
            let _attempt = attempt;
            for pause in RELEASE_PAUSES_S {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                if ordering.release(&call, name).await.is_ok() {
                    return;
                }
            }
            tracing::warn!(reservation = %name, "units could not be given back for a minute: left to the reconciler");
            tokio::time::sleep(RELEASE_LATE).await;
        });
        Err(status)
    }

    /// Asks inventory to give units back. The caller's time may be over, so this takes its own.
    pub(super) async fn release(&self, call: &Extensions, name: Reservation) -> Result<(), Status> {
        let mut own = call.clone();
        own.insert(Deadline::after(self.release_timeout));
        let request = ReleaseReservationRequest { order_id: name.to_string(), ..Default::default() };
        let released = self.inventory.release_reservation(child(&own, request));
        match upstream::reply("inventory", &own, released).await {
            // Inventory forgets reservations in the end, and all of them when it is started anew.
            Ok(_) | Err(Failure::Refused(Reason::ReservationNotFound, _)) => Ok(()),
            Err(failure) => {
                let status = Status::from(failure);
                tracing::warn!(reservation = %name, message = status.message(), "units are not given back yet");
                Err(status)
            }
        }
    }
}
