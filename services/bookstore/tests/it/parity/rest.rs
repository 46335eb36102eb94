//! Calls as REST says them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Answer, Refusal, camel, snake};
use crate::harness::Suite;
use crate::http::{self, Reply, Version};

/// What a REST client remembers: the tags of the books that it wrote, one for each version.
#[derive(Debug, Default)]
pub(super) struct Client {
    tags: HashMap<String, Vec<String>>,
}

/// A request on its way to be sent.
struct Call {
    method: &'static str,
    path: String,
    /// Fields that go into the body.
    body: Option<Value>,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    /// What the edge answers; none when REST can't say the call.
    pub(super) async fn call(&mut self, suite: &Suite, name: &str, input: &Value) -> Option<Answer> {
        let Call { method, path, body, mut headers } = self.say(name, input)?;
        let body = body.map(|body| camel(&body).to_string()).unwrap_or_default();
        if method != "GET" && !body.is_empty() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply =
            http::send(Version::Http1, suite.rest, http::request(method, &path, &headers, body)).await;
        if reply.status >= 400 {
            return Some(Answer::Refused(refusal(&reply)));
        }
        let value = if reply.body.is_empty() { json!({}) } else { reply.json() };
        self.learn(suite, name, input, &value, &reply).await;
        Some(Answer::Done { value: plain(name, value), bytes: reply.body })
    }

    fn say(&self, name: &str, input: &Value) -> Option<Call> {
        let mut left = input.as_object()?.clone();
        let mut take = |field: &str| left.remove(field);
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let list = |path: String, parameters: &[(&str, Option<Value>)]| {
            let query = parameters.iter().filter_map(|(name, value)| Some((name, value.clone()?)));
            let query: Vec<_> = query.map(|(name, value)| format!("{name}={}", text(Some(value)))).collect();
            get(if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) })
        };
        let call = match name {
            "GetBook" => get(format!("books/{}", text(take("book_id")))),
            "GetAuthor" => get(format!("authors/{}", text(take("author_id")))),
            "GetStock" => get(format!("books/{}/stock", text(Some(take("book_id")?)))),
            "GetBookDetail" => {
                let path = format!("screens/book-detail/{}", text(take("book_id")));
                list(path, &[("reviews", take("review_count"))])
            }
            "ListBookDetails" => {
                let page = [("page_size", take("page_size")), ("page_token", take("page_token"))];
                list(
                    "screens/catalog".to_owned(),
                    &[&page[..], &[("reviews", take("review_count"))]].concat(),
                )
            }
            "BatchCreateBooks" => {
                let only = text(take("validate_only").or(Some(json!(false))));
                post(format!("books/import?validate_only={only}"))
            }
            "ListBooks" | "ListAuthors" | "ListOrders" | "ListReviews" => {
                let path = match name {
                    "ListBooks" => "books".to_owned(),
                    "ListAuthors" => "authors".to_owned(),
                    "ListOrders" => "orders".to_owned(),
                    _ => format!("books/{}/reviews", text(take("book_id"))),
                };
                list(path, &[("page_size", take("page_size")), ("page_token", take("page_token"))])
            }
            "CreateBook" => post("books".to_owned()),
            "UpdateBook" | "DeleteBook" => {
                let book = text(take("book_id"));
                let method = if name == "UpdateBook" { "PATCH" } else { "DELETE" };
                let tag = take("expected_version").map(|version| self.tag(&book, &version));
                let headers = tag.map(|tag| ("if-match", tag)).into_iter().collect();
                Call { method, headers, ..post(format!("books/{book}")) }
            }
            "AddReview" => post(format!("books/{}/reviews", text(take("book_id")))),
            "AdjustStock" => post("stock-adjustments".to_owned()),
            "ReserveStock" => post("reservations".to_owned()),
            "GetReservation" => get(format!("reservations/{}", text(Some(take("reservation_id")?)))),
            "ConfirmReservation" => {
                post(format!("reservations/{}/confirm", text(Some(take("reservation_id")?))))
            }
            "ReleaseReservation" => {
                post(format!("reservations/{}/release", text(Some(take("reservation_id")?))))
            }
            "PlaceOrder" => {
                let headers = vec![("idempotency-key", text(take("request_id")))];
                Call { headers, ..post("orders".to_owned()) }
            }
            "GetOrder" => {
                let path = format!("orders/{}", text(take("order_id")));
                let view =
                    take("view").map(|view| text(Some(view)).replace("ORDER_VIEW_", "").to_lowercase());
                list(path, &[("view", view.map(Value::from))])
            }
            "CancelOrder" => post(format!("orders/{}/cancel", text(take("order_id")))),
            other => panic!("REST has no {other}"),
        };
        let has_body = call.method != "GET" && call.method != "DELETE" && !name.ends_with("Reservation");
        let has_body = has_body && name != "CancelOrder";
        assert!(has_body || left.is_empty(), "{name}: {left:?} are not sent");
        Some(Call { body: has_body.then_some(Value::Object(left)), ..call })
    }

    /// The tag of a version of a book. There are no tags of versions that this client didn't see.
    fn tag(&self, book: &str, version: &Value) -> String {
        let place = version.as_u64().and_then(|version| usize::try_from(version).ok()?.checked_sub(1));
        let seen = self.tags.get(book).and_then(|tags| tags.get(place?));
        seen.cloned().unwrap_or_else(|| "\"of another version\"".to_owned())
    }

    async fn learn(&mut self, suite: &Suite, name: &str, input: &Value, book: &Value, reply: &Reply) {
        match name {
            "CreateBook" => {
                let id = book["id"].to_string();
                let tag =
                    http::get(suite.rest, &format!("/api/v1/books/{id}")).await.header("etag").to_owned();
                self.tags.insert(id, vec![tag]);
            }
            "UpdateBook" => {
                let tags = self.tags.entry(input["book_id"].to_string()).or_default();
                tags.push(reply.header("etag").to_owned());
            }
            _ => {}
        }
    }
}

