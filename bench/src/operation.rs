//! What each style sends for an operation, and what a right reply holds.

pub mod bulk;
pub mod detail;
pub mod list;
pub mod order;
pub mod page;
pub mod reserve;

use anyhow::{Context as _, bail};
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::case::{Asks, Case, Operation, Style, Way};
use crate::request::{Call, Expect};

/// One operation of a style.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Sent at once.
    pub calls: Vec<Call>,
    /// Sent when all of those are answered: the path, and the field of the first reply whose number goes into it.
    pub then: Option<Then>,
    /// How many times in a row all this is done in one operation.
    pub times: usize,
}

/// A request that needs another's reply.
#[derive(Debug, Clone)]
pub struct Then {
    before: String,
    after: String,
    /// The field with its quotes and colon, as it stands in the reply.
    pub key: String,
}

impl Then {
    /// The request for this number.
    pub fn call(&self, number: u32) -> Call {
        get(format!("{}{number}{}", self.before, self.after))
    }
}

impl Recipe {
    /// Requests of one operation.
    pub fn requests(&self) -> usize {
        self.calls.len() * self.times + usize::from(self.then.is_some())
    }
}

/// The published documents that cases name.
const DOCUMENTS: [(&str, &str); 5] = [
    ("BookDetail", include_str!("../../graphql/operations/BookDetail.graphql")),
    ("GetOrderFull", include_str!("../../graphql/operations/GetOrderFull.graphql")),
    ("GetOrderHistory", include_str!("../../graphql/operations/GetOrderHistory.graphql")),
    ("GetOrderStatus", include_str!("../../graphql/operations/GetOrderStatus.graphql")),
    ("ReserveStock", include_str!("../../graphql/operations/ReserveStock.graphql")),
];

/// How the order ids of a run look: the name of the run, then the order's number.
pub const ORDER_NUMBER: &str = "0000000000";

/// What the style sends for the case's operation. `run` names the run in its order ids.
pub fn recipe(case: &Case, way: &Way, run: &str) -> anyhow::Result<Recipe> {
    let operation = case.operation;
    let one = |call| Ok(Recipe { calls: vec![call], then: None, times: case.times });
    match &way.asks {
        Asks::Requests { requests, then } => {
            let calls = requests
                .iter()
                .map(|line| rest(operation, way.style, line, run))
                .collect::<Result<_, _>>()?;
            let path = then.strip_prefix("GET ").context("what follows must be a GET")?;
            let (before, rest) = path.split_once('{').context("what follows must need a reply")?;
            let (field, after) = rest.split_once('}').context("a brace that doesn't close")?;
            let key = format!("\"{field}\":");
            let then = Then { before: before.to_owned(), after: after.to_owned(), key };
            Ok(Recipe { calls, then: Some(then), times: 1 })
        }
        Asks::Request { request } => one(rest(operation, way.style, request, run)?),
        Asks::Document { document } => {
            let found = DOCUMENTS.iter().find(|(name, _)| name == document);
            let (_, text) = found.with_context(|| format!("no document {document} is built in"))?;
            one(graphql(operation, text, way.style == Style::GraphqlPersisted, run)?)
        }
        Asks::Method { method } => one(grpc(operation, method, way.style, way.style == Style::GrpcWeb, run)),
    }
}

/// How to read what the service holds without the style that is measured: over REST, and over gRPC-Web, which needs no
/// HTTP/2. As the case's own ways have it.
pub fn readings(case: &Case) -> anyhow::Result<Vec<(Style, Call)>> {
    let mut readings = Vec::new();
    for way in &case.ways {
        let reading = match &way.asks {
            Asks::Request { request } => (way.style, rest(case.operation, way.style, request, "")?),
            Asks::Method { method } => (Style::GrpcWeb, grpc(case.operation, method, way.style, true, "")),
            _ => continue,
        };
        if readings.iter().all(|(style, _): &(Style, Call)| style.is_rest() != reading.0.is_rest()) {
            readings.push(reading);
        }
    }
    Ok(readings)
}

fn get(path: String) -> Call {
    Call {
        method: "GET",
        path,
        headers: vec![("accept", "application/json")],
        if_none_match: None,
        body: Vec::new(),
        order_at: None,
        expect: Expect::Status(200),
    }
}

fn post(path: String, body: Vec<u8>, expect: Expect) -> Call {
    let headers = vec![("accept", "application/json"), ("content-type", "application/json")];
    let order_at = order_at(&body);
    Call { method: "POST", path, headers, if_none_match: None, body, order_at, expect }
}

fn order_at(body: &[u8]) -> Option<usize> {
    let start = body
        .windows(ORDER_NUMBER.len() + 1)
        .position(|w| w.ends_with(ORDER_NUMBER.as_bytes()) && w.starts_with(b"-"))?;
    Some(start + 1)
}

