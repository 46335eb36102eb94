//! The store under schedules that a model chooses (shuttle): at every lock and atomic of [`crate::sync`] it decides which
//! thread goes on. A schedule in which nobody can go on is a deadlock, and fails.
//!
//! What is modelled: the ledgers' and items' locks, the lock on the number of books, the watchers, the time at which
//! something is due, and the concurrent map as one lock ([`crate::sync`]). What is not: memory orders weaker than
//! sequential (all atomics here count or hint), the quotas, which take one step each, and the table of items, whose
//! slots are written once under a lock. There are two shards of reservations instead of 128, so that they are shared.
//!
//! `BOOKSTORE_INTERLEAVINGS` is the number of schedules of each kind for each test, `SHUTTLE_RANDOM_SEED` what they are
//! chosen by. A failure prints its schedule, for `shuttle::replay`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use futures_util::{FutureExt, Stream};
use shuttle::rand::Rng;
use shuttle::thread;

use super::*;

const BOOKS: i32 = 3;
const UNITS: u32 = 5;
const TTL: Duration = Duration::from_secs(10);
/// In the tests of trade, the one book whose units are adjusted.
const ADJUSTED: i32 = 3;

fn sku(book_id: i32) -> Sku {
    Sku::parse(&proto::seed::sku(book_id)).unwrap()
}

fn order(n: u32) -> OrderId {
    OrderId::parse(format!("order-{n}")).unwrap()
}

fn store(reservations: usize) -> Arc<Store> {
    let limits = Limits { ttl: TTL, reservations, lines: 100, items: 10 };
    Arc::new(Store::new(limits, BOOKS.unsigned_abs(), UNITS))
}

/// Runs `run` under many schedules: random ones, and ones with few switches at chosen depths, which find what needs a
/// thread to be held up for long.
fn explore(what: &str, run: impl Fn() + Send + Sync + Clone + 'static) {
    let schedules = std::env::var("BOOKSTORE_INTERLEAVINGS").map_or(2_000, |n| n.parse().unwrap());
    paused(|| {
        shuttle::check_random(run.clone(), schedules);
        for depth in [2, 4] {
            shuttle::check_pct(run.clone(), schedules / 2, depth);
        }
    });
    println!("{what}: {} schedules, no deadlock, books balanced", 2 * schedules);
}

/// With a clock that [`advance`] alone moves.
fn paused(work: impl FnOnce()) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _entered = runtime.enter();
    work();
}

fn advance(time: Duration) {
    // It moves the clock first and then lets other tasks run, of which there are none.
    let _ = tokio::time::advance(time).now_or_never();
}

