//! Requests as bytes, and what right replies hold.

use bench::case::{self, Http, Style};
use bench::operation::{self, Content, detail, framed, reserve};
use bench::request::ORDER_DIGITS;
use prost::Message as _;
use proto::catalog::v1::{Book, ListBooksResponse};
use proto::common::v1::Money;
use proto::inventory::v1::{ReservationState, ReserveStockRequest, ReserveStockResponse};
use proto::ordering::v1::{self as ordering, GetOrderResponse};

#[test]
fn the_documents_are_known_by_the_hash_of_their_bytes() {
    let cases = case::all().unwrap();
    let case = cases.iter().find(|case| case.id == "detail").unwrap();
    let way = case.ways.iter().find(|way| way.style == Style::GraphqlPersisted).unwrap();
    let recipe = operation::recipe(case, way, "run").unwrap();
    let path = &recipe.calls[0].path;
    assert!(
        path.starts_with("/graphql?extensions=%7B%22persistedQuery%22:%7B%22sha256Hash%22:%22"),
        "{path}"
    );
    assert!(path.ends_with("&variables=%7B%22id%22:1%7D"), "{path}");
}

#[test]
fn every_operation_has_an_order_id_of_its_own_at_the_same_place() {
    for case in case::all().unwrap().iter().filter(|case| case.operation.writes()) {
        for way in &case.ways {
            let recipe = operation::recipe(case, way, "cmp-1").unwrap();
            for http in [Http::One, Http::Two] {
                let request = recipe.calls[0].prepare(http, "127.0.0.1:1").unwrap();
                let written = |order| {
                    let mut out = Vec::new();
                    match http {
                        Http::One => request.put_http1(&mut out, order),
                        Http::Two => request.put_http2(&mut out, false, 5, order),
                    }
                    out
                };
                let (one, other) = (written(1), written(9_876_543_210));
                assert_eq!(one.len(), other.len());
                let place = other.windows(ORDER_DIGITS).position(|w| w == b"9876543210").unwrap();
                assert_eq!(&one[place..place + ORDER_DIGITS], b"0000000001");
                assert_eq!(one[place - 1], b'-');
                let differ = one.iter().zip(&other).filter(|(a, b)| a != b).count();
                assert!(differ <= ORDER_DIGITS, "{} {differ}", way.style);
            }
        }
    }
}

#[test]
fn a_reservation_of_grpc_is_the_message_of_the_contract() {
    let cases = case::all().unwrap();
    let case = cases.iter().find(|case| case.id == "reserve-50").unwrap();
    let way = case.ways.iter().find(|way| way.style == Style::Grpc).unwrap();
    let recipe = operation::recipe(case, way, "run").unwrap();
    let message = operation::first_message(&recipe.calls[0].body).unwrap();
    let request = ReserveStockRequest::decode(message).unwrap();
    assert_eq!(request.order_id, "run-0000000000");
    assert_eq!(request.lines.len(), 50);
    assert_eq!(request.lines[1].sku, proto::seed::sku(2));
}

#[test]
fn a_reservation_counts_only_when_it_is_held() {
    let reply = |id: &str, state: ReservationState, expires: bool| {
        let expires_at = expires.then(Default::default);
        framed(
            &ReserveStockResponse { reservation_id: id.into(), state: state.into(), expires_at }
                .encode_to_vec(),
        )
    };
    assert_eq!(reserve::check(Style::Grpc, &reply("r", ReservationState::Held, true)), Ok("r".to_owned()));
    for odd in [
        reply("", ReservationState::Held, true),
        reply("r", ReservationState::Expired, true),
        reply("r", ReservationState::Held, false),
        Vec::new(),
        b"\0\0\0\0\x02\xff\xff".to_vec(),
    ] {
        assert!(reserve::check(Style::Grpc, &odd).is_err());
    }
    let json = br#"{"reservationId":"r","state":"HELD","expiresAt":"2026-01-01T00:00:00Z"}"#;
    assert_eq!(reserve::check(Style::Rest, json), Ok("r".to_owned()));
    let graphql = br#"{"data":{"reserveStock":{"reservationId":"r","state":"EXPIRED","expiresAt":"x"}}}"#;
    assert!(reserve::check(Style::Graphql, graphql).is_err());
    assert!(reserve::check(Style::Rest, b"{\"a\":").is_err());
}

#[test]
fn a_screen_is_the_same_in_every_json_style() {
    let book = r#""id":1,"sku":"s","title":"T","price":{"amountMinor":5,"currency":"EUR"}"#;
    let author = r#"{"id":2,"name":"N","country":"SE","born":1961}"#;
    let reviews = r#"[{"id":4,"rating":5,"reviewer":"R","text":"X"}]"#;
    let rest = [
        format!("{{{book},\"authorId\":2}}"),
        r#"{"bookId":1,"inStock":7}"#.to_owned(),
        format!("{{\"reviews\":{reviews}}}"),
        author.to_owned(),
    ];
    let bff =
        format!("{{\"book\":{},\"author\":{author},\"stock\":{},\"reviews\":{reviews}}}", rest[0], rest[1]);
    let graphql = format!(
        "{{\"data\":{{\"book\":{{{book},\"author\":{author},\"stock\":{{\"inStock\":7}},\"reviews\":{reviews}}}}}}}"
    );
    let read = |style, bodies: &[String]| {
        let bodies: Vec<Vec<u8>> = bodies.iter().map(|body| body.clone().into_bytes()).collect();
        detail::read(style, &bodies)
    };
    let screen = read(Style::Rest, &rest).unwrap();
    assert_eq!(read(Style::RestBff, std::slice::from_ref(&bff)).as_ref(), Ok(&screen));
    assert_eq!(read(Style::Graphql, std::slice::from_ref(&graphql)).as_ref(), Ok(&screen));
    let other = graphql.replace("\"inStock\":7", "\"inStock\":8");
    assert_ne!(read(Style::Graphql, &[other]).as_ref(), Ok(&screen));
    for odd in ["{\"data\":{\"book\":null}}", "{}", "[]", "", "{\"data\":"] {
        assert!(read(Style::Graphql, &[odd.to_owned()]).is_err(), "{odd}");
    }
    assert!(read(Style::Rest, &rest[..3]).is_err());
}

