//! The table. An input is a message of the contract, and a value is a reply as JSON has it, of which a case names what
//! matters.
//!
//! In both, `$key` is a text, and `$sku` and `$other_sku` are the SKUs of books that nobody has added yet, all of them
//! new for each telling of a case; other names stand for what an earlier step of the case kept. A name ends its text.

use proto::seed::{BOOKS, order_id, sku};
use serde_json::{Value, json};

use super::Expect;
use super::Style::{self, GraphQl, Grpc, GrpcWeb, Rest};

/// A story of one or more calls.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) steps: Vec<Step>,
    /// The styles that can't say the last step.
    pub(super) silent: &'static [Style],
    /// The styles that say something else.
    pub(super) except: &'static [Style],
    /// Whether what it reads changes meanwhile, so that no two readers need to see the same.
    pub(super) live: bool,
}

/// A call and what it must come to.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) input: Value,
    pub(super) expect: Expect,
    /// A name for a part of the reply.
    pub(super) keep: Option<(&'static str, &'static str)>,
    /// Some styles refuse this at the edge: the fields are the same, the words are not.
    pub(super) own_words: bool,
}

impl Case {
    fn silent(mut self, styles: &'static [Style]) -> Self {
        self.silent = styles;
        self
    }

    fn except(mut self, styles: &'static [Style]) -> Self {
        self.except = styles;
        self
    }

    fn live(mut self) -> Self {
        self.live = true;
        self
    }

    fn own_words(mut self) -> Self {
        self.steps.last_mut().unwrap().own_words = true;
        self
    }
}

impl Step {
    fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keep = Some((name, pointer));
        self
    }
}

fn step(method: &'static str, input: Value, expect: Expect) -> Step {
    Step { method, input, expect, keep: None, own_words: false }
}

fn one(name: &'static str, method: &'static str, input: Value, expect: Expect) -> Case {
    story(name, [step(method, input, expect)])
}

fn story<const N: usize>(name: &'static str, steps: [Step; N]) -> Case {
    Case { name, steps: steps.into(), silent: &[], except: &[], live: false }
}

/// A case that begins with a book of its own: `$book` with the SKU `$sku` at 12.50, so many in stock.
fn stocked<const N: usize>(name: &'static str, units: i32, steps: [Step; N]) -> Case {
    let delivery = step("AdjustStock", json!({"sku": "$sku", "delta": units}), is(json!({"inStock": units})));
    let told = story(name, steps);
    Case { steps: [added(), delivery].into_iter().chain(told.steps).collect(), ..told }
}

fn added() -> Step {
    step("CreateBook", book(json!({})), is(json!({"sku": "$sku"}))).keep("book", "/id")
}

/// A book to add, with these fields instead of good ones.
fn book(fields: Value) -> Value {
    let good = json!({
        "sku": "$sku", "title": "On $key", "author_id": 2, "price": {"amount_minor": 1250, "currency": "EUR"},
    });
    with(good, fields)
}

fn review(fields: Value) -> Value {
    with(json!({"book_id": 3, "rating": 4, "reviewer": "Ana Brook", "text": "Slow at first."}), fields)
}

/// An order of one copy of book 4, with these fields instead.
fn order(fields: Value) -> Value {
    with(json!({"request_id": "$key", "lines": lines(&[(&sku(4), 1)])}), fields)
}

