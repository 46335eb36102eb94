//! Many threads at once, each with a runtime of its own, as the server has them.

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::Semaphore;

use super::*;

const THREADS: u64 = 8;

/// Runs one future per thread, all begun at the same moment, and returns what they return.
fn together<T, F>(threads: u64, work: impl Fn(u64) -> F + Sync) -> Vec<T>
where
    T: Send,
    F: Future<Output = T>,
{
    let begin = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        let run = |n| {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                begin.wait();
                runtime.block_on(work(n))
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Numbers that look random and are the same on every run (Marsaglia's xorshift64).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, n: u64) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n) as i32
    }
}

const BOOKS: i32 = 5;
const STOCK: i32 = 30;

/// Mixes calls on few books and partly shared order ids, and checks the books of each SKU on the way. Returns the
/// order ids that were ever reserved.
async fn trade(shop: &Shop, thread: u64, calls: u32) -> Vec<String> {
    let mut dice = Dice::new(thread);
    let mut orders = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for n in 0..calls {
        let shared = format!("shared-{}", dice.below(40));
        let at = dice.below(open.len() as u64 + 2) as usize;
        match dice.below(8) {
            0..=2 => {
                let order = if dice.below(3) == 0 { shared } else { format!("own-{thread}-{n}") };
                let wanted: Vec<_> =
                    (0..=dice.below(3)).map(|_| (dice.below(BOOKS as u64) + 1, dice.below(4) + 1)).collect();
                match shop.reserve(&order, &wanted).await {
                    Ok(_) => {
                        orders.push(order.clone());
                        open.push(order);
                    }
                    Err(refused) => {
                        let reason = Reason::of(&refused);
                        let closed = [Reason::ReservationExpired, Reason::ReservationReleased];
                        let usual = [Reason::OutOfStock, Reason::OrderIdConflict];
                        assert!(usual.contains(&reason) || closed.contains(&reason), "{refused:?}");
                    }
                }
            }
            3 => drop(shop.confirm(open.get(at).unwrap_or(&shared)).await),
            4..=6 => {
                let order = if at < open.len() { open.swap_remove(at) } else { shared };
                drop(shop.release(&order).await);
            }
            _ => {
                let (in_stock, reserved, sold) = shop.stock(dice.below(BOOKS as u64) + 1).await;
                assert!(in_stock >= 0 && reserved >= 0 && sold >= 0);
                assert_eq!(i64::from(in_stock + reserved) + sold, i64::from(STOCK));
            }
        }
    }
    orders.sort();
    orders.dedup();
    orders
}

fn small_shop(reservation_ttl: Duration) -> Shop {
    let shop = shop_with(|c| c.reservation_ttl = reservation_ttl);
    block_on(async {
        for id in 1..=BOOKS {
            shop.leave(id, STOCK).await;
        }
    });
    shop
}

#[test]
fn the_books_balance_whatever_races() {
    let shop = small_shop(Duration::from_secs(3600));
    let mut orders = together(THREADS, |n| trade(&shop, n, 20_000)).concat();
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 10_000, "most calls did something");
    block_on(async {
        let mut expected: HashMap<String, (i32, i64)> = HashMap::new();
        let mut lines = 0;
        for order in &orders {
            let reservation = shop.reservation(order).await.unwrap();
            lines += reservation.lines.len();
            for line in &reservation.lines {
                let entry = expected.entry(line.sku.clone()).or_default();
                match reservation.state() {
                    ReservationState::Held => entry.0 += line.quantity,
                    ReservationState::Confirmed => entry.1 += i64::from(line.quantity),
                    _ => {}
                }
            }
        }
        assert_eq!((shop.0.reservations(), shop.0.reservation_lines()), (orders.len(), lines));
        for id in 1..=BOOKS {
            let (reserved, sold) = expected.get(&sku(id)).copied().unwrap_or_default();
            assert_eq!(shop.stock(id).await, (STOCK - reserved - sold as i32, reserved, sold));
        }
        for order in &orders {
            shop.release(order).await.unwrap();
        }
        for id in 1..=BOOKS {
            assert_eq!(shop.stock(id).await, (STOCK, 0, 0));
        }
    });
}

