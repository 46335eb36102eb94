//! Many books at once: what is sent, what right replies hold, and bodies that are larger than the room for them.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use bench::case::{self, Http, Style};
use bench::connection::Answer;
use bench::hpack;
use bench::http2::{self, flag, kind};
use bench::load::{self, Setting};
use bench::operation::{self, Content, Recipe, framed, messages};
use bench::request::Expect;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;
use proto::catalog::v1 as pb;
use proto::common::v1::Money;

fn recipe(case_id: &str, style: Style) -> Recipe {
    let case = case::all().unwrap().into_iter().find(|case| case.id == case_id).unwrap();
    let way = case.ways.iter().find(|way| way.style == style).unwrap();
    operation::recipe(&case, way, "run").unwrap()
}

fn read(case_id: &str, style: Style, body: Vec<u8>) -> Result<Content, String> {
    let case = case::all().unwrap().into_iter().find(|case| case.id == case_id).unwrap();
    case.operation.read(style, &[body])
}

fn book(id: i32) -> pb::Book {
    let price = Some(Money { amount_minor: 5, currency: "EUR".to_owned() });
    pb::Book { id, sku: proto::seed::sku(id), title: "T".to_owned(), author_id: 1, price, version: 1 }
}

fn json(book: &pb::Book) -> String {
    format!(
        "{{\"id\":{},\"sku\":\"{}\",\"title\":\"T\",\"authorId\":1,\"price\":{{\"amountMinor\":5,\"currency\":\"EUR\"}}}}",
        book.id, book.sku
    )
}

#[test]
fn a_stream_is_the_same_books_whatever_its_messages() {
    let books: Vec<pb::Book> = (1..=1000).map(book).collect();
    let lines: String = books.iter().map(|book| json(book) + "\n").collect();
    let expected = read("bulk-stream", Style::RestNdjson, lines.clone().into_bytes()).unwrap();
    let single: Vec<u8> = books
        .iter()
        .flat_map(|book| {
            framed(&pb::StreamBooksResponse { book: Some(book.clone()), books: vec![] }.encode_to_vec())
        })
        .collect();
    let batches: Vec<u8> = books
        .chunks(100)
        .flat_map(|batch| {
            framed(&pb::StreamBooksResponse { book: None, books: batch.to_vec() }.encode_to_vec())
        })
        .collect();
    let mut web = batches.clone();
    web.extend_from_slice(b"\x80\0\0\0\x0fgrpc-status:0\r\n");
    for (style, body) in
        [(Style::GrpcStream1, &single), (Style::GrpcStream100, &batches), (Style::GrpcWeb, &web)]
    {
        assert_eq!(read("bulk-stream", style, body.clone()).as_ref(), Ok(&expected), "{style}");
    }
    let cut = single[..single.len() - 1].to_vec();
    assert!(read("bulk-stream", Style::GrpcStream1, cut).is_err());
    let short = lines.lines().take(999).collect::<Vec<_>>().join("\n").into_bytes();
    let error = read("bulk-stream", Style::RestNdjson, short).unwrap_err();
    assert!(error.contains("999 books instead of 1000"), "{error}");
}

