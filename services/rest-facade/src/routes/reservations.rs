//! Reservations.

use axum::body::Body;
use axum::response::Response;
use proto::inventory::v1 as pb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{Object, given};
use crate::call::{Call, promised};
use crate::errors::Problem;
use crate::reply;
use crate::time::Time;

/// Where a reservation stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum ReservationState {
    /// Units are held until `expiresAt`.
    Held,
    /// Units are sold.
    Confirmed,
    /// Units were given back on request.
    Released,
    /// Units were given back because nobody confirmed in time.
    Expired,
    /// This server can't tell.
    Unspecified,
}

impl From<pb::ReservationState> for ReservationState {
    fn from(state: pb::ReservationState) -> Self {
        match state {
            pb::ReservationState::Held => Self::Held,
            pb::ReservationState::Confirmed => Self::Confirmed,
            pb::ReservationState::Released => Self::Released,
            pb::ReservationState::Expired => Self::Expired,
            pb::ReservationState::Unspecified => Self::Unspecified,
        }
    }
}

/// A reservation just made: small, and the same size whatever was reserved.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "reservationId": "rsv_8728283f94de1ca6d4b5b73f2550bc6a", "state": "HELD", "expiresAt": "2026-11-30T12:01:00.000Z",
}))]
pub(super) struct ReservationCreated<'a> {
    /// Names the reservation in later requests.
    reservation_id: &'a str,
    /// HELD, or CONFIRMED when the request is a repetition and the units are sold by now.
    state: ReservationState,
    /// When held units go back.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Option<Time>,
}

impl<'a> From<&'a pb::ReserveStockResponse> for ReservationCreated<'a> {
    fn from(reply: &'a pb::ReserveStockResponse) -> Self {
        Self {
            reservation_id: &reply.reservation_id,
            state: reply.state().into(),
            expires_at: Time::of(&reply.expires_at),
        }
    }
}

/// Units held or sold for one order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "reservationId": "rsv_8728283f94de1ca6d4b5b73f2550bc6a", "orderId": "order-1", "state": "HELD",
    "expiresAt": "2026-11-30T12:01:00.000Z", "lines": [{"sku": "9790000000018", "quantity": 2}],
}))]
pub(super) struct Reservation<'a> {
    /// The reservation's id.
    reservation_id: &'a str,
    /// The order that it is for.
    order_id: &'a str,
    /// Where it stands.
    state: ReservationState,
    /// When held units go back.
    #[serde(serialize_with = "reply::promised")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Option<Time>,
    /// What it holds, one line per SKU in order of SKU.
    #[serde(serialize_with = "reply::each::<_, ReservedLine, _>")]
    #[schema(value_type = Vec<ReservedLine>)]
    lines: &'a [pb::ReservationLine],
}

impl<'a> From<&'a pb::Reservation> for Reservation<'a> {
    fn from(reservation: &'a pb::Reservation) -> Self {
        Self {
            reservation_id: &reservation.reservation_id,
            order_id: &reservation.order_id,
            state: reservation.state().into(),
            expires_at: Time::of(&reservation.expires_at),
            lines: &reservation.lines,
        }
    }
}

/// Units of one SKU.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReservedLine<'a> {
    /// The ISBN-13, 13 digits.
    sku: &'a str,
    /// How many.
    quantity: i32,
}

impl<'a> From<&'a pb::ReservationLine> for ReservedLine<'a> {
    fn from(line: &'a pb::ReservationLine) -> Self {
        Self { sku: &line.sku, quantity: line.quantity }
    }
}

/// Units to hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "orderId": "order-1",
    "lines": [{"sku": "9790000000018", "quantity": 2}, {"sku": "9790000000025", "quantity": 1}],
}))]
pub(super) struct NewReservation {
    /// The caller's name for the order: letters, digits, `.`, `_`, `:` or `-`. Makes the request idempotent.
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._:-]+$")]
    order_id: String,
    /// What to hold. Two lines of one SKU add up.
    #[serde(default)]
    #[schema(required, value_type = Vec<NewLine>, min_items = 1, max_items = 1000)]
    lines: Vec<Object<NewLine>>,
}

/// Units of one SKU.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"sku": "9790000000018", "quantity": 2}))]
pub(super) struct NewLine {
    /// The ISBN-13, 13 digits.
    #[serde(default)]
    #[schema(required, pattern = "^[0-9]{13}$")]
    pub(super) sku: String,
    /// How many.
    #[serde(default, deserialize_with = "given")]
    #[schema(required, value_type = i32, minimum = 1, maximum = 1_000_000)]
    pub(super) quantity: Option<i32>,
}