fn with(mut message: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

fn lines(lines: &[(&str, i32)]) -> Value {
    lines.iter().map(|(sku, quantity)| json!({"sku": sku, "quantity": quantity})).collect()
}

fn reserve(order_id: &str, of: &[(&str, i32)]) -> Value {
    json!({"order_id": order_id, "lines": lines(of)})
}

fn is(value: Value) -> Expect {
    Expect::Is(value)
}

fn done() -> Expect {
    is(json!({}))
}

fn refused(reason: &'static str) -> Expect {
    Expect::Refused(reason)
}

fn fields(fields: &[&str]) -> Expect {
    Expect::Fields(fields.iter().map(|field| (*field).to_owned()).collect())
}

/// Styles whose messages have types, so that a value of another type can't be sent.
const TYPED: &[Style] = &[Grpc, GrpcWeb];

pub(super) fn all() -> Vec<Case> {
    [reading(), listing(), reserving(), ordering(), keeping(), types()].into_iter().flatten().collect()
}

fn reading() -> Vec<Case> {
    let nobody = i32::MAX;
    vec![
        one("a book", "GetBook", json!({"book_id": 1}), is(json!({"id": 1, "sku": sku(1)}))),
        one("a book that isn't there", "GetBook", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one("book 0", "GetBook", json!({"book_id": 0}), fields(&["book_id"])),
        one("a negative book", "GetBook", json!({"book_id": -1}), fields(&["book_id"])),
        one("an author", "GetAuthor", json!({"author_id": 1}), is(json!({"id": 1}))),
        one(
            "an author that isn't there",
            "GetAuthor",
            json!({"author_id": nobody}),
            refused("AUTHOR_NOT_FOUND"),
        ),
        one("author 0", "GetAuthor", json!({"author_id": 0}), fields(&["author_id"])),
        one("stock", "GetStock", json!({"book_id": 1}), is(json!({"bookId": 1}))),
        // GraphQL knows stock as a part of a book: there is no book, and there it ends.
        one("stock of no book", "GetStock", json!({"book_id": nobody}), refused("UNKNOWN_SKU"))
            .except(&[GraphQl]),
        one("stock of book -1", "GetStock", json!({"book_id": -1}), fields(&["book_id"])),
        one("stock by SKU", "GetStock", json!({"sku": sku(2)}), is(json!({"bookId": 2})))
            .silent(&[Rest, GraphQl]),
        one(
            "a screen",
            "GetBookDetail",
            json!({"book_id": 1, "review_count": 2}),
            is(json!({"book": {"id": 1}, "author": {}, "reviews": [{}, {}]})),
        ),
        one(
            "a screen without a book",
            "GetBookDetail",
            json!({"book_id": nobody, "review_count": 2}),
            refused("BOOK_NOT_FOUND"),
        ),
        one(
            "a screen of book 0",
            "GetBookDetail",
            json!({"book_id": 0, "review_count": 2}),
            fields(&["book_id"]),
        ),
        one(
            "a screen of too much",
            "GetBookDetail",
            json!({"book_id": 1, "review_count": 101}),
            fields(&["review_count"]),
        )
        .own_words(),
        one(
            "reviews",
            "ListReviews",
            json!({"book_id": 1, "page_size": 2}),
            is(json!({"reviews": [{}, {}]})),
        ),
        one("reviews of no book", "ListReviews", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one(
            "a shipped order",
            "GetOrder",
            json!({"order_id": order_id(1), "view": "ORDER_VIEW_STATUS"}),
            is(json!({"orderId": order_id(1), "state": "SHIPPED", "lineCount": 8})),
        ),
        one(
            "a placed order in full",
            "GetOrder",
            json!({"order_id": order_id(2), "view": "ORDER_VIEW_FULL"}),
            is(json!({"state": "PLACED", "lines": vec![json!({}); 8], "shipTo": {}})),
        ),
        one(
            "an order with all that happened",
            "GetOrder",
            json!({"order_id": order_id(1), "view": "ORDER_VIEW_HISTORY"}),
            is(json!({"state": "SHIPPED", "lines": vec![json!({}); 8]})),
        ),
        one(
            "an order that isn't there",
            "GetOrder",
            json!({"order_id": order_id(999)}),
            refused("ORDER_NOT_FOUND"),
        ),
        one(
            "an order by another name",
            "GetOrder",
            json!({"order_id": "order-1"}),
            refused("ORDER_NOT_FOUND"),
        ),
        one(
            "an order by a long name",
            "GetOrder",
            json!({"order_id": "o".repeat(65)}),
            fields(&["order_id"]),
        ),
    ]
}

fn listing() -> Vec<Case> {
    let mut cases = vec![
        story(
            "books, page by page",
            [
                step("ListBooks", json!({"page_size": 2}), is(json!({"books": [{"id": 1}, {"id": 2}]})))
                    .keep("next", "/nextPageToken"),
                step(
                    "ListBooks",
                    json!({"page_size": 1, "page_token": "$next"}),
                    is(json!({"books": [{"id": 3}], "count": 1})),
                ),
            ],
        ),
        story(
            "orders, page by page",
            [
                step("ListOrders", json!({"page_size": 1}), is(json!({"count": 1})))
                    .keep("next", "/nextPageToken"),
                step("ListOrders", json!({"page_size": 3, "page_token": "$next"}), is(json!({"count": 3}))),
            ],
        )
        .live(),
        one("all authors", "ListAuthors", json!({}), is(json!({"count": 10, "nextPageToken": ""}))),
        one("a page of the usual size", "ListBooks", json!({}), is(json!({"count": BOOKS}))),
        one("a page larger than any", "ListBooks", json!({"page_size": 100_000}), is(json!({"count": 1000}))),
        story(
            "a token of another list",
            [
                step("ListBooks", json!({"page_size": 1}), done()).keep("next", "/nextPageToken"),
                step("ListAuthors", json!({"page_token": "$next"}), refused("INVALID_PAGE_TOKEN")),
            ],
        ),
        story(
            "a token of another list of orders",
            [
                step("ListAuthors", json!({"page_size": 1}), done()).keep("next", "/nextPageToken"),
                step("ListOrders", json!({"page_token": "$next"}), refused("INVALID_PAGE_TOKEN")),
            ],
        ),
        story(
            "a token of another book's reviews",
            [
                step("ListReviews", json!({"book_id": 1, "page_size": 1}), done())
                    .keep("next", "/nextPageToken"),
                step(
                    "ListReviews",
                    json!({"book_id": 2, "page_token": "$next"}),
                    refused("INVALID_PAGE_TOKEN"),
                ),
            ],
        )
        .except(&[GraphQl]),
    ];
    for (name, method) in [
        ("a token that no list of books gave", "ListBooks"),
        ("a token that no list of authors gave", "ListAuthors"),
        ("a token that no list of orders gave", "ListOrders"),
    ] {
        cases.push(one(name, method, json!({"page_token": "nonsense"}), refused("INVALID_PAGE_TOKEN")));
        cases.push(one(
            "a page of less than nothing",
            method,
            json!({"page_size": -1}),
            fields(&["page_size"]),
        ));
        cases.push(one("a page of everything", method, json!({"page_size": i32::MAX}), done()).live());
    }
    let token = json!({"book_id": 1, "page_token": "nonsense"});
    cases.push(
        one("a token that no list of reviews gave", "ListReviews", token, refused("INVALID_PAGE_TOKEN"))
            .silent(&[GraphQl]),
    );
    let less = json!({"book_id": 0, "page_size": -1});
    cases.push(
        one("less than no reviews of book 0", "ListReviews", less, fields(&["book_id", "page_size"]))
            .silent(&[GraphQl]),
    );
    cases
}

fn reserving() -> Vec<Case> {
    let (known, unknown) = (sku(1), sku(999_999));
    let reserve_one = |n| reserve("$key", &[(&sku(1), n)]);
    let quantity = || fields(&["lines[0].quantity"]);
    let many = |n| json!({"order_id": "$key", "lines": vec![json!({"sku": sku(2), "quantity": 1}); n]});
    let named = || json!({"reservation_id": "$reservation"});
    let nobody = || json!({"reservation_id": "rsv_00000000000000000000000000000000"});
    vec![
        story(
            "a reservation",
            [
                step("ReserveStock", reserve("$key", &[(&known, 2)]), is(json!({"state": "HELD"})))
                    .keep("reservation", "/reservationId"),
                step(
                    "GetReservation",
                    named(),
                    is(json!({"orderId": "$key", "state": "HELD", "lines": lines(&[(&known, 2)])})),
                ),
            ],
        ),
        stocked(
            "more than there is",
            3,
            [
                step("ReserveStock", reserve("$key", &[("$sku", 4)]), refused("OUT_OF_STOCK")),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
                step("ReserveStock", reserve("$key", &[("$sku", 3)]), is(json!({"state": "HELD"}))),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 0}))),
            ],
        ),
        stocked(
            "all lines or none",
            3,
            [
                step("CreateBook", book(json!({"sku": "$other_sku"})), done()),
                step(
                    "ReserveStock",
                    reserve("$key", &[("$sku", 1), ("$other_sku", 1)]),
                    refused("OUT_OF_STOCK"),
                ),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
            ],
        ),
        stocked(
            "lines of one SKU",
            5,
            [
                step("ReserveStock", reserve("$key", &[("$sku", 3), ("$sku", 3)]), refused("OUT_OF_STOCK")),
                step(
                    "ReserveStock",
                    reserve("$key", &[("$sku", 2), ("$sku", 3)]),
                    is(json!({"state": "HELD"})),
                )
                .keep("reservation", "/reservationId"),
                step("GetReservation", named(), is(json!({"lines": lines(&[("$sku", 5)])}))),
            ],
        ),
        one("an unknown SKU", "ReserveStock", reserve("$key", &[(&unknown, 1)]), refused("UNKNOWN_SKU")),
        one("no SKU", "ReserveStock", reserve("$key", &[("", 1)]), fields(&["lines[0].sku"])),
        one("a short SKU", "ReserveStock", reserve("$key", &[("979", 1)]), fields(&["lines[0].sku"])),
        one(
            "a SKU with a wrong check digit",
            "ReserveStock",
            reserve("$key", &[(&known, 1), ("9790000000019", 1)]),
            fields(&["lines[1].sku"]),
        ),
        one("nothing of a book", "ReserveStock", reserve_one(0), quantity()),
        one("less than nothing", "ReserveStock", reserve_one(-1), quantity()),
        one("more than a line may have", "ReserveStock", reserve_one(1_000_001), quantity()),
        one("the largest number", "ReserveStock", reserve_one(i32::MAX), quantity()),
        one("the smallest number", "ReserveStock", reserve_one(i32::MIN), quantity()),
        one(
            "a thousand lines of a million",
            "ReserveStock",
            json!({"order_id": "$key", "lines": vec![json!({"sku": sku(2), "quantity": 1_000_000}); 1000]}),
            refused("OUT_OF_STOCK"),
        ),
        one("no lines", "ReserveStock", reserve("$key", &[]), fields(&["lines"])),
        one("a thousand lines", "ReserveStock", many(1000), is(json!({"state": "HELD"}))),
        one("a thousand and one lines", "ReserveStock", many(1001), fields(&["lines"])),
        one("no order id", "ReserveStock", reserve("", &[(&known, 1)]), fields(&["order_id"])),
        one(
            "a long order id",
            "ReserveStock",
            reserve(&"o".repeat(65), &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "an order id with a space",
            "ReserveStock",
            reserve("a b", &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "an order id with an accent",
            "ReserveStock",
            reserve("é", &[(&known, 1)]),
            fields(&["order_id"]),
        ),
        one(
            "everything wrong at once",
            "ReserveStock",
            reserve("", &[("1", 0), (&known, -1)]),
            fields(&["order_id", "lines[0].sku", "lines[0].quantity", "lines[1].quantity"]),
        ),
        story(
            "the same reservation again",
            [
                step("ReserveStock", reserve("$key", &[(&known, 1), (&sku(2), 4)]), done()),
                step("ReserveStock", reserve("$key", &[(&known, 1), (&sku(2), 4)]), Expect::Same(0)),
                step(
                    "ReserveStock",
                    reserve("$key", &[(&sku(2), 3), (&known, 1), (&sku(2), 1)]),
                    Expect::Same(0),
                ),
                step("ReserveStock", reserve("$key", &[(&known, 2)]), refused("ORDER_ID_CONFLICT")),
            ],
        ),
        stocked(
            "a sale, taken back",
            3,
            [
                step("ReserveStock", reserve("$key", &[("$sku", 2)]), done())
                    .keep("reservation", "/reservationId"),
                step(
                    "ConfirmReservation",
                    named(),
                    is(json!({"state": "CONFIRMED", "lines": [{"quantity": 2}]})),
                ),
                step("ConfirmReservation", named(), Expect::Same(3)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 1}))),
                step("ReleaseReservation", named(), is(json!({"state": "RELEASED"}))),
                step("ReleaseReservation", named(), Expect::Same(6)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 3}))),
                step("ConfirmReservation", named(), refused("RESERVATION_RELEASED")),
                step("ReserveStock", reserve("$key", &[("$sku", 2)]), is(json!({"state": "RELEASED"}))),
            ],
        ),
        one("no such reservation", "GetReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one("a sale of no reservation", "ConfirmReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one("nothing to release", "ReleaseReservation", nobody(), refused("RESERVATION_NOT_FOUND")),
        one(
            "no name of a reservation",
            "GetReservation",
            json!({"reservation_id": "x"}),
            refused("RESERVATION_NOT_FOUND"),
        ),
        one(
            "a reservation by its order",
            "GetReservation",
            json!({"order_id": "never used"}),
            fields(&["order_id"]),
        )
        .silent(&[Rest, GraphQl]),
    ]
}

