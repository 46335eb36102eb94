//! An order as it is asked for: checked, not yet priced.

use std::collections::HashMap;

use proto::FieldError;
use xxhash_rust::xxh3::Xxh3;

use super::{OrderId, Sku};

/// Most lines of one order.
const MAX_LINES: usize = 1_000;
/// Most copies in one line as it is asked for, and most units in one line of a reservation.
const MAX_QUANTITY: i32 = 1_000_000;
/// Most characters in one field of an address.
const MAX_ADDRESS_CHARS: usize = 200;
/// Most characters in a request id.
const MAX_REQUEST_ID_CHARS: usize = 255;
/// Most broken fields that one refusal names.
const MAX_FIELD_ERRORS: usize = 20;

/// Where an order goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Address {
    pub(crate) name: String,
    pub(crate) street: String,
    pub(crate) city: String,
    pub(crate) postal_code: String,
    pub(crate) country: String,
}

impl Address {
    /// The fields under the names that the contract gives them.
    fn fields(&self) -> [(&'static str, &str); 5] {
        [
            ("ship_to.name", &self.name),
            ("ship_to.street", &self.street),
            ("ship_to.city", &self.city),
            ("ship_to.postal_code", &self.postal_code),
            ("ship_to.country", &self.country),
        ]
    }
}

/// Stands for the content of a request. Requests that ask for the same copies of the same books to be sent to the same
/// place have the same, in whatever order and split they name the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u128);

/// What a request asks for, after its fields were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    request_id: String,
    lines: Vec<(Sku, i32)>,
    ship_to: Option<Address>,
}

impl Draft {
    /// Checks the fields of a request, and adds up the lines of one SKU; the first one gives the place. Refused with
    /// the broken fields, at most 20 of them.
    pub(crate) fn new(
        request_id: &str,
        lines: Vec<(String, i32)>,
        ship_to: Option<Address>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors(Vec::new());
        check_request_id(request_id, &mut errors);
        let lines = merge(lines, &mut errors);
        if let Some(address) = &ship_to {
            check_address(address, &mut errors);
        }
        if errors.0.is_empty() {
            Ok(Self { request_id: request_id.to_owned(), lines, ship_to })
        } else {
            Err(errors.0)
        }
    }

    /// The id of the order that this becomes.
    pub(crate) fn order_id(&self) -> OrderId {
        OrderId::of_request(&self.request_id)
    }

    /// Copies by SKU, each SKU once.
    pub(crate) fn lines(&self) -> &[(Sku, i32)] {
        &self.lines
    }

    pub(crate) fn ship_to(&self) -> Option<&Address> {
        self.ship_to.as_ref()
    }

    /// The lines of a reservation for all copies.
    pub(crate) fn reservation_lines(&self) -> impl Iterator<Item = (&Sku, i32)> {
        self.lines.iter().flat_map(|(sku, quantity)| reservation_lines(sku, *quantity))
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Xxh3::new();
        // Lengths keep neighbours apart. The request id is part of it because two of them could share an order id.
        let mut add = |text: &str| {
            hash.update(&text.len().to_le_bytes());
            hash.update(text.as_bytes());
        };
        add(&self.request_id);
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_unstable();
        for (sku, quantity) in lines {
            add(sku.as_str());
            add(&quantity.to_string());
        }
        for (field, text) in self.ship_to.iter().flat_map(Address::fields) {
            add(field);
            add(text);
        }
        Fingerprint(hash.digest128())
    }
}

/// The lines of a reservation for these copies: several when they are more than one line may hold, but never more than
/// the request had.
pub(crate) fn reservation_lines(sku: &Sku, quantity: i32) -> impl Iterator<Item = (&Sku, i32)> {
    let whole = usize::try_from(quantity / MAX_QUANTITY).unwrap_or_default();
    let rest = quantity % MAX_QUANTITY;
    let rest = (rest > 0).then_some(rest);
    std::iter::repeat_n(MAX_QUANTITY, whole).chain(rest).map(move |units| (sku, units))
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, field: impl Into<String>, rule: impl Into<String>) {
        if self.0.len() < MAX_FIELD_ERRORS {
            self.0.push(FieldError { field: field.into(), rule: rule.into() });
        }
    }
}

