//! `/graphql` over WebSocket: the sub-protocol `graphql-transport-ws`.
//!
//! One task serves a socket and everything that runs on it, so that nothing outlives the socket: `complete`, a closed
//! socket and a peer that fell silent all drop the work at once. A reader that is slow is waited for, and nothing runs
//! ahead of it.

mod message;
mod origin;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::parser::types::OperationType;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use axum::response::Response;
use chassis::call::TraceParent;
use futures_util::stream::{self, Stream, StreamExt};
use proto::Reason;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_stream::StreamMap;

use self::message::FromReader;
pub(crate) use self::origin::origin_allowed;
use crate::edge::{Edge, Parameters, Prepared, Way};
use crate::error::Rejection;
use crate::reply::{Reply, ToReader, json};

const PROTOCOL: &str = "graphql-transport-ws";

/// A peer that takes nothing for so long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a closed socket waits for the peer to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of one message, as of one HTTP body.
const MAX_MESSAGE: usize = proto::MAX_MESSAGE_BYTES;

/// Why the server closes a socket (the protocol's own numbers, and 1001 of RFC 6455).
struct Close(u16, &'static str);

const GOING_AWAY: Close = Close(1001, "the server is going down");
const BAD_MESSAGE: Close = Close(4400, "Invalid message");
const UNAUTHORIZED: Close = Close(4401, "Unauthorized");
const BAD_PROTOCOL: Close = Close(4406, "Subprotocol not acceptable");
const INIT_TIMEOUT: Close = Close(4408, "Connection initialisation timeout");
const TOO_MANY_INITS: Close = Close(4429, "Too many initialisation requests");

/// Why a socket ends.
enum End {
    /// The server closes it.
    Close(Close),
    /// The server closes it because this operation runs already.
    Duplicate(String),
    /// The peer is gone.
    Gone,
}

/// Takes the socket over.
pub(crate) fn upgrade(edge: Arc<Edge>, upgrade: WebSocketUpgrade, trace: Option<TraceParent>) -> Response {
    upgrade.protocols([PROTOCOL]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE).on_upgrade(
        |mut socket| async move {
            let end = if socket.protocol().is_some_and(|protocol| protocol == PROTOCOL) {
                let running = StreamMap::new();
                Connection { edge, trace, socket: &mut socket, initialised: false, running }.serve().await
            } else {
                End::Close(BAD_PROTOCOL)
            };
            close(socket, end).await;
        },
    )
}

/// What an operation tells its reader.
enum Event {
    Next(Reply),
    Error(Reply),
    Complete,
}

type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

struct Connection<'a> {
    edge: Arc<Edge>,
    trace: Option<TraceParent>,
    socket: &'a mut WebSocket,
    initialised: bool,
    running: StreamMap<String, Events>,
}

