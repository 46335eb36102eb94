//! The sub-protocol `graphql-transport-ws`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use graphql_bff::{Config, Limits};
use http::header::{HeaderValue, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use proto::{Reason, Refusal};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::fake::{App, Fake, reason};

pub(crate) struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

async fn serve(app: &App) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = app.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("ws://{address}/graphql")
}

async fn open(
    app: &App,
    protocol: Option<&str>,
    origin: Option<&str>,
) -> Result<Client, Box<tungstenite::Error>> {
    let mut request = serve(app).await.into_client_request().unwrap();
    if let Some(protocol) = protocol {
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol.parse().unwrap());
    }
    if let Some(origin) = origin {
        request.headers_mut().insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
    }
    let (stream, _) = tokio_tungstenite::connect_async(request).await.map_err(Box::new)?;
    Ok(Client(stream))
}

impl Client {
    /// A socket that has not said anything.
    async fn fresh(app: &App) -> Self {
        open(app, Some("graphql-transport-ws"), None).await.unwrap()
    }

    /// A socket that may subscribe.
    pub(crate) async fn ready(app: &App) -> Self {
        let mut client = Self::fresh(app).await;
        client.say(json!({ "type": "connection_init", "payload": {} })).await;
        assert_eq!(client.hear().await, json!({ "type": "connection_ack" }));
        client
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, id: &str, query: &str) {
        self.say(json!({ "id": id, "type": "subscribe", "payload": { "query": query } })).await;
    }

    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code that the server closes the socket with.
    async fn closed(mut self) -> u16 {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Close(Some(frame)) => return frame.code.into(),
                Message::Close(None) => panic!("no code"),
                _ => {}
            }
        }
    }
}

pub(crate) const WATCH: &str = "subscription { stockChanged(bookIds: [1]) { bookId inStock } }";

fn limits(limits: Limits) -> Config {
    Config { graphql_limits: limits, ..Config::default() }
}

#[tokio::test]
async fn events_come_until_the_reader_has_enough() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    let event = |in_stock: i32| {
        json!({
            "id": "s",
            "type": "next",
            "payload": { "data": { "stockChanged": { "bookId": 1, "inStock": in_stock } } },
        })
    };
    assert_eq!(client.hear().await, event(7));
    let watch = app.fake.watches.lock().unwrap().pop().unwrap();
    watch.send(Ok(proto::inventory::v1::Stock { book_id: 1, in_stock: 6, ..Default::default() })).unwrap();
    assert_eq!(client.hear().await, event(6));

    client.say(json!({ "id": "s", "type": "complete" })).await;
    watch.closed().await;
    // The id is free again.
    client.subscribe("s", WATCH).await;
    assert_eq!(client.hear().await, event(7));
}

#[tokio::test]
async fn a_stream_that_ends_completes() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("o", "subscription { orderChanged(id: \"o1\") { orderId state lines { sku } } }").await;
    let event = client.hear().await;
    assert_eq!(event["payload"]["data"]["orderChanged"]["state"], "PLACED");
    assert_eq!(event["payload"]["data"]["orderChanged"]["lines"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.hear().await, json!({ "id": "o", "type": "complete" }));
    assert_eq!(app.fake.calls(), ["WatchOrder", "GetOrder ORDER_VIEW_FULL"]);
}

#[tokio::test]
async fn queries_and_mutations_run_too() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("q", "{ book(id: 1) { title } }").await;
    assert_eq!(client.hear().await["payload"], json!({ "data": { "book": { "title": "Book 1" } } }));
    assert_eq!(client.hear().await, json!({ "id": "q", "type": "complete" }));
    client.subscribe("m", "mutation { cancelOrder(id: \"o\") { orderId } }").await;
    assert_eq!(client.hear().await["payload"]["data"]["cancelOrder"]["orderId"], "o");
    assert_eq!(client.hear().await, json!({ "id": "m", "type": "complete" }));
}

