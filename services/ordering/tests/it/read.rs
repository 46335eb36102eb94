//! Getting and listing orders.

use std::collections::HashSet;

use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, field_errors, seed};
use tonic::Request;

use crate::shop::{Shop, refused};

#[tokio::test]
async fn seeded_orders_are_there_in_every_view() {
    let shop = Shop::new();
    for number in 1..=seed::ORDERS {
        let id = seed::order_id(number);
        let history = shop.get(&id, pb::OrderView::History).await.unwrap();
        assert_eq!((history.order_id.as_str(), history.lines.len()), (id.as_str(), 8));
        assert!((1..).zip(&history.history).all(|(sequence, event)| event.sequence == sequence));
        let state = if number % 2 == 1 { pb::OrderState::Shipped } else { pb::OrderState::Placed };
        assert_eq!(history.state(), state);
        let full = shop.get(&id, pb::OrderView::Full).await.unwrap();
        assert_eq!(full, pb::Order { history: vec![], ..history });
        let status = shop.get(&id, pb::OrderView::Status).await.unwrap();
        assert_eq!(status, pb::Order { lines: vec![], ship_to: None, ..full });
    }
}

#[tokio::test]
async fn what_is_not_an_order_is_not_found() {
    let shop = Shop::new();
    for id in ["x", &seed::order_id(21)] {
        refused(shop.get(id, pb::OrderView::Full).await, Reason::OrderNotFound);
    }
    let request = pb::GetOrderRequest { order_id: String::new(), view: 4 };
    let status = refused(shop.ordering.get_order(Request::new(request)).await, Reason::InvalidField);
    let fields: Vec<_> = field_errors(&status).into_iter().map(|error| error.field).collect();
    assert_eq!(fields, ["order_id", "view"]);
}

#[tokio::test]
async fn paging_shows_every_order_once_latest_first() {
    let shop = Shop::new();
    let mut expected: Vec<String> = (1..=seed::ORDERS).map(seed::order_id).collect();
    for n in 0..7 {
        expected.push(shop.place(&format!("r{n}"), &[(1, 1)]).await.unwrap().order_id);
    }
    expected.reverse();
    for page_size in [1, 2, 3, 9, 26, 27, 28, 0, i32::MAX] {
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let page = shop.list(page_size, &token).await.unwrap();
            assert!(page.orders.iter().all(|order| order.lines.is_empty() && order.history.is_empty()));
            seen.extend(page.orders.into_iter().map(|order| order.order_id));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, expected, "page size {page_size}");
    }
}

#[tokio::test]
async fn orders_made_while_paging_do_not_shift_the_pages() {
    let shop = Shop::new();
    let mut seen = HashSet::new();
    let mut token = String::new();
    for n in 0.. {
        let page = shop.list(6, &token).await.unwrap();
        for order in page.orders {
            assert!(seen.insert(order.order_id));
        }
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        shop.place(&format!("r{n}"), &[(1, 1)]).await.unwrap();
    }
    assert_eq!(seen.len(), 20);
}

#[tokio::test]
async fn odd_pages_are_refused() {
    let shop = Shop::new();
    let status = refused(shop.list(-1, "").await, Reason::InvalidField);
    assert_eq!(field_errors(&status)[0].field, "page_size");
    let good = shop.list(1, "").await.unwrap().next_page_token;
    for token in ["x", &good.to_uppercase().replace('0', "g"), &chassis::page::encode("books", 3)] {
        refused(shop.list(1, token).await, Reason::InvalidPageToken);
    }
}