/// Runs the threads to their ends.
fn together(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// One call, chosen by the model.
fn call(store: &Store, delivered: &AtomicUsize) {
    let mut dice = shuttle::rand::thread_rng();
    let name = || Name::Order(order(shuttle::rand::thread_rng().gen_range(0..4)));
    match dice.gen_range(0..10) {
        0..=3 => {
            let mut lines: Vec<_> = (0..dice.gen_range(1..4))
                .map(|_| Line { sku: sku(dice.gen_range(1..=BOOKS)), quantity: dice.gen_range(1..4) })
                .collect();
            crate::domain::normalise(&mut lines).unwrap();
            let _ = store.reserve(order(dice.gen_range(0..4)), &lines);
        }
        4 => drop(store.confirm(&name())),
        5 => drop(store.release(&name())),
        6 => {
            if store.adjust(sku(ADJUSTED), 2).is_ok() {
                delivered.fetch_add(2, Relaxed);
            }
        }
        7 => {
            advance(TTL / 2);
            store.collect(usize::MAX);
        }
        8 => drop(store.reservation(&name())),
        _ => {
            for id in (1..=BOOKS).filter(|id| *id != ADJUSTED) {
                assert_eq!(received(store, id), u64::from(UNITS));
            }
        }
    }
}

fn received(store: &Store, book_id: i32) -> u64 {
    let seen = store.read(store.find_book(book_id).unwrap()).unwrap();
    u64::from(seen.in_stock) + u64::from(seen.reserved) + seen.sold
}

/// Whether the units that are reserved and sold are those of the reservations, and none came or went.
fn balanced(store: &Store, delivered: usize) {
    store.collect(usize::MAX);
    let mut reserved = [0; BOOKS as usize + 1];
    let mut sold = [0; BOOKS as usize + 1];
    for n in 0..4 {
        let Ok(reservation) = store.reservation(&Name::Order(order(n))) else { continue };
        for line in reservation.lines {
            let book = (1..=BOOKS).find(|id| sku(*id) == line.sku).unwrap() as usize;
            match reservation.receipt.state {
                State::Held => reserved[book] += line.quantity,
                State::Confirmed => sold[book] += u64::from(line.quantity),
                State::Released | State::Expired => {}
            }
        }
    }
    for id in 1..=BOOKS {
        let seen = store.read(store.find_book(id).unwrap()).unwrap();
        assert_eq!((seen.reserved, seen.sold), (reserved[id as usize], sold[id as usize]), "book {id}");
        let more = if id == ADJUSTED { delivered as u64 } else { 0 };
        assert_eq!(received(store, id), u64::from(UNITS) + more, "book {id}");
    }
}

#[test]
fn no_schedule_of_trades_deadlocks_or_loses_units() {
    explore("reserve, confirm, release, expire, adjust, read", || {
        // So few that calls meet the limit too, and collect what is due under it.
        let store = store(3);
        let delivered = Arc::new(AtomicUsize::new(0));
        let trade = || -> Box<dyn FnOnce() + Send> {
            let (store, delivered) = (store.clone(), delivered.clone());
            Box::new(move || (0..3).for_each(|_| call(&store, &delivered)))
        };
        together(vec![trade(), trade(), trade()]);
        balanced(&store, delivered.load(Relaxed));
    });
}

#[test]
fn no_schedule_of_watchers_deadlocks_or_misses_the_last_change() {
    explore("watch, trade, leave", || {
        let store = store(10);
        let trade = || -> Box<dyn FnOnce() + Send> {
            let store = store.clone();
            Box::new(move || (0..2).for_each(|_| call(&store, &AtomicUsize::new(0))))
        };
        let passing = store.clone();
        let staying = store.clone();
        let watch = thread::spawn(move || {
            let mut watch = staying.watch(vec![0, 1]);
            let first = seen(&mut watch);
            (watch, first)
        });
        together(vec![trade(), trade(), Box::new(move || drop(seen(&mut passing.watch(vec![1, 2]))))]);
        let (mut watch, mut last) = watch.join().unwrap();
        last.extend(seen(&mut watch));
        for index in [0, 1] {
            let now = store.read(index).unwrap();
            let said = last.iter().rfind(|seen| seen.sku == now.sku);
            assert_eq!(said, Some(&now));
        }
        drop(watch);
        assert_eq!(store.watchers(), 0);
    });
}

/// What a watch has to say now.
fn seen(watch: &mut Watch) -> Vec<Seen> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let next = || match std::pin::Pin::new(&mut *watch).poll_next(&mut context) {
        Poll::Ready(seen) => seen,
        Poll::Pending => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn no_schedule_of_newcomers_deadlocks_or_adds_a_book_twice() {
    explore("register, reserve", || {
        let store = store(10);
        let register = || -> Box<dyn FnOnce() + Send> {
            let store = store.clone();
            Box::new(move || {
                store.register(&[(4, sku(4)), (5, sku(5))]).unwrap();
                store.adjust(sku(5), 1).unwrap();
            })
        };
        let early = store.clone();
        let reserve = move || drop(early.reserve(order(1), &[Line { sku: sku(5), quantity: 1 }]));
        together(vec![register(), register(), Box::new(reserve)]);
        assert_eq!((received(&store, 4), received(&store, 5)), (0, 2));
        assert_eq!(store.find_book(4).unwrap().max(store.find_book(5).unwrap()), 4);
    });
}

/// Two threads that move units of the same two books, as the order of these lines says.
fn two_movers(one: [i32; 2], other: [i32; 2]) {
    let store = store(10);
    let mover = |books: [i32; 2]| -> Box<dyn FnOnce() + Send> {
        let lines = books.map(|id| Line { sku: sku(id), quantity: 1 });
        let (store, portions) = (store.clone(), store.items.portions(&lines).unwrap());
        Box::new(move || store.items.shift(&portions, Movement::Hold).unwrap())
    };
    together(vec![mover(one), mover(other)]);
}

#[test]
fn two_who_lock_in_the_order_of_skus_never_wait_for_each_other() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    shuttle::check_dfs(
        || {
            TRIED.fetch_add(1, Relaxed);
            two_movers([1, 2], [1, 2]);
        },
        None,
    );
    println!("two movers of two books: all {} schedules, no deadlock", TRIED.load(Relaxed));
}

/// That the model would find what the order of SKUs prevents.
#[test]
#[should_panic(expected = "deadlock")]
fn two_who_lock_in_opposite_orders_do() {
    shuttle::check_dfs(|| two_movers([1, 2], [2, 1]), None);
}