#[tokio::test]
async fn a_refused_operation_is_an_error_and_the_socket_stays() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    for (query, wanted) in [
        ("{ nothing }", "INVALID_QUERY"),
        ("{", "MALFORMED_REQUEST"),
        ("subscription { stockChanged(bookIds: [404]) { sku } }", "UNKNOWN_SKU"),
        ("subscription { a: stockChanged(bookIds: [1]) { sku } b: stockChanged { sku } }", "INVALID_QUERY"),
        ("{ ...F } fragment F on Query { ...F }", "QUERY_TOO_COMPLEX"),
    ] {
        client.subscribe("x", query).await;
        let message = client.hear().await;
        assert_eq!((&message["type"], &message["id"]), (&json!("error"), &json!("x")), "{message}");
        assert_eq!(message["payload"][0]["extensions"]["reason"], wanted);
    }
    let payload = json!({ "query": "{ __typename }", "qeury": 1 });
    client.say(json!({ "id": "x", "type": "subscribe", "payload": payload })).await;
    let message = client.hear().await;
    assert!(message["payload"][0]["message"].as_str().unwrap().contains("unknown field `qeury`"));
    client.subscribe("x", "{ __typename }").await;
    assert_eq!(client.hear().await["type"], "next");
}

#[tokio::test]
async fn a_subscription_that_breaks_says_why_and_completes() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    client.hear().await;
    let watch = app.fake.watches.lock().unwrap().pop().unwrap();
    watch.send(Err(Refusal::new(Reason::ShuttingDown, "going down").into())).unwrap();
    let message = client.hear().await;
    assert_eq!(message["type"], "next");
    assert_eq!(reason(&message["payload"]), "SHUTTING_DOWN");
    assert_eq!(client.hear().await, json!({ "id": "s", "type": "complete" }));
    watch.closed().await;
}

#[tokio::test]
async fn a_socket_must_begin_with_init_and_once() {
    let app = App::new();
    let mut client = Client::fresh(&app).await;
    client.subscribe("s", WATCH).await;
    assert_eq!(client.closed().await, 4401);

    let mut client = Client::ready(&app).await;
    client.say(json!({ "type": "connection_init" })).await;
    assert_eq!(client.closed().await, 4429);

    let app = App::over(
        Fake::default(),
        &limits(Limits { init_timeout: Duration::from_millis(20), ..Limits::default() }),
    );
    assert_eq!(Client::fresh(&app).await.closed().await, 4408);
}

#[tokio::test]
async fn an_id_names_one_running_operation() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    client.subscribe("s", WATCH).await;
    assert_eq!(client.closed().await, 4409);
    let watches = std::mem::take(&mut *app.fake.watches.lock().unwrap());
    for watch in watches {
        watch.closed().await;
    }
}

