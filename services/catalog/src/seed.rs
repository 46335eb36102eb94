//! The books, authors and reviews that a store starts with: the same bytes in every run and in every process.
//!
//! Lengths matter, because byte counts of replies are compared with published ones: as REST JSON a book has about 93
//! bytes, an author 66, a pair of reviews 224.

use std::time::{Duration, SystemTime};

use crate::domain::{Author, AuthorId, Book, BookId, Price, Review, ReviewDraft, ReviewId, Sku};
use crate::store::Contents;

const AUTHORS: [(&str, &str, i32); proto::seed::AUTHORS as usize] = [
    ("Mara Lindqvist", "SE", 1961),
    ("Tomás Arrieta Villalba", "ES", 1948),
    ("Ines Carvalho Monteiro", "PT", 1973),
    ("Jonathan Whitcombe", "GB", 1955),
    ("Adaeze Okonkwo-Bello", "NG", 1980),
    ("Henrik Vestergaard", "DK", 1967),
    ("Marguerite Delacourt", "FR", 1939),
    ("Katarzyna Wolniewicz", "PL", 1976),
    ("Setsuko Yamanobe", "JP", 1952),
    ("Leopold Achterberg", "NL", 1984),
];

const REVIEWERS: [&str; 16] = [
    "Ana Brook",
    "Piet Maas",
    "Lucy Hale",
    "Omar Said",
    "Jun Park",
    "Eva Lind",
    "Tom Reyes",
    "Nina Roth",
    "Carl Foss",
    "Mia Stone",
    "Raj Patel",
    "Ida Holm",
    "Leo Marsh",
    "Zoe Quinn",
    "Max Weber",
    "Sara Vidal",
];

const OPENINGS: [&str; 7] = [
    "Slow to start, then hard to put down",
    "The best thing I have read this year",
    "Quiet, precise and a little too long",
    "Read it in one night and again in May",
    "Fine prose, though the plot wanders",
    "My book club argued about it for weeks",
    "A gift that I ended up keeping myself",
];

const CLOSINGS: [&str; 5] =
    ["the ending stays.", "warmly advised.", "no regrets.", "the map helps.", "worth the price."];

const RATINGS: [u8; 8] = [5, 4, 3, 5, 4, 5, 2, 4];

/// Noon on 1 March 2024.
const FIRST_REVIEW: Duration = Duration::from_secs(1_709_294_400);

/// From one review to the next: 7 hours and 13 minutes, so that the hours differ.
const REVIEW_STEP: Duration = Duration::from_secs(7 * 3600 + 13 * 60);

/// What a store of so many books starts with. The first [`proto::seed::REVIEWED_BOOKS`] have reviews.
pub(crate) fn contents(books: i32) -> Contents<impl Iterator<Item = Review>> {
    let authors = (1..).zip(AUTHORS).filter_map(|(id, (name, country, born))| {
        Some(Author { id: AuthorId::new(id)?, name: name.into(), country: country.into(), born })
    });
    let reviews = proto::seed::REVIEWS_OF_BOOK * books.min(proto::seed::REVIEWED_BOOKS);
    Contents { authors: authors.collect(), books, book, reviews: (1..=reviews).filter_map(review) }
}

/// One of the books. Sequels are by the same author.
pub(crate) fn book(id: BookId) -> Option<Book> {
    let n = id.get();
    Some(Book {
        id,
        sku: Sku::parse(&proto::seed::sku(n))?,
        title: proto::seed::title(n).into(),
        author_id: AuthorId::new((n - 1) % proto::seed::AUTHORS + 1)?,
        // From 8.99 to 49.99 in steps of a euro; 13 and 42 have no common factor, so all of them occur.
        price: Price::new(899 + 100 * i64::from((21 + (n - 1) % 42 * 13) % 42))?,
        version: 1,
    })
}