fn read(case_id: &str, style: Style, bodies: &[Vec<u8>]) -> Result<Content, String> {
    let case = case::all().unwrap().into_iter().find(|case| case.id == case_id).unwrap();
    case.operation.read(style, bodies)
}

fn euros(amount_minor: i64) -> Option<Money> {
    Some(Money { amount_minor, currency: "EUR".to_owned() })
}

#[test]
fn an_order_is_the_same_in_every_style() {
    let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let order = ordering::Order {
        order_id: "ord_1".to_owned(),
        state: ordering::OrderState::Shipped.into(),
        total: euros(30),
        line_count: 1,
        created_at: at(0),
        updated_at: at(61),
        lines: vec![ordering::OrderLine {
            sku: "s".to_owned(),
            book_id: 2,
            title: "T".to_owned(),
            quantity: 3,
            unit_price: euros(10),
            line_total: euros(30),
        }],
        ship_to: None,
        history: vec![ordering::OrderEvent {
            sequence: 1,
            occurred_at: at(5),
            kind: "PLACED".to_owned(),
            actor: "a".to_owned(),
            note: "n".to_owned(),
        }],
    };
    let grpc = framed(&GetOrderResponse { order: Some(order.clone()) }.encode_to_vec());
    let money = |amount| format!("{{\"amountMinor\":{amount},\"currency\":\"EUR\"}}");
    // REST writes milliseconds, GraphQL doesn't.
    let json = |fraction: &str, total: i32| {
        format!(
            "{{\"orderId\":\"ord_1\",\"state\":\"SHIPPED\",\"total\":{},\"lineCount\":1,\
             \"createdAt\":\"1970-01-01T00:00:00{fraction}Z\",\"updatedAt\":\"1970-01-01T00:01:01{fraction}Z\",\
             \"lines\":[{{\"sku\":\"s\",\"bookId\":2,\"title\":\"T\",\"quantity\":3,\"unitPrice\":{},\
             \"lineTotal\":{}}}],\"history\":[{{\"sequence\":1,\"kind\":\"PLACED\",\"actor\":\"a\",\"note\":\"n\",\
             \"occurredAt\":\"1970-01-01T00:00:05{fraction}Z\"}}]}}",
            money(total),
            money(10),
            money(30)
        )
    };
    let (rest, graphql) = (json(".000", 30), format!("{{\"data\":{{\"order\":{}}}}}", json("", 30)));
    let expected = read("order-64k", Style::Grpc, &[grpc]).unwrap();
    for (style, body) in [(Style::Rest, rest), (Style::Graphql, graphql)] {
        let found = read("order-64k", style, &[body.into_bytes()]).unwrap();
        assert_eq!(found.is_same(&expected), Ok(()), "{style}");
    }
    let other = read("order-64k", Style::Rest, &[json("", 31).into_bytes()]).unwrap();
    let difference = other.is_same(&expected).unwrap_err();
    assert!(
        difference.contains("amount_minor: 31") && difference.contains("amount_minor: 30"),
        "{difference}"
    );
    let nothing = framed(&GetOrderResponse { order: None }.encode_to_vec());
    for (style, odd) in [
        (Style::Grpc, nothing),
        (Style::Graphql, b"{\"data\":{\"order\":null}}".to_vec()),
        (Style::Rest, Vec::new()),
    ] {
        assert!(read("order-64k", style, &[odd]).is_err(), "{style}");
    }
}

#[test]
fn a_list_is_right_only_when_it_is_whole_and_the_same_each_time() {
    let books = |count: i32, price: i64| -> Vec<Book> {
        let book = |id| Book {
            id,
            sku: proto::seed::sku(id),
            title: "T".to_owned(),
            author_id: 1,
            price: euros(price),
            version: 1,
        };
        (1..=count).map(book).collect()
    };
    let grpc = |count, price| {
        let reply = ListBooksResponse { books: books(count, price), next_page_token: String::new() };
        framed(&reply.encode_to_vec())
    };
    let json = |book: Book| {
        format!(
            "{{\"id\":{},\"sku\":\"{}\",\"title\":\"T\",\"authorId\":1,\"price\":{{\"amountMinor\":5,\"currency\":\"EUR\"}}}}",
            book.id, book.sku
        )
    };
    let all: Vec<String> = books(50, 5).into_iter().map(json).collect();
    let rest = format!("{{\"books\":[{}]}}", all.join(",")).into_bytes();
    let expected = read("list-50-x10", Style::Rest, &vec![rest; 10]).unwrap();
    assert_eq!(read("list-50-x10", Style::Grpc, &vec![grpc(50, 5); 10]).as_ref(), Ok(&expected));
    assert_eq!(read("list-50", Style::Grpc, &[grpc(50, 5)]).as_ref(), Ok(&expected));
    let mut replies = vec![grpc(50, 5); 10];
    replies[9] = grpc(50, 6);
    assert!(read("list-50-x10", Style::Grpc, &replies).is_err());
    assert!(read("list-50", Style::Grpc, &[grpc(49, 5)]).unwrap_err().contains("49 books instead of 50"));
    assert!(read("list-50", Style::Rest, &[]).is_err());
}
