//! The service interface: decodes, calls the store, encodes. The only place that knows how a refusal is written.

use std::collections::HashSet;

use async_trait::async_trait;
use chassis::page;
use futures_util::StreamExt;
use proto::inventory::v1 as pb;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::{FieldError, Reason, Refusal};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use crate::Inventory;
use crate::domain::{self, BrokenRule, Line, OrderId, Refused, ReservationId, Sku, State};
use crate::store::{Name, Place, Receipt, Reservation, Seen};

/// Books in one request, at most.
const MAX_BOOKS: usize = 1_000;

/// Characters of a prefix: as many as an order id has, at most.
const MAX_PREFIX: usize = 64;

/// Books in one watch, at most.
const MAX_WATCHED: usize = 100;

#[async_trait]
impl InventoryService for Inventory {
    async fn get_stock(
        &self,
        request: Request<pb::GetStockRequest>,
    ) -> Result<Response<pb::GetStockResponse>, Status> {
        let pb::GetStockRequest { book_id, sku } = request.into_inner();
        let mut fields = Fields::default();
        let index = match (book_id != 0, !sku.is_empty()) {
            (true, false) => {
                let book_id = fields.check(positive(book_id), || "book_id".to_owned());
                self.store.find_book(fields.done(book_id)?)
            }
            (false, true) => {
                let sku = fields.check(Sku::parse(&sku), || "sku".to_owned());
                self.store.find(fields.done(sku)?)
            }
            (both, _) => return Err(one_of("book_id", "sku", both)),
        };
        let stock = self.store.read(index?).map(Into::into);
        Ok(Response::new(pb::GetStockResponse { stock }))
    }

    async fn batch_get_stock(
        &self,
        request: Request<pb::BatchGetStockRequest>,
    ) -> Result<Response<pb::BatchGetStockResponse>, Status> {
        let pb::BatchGetStockRequest { book_ids, skus } = request.into_inner();
        let (book_ids, skus) = keys(&book_ids, &skus, 0, MAX_BOOKS)?;
        let by_id = book_ids.into_iter().map(|id| self.store.find_book(id));
        let by_sku = skus.into_iter().map(|sku| self.store.find(sku));
        let mut met = HashSet::new();
        let known = by_id.chain(by_sku).filter_map(Result::ok).filter(|index| met.insert(*index));
        let stocks = known.filter_map(|index| self.store.read(index)).map(Into::into).collect();
        Ok(Response::new(pb::BatchGetStockResponse { stocks }))
    }

    async fn register_books(
        &self,
        request: Request<pb::RegisterBooksRequest>,
    ) -> Result<Response<pb::RegisterBooksResponse>, Status> {
        let sent = request.into_inner().books;
        let mut fields = Fields::default();
        fields.count("books", "books", sent.len(), 1, MAX_BOOKS);
        let mut books = Vec::with_capacity(sent.len());
        for (n, book) in sent.iter().enumerate() {
            let book_id = fields.check(positive(book.book_id), || format!("books[{n}].book_id"));
            let sku = fields.check(Sku::parse(&book.sku), || format!("books[{n}].sku"));
            books.extend(book_id.zip(sku));
        }
        self.store.register(&fields.done(Some(books))?)?;
        Ok(Response::new(pb::RegisterBooksResponse {}))
    }

    async fn adjust_stock(
        &self,
        request: Request<pb::AdjustStockRequest>,
    ) -> Result<Response<pb::AdjustStockResponse>, Status> {
        let pb::AdjustStockRequest { sku, delta } = request.into_inner();
        let mut fields = Fields::default();
        let sku = fields.check(Sku::parse(&sku), || "sku".to_owned());
        let delta = fields.check(domain::delta(delta), || "delta".to_owned());
        let (sku, delta) = fields.done(sku.zip(delta))?;
        let stock = Some(self.store.adjust(sku, delta)?.into());
        Ok(Response::new(pb::AdjustStockResponse { stock }))
    }

