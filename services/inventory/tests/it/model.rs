//! Any sequence of calls does what a plain model, one call at a time, says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tokio::time::sleep;

use super::*;

const BOOKS: i32 = 3;
const STOCK: i32 = 12;

/// Time passes in whole seconds, so that nothing is due near the moment of a call: expiries are 0.3 s after one, and
/// forgetting is 0.3 s or 0.6 s after one.
const HELD_MS: u64 = 10_300;

#[derive(Debug, Clone)]
enum Call {
    Reserve(u8, Vec<(i32, i32)>),
    Confirm(u8),
    Release(u8),
    Adjust(i32, i32),
    Wait(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let order = 0..5u8;
    let wanted = prop::collection::vec((1..=BOOKS, 1..6), 1..4);
    prop_oneof![
        4 => (order.clone(), wanted).prop_map(|(order, wanted)| Call::Reserve(order, wanted)),
        2 => order.clone().prop_map(Call::Confirm),
        2 => order.prop_map(Call::Release),
        1 => (1..=BOOKS, -4..4).prop_map(|(id, n)| Call::Adjust(id, if n < 0 { n } else { n + 1 })),
        2 => (1..15u64).prop_map(Call::Wait),
    ]
}

#[derive(Debug, Clone)]
struct Held {
    lines: BTreeMap<i32, i32>,
    state: ReservationState,
    /// When it expires or is forgotten, in milliseconds.
    due: u64,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    stock: BTreeMap<i32, Units>,
    orders: BTreeMap<u8, Held>,
}

impl Model {
    fn reserve(&mut self, order: u8, wanted: &[(i32, i32)]) -> Result<ReservationState, Reason> {
        let mut lines = BTreeMap::new();
        for (id, n) in wanted {
            *lines.entry(*id).or_default() += n;
        }
        if let Some(known) = self.orders.get(&order) {
            return match known.state {
                _ if known.lines != lines => Err(Reason::OrderIdConflict),
                ReservationState::Released => Err(Reason::ReservationReleased),
                ReservationState::Expired => Err(Reason::ReservationExpired),
                state => Ok(state),
            };
        }
        if lines.iter().any(|(id, n)| self.stock[id].0 < *n) {
            return Err(Reason::OutOfStock);
        }
        self.apply(&lines, |(in_stock, reserved, _), n| {
            *in_stock -= n;
            *reserved += n;
        });
        let state = ReservationState::Held;
        self.orders.insert(order, Held { lines, state, due: self.now + HELD_MS });
        Ok(state)
    }

    fn confirm(&mut self, order: u8) -> Result<ReservationState, Reason> {
        let held = self.orders.get_mut(&order).ok_or(Reason::ReservationNotFound)?;
        match held.state {
            ReservationState::Held => {
                held.state = ReservationState::Confirmed;
                held.due = u64::MAX;
                let lines = held.lines.clone();
                self.apply(&lines, |(_, reserved, sold), n| {
                    *reserved -= n;
                    *sold += i64::from(n);
                });
                Ok(ReservationState::Confirmed)
            }
            ReservationState::Confirmed => Ok(ReservationState::Confirmed),
            ReservationState::Expired => Err(Reason::ReservationExpired),
            _ => Err(Reason::ReservationReleased),
        }
    }

    fn release(&mut self, order: u8) -> Result<ReservationState, Reason> {
        let now = self.now;
        let held = self.orders.get_mut(&order).ok_or(Reason::ReservationNotFound)?;
        let was = held.state;
        if !matches!(was, ReservationState::Held | ReservationState::Confirmed) {
            return Ok(was);
        }
        (held.state, held.due) = (ReservationState::Released, now + HELD_MS);
        let lines = held.lines.clone();
        self.apply(&lines, |(in_stock, reserved, sold), n| {
            *in_stock += n;
            match was {
                ReservationState::Held => *reserved -= n,
                _ => *sold -= i64::from(n),
            }
        });
        Ok(ReservationState::Released)
    }

