//! Going through all reservations, a few at a time.

use super::{BATCH, Reservation, Store};
use crate::domain::{OrderId, ReservationId, State};

/// Places that [`Store::list`] looks at in one call: a fraction of a millisecond.
const LOOKED_AT: usize = 2_000;

/// Where a reservation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    shard: u32,
    slot: u32,
}

impl From<Place> for u64 {
    fn from(place: Place) -> Self {
        u64::from(place.shard) << 32 | u64::from(place.slot)
    }
}

impl From<u64> for Place {
    fn from(number: u64) -> Self {
        Self { shard: (number >> 32) as u32, slot: number as u32 }
    }
}

impl Store {
    /// Some of the reservations that are wanted, from this place on, without their lines: at most `size`, and no more
    /// than can be found without holding calls up for long. With the place to go on from, if there may be more.
    ///
    /// Reservations keep their places, so who goes on until the end meets each one that stays once.
    pub(crate) fn list(
        &self,
        wanted: impl Fn(&OrderId, State) -> bool,
        from: Place,
        size: usize,
    ) -> (Vec<Reservation>, Option<Place>) {
        let mut found = Vec::new();
        let mut left = LOOKED_AT;
        let Place { mut shard, mut slot } = from;
        while let Some(here) = self.shards.get(shard as usize) {
            if left == 0 || found.len() == size {
                return (found, Some(Place { shard, slot }));
            }
            let done = self.open_shard(here, |ledger, now| {
                let end = slot.saturating_add(BATCH.min(left) as u32);
                while slot < end.min(ledger.places()) && found.len() < size {
                    while ledger.is_due(slot, now) {
                        self.update(ledger, slot, now);
                    }
                    if let Some((record, state)) = ledger.get(slot)
                        && wanted(&record.order_id, state)
                    {
                        let receipt = self.receipt(ReservationId::of(&record.order_id), record, state);
                        let order_id = record.order_id.clone();
                        found.push(Reservation { receipt, order_id, lines: Vec::new() });
                    }
                    slot += 1;
                    left -= 1;
                }
                slot >= ledger.places()
            });
            if done {
                (shard, slot) = (shard + 1, 0);
            }
        }
        (found, None)
    }
}