    async fn reserve_stock(
        &self,
        request: Request<pb::ReserveStockRequest>,
    ) -> Result<Response<pb::ReserveStockResponse>, Status> {
        let pb::ReserveStockRequest { order_id, lines: sent } = request.into_inner();
        let mut fields = Fields::default();
        let order_id = fields.check(OrderId::parse(order_id), || "order_id".to_owned());
        let lines = lines(&sent, &mut fields);
        let (order_id, lines) = fields.done(order_id.zip(lines))?;
        let receipt = self.store.reserve(order_id, &lines).map_err(|refused| match refused {
            // The lines are sorted by now; the caller is told the first one as sent.
            Refused::UnknownSku(sku) => {
                let mut skus = sent.iter().filter_map(|line| Sku::parse(&line.sku).ok());
                Refused::UnknownSku(skus.find(|sku| self.store.find(*sku).is_err()).unwrap_or(sku))
            }
            other => other,
        })?;
        Ok(Response::new(receipt.into()))
    }

    async fn confirm_reservation(
        &self,
        request: Request<pb::ConfirmReservationRequest>,
    ) -> Result<Response<pb::ConfirmReservationResponse>, Status> {
        let pb::ConfirmReservationRequest { reservation_id, order_id } = request.into_inner();
        let confirmed = self.store.confirm(&name(&reservation_id, order_id)?)?;
        Ok(Response::new(pb::ConfirmReservationResponse { reservation: Some(confirmed.into()) }))
    }

    async fn release_reservation(
        &self,
        request: Request<pb::ReleaseReservationRequest>,
    ) -> Result<Response<pb::ReleaseReservationResponse>, Status> {
        let pb::ReleaseReservationRequest { reservation_id, order_id } = request.into_inner();
        let released = self.store.release(&name(&reservation_id, order_id)?)?;
        Ok(Response::new(pb::ReleaseReservationResponse { reservation: Some(released.into()) }))
    }

    async fn get_reservation(
        &self,
        request: Request<pb::GetReservationRequest>,
    ) -> Result<Response<pb::GetReservationResponse>, Status> {
        let pb::GetReservationRequest { reservation_id, order_id } = request.into_inner();
        let reservation = self.store.reservation(&name(&reservation_id, order_id)?)?;
        Ok(Response::new(pb::GetReservationResponse { reservation: Some(reservation.into()) }))
    }

    async fn list_reservations(
        &self,
        request: Request<pb::ListReservationsRequest>,
    ) -> Result<Response<pb::ListReservationsResponse>, Status> {
        let pb::ListReservationsRequest { states, order_id_prefix, page_size, page_token } =
            request.into_inner();
        let mut fields = Fields::default();
        let states = states_asked(&states, &mut fields);
        fields.length("order_id_prefix", &order_id_prefix, MAX_PREFIX);
        let size = page::size(page_size).map_err(|rule| fields.add(|| "page_size".to_owned(), rule)).ok();
        let size = fields.done(size)?;
        let list = format!("reservations {states:?} {order_id_prefix}");
        let from = if page_token.is_empty() {
            Place::default()
        } else {
            let place = page::decode(&list, &page_token);
            let refused = || Refusal::new(Reason::InvalidPageToken, "page_token is not from this list");
            place.ok_or_else(refused)?.into()
        };
        let wanted = |order_id: &OrderId, state| {
            states.contains(&pb::ReservationState::from(state))
                && order_id.as_str().starts_with(&order_id_prefix)
        };
        let (reservations, next) = self.store.list(wanted, from, size);
        Ok(Response::new(pb::ListReservationsResponse {
            reservations: reservations.into_iter().map(Into::into).collect(),
            next_page_token: next.map(|place| page::encode(&list, place.into())).unwrap_or_default(),
            instance_id: self.instance_id.clone(),
        }))
    }