/// Number `n` of the reviews: four in a row are of one book.
fn review(n: i32) -> Option<Review> {
    let place = usize::try_from(n - 1).ok()?;
    let opening = OPENINGS.get(place % OPENINGS.len())?;
    let closing = CLOSINGS.get(place % CLOSINGS.len())?;
    Some(Review {
        id: ReviewId::new(n)?,
        book_id: BookId::new((n - 1) / proto::seed::REVIEWS_OF_BOOK + 1)?,
        draft: ReviewDraft {
            rating: *RATINGS.get(place % RATINGS.len())?,
            reviewer: (*REVIEWERS.get(place % REVIEWERS.len())?).into(),
            text: format!("{opening}; {closing}").into(),
        },
        created_at: SystemTime::UNIX_EPOCH + FIRST_REVIEW + REVIEW_STEP * u32::try_from(place).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::{Value, json};

    use super::*;

    fn book_json(book: &Book) -> String {
        // By hand, because the order of fields is part of the shape.
        format!(
            r#"{{"id":{},"sku":"{}","title":{},"authorId":{},"price":{{"amountMinor":{},"currency":"EUR"}}}}"#,
            book.id,
            book.sku,
            json!(book.title),
            book.author_id,
            book.price.minor()
        )
    }

    fn author_json(author: &Author) -> String {
        let (id, name, country, born) = (author.id, json!(author.name), &author.country, author.born);
        format!(r#"{{"id":{id},"name":{name},"country":"{country}","born":{born}}}"#)
    }

    fn review_json(review: &Review) -> String {
        let ReviewDraft { rating, reviewer, text } = &review.draft;
        let (id, reviewer, text) = (review.id, json!(reviewer), json!(text));
        format!(r#"{{"id":{id},"rating":{rating},"reviewer":{reviewer},"text":{text}}}"#)
    }

    /// The average must be within 15 % of the published figure.
    fn check_average(what: &str, published: usize, documents: &[String]) {
        for document in documents {
            serde_json::from_str::<Value>(document).unwrap();
        }
        let average = documents.iter().map(String::len).sum::<usize>() as f64 / documents.len() as f64;
        let off = average / published as f64 - 1.0;
        assert!(off.abs() <= 0.15, "{what}: {average} bytes on average, published are {published}");
    }

    fn books(count: i32) -> Vec<Book> {
        (1..=count).map(|n| book(BookId::new(n).unwrap()).unwrap()).collect()
    }

    fn seeded() -> (Vec<Author>, Vec<Book>, Vec<Review>) {
        let contents = contents(proto::seed::BOOKS);
        (contents.authors, books(contents.books), contents.reviews.collect())
    }

    #[test]
    fn replies_are_as_long_as_the_published_ones() {
        let (authors, books, reviews) = seeded();
        check_average("book", 93, &books.iter().map(book_json).collect::<Vec<_>>());
        check_average("author", 66, &authors.iter().map(author_json).collect::<Vec<_>>());
        let pairs: Vec<String> = reviews
            .chunks(4)
            .map(|four| format!(r#"{{"reviews":[{},{}]}}"#, review_json(&four[3]), review_json(&four[2])))
            .collect();
        check_average("two reviews", 224, &pairs);
    }

    #[test]
    fn the_data_are_the_same_in_every_run() {
        let (authors, books, reviews) = seeded();
        let mut text = String::new();
        text.extend(authors.iter().map(author_json));
        text.extend(books.iter().map(book_json));
        for review in &reviews {
            let at = review.created_at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            text += &format!("{}{}@{at:?}", review.book_id, review_json(review));
        }
        // FNV-1a, 64 bits.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!(
            hash, 8_570_476_358_154_352_366,
            "a change of the data changes every published byte count"
        );
    }

    #[test]
    fn numbers_and_titles_are_as_promised() {
        let (authors, books, reviews) = seeded();
        assert_eq!((authors.len(), books.len(), reviews.len()), (10, 50, 200));
        assert_eq!(books.iter().map(|b| &b.title).collect::<HashSet<_>>().len(), 50);
        for book in &books {
            assert_eq!(reviews.iter().filter(|r| r.book_id == book.id).count(), 4);
        }
        assert!(books.iter().all(|b| (899..=4999).contains(&b.price.minor())));
    }

    #[test]
    fn more_books_than_titles_are_sequels() {
        let books = books(1_234);
        assert_eq!(
            (&*books[0].title, &*books[50].title, &*books[1_200].title),
            ("Ember", "Ember 2", "Ember 25")
        );
        assert_eq!(books[0].author_id, books[1_200].author_id);
        assert_eq!(books.iter().map(|b| &b.title).collect::<HashSet<_>>().len(), 1_234);
    }
}
