//! Placing an order: prices, a reservation, the record, the confirmation, in this order.
//!
//! Each step is safe to repeat, and whatever happens between two of them leaves at most a reservation that expires by
//! itself: the order is recorded before its units are sold, and [`Attempt`] takes the record back when the call ends
//! early.

use std::collections::HashMap;
use std::sync::Arc;

use chassis::call::{Deadline, child};
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as pb;
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream::{self, Failure};
use super::{Ordering, now, view};
use crate::domain::{Content, Currency, Draft, Money, Offer, Order, PriceError, Reservation};
use crate::store::{Attempt, Begun};

/// How many names for its reservation an order tries. Each one fails only when inventory still remembers an earlier
/// attempt under it, so more than a few mean that somebody repeats a failing request faster than inventory forgets.
const MAX_RESERVATIONS: u32 = 64;

impl Ordering {
    /// Places the order that the request asks for, or finds it as it was placed.
    pub(super) async fn place(
        &self,
        call: &Extensions,
        request: pb::PlaceOrderRequest,
    ) -> Result<Order, Status> {
        let lines = request.lines.into_iter().map(|line| (line.sku, line.quantity)).collect();
        let ship_to = request.ship_to.map(view::from_address);
        let draft = Draft::new(&request.request_id, lines, ship_to).map_err(Refusal::fields)?;
        let attempt = match self.store.begin(draft.order_id(), draft.lines().len()) {
            Begun::New(attempt) => attempt,
            Begun::Placed(order) if order.content().fingerprint == draft.fingerprint() => return Ok(order),
            Begun::Placed(_) => {
                let message = "the request id was used for an order with other content";
                return Err(Refusal::new(Reason::IdempotencyKeyReused, message).into());
            }
            Begun::Running => {
                let message = "the first call with this request id is still running";
                return Err(Refusal::new(Reason::RequestInProgress, message).into());
            }
            Begun::Full => {
                return Err(Refusal::new(Reason::StoreFull, "no room for another order").into());
            }
        };
        let content = Arc::new(self.price(call, &draft).await?);
        self.sell(call, &draft, content, attempt).await
    }

    /// The content of the order at catalog's prices.
    async fn price(&self, call: &Extensions, draft: &Draft) -> Result<Content, Status> {
        let skus = draft.lines().iter().map(|(sku, _)| sku.as_str().to_owned()).collect();
        let request = catalog::BatchGetBooksRequest { skus, ..Default::default() };
        let reply = self.catalog.batch_get_books(child(call, request)).await;
        let books = reply.map_err(|status| Failure::of("catalog", status))?.into_inner().books;
        let offers: Option<HashMap<String, Offer>> = books.into_iter().map(offer).collect();
        let offers = offers.ok_or_else(|| {
            tracing::error!("catalog sent a book without a price");
            upstream::internal()
        })?;
        draft.price(|sku| offers.get(sku.as_str()).cloned()).map_err(|error| match &error {
            PriceError::UnknownSku(sku) => {
                Refusal::new(Reason::UnknownSku, error.to_string()).with("sku", sku).into()
            }
            PriceError::TotalTooLarge => Refusal::field("lines", error.to_string()).into(),
            PriceError::NegativePrice { .. } | PriceError::MixedCurrencies { .. } => {
                tracing::error!(%error, "catalog's prices make no sense");
                upstream::internal()
            }
        })
    }