    async fn watch_stock(
        &self,
        request: Request<pb::WatchStockRequest>,
    ) -> Result<Response<BoxStream<pb::WatchStockResponse>>, Status> {
        let pb::WatchStockRequest { book_ids, skus } = request.into_inner();
        let (book_ids, skus) = keys(&book_ids, &skus, 1, MAX_WATCHED)?;
        let by_id = book_ids.into_iter().map(|id| self.store.find_book(id));
        let by_sku = skus.into_iter().map(|sku| self.store.find(sku));
        let indices = by_id.chain(by_sku).collect::<Result<_, _>>()?;
        let changes = self.store.watch(indices);
        let replies = changes.map(|seen| Ok(pb::WatchStockResponse { stock: Some(seen.into()) }));
        Ok(Response::new(Box::pin(replies)))
    }
}

/// The fields of one request that break a rule.
#[derive(Default)]
struct Fields(Vec<FieldError>);

impl Fields {
    /// As many as one refusal names.
    const MOST: usize = 20;

    fn add(&mut self, field: impl FnOnce() -> String, rule: impl ToString) {
        if self.0.len() < Self::MOST {
            self.0.push(FieldError { field: field(), rule: rule.to_string() });
        }
    }

    fn check<T>(&mut self, parsed: Result<T, BrokenRule>, field: impl FnOnce() -> String) -> Option<T> {
        parsed.map_err(|broken| self.add(field, broken)).ok()
    }

    fn count(&mut self, field: &str, things: &str, count: usize, least: usize, most: usize) {
        if !(least..=most).contains(&count) {
            self.add(|| field.to_owned(), format!("must have {least} to {most} {things}, had {count}"));
        }
    }

    fn length(&mut self, field: &str, text: &str, most: usize) {
        let chars = text.chars().count();
        if chars > most {
            self.add(|| field.to_owned(), format!("must have at most {most} characters, had {chars}"));
        }
    }

    /// What was parsed, if all fields keep their rules.
    fn done<T>(self, parsed: Option<T>) -> Result<T, Status> {
        match parsed {
            Some(parsed) if self.0.is_empty() => Ok(parsed),
            _ => Err(Refusal::fields(self.0).into()),
        }
    }
}

/// The states that a list is to show, each once and in one order.
fn states_asked(sent: &[i32], fields: &mut Fields) -> Vec<pb::ReservationState> {
    let all =
        [State::Held, State::Confirmed, State::Released, State::Expired].map(pb::ReservationState::from);
    let known = |number: i32| all.iter().any(|state| i32::from(*state) == number);
    for (n, number) in sent.iter().enumerate().filter(|(_, number)| !known(**number)) {
        fields.add(|| format!("states[{n}]"), format!("must be from 1 to 4, was {number}"));
    }
    all.into_iter().filter(|state| sent.is_empty() || sent.contains(&i32::from(*state))).collect()
}

fn positive(book_id: i32) -> Result<i32, BrokenRule> {
    if book_id > 0 { Ok(book_id) } else { Err(BrokenRule::BookId(book_id)) }
}

/// Neither or both names of one thing are there. An edge knows only the first name, and can't send both.
fn one_of(first: &str, second: &str, both: bool) -> Status {
    let rule = if both { format!("must not be set beside {second}") } else { "must be set".to_owned() };
    Refusal::field(first, rule).into()
}

/// The books of a request that names them by id and by SKU.
fn keys(
    book_ids: &[i32],
    skus: &[String],
    least: usize,
    most: usize,
) -> Result<(Vec<i32>, Vec<Sku>), Status> {
    let mut fields = Fields::default();
    fields.count("book_ids", "books together with skus", book_ids.len() + skus.len(), least, most);
    let mut kept = (Vec::with_capacity(book_ids.len()), Vec::with_capacity(skus.len()));
    for (n, book_id) in book_ids.iter().enumerate() {
        kept.0.extend(fields.check(positive(*book_id), || format!("book_ids[{n}]")));
    }
    for (n, sku) in skus.iter().enumerate() {
        kept.1.extend(fields.check(Sku::parse(sku), || format!("skus[{n}]")));
    }
    fields.done(Some(kept))
}

