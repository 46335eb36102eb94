//! Slots, attempts and watches.

use std::time::UNIX_EPOCH;

use super::*;
use crate::domain::{Currency, Draft, Money, Offer};

fn order(request_id: &str) -> Order {
    let draft = Draft::new(request_id, vec![("9790000000018".to_owned(), 1)], None).unwrap();
    let price = Money { minor: 1, currency: Currency::EUR };
    let content = draft.price(|_| Some(Offer { book_id: 1, title: "T".to_owned(), price })).unwrap();
    Order::pending(draft.order_id(), Arc::new(content), draft.order_id().reservation(1), UNIX_EPOCH)
}

fn begin(store: &Arc<Store>, order: &Order) -> Attempt {
    match store.begin(order.id(), order.content().lines.len()) {
        Begun::New(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

fn place(store: &Arc<Store>, order: &Order) {
    let mut attempt = begin(store, order);
    attempt.record(order.clone());
    attempt.finish(|order| order.place(UNIX_EPOCH)).unwrap().unwrap();
}

#[test]
fn an_attempt_given_up_leaves_nothing() {
    let store = Arc::new(Store::new(1, 9));
    let order = order("a");
    for record in [false, true, false, true] {
        let attempt = begin(&store, &order);
        assert!(matches!(store.begin(order.id(), 1), Begun::Running));
        if record {
            attempt.record(order.clone());
            assert_eq!(store.list(u64::MAX, 9).len(), 1);
        }
        assert!(matches!(store.begin(order.id(), 1), Begun::Running));
        assert_eq!(store.get(order.id()).is_some(), record);
        drop(attempt);
        assert!(store.get(order.id()).is_none());
        assert!(store.list(u64::MAX, 9).is_empty());
    }
    assert_eq!(store.slots.len(), 0);
    assert_eq!((store.taken.used(), store.lines.used()), (0, 0));
}

#[test]
fn an_order_recorded_twice_is_listed_once() {
    let store = Arc::new(Store::new(1, 9));
    let order = order("a");
    let mut attempt = begin(&store, &order);
    attempt.record(order.clone());
    attempt.record(order.clone());
    attempt.finish(|order| order.place(UNIX_EPOCH)).unwrap().unwrap();
    assert_eq!(store.list(u64::MAX, 9).len(), 1);
    assert!(matches!(store.begin(order.id(), 1), Begun::Placed(_)));
}

#[test]
fn running_attempts_count_as_orders() {
    let store = Arc::new(Store::new(2, 9));
    place(&store, &order("a"));
    let running = begin(&store, &order("b"));
    assert!(matches!(store.begin(order("c").id(), 1), Begun::Full));
    drop(running);
    place(&store, &order("c"));
    assert!(matches!(store.begin(order("b").id(), 1), Begun::Full));
    assert!(matches!(store.begin(order("a").id(), 1), Begun::Placed(_)));
}

#[test]
fn lines_of_orders_and_of_running_attempts_have_a_bound() {
    let store = Arc::new(Store::new(9, 4));
    let used = || (store.taken.used(), store.lines.used());
    store.seed(order("a"));
    place(&store, &order("b"));
    assert_eq!(used(), (2, 2));
    assert!(matches!(store.begin(order("c").id(), 3), Begun::Full));
    assert_eq!(used(), (2, 2));
    let Begun::New(running) = store.begin(order("c").id(), 2) else { panic!() };
    assert_eq!(used(), (3, 4));
    assert!(matches!(store.begin(order("d").id(), 1), Begun::Full));
    assert!(matches!(store.begin(order("b").id(), 9), Begun::Placed(_)));
    drop(running);
    assert_eq!(used(), (2, 2));
    place(&store, &order("d"));
    assert_eq!(used(), (3, 3));
}

#[tokio::test]
async fn a_watch_is_forgotten_with_its_last_watcher() {
    let store = Arc::new(Store::new(9, 9));
    let order = order("a");
    place(&store, &order);
    let watched = || match &*store.slots.get(&order.id()).unwrap() {
        Slot::Filled(filled) => filled.changed.is_some(),
        Slot::Running => false,
    };
    let mut first = store.watch(order.id()).unwrap();
    let mut second = store.watch(order.id()).unwrap();
    assert!(first.next().await.is_some());
    assert!(second.next().await.is_some());
    drop(first);
    assert!(watched());
    drop(second);
    assert!(!watched());
}

#[tokio::test]
async fn a_watch_ends_with_the_attempt() {
    let store = Arc::new(Store::new(9, 9));
    let order = order("a");
    let attempt = begin(&store, &order);
    assert!(store.watch(order.id()).is_none());
    attempt.record(order.clone());
    let mut watch = store.watch(order.id()).unwrap();
    assert!(watch.next().await.is_some());
    drop(attempt);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn an_attempt_can_forget_its_record_and_go_on() {
    let store = Arc::new(Store::new(1, 9));
    let order = order("a");
    let mut attempt = begin(&store, &order);
    attempt.forget();
    attempt.record(order.clone());
    let mut watch = store.watch(order.id()).unwrap();
    assert!(watch.next().await.is_some());
    attempt.forget();
    assert!(watch.next().await.is_none());
    assert!(store.get(order.id()).is_none());
    assert!(store.list(u64::MAX, 9).is_empty());
    assert!(matches!(store.begin(order.id(), 1), Begun::Running));
    attempt.record(order.clone());
    attempt.finish(|order| order.place(UNIX_EPOCH)).unwrap().unwrap();
    drop(attempt);
    assert_eq!(store.list(u64::MAX, 9).len(), 1);
}