    fn adjust(&mut self, id: i32, delta: i32) -> Result<Units, Reason> {
        let stock = self.stock.get_mut(&id).unwrap();
        if stock.0 + delta < 0 {
            return Err(Reason::OutOfStock);
        }
        stock.0 += delta;
        Ok(*stock)
    }

    fn wait(&mut self, seconds: u64) {
        self.now += seconds * 1_000;
        for order in self.orders.keys().copied().collect::<Vec<_>>() {
            let held = self.orders.get_mut(&order).unwrap();
            if held.due <= self.now && held.state == ReservationState::Held {
                held.state = ReservationState::Expired;
                held.due += HELD_MS;
                let lines = held.lines.clone();
                self.apply(&lines, |(in_stock, reserved, _), n| {
                    *in_stock += n;
                    *reserved -= n;
                });
            }
            if self.orders[&order].due <= self.now {
                self.orders.remove(&order);
            }
        }
    }

    fn apply(&mut self, lines: &BTreeMap<i32, i32>, change: impl Fn(&mut Units, i32)) {
        for (id, n) in lines {
            change(self.stock.get_mut(id).unwrap(), *n);
        }
    }
}

async fn check(calls: Vec<Call>, expiring: bool) {
    let shop = shop_with(|c| {
        c.books = BOOKS;
        c.reservation_ttl = Duration::from_millis(HELD_MS);
    });
    if expiring {
        tokio::spawn(shop.0.clone().expire());
    }
    let mut model = Model::default();
    for id in 1..=BOOKS {
        shop.leave(id, STOCK).await;
        model.stock.insert(id, (STOCK, 0, 0));
    }
    for call in calls {
        let name = |order: &u8| format!("order-{order}");
        match &call {
            Call::Reserve(order, wanted) => {
                let real = shop.reserve(&name(order), wanted).await;
                let real = real.map(|r| r.state()).map_err(|s| Reason::of(&s));
                assert_eq!(real, model.reserve(*order, wanted), "{call:?}");
            }
            Call::Confirm(order) => {
                let real = shop.confirm(&name(order)).await.map(|r| r.state()).map_err(|s| Reason::of(&s));
                assert_eq!(real, model.confirm(*order), "{call:?}");
            }
            Call::Release(order) => {
                let real = shop.release(&name(order)).await.map(|r| r.state()).map_err(|s| Reason::of(&s));
                assert_eq!(real, model.release(*order), "{call:?}");
            }
            Call::Adjust(id, delta) => {
                let real = shop.adjust(*id, *delta).await.map_err(|s| Reason::of(&s));
                let expected = model.adjust(*id, *delta);
                match (expiring, real, expected) {
                    // What is due may not be back yet when the call needs none of it.
                    (false, Ok(real), Ok(expected)) => {
                        assert_eq!(total(real), total(expected), "{call:?}");
                    }
                    (_, real, expected) => assert_eq!(real, expected, "{call:?}"),
                }
            }
            Call::Wait(seconds) => {
                sleep(Duration::from_secs(*seconds)).await;
                model.wait(*seconds);
            }
        }
        for id in 1..=BOOKS {
            let (real, expected) = (shop.stock(id).await, model.stock[&id]);
            assert_eq!(total(real), total(expected), "{call:?}");
            if expiring {
                assert_eq!(real, expected, "{call:?}");
            }
        }
        for order in 0..5 {
            let real = shop.reservation(&name(&order)).await.ok().map(|r| r.state());
            assert_eq!(real, model.orders.get(&order).map(|held| held.state), "{call:?}");
        }
    }
    assert!(!expiring || shop.0.reservations() == model.orders.len());
}

fn total((in_stock, reserved, sold): Units) -> i64 {
    i64::from(in_stock) + i64::from(reserved) + sold
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_calls_do_what_the_model_says(calls in prop::collection::vec(call(), 1..60), expiring: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(calls, expiring));
    }
}