/// The quantities that these lines lack.
pub(super) fn left_out(lines: &[Object<NewLine>]) -> Vec<String> {
    let lacking = lines.iter().enumerate().filter(|(_, Object(line))| line.quantity.is_none());
    lacking.map(|(place, _)| format!("lines[{place}].quantity")).collect()
}

/// Reserve stock
///
/// All lines or none. The same `orderId` with the same lines returns the same reservation, again with 201, so the request
/// can be repeated; a reservation that was released or has expired meanwhile holds nothing, and is refused. A held
/// reservation that nobody confirms gives its units back at `expiresAt`.
#[utoipa::path(
    post,
    path = "/api/v1/reservations",
    tag = "reservations",
    request_body = NewReservation,
    responses(
        (status = 201, description = "The units are held", body = ReservationCreated,
            headers(("Location" = String, description = "The reservation's path"))),
        (status = 404, description = "UNKNOWN_SKU"),
        (status = 409, description = "OUT_OF_STOCK, ORDER_ID_CONFLICT, RESERVATION_EXPIRED, RESERVATION_RELEASED"),
        (status = 503, description = "STORE_FULL, UPSTREAM_UNAVAILABLE, SHUTTING_DOWN"),
    ),
)]
pub(super) async fn reserve_stock(call: Call, body: Body) -> Result<Response, Problem> {
    let reservation: NewReservation = call.json(body).await?;
    let left_out = left_out(&reservation.lines);
    let lines = reservation.lines.into_iter();
    let message = pb::ReserveStockRequest {
        order_id: reservation.order_id,
        lines: lines
            .map(|Object(line)| pb::ReservationLine {
                sku: line.sku,
                quantity: line.quantity.unwrap_or_default(),
            })
            .collect(),
    };
    let reply = call.wait(call.services().inventory.reserve_stock(call.request(message))).await;
    let reply = reply.map_err(|problem| problem.left_out(left_out))?;
    let location = format!("/api/v1/reservations/{}", reply.reservation_id);
    reply::created(&ReservationCreated::from(&reply), location)
}

/// One reservation
///
/// A held one is remembered until it is confirmed, released or expires; a confirmed one for 24 hours after that, an expired
/// or released one for as long again as a reservation may be held.
#[utoipa::path(
    get,
    path = "/api/v1/reservations/{reservationId}",
    tag = "reservations",
    params(("reservationId" = String, Path, description = "The reservation's id")),
    responses(
        (status = 200, description = "The reservation", body = Reservation),
        (status = 404, description = "RESERVATION_NOT_FOUND"),
    ),
)]
pub(super) async fn get_reservation(call: Call) -> Result<Response, Problem> {
    let reservation_id = call.path_text("reservationId");
    let message = pb::GetReservationRequest { reservation_id, order_id: String::new() };
    let reply = call.wait(call.services().inventory.get_reservation(call.request(message))).await?;
    call.fresh(&Reservation::from(&promised(reply.reservation)?))
}

/// Confirm a reservation
///
/// Turns the held units into sold ones. Confirming twice is harmless. There is no body.
#[utoipa::path(
    post,
    path = "/api/v1/reservations/{reservationId}/confirm",
    tag = "reservations",
    params(("reservationId" = String, Path, description = "The reservation's id")),
    responses(
        (status = 200, description = "The reservation as confirmed", body = Reservation),
        (status = 404, description = "RESERVATION_NOT_FOUND"),
        (status = 409, description = "RESERVATION_EXPIRED, RESERVATION_RELEASED"),
    ),
)]
pub(super) async fn confirm_reservation(call: Call) -> Result<Response, Problem> {
    let reservation_id = call.path_text("reservationId");
    let message = pb::ConfirmReservationRequest { reservation_id, order_id: String::new() };
    let reply = call.wait(call.services().inventory.confirm_reservation(call.request(message))).await?;
    reply::ok(&Reservation::from(&promised(reply.reservation)?))
}

/// Release a reservation
///
/// Gives the units back, those held and those sold alike. Releasing twice, or after expiry, is harmless. There is no body.
#[utoipa::path(
    post,
    path = "/api/v1/reservations/{reservationId}/release",
    tag = "reservations",
    params(("reservationId" = String, Path, description = "The reservation's id")),
    responses(
        (status = 200, description = "The reservation as released", body = Reservation),
        (status = 404, description = "RESERVATION_NOT_FOUND"),
    ),
)]
pub(super) async fn release_reservation(call: Call) -> Result<Response, Problem> {
    let reservation_id = call.path_text("reservationId");
    let message = pb::ReleaseReservationRequest { reservation_id, order_id: String::new() };
    let reply = call.wait(call.services().inventory.release_reservation(call.request(message))).await?;
    reply::ok(&Reservation::from(&promised(reply.reservation)?))
}
