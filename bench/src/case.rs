//! Scenarios, as the files in `cases/` say them.

use std::fmt;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

/// A scenario: one operation in every style that has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Names it on the command line and in reports.
    pub id: String,
    /// What happens in it.
    pub title: String,
    /// What is asked for, and what a right reply holds.
    pub operation: Operation,
    /// How many times in a row an operation asks, each after the reply to the one before.
    #[serde(default = "once")]
    pub times: usize,
    /// Books that the suite has to start with, when those that it has by itself are not enough.
    pub books: Option<i32>,
    /// The style whose reply the floor server imitates in size.
    pub floor: Style,
    /// How each style asks.
    #[serde(rename = "style")]
    pub ways: Vec<Way>,
}

fn once() -> usize {
    1
}

/// The operations that the styles know how to ask for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Reserves units of the first books, one line each, for an order id never used before.
    Reserve {
        /// Lines of the reservation.
        lines: i32,
        /// Units in each line.
        quantity: i32,
    },
    /// Reads what the page of a book shows.
    Detail {
        /// The book's id.
        book: i32,
        /// How many of its latest reviews.
        reviews: i32,
    },
    /// Reads a seeded order.
    Order {
        /// Its number among the seeded ones.
        number: i32,
        /// How much of it.
        view: View,
    },
    /// Reads the first page of books.
    List {
        /// Books on the page, all of which must be there.
        page_size: i32,
    },
    /// Reads books as a stream.
    Export {
        /// How many, all of which must be there.
        limit: i32,
    },
    /// Uploads new books, to be checked and not added.
    Import {
        /// How many.
        books: i32,
    },
    /// Reads a page of books with all that belongs to each.
    Page {
        /// Books on the page, all of which must be there.
        page_size: i32,
        /// How many of the latest reviews of each.
        reviews: i32,
    },
}

/// How much of an order is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// What it is, where it stands and what it costs.
    Status,
    /// Its lines and its address too.
    Full,
    /// And all that happened to it.
    History,
}

impl View {
    /// Its name in REST.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Full => "full",
            Self::History => "history",
        }
    }
}

/// An API style, or the floor under them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// REST, one request per resource.
    Rest,
    /// REST, one request for the whole screen.
    RestBff,
    /// REST, a JSON object on each line of the body.
    RestNdjson,
    /// REST, the reply compressed.
    RestGzip,
    /// REST, the reply known already and only asked whether it still holds.
    #[serde(rename = "rest-304")]
    RestNotModified,
    /// GraphQL, the document's text in every request.
    Graphql,
    /// GraphQL, the document named by its hash; queries by GET.
    GraphqlPersisted,
    /// gRPC-Web.
    GrpcWeb,
    /// gRPC.
    Grpc,
    /// gRPC, a stream with one item in each message.
    #[serde(rename = "grpc-stream-1")]
    GrpcStream1,
    /// gRPC, a stream with ten items in each message.
    #[serde(rename = "grpc-stream-10")]
    GrpcStream10,
    /// gRPC, a stream with a hundred items in each message.
    #[serde(rename = "grpc-stream-100")]
    GrpcStream100,
    /// A server that does nothing but read a request and write a prepared reply.
    Floor,
}

impl Style {
    /// All that a case can name, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Rest,
        Self::RestBff,
        Self::RestNdjson,
        Self::RestGzip,
        Self::RestNotModified,
        Self::Graphql,
        Self::GraphqlPersisted,
        Self::GrpcWeb,
        Self::Grpc,
        Self::GrpcStream1,
        Self::GrpcStream10,
        Self::GrpcStream100,
    ];

    /// Its name on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::RestBff => "rest-bff",
            Self::RestNdjson => "rest-ndjson",
            Self::RestGzip => "rest-gzip",
            Self::RestNotModified => "rest-304",
            Self::Graphql => "graphql",
            Self::GraphqlPersisted => "graphql-persisted",
            Self::GrpcWeb => "grpc-web",
            Self::Grpc => "grpc",
            Self::GrpcStream1 => "grpc-stream-1",
            Self::GrpcStream10 => "grpc-stream-10",
            Self::GrpcStream100 => "grpc-stream-100",
            Self::Floor => "floor",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rest => "REST",
            Self::RestBff => "REST BFF",
            Self::RestNdjson => "REST NDJSON",
            Self::RestGzip => "REST gzip",
            Self::RestNotModified => "REST 304",
            Self::Graphql => "GraphQL",
            Self::GraphqlPersisted => "GraphQL persisted",
            Self::GrpcWeb => "gRPC-Web",
            Self::Grpc => "gRPC",
            Self::GrpcStream1 => "gRPC stream by 1",
            Self::GrpcStream10 => "gRPC stream by 10",
            Self::GrpcStream100 => "gRPC stream by 100",
            Self::Floor => "floor",
        }
    }
}

