//! The load client against servers that behave and servers that don't.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bench::case::{self, Http, Style};
use bench::connection::Answer;
use bench::floor::{self, Serving, Size};
use bench::load::{self, Measured, Setting};
use bench::operation::{self, Recipe};
use bench::request::Expect;

fn recipe(case_id: &str, style: Style) -> Recipe {
    let case = case::all().unwrap().into_iter().find(|case| case.id == case_id).unwrap();
    let way = case.ways.iter().find(|way| way.style == style).unwrap();
    operation::recipe(&case, way, "run").unwrap()
}

fn floor_server(http: Http, size: Size) -> SocketAddr {
    floor_that(Serving { http, size, together: 1, spin: false })
}

fn floor_that(serving: Serving) -> SocketAddr {
    let (to, address) = mpsc::channel();
    thread::spawn(move || floor::serve(serving, move |address| to.send(address).unwrap()));
    address.recv().unwrap()
}

/// A server that answers the first bytes of each connection with these, and closes.
fn server_that_says(reply: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(reply);
        }
    });
    address
}

fn run(address: SocketAddr, http: Http, streams: usize, recipe: &Recipe) -> anyhow::Result<Measured> {
    let setting = Setting {
        address,
        authority: address.to_string(),
        http,
        clients: 4,
        streams,
        recipe,
        rate: None,
        spin: false,
    };
    let (mut check, mut probe) = (|_: u64, _: &[Vec<u8>]| Ok(()), || vec![Some(1)]);
    let ms = Duration::from_millis;
    let stop = AtomicBool::new(false);
    Ok(load::run(&setting, ms(10), ms(50), &mut check, &mut probe, &stop)?.unwrap())
}

#[test]
fn operations_and_bytes_are_counted_in_both_versions() {
    let size = Size { wire: 250, body: 100, status: 201 };
    for (http, streams) in [(Http::One, 1), (Http::Two, 1), (Http::Two, 4)] {
        let recipe = recipe("reserve-50", Style::Rest);
        let measured = run(floor_server(http, size), http, streams, &recipe).unwrap();
        assert!(measured.operations > 0);
        assert_eq!(measured.latency.len(), measured.operations);
        // Under way at the beginning and at the end: up to as many as there are clients.
        let near = |bytes: u64, each: u64| {
            // Over HTTP/2 the server gives room back now and then.
            let most = (measured.operations + 4) * each * 102 / 100 + 4 * 64;
            assert!((measured.operations.saturating_sub(4) * each..=most).contains(&bytes), "{bytes} {each}");
        };
        near(measured.traffic.received, 250);
        near(measured.traffic.body_received, 100);
        near(measured.traffic.body_sent, recipe.calls[0].body.len() as u64);
    }
}

#[test]
fn the_floor_answers_as_many_together_as_it_is_told() {
    let size = Size { wire: 250, body: 100, status: 201 };
    let recipe = recipe("reserve-2", Style::Rest);
    for spin in [false, true] {
        let address = floor_that(Serving { http: Http::Two, size, together: 4, spin });
        assert!(run(address, Http::Two, 4, &recipe).unwrap().operations > 0);
    }
    // Of five it gets four, and waits for ever.
    let address = floor_that(Serving { http: Http::Two, size, together: 5, spin: false });
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let mut asks = Vec::new();
    for stream in [1, 3, 5, 7] {
        recipe.calls[0].prepare(Http::Two, "a").unwrap().put_http2(&mut asks, stream == 1, stream, 0);
    }
    socket.write_all(&[bench::http2::PREFACE, &asks].concat()).unwrap();
    let mut replies = Vec::new();
    let mut ask_until = |socket: &mut std::net::TcpStream, ping: [u8; 8]| {
        // What comes back before the answer to a ping is all there is.
        let mut out = Vec::new();
        bench::http2::put(&mut out, bench::http2::kind::PING, 0, 0, &ping);
        socket.write_all(&out).unwrap();
        while !replies.windows(8).any(|window| window == ping) {
            let mut part = [0; 4096];
            let count = socket.read(&mut part).unwrap();
            replies.extend_from_slice(&part[..count]);
        }
        replies.windows(100).filter(|window| **window == [b' '; 100]).count()
    };
    assert_eq!(ask_until(&mut socket, *b"question"), 0);
    let mut fifth = Vec::new();
    recipe.calls[0].prepare(Http::Two, "a").unwrap().put_http2(&mut fifth, false, 9, 0);
    socket.write_all(&fifth).unwrap();
    assert_eq!(ask_until(&mut socket, *b"and then"), 5);
}

