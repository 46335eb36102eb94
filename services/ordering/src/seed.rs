//! The orders at start: the same bytes in every run, and of the sizes that the comparison publishes.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::seed::{BOOKS, ORDER_LINES, ORDERS, order_id, sku, title};

use crate::domain::{Address, Currency, Draft, Event, Money, Offer, Order, OrderId};

/// When the first order was made: 2026-01-05T09:12:44Z.
const START: Duration = Duration::from_secs(1_767_604_364);
/// From one order to the next.
const BETWEEN_ORDERS: Duration = Duration::from_secs(3 * 3600 + 17 * 60);
/// Scans of each order: with them the history view has the size that the contract names.
const SCANS: u32 = 425;

/// Editions of the books that were sold. Catalog sells others now, at other prices.
const EDITIONS: [&str; 3] = ["first paperback", "illustrated gift", "revised hardcover"];
const PEOPLE: [&str; 5] = [
    "Ada Lindqvist, Acquisitions and Loans",
    "Bruno Okafor, Periodicals and Archives",
    "Chiara Moretti, Reading Room for Children",
    "Daniel Novak, Interlibrary Loan Service",
    "Elif Yildiz, Friends of the Library",
];
const PLACES: [(&str, &str, &str, &str); 4] = [
    ("Municipal Library, Neue Lindenstrasse", "Leipzig-Gohlis Nord", "04109", "DE"),
    ("Mediatheque, Rue des Anciens Tanneurs", "Villeneuve-d'Ascq", "59650", "FR"),
    ("Stadsbibliotheek, Oude Kerkstraat", "Utrecht-Binnenstad", "3511", "NL"),
    ("Biblioteca Popular, Calle del Olmo", "Sanlucar la Mayor", "41800", "ES"),
];
/// Who scans, and where.
const STATIONS: [(&str, &str); 6] = [
    ("warehouse", "picked from the shelf in aisle"),
    ("warehouse", "tote passed the gate of aisle"),
    ("conveyor", "tote merged on to belt"),
    ("conveyor", "weight checked at scale"),
    ("sorter", "tote left the sorter by chute"),
    ("packing", "tote waits at packing table"),
];

/// All seeded orders, oldest first.
pub(crate) fn orders() -> impl Iterator<Item = Order> {
    // What the seed says is right by construction, and a test counts the orders.
    (1..=ORDERS).filter_map(order)
}

fn order(number: i32) -> Option<Order> {
    let n = number.unsigned_abs();
    let id: OrderId = order_id(number).parse().ok()?;
    // 7 and 50 have no common divisor, so that the lines of one order are different books.
    let books = (0..ORDER_LINES).map(|line| (number * 11 + line * 7) % BOOKS + 1);
    let lines = books.clone().map(|book| (sku(book), (book + number) % 4 + 1)).collect();
    let draft = Draft::new(&format!("seed-{number}"), lines, Some(address(n))).ok()?;
    let offers: Vec<_> = books.map(|book| (sku(book), offer(book))).collect();
    let content =
        draft.price(|sku| offers.iter().find(|(known, _)| known == sku.as_str()).map(|(_, o)| o.clone()));

    let mut at = UNIX_EPOCH + START + BETWEEN_ORDERS * (n - 1);
    let mut order = Order::pending(id, Arc::new(content.ok()?), id.reservation(1), at);
    order.place(at + Duration::from_secs(1)).ok()?;
    for scan in 0..SCANS {
        at += Duration::from_secs(u64::from(200 + (scan * 37 + n * 13) % 400));
        order.note(event(at, scan, n)?);
    }
    if number % 2 == 1 {
        order.ship(at + Duration::from_secs(600), format!("handed over at dock {}", n % 9 + 1)).ok()?;
    }
    Some(order)
}

fn address(n: u32) -> Address {
    let name = pick(&PEOPLE, n).copied().unwrap_or_default();
    let (street, city, postal_code, country) = pick(&PLACES, n).copied().unwrap_or_default();
    Address {
        name: name.to_owned(),
        street: format!("{street} {}", n * 3 % 90 + 1),
        city: city.to_owned(),
        postal_code: postal_code.to_owned(),
        country: country.to_owned(),
    }
}

fn offer(book_id: i32) -> Offer {
    let book = book_id.unsigned_abs();
    let minor = i64::from(book * 7 % 25) * 100 + 999;
    let price = Money { minor, currency: Currency::EUR };
    let edition = pick(&EDITIONS, book).copied().unwrap_or_default();
    Offer { book_id, title: format!("{} ({edition} edition)", title(book_id)), price }
}