impl Style {
    /// Whether it speaks gRPC over HTTP/2, which gRPC-Web needs not.
    pub fn needs_http2(self) -> bool {
        self == Self::Grpc || self.batch().is_some()
    }

    /// Whether its replies are messages of gRPC.
    pub fn is_grpc(self) -> bool {
        self == Self::GrpcWeb || self.needs_http2()
    }

    /// Whether it asks REST.
    pub fn is_rest(self) -> bool {
        use Style::{Rest, RestBff, RestGzip, RestNdjson, RestNotModified};
        matches!(self, Rest | RestBff | RestNdjson | RestGzip | RestNotModified)
    }

    /// Items in each message of a stream, when it has one.
    pub fn batch(self) -> Option<usize> {
        match self {
            Self::GrpcStream1 => Some(1),
            Self::GrpcStream10 => Some(10),
            Self::GrpcStream100 => Some(100),
            _ => None,
        }
    }
}

impl Case {
    /// Requests that the way sends at once, and requests of one operation in all.
    pub fn requests(&self, way: &Way) -> (usize, usize) {
        match &way.asks {
            Asks::Requests { requests, .. } => (requests.len(), requests.len() + 1),
            _ => (1, self.times),
        }
    }

    /// The style whose reply and request the floor has.
    pub fn model(&self) -> Option<&Way> {
        self.ways.iter().find(|way| way.style == self.floor)
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Http {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    One,
    /// HTTP/2, without TLS and by prior knowledge.
    #[serde(rename = "2")]
    Two,
}

impl Http {
    /// Its number.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "1.1",
            Self::Two => "2",
        }
    }
}

/// How one style asks for the operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Way {
    /// The style.
    pub style: Style,
    /// The versions of HTTP that it can use.
    pub http: Vec<Http>,
    /// What it sends.
    pub asks: Asks,
}

/// A way as a file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: Style,
    http: Vec<Http>,
    requests: Option<Vec<String>>,
    then: Option<String>,
    request: Option<String>,
    document: Option<String>,
    method: Option<String>,
}

impl TryFrom<Written> for Way {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { id, http, requests, then, request, document, method } = written;
        let asks = match (requests, then, request, document, method) {
            (Some(requests), Some(then), None, None, None) => Asks::Requests { requests, then },
            (None, None, Some(request), None, None) => Asks::Request { request },
            (None, None, None, Some(document), None) => Asks::Document { document },
            (None, None, None, None, Some(method)) => Asks::Method { method },
            _ => return Err("a style has a request, or requests and then, or a document, or a method"),
        };
        Ok(Self { style: id, http, asks })
    }
}

/// What a style sends.
#[derive(Debug, Clone)]
pub enum Asks {
    /// Several HTTP requests at once, then one that needs the first one's reply.
    Requests {
        /// Method and path of those sent at once.
        requests: Vec<String>,
        /// Method and path of the one after them.
        then: String,
    },
    /// One HTTP request.
    Request {
        /// Method and path.
        request: String,
    },
    /// A published GraphQL document.
    Document {
        /// Its name in `graphql/operations/`.
        document: String,
    },
    /// A method of gRPC.
    Method {
        /// `package.Service/Method`.
        method: String,
    },
}

const FILES: [(&str, &str); 12] = [
    ("reserve-2", include_str!("../cases/reserve-2.toml")),
    ("reserve-50", include_str!("../cases/reserve-50.toml")),
    ("detail", include_str!("../cases/detail.toml")),
    ("order-200b", include_str!("../cases/order-200b.toml")),
    ("order-2k", include_str!("../cases/order-2k.toml")),
    ("order-64k", include_str!("../cases/order-64k.toml")),
    ("list-50", include_str!("../cases/list-50.toml")),
    ("list-50-x10", include_str!("../cases/list-50-x10.toml")),
    ("bulk-get", include_str!("../cases/bulk-get.toml")),
    ("bulk-stream", include_str!("../cases/bulk-stream.toml")),
    ("bulk-post", include_str!("../cases/bulk-post.toml")),
    ("page", include_str!("../cases/page.toml")),
];