/// Cases for an inventory that holds reservations for a moment only.
pub(super) fn expiring() -> Vec<Case> {
    let named = || json!({"reservation_id": "$reservation"});
    vec![stocked(
        "a reservation whose time is up",
        3,
        [
            step("ReserveStock", reserve("$key", &[("$sku", 3)]), done())
                .keep("reservation", "/reservationId"),
            step("GetStock", json!({"book_id": "$book"}), Expect::Becomes(json!({"inStock": 3}))),
            step("ConfirmReservation", named(), refused("RESERVATION_EXPIRED")),
        ],
    )]
}

fn ordering() -> Vec<Case> {
    let shipped = order_id(1);
    let named = || json!({"order_id": "$order"});
    let lines_of = |of: &[(&str, i32)]| order(json!({"lines": lines(of)}));
    let euros = |minor: i64| json!({"amountMinor": minor, "currency": "EUR"});
    vec![
        stocked(
            "an order, at the catalog's price, once",
            10,
            [
                step(
                    "PlaceOrder",
                    lines_of(&[("$sku", 2), ("$sku", 1)]),
                    is(json!({
                        "state": "PLACED", "total": euros(3750), "lineCount": 1,
                        "lines": [{"sku": "$sku", "quantity": 3, "title": "On $key", "lineTotal": euros(3750)}],
                    })),
                )
                .keep("order", "/orderId"),
                step("PlaceOrder", lines_of(&[("$sku", 2), ("$sku", 1)]), Expect::Same(2)),
                step("PlaceOrder", lines_of(&[("$sku", 3)]), Expect::Same(2)),
                step("PlaceOrder", lines_of(&[("$sku", 2)]), refused("IDEMPOTENCY_KEY_REUSED")),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 7}))),
                step("GetOrder", named(), is(json!({"state": "PLACED", "total": euros(3750)}))),
            ],
        ),
        stocked(
            "a cancelled order",
            10,
            [
                step("PlaceOrder", lines_of(&[("$sku", 4)]), done()).keep("order", "/orderId"),
                step("CancelOrder", named(), is(json!({"orderId": "$order", "state": "CANCELLED"}))),
                step("CancelOrder", named(), Expect::Same(3)),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 10}))),
                // The order as it was placed, whatever has become of it.
                step("PlaceOrder", lines_of(&[("$sku", 4)]), Expect::Same(2)),
                step("GetOrder", named(), is(json!({"state": "CANCELLED"}))),
            ],
        ),
        stocked(
            "an order that can be filled later",
            1,
            [
                step("PlaceOrder", lines_of(&[("$sku", 2)]), refused("OUT_OF_STOCK")),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 1}))),
                step("AdjustStock", json!({"sku": "$sku", "delta": 1}), done()),
                step("PlaceOrder", lines_of(&[("$sku", 2)]), is(json!({"state": "PLACED"}))),
            ],
        ),
        stocked(
            "an order keeps its price",
            1,
            [
                step("PlaceOrder", lines_of(&[("$sku", 1)]), is(json!({"total": euros(1250)}))).keep("order", "/orderId"),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "price": {"amount_minor": 1, "currency": "EUR"}}),
                    is(json!({"price": euros(1)})),
                ),
                step("GetOrder", named(), is(json!({"total": euros(1250)}))),
            ],
        ),
        one("an order of an unknown SKU", "PlaceOrder", lines_of(&[(&sku(999_999), 1)]), refused("UNKNOWN_SKU")),
        one("an order of a short SKU", "PlaceOrder", lines_of(&[("979", 1)]), fields(&["lines[0].sku"])),
        one(
            "an order of a SKU with a wrong check digit",
            "PlaceOrder",
            lines_of(&[(&sku(4), 1), ("9790000000019", 1)]),
            fields(&["lines[1].sku"]),
        ),
        one("an order of nothing", "PlaceOrder", lines_of(&[]), fields(&["lines"])),
        one("an order of no copies", "PlaceOrder", lines_of(&[(&sku(4), 0)]), fields(&["lines[0].quantity"])),
        one("an order of less", "PlaceOrder", lines_of(&[(&sku(4), -1)]), fields(&["lines[0].quantity"])),
        one("an order of too many", "PlaceOrder", lines_of(&[(&sku(4), 1_000_001)]), fields(&["lines[0].quantity"])),
        one(
            "an order of a thousand lines",
            "PlaceOrder",
            order(json!({"lines": vec![json!({"sku": sku(4), "quantity": 1}); 1000]})),
            is(json!({"state": "PLACED", "lineCount": 1})),
        ),
        one(
            "an order of a thousand and one lines",
            "PlaceOrder",
            order(json!({"lines": vec![json!({"sku": sku(4), "quantity": 1}); 1001]})),
            fields(&["lines"]),
        ),
        one("an order without a name", "PlaceOrder", order(json!({"request_id": ""})), fields(&["request_id"])),
        one("an order with a long name", "PlaceOrder", order(json!({"request_id": "r".repeat(256)})), fields(&["request_id"])),
        one(
            "an order to nowhere",
            "PlaceOrder",
            order(json!({"ship_to": {"postal_code": "1".repeat(201), "country": "ch"}})),
            fields(&["ship_to.postal_code", "ship_to.country"]),
        ),
        one(
            "an order to somewhere",
            "PlaceOrder",
            order(json!({"ship_to": {"name": "Ana Brook", "city": "Bern", "country": "CH"}})),
            is(json!({"state": "PLACED"})),
        ),
        one("a shipped order stays", "CancelOrder", json!({"order_id": shipped}), refused("ORDER_SHIPPED")),
        one("no order to cancel", "CancelOrder", json!({"order_id": order_id(999)}), refused("ORDER_NOT_FOUND")),
        one("nothing to cancel", "CancelOrder", json!({"order_id": "order-1"}), refused("ORDER_NOT_FOUND")),
        one("a long name to cancel", "CancelOrder", json!({"order_id": "o".repeat(65)}), fields(&["order_id"])),
    ]
}