#[test]
fn an_upload_has_all_books_once_in_every_style() {
    let skus =
        |books: &[pb::CreateBookRequest]| -> Vec<String> { books.iter().map(|b| b.sku.clone()).collect() };
    let mut uploads: HashMap<&str, Vec<String>> = HashMap::new();
    for (style, count) in [(Style::GrpcStream1, 1000), (Style::GrpcStream100, 10)] {
        let body = &recipe("bulk-post", style).calls[0].body;
        let parts: Vec<pb::ImportBooksRequest> =
            messages(body).map(|message| pb::ImportBooksRequest::decode(message.unwrap()).unwrap()).collect();
        assert_eq!(parts.len(), count);
        assert!(parts.iter().all(|part| part.validate_only));
        let books: Vec<_> =
            parts.into_iter().flat_map(|part| part.book.into_iter().chain(part.books)).collect();
        uploads.insert(style.as_str(), skus(&books));
    }
    let body = &recipe("bulk-post", Style::Grpc).calls[0].body;
    let batch = pb::BatchCreateBooksRequest::decode(operation::first_message(body).unwrap()).unwrap();
    assert!(batch.validate_only);
    uploads.insert("grpc", skus(&batch.books));
    let sku = |book: &serde_json::Value| book["sku"].as_str().unwrap().to_owned();
    let rest: serde_json::Value =
        serde_json::from_slice(&recipe("bulk-post", Style::Rest).calls[0].body).unwrap();
    uploads.insert("rest", rest["books"].as_array().unwrap().iter().map(sku).collect());
    let lines = recipe("bulk-post", Style::RestNdjson).calls[0].body.clone();
    let lines = String::from_utf8(lines).unwrap();
    uploads.insert("ndjson", lines.lines().map(|line| sku(&serde_json::from_str(line).unwrap())).collect());
    let expected = uploads["rest"].clone();
    assert_eq!(expected.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert!(uploads.values().all(|skus| *skus == expected));
}

#[test]
fn an_upload_is_right_when_every_book_would_be_taken() {
    let grpc = |imported_count, refused_count| {
        framed(&pb::ImportBooksResponse { imported_count, refused_count, refusals: vec![] }.encode_to_vec())
    };
    let rest = b"{\"importedCount\":1000,\"refusedCount\":0,\"refusals\":[]}".to_vec();
    let expected = read("bulk-post", Style::Rest, rest).unwrap();
    assert_eq!(read("bulk-post", Style::GrpcStream1, grpc(1000, 0)).as_ref(), Ok(&expected));
    assert!(read("bulk-post", Style::Grpc, grpc(1000, 1)).unwrap().is_same(&expected).is_err());
    assert!(read("bulk-post", Style::Grpc, grpc(999, 1)).is_err());
}

#[test]
fn a_page_is_the_same_zipped_and_as_a_message() {
    let author = pb::Author { id: 1, name: "N".to_owned(), country: "SE".to_owned(), born: 1961 };
    let detail = |id| pb::BookDetail {
        book: Some(book(id)),
        author: Some(author.clone()),
        in_stock: 7,
        reviews: vec![pb::Review {
            id: 3,
            rating: 5,
            reviewer: "R".to_owned(),
            text: "X".to_owned(),
            ..pb::Review::default()
        }],
        stock_unavailable: false,
    };
    let details: Vec<pb::BookDetail> = (1..=200).map(detail).collect();
    let screens: Vec<String> = (1..=200)
        .map(|id| {
            format!(
                "{{\"book\":{},\"author\":{{\"id\":1,\"name\":\"N\",\"country\":\"SE\",\"born\":1961}},\
                 \"stock\":{{\"bookId\":{id},\"inStock\":7}},\
                 \"reviews\":[{{\"id\":3,\"rating\":5,\"reviewer\":\"R\",\"text\":\"X\"}}]}}",
                json(&book(id))
            )
        })
        .collect();
    let rest = format!("{{\"details\":[{}],\"nextPageToken\":\"n\"}}", screens.join(",")).into_bytes();
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&rest).unwrap();
    let zipped = zipped.finish().unwrap();
    let reply =
        pb::ListBookDetailsResponse { details, next_page_token: "n".to_owned(), stock_unavailable: false };
    let expected = read("page", Style::Rest, rest).unwrap();
    assert_eq!(read("page", Style::RestGzip, zipped.clone()).as_ref(), Ok(&expected));
    assert_eq!(read("page", Style::Grpc, framed(&reply.encode_to_vec())).as_ref(), Ok(&expected));
    assert!(read("page", Style::RestGzip, zipped[..zipped.len() / 2].to_vec()).is_err());
    let without = pb::ListBookDetailsResponse { stock_unavailable: true, ..reply };
    assert!(read("page", Style::Grpc, framed(&without.encode_to_vec())).is_err());
}

