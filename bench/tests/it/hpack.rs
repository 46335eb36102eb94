//! Header compression, with the examples of RFC 7541, appendix C.

use bench::hpack::{self, Decoder, Malformed, huffman};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut headers = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |_| true, |name, value| headers.push((text(name), text(value))))?;
    Ok(headers)
}

fn check(decoder: &mut Decoder, hex: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    assert_eq!(decode(decoder, &bytes(hex)), Ok(expected), "{hex}");
}

#[test]
fn plain_requests_share_a_table() {
    let mut decoder = Decoder::default();
    let first = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    check(&mut decoder, "828684410f7777772e6578616d706c652e636f6d", &first);
    let second = [first[0], first[1], first[2], first[3], ("cache-control", "no-cache")];
    check(&mut decoder, "828684be58086e6f2d6361636865", &second);
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    check(&mut decoder, "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", &third);
}

#[test]
fn coded_requests_share_a_table() {
    let mut decoder = Decoder::default();
    let first = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    check(&mut decoder, "828684418cf1e3c2e5f23a6ba0ab90f4ff", &first);
    let second = [first[0], first[1], first[2], first[3], ("cache-control", "no-cache")];
    check(&mut decoder, "828684be5886a8eb10649cbf", &second);
}

#[test]
fn a_full_table_forgets_its_oldest_entries() {
    // A table of 256 bytes, set by the block itself, then the replies of C.6.
    let mut decoder = Decoder::default();
    check(&mut decoder, "3fe101", &[]);
    let date = "Mon, 21 Oct 2013 20:13:21 GMT";
    let location = ("location", "https://www.example.com");
    check(
        &mut decoder,
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        &[(":status", "302"), ("cache-control", "private"), ("date", date), location],
    );
    check(
        &mut decoder,
        "4883640effc1c0bf",
        &[(":status", "307"), ("cache-control", "private"), ("date", date), location],
    );
    // The second block pushed `:status: 302` out; index 65 is the last entry, 66 is gone.
    assert_eq!(decode(&mut decoder, &[0x80 | 65]).unwrap().len(), 1);
    assert!(decode(&mut decoder, &[0x80 | 66]).is_err());
}

#[test]
fn blocks_that_break_the_rules_are_refused() {
    for hex in [
        "80",                      // index 0
        "be",                      // an index into an empty table
        "41",                      // a value is missing
        "410f7777",                // a string that ends early
        "ff",                      // an integer that ends early
        "ffffffffffff7f",          // an integer that is too large
        "3fe2ff03",                // a table larger than allowed
        "4081ff01",                // a string that ends inside a character
        "408200fffffffffffffffff", // garbage
        "4084ffffffff0141",        // the code that ends everything
    ] {
        let hex = if hex.len() % 2 == 1 { &hex[..hex.len() - 1] } else { hex };
        assert!(decode(&mut Decoder::default(), &bytes(hex)).is_err(), "{hex}");
    }
}

#[test]
fn every_prefix_of_a_block_is_refused_or_decoded_without_a_panic() {
    let block = bytes("488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff");
    for end in 0..block.len() {
        let _ = decode(&mut Decoder::default(), &block[..end]);
    }
    for at in 0..block.len() {
        for byte in 0..=255 {
            let mut odd = block.clone();
            odd[at] = byte;
            let _ = decode(&mut Decoder::default(), &odd);
        }
    }
}

#[test]
fn the_string_code_goes_both_ways() {
    let all: Vec<u8> = (0..=255).collect();
    for text in [b"".as_slice(), b"www.example.com", b"/api/v1/books/1?limit=2", &all] {
        let (mut coded, mut back) = (Vec::new(), Vec::new());
        huffman::encode(text, &mut coded);
        huffman::decode(&coded, &mut back).unwrap();
        assert_eq!(back, text);
    }
    let mut coded = Vec::new();
    huffman::encode(b"www.example.com", &mut coded);
    assert_eq!(coded, bytes("f1e3c2e5f23a6ba0ab90f4ff"));
}

#[test]
fn a_second_request_names_what_the_first_one_said() {
    let constant = [(":method", "POST"), (":authority", "a:1"), ("user-agent", "me"), ("te", "trailers")];
    let blocks = hpack::encode(&constant, 2, &[(":path", "/x")]);
    assert_eq!(blocks.later.len(), 4 + 1 + 1 + 2);
    let mut decoder = Decoder::default();
    let first = decode(&mut decoder, &blocks.first).unwrap();
    let expected = [constant[0], constant[1], (":path", "/x"), constant[2], constant[3]];
    assert_eq!(first, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    for _ in 0..3 {
        assert_eq!(decode(&mut decoder, &blocks.later).unwrap(), first);
    }
}

#[test]
fn what_nobody_wants_is_skipped_without_losing_the_table() {
    let mut decoder = Decoder::default();
    let mut block = Vec::new();
    hpack::put_plain(&mut block, "x-other", b"long");
    block.extend_from_slice(&bytes("400b677270632d7374617475730130")); // grpc-status: 0, into the table
    let mut seen = Vec::new();
    decoder.decode(&block, |name| name == b"grpc-status", |name, _| seen.push(name.to_vec())).unwrap();
    assert_eq!(seen, [b"grpc-status".to_vec()]);
    check(&mut decoder, "be", &[("grpc-status", "0")]);
}
