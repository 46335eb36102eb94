//! Compares ordering's books with inventory's, again and again, and puts right what a failure left.
//!
//! What a round does, each part a bounded number of steps that the next round goes on from:
//!
//! - Cancels that were decided are brought to their end.
//! - Units that inventory has sold under the name of an order are given back when there is no such order, or it has
//!   other units, or it is cancelled. An order that is being placed, or whose id is in use, is left alone: the id is
//!   taken first, as if the order were placed, so that a repeated request waits. Units that are only held are left to
//!   expire.
//! - When inventory was started anew, the units of placed orders are reserved and sold again. Where there are none any
//!   more, the order is cancelled, and its history says why. The orders that are there from the start are left out:
//!   they never sold anything, in no run of inventory.
//!
//! An order that is being placed needs nothing of this. It belongs to a task that brings it to an end or forgets it; if
//! the process dies, so does the order, and what it leaves in inventory expires or is found by the next process.

use chassis::call::{Deadline, child};
use proto::Reason;
use proto::inventory::v1 as inventory;
use tonic::{Extensions, Status};

use super::upstream::{self, Failure};
use super::{Ordering, now};
use crate::domain::{Order, OrderId, Reservation, State};
use crate::store::Known;

/// Pages of inventory's list in one round, at most.
const PAGES: u32 = 50;

/// Reservations on one page, at most.
const PAGE_SIZE: i32 = 500;

/// Orders of which one round changes something, or asks inventory, at most.
const CHANGES: u32 = 10_000;

/// Orders that are copied out of the store at once.
const BATCH: usize = 64;

/// What one round leaves for the next.
#[derive(Debug, Default)]
struct Progress {
    /// The run of inventory that the last round saw; empty before the first.
    instance_id: String,
    /// Where in inventory's list to go on.
    page_token: String,
    /// Placed orders before this one are still to be sold again.
    resell: Option<u64>,
    /// The last order that could not be cancelled, so that it doesn't hold the others up.
    stuck: Option<OrderId>,
    /// How many changes this round may make yet.
    left: u32,
}

/// Why a round ends early.
enum Stop {
    /// Inventory didn't do what it was asked. It is asked again in the next round.
    Failed,
    /// The round has done as much as one may.
    Enough,
}

impl From<Status> for Stop {
    /// The failure has been logged where it happened.
    fn from(_: Status) -> Self {
        Self::Failed
    }
}

impl Ordering {
    /// Puts right what failures left, now and then every [`Config::reconcile_interval`](crate::Config), for ever.
    pub async fn reconcile(self) {
        let mut progress = Progress::default();
        loop {
            progress.left = CHANGES;
            match self.round(&mut progress).await {
                // There is more to do than one round may: others get their turn, and no more.
                Err(Stop::Enough) => tokio::task::yield_now().await,
                Ok(()) | Err(Stop::Failed) => tokio::time::sleep(self.reconcile_interval).await,
            }
        }
    }

    async fn round(&self, progress: &mut Progress) -> Result<(), Stop> {
        self.finish_cancels(progress).await?;
        self.compare(progress).await?;
        self.resell(progress).await
    }

    /// Cancels that were decided.
    async fn finish_cancels(&self, progress: &mut Progress) -> Result<(), Stop> {
        let mut last = progress.stuck.take();
        loop {
            let ids = self.store.cancelling(last, BATCH);
            if ids.is_empty() {
                return Ok(());
            }
            for id in ids {
                progress.change().await?;
                last = Some(id);
                let Some(turn) = self.store.cancel_turn(id) else { continue };
                // Somebody is at it.
                let Ok(_turn) = turn.try_lock() else { continue };
                let order = self.finish_cancel(&self.own_call(), id).await;
                if order.is_ok_and(|order| order.state() == State::Cancelled) {
                    tracing::info!(order = %id, "a cancel was brought to its end");
                } else {
                    progress.stuck = Some(id);
                    return Err(Stop::Failed);
                }
            }
        }
    }

