//! Requests as bytes, and what right replies hold.

use bench::case::{self, Http, Style};
use bench::operation::{self, detail, framed, reserve};
use bench::request::ORDER_DIGITS;
use prost::Message as _;
use proto::inventory::v1::{ReservationState, ReserveStockRequest, ReserveStockResponse};

#[test]
fn the_documents_are_known_by_the_hash_of_their_bytes() {
    let cases = case::all().unwrap();
    let case = cases.iter().find(|case| case.id == "detail").unwrap();
    let way = case.ways.iter().find(|way| way.style == Style::GraphqlPersisted).unwrap();
    let recipe = operation::recipe(case.operation, way, "run").unwrap();
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
            let recipe = operation::recipe(case.operation, way, "cmp-1").unwrap();
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
    let recipe = operation::recipe(case.operation, way, "run").unwrap();
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
