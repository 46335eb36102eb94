//! Reserve stock.

use proto::inventory::v1::{ReservationLine, ReservationState, ReserveStockRequest, ReserveStockResponse};
use serde_json::Value;

use super::first_message;
use crate::case::Style;

/// The request.
pub fn message(order_id: String, lines: Vec<(String, i32)>) -> ReserveStockRequest {
    let lines = lines.into_iter().map(|(sku, quantity)| ReservationLine { sku, quantity });
    ReserveStockRequest { order_id, lines: lines.collect() }
}

/// Reads the id of the reservation from a reply that says the units are held, or says what is wrong with it.
pub fn check(style: Style, body: &[u8]) -> Result<String, String> {
    let (id, held, expires) = match style {
        Style::GrpcWeb | Style::Grpc => {
            let message = first_message(body).ok_or("no message")?;
            let reply: ReserveStockResponse =
                prost::Message::decode(message).map_err(|error| format!("the message: {error}"))?;
            let held = reply.state() == ReservationState::Held;
            (reply.reservation_id, held, reply.expires_at.is_some())
        }
        _ => {
            let reply: Value = serde_json::from_slice(body).map_err(|error| format!("the JSON: {error}"))?;
            let reply = reply.pointer("/data/reserveStock").unwrap_or(&reply);
            let text = |name| reply.get(name).and_then(Value::as_str).unwrap_or_default();
            (text("reservationId").to_owned(), text("state") == "HELD", !text("expiresAt").is_empty())
        }
    };
    match (id.is_empty(), held, expires) {
        (false, true, true) => Ok(id),
        (true, ..) => Err("no reservation id".to_owned()),
        (_, false, _) => Err(format!("reservation {id} is not held")),
        (.., false) => Err(format!("reservation {id} has no expiry")),
    }
}
