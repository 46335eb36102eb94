//! What happens to hosts and to the network between them.

use std::time::Duration;

use turmoil::Sim;

use super::world::SERVICES;
use crate::dice::Dice;

/// One thing that goes wrong for a while.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The host dies with all that it knows, and is started anew.
    Crash(&'static str),
    /// Nothing passes between the two, in both directions or in one.
    Partition(&'static str, &'static str, bool),
    /// What is sent between the two waits until the end.
    Hold(&'static str, &'static str),
    /// So many in a hundred of the messages between the two are lost, and with each its connection.
    Lose(&'static str, &'static str, u64),
    /// Messages between the two take so many milliseconds.
    Slow(&'static str, &'static str, u64),
}

/// A fault with its beginning and its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) fault: Fault,
    pub(super) from: Duration,
    pub(super) until: Duration,
    begun: bool,
    ended: bool,
}

/// The links over which calls go.
fn link(dice: &mut Dice, shoppers: &[&'static str]) -> (&'static str, &'static str) {
    let shopper = *dice.one(shoppers);
    *dice.one(&[
        ("ordering", "inventory"),
        ("ordering", "inventory"),
        ("ordering", "catalog"),
        (shopper, "ordering"),
    ])
}

/// The faults of one run: some at the same time, all over by `end`.
pub(super) fn plan(dice: &mut Dice, shoppers: &[&'static str], end: Duration) -> Vec<Planned> {
    (0..dice.between(1, 6))
        .map(|_| {
            let (a, b) = link(dice, shoppers);
            let fault = match dice.below(6) {
                0 | 1 => Fault::Crash(dice.one::<&str>(&SERVICES)),
                2 => Fault::Partition(a, b, dice.percent(50)),
                3 => Fault::Hold(a, b),
                4 => Fault::Lose(a, b, 1 + dice.below(20)),
                _ => Fault::Slow(a, b, 200 + dice.below(1_500)),
            };
            let from = Duration::from_millis(dice.below(end.as_millis() as u64 * 3 / 4));
            let until = (from + Duration::from_millis(200 + dice.below(8_000))).min(end);
            Planned { fault, from, until, begun: false, ended: false }
        })
        .collect()
}

impl Planned {
    /// Begins or ends it when its time has come. What it did, in words.
    pub(super) fn apply(&mut self, sim: &mut Sim) -> Option<String> {
        let now = sim.elapsed();
        if !self.begun && now >= self.from {
            self.begun = true;
            self.begin(sim);
            return Some(format!("begins: {:?}", self.fault));
        }
        if self.begun && !self.ended && now >= self.until {
            self.ended = true;
            self.end(sim);
            return Some(format!("ends: {:?}", self.fault));
        }
        None
    }

    /// The host that it takes down.
    pub(super) fn crashes(&self) -> Option<&'static str> {
        match self.fault {
            Fault::Crash(host) => Some(host),
            _ => None,
        }
    }

    fn begin(&self, sim: &mut Sim) {
        match self.fault {
            Fault::Crash(host) => sim.crash(host),
            Fault::Partition(a, b, true) => sim.partition(a, b),
            Fault::Partition(a, b, false) => sim.partition_oneway(a, b),
            Fault::Hold(a, b) => sim.hold(a, b),
            Fault::Lose(a, b, percent) => sim.set_link_fail_rate(a, b, percent as f64 / 100.0),
            Fault::Slow(a, b, ms) => sim.set_link_latency(a, b, Duration::from_millis(ms)),
        }
    }

    fn end(&self, sim: &mut Sim) {
        match self.fault {
            Fault::Crash(host) => sim.bounce(host),
            Fault::Partition(a, b, _) => sim.repair(a, b),
            Fault::Hold(a, b) => sim.release(a, b),
            Fault::Lose(a, b, _) => sim.set_link_fail_rate(a, b, 0.0),
            Fault::Slow(a, b, _) => sim.set_link_latency(a, b, Duration::from_millis(20)),
        }
    }
}
