//! What is sent again, how often, and when nothing is sent at all.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use chassis::grpc::refusal;
use chassis::{Deadline, Upstream};
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Status};

use crate::replicas::{Calls, Network};
use crate::service::{Client, Test, reason};

fn within(time: Duration) -> Request<Vec<u8>> {
    let mut request = Request::new(b"a".to_vec());
    request.extensions_mut().insert(Deadline::after(time));
    request
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_be_made_twice_is_and_another_is_not() {
    let (network, _) = Network::of(2);
    let refused = [1, 2].map(|n| network.refuse(n, Status::unavailable("busy")));
    let status = network.client().unary(b"a".to_vec()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "busy"));
    let counts = refused.each_ref().map(Calls::take);
    assert_eq!(counts.iter().sum::<usize>(), 1, "{counts:?}");

    // Once on each, when both are there.
    let mut client = network.retrying();
    client.unary(b"a".to_vec()).await.unwrap_err();
    let _ = refused.each_ref().map(Calls::take);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = client.unary(b"a".to_vec()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "busy"));
    assert_eq!(refused.each_ref().map(Calls::take), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_other_replica_gets_the_same_request() {
    let (network, _) = Network::of(2);
    network.refuse(1, Status::unavailable("busy"));
    let mut client = network.retrying();
    for n in 0..20_u8 {
        let message = vec![n; 70_000];
        let mut request = Request::new(message.clone());
        request.metadata_mut().insert("x-seen", "by both".parse().unwrap());
        assert_eq!(client.unary(request).await.unwrap(), message);
    }
}

#[tokio::test(start_paused = true)]
async fn only_unavailable_is_repeated() {
    let (network, _) = Network::of(1);
    for code in [Code::Internal, Code::NotFound, Code::ResourceExhausted, Code::Aborted, Code::Unknown] {
        let refused = network.refuse(1, Status::new(code, ""));
        assert_eq!(network.retrying().unary(b"a".to_vec()).await.unwrap_err().code(), code);
        assert_eq!(refused.take(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_has_begun_is_not_asked_for_again() {
    let (network, _) = Network::of(1);
    let calls = Calls::default();
    let counted = calls.clone();
    let test = Test::new().down(move |_| {
        counted.arrived();
        stream::iter([Ok(b"a".to_vec()), Err(Status::unavailable("going"))])
    });
    network.run(1, test);
    let mut replies = network.retrying().down(b"a".to_vec()).await.unwrap();
    assert_eq!(replies.message().await.unwrap().unwrap(), b"a");
    assert_eq!(replies.message().await.unwrap_err().message(), "going");
    assert_eq!(calls.take(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_own_service_is_out_is_not_asked_again_nor_given_up() {
    let (network, _) = Network::of(1);
    let refused = network.refuse(1, refusal(Code::Unavailable, "UPSTREAM_UNAVAILABLE", "not my fault"));
    let mut client = network.retrying();
    for _ in 0..50 {
        assert_eq!(client.unary(b"a".to_vec()).await.unwrap_err().message(), "not my fault");
    }
    assert_eq!(refused.take(), 50);
}

/// Two replicas, both known to the client, of which the first never answers a call that says `wait`. How many of `calls`
/// such calls succeed when it dies with them.
async fn survivors(network: &Network, client: &Client<Upstream>, calls: usize) -> usize {
    let waiting = Arc::new(Semaphore::new(0));
    let begins = waiting.clone();
    let wait = Test::new().unary(move |request| {
        let begins = begins.clone();
        async move {
            if request.get_ref() == b"wait" {
                begins.add_permits(1);
                std::future::pending::<()>().await;
            }
            Ok(request.into_inner())
        }
    });
    network.run(1, wait);
    let other = network.answer(2);
    let mut met = client.clone();
    // Turns go round once both are known.
    while other.take() != 1 {
        for _ in 0..2 {
            met.unary(b"a".to_vec()).await.unwrap();
        }
    }
    let callers = (0..calls).map(|_| {
        let mut client = client.clone();
        async move { client.unary(b"wait".to_vec()).await.is_ok() }
    });
    let kill = async {
        // Those that the other one doesn't get.
        let _ = waiting.acquire_many(u32::try_from(calls / 2).unwrap()).await.unwrap();
        network.kill(1);
    };
    let (answers, ()) = tokio::join!(join_all(callers), kill);
    answers.into_iter().filter(|answered| *answered).count()
}

#[tokio::test(start_paused = true)]
async fn calls_whose_replica_dies_are_made_again() {
    let (network, _) = Network::of(2);
    assert_eq!(survivors(&network, &network.retrying(), 20).await, 20);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_dies_with_many_calls_does_not_close_the_way_to_the_others() {
    let (network, _) = Network::of(2);
    let mut client = network.client();
    assert_eq!(survivors(&network, &client, 40).await, 20);
    for _ in 0..10 {
        client.unary(b"a".to_vec()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_not_amplified() {
    // Of seven calls one succeeds, so that the breaker stays closed.
    let (network, _) = Network::of(1);
    let arrived = Arc::new(AtomicUsize::new(0));
    let counted = arrived.clone();
    network.run(
        1,
        Test::new().unary(move |request| {
            let good = counted.fetch_add(1, SeqCst).is_multiple_of(7);
            async move { if good { Ok(request.into_inner()) } else { Err(Status::unavailable("busy")) } }
        }),
    );
    let mut client = network.retrying();
    const CALLS: usize = 1000;
    for _ in 0..CALLS {
        let _ = client.unary(b"a".to_vec()).await;
    }
    let arrived = arrived.load(SeqCst);
    assert!((CALLS + 10..=CALLS + CALLS / 10).contains(&arrived), "{arrived}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_seven_times_in_a_row_is_asked_once_a_second() {
    let (network, _) = Network::of(1);
    let refused = network.refuse(1, Status::unavailable("busy"));
    let mut client = network.client();
    for n in 0..50 {
        let status = client.unary(b"a".to_vec()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(reason(&status), if n < 7 { "" } else { "UPSTREAM_UNAVAILABLE" });
    }
    assert_eq!(refused.take(), 7);
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let callers = (0..10).map(|_| {
            let mut client = client.clone();
            async move { client.unary(b"a".to_vec()).await.unwrap_err() }
        });
        join_all(callers).await;
        assert_eq!(refused.take(), 1);
    }
    let answered = network.answer(1);
    tokio::time::advance(Duration::from_secs(1)).await;
    for _ in 0..10 {
        client.unary(b"a".to_vec()).await.unwrap();
    }
    assert_eq!(answered.take(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_hangs_is_given_up_but_not_for_callers_in_a_hurry() {
    let (network, _) = Network::of(1);
    let arrived = Calls::default();
    let counted = arrived.clone();
    network.run(
        1,
        Test::new().unary(move |_| {
            counted.arrived();
            std::future::pending()
        }),
    );
    let mut client = network.retrying();
    client.unary(within(Duration::from_millis(50))).await.unwrap_err();
    arrived.take();
    for _ in 0..50 {
        let status = client.unary(within(Duration::from_millis(50))).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }
    assert_eq!(arrived.take(), 50);
    let codes: Vec<_> = {
        let mut codes = Vec::new();
        for _ in 0..9 {
            codes.push(client.unary(within(Duration::from_millis(100))).await.unwrap_err().code());
        }
        codes
    };
    let (waited, refused) = codes.split_at(7);
    assert!(waited.iter().all(|code| *code == Code::DeadlineExceeded), "{codes:?}");
    assert!(refused.iter().all(|code| *code == Code::Unavailable), "{codes:?}");
    assert_eq!(arrived.take(), 7);
}