/// What the house does: books, reviews, deliveries.
fn keeping() -> Vec<Case> {
    let nobody = i32::MAX;
    let price =
        |amount: i64, currency: &str| book(json!({"price": {"amount_minor": amount, "currency": currency}}));
    vec![
        story(
            "a new book",
            [
                step(
                    "CreateBook",
                    book(json!({})),
                    is(json!({"sku": "$sku", "title": "On $key", "price": {"amountMinor": 1250, "currency": "EUR"}})),
                )
                .keep("book", "/id"),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"sku": "$sku", "authorId": 2}))),
                step("GetStock", json!({"book_id": "$book"}), is(json!({"inStock": 0}))),
                step("CreateBook", book(json!({})), refused("SKU_TAKEN")),
            ],
        ),
        one("a title of 300 characters", "CreateBook", book(json!({"title": "é".repeat(300)})), done()),
        one("a title of 301 characters", "CreateBook", book(json!({"title": "é".repeat(301)})), fields(&["title"])),
        one("no title", "CreateBook", book(json!({"title": ""})), fields(&["title"])),
        one("a wrong check digit", "CreateBook", book(json!({"sku": "9790000000019"})), fields(&["sku"])),
        one("a taken SKU", "CreateBook", book(json!({"sku": sku(1)})), refused("SKU_TAKEN")),
        one("an unknown author", "CreateBook", book(json!({"author_id": nobody})), refused("AUTHOR_NOT_FOUND")),
        one("author -1 of a book", "CreateBook", book(json!({"author_id": -1})), fields(&["author_id"])),
        one("dollars", "CreateBook", price(1, "USD"), fields(&["price.currency"])),
        one("a negative price", "CreateBook", price(-1, "EUR"), fields(&["price.amount_minor"])),
        one("a price over a million", "CreateBook", price(100_000_001, "EUR"), fields(&["price.amount_minor"])),
        one("the largest price", "CreateBook", price(i64::MAX, "EUR"), fields(&["price.amount_minor"])),
        one("a book for nothing", "CreateBook", price(0, "EUR"), done()),
        one(
            "a book with nothing right",
            "CreateBook",
            json!({"sku": "1", "title": "", "author_id": 0, "price": {"amount_minor": -1, "currency": ""}}),
            fields(&["sku", "title", "author_id", "price.currency", "price.amount_minor"]),
        ),
        story(
            "a changed book",
            [
                added(),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "title": "Of $key", "expected_version": 1}),
                    is(json!({"title": "Of $key"})),
                ),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"title": "Of $key", "authorId": 2}))),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "title": "By $key", "expected_version": 1}),
                    refused("VERSION_MISMATCH"),
                ),
                step("DeleteBook", json!({"book_id": "$book", "expected_version": 1}), refused("VERSION_MISMATCH")),
                step("GetBook", json!({"book_id": "$book"}), is(json!({"title": "Of $key"}))),
                step(
                    "UpdateBook",
                    json!({"book_id": "$book", "author_id": 3, "expected_version": 2}),
                    is(json!({"title": "Of $key"})),
                ),
            ],
        ),
        story(
            "a change that breaks rules",
            [
                added(),
                step(
                    "UpdateBook",
                    json!({
                        "book_id": "$book", "title": "", "author_id": 0,
                        "price": {"amount_minor": -1, "currency": "EUR"},
                    }),
                    fields(&["title", "author_id", "price.amount_minor"]),
                ),
                step("UpdateBook", json!({"book_id": "$book", "author_id": nobody}), refused("AUTHOR_NOT_FOUND")),
            ],
        ),
        one("a change of no book", "UpdateBook", json!({"book_id": nobody, "title": "x"}), refused("BOOK_NOT_FOUND")),
        one("a change of book 0", "UpdateBook", json!({"book_id": 0, "title": "x"}), fields(&["book_id"])),
        story(
            "a book that is gone",
            [
                added(),
                step("DeleteBook", json!({"book_id": "$book", "expected_version": 1}), done()),
                step("GetBook", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
                step("DeleteBook", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
                step("ListReviews", json!({"book_id": "$book"}), refused("BOOK_NOT_FOUND")),
            ],
        ),
        one("no book to remove", "DeleteBook", json!({"book_id": nobody}), refused("BOOK_NOT_FOUND")),
        one("book 0 to remove", "DeleteBook", json!({"book_id": 0}), fields(&["book_id"])),
        story(
            "a review",
            [
                added(),
                step("AddReview", review(json!({"book_id": "$book"})), is(json!({"rating": 4, "reviewer": "Ana Brook"}))),
                step("ListReviews", json!({"book_id": "$book"}), is(json!({"reviews": [{"rating": 4}]}))),
            ],
        ),
        one("a review with no stars", "AddReview", review(json!({"rating": 0})), fields(&["rating"])),
        one("a review with six stars", "AddReview", review(json!({"rating": 6})), fields(&["rating"])),
        one("a review of no book", "AddReview", review(json!({"book_id": nobody})), refused("BOOK_NOT_FOUND")),
        one(
            "a review with nothing right",
            "AddReview",
            json!({"book_id": -1, "rating": -1, "reviewer": "r".repeat(81), "text": ""}),
            fields(&["book_id", "rating", "reviewer", "text"]),
        ),
        one("a delivery of nothing", "AdjustStock", json!({"sku": sku(3), "delta": 0}), fields(&["delta"])),
        one("a delivery too large", "AdjustStock", json!({"sku": sku(3), "delta": 1_000_001}), fields(&["delta"])),
        one("a delivery of a number", "AdjustStock", json!({"sku": "1", "delta": i32::MIN}), fields(&["sku", "delta"])),
        one("a delivery of no book", "AdjustStock", json!({"sku": sku(999_999), "delta": 1}), refused("UNKNOWN_SKU")),
        stocked(
            "a loss of more than there is",
            2,
            [
                step("AdjustStock", json!({"sku": "$sku", "delta": -3}), refused("OUT_OF_STOCK")),
                step("AdjustStock", json!({"sku": "$sku", "delta": -2}), is(json!({"inStock": 0}))),
            ],
        ),
    ]
}

