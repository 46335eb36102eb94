//! Single requests outside the load: what the service itself holds, asked for in another style than the one measured.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use prost::Message;
use proto::inventory::v1::{GetReservationRequest, GetReservationResponse};
use serde_json::Value;

use crate::case::Http;
use crate::connection::{Answer, excerpt};
use crate::http1;
use crate::operation::{first_message, framed};
use crate::request::{Call, Expect};

const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one request over HTTP/1.1 on a connection of its own, and returns the body of a right reply.
pub(crate) fn ask(address: SocketAddr, authority: &str, call: &Call) -> anyhow::Result<Vec<u8>> {
    let Reply { status, body, .. } = exchange(address, authority, call)?;
    let answer = Answer { status, grpc_status: None, body: &body };
    answer.check(call.expect).map_err(anyhow::Error::msg).with_context(|| call.path.clone())?;
    Ok(body)
}

/// The tag that the reply to a GET has now.
pub(crate) fn tag(address: SocketAddr, authority: &str, call: &Call) -> anyhow::Result<String> {
    let reply = exchange(address, authority, &Call { if_none_match: None, ..call.clone() })?;
    reply.tag.with_context(|| format!("{} has no etag", call.path))
}

struct Reply {
    status: u16,
    tag: Option<String>,
    body: Vec<u8>,
}

fn exchange(address: SocketAddr, authority: &str, call: &Call) -> anyhow::Result<Reply> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("can't connect to {address}"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    let mut bytes = Vec::new();
    call.prepare(Http::One, authority)?.put_http1(&mut bytes, 0);
    socket.write_all(&bytes).with_context(|| format!("can't write to {address}"))?;
    let (mut input, mut part, mut chunks) = (Vec::new(), [0; 16 << 10], http1::Chunks::default());
    loop {
        let count = socket.read(&mut part).with_context(|| format!("no reply from {address}"))?;
        ensure!(count > 0, "{address} closed the connection without a reply");
        input.extend_from_slice(part.get(..count).unwrap_or_default());
        let odd = |http1::Malformed(what)| {
            anyhow::anyhow!("{address} answers as something else: {what}: {}", excerpt(&input))
        };
        let Some(head) = http1::head(&input).map_err(odd)? else { continue };
        let rest = input.get(head.len..).unwrap_or_default();
        let body = match head.body {
            Some(len) => rest.get(..len).map(<[u8]>::to_vec),
            None => chunks.read(rest).map_err(odd)?.map(|_| chunks.take()),
        };
        if let Some(body) = body {
            let tag = http1::header(&input, "etag").map(|tag| String::from_utf8_lossy(tag).into_owned());
            return Ok(Reply { status: head.status, tag, body });
        }
    }
}

/// A GET that is to be answered with 200.
pub(crate) fn get(path: &str) -> Call {
    let headers = vec![("accept", "application/json")];
    Call {
        method: "GET",
        path: path.to_owned(),
        headers,
        if_none_match: None,
        body: Vec::new(),
        order_at: None,
        expect: Expect::Status(200),
    }
}

/// A method of gRPC, asked over gRPC-Web.
pub(crate) fn method(path: &str, message: &impl Message) -> Call {
    let headers = vec![("content-type", "application/grpc-web+proto")];
    let body = framed(&message.encode_to_vec());
    let expect = Expect::GrpcWeb;
    Call {
        method: "POST",
        path: format!("/{path}"),
        headers,
        if_none_match: None,
        body,
        order_at: None,
        expect,
    }
}

/// A reservation as the service holds it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) order: String,
    /// SKUs and quantities in order of SKU.
    pub(crate) lines: Vec<(String, i32)>,
}

/// Reads a reservation over gRPC-Web.
pub(crate) fn reservation_by_grpc(address: SocketAddr, authority: &str, id: &str) -> anyhow::Result<Held> {
    let request = GetReservationRequest { reservation_id: id.to_owned(), order_id: String::new() };
    let call = method("bookstore.inventory.v1.InventoryService/GetReservation", &request);
    let body = ask(address, authority, &call)?;
    let reply = GetReservationResponse::decode(first_message(&body).context("no message")?)?;
    let held = reply.reservation.context("no reservation")?;
    let lines = held.lines.into_iter().map(|line| (line.sku, line.quantity)).collect();
    Ok(Held { order: held.order_id, lines })
}

/// The same over REST.
pub(crate) fn reservation_by_rest(address: SocketAddr, authority: &str, id: &str) -> anyhow::Result<Held> {
    let body = ask(address, authority, &get(&format!("/api/v1/reservations/{id}")))?;
    let reply: Value = serde_json::from_slice(&body)?;
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let quantity =
        |line: &Value| line.get("quantity").and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    let lines = reply.get("lines").and_then(Value::as_array).context("no lines")?;
    let lines = lines.iter().map(|line| (text(line, "sku"), quantity(line).unwrap_or_default())).collect();
    Ok(Held { order: text(&reply, "orderId"), lines })
}