/// The scenarios that run when nobody says which.
pub const USUAL: [&str; 3] = ["reserve-2", "reserve-50", "detail"];

/// All scenarios, in the order in which they run.
pub fn all() -> anyhow::Result<Vec<Case>> {
    FILES.iter().map(|(id, text)| parse(text).with_context(|| format!("case {id}"))).collect()
}

/// The ids of all scenarios.
pub fn ids() -> [&'static str; FILES.len()] {
    FILES.map(|(id, _)| id)
}

/// Reads a case, and checks that it asks for nothing that can't be.
pub fn parse(text: &str) -> anyhow::Result<Case> {
    let case: Case = toml::from_str(text)?;
    match case.operation {
        Operation::Reserve { lines, quantity } => {
            ensure!((1..=proto::seed::BOOKS).contains(&lines), "lines must be from 1 to the number of books");
            ensure!((1..=100).contains(&quantity), "quantity must be from 1 to 100");
        }
        Operation::Detail { book, reviews } => {
            ensure!((1..=proto::seed::BOOKS).contains(&book), "book must be a seeded one");
            ensure!((0..=4).contains(&reviews), "reviews must be from 0 to 4");
        }
        Operation::Order { number, .. } => {
            ensure!((1..=proto::seed::ORDERS).contains(&number), "number must be a seeded order's");
        }
        Operation::List { page_size: count }
        | Operation::Export { limit: count }
        | Operation::Page { page_size: count, .. } => {
            let books = case.books.unwrap_or(proto::seed::BOOKS);
            ensure!(
                (1..=books.min(1_000)).contains(&count),
                "it must ask for 1 book to all of them, at most 1,000"
            );
        }
        Operation::Import { books } => {
            ensure!((1..=1_000).contains(&books), "books to upload must be from 1 to 1,000");
        }
    }
    ensure!((1..=1_000).contains(&case.times), "times must be from 1 to 1,000");
    ensure!(
        case.books.is_none_or(|books| (1..=1_000_000).contains(&books)),
        "books must be from 1 to 1,000,000"
    );
    ensure!(case.ways.iter().any(|way| way.style == case.floor), "floor must be one of its styles");
    for way in &case.ways {
        let fits = match way.style {
            Style::Rest => matches!(way.asks, Asks::Request { .. } | Asks::Requests { .. }),
            Style::RestBff | Style::RestNdjson | Style::RestGzip | Style::RestNotModified => {
                matches!(way.asks, Asks::Request { .. })
            }
            Style::Graphql | Style::GraphqlPersisted => matches!(way.asks, Asks::Document { .. }),
            Style::GrpcWeb
            | Style::Grpc
            | Style::GrpcStream1
            | Style::GrpcStream10
            | Style::GrpcStream100 => matches!(way.asks, Asks::Method { .. }),
            Style::Floor => bail!("the floor is no style of a case"),
        };
        ensure!(fits, "{} can't ask like this", way.style);
        let is_single = !matches!(way.asks, Asks::Requests { .. });
        ensure!(is_single || case.times == 1, "only single requests can be repeated in a row");
        ensure!(!way.style.needs_http2() || way.http == [Http::Two], "gRPC needs HTTP/2, and only that");
    }
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_of_the_tree_are_right_and_named_like_their_files() {
        let cases = all().unwrap();
        assert_eq!(cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ids());
    }

    #[test]
    fn a_case_that_cannot_run_is_refused() {
        let good = FILES[0].1;
        for (from, to) in [
            ("lines = 2", "lines = 0"),
            ("floor = \"rest\"", "floor = \"rest-bff\""),
            ("id = \"grpc\"\nhttp = [\"2\"]", "id = \"grpc\"\nhttp = [\"1.1\"]"),
            ("document = \"ReserveStock\"", "method = \"a/b\""),
            ("title", "tilte"),
        ] {
            assert!(good.contains(from), "{from}");
            assert!(parse(&good.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