#[test]
fn a_floor_that_looks_for_work_counts_only_what_requests_cost() {
    let size = Size { wire: 250, body: 100, status: 201 };
    let address = floor_that(Serving { http: Http::One, size, together: 1, spin: true });
    let ask = std::net::TcpStream::connect(address).unwrap();
    let before = floor::cpu_ns(&ask).unwrap();
    let measured = run(address, Http::One, 1, &recipe("reserve-2", Style::Rest)).unwrap();
    let cost = floor::cpu_ns(&ask).unwrap() - before;
    // A reply takes two calls of the kernel at least, and no machine does these in a tenth of a microsecond.
    assert!(cost > measured.operations * 100, "{cost}");
}

#[test]
fn requests_in_a_row_are_one_operation() {
    let size = Size { wire: 250, body: 100, status: 200 };
    for (http, streams) in [(Http::One, 1), (Http::Two, 1), (Http::Two, 4)] {
        let recipe = recipe("list-50-x10", Style::Rest);
        assert_eq!((recipe.calls.len(), recipe.requests()), (1, 10));
        let measured = run(floor_server(http, size), http, streams, &recipe).unwrap();
        let replies = measured.traffic.body_received / 100;
        // Each of four clients may be anywhere in an operation at the beginning and at the end.
        assert!((measured.operations * 10).abs_diff(replies) <= 40, "{replies} for {}", measured.operations);
    }
}

#[test]
fn the_sizes_of_whole_replies_are_exact() {
    let size = Size { wire: 70_250, body: 70_000, status: 201 };
    for http in [Http::One, Http::Two] {
        let whole = run(floor_server(http, size), http, 1, &recipe("reserve-2", Style::Rest)).unwrap().whole;
        assert!(whole.replies > 0);
        assert_eq!(whole.body_received, whole.replies * 70_000);
        // Over HTTP/2 the server gives room back now and then.
        let most = whole.replies * 70_252 + 200;
        assert!((whole.replies * 70_250..=most).contains(&whole.received), "{whole:?}");
    }
}

#[test]
fn a_wrong_status_fails_the_run_and_says_so() {
    let size = Size { wire: 250, body: 100, status: 503 };
    for http in [Http::One, Http::Two] {
        let error = run(floor_server(http, size), http, 1, &recipe("reserve-2", Style::Rest)).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("wrong reply to operation 0") && text.contains("503"), "{text}");
    }
}

