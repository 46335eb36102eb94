//! Seven of each book in stock.

use async_trait::async_trait;
use futures_util::StreamExt;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::{Reason, Refusal, seed};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::{Answer, BoxStream, Fake};

fn stock(book_id: i32) -> inventory::Stock {
    let sku = seed::sku(book_id);
    inventory::Stock { book_id, sku, in_stock: 7, reserved: 0, sold: 5_000_000_000 }
}

fn reservation(id: String) -> inventory::Reservation {
    let lines = vec![inventory::ReservationLine { sku: seed::sku(1), quantity: 2 }];
    let state = inventory::ReservationState::Held.into();
    let order_id = "o".to_owned();
    inventory::Reservation { reservation_id: id, order_id, state, lines, ..Default::default() }
}

#[async_trait]
impl InventoryService for Fake {
    async fn batch_get_stock(
        &self,
        request: Request<inventory::BatchGetStockRequest>,
    ) -> Answer<inventory::BatchGetStockResponse> {
        let call = format!("BatchGetStock {}", request.get_ref().book_ids.len());
        self.call(&request, call, self.inventory_fails.as_ref()).await?;
        let of = request.into_inner();
        assert!(of.book_ids.len() <= 1_000);
        // Book 13 is unknown here.
        let ids = of.book_ids.into_iter().filter(|id| *id != 13);
        Ok(Response::new(inventory::BatchGetStockResponse { stocks: ids.map(stock).collect() }))
    }

    async fn reserve_stock(
        &self,
        request: Request<inventory::ReserveStockRequest>,
    ) -> Answer<inventory::ReserveStockResponse> {
        let call = format!("ReserveStock {}", request.get_ref().lines.len());
        self.call(&request, call, self.inventory_fails.as_ref()).await?;
        let of = request.into_inner();
        let mut bad = Vec::new();
        for (i, line) in of.lines.iter().enumerate().filter(|(_, line)| line.quantity < 1) {
            let rule = format!("must be from 1 to 1000000, was {}", line.quantity);
            bad.push(proto::FieldError { field: format!("lines[{i}].quantity"), rule });
        }
        if of.order_id.is_empty() {
            let rule = "must have 1 to 64 characters, had 0".to_owned();
            bad.push(proto::FieldError { field: "order_id".to_owned(), rule });
        }
        if !bad.is_empty() {
            return Err(Refusal::fields(bad).into());
        }
        if let Some(line) = of.lines.iter().find(|line| line.quantity > 7) {
            return Err(proto::out_of_stock(&line.sku, line.quantity.into(), 7).into());
        }
        let state = inventory::ReservationState::Held.into();
        let reservation_id = format!("r-{}", of.order_id);
        Ok(Response::new(inventory::ReserveStockResponse { reservation_id, state, expires_at: None }))
    }

    async fn confirm_reservation(
        &self,
        request: Request<inventory::ConfirmReservationRequest>,
    ) -> Answer<inventory::ConfirmReservationResponse> {
        self.call(&request, "ConfirmReservation".to_owned(), self.inventory_fails.as_ref()).await?;
        let reservation = Some(reservation(request.into_inner().reservation_id));
        Ok(Response::new(inventory::ConfirmReservationResponse { reservation }))
    }

    async fn release_reservation(
        &self,
        request: Request<inventory::ReleaseReservationRequest>,
    ) -> Answer<inventory::ReleaseReservationResponse> {
        self.call(&request, "ReleaseReservation".to_owned(), self.inventory_fails.as_ref()).await?;
        let reservation = Some(reservation(request.into_inner().reservation_id));
        Ok(Response::new(inventory::ReleaseReservationResponse { reservation }))
    }

    async fn get_reservation(
        &self,
        request: Request<inventory::GetReservationRequest>,
    ) -> Answer<inventory::GetReservationResponse> {
        self.call(&request, "GetReservation".to_owned(), self.inventory_fails.as_ref()).await?;
        let reservation = Some(reservation(request.into_inner().reservation_id));
        Ok(Response::new(inventory::GetReservationResponse { reservation }))
    }

    async fn adjust_stock(
        &self,
        request: Request<inventory::AdjustStockRequest>,
    ) -> Answer<inventory::AdjustStockResponse> {
        self.call(&request, "AdjustStock".to_owned(), self.inventory_fails.as_ref()).await?;
        Ok(Response::new(inventory::AdjustStockResponse { stock: Some(stock(1)) }))
    }

    async fn watch_stock(
        &self,
        request: Request<inventory::WatchStockRequest>,
    ) -> Answer<BoxStream<inventory::WatchStockResponse>> {
        self.call(&request, "WatchStock".to_owned(), self.inventory_fails.as_ref()).await?;
        let of = request.into_inner();
        if of.book_ids.contains(&404) {
            return Err(Refusal::new(Reason::UnknownSku, "no stock of book 404").into());
        }
        let (events, mut watch) = mpsc::unbounded_channel();
        for id in of.book_ids {
            events.send(Ok(stock(id))).unwrap();
        }
        self.watches.lock().unwrap().push(events);
        let stream = futures_util::stream::poll_fn(move |cx| watch.poll_recv(cx));
        let stream = stream.map(|event: Result<_, Status>| {
            event.map(|stock| inventory::WatchStockResponse { stock: Some(stock) })
        });
        Ok(Response::new(Box::pin(stream)))
    }
}