/// Normalised lines.
fn lines(sent: &[pb::ReservationLine], fields: &mut Fields) -> Option<Vec<Line>> {
    fields.count("lines", "lines", sent.len(), 1, domain::MAX_LINES);
    let mut lines = Vec::with_capacity(sent.len());
    for (n, line) in sent.iter().enumerate() {
        let sku = fields.check(Sku::parse(&line.sku), || format!("lines[{n}].sku"));
        let quantity = fields.check(Line::quantity(line.quantity), || format!("lines[{n}].quantity"));
        if let (Some(sku), Some(quantity)) = (sku, quantity) {
            lines.push(Line { sku, quantity });
        }
    }
    let normalised = domain::normalise(&mut lines);
    fields.check(normalised, || "lines".to_owned())?;
    Some(lines)
}

/// A reservation id is opaque, so any text that is none of ours names no reservation. An order id is the caller's own
/// and has rules.
fn name(reservation_id: &str, order_id: String) -> Result<Name, Status> {
    match (reservation_id.is_empty(), order_id.is_empty()) {
        (false, true) => {
            let id = ReservationId::parse(reservation_id).ok_or(Refused::ReservationNotFound)?;
            Ok(Name::Reservation(id))
        }
        (true, false) => {
            let mut fields = Fields::default();
            let order_id = fields.check(OrderId::parse(order_id), || "order_id".to_owned());
            Ok(Name::Order(fields.done(order_id)?))
        }
        (neither, _) => Err(one_of("reservation_id", "order_id", !neither)),
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let refuse = |reason| Refusal::new(reason, refused.to_string());
        let refusal = match refused {
            Refused::UnknownSku(sku) => refuse(Reason::UnknownSku).with("sku", sku),
            Refused::UnknownBook(book_id) => refuse(Reason::UnknownSku).with("bookId", book_id),
            Refused::SkuTaken { book_id, sku } => {
                refuse(Reason::SkuTaken).with("bookId", book_id).with("sku", sku)
            }
            Refused::OutOfStock { sku, wanted, in_stock } => {
                proto::out_of_stock(&sku.to_string(), wanted.into(), in_stock.into())
            }
            Refused::TooManyUnits(_) => Refusal::field("delta", refused.to_string()),
            Refused::OrderIdConflict => refuse(Reason::OrderIdConflict),
            Refused::ReservationNotFound => refuse(Reason::ReservationNotFound),
            Refused::ReservationExpired => refuse(Reason::ReservationExpired),
            Refused::ReservationReleased => refuse(Reason::ReservationReleased),
            Refused::Full(_) => refuse(Reason::StoreFull),
        };
        refusal.into()
    }
}

impl From<Seen> for pb::Stock {
    fn from(seen: Seen) -> Self {
        // A SKU has at most `domain::MAX_UNITS` in stock and reserved, so nothing is cut here.
        Self {
            book_id: seen.book_id,
            sku: seen.sku.to_string(),
            in_stock: seen.in_stock as i32,
            reserved: seen.reserved as i32,
            sold: seen.sold as i64,
        }
    }
}

impl From<State> for pb::ReservationState {
    fn from(state: State) -> Self {
        match state {
            State::Held => Self::Held,
            State::Confirmed => Self::Confirmed,
            State::Released => Self::Released,
            State::Expired => Self::Expired,
        }
    }
}

impl From<Receipt> for pb::ReserveStockResponse {
    fn from(receipt: Receipt) -> Self {
        Self {
            reservation_id: receipt.id.text(),
            state: pb::ReservationState::from(receipt.state).into(),
            expires_at: Some(receipt.expires_at.into()),
        }
    }
}

impl From<Reservation> for pb::Reservation {
    fn from(reservation: Reservation) -> Self {
        let Reservation { receipt, order_id, lines } = reservation;
        let line =
            |line: Line| pb::ReservationLine { sku: line.sku.to_string(), quantity: line.quantity as i32 };
        Self {
            reservation_id: receipt.id.text(),
            order_id: order_id.into_text(),
            state: pb::ReservationState::from(receipt.state).into(),
            expires_at: Some(receipt.expires_at.into()),
            lines: lines.into_iter().map(line).collect(),
        }
    }
}