fn rest(operation: Operation, style: Style, line: &str, run: &str) -> anyhow::Result<Call> {
    let (method, path) = line.split_once(' ').context("a request is a method and a path")?;
    match (method, operation) {
        ("POST", Operation::Reserve { .. }) => {
            let body = operation.input(run).to_string().into_bytes();
            Ok(post(path.to_owned(), body, Expect::Status(201)))
        }
        ("POST", Operation::Import { books }) => {
            let (body, kind) = bulk::upload(style, books);
            let headers = vec![("accept", "application/json"), ("content-type", kind)];
            Ok(Call { headers, order_at: None, ..post(path.to_owned(), body, Expect::Status(200)) })
        }
        ("GET", Operation::Reserve { .. } | Operation::Import { .. }) => {
            bail!("{line} is no way to ask for this operation")
        }
        ("GET", _) => {
            let mut call = get(operation.fill_in(path));
            match style {
                Style::RestNdjson => call.headers = vec![("accept", "application/x-ndjson")],
                Style::RestGzip => {
                    call.headers.push(("accept-encoding", "gzip"));
                    call.expect = Expect::Gzip;
                }
                // The tag is the server's to give.
                Style::RestNotModified => call.expect = Expect::NotModified,
                _ => {}
            }
            Ok(call)
        }
        _ => bail!("{line} is no way to ask for this operation"),
    }
}

fn graphql(operation: Operation, text: &str, persisted: bool, run: &str) -> anyhow::Result<Call> {
    let variables = match operation {
        Operation::Reserve { .. } => json!({ "input": operation.input(run) }),
        Operation::Detail { book, .. } => json!({ "id": book }),
        Operation::Order { number, .. } => json!({ "id": proto::seed::order_id(number) }),
        Operation::List { .. }
        | Operation::Export { .. }
        | Operation::Import { .. }
        | Operation::Page { .. } => bail!("no style of GraphQL asks for this operation"),
    };
    if !persisted {
        let body = json!({ "query": text, "variables": variables });
        return Ok(post("/graphql".to_owned(), body.to_string().into_bytes(), Expect::Data));
    }
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let extensions = json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } });
    if operation.writes() {
        let body = json!({ "extensions": extensions, "variables": variables });
        return Ok(post("/graphql".to_owned(), body.to_string().into_bytes(), Expect::Data));
    }
    let path = format!("/graphql?extensions={}&variables={}", escape(&extensions), escape(&variables));
    Ok(Call { expect: Expect::Data, ..get(path) })
}

/// JSON in a query string.
fn escape(value: &Value) -> String {
    let mut text = String::new();
    for byte in value.to_string().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:,".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn grpc(operation: Operation, method: &str, style: Style, web: bool, run: &str) -> Call {
    let body = match operation {
        Operation::Reserve { .. } => {
            framed(&reserve::message(operation.order(run), operation.lines()).encode_to_vec())
        }
        Operation::Detail { book, reviews } => framed(&detail::message(book, reviews).encode_to_vec()),
        Operation::Order { number, view } => framed(&order::message(number, view).encode_to_vec()),
        Operation::List { page_size } => framed(&list::message(page_size).encode_to_vec()),
        Operation::Export { limit } => {
            framed(&bulk::export(limit, style.batch().unwrap_or_default()).encode_to_vec())
        }
        Operation::Import { books } => bulk::framed_upload(style, books),
        Operation::Page { page_size, reviews } => framed(&page::message(page_size, reviews).encode_to_vec()),
    };
    let (headers, expect) = match (web, operation) {
        (true, Operation::Export { .. }) => {
            (vec![("content-type", "application/grpc-web+proto")], Expect::GrpcWebStream)
        }
        (true, _) => (vec![("content-type", "application/grpc-web+proto")], Expect::GrpcWeb),
        (false, Operation::Export { .. }) => {
            (vec![("content-type", "application/grpc"), ("te", "trailers")], Expect::GrpcStream)
        }
        (false, _) => (vec![("content-type", "application/grpc"), ("te", "trailers")], Expect::Grpc),
    };
    let order_at = if operation.writes() { order_at(&body) } else { None };
    Call { method: "POST", path: format!("/{method}"), headers, if_none_match: None, body, order_at, expect }
}

/// A message as gRPC sends it.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    body
}

/// The first message of a gRPC or gRPC-Web body.
pub fn first_message(body: &[u8]) -> Option<&[u8]> {
    let (&[flags, a, b, c, d], rest) = body.split_first_chunk::<5>()?;
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    (flags == 0).then(|| rest.get(..len)).flatten()
}

/// The messages of a body, up to the trailers that gRPC-Web has at its end; nothing for one that is cut.
pub fn messages(mut body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if body.is_empty() || body.first() == Some(&0x80) {
            return None;
        }
        let message = first_message(body);
        body = message.and_then(|message| body.get(5 + message.len()..)).unwrap_or_default();
        Some(message)
    })
}

impl Operation {
    fn order(self, run: &str) -> String {
        format!("{run}-{ORDER_NUMBER}")
    }