fn get(path: String) -> Call {
    Call { method: "GET", path: format!("/api/v1/{path}"), body: None, headers: Vec::new() }
}

fn post(path: String) -> Call {
    Call { method: "POST", ..get(path) }
}

/// The refusal that a problem tells of, after checking that it tells all it should.
pub(crate) fn refusal(reply: &Reply) -> Refusal {
    assert_eq!(reply.header("content-type"), "application/problem+json", "{reply:?}");
    let problem = reply.json();
    assert_eq!(problem["status"], reply.status, "{problem}");
    let errors = problem["errors"].as_array().into_iter().flatten();
    Refusal {
        reason: problem["reason"].as_str().unwrap().to_owned(),
        message: problem["detail"].as_str().unwrap().to_owned(),
        fields: errors
            .map(|error| {
                (field(error["field"].as_str().unwrap()), error["rule"].as_str().unwrap().to_owned())
            })
            .collect(),
        facts: problem.get("metadata").cloned().unwrap_or_else(|| json!({})),
    }
}

/// A field as the contract spells it.
fn field(name: &str) -> String {
    match name {
        "Idempotency-Key" => "request_id".to_owned(),
        "If-Match" => "expected_version".to_owned(),
        "reviews" => "review_count".to_owned(),
        name => snake(name),
    }
}

fn plain(name: &str, mut reply: Value) -> Value {
    let list = match name {
        "ListBooks" => "books",
        "ListAuthors" => "authors",
        "ListReviews" => "reviews",
        "ListOrders" => "orders",
        "ListBookDetails" => {
            for detail in reply["details"].as_array_mut().unwrap() {
                detail["inStock"] = detail["stock"]["inStock"].take();
            }
            return reply;
        }
        "GetBookDetail" => {
            reply["inStock"] = reply["stock"]["inStock"].take();
            return reply;
        }
        _ => return reply,
    };
    reply["count"] = reply[list].as_array().map_or(0, Vec::len).into();
    if reply.get("nextPageToken").is_none() {
        reply["nextPageToken"] = "".into();
    }
    reply
}
