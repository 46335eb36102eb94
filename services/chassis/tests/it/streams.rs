//! A caller that leaves ends the work that was for it.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use tokio::sync::{Notify, mpsc};
use tonic::{Request, Streaming};

use crate::service::{Bytes, Client, Dropped, Running, Test};
use crate::wire::sent;

/// A service whose handlers never end, what tells that one began, and what tells that it is gone.
fn endless() -> (Test, Arc<Notify>, Arc<Notify>) {
    let (began, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let begin = {
        let (began, dropped) = (began.clone(), dropped.clone());
        move || {
            began.notify_one();
            Dropped(dropped.clone())
        }
    };
    let (for_down, for_up) = (begin.clone(), begin.clone());
    let test = Test::new()
        .unary(move |_| {
            let guard = begin();
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
        .down(move |_| {
            let guard = for_down();
            stream::iter([Ok(b"a".to_vec())]).chain(stream::pending()).map(move |reply| {
                let _ = &guard;
                reply
            })
        })
        .up(move |request| {
            let guard = for_up();
            async move {
                let _guard = guard;
                request.into_inner().message().await?;
                std::future::pending().await
            }
        });
    (test, began, dropped)
}

#[tokio::test]
async fn a_caller_that_cancels_ends_the_handler() {
    let (test, began, dropped) = endless();
    let server = Running::grpc(test);
    let client = Client::connect(server.at).await;
    let mut caller = client.clone();
    let unary = tokio::spawn(async move { caller.unary(Vec::new()).await });
    began.notified().await;
    unary.abort();
    dropped.notified().await;

    let mut replies = client.clone().down(Vec::new()).await.unwrap();
    began.notified().await;
    replies.message().await.unwrap();
    drop(replies);
    dropped.notified().await;

    let mut caller = client.clone();
    let up = tokio::spawn(async move { caller.up(stream::pending()).await });
    began.notified().await;
    up.abort();
    dropped.notified().await;
    server.stop().await;
}

#[tokio::test]
async fn a_caller_whose_connection_breaks_ends_the_handler() {
    let (test, began, dropped) = endless();
    let server = Running::grpc(test);
    for method in ["Unary", "Down"] {
        let head = format!(
            "POST /test.Test/{method} HTTP/1.1\r\nhost: test\r\ncontent-type: application/grpc-web+proto\r\n\
             content-length: 8\r\n\r\n\0\0\0\0\x03\x0a\x01a"
        );
        let stream = sent(server.at, head.as_bytes()).await;
        began.notified().await;
        drop(stream);
        dropped.notified().await;
    }
    server.stop().await;
}

/// What a handler sees of an upload: each message, and how it ended.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Message(Bytes),
    End,
    Broken,
}

#[tokio::test]
async fn an_upload_that_breaks_off_never_looks_complete() {
    let (seen, mut sees) = mpsc::unbounded_channel();
    let server = Running::grpc(Test::new().up(move |request: Request<Streaming<Bytes>>| {
        let seen = seen.clone();
        let mut messages = request.into_inner();
        // Goes on after the caller left, as work does that must not stop half way.
        tokio::spawn(async move {
            loop {
                let step = match messages.message().await {
                    Ok(Some(message)) => Seen::Message(message),
                    Ok(None) => Seen::End,
                    Err(_) => Seen::Broken,
                };
                let ended = !matches!(step, Seen::Message(_));
                seen.send(step).unwrap();
                if ended {
                    return;
                }
            }
        });
        std::future::pending()
    }));
    let mut whole = Client::connect(server.at).await;
    let whole = tokio::spawn(async move { whole.up(stream::iter([b"a".to_vec()])).await });
    assert_eq!(sees.recv().await.unwrap(), Seen::Message(b"a".to_vec()));
    assert_eq!(sees.recv().await.unwrap(), Seen::End);

    let mut broken = Client::connect(server.at).await;
    let upload = stream::iter([b"a".to_vec()]).chain(stream::pending());
    let broken = tokio::spawn(async move { broken.up(upload).await });
    assert_eq!(sees.recv().await.unwrap(), Seen::Message(b"a".to_vec()));
    broken.abort();
    assert_eq!(sees.recv().await.unwrap(), Seen::Broken);
    whole.abort();
    server.stop().await;
}
