//! Calls as GraphQL says them: with the published operations where there is one.

use graphql_bff::OPERATIONS;
use serde_json::{Map, Value, json};

use super::{Answer, Refusal, camel, snake};
use crate::harness::Suite;
use crate::http::{self, Reply};

const GET_BOOK: &str = "query($id: Int!) { book(id: $id) {
    id sku title price { amountMinor currency } version author { id } } }";
const GET_STOCK: &str = "query($id: Int!) { book(id: $id) { stock { bookId sku inStock reserved sold } } }";
const GET_DETAIL: &str = "query($id: Int!, $last: Int! = 2) { book(id: $id) {
    id sku title price { amountMinor currency } version author { id name country born } stock { inStock }
    reviews(last: $last) { id rating reviewer text createdAt } } }";
const LIST_BOOKS: &str = "query($first: Int, $after: String) { books(first: $first, after: $after) {
    nodes { id sku title price { amountMinor currency } version } pageInfo { endCursor } } }";
const LIST_REVIEWS: &str = "query($id: Int!, $last: Int! = 50) { book(id: $id) {
    reviews(last: $last) { id rating reviewer text createdAt } } }";

/// What the edge answers; none when GraphQL can't say the call.
pub(super) async fn call(suite: &Suite, name: &str, input: &Value) -> Option<Answer> {
    let (text, variables) = say(name, input)?;
    let reply =
        http::post_json(suite.graphql, "/graphql", &json!({ "query": text, "variables": variables })).await;
    let body = reply.json();
    if body.get("errors").is_some() {
        return Some(Answer::Refused(refusal(name, &reply)));
    }
    let (_, value) = body["data"].as_object().unwrap().iter().next().unwrap();
    Some(Answer::Done { value: plain(name, value.clone()), bytes: reply.body })
}

/// The text and the variables of the operation that is this call.
fn say(name: &str, input: &Value) -> Option<(&'static str, Value)> {
    let mut left = input.as_object()?.clone();
    let text = match name {
        "GetBook" => GET_BOOK,
        "GetStock" => GET_STOCK,
        "GetBookDetail" => GET_DETAIL,
        "ListBooks" => LIST_BOOKS,
        "ListReviews" => LIST_REVIEWS,
        // GraphQL has no bulk operations.
        "ListBookDetails" | "BatchCreateBooks" => return None,
        "GetOrder" => match left.remove("view").as_ref().and_then(Value::as_str) {
            Some("ORDER_VIEW_STATUS") => published("GetOrderStatus"),
            Some("ORDER_VIEW_HISTORY") => published("GetOrderHistory"),
            _ => published("GetOrderFull"),
        },
        name => published(name),
    };
    let names: &[(&str, &str)] = match name {
        "GetBook" | "GetStock" | "DeleteBook" => {
            &[("book_id", "id"), ("expected_version", "expectedVersion")]
        }
        "GetBookDetail" => &[("book_id", "id"), ("review_count", "last")],
        "ListReviews" => &[("book_id", "id"), ("page_size", "last")],
        "GetAuthor" => &[("author_id", "id")],
        "GetOrder" | "CancelOrder" => &[("order_id", "id")],
        "GetReservation" => &[("reservation_id", "id")],
        "ConfirmReservation" | "ReleaseReservation" => &[("reservation_id", "reservationId")],
        "ListBooks" | "ListAuthors" | "ListOrders" => &[("page_size", "first"), ("page_token", "after")],
        _ => return Some((text, json!({ "input": camel(input) }))),
    };
    if name == "ListReviews"
        && left.get("page_size").is_some_and(|n| !(1..=100).contains(&n.as_i64().unwrap_or(0)))
    {
        // `last` is no size of a page, and has bounds of its own.
        return None;
    }
    let mut variables = Map::new();
    for (contract, argument) in names {
        if let Some(value) = left.remove(*contract) {
            variables.insert((*argument).to_owned(), value);
        }
    }
    left.is_empty().then_some((text, Value::Object(variables)))
}

fn published(name: &str) -> &'static str {
    let found = OPERATIONS.iter().find(|operation| operation.name == name);
    found.unwrap_or_else(|| panic!("no operation {name} is published")).text
}

/// The refusal that an error tells of, after checking that it tells all it should.
pub(crate) fn refusal(name: &str, reply: &Reply) -> Refusal {
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = reply.json();
    let [error] = &body["errors"].as_array().unwrap()[..] else { panic!("one refusal, one error: {body}") };
    let extensions = &error["extensions"];
    let reason = proto::Reason::parse(extensions["reason"].as_str().unwrap()).unwrap();
    let code = format!("{:?}", reason.code());
    assert_eq!(
        extensions["code"].as_str().unwrap().replace('_', "").to_lowercase(),
        code.to_lowercase(),
        "{body}"
    );
    let fields = extensions["fields"].as_array().into_iter().flatten();
    Refusal {
        reason: reason.to_string(),
        message: error["message"].as_str().unwrap().to_owned(),
        fields: fields
            .map(|error| {
                (field(name, error["field"].as_str().unwrap()), error["rule"].as_str().unwrap().to_owned())
            })
            .collect(),
        facts: extensions.get("metadata").cloned().unwrap_or_else(|| json!({})),
    }
}

/// A field as the contract spells it.
fn field(name: &str, field: &str) -> String {
    match (name, field) {
        ("GetAuthor", "id") => "author_id".to_owned(),
        ("GetOrder" | "CancelOrder", "id") => "order_id".to_owned(),
        ("GetReservation", "id") => "reservation_id".to_owned(),
        (_, "id") => "book_id".to_owned(),
        (_, "first") => "page_size".to_owned(),
        (_, "after") => "page_token".to_owned(),
        (_, "last") => "review_count".to_owned(),
        (_, field) => snake(field),
    }
}

fn plain(name: &str, mut value: Value) -> Value {
    if let Some(author) = value.pointer("/author/id").cloned() {
        value["authorId"] = author;
    }
    match name {
        "GetStock" => value["stock"].take(),
        "GetBookDetail" => {
            let parts = ["author", "reviews"].map(|part| value[part].take());
            let [author, reviews] = parts;
            let in_stock = value["stock"]["inStock"].take();
            json!({ "book": value, "author": author, "reviews": reviews, "inStock": in_stock })
        }
        "ListReviews" => json!({ "reviews": value["reviews"] }),
        "ListBooks" | "ListAuthors" | "ListOrders" => {
            let list = name.trim_start_matches("List").to_lowercase();
            let next = value["pageInfo"]["endCursor"].as_str().unwrap_or_default().to_owned();
            let nodes = value["nodes"].take();
            let count = nodes.as_array().map_or(0, Vec::len);
            json!({ list: nodes, "nextPageToken": next, "count": count })
        }
        _ => value,
    }
}
