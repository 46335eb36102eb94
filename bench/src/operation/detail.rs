//! The book-detail screen.

use proto::catalog::v1::{GetBookDetailRequest, GetBookDetailResponse};
use serde_json::Value;

use super::first_message;
use crate::case::Style;

/// The request.
pub fn message(book_id: i32, review_count: i32) -> GetBookDetailRequest {
    GetBookDetailRequest { book_id, review_count }
}

/// What the screen shows, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// Id, SKU, title, author's id.
    book: (i64, String, String, i64),
    /// Minor units, currency.
    price: (i64, String),
    /// Id, name, country, year of birth.
    author: (i64, String, String, i64),
    /// Units.
    pub(super) in_stock: i64,
    /// Id, rating, reviewer, text.
    reviews: Vec<(i64, i64, String, String)>,
}

/// Reads the screen from the replies of one operation, in the order of the requests.
pub fn read(style: Style, bodies: &[Vec<u8>]) -> Result<Screen, String> {
    if let (Style::Grpc | Style::GrpcWeb, [body]) = (style, bodies) {
        let message = first_message(body).ok_or("no message")?;
        let reply: GetBookDetailResponse =
            prost::Message::decode(message).map_err(|error| format!("the message: {error}"))?;
        return from_message(reply);
    }
    let values: Vec<Value> = bodies
        .iter()
        .map(|body| serde_json::from_slice(body).map_err(|error| format!("the JSON: {error}")))
        .collect::<Result<_, _>>()?;
    match (style, values.as_slice()) {
        (Style::Rest, [book, stock, reviews, author]) => {
            from_json(book, book.get("authorId"), stock, reviews.get("reviews"), author)
        }
        (Style::RestBff, [screen]) => from_screen(screen),
        (_, [reply]) => {
            let book = reply.pointer("/data/book").ok_or("no book")?;
            let part = |name| book.get(name).ok_or_else(|| format!("no {name}"));
            let author = part("author")?;
            from_json(book, author.get("id"), part("stock")?, book.get("reviews"), author)
        }
        _ => Err(format!("{} replies", values.len())),
    }
}

/// Reads the screen from REST's object for all of it.
pub(super) fn from_screen(screen: &Value) -> Result<Screen, String> {
    let part = |name| screen.get(name).ok_or_else(|| format!("no {name}"));
    let book = part("book")?;
    from_json(book, book.get("authorId"), part("stock")?, screen.get("reviews"), part("author")?)
}

pub(super) fn from_message(reply: GetBookDetailResponse) -> Result<Screen, String> {
    let book = reply.book.ok_or("no book")?;
    let author = reply.author.ok_or("no author")?;
    let price = book.price.ok_or("no price")?;
    if reply.stock_unavailable {
        return Err("no stock".to_owned());
    }
    let reviews = reply.reviews.into_iter();
    Ok(Screen {
        book: (book.id.into(), book.sku, book.title, book.author_id.into()),
        price: (price.amount_minor, price.currency),
        author: (author.id.into(), author.name, author.country, author.born.into()),
        in_stock: reply.in_stock.into(),
        reviews: reviews.map(|r| (r.id.into(), r.rating.into(), r.reviewer, r.text)).collect(),
    })
}

fn from_json(
    book: &Value,
    author_id: Option<&Value>,
    stock: &Value,
    reviews: Option<&Value>,
    author: &Value,
) -> Result<Screen, String> {
    let number = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_i64).ok_or_else(|| format!("no number {name}"))
    };
    let text = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("no text {name}"))
    };
    let price = book.get("price").ok_or("no price")?;
    let reviews = reviews.and_then(Value::as_array).ok_or("no reviews")?;
    Ok(Screen {
        book: (
            number(book, "id")?,
            text(book, "sku")?,
            text(book, "title")?,
            author_id.and_then(Value::as_i64).ok_or("no author id")?,
        ),
        price: (number(price, "amountMinor")?, text(price, "currency")?),
        author: (
            number(author, "id")?,
            text(author, "name")?,
            text(author, "country")?,
            number(author, "born")?,
        ),
        in_stock: number(stock, "inStock")?,
        reviews: reviews
            .iter()
            .map(|r| Ok((number(r, "id")?, number(r, "rating")?, text(r, "reviewer")?, text(r, "text")?)))
            .collect::<Result<_, String>>()?,
    })
}