/// Values that only JSON can hold.
fn types() -> Vec<Case> {
    let line = |sku: Value, quantity: Value| json!({"order_id": "$key", "lines": [{"sku": sku, "quantity": quantity}]});
    let good = || json!(sku(1));
    let too_large = || json!(99_999_999_999_i64);
    let case = |name, method, input, field: &str| {
        one(name, method, input, fields(&[field])).silent(TYPED).own_words()
    };
    vec![
        case("a book with a name", "GetBook", json!({"book_id": "one"}), "book_id"),
        case("a book over 32 bits", "GetBook", json!({"book_id": too_large()}), "book_id"),
        case("an author over 32 bits", "GetAuthor", json!({"author_id": too_large()}), "author_id"),
        case("half a book", "GetBook", json!({"book_id": 1.5}), "book_id"),
        case("a page in words", "ListBooks", json!({"page_size": "ten"}), "page_size"),
        case("a page over 32 bits", "ListOrders", json!({"page_size": too_large()}), "page_size"),
        case("a quantity in words", "ReserveStock", line(good(), json!("two")), "lines[0].quantity"),
        case("a quantity over 32 bits", "ReserveStock", line(good(), too_large()), "lines[0].quantity"),
        case("half a copy", "ReserveStock", line(good(), json!(0.5)), "lines[0].quantity"),
        case("no number of copies", "ReserveStock", line(good(), Value::Null), "lines[0].quantity"),
        case(
            "a SKU that is a number",
            "ReserveStock",
            line(json!(9_790_000_000_018_i64), json!(1)),
            "lines[0].sku",
        ),
        case(
            "an order's quantity in words",
            "PlaceOrder",
            order(json!({"lines": [{"sku": sku(1), "quantity": "2"}]})),
            "lines[0].quantity",
        ),
        case(
            "a price in words",
            "CreateBook",
            book(json!({"price": {"amount_minor": "1", "currency": "EUR"}})),
            "price.amount_minor",
        ),
        case(
            "a price over 64 bits",
            "CreateBook",
            book(json!({"price": {"amount_minor": 1e30, "currency": "EUR"}})),
            "price.amount_minor",
        ),
        case("stars in words", "AddReview", review(json!({"rating": "five"})), "rating"),
        case("a delivery over 32 bits", "AdjustStock", json!({"sku": sku(3), "delta": too_large()}), "delta"),
        case(
            "a field that nobody knows",
            "AdjustStock",
            json!({"sku": sku(3), "delta": 1, "colour": "red"}),
            "colour",
        ),
        case(
            "a field of a line that nobody knows",
            "ReserveStock",
            json!({"order_id": "$key", "lines": [{"sku": sku(1), "quantity": 1, "price": 1}]}),
            "lines[0].price",
        ),
    ]
}