fn check_request_id(request_id: &str, errors: &mut Errors) {
    let chars = request_id.chars().count();
    if !(1..=MAX_REQUEST_ID_CHARS).contains(&chars) {
        errors.add("request_id", format!("must have 1 to {MAX_REQUEST_ID_CHARS} characters, had {chars}"));
    } else if let Some(odd) = request_id.chars().find(|c| !matches!(c, ' '..='~')) {
        errors.add("request_id", format!("must be printable ASCII, had {odd:?}"));
    }
}

fn check_address(address: &Address, errors: &mut Errors) {
    for (field, text) in address.fields() {
        let chars = text.chars().count();
        if chars > MAX_ADDRESS_CHARS {
            errors.add(field, format!("must have at most {MAX_ADDRESS_CHARS} characters, had {chars}"));
        } else if field == "ship_to.country"
            && !text.is_empty()
            && !(text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()))
        {
            errors.add(field, format!("must be two capital letters or empty, was {text:?}"));
        }
    }
}

fn merge(lines: Vec<(String, i32)>, errors: &mut Errors) -> Vec<(Sku, i32)> {
    if !(1..=MAX_LINES).contains(&lines.len()) {
        errors.add("lines", format!("must have 1 to {MAX_LINES} entries, had {}", lines.len()));
        return Vec::new();
    }
    let mut merged: Vec<(Sku, i32)> = Vec::with_capacity(lines.len());
    let mut places: HashMap<Sku, usize> = HashMap::with_capacity(lines.len());
    for (index, (sku, quantity)) in lines.into_iter().enumerate() {
        if !(1..=MAX_QUANTITY).contains(&quantity) {
            errors.add(
                format!("lines[{index}].quantity"),
                format!("must be from 1 to {MAX_QUANTITY}, was {quantity}"),
            );
        }
        let sku = match Sku::new(sku) {
            Ok(sku) => sku,
            Err(text) => {
                errors.add(
                    format!("lines[{index}].sku"),
                    format!("must be 13 digits with a right check digit, was {}", shorten(&text)),
                );
                continue;
            }
        };
        match places.get(&sku).and_then(|&place| merged.get_mut(place)) {
            // MAX_LINES times MAX_QUANTITY fits; what is out of range was refused above.
            Some((_, sum)) => *sum = sum.saturating_add(quantity),
            None => {
                places.insert(sku.clone(), merged.len());
                merged.push((sku, quantity));
            }
        }
    }
    merged
}

