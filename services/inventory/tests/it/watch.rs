//! Watching stock.

use std::pin::pin;

use futures_util::{FutureExt, StreamExt};
use proto::seed::STOCK;
use tonic::codegen::BoxStream;

use super::*;

struct Watching(BoxStream<pb::WatchStockResponse>);

impl Watching {
    /// The next message, or nothing when none is ready.
    fn now(&mut self) -> Option<(i32, Units)> {
        let stock = self.0.next().now_or_never()?.unwrap().unwrap().stock.unwrap();
        Some((stock.book_id, units(&stock)))
    }

    fn all(&mut self) -> Vec<(i32, Units)> {
        std::iter::from_fn(|| self.now()).collect()
    }
}

async fn watch(shop: &Shop, book_ids: &[i32], skus: &[String]) -> Result<Watching, Status> {
    let request = pb::WatchStockRequest { book_ids: book_ids.to_vec(), skus: skus.to_vec() };
    Ok(Watching(shop.0.watch_stock(Request::new(request)).await?.into_inner()))
}

#[track_caller]
fn refusal(result: Result<Watching, Status>) -> Result<(), Status> {
    result.map(|_| ())
}

#[tokio::test]
async fn first_come_the_values_then_the_changes() {
    let shop = shop();
    let mut watching = watch(&shop, &[3, 1], &[sku(2), sku(1)]).await.unwrap();
    let full = (STOCK, 0, 0);
    assert_eq!(watching.all(), [(3, full), (1, full), (2, full)]);
    shop.reserve("a", &[(1, 2), (4, 1)]).await.unwrap();
    assert_eq!(watching.all(), [(1, (STOCK - 2, 2, 0))]);
    shop.confirm("a").await.unwrap();
    assert_eq!(watching.all(), [(1, (STOCK - 2, 0, 2))]);
    shop.release("a").await.unwrap();
    assert_eq!(watching.all(), [(1, full)]);
    shop.adjust(2, 1).await.unwrap();
    assert_eq!(watching.all(), [(2, (STOCK + 1, 0, 0))]);
    assert_eq!(reason(shop.reserve("b", &[(1, 1), (2, 1_000_000), (2, 2)]).await), Reason::OutOfStock);
    assert_eq!(watching.all(), []);
}

#[tokio::test(start_paused = true)]
async fn a_change_wakes_whoever_waits() {
    let shop = shop();
    tokio::spawn(shop.0.clone().expire());
    let mut watching = watch(&shop, &[1], &[]).await.unwrap();
    watching.all();
    let waiting = tokio::spawn(async move {
        let first = watching.0.next().await;
        let second = watching.0.next().await;
        [first, second].map(|m| units(&m.unwrap().unwrap().stock.unwrap()))
    });
    // Runs the waiting task until it waits.
    tokio::task::yield_now().await;
    shop.reserve("a", &[(1, 5)]).await.unwrap();
    // The second value comes from the expiry.
    assert_eq!(waiting.await.unwrap(), [(STOCK - 5, 5, 0), (STOCK, 0, 0)]);
}

#[tokio::test]
async fn a_slow_reader_gets_the_latest_value() {
    let shop = shop();
    let mut watching = watch(&shop, &[1, 2], &[]).await.unwrap();
    watching.all();
    for n in 0..1_000 {
        shop.reserve(&format!("order-{n}"), &[(1, 1), (2, 2)]).await.unwrap();
    }
    assert_eq!(watching.all(), [(1, (STOCK - 1_000, 1_000, 0)), (2, (STOCK - 2_000, 2_000, 0))]);
}

#[tokio::test]
async fn changes_that_cancel_out_are_not_said() {
    let shop = shop();
    let mut watching = watch(&shop, &[1], &[]).await.unwrap();
    watching.all();
    shop.adjust(1, 1).await.unwrap();
    shop.adjust(1, -1).await.unwrap();
    assert_eq!(watching.all(), []);
}

#[tokio::test]
async fn a_busy_book_keeps_no_other_waiting() {
    let shop = shop();
    let mut watching = watch(&shop, &[1, 2], &[]).await.unwrap();
    watching.all();
    shop.adjust(1, 1).await.unwrap();
    shop.adjust(2, 1).await.unwrap();
    assert_eq!(watching.now().unwrap().0, 1);
    shop.adjust(1, 1).await.unwrap();
    assert_eq!(watching.now().unwrap().0, 2);
    assert_eq!(watching.now().unwrap().0, 1);
}

#[tokio::test]
async fn a_watch_that_is_dropped_leaves_nothing_behind() {
    let shop = shop();
    let first = watch(&shop, &[1, 2, 3], &[]).await.unwrap();
    let mut second = watch(&shop, &[3, 1], &[]).await.unwrap();
    assert_eq!(shop.0.watchers(), 5);
    drop(first);
    assert_eq!(shop.0.watchers(), 2);
    second.all();
    shop.adjust(3, 1).await.unwrap();
    assert_eq!(second.all(), [(3, (STOCK + 1, 0, 0))]);
    drop(second);
    assert_eq!(shop.0.watchers(), 0);
    assert_eq!(Arc::strong_count(&shop.0), 1);
}

#[tokio::test]
async fn up_to_a_hundred_known_books_can_be_watched() {
    let shop = shop_with(|c| c.books = 101);
    let mut watching = watch(&shop, &(1..=100).collect::<Vec<_>>(), &[]).await.unwrap();
    assert_eq!(watching.all().len(), 100);
    shop.adjust(100, 1).await.unwrap();
    assert_eq!(watching.all(), [(100, (STOCK + 1, 0, 0))]);
    let too_many: Vec<_> = (1..=101).collect();
    assert_eq!(names(refusal(watch(&shop, &too_many, &[]).await)), ["book_ids"]);
    assert_eq!(names(refusal(watch(&shop, &[], &[]).await)), ["book_ids"]);
    let broken = refusal(watch(&shop, &[0], &["x".to_owned()]).await);
    assert_eq!(names(broken), ["book_ids[0]", "skus[0]"]);
    for unknown in [watch(&shop, &[1, 102], &[]).await, watch(&shop, &[1], &[sku(102)]).await] {
        assert_eq!(reason(refusal(unknown)), Reason::UnknownSku);
    }
    drop(watching);
    assert_eq!(shop.0.watchers(), 0);
}

#[tokio::test]
async fn the_last_value_is_never_missed() {
    let shop = shop();
    let mut watching = watch(&shop, &[1], &[]).await.unwrap();
    const CHANGES: i32 = 20_000;
    let changing = std::thread::spawn({
        let shop = shop.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for _ in 0..CHANGES {
                    shop.adjust(1, 1).await.unwrap();
                }
            });
        }
    });
    // Hangs if a change is noted too early or its waker is lost.
    let mut last = pin!(async {
        let mut before = 0;
        loop {
            let stock = watching.0.next().await.unwrap().unwrap().stock.unwrap();
            assert!(stock.in_stock > before, "values come in order");
            before = stock.in_stock;
            if stock.in_stock == STOCK + CHANGES {
                break;
            }
        }
    });
    (&mut last).await;
    changing.join().unwrap();
}
