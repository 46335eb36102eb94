//! Orders of any id.

use async_trait::async_trait;
use proto::common::v1::Money;
use proto::ordering::v1 as ordering;
use proto::ordering::v1::ordering_service_server::OrderingService;
use proto::{Reason, Refusal, seed};
use tonic::{Request, Response};

use super::{Answer, BoxStream, Fake};

fn order(id: String, view: ordering::OrderView) -> ordering::Order {
    let line = ordering::OrderLine { sku: seed::sku(1), book_id: 1, quantity: 2, ..Default::default() };
    let event = ordering::OrderEvent { sequence: 1, kind: "PLACED".to_owned(), ..Default::default() };
    let full = view >= ordering::OrderView::Full;
    ordering::Order {
        order_id: id,
        state: ordering::OrderState::Placed.into(),
        total: Some(Money { amount_minor: 5_000_000_000, currency: "EUR".to_owned() }),
        line_count: 1,
        lines: if full { vec![line] } else { Vec::new() },
        ship_to: full.then(|| ordering::Address { city: "Bern".to_owned(), ..Default::default() }),
        history: if view == ordering::OrderView::History { vec![event] } else { Vec::new() },
        ..Default::default()
    }
}

#[async_trait]
impl OrderingService for Fake {
    async fn place_order(
        &self,
        request: Request<ordering::PlaceOrderRequest>,
    ) -> Answer<ordering::PlaceOrderResponse> {
        self.call(&request, "PlaceOrder".to_owned(), None).await?;
        let order = Some(order(request.into_inner().request_id, ordering::OrderView::Full));
        Ok(Response::new(ordering::PlaceOrderResponse { order }))
    }

    async fn get_order(
        &self,
        request: Request<ordering::GetOrderRequest>,
    ) -> Answer<ordering::GetOrderResponse> {
        let view = request.get_ref().view();
        self.call(&request, format!("GetOrder {}", view.as_str_name()), None).await?;
        let id = request.into_inner().order_id;
        if id == "missing" {
            return Err(Refusal::new(Reason::OrderNotFound, "no order has id missing").into());
        }
        Ok(Response::new(ordering::GetOrderResponse { order: Some(order(id, view)) }))
    }

    async fn list_orders(
        &self,
        request: Request<ordering::ListOrdersRequest>,
    ) -> Answer<ordering::ListOrdersResponse> {
        self.call(&request, "ListOrders".to_owned(), None).await?;
        let size = request.into_inner().page_size;
        let orders = (0..size).map(|n| order(format!("o{n}"), ordering::OrderView::Status)).collect();
        Ok(Response::new(ordering::ListOrdersResponse { orders, next_page_token: String::new() }))
    }

    async fn cancel_order(
        &self,
        request: Request<ordering::CancelOrderRequest>,
    ) -> Answer<ordering::CancelOrderResponse> {
        self.call(&request, "CancelOrder".to_owned(), None).await?;
        let order = Some(order(request.into_inner().order_id, ordering::OrderView::Status));
        Ok(Response::new(ordering::CancelOrderResponse { order }))
    }

    async fn watch_order(
        &self,
        request: Request<ordering::WatchOrderRequest>,
    ) -> Answer<BoxStream<ordering::WatchOrderResponse>> {
        self.call(&request, "WatchOrder".to_owned(), None).await?;
        let id = request.into_inner().order_id;
        let event = ordering::WatchOrderResponse { order: Some(order(id, ordering::OrderView::Status)) };
        Ok(Response::new(Box::pin(futures_util::stream::iter([Ok(event)]))))
    }
}
