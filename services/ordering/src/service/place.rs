//! Placing an order: prices, a reservation, the record, the confirmation, in this order.
//!
//! From the reservation on the work goes to its end, whether or not the caller stays. Its end is a placed order, or a
//! reservation that is given back. Only an inventory that doesn't answer for a minute can keep one: until it expires,
//! or, when it was confirmed, until the same request comes again, finds it under the same name and goes on with it, or
//! the reconciler finds it and gives it back.

use std::collections::HashMap;
use std::sync::Arc;

use chassis::call::child;
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as pb;
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream::{self, Failure};
use super::{Ordering, detached, now, view};
use crate::domain::{Content, Currency, Draft, Money, Offer, Order, PriceError, Reservation, Sku};
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
                let message = "an earlier call with this request id is not done yet";
                return Err(Refusal::new(Reason::RequestInProgress, message).into());
            }
            Begun::Full => {
                return Err(Refusal::new(Reason::StoreFull, "no room for another order").into());
            }
        };
        let content = Arc::new(self.price(call, &draft).await?);
        let (ordering, own) = (self.clone(), detached::extensions(call));
        let work = async move { ordering.sell(&own, &draft, content, attempt).await };
        detached::run(&self.work, call, work).await
    }

    /// The content of the order at catalog's prices.
    async fn price(&self, call: &Extensions, draft: &Draft) -> Result<Content, Status> {
        let skus = draft.lines().iter().map(|(sku, _)| sku.as_str().to_owned()).collect();
        let request = catalog::BatchGetBooksRequest { skus, ..Default::default() };
        let found = self.catalog.batch_get_books(child(call, request));
        let books = upstream::reply("catalog", call, found).await?.books;
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
        mut attempt: Attempt,
    ) -> Result<Order, Status> {
        let id = draft.order_id();
        for number in 1..=MAX_RESERVATIONS {
            let name = id.reservation(number);
            let tried = async {
                self.reserve(call, draft.reservation_lines(), name).await?;
                attempt.record(Order::pending(id, Arc::clone(&content), name, now()));
                self.confirm(call, name).await
            };
            let (status, sold) = match tried.await {
                Ok(()) => match attempt.finish(|order| order.place(now())) {
                    Some(Ok(order)) => return Ok(order),
                    refused => {
                        // Only the holder of the attempt changes a pending order.
                        tracing::error!(order = %id, ?refused, "an order changed while it was being placed");
                        (upstream::internal(), true)
                    }
                },
                Err(Unsold::Over) => continue,
                Err(Unsold::Refused(status)) => return Err(status),
                Err(Unsold::PerhapsHeld(status)) => (status, false),
                Err(Unsold::PerhapsSold(status)) => (status, true),
            };
            let _ = self.give_back(call, name, sold, attempt).await;
            return Err(status);
        }
        tracing::warn!(order = %id, "inventory remembers too many attempts at this order");
        Err(upstream::unavailable("inventory"))
    }

    /// Holds the units.
    async fn reserve(
        &self,
        call: &Extensions,
        lines: impl Iterator<Item = (&Sku, i32)>,
        name: Reservation,
    ) -> Result<(), Unsold> {
        use inventory::ReservationState;
        let reserved = self.inventory.reserve_stock(child(call, upstream::reservation(lines, name)));
        match upstream::reply("inventory", call, reserved).await {
            Ok(reply) => match reply.state() {
                // Confirmed: by an attempt that could not be brought to its end.
                ReservationState::Held | ReservationState::Confirmed => Ok(()),
                state => {
                    tracing::error!(reservation = %name, ?state, "inventory reserves in a state that holds nothing");
                    Err(Unsold::PerhapsHeld(upstream::internal()))
                }
            },
            // An attempt that failed.
            Err(Failure::Refused(Reason::ReservationReleased | Reason::ReservationExpired, _)) => {
                Err(Unsold::Over)
            }
            // An attempt that could not be brought to its end, or failed, asked for something else.
            Err(Failure::Refused(Reason::OrderIdConflict, _)) => {
                let _ = self.release(call, name).await;
                Err(Unsold::Over)
            }
            Err(Failure::Refused(_, status)) => Err(Unsold::Refused(status)),
            Err(Failure::Failed(status)) => Err(Unsold::PerhapsHeld(status)),
        }
    }

    /// Sells the units.
    async fn confirm(&self, call: &Extensions, name: Reservation) -> Result<(), Unsold> {
        let request =
            inventory::ConfirmReservationRequest { order_id: name.to_string(), ..Default::default() };
        let confirmed = self.inventory.confirm_reservation(child(call, request));
        match upstream::reply("inventory", call, confirmed).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(
                Reason::ReservationExpired | Reason::ReservationReleased | Reason::ReservationNotFound,
                _,
            )) => Err(Unsold::Over),
            Err(failure) => Err(Unsold::PerhapsSold(failure.into())),
        }
    }
}

/// Why nothing was sold under one name.
enum Unsold {
    /// The name belongs to an attempt that is over. There are others.
    Over,
    /// Inventory refused, and holds nothing.
    Refused(Status),
    /// Inventory did not answer, and may hold the units.
    PerhapsHeld(Status),
    /// Inventory holds the units, or has sold them.
    PerhapsSold(Status),
}

/// What catalog asks for a book, by SKU; `None` when the price is missing or in no currency.
fn offer(book: catalog::Book) -> Option<(String, Offer)> {
    let price = book.price?;
    let price = Money { minor: price.amount_minor, currency: Currency::parse(&price.currency)? };
    Some((book.sku, Offer { book_id: book.id, title: book.title, price }))
}