#[test]
fn streams_zipped_and_unchanged_replies_are_judged_by_more_than_their_status() {
    let check = |expect, status, grpc_status, body: &[u8]| Answer { status, grpc_status, body }.check(expect);
    let two = b"\0\0\0\0\x01a\0\0\0\0\x02bc".as_slice();
    assert_eq!(check(Expect::GrpcStream, 200, Some(0), two), Ok(()));
    for (status, odd) in [(Some(2), two), (Some(0), &two[..9]), (Some(0), b""), (None, two)] {
        assert!(check(Expect::GrpcStream, 200, status, odd).is_err(), "{odd:?}");
    }
    let web = [two, b"\x80\0\0\0\x0fgrpc-status:0\r\n"].concat();
    assert_eq!(check(Expect::GrpcWebStream, 200, None, &web), Ok(()));
    assert!(check(Expect::GrpcWebStream, 200, None, two).is_err());
    assert!(check(Expect::GrpcWeb, 200, None, &web).is_err());
    assert_eq!(check(Expect::Gzip, 200, None, b"\x1f\x8b\x08"), Ok(()));
    assert!(check(Expect::Gzip, 200, None, b"{}").is_err());
    assert_eq!(check(Expect::NotModified, 304, None, b""), Ok(()));
    assert!(check(Expect::NotModified, 200, None, b"").is_err());
    assert!(check(Expect::NotModified, 304, None, b"{}").is_err());
}

/// A server of HTTP/2 that gives little room, and more only when all is used; it answers requests of this many bytes
/// with 200, and others, or one that takes more room than it has, with 500.
fn strict_server(bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            // The client leaves in the middle of something.
            thread::spawn(move || drop(serve_strictly(socket, bytes)));
        }
    });
    address
}

fn serve_strictly(mut socket: TcpStream, bytes: usize) -> std::io::Result<()> {
    const STEP: u32 = 10_000;
    let mut out = Vec::new();
    http2::put_settings(&mut out, &[(3, 100), (4, 20_000)]);
    socket.write_all(&out)?;
    let (mut input, mut part) = (Vec::new(), vec![0; 1 << 16]);
    let (mut greeted, mut room) = (false, 65_535_i64);
    // What came on a stream, the room that is left on it, and how much of that the settings take away from one that
    // the client may have begun before it read them.
    let mut streams: HashMap<u32, (usize, i64, i64)> = HashMap::new();
    let (mut is_wrong, mut taken_away) = (false, 45_535);
    loop {
        let count = socket.read(&mut part)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(&part[..count]);
        let mut rest = input.as_slice();
        if !greeted {
            let Some(after) = rest.strip_prefix(http2::PREFACE) else { continue };
            (rest, greeted) = (after, true);
        }
        let mut out = Vec::new();
        while let Some(frame) = http2::take(&mut rest).unwrap() {
            if frame.kind == kind::SETTINGS && frame.has(flag::ACK) {
                taken_away = 0;
            }
            let new = (0, 20_000 + taken_away, taken_away);
            let (got, left, too_much) = streams.entry(frame.stream).or_insert(new);
            if frame.kind == kind::DATA {
                let len = frame.payload.len() as i64;
                *got += frame.payload.len();
                *left -= len;
                room -= len;
                is_wrong |= room < 0 || *left < 0;
                if room == 0 {
                    http2::put_window(&mut out, 0, STEP);
                    room += i64::from(STEP);
                }
                while *left <= *too_much {
                    http2::put_window(&mut out, frame.stream, STEP);
                    *left += i64::from(STEP);
                }
            }
            if frame.has(flag::END_STREAM) && matches!(frame.kind, kind::DATA | kind::HEADERS) {
                let status = if *got == bytes && !is_wrong { "200" } else { "500" };
                let mut block = Vec::new();
                hpack::put_plain(&mut block, ":status", status.as_bytes());
                http2::put(
                    &mut out,
                    kind::HEADERS,
                    flag::END_HEADERS | flag::END_STREAM,
                    frame.stream,
                    &block,
                );
            }
        }
        input = rest.to_vec();
        socket.write_all(&out)?;
    }
}

#[test]
fn a_body_that_is_larger_than_the_room_waits_for_room() {
    let recipe = recipe("bulk-post", Style::Rest);
    let bytes = recipe.calls[0].body.len();
    assert!(bytes > 65_535);
    let address = strict_server(bytes);
    for streams in [1, 4] {
        let setting = Setting {
            address,
            authority: address.to_string(),
            http: Http::Two,
            clients: 4,
            streams,
            recipe: &recipe,
            rate: None,
            spin: false,
        };
        let (mut check, mut probe) = (|_: u64, _: &[Vec<u8>]| Ok(()), || vec![Some(1)]);
        let ms = Duration::from_millis;
        let stop = AtomicBool::new(false);
        let measured = load::run(&setting, ms(10), ms(300), &mut check, &mut probe, &stop).unwrap().unwrap();
        assert!(measured.operations > 4, "{}", measured.operations);
    }
}