/// The text in quotes, cut when it is too long to repeat.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "9790000000018";
    const B: &str = "9790000000025";

    fn draft(
        request_id: &str,
        lines: &[(&str, i32)],
        ship_to: Option<Address>,
    ) -> Result<Draft, Vec<FieldError>> {
        Draft::new(request_id, lines.iter().map(|&(sku, n)| (sku.to_owned(), n)).collect(), ship_to)
    }

    fn city(city: &str) -> Option<Address> {
        Some(Address { city: city.to_owned(), ..Address::default() })
    }

    fn check(request_id: &str, lines: &[(&str, i32)], ship_to: Option<Address>, expected: &[(&str, &str)]) {
        let errors = draft(request_id, lines, ship_to).map_or_else(|errors| errors, |_| Vec::new());
        let errors: Vec<_> = errors.iter().map(|e| (e.field.as_str(), e.rule.as_str())).collect();
        assert_eq!(errors, expected);
    }

    #[test]
    fn every_broken_field_is_named_with_its_rule() {
        let ok: &[(&str, i32)] = &[(A, 1)];
        check("r", ok, None, &[]);
        check(" ~", ok, Some(Address::default()), &[]);
        check(&"r".repeat(255), &[(A, 1_000_000)], city(&"é".repeat(200)), &[]);
        check("", ok, None, &[("request_id", "must have 1 to 255 characters, had 0")]);
        check(&"r".repeat(256), ok, None, &[("request_id", "must have 1 to 255 characters, had 256")]);
        check("a\nb", ok, None, &[("request_id", r"must be printable ASCII, had '\n'")]);
        check("é", ok, None, &[("request_id", "must be printable ASCII, had 'é'")]);
        check("r", &[], None, &[("lines", "must have 1 to 1000 entries, had 0")]);
        check("r", &[(A, 1); 1001], None, &[("lines", "must have 1 to 1000 entries, had 1001")]);
        check(
            "r",
            &[(A, 0), ("979", 1), (B, 1_000_001), (B, i32::MIN)],
            None,
            &[
                ("lines[0].quantity", "must be from 1 to 1000000, was 0"),
                ("lines[1].sku", "must be 13 digits with a right check digit, was \"979\""),
                ("lines[2].quantity", "must be from 1 to 1000000, was 1000001"),
                ("lines[3].quantity", "must be from 1 to 1000000, was -2147483648"),
            ],
        );
        let long = city(&"é".repeat(201));
        check("r", ok, long, &[("ship_to.city", "must have at most 200 characters, had 201")]);
        for country in ["de", "D", "DEU", "ÖÖ"] {
            let address = Address { country: country.to_owned(), ..Address::default() };
            let rule = format!("must be two capital letters or empty, was {country:?}");
            check("r", ok, Some(address), &[("ship_to.country", &rule)]);
        }
    }

    #[test]
    fn a_refusal_names_at_most_twenty_fields() {
        assert_eq!(draft("", &[("", 0); 1000], None).unwrap_err().len(), 20);
    }

    #[test]
    fn a_long_text_is_not_repeated() {
        let errors = draft("r", &[(&"ü".repeat(100_000), 1)], None).unwrap_err();
        assert!(errors[0].rule.len() < 150, "{}", errors[0].rule);
    }

    #[test]
    fn lines_of_one_sku_add_up() {
        let draft = draft("r", &[(B, 1), (A, 2), (B, 3)], None).unwrap();
        let lines: Vec<_> = draft.lines().iter().map(|(sku, n)| (sku.as_str(), *n)).collect();
        assert_eq!(lines, [(B, 4), (A, 2)]);
    }

    #[test]
    fn a_reservation_line_holds_no_more_than_it_may() {
        let draft = draft("r", &[(A, 1_000_000), (B, 7), (A, 1_000_000), (A, 1)], None).unwrap();
        let lines: Vec<_> = draft.reservation_lines().map(|(sku, n)| (sku.as_str(), n)).collect();
        assert_eq!(lines, [(A, 1_000_000), (A, 1_000_000), (A, 1), (B, 7)]);
    }

    #[test]
    fn the_largest_order_keeps_its_copies() {
        let draft = draft("r", &[(A, 1_000_000); 1000], None).unwrap();
        assert_eq!(draft.lines()[0].1, 1_000_000_000);
        assert_eq!(draft.reservation_lines().count(), 1000);
    }

    #[test]
    fn the_fingerprint_tells_contents_apart() {
        let of = |request_id, lines: &[(&str, i32)], ship_to| {
            draft(request_id, lines, ship_to).unwrap().fingerprint()
        };
        let first = of("r", &[(A, 1), (B, 3)], city("Ulm"));
        assert_eq!(first, of("r", &[(B, 1), (A, 1), (B, 2)], city("Ulm")));
        for other in [
            of("s", &[(A, 1), (B, 3)], city("Ulm")),
            of("r", &[(A, 3), (B, 1)], city("Ulm")),
            of("r", &[(A, 1)], city("Ulm")),
            of("r", &[(A, 1), (B, 3)], city("Bonn")),
            of("r", &[(A, 1), (B, 3)], city("")),
            of("r", &[(A, 1), (B, 3)], None),
        ] {
            assert_ne!(first, other);
        }
    }
}