    /// Reserves the units, records the order and confirms the reservation.
    async fn sell(
        &self,
        call: &Extensions,
        draft: &Draft,
        content: Arc<Content>,
        attempt: Attempt,
    ) -> Result<Order, Status> {
        let id = draft.order_id();
        for number in 1..=MAX_RESERVATIONS {
            let reservation = id.reservation(number);
            if !self.reserve(call, draft, reservation).await? {
                continue;
            }
            attempt.record(Order::pending(id, Arc::clone(&content), reservation, now()));
            if !self.confirm(call, reservation).await? {
                continue;
            }
            return match attempt.finish(|order| order.place(now())) {
                Some(Ok(order)) => Ok(order),
                refused => {
                    // Only the holder of the attempt changes a pending order.
                    tracing::error!(order = %id, ?refused, "an order changed while it was being placed");
                    self.give_back(call, reservation).await;
                    Err(upstream::internal())
                }
            };
        }
        tracing::warn!(order = %id, "inventory remembers too many attempts at this order");
        Err(upstream::unavailable("inventory"))
    }

    /// Holds the units. `false` when the name belongs to an earlier attempt that is over.
    async fn reserve(&self, call: &Extensions, draft: &Draft, name: Reservation) -> Result<bool, Status> {
        use inventory::ReservationState;
        let lines = draft.reservation_lines();
        let lines = lines
            .map(|(sku, quantity)| inventory::ReservationLine { sku: sku.as_str().to_owned(), quantity });
        let request = inventory::ReserveStockRequest { order_id: name.to_string(), lines: lines.collect() };
        let failure = match self.inventory.reserve_stock(child(call, request)).await {
            Ok(reply) => match reply.get_ref().state() {
                // Confirmed: by an earlier attempt whose caller left before it heard of it.
                ReservationState::Held | ReservationState::Confirmed => return Ok(true),
                ReservationState::Released | ReservationState::Expired => return Ok(false),
                ReservationState::Unspecified => {
                    tracing::error!(reservation = %name, "inventory names no state that is known here");
                    Failure::Failed(upstream::internal())
                }
            },
            Err(status) => Failure::of("inventory", status),
        };
        match failure {
            // An earlier attempt, whose caller left in the middle, asked for something else.
            Failure::Refused(Reason::OrderIdConflict, _) => {
                self.give_back(call, name).await;
                Ok(false)
            }
            Failure::Refused(_, status) => Err(status),
            Failure::Failed(status) => {
                self.give_back(call, name).await;
                Err(status)
            }
        }
    }

    /// Sells the units. `false` when the reservation ended before.
    async fn confirm(&self, call: &Extensions, name: Reservation) -> Result<bool, Status> {
        let request =
            inventory::ConfirmReservationRequest { order_id: name.to_string(), ..Default::default() };
        let Err(status) = self.inventory.confirm_reservation(child(call, request)).await else {
            return Ok(true);
        };
        match Failure::of("inventory", status) {
            Failure::Refused(
                Reason::ReservationExpired | Reason::ReservationReleased | Reason::ReservationNotFound,
                _,
            ) => Ok(false),
            failure => {
                self.give_back(call, name).await;
                Err(failure.into())
            }
        }
    }

    /// Gives the units back, if inventory answers soon; else the reservation's expiry does it. The caller's own time
    /// may be over, so this takes its own.
    async fn give_back(&self, call: &Extensions, name: Reservation) {
        let request =
            inventory::ReleaseReservationRequest { order_id: name.to_string(), ..Default::default() };
        let mut request = child(call, request);
        request.extensions_mut().insert(Deadline::after(self.release_timeout));
        let release = self.inventory.release_reservation(request);
        let message = match tokio::time::timeout(self.release_timeout, release).await {
            Ok(Ok(_)) => return,
            Ok(Err(status)) if Reason::of(&status) == Reason::ReservationNotFound => return,
            Ok(Err(status)) => status.message().to_owned(),
            Err(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(reservation = %name, message, "units are not given back before the reservation expires");
    }
}

/// What catalog asks for a book, by SKU; `None` when the price is missing or in no currency.
fn offer(book: catalog::Book) -> Option<(String, Offer)> {
    let price = book.price?;
    let price = Money { minor: price.amount_minor, currency: Currency::parse(&price.currency)? };
    Some((book.sku, Offer { book_id: book.id, title: book.title, price }))
}