impl Connection<'_> {
    /// Serves until the socket must end.
    async fn serve(mut self) -> End {
        let shutdown = self.edge.shutdown.clone();
        let end = tokio::select! {
            end = self.talk() => end,
            () = shutdown.begun() => End::Close(GOING_AWAY),
        };
        // Ends the work before the socket waits for the peer to close.
        self.running.clear();
        end
    }

    async fn talk(&mut self) -> End {
        let limits = self.edge.config.graphql_limits.clone();
        let init_by = Instant::now() + limits.init_timeout;
        let mut pings = tokio::time::interval_at(Instant::now() + limits.keep_alive, limits.keep_alive);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = true;
        loop {
            let step = tokio::select! {
                biased;
                message = self.socket.recv() => {
                    heard = true;
                    match message {
                        Some(Ok(message)) => self.hear(message).await,
                        Some(Err(_)) | None => Err(End::Gone),
                    }
                }
                () = tokio::time::sleep_until(init_by), if !self.initialised => Err(End::Close(INIT_TIMEOUT)),
                _ = pings.tick() => {
                    // Two pauses without a sign of life: the answer to the last ping never came.
                    if std::mem::take(&mut heard) {
                        self.write(Message::Ping(Default::default())).await
                    } else {
                        Err(End::Gone)
                    }
                }
                Some((id, event)) = self.running.next(), if !self.running.is_empty() => {
                    self.tell(&id, event).await
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(End::Close(BAD_MESSAGE)),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(End::Gone),
        };
        match FromReader::parse(&text).ok_or(End::Close(BAD_MESSAGE))? {
            FromReader::ConnectionInit if self.initialised => Err(End::Close(TOO_MANY_INITS)),
            FromReader::ConnectionInit => {
                self.initialised = true;
                self.say(&ToReader::ConnectionAck).await
            }
            FromReader::Ping => self.say(&ToReader::Pong).await,
            FromReader::Pong => Ok(()),
            FromReader::Subscribe { .. } if !self.initialised => Err(End::Close(UNAUTHORIZED)),
            FromReader::Subscribe { id, .. } if self.running.contains_key(&id) => Err(End::Duplicate(id)),
            FromReader::Subscribe { id, payload } => self.start(id, payload).await,
            FromReader::Complete { id } => {
                self.running.remove(&id);
                Ok(())
            }
        }
    }

    async fn start(&mut self, id: String, payload: Result<Parameters, String>) -> Result<(), End> {
        let most = self.edge.config.graphql_limits.socket_operations;
        let prepared = if self.running.len() >= most {
            let message = format!("{most} operations run on this socket, no more may");
            Err(Rejection::because(Reason::TooManyRequests, message))
        } else {
            payload.map_err(|message| Rejection::because(Reason::MalformedRequest, message)).and_then(
                |parameters| {
                    self.edge.prepare(parameters, Way::Socket, self.edge.deadline(), self.trace.clone())
                },
            )
        };
        match prepared {
            Ok(prepared) => {
                self.running.insert(id, events(Arc::clone(&self.edge), prepared));
                Ok(())
            }
            Err(rejection) => self.say(&ToReader::Error { id: &id, payload: &rejection.errors }).await,
        }
    }

    async fn tell(&mut self, id: &str, event: Event) -> Result<(), End> {
        match event {
            Event::Next(reply) => self.say(&ToReader::Next { id, payload: &reply }).await,
            Event::Error(reply) => {
                self.running.remove(id);
                self.say(&ToReader::Error { id, payload: &reply.errors }).await
            }
            Event::Complete => {
                self.running.remove(id);
                self.say(&ToReader::Complete { id }).await
            }
        }
    }

    async fn say(&mut self, message: &impl Serialize) -> Result<(), End> {
        let text = String::from_utf8(json(message)).map_err(|_| End::Gone)?;
        self.write(Message::Text(text.into())).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }
}

/// Runs the operation and tells how it goes; dropping the stream ends it.
fn events(edge: Arc<Edge>, prepared: Prepared) -> Events {
    let complete = stream::once(std::future::ready(Event::Complete));
    if prepared.ty != OperationType::Subscription {
        let run = async move {
            match edge.run(prepared).await {
                Ok(reply) => Event::Next(reply),
                Err(rejection) => Event::Error(Reply::refused(rejection)),
            }
        };
        return Box::pin(stream::once(run).chain(complete));
    }
    let mut running = false;
    let replies = edge.stream(prepared).map(move |reply| {
        // A subscription that was refused never ran; one that breaks later says so in the place of its data.
        let first = !std::mem::replace(&mut running, true);
        if first && reply.failed() { Event::Error(reply) } else { Event::Next(reply) }
    });
    Box::pin(replies.chain(complete))
}

async fn close(mut socket: WebSocket, end: End) {
    let (code, reason) = match end {
        End::Gone => return,
        End::Close(Close(code, reason)) => (code, reason.to_owned()),
        End::Duplicate(id) => {
            // A close frame holds 123 bytes of reason.
            let id: String = id.chars().take(20).collect();
            (4409, format!("Subscriber for {id} already exists"))
        }
    };
    let goodbye = async {
        let frame = CloseFrame { code, reason: reason.into() };
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            // Let the peer read it: closing on unread input would reset the connection.
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
}