#[test]
fn a_peer_that_is_no_such_server_ends_the_run_in_one_line() {
    for (reply, http, expected) in [
        (b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(), Http::One, "not a reply of HTTP/1.1"),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", Http::Two, "not HTTP/2"),
        (b"", Http::One, "closed the connection"),
        (b"HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\nhalf", Http::One, "closed the connection"),
        (b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b", Http::Two, "goodbye with error code 11"),
        (b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08", Http::Two, "reset a stream with error code 8"),
        (b"\0\0\x01\0\x01\0\0\0\x09x", Http::Two, "stream 9, which is not open"),
        (b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\0", Http::Two, "allows 0 streams"),
    ] {
        let error =
            run(server_that_says(reply), http, 1, &recipe("reserve-2", Style::Rest)).map(drop).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains(expected), "{text}, not {expected}");
        assert_eq!(text.lines().count(), 1);
    }
}

#[test]
fn a_round_goes_on_until_an_operation_has_ended() {
    // The time is over, a nanosecond after its beginning, before the first reply comes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ask, asked) = mpsc::channel();
    thread::spawn(move || {
        let mut sockets = Vec::new();
        for socket in listener.incoming().take(4) {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            sockets.push(socket);
        }
        // Figures are asked for at the beginning of the measured time.
        let () = asked.recv().unwrap();
        for socket in &mut sockets {
            let _ = socket.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}");
        }
        let mut rest = Vec::new();
        let _ = sockets[0].read_to_end(&mut rest);
    });
    let recipe = recipe("reserve-2", Style::Rest);
    let setting = Setting {
        address,
        authority: address.to_string(),
        http: Http::One,
        clients: 4,
        streams: 1,
        recipe: &recipe,
        rate: None,
        spin: false,
    };
    let mut check = |_: u64, _: &[Vec<u8>]| Ok(());
    let mut probe = || {
        ask.send(()).unwrap_or_default();
        vec![Some(1)]
    };
    let nanosecond = Duration::from_nanos(1);
    let stop = AtomicBool::new(false);
    let measured =
        load::run(&setting, nanosecond, nanosecond, &mut check, &mut probe, &stop).unwrap().unwrap();
    assert!(measured.operations > 0);
}

#[test]
fn nobody_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = run(address, Http::One, 1, &recipe("reserve-2", Style::Rest)).unwrap_err();
    assert!(format!("{error:#}").contains("can't connect"), "{error:#}");
}

#[test]
fn replies_are_judged_by_more_than_their_status() {
    let message = b"\0\0\0\0\x02\x08\x01".as_slice();
    let web = |trailers: &str| {
        let mut body = message.to_vec();
        body.push(0x80);
        body.extend_from_slice(&(trailers.len() as u32).to_be_bytes());
        body.extend_from_slice(trailers.as_bytes());
        body
    };
    let check = |expect, status, grpc_status, body: &[u8]| Answer { status, grpc_status, body }.check(expect);
    assert_eq!(check(Expect::Status(201), 201, None, b"{}"), Ok(()));
    assert!(check(Expect::Status(201), 200, None, b"{}").is_err());
    assert_eq!(check(Expect::Data, 200, None, b"{\"data\":{\"book\":null}}"), Ok(()));
    for odd in [b"{\"errors\":[],\"data\":{}}".as_slice(), b"{\"data\":null}", b""] {
        assert!(check(Expect::Data, 200, None, odd).is_err());
    }
    assert_eq!(check(Expect::Grpc, 200, Some(0), message), Ok(()));
    for (status, grpc_status, body) in [
        (200, Some(5), b"".as_slice()),
        (200, None, message),
        (503, Some(0), message),
        (200, Some(0), b""),
        (200, Some(0), b"\0\0\0\0\x03\x08\x01"),
        (200, Some(0), b"\x01\0\0\0\x02\x08\x01"),
        (200, Some(0), b"\0\0\0\0\x01\x08\x01"),
    ] {
        assert!(check(Expect::Grpc, status, grpc_status, body).is_err(), "{body:?}");
    }
    assert_eq!(check(Expect::GrpcWeb, 200, None, &web("grpc-status:0\r\n")), Ok(()));
    assert_eq!(check(Expect::GrpcWeb, 200, None, &web("a:b\r\nGRPC-Status: 0\r\n")), Ok(()));
    for odd in [web("grpc-status:8\r\n"), web("a:b\r\n"), web(""), message.to_vec(), Vec::new()] {
        assert!(check(Expect::GrpcWeb, 200, None, &odd).is_err(), "{odd:?}");
    }
    let mut cut = web("grpc-status:0\r\n");
    cut.pop();
    assert!(check(Expect::GrpcWeb, 200, None, &cut).is_err());
}
