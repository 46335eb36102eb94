//! Watching orders.

use futures_util::{FutureExt, StreamExt};
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, seed};
use tonic::codegen::BoxStream;
use tonic::{Request, Status};

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, leave, refused, request};

async fn watch(shop: &Shop, order_id: &str) -> Result<BoxStream<pb::WatchOrderResponse>, Status> {
    let request = pb::WatchOrderRequest { order_id: order_id.to_owned() };
    Ok(shop.ordering.watch_order(Request::new(request)).await?.into_inner())
}

async fn state(stream: &mut BoxStream<pb::WatchOrderResponse>) -> Option<pb::OrderState> {
    let message = stream.next().await?;
    Some(message.unwrap().order.unwrap().state())
}

#[tokio::test]
async fn a_watch_shows_the_order_then_each_change_and_ends_with_the_last() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 1)]).await.unwrap();
    let mut stream = watch(&shop, &order.order_id).await.unwrap();
    let first = stream.next().await.unwrap().unwrap().order.unwrap();
    assert_eq!(first, shop.get(&order.order_id, pb::OrderView::Status).await.unwrap());
    assert!(stream.next().now_or_never().is_none());
    let cancelled = shop.cancel(&order.order_id).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().order, Some(cancelled));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_slow_watcher_gets_the_latest() {
    let shop = Shop::new();
    let order = shop.place("a", &[(1, 1)]).await.unwrap();
    let mut stream = watch(&shop, &order.order_id).await.unwrap();
    shop.cancel(&order.order_id).await.unwrap();
    assert_eq!(state(&mut stream).await, Some(pb::OrderState::Cancelled));
    assert_eq!(state(&mut stream).await, None);
}

#[tokio::test]
async fn an_order_at_its_end_is_shown_once() {
    let shop = Shop::new();
    let mut stream = watch(&shop, &seed::order_id(1)).await.unwrap();
    assert_eq!(state(&mut stream).await, Some(pb::OrderState::Shipped));
    assert_eq!(state(&mut stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_order_can_be_watched_while_it_is_placed() {
    let shop = Shop::new();
    let id = shop.place("a", &[(1, 1)]).await.unwrap().order_id;
    let shop = Shop::new();
    shop.script.fail(Step::Confirm, Fault::Hang);
    assert!(leave(shop.send(request("a", &[(1, 1)])), 9).await.is_none());
    let mut stream = watch(&shop, &id).await.unwrap();
    assert_eq!(state(&mut stream).await, Some(pb::OrderState::Pending));
    refused(shop.cancel(&id).await, Reason::RequestInProgress);
    // The caller has left, and inventory doesn't answer.
    refused(stream.next().await.unwrap(), Reason::OrderNotFound);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn what_is_not_an_order_cannot_be_watched() {
    let shop = Shop::new();
    for (id, reason) in [("", Reason::InvalidField), ("x", Reason::OrderNotFound)] {
        refused(watch(&shop, id).await.map(drop), reason);
    }
}