#[tokio::test]
async fn what_is_no_message_closes_the_socket() {
    let app = App::new();
    for message in [
        Message::text("hello"),
        Message::text("{}"),
        Message::text(r#"{"type":"hello"}"#),
        Message::text(r#"{"type":"subscribe","id":"s"}"#),
        Message::text(r#"{"type":"subscribe","payload":{"query":"{__typename}"}}"#),
        Message::text(r#"{"type":"subscribe","id":"","payload":{"query":"{__typename}"}}"#),
        Message::text(r#"{"type":"subscribe","id":7,"payload":{"query":"{__typename}"}}"#),
        Message::text(r#"{"type":"ping","payload":5}"#),
        Message::text("[".repeat(100_000)),
        Message::binary(vec![1, 2, 3]),
    ] {
        let mut client = Client::ready(&app).await;
        client.0.send(message.clone()).await.unwrap();
        assert_eq!(client.closed().await, 4400, "{message:?}");
    }
}

#[tokio::test]
async fn a_message_is_bounded() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    let text = json!({ "type": "ping", "payload": { "x": "x".repeat(2 << 20) } }).to_string();
    // The server stops reading it, so sending may fail too.
    let _ = client.0.send(Message::text(text)).await;
    while let Some(Ok(_)) = client.0.next().await {}
}

#[tokio::test]
async fn pings_are_answered() {
    let app = App::new();
    let mut client = Client::fresh(&app).await;
    client.say(json!({ "type": "ping" })).await;
    assert_eq!(client.hear().await, json!({ "type": "pong" }));
    client.say(json!({ "type": "pong", "payload": { "any": 1 } })).await;
    client.say(json!({ "type": "ping", "payload": null })).await;
    assert_eq!(client.hear().await, json!({ "type": "pong" }));
}

#[tokio::test]
async fn operations_on_a_socket_are_bounded() {
    let app = App::over(Fake::default(), &limits(Limits { socket_operations: 3, ..Limits::default() }));
    let mut client = Client::ready(&app).await;
    for id in ["a", "b", "c"] {
        client.subscribe(id, WATCH).await;
        assert_eq!(client.hear().await["type"], "next");
    }
    client.subscribe("d", WATCH).await;
    let message = client.hear().await;
    assert_eq!((&message["id"], &message["type"]), (&json!("d"), &json!("error")));
    assert_eq!(message["payload"][0]["extensions"]["reason"], "TOO_MANY_REQUESTS");
    client.say(json!({ "id": "a", "type": "complete" })).await;
    client.subscribe("d", WATCH).await;
    assert_eq!(client.hear().await["type"], "next");
}

#[tokio::test]
async fn a_peer_that_is_gone_ends_all_its_work() {
    let app = App::over(Fake { hangs: true, ..Fake::default() }, &Config::default());
    let mut client = Client::ready(&app).await;
    for id in ["a", "b", "c"] {
        client.subscribe(id, "{ book(id: 1) { title } }").await;
    }
    let running = Arc::clone(&app.fake.running);
    let until = async |n: usize| {
        while running.load(Ordering::SeqCst) != n {
            tokio::task::yield_now().await;
        }
    };
    until(3).await;
    client.say(json!({ "id": "b", "type": "complete" })).await;
    until(2).await;
    drop(client);
    until(0).await;
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_gone() {
    let app = App::over(
        Fake::default(),
        &limits(Limits { keep_alive: Duration::from_millis(20), ..Limits::default() }),
    );
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    client.hear().await;
    let watch = app.fake.watches.lock().unwrap().pop().unwrap();
    // A client answers pings only while it reads.
    watch.closed().await;
}

#[tokio::test]
async fn shutdown_closes_sockets_and_ends_their_work() {
    let app = App::new();
    let mut client = Client::ready(&app).await;
    client.subscribe("s", WATCH).await;
    client.hear().await;
    app.shutdown.begin();
    assert_eq!(client.closed().await, 1001);
    let watch = app.fake.watches.lock().unwrap().pop().unwrap();
    watch.closed().await;
}

#[tokio::test]
async fn the_sub_protocol_is_required() {
    let app = App::new();
    let client = open(&app, None, None).await.unwrap();
    assert_eq!(client.closed().await, 4406);
    // A client of tungstenite refuses by itself what it did not ask for, so it is asked for both.
    let client = open(&app, Some("graphql-ws, graphql-transport-ws"), None).await.unwrap();
    drop(client);
}

#[tokio::test]
async fn pages_of_other_sites_may_not_open_a_socket() {
    let config = Config { graphql_origins: vec!["https://shop.example".to_owned()], ..Config::default() };
    let app = App::over(Fake::default(), &config);
    for (origin, allowed) in
        [("http://evil.example", false), ("http://localhost:9999", true), ("https://shop.example", true)]
    {
        let opened = open(&app, Some("graphql-transport-ws"), Some(origin)).await;
        match opened {
            Ok(_) => assert!(allowed, "{origin}"),
            Err(error) => {
                let tungstenite::Error::Http(response) = *error else { panic!("{error}") };
                assert_eq!(response.status().as_u16(), 403);
                assert!(!allowed, "{origin}");
            }
        }
    }
}
