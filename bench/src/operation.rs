//! What each style sends for an operation, and what a right reply holds.

pub mod detail;
pub mod reserve;

use anyhow::{Context as _, bail};
use prost::Message;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::case::{Asks, Operation, Style, Way};
use crate::request::{Call, Expect};

/// One operation of a style.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Sent at once.
    pub calls: Vec<Call>,
    /// Sent when all of those are answered: the path, and the field of the first reply whose number goes into it.
    pub then: Option<Then>,
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
        self.calls.len() + usize::from(self.then.is_some())
    }
}

/// The published documents that cases name.
const DOCUMENTS: [(&str, &str); 2] = [
    ("BookDetail", include_str!("../../graphql/operations/BookDetail.graphql")),
    ("ReserveStock", include_str!("../../graphql/operations/ReserveStock.graphql")),
];

/// How the order ids of a run look: the name of the run, then the order's number.
pub const ORDER_NUMBER: &str = "0000000000";

/// What the style sends for the operation. `run` names the run in its order ids.
pub fn recipe(operation: Operation, way: &Way, run: &str) -> anyhow::Result<Recipe> {
    let one = |call| Ok(Recipe { calls: vec![call], then: None });
    match &way.asks {
        Asks::Requests { requests, then } => {
            let calls = requests.iter().map(|line| rest(operation, line, run)).collect::<Result<_, _>>()?;
            let path = then.strip_prefix("GET ").context("what follows must be a GET")?;
            let (before, rest) = path.split_once('{').context("what follows must need a reply")?;
            let (field, after) = rest.split_once('}').context("a brace that doesn't close")?;
            let key = format!("\"{field}\":");
            Ok(Recipe { calls, then: Some(Then { before: before.to_owned(), after: after.to_owned(), key }) })
        }
        Asks::Request { request } => one(rest(operation, request, run)?),
        Asks::Document { document } => {
            let found = DOCUMENTS.iter().find(|(name, _)| name == document);
            let (_, text) = found.with_context(|| format!("no document {document} is built in"))?;
            one(graphql(operation, text, way.style == Style::GraphqlPersisted, run))
        }
        Asks::Method { method } => one(grpc(operation, method, way.style == Style::GrpcWeb, run)),
    }
}

fn get(path: String) -> Call {
    let headers = vec![("accept", "application/json")];
    Call { method: "GET", path, headers, body: Vec::new(), order_at: None, expect: Expect::Status(200) }
}

fn post(path: String, body: Vec<u8>, expect: Expect) -> Call {
    let headers = vec![("accept", "application/json"), ("content-type", "application/json")];
    let order_at = order_at(&body);
    Call { method: "POST", path, headers, body, order_at, expect }
}

fn order_at(body: &[u8]) -> Option<usize> {
    let start = body
        .windows(ORDER_NUMBER.len() + 1)
        .position(|w| w.ends_with(ORDER_NUMBER.as_bytes()) && w.starts_with(b"-"))?;
    Some(start + 1)
}

fn rest(operation: Operation, line: &str, run: &str) -> anyhow::Result<Call> {
    let (method, path) = line.split_once(' ').context("a request is a method and a path")?;
    match (method, operation) {
        ("GET", Operation::Detail { book, reviews }) => {
            let path = path.replace("{book}", &book.to_string()).replace("{reviews}", &reviews.to_string());
            Ok(get(path))
        }
        ("POST", Operation::Reserve { .. }) => {
            let body = operation.input(run).to_string().into_bytes();
            Ok(post(path.to_owned(), body, Expect::Status(201)))
        }
        _ => bail!("{line} is no way to ask for this operation"),
    }
}

fn graphql(operation: Operation, text: &str, persisted: bool, run: &str) -> Call {
    let variables = match operation {
        Operation::Reserve { .. } => json!({ "input": operation.input(run) }),
        Operation::Detail { book, .. } => json!({ "id": book }),
    };
    if !persisted {
        let body = json!({ "query": text, "variables": variables });
        return post("/graphql".to_owned(), body.to_string().into_bytes(), Expect::Data);
    }
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let extensions = json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } });
    if matches!(operation, Operation::Reserve { .. }) {
        let body = json!({ "extensions": extensions, "variables": variables });
        return post("/graphql".to_owned(), body.to_string().into_bytes(), Expect::Data);
    }
    let path = format!("/graphql?extensions={}&variables={}", escape(&extensions), escape(&variables));
    Call { expect: Expect::Data, ..get(path) }
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

fn grpc(operation: Operation, method: &str, web: bool, run: &str) -> Call {
    let message = match operation {
        Operation::Reserve { .. } => {
            reserve::message(operation.order(run), operation.lines()).encode_to_vec()
        }
        Operation::Detail { book, reviews } => detail::message(book, reviews).encode_to_vec(),
    };
    let body = framed(&message);
    let (headers, expect) = if web {
        (vec![("content-type", "application/grpc-web+proto")], Expect::GrpcWeb)
    } else {
        (vec![("content-type", "application/grpc"), ("te", "trailers")], Expect::Grpc)
    };
    let order_at = order_at(&body);
    Call { method: "POST", path: format!("/{method}"), headers, body, order_at, expect }
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

    /// Whether a new order id is needed each time.
    pub fn writes(self) -> bool {
        matches!(self, Self::Reserve { .. })
    }
}