    /// What inventory has sold under the names of orders.
    async fn compare(&self, progress: &mut Progress) -> Result<(), Stop> {
        for _ in 0..PAGES {
            let page = self.sold(&progress.page_token).await?;
            if page.instance_id != progress.instance_id {
                progress.instance_id = page.instance_id;
                progress.page_token.clear();
                progress.resell = Some(self.store.end());
                continue;
            }
            let names = page.reservations.iter().filter_map(|sold| sold.order_id.parse().ok());
            for name in names {
                self.judge(progress, name).await?;
            }
            progress.page_token = page.next_page_token;
            if progress.page_token.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// A page of the reservations that are confirmed.
    async fn sold(&self, page_token: &str) -> Result<inventory::ListReservationsResponse, Status> {
        let call = self.own_call();
        let request = inventory::ListReservationsRequest {
            states: vec![inventory::ReservationState::Confirmed.into()],
            order_id_prefix: OrderId::PREFIX.to_owned(),
            page_size: PAGE_SIZE,
            page_token: page_token.to_owned(),
        };
        let listed = self.inventory.list_reservations(child(&call, request));
        Ok(upstream::reply("inventory", &call, listed).await?)
    }

    /// Gives units back that were sold under this name, unless an order has them or may get them.
    async fn judge(&self, progress: &mut Progress, name: Reservation) -> Result<(), Stop> {
        let call = self.own_call();
        match self.store.known(name.order()) {
            Known::Running => return Ok(()),
            Known::Order(order) => {
                // One that is being cancelled gives its units back itself.
                let own = order.reservation() == name && order.state() != State::Cancelled;
                if own || order.state() == State::Pending {
                    return Ok(());
                }
                progress.change().await?;
                // No attempt ever uses this name again.
                self.release(&call, name).await?;
            }
            Known::Nothing => {
                progress.change().await?;
                let Some(attempt) = self.store.claim(name.order()) else { return Ok(()) };
                self.give_back(&call, name, true, attempt).await?;
            }
        }
        tracing::warn!(reservation = %name, "units that were sold for no order are given back");
        Ok(())
    }

    /// Sells the units of placed orders again, from the latest to the first.
    async fn resell(&self, progress: &mut Progress) -> Result<(), Stop> {
        while let Some(before) = progress.resell {
            let orders = self.store.made_before(before, BATCH);
            if orders.is_empty() {
                progress.resell = None;
            }
            for (sequence, order) in orders {
                match order.state() {
                    // Inventory may have confirmed it just before it died: what becomes of it will be known soon.
                    State::Pending => return Ok(()),
                    State::Placed => {
                        progress.change().await?;
                        self.sell_again(&order).await?;
                    }
                    State::Shipped | State::Cancelling | State::Cancelled => {}
                }
                progress.resell = Some(sequence);
            }
        }
        Ok(())
    }

    /// Sees to it that the units of a placed order are sold under its name.
    async fn sell_again(&self, order: &Order) -> Result<(), Status> {
        let (id, name, call) = (order.id(), order.reservation(), self.own_call());
        // Who cancels it now gives the units back afterwards.
        let Some(turn) = self.store.cancel_turn(id) else { return Ok(()) };
        let _turn = turn.lock().await;
        if self.store.get(id).is_none_or(|order| order.state() != State::Placed) {
            return Ok(());
        }
        let lines = order.content().reservation_lines();
        let reserved = self.inventory.reserve_stock(child(&call, upstream::reservation(lines, name)));
        let why = match upstream::reply("inventory", &call, reserved).await {
            Ok(reply) if reply.state() == inventory::ReservationState::Confirmed => return Ok(()),
            Ok(_) => {
                let request =
                    inventory::ConfirmReservationRequest { order_id: name.to_string(), ..Default::default() };
                let confirmed = self.inventory.confirm_reservation(child(&call, request));
                upstream::reply("inventory", &call, confirmed).await?;
                tracing::warn!(order = %id, "inventory was started anew: the units of an order are sold again");
                return Ok(());
            }
            Err(Failure::Refused(
                Reason::OutOfStock
                | Reason::UnknownSku
                | Reason::OrderIdConflict
                | Reason::ReservationReleased,
                refusal,
            )) => refusal,
            // Among them one that expired before it could be confirmed: once it is forgotten it can be made anew.
            Err(failure) => return Err(failure.into()),
        };
        tracing::warn!(order = %id, why = why.message(), "an order has lost its units and is cancelled");
        // Refused when it was cancelled in the meantime; then it has no units either.
        drop(self.store.change(id, |order| order.lose(now(), why.message())));
        Ok(())
    }

    /// What the reconciler's calls carry.
    fn own_call(&self) -> Extensions {
        let mut call = Extensions::new();
        call.insert(Deadline::after(self.release_timeout));
        call
    }
}

impl Progress {
    /// Counts a change, and lets others get their turn: a call within the process never waits.
    async fn change(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Enough)?;
        tokio::task::yield_now().await;
        Ok(())
    }
}
