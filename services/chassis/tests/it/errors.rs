//! Every error names its reason, also those that the gRPC library makes before a handler sees the call.

use futures_util::stream;
use http::Request;
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tower::Service;

use crate::service::{Client, LIMIT, Plain, Running, Test, reason};

/// Sends a body as it is, and returns the status wherever it comes: in the headers or the trailers.
async fn post(plain: &mut Plain, path: &str, headers: &[(&'static str, &str)], body: &[u8]) -> Status {
    let mut request = Request::post(format!("http://test{path}")).header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::new(Full::new(bytes::Bytes::copy_from_slice(body)));
    let (head, body) = plain.call(request.body(body).unwrap()).await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    let headers = body.trailers().unwrap_or(&head.headers);
    Status::from_header_map(headers).unwrap()
}

const WHOLE: &[u8] = b"\0\0\0\0\x03\x0a\x01a";

#[tokio::test]
async fn errors_that_the_library_makes_name_a_reason() {
    let server = Running::grpc(Test::new());
    let mut plain = Plain::connect(server.at).await;
    let too_large = [&[0][..], &u32::try_from(LIMIT + 1).unwrap().to_be_bytes()].concat();
    let two = [WHOLE, b"\x07"].concat();
    let malformed = (Code::InvalidArgument, "MALFORMED_REQUEST");
    for method in ["Unary", "Down", "Up", "Both"] {
        let streams = matches!(method, "Up" | "Both");
        for (what, body, wanted) in [
            ("whole", WHOLE, (Code::Ok, "")),
            ("nothing", b"", if streams { (Code::Ok, "") } else { malformed }),
            ("a message that is cut", b"\0\0\0\0\x03\x0a", malformed),
            ("an unknown flag", b"\x07\0\0\0\0", malformed),
            ("compressed without saying how", b"\x01\0\0\0\0", malformed),
            ("no protobuf", b"\0\0\0\0\x01\xff", malformed),
            ("a broken second message", &two, malformed),
            ("too large", &too_large, (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")),
        ] {
            let status = post(&mut plain, &format!("/test.Test/{method}"), &[], body).await;
            assert_eq!((status.code(), reason(&status).as_str()), wanted, "{method}, {what}: {status:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn unknown_methods_and_services_are_no_route() {
    let server = Running::grpc(Test::new());
    let mut plain = Plain::connect(server.at).await;
    for path in
        ["/test.Test/Nothing", "/grpc.health.v1.Health/Nothing", "/test.Nothing/Unary", "/", "/test.Test"]
    {
        let status = post(&mut plain, path, &[], WHOLE).await;
        assert_eq!(
            (status.code(), reason(&status)),
            (Code::Unimplemented, "ROUTE_NOT_FOUND".to_owned()),
            "{path}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_compressed_request_is_refused_with_the_encodings_that_are_known() {
    let server = Running::grpc(Test::new());
    let mut plain = Plain::connect(server.at).await;
    let status = post(&mut plain, "/test.Test/Unary", &[("grpc-encoding", "gzip")], WHOLE).await;
    assert_eq!((status.code(), reason(&status)), (Code::Unimplemented, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
    assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
    server.stop().await;
}

#[tokio::test]
async fn what_a_handler_says_stays_as_it_is() {
    let said = |code| {
        let mut metadata = MetadataMap::new();
        metadata.insert("x-more", "yes".parse().unwrap());
        Status::with_metadata(code, "as the handler says", metadata)
    };
    let test = Test::new()
        .unary(move |_| async move { Err(said(Code::Internal)) })
        .down(move |_| stream::iter([Ok(b"a".to_vec()), Err(said(Code::OutOfRange))]));
    let server = Running::grpc(test);
    let mut client = Client::connect(server.at).await;
    let mut replies = client.down(Vec::new()).await.unwrap();
    replies.message().await.unwrap();
    for (status, code) in [
        (client.unary(Vec::new()).await.unwrap_err(), Code::Internal),
        (replies.message().await.unwrap_err(), Code::OutOfRange),
    ] {
        assert_eq!((status.code(), status.message()), (code, "as the handler says"));
        assert_eq!(status.metadata().get("x-more").unwrap(), "yes");
    }
    server.stop().await;
}