/// Says that a thread is at its end, also when it panics.
struct Ended<'a>(&'a Semaphore);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[test]
fn units_come_back_once_whether_by_expiry_or_release() {
    // So short that calls and expiries meet all the time.
    let shop = small_shop(Duration::from_micros(300));
    let done = Semaphore::new(0);
    let orders = together(THREADS + 1, |n| {
        let (shop, done) = (&shop, &done);
        async move {
            if n == 0 {
                tokio::select! {
                    () = shop.0.clone().expire() => {},
                    all = done.acquire_many(THREADS as u32) => drop(all.unwrap()),
                }
                return Vec::new();
            }
            let _ended = Ended(done);
            trade(shop, n, 10_000).await
        }
    })
    .concat();
    block_on(async {
        for order in &orders {
            // Those that are forgotten have given their units back.
            let _ = shop.release(order).await;
        }
        for id in 1..=BOOKS {
            assert_eq!(shop.stock(id).await, (STOCK, 0, 0));
        }
    });
}

#[test]
fn the_same_order_id_takes_stock_once() {
    const ROUNDS: i32 = 500;
    let shop = shop();
    let replies = together(THREADS, |_| async {
        let mut replies = Vec::new();
        for n in 0..ROUNDS {
            replies.push(shop.reserve(&format!("order-{n}"), &[(1, 2), (2, 1)]).await.unwrap());
        }
        replies
    });
    assert!(replies.windows(2).all(|pair| pair[0] == pair[1]));
    let full = proto::seed::STOCK;
    assert_eq!(block_on(shop.stock(1)), (full - 2 * ROUNDS, 2 * ROUNDS, 0));
    assert_eq!(shop.0.reservations(), ROUNDS as usize);
}

#[test]
fn of_different_lines_for_one_order_id_one_wins() {
    const ROUNDS: i32 = 500;
    let shop = shop();
    let won = together(4, |thread| {
        let shop = &shop;
        async move {
            let mut won = 0;
            for n in 0..ROUNDS {
                match shop.reserve(&format!("order-{n}"), &[(1, thread as i32 + 1)]).await {
                    Ok(_) => won += thread as i32 + 1,
                    Err(refused) => assert_eq!(Reason::of(&refused), Reason::OrderIdConflict),
                }
            }
            won
        }
    });
    let held: i32 = won.into_iter().sum();
    assert_eq!(block_on(shop.stock(1)), (proto::seed::STOCK - held, held, 0));
    assert_eq!(shop.0.reservations(), ROUNDS as usize);
}

#[test]
fn a_reservation_that_fails_takes_nothing_even_for_a_moment() {
    const BOOKS: i32 = 500;
    let shop = shop_with(|c| c.books = BOOKS);
    block_on(async {
        shop.leave(1, 1).await;
        shop.leave(BOOKS, 0).await;
    });
    let all: Vec<_> = (1..=BOOKS).map(|id| (id, 1)).collect();
    let done = AtomicBool::new(false);
    together(4, |thread| {
        let (shop, all, done) = (&shop, &all, &done);
        async move {
            if thread == 0 {
                for n in 0..10_000 {
                    let order = format!("order-{n}");
                    let result = shop.reserve(&order, &[(1, 1)]).await;
                    done.store(result.is_err(), Relaxed);
                    result.unwrap();
                    shop.release(&order).await.unwrap();
                }
                done.store(true, Relaxed);
            }
            while !done.load(Relaxed) {
                // Of the last book there is never any, so the others stay where they are.
                let refused = shop.reserve(&format!("never-{thread}"), all).await;
                assert_eq!(reason(refused), Reason::OutOfStock);
            }
        }
    });
}

#[test]
fn registering_the_same_books_at_once_adds_them_once() {
    let shop = shop_with(|c| {
        c.books = 0;
        c.max_items = 2_000;
    });
    together(4, |_| async {
        for first in (1..=2_000).step_by(100) {
            let books =
                (first..first + 100).map(|book_id| pb::BookKey { book_id, sku: sku(book_id) }).collect();
            shop.0.register_books(Request::new(pb::RegisterBooksRequest { books })).await.unwrap();
            shop.reserve("a", &[(first, 1)]).await.unwrap_err();
        }
    });
    assert_eq!(block_on(shop.stock(2_000)), (0, 0, 0));
}

#[test]
fn the_first_to_touch_a_seeded_book_are_all_counted() {
    let shop = shop_with(|c| c.books = 1_000_000);
    together(4, |thread| {
        let shop = &shop;
        async move {
            for book in (1..=1_000_000).step_by(5_000) {
                shop.reserve(&format!("{thread}-{book}"), &[(book, 1)]).await.unwrap();
                let (in_stock, reserved, _) = shop.stock(book).await;
                assert_eq!(in_stock + reserved, proto::seed::STOCK);
            }
        }
    });
    for book in (1..=1_000_000).step_by(5_000) {
        assert_eq!(block_on(shop.stock(book)), (proto::seed::STOCK - 4, 4, 0));
    }
}