    /// The lines of a reservation: the first books, one line each.
    pub fn lines(self) -> Vec<(String, i32)> {
        let Self::Reserve { lines, quantity } = self else { return Vec::new() };
        (1..=lines).map(|book| (proto::seed::sku(book), quantity)).collect()
    }

    fn input(self, run: &str) -> Value {
        let line = |(sku, quantity)| json!({ "sku": sku, "quantity": quantity });
        let lines: Vec<Value> = self.lines().into_iter().map(line).collect();
        json!({ "orderId": self.order(run), "lines": lines })
    }

    /// The path with the operation's own values.
    fn fill_in(self, path: &str) -> String {
        match self {
            Self::Reserve { .. } | Self::Import { .. } => path.to_owned(),
            Self::Detail { book, reviews } => {
                path.replace("{book}", &book.to_string()).replace("{reviews}", &reviews.to_string())
            }
            Self::Order { number, view } => {
                path.replace("{order}", &proto::seed::order_id(number)).replace("{view}", view.as_str())
            }
            Self::List { page_size } => path.replace("{page_size}", &page_size.to_string()),
            Self::Export { limit } => path.replace("{limit}", &limit.to_string()),
            Self::Page { page_size, reviews } => {
                path.replace("{page_size}", &page_size.to_string()).replace("{reviews}", &reviews.to_string())
            }
        }
    }

    /// Whether a new order id is needed each time.
    pub fn writes(self) -> bool {
        matches!(self, Self::Reserve { .. })
    }
}

/// An amount of money, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Money {
    amount_minor: i64,
    currency: String,
}

impl From<proto::common::v1::Money> for Money {
    fn from(money: proto::common::v1::Money) -> Self {
        Self { amount_minor: money.amount_minor, currency: money.currency }
    }
}

/// What the replies of one operation hold, whatever the style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A book-detail screen.
    Screen(detail::Screen),
    /// An order.
    Order(Box<order::Order>),
    /// Books.
    Books(list::Books),
    /// What became of an upload.
    Outcome(bulk::Outcome),
    /// A page of books with all that belongs to each.
    Page(page::Page),
}

impl Operation {
    /// Reads what the replies of one operation hold, in the order of the requests.
    pub fn read(self, style: Style, bodies: &[Vec<u8>]) -> Result<Content, String> {
        if let Self::Detail { .. } = self {
            return detail::read(style, bodies).map(Content::Screen);
        }
        let mut found = None;
        for body in bodies {
            let content = match self {
                Self::Order { .. } => Content::Order(Box::new(order::read(style, body)?)),
                Self::List { .. } => Content::Books(list::read(style, body)?),
                Self::Export { .. } => Content::Books(bulk::read(style, body)?),
                Self::Import { .. } => Content::Outcome(bulk::outcome(style, body)?),
                Self::Page { .. } => Content::Page(page::read(style, body)?),
                Self::Detail { .. } | Self::Reserve { .. } => return Err("nothing to read".to_owned()),
            };
            let wanted = match self {
                Self::List { page_size: count } | Self::Page { page_size: count, .. } => count,
                Self::Export { limit: count } | Self::Import { books: count } => count,
                Self::Order { .. } | Self::Detail { .. } | Self::Reserve { .. } => 1,
            };
            if content.count() != wanted as usize {
                return Err(format!("{} books instead of {wanted}", content.count()));
            }
            match &found {
                Some(first) => content.is_same(first)?,
                None => found = Some(content),
            }
        }
        found.ok_or_else(|| "no replies".to_owned())
    }
}

impl Content {
    /// Without what is in stock, which changes in a suite that others call, too.
    #[must_use]
    pub fn without_stock(mut self) -> Self {
        match &mut self {
            Self::Screen(screen) => screen.in_stock = 0,
            Self::Page(page) => page.screens.iter_mut().for_each(|screen| screen.in_stock = 0),
            Self::Order(_) | Self::Books(_) | Self::Outcome(_) => {}
        }
        self
    }

    /// How many books or other things it has.
    fn count(&self) -> usize {
        match self {
            Self::Screen(_) | Self::Order(_) => 1,
            Self::Books(books) => books.books.len(),
            Self::Outcome(outcome) => usize::try_from(outcome.imported_count).unwrap_or_default(),
            Self::Page(page) => page.screens.len(),
        }
    }

    /// Says where it differs from what is expected.
    pub fn is_same(&self, expected: &Self) -> Result<(), String> {
        if self == expected {
            return Ok(());
        }
        let (found, expected) = (format!("{self:?}"), format!("{expected:?}"));
        let same = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
        let near = |text: &str| {
            let start = same.saturating_sub(40);
            let near = text.as_bytes().get(start..).unwrap_or_default();
            String::from_utf8_lossy(near.get(..160).unwrap_or(near)).into_owned()
        };
        Err(format!("..{}.. instead of ..{}..", near(&found), near(&expected)))
    }
}