fn event(at: SystemTime, scan: u32, n: u32) -> Option<Event> {
    let (actor, what) = *pick(&STATIONS, scan)?;
    let kind = if actor == "warehouse" && scan.is_multiple_of(6) { "PICKED" } else { "SCANNED" };
    let note = format!(
        "{what} {:02}, tote {:05}, line {}",
        (scan * 5 + n) % 48 + 1,
        (scan * 211 + n * 97) % 100_000,
        scan % 8 + 1
    );
    Some(Event { at, kind, actor, note })
}

/// The `n`th item, going round.
fn pick<T>(items: &[T], n: u32) -> Option<&T> {
    items.iter().cycle().nth(usize::try_from(n).ok()? % items.len().max(1))
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use proto::ordering::v1 as pb;
    use serde_json::{Map, Value, json};
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::domain::State;
    use crate::service::view;

    /// The order as REST writes it: camelCase, empty lists and absent messages left out.
    fn json(order: &pb::Order) -> String {
        let money = |m: &Option<proto::common::v1::Money>| {
            let m = m.as_ref().unwrap();
            json!({ "amountMinor": m.amount_minor, "currency": m.currency })
        };
        let state = order.state().as_str_name().trim_start_matches("ORDER_STATE_");
        let mut out = Map::new();
        out.insert("orderId".into(), json!(order.order_id));
        out.insert("state".into(), json!(state));
        out.insert("total".into(), money(&order.total));
        out.insert("lineCount".into(), json!(order.line_count));
        out.insert("createdAt".into(), json!(order.created_at.unwrap().to_string()));
        out.insert("updatedAt".into(), json!(order.updated_at.unwrap().to_string()));
        let lines = order.lines.iter().map(|line| {
            json!({
                "sku": line.sku, "bookId": line.book_id, "title": line.title, "quantity": line.quantity,
                "unitPrice": money(&line.unit_price), "lineTotal": money(&line.line_total),
            })
        });
        let lines: Vec<Value> = lines.collect();
        if !lines.is_empty() {
            out.insert("lines".into(), json!(lines));
        }
        if let Some(to) = &order.ship_to {
            let address = json!({
                "name": to.name, "street": to.street, "city": to.city, "postalCode": to.postal_code,
                "country": to.country,
            });
            out.insert("shipTo".into(), address);
        }
        let history = order.history.iter().map(|event| {
            json!({
                "sequence": event.sequence, "occurredAt": event.occurred_at.unwrap().to_string(),
                "kind": event.kind, "actor": event.actor, "note": event.note,
            })
        });
        let history: Vec<Value> = history.collect();
        if !history.is_empty() {
            out.insert("history".into(), json!(history));
        }
        Value::Object(out).to_string()
    }

    #[test]
    fn there_are_as_many_as_the_contract_says() {
        let orders: Vec<_> = orders().collect();
        assert_eq!(orders.len(), 20);
        for (number, order) in (1..).zip(&orders) {
            assert_eq!(order.id().to_string(), order_id(number));
            assert_eq!(order.content().lines.len(), 8);
            assert_eq!(order.state(), if number % 2 == 1 { State::Shipped } else { State::Placed });
            let mut books: Vec<_> = order.content().lines.iter().map(|line| line.book_id).collect();
            books.sort_unstable();
            books.dedup();
            assert_eq!(books.len(), 8);
            assert!(order.history().iter().is_sorted_by_key(|event| event.at));
            assert_eq!(order.history().last().unwrap().at, order.updated_at());
        }
    }

    #[test]
    fn they_have_the_published_sizes() {
        for order in orders() {
            let sizes =
                [view::status(&order), view::full(&order), view::history(&order)].map(|o| json(&o).len());
            for (size, published) in sizes.into_iter().zip([200, 2_000, 64_000]) {
                let allowed = published * 85 / 100..=published * 115 / 100;
                assert!(allowed.contains(&size), "{}: {sizes:?}", order.id());
            }
        }
    }

    #[test]
    fn they_are_the_same_in_every_run() {
        let all: Vec<u8> = orders().flat_map(|order| view::history(&order).encode_to_vec()).collect();
        assert_eq!(format!("{:016x}", xxh3_64(&all)), "4e6b0d3688f4eed3");
    }
}
