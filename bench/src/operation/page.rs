//! A page of the catalogue with all that belongs to each book.

use std::io::Read as _;

use flate2::read::GzDecoder;
use prost::Message as _;
use proto::catalog::v1 as pb;
use serde_json::Value;

use super::detail::{self, Screen};
use super::first_message;
use crate::case::Style;

/// No page unfolds to more.
const MAX_BYTES: u64 = 64 << 20;

/// The request.
pub fn message(page_size: i32, review_count: i32) -> pb::ListBookDetailsRequest {
    pb::ListBookDetailsRequest { page_size, page_token: String::new(), review_count }
}

/// A page, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In order of id.
    pub screens: Vec<Screen>,
    next: String,
}

/// Reads the page from a reply.
pub fn read(style: Style, body: &[u8]) -> Result<Page, String> {
    if style.is_grpc() {
        let message = first_message(body).ok_or("no message")?;
        let reply =
            pb::ListBookDetailsResponse::decode(message).map_err(|error| format!("the message: {error}"))?;
        if reply.stock_unavailable {
            return Err("no stock".to_owned());
        }
        let screens = reply.details.into_iter().map(|detail| {
            let pb::BookDetail { book, author, in_stock, reviews, stock_unavailable } = detail;
            detail::from_message(pb::GetBookDetailResponse {
                book,
                author,
                in_stock,
                reviews,
                stock_unavailable,
            })
        });
        return Ok(Page { screens: screens.collect::<Result<_, _>>()?, next: reply.next_page_token });
    }
    let mut unzipped = Vec::new();
    if style == Style::RestGzip {
        let mut decoder = GzDecoder::new(body).take(MAX_BYTES);
        decoder.read_to_end(&mut unzipped).map_err(|error| format!("the gzip: {error}"))?;
    } else {
        unzipped.extend_from_slice(body);
    }
    let page: Value = serde_json::from_slice(&unzipped).map_err(|error| format!("the JSON: {error}"))?;
    let details = page.get("details").and_then(Value::as_array).ok_or("no details")?;
    let next = page.get("nextPageToken").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Page { screens: details.iter().map(detail::from_screen).collect::<Result<_, _>>()?, next })
}
