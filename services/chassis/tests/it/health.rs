//! What a server says about itself: health, reflection, and the probe that asks.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use chassis::probe::probe;
use futures_util::stream;
use http::StatusCode;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use crate::service::{Running, Test, config, routes};
use crate::wire::{Http1, held_port};

async fn channel(at: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{at}")).unwrap().connect().await.unwrap()
}

const SERVICES: [&str; 4] = [
    "test.Test",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

#[tokio::test]
async fn each_service_and_the_whole_are_reported_as_serving() {
    let server = Running::grpc(Test::new());
    let mut health = HealthClient::new(channel(server.at).await);
    for service in SERVICES.into_iter().chain([""]) {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = health.check(HealthCheckRequest { service: "test.Nothing".to_owned() }).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}

#[tokio::test]
async fn who_watches_the_health_hears_of_the_shutdown() {
    // The order is a matter of two threads.
    for _ in 0..20 {
        let server = Running::grpc(Test::new());
        let mut health = HealthClient::new(channel(server.at).await);
        let mut watches = Vec::new();
        for service in SERVICES.into_iter().chain([""]) {
            let asked = HealthCheckRequest { service: service.to_owned() };
            let mut watch = health.watch(asked).await.unwrap().into_inner();
            assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
            watches.push(watch);
        }
        server.stop().await;
        for mut watch in watches {
            assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
            assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
        }
    }
}

#[tokio::test]
async fn reflection_lists_the_services_in_both_versions() {
    let server = Running::grpc(Test::new());
    let channel = channel(server.at).await;
    {
        use v1::server_reflection_request::MessageRequest;
        use v1::server_reflection_response::MessageResponse;
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let asked = v1::ServerReflectionRequest { host: String::new(), message_request };
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
        let mut answers =
            client.server_reflection_info(Request::new(stream::iter([asked]))).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response;
        let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
        assert!(list.service.iter().any(|service| service.name == "test.Test"));
    }
    {
        use v1alpha::server_reflection_request::MessageRequest;
        use v1alpha::server_reflection_response::MessageResponse;
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let asked = v1alpha::ServerReflectionRequest { host: String::new(), message_request };
        let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
        let mut answers =
            client.server_reflection_info(Request::new(stream::iter([asked]))).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response;
        let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
        assert!(list.service.iter().any(|service| service.name == "test.Test"));
    }
    server.stop().await;
}

#[tokio::test]
async fn every_port_answers_health_over_http() {
    let http = Running::start(config(), |server, listener| server.http(listener, Router::new()));
    let grpc = Running::grpc(Test::new());
    for server in [http, grpc] {
        let mut client = Http1::connect(server.at).await;
        for path in ["/healthz", "/readyz"] {
            assert_eq!(client.get(path).await.status, StatusCode::OK);
        }
        server.stop().await;
    }
}

const PATIENCE: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_probe_says_whether_a_server_is_ready_and_why_not() {
    for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let (_port, at) = held_port(ip);
        let server = Running::on(at, config(), |server, listener| server.grpc(listener, routes(Test::new())));
        for good in [format!("http://{at}/readyz"), format!("grpc://{at}"), format!("grpc://{at}/test.Test")]
        {
            assert_eq!(probe(&good, PATIENCE).await, Ok(()), "{good}");
        }
        for (bad, why) in [
            (format!("http://{at}/nowhere"), "answered 415"),
            (format!("grpc://{at}/test.Nothing"), "NotFound"),
        ] {
            let said = probe(&bad, PATIENCE).await.unwrap_err();
            assert!(said.starts_with(&bad) && said.contains(why), "{said}");
        }
        server.stop().await;
        for gone in [format!("http://{at}/readyz"), format!("grpc://{at}")] {
            let said = probe(&gone, PATIENCE).await.unwrap_err();
            assert!(said.contains("refused"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_probe_refuses_what_is_no_url_of_a_server() {
    for bad in
        ["", "readyz", "https://localhost/readyz", "grpc://localhost", "http:///readyz", "grpc://a b:1"]
    {
        assert!(probe(bad, PATIENCE).await.is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_probe_that_gets_no_answer_gives_up() {
    let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = silent.local_addr().unwrap();
    for url in [format!("http://{at}/readyz"), format!("grpc://{at}")] {
        assert!(probe(&url, Duration::from_millis(50)).await.unwrap_err().contains("no answer within 50ms"));
    }
}
