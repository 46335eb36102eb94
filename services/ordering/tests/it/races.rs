//! Callers on many threads while the reconciler is at work, each thread with a runtime of its own, as the server has
//! them.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use ordering::Config;
use proto::inventory::v1::ReservationState;
use proto::{Reason, seed};
use tokio::sync::Semaphore;

use crate::shop::Shop;

const ORDERS: i32 = 300;
const CALLERS: usize = 4;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

/// Says that a thread is at its end, also when it panics.
struct Ended<'a>(&'a Semaphore);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[test]
fn orders_placed_while_units_of_a_killed_ordering_go_back_keep_their_own() {
    let killed = Shop::new();
    block_on(async {
        for n in 0..ORDERS {
            killed.place(&n.to_string(), &[(1, 1)]).await.unwrap();
        }
    });
    let config = Config {
        reconcile_interval: Duration::from_micros(1),
        release_timeout: Duration::from_secs(60),
        ..Config::default()
    };
    let shop = killed.kill_ordering_for(config);
    // So that others come between a decision and what it leads to.
    shop.script.slow.store(true, std::sync::atomic::Ordering::Relaxed);
    let (begin, ended) = (Barrier::new(CALLERS + 1), Semaphore::new(0));
    thread::scope(|scope| {
        let (shop, begin, ended) = (&shop, &begin, &ended);
        scope.spawn(move || {
            begin.wait();
            block_on(async {
                tokio::select! {
                    () = shop.ordering.clone().reconcile() => {}
                    all = ended.acquire_many(CALLERS as u32) => drop(all.unwrap()),
                }
            });
        });
        for caller in 0..CALLERS {
            scope.spawn(move || {
                let _ended = Ended(ended);
                begin.wait();
                block_on(async {
                    // In the order in which the reconciler comes along, and against it.
                    for n in 0..ORDERS {
                        let n = if caller % 2 == 0 { n } else { ORDERS - 1 - n };
                        while let Err(status) = shop.place(&n.to_string(), &[(1, 1)]).await {
                            assert_eq!(Reason::of(&status), Reason::RequestInProgress, "{status}");
                            tokio::task::yield_now().await;
                        }
                    }
                });
            });
        }
    });
    let made = block_on(shop.made());
    assert_eq!(made.len(), ORDERS as usize);
    let mut sold = BTreeMap::new();
    for (name, state) in shop.inventory.states() {
        assert!(
            matches!(state, ReservationState::Confirmed | ReservationState::Released),
            "{name} {state:?}"
        );
        if state == ReservationState::Confirmed {
            *sold.entry(name.split('.').next().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    assert!(made.iter().all(|id| sold.get(id) == Some(&1)), "{sold:?}");
    assert_eq!(shop.inventory.in_stock(1), seed::STOCK - ORDERS);
}
