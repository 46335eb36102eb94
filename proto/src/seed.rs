//! What every part of the suite may know about the seeded data without asking: how many there are, and their names.

/// How many books a service starts with unless it is told another number.
pub const BOOKS: i32 = 50;

/// How many authors there are, whatever the number of books.
pub const AUTHORS: i32 = 10;

/// How many reviews there are on the first [`BOOKS`] books.
pub const REVIEWS: i32 = REVIEWS_OF_BOOK * BOOKS;

/// How many reviews a book has.
pub const REVIEWS_OF_BOOK: i32 = 4;

/// How many books have reviews, if there are so many.
pub const REVIEWED_BOOKS: i32 = 250;

/// Units in stock of each book at start.
pub const STOCK: i32 = 1_000_000;

/// How many orders there are, numbered from 1. Those with odd numbers have shipped, the others are placed.
pub const ORDERS: i32 = 20;

/// Lines of each seeded order.
pub const ORDER_LINES: i32 = 8;

/// The id of the seeded order `number`.
pub fn order_id(number: i32) -> String {
    format!("ord_{:032}", number.unsigned_abs())
}

/// The SKU of the seeded book `book_id`: a valid ISBN-13 that no publisher uses.
///
/// The digits are 979, the book's id in nine places, and the check digit of ISO 2108.
pub fn sku(book_id: i32) -> String {
    format!("{:013}", sku_number(book_id))
}

/// The id of the book that has this SKU, if a seeded one can have it.
pub fn book_of(sku: &str) -> Option<i32> {
    let digits: &[u8; 13] = sku.as_bytes().try_into().ok()?;
    let number = digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))?;
    book_of_number(number)
}

/// A SKU before the check digit: this and the book's id.
const PREFIX: u64 = 979_000_000_000;

/// The SKU of the seeded book `book_id`, read as a number.
pub fn sku_number(book_id: i32) -> u64 {
    let body = PREFIX + u64::from(book_id.unsigned_abs());
    // From the last digit to the first.
    let (mut rest, mut sum, mut weight) = (body, 0, 3);
    while rest > 0 {
        sum += rest % 10 * weight;
        weight = 4 - weight;
        rest /= 10;
    }
    body * 10 + (10 - sum % 10) % 10
}

/// As [`book_of`], for a SKU read as a number.
pub fn book_of_number(sku: u64) -> Option<i32> {
    let book_id = (sku / 10).checked_sub(PREFIX).filter(|id| (1..1_000_000_000).contains(id))?;
    let book_id = i32::try_from(book_id).ok()?;
    (sku_number(book_id) == sku).then_some(book_id)
}

/// Titles of the first [`BOOKS`] books.
const TITLES: [&str; BOOKS as usize] = [
    "Ember", "Tides", "Salt", "Hollow", "Thaw", "Orchid", "Relic", "Drift", "Ash", "Loom", "Vesper", "Cairn",
    "Fable", "Moth", "Harbor", "Quarry", "Lark", "Signal", "Marrow", "Dusk", "Kiln", "Nomad", "Thorn",
    "Parish", "Echo", "Silt", "Raven", "Pilgrim", "Glass", "Tundra", "Wick", "Exile", "Bramble", "Flint",
    "Mercy", "Atlas", "Fog", "Sonata", "Yield", "Copper", "Inlet", "Juniper", "Rust", "Oath", "Delta",
    "Sparrow", "Lantern", "Vow", "Cinder", "Haven",
];

/// The title of the seeded book `book_id`. Books beyond the titles are sequels: `Ember`, `Ember 2`, `Ember 3`.
pub fn title(book_id: i32) -> String {
    let before = book_id.unsigned_abs().saturating_sub(1) as usize;
    let title = TITLES.get(before % TITLES.len()).copied().unwrap_or_default();
    match before / TITLES.len() {
        0 => title.to_owned(),
        sequels => format!("{title} {}", sequels + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skus_have_thirteen_digits_and_a_right_check_digit() {
        assert_eq!(sku(1), "9790000000018");
        for id in [1, 9, 10, 50, 1_000_000, 999_999_999] {
            let sku = sku(id);
            assert_eq!(sku.len(), 13);
            let sum: u32 =
                sku.bytes().zip([1, 3].into_iter().cycle()).map(|(b, w)| u32::from(b - b'0') * w).sum();
            assert_eq!(sum % 10, 0, "{sku}");
            assert_eq!(book_of(&sku), Some(id));
        }
        // A wrong check digit, no id, another prefix, another length.
        for other in
            ["9790000000019", "9790000000001", "9783161484100", "979000000001", "97900000000180", "é"]
        {
            assert_eq!(book_of(other), None, "{other}");
        }
    }

    #[test]
    fn each_book_has_a_title_of_its_own() {
        let titles = [1, 2, 50, 51, 100, 101, 1_201].map(title);
        assert_eq!(titles, ["Ember", "Tides", "Haven", "Ember 2", "Haven 2", "Ember 3", "Ember 25"]);
        let all: std::collections::HashSet<String> = (1..=10_000).map(title).collect();
        assert_eq!(all.len(), 10_000);
    }
}
