//! Server-sent events from the services' streams.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use proto::Reason;
use tonic::Status;
use xxhash_rust::xxh3::xxh3_64;

use crate::call::Call;
use crate::errors::Problem;
use crate::reply::to_json;

/// How often an idle stream says that it is alive, so that proxies keep it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events called `name`, one for each message, `view` giving their data as JSON.
///
/// An event's id is made from its data: a client that reconnects with `Last-Event-ID` is spared a first event that tells
/// it nothing new. The last event is `end` when there is nothing more to come, and `problem`, its data a problem, when
/// the stream broke or the server shuts down. The work ends when the client leaves, for the stream is dropped then.
pub(crate) fn events<T: Send + 'static>(
    call: &Call,
    name: &'static str,
    messages: impl Stream<Item = Result<T, Status>> + Send + 'static,
    view: fn(&T) -> Result<Vec<u8>, Problem>,
) -> Response {
    let mut known = call.headers.get("last-event-id").cloned();
    let mut broken = false;
    let events = messages.map(Some).chain(futures_util::stream::iter([None])).filter_map(move |message| {
        let event = match message.map(|message| message.map_err(Problem::from).and_then(|m| view(&m))) {
            Some(Ok(data)) => {
                let id = format!("{:016x}", xxh3_64(&data));
                let news = known.take().is_none_or(|known| known.as_bytes() != id.as_bytes());
                news.then(|| Event::default().event(name).id(id).data(String::from_utf8_lossy(&data)))
            }
            Some(Err(problem)) => {
                broken = true;
                Some(farewell(&problem))
            }
            None => (!broken).then(|| Event::default().event("end").data("{}")),
        };
        ready(event)
    });
    let going_down = Problem::new(Reason::ShuttingDown, "the server is going down; connect again");
    let events = call.app.0.shutdown.end(events, Some(farewell(&going_down)));
    Sse::new(events.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

fn farewell(problem: &Problem) -> Event {
    let data = to_json(&problem.document()).unwrap_or_default();
    Event::default().event("problem").data(String::from_utf8_lossy(&data))
}
