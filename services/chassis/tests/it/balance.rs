//! Which replica a call goes to, and what becomes of those that fail.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use chassis::Upstream;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use tonic::{Code, Status};

use crate::replicas::{Calls, Network, at};
use crate::service::{Client, Test};

/// Calls until every replica has answered.
async fn meet(client: &mut Client<Upstream>, calls: &[Calls]) {
    let mut met = vec![false; calls.len()];
    while met.contains(&false) {
        client.unary(b"a".to_vec()).await.unwrap();
        met.iter_mut().zip(calls).for_each(|(met, calls)| *met |= calls.take() > 0);
    }
}

async fn call(client: &mut Client<Upstream>, times: usize) {
    for _ in 0..times {
        assert_eq!(client.unary(b"a".to_vec()).await.unwrap(), b"a");
    }
}

fn taken(calls: &[Calls]) -> Vec<usize> {
    calls.iter().map(Calls::take).collect()
}

#[tokio::test(start_paused = true)]
async fn replicas_that_are_equally_busy_take_turns() {
    let (network, calls) = Network::of(3);
    let mut client = network.client();
    meet(&mut client, &calls).await;
    call(&mut client, 30).await;
    assert_eq!(taken(&calls), [10, 10, 10]);
}

#[tokio::test(start_paused = true)]
async fn the_replica_with_the_fewest_calls_in_flight_is_next_and_streams_count() {
    let (network, calls) = Network::of(2);
    for (n, calls) in (1..).zip(&calls) {
        // Streams say whose they are, and stay.
        let streams = Test::new().down(move |_| stream::iter([Ok(vec![n])]).chain(stream::pending()));
        let counted = calls.clone();
        network.run(
            n,
            streams.unary(move |request| {
                counted.arrived();
                async { Ok(request.into_inner()) }
            }),
        );
    }
    let mut client = network.client();
    meet(&mut client, &calls).await;
    let mut streams = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        let mut replies = client.down(b"a".to_vec()).await.unwrap();
        let n = replies.message().await.unwrap().unwrap()[0];
        streams[usize::from(n) - 1].push(replies);
    }
    assert_eq!(streams.each_ref().map(Vec::len), [5, 5]);
    streams[1].clear();
    taken(&calls);
    call(&mut client, 20).await;
    assert_eq!(taken(&calls), [0, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_joins_gets_its_share_and_one_that_leaves_none() {
    let (network, mut calls) = Network::of(1);
    let mut client = network.client();
    call(&mut client, 3).await;
    calls.push(network.answer(2));
    *network.name.lock().unwrap() = vec![at(1), at(2)];
    tokio::time::advance(Duration::from_secs(4)).await;
    meet(&mut client, &calls).await;
    call(&mut client, 20).await;
    assert_eq!(taken(&calls), [10, 10]);

    *network.name.lock().unwrap() = vec![at(2)];
    tokio::time::sleep(Duration::from_secs(4)).await;
    call(&mut client, 20).await;
    assert_eq!(taken(&calls), [0, 20]);
}

#[tokio::test(start_paused = true)]
async fn when_all_are_gone_the_name_is_looked_up_at_once() {
    let (network, _) = Network::of(1);
    let mut client = network.retrying();
    call(&mut client, 1).await;
    network.kill(1);
    let calls = network.answer(2);
    *network.name.lock().unwrap() = vec![at(2)];
    let before = tokio::time::Instant::now();
    call(&mut client, 1).await;
    assert_eq!(calls.take(), 1);
    assert_eq!(tokio::time::Instant::now(), before);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_stands_for_nothing_is_unavailable_and_not_waited_for() {
    let (network, _) = Network::of(0);
    let mut client = network.client();
    assert_eq!(client.unary(b"a".to_vec()).await.unwrap_err().code(), Code::Unavailable);
    network.answer(1);
    network.name.lock().unwrap().push(at(1));
    call(&mut client, 1).await;
    // Members are kept when the name says nothing for a while.
    network.name.lock().unwrap().clear();
    let before = network.look_ups.load(SeqCst);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(network.look_ups.load(SeqCst) > before);
    call(&mut client, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_drains_loses_no_call() {
    let (network, calls) = Network::of(3);
    let mut client = network.client();
    meet(&mut client, &calls).await;
    // None of these may be sent twice, and none may be lost.
    let callers = (0..20).map(|_| {
        let mut client = client.clone();
        async move {
            for _ in 0..50 {
                client.unary(b"a".to_vec()).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let drain = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        network.drain(2);
    };
    tokio::join!(join_all(callers), drain);
    assert_eq!(taken(&calls).into_iter().sum::<usize>(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_died_is_back_within_two_seconds_of_its_return() {
    let (network, mut calls) = Network::of(3);
    let mut client = network.retrying();
    meet(&mut client, &calls).await;
    network.kill(2);
    for _ in 0..10 {
        call(&mut client, 10).await;
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    calls[1] = network.answer(2);
    taken(&calls);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The first call is its trial.
    call(&mut client, 3).await;
    taken(&calls);
    call(&mut client, 30).await;
    assert_eq!(taken(&calls), [10, 10, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_refuses_is_left_alone_for_longer_and_longer() {
    let (network, calls) = Network::of(2);
    let mut client = network.retrying();
    meet(&mut client, &calls).await;
    let refused = network.refuse(1, Status::unavailable("warming up"));
    let mut tries = Vec::new();
    for _ in 0..40 {
        // However many calls there are meanwhile.
        call(&mut client, 5).await;
        tries.push(refused.take());
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    // After 0.1 s, 0.2 s, 0.4 s, 0.8 s, and then once a second.
    assert!(tries.iter().all(|tries| *tries <= 1), "{tries:?}");
    let (soon, late) = tries.split_at(20);
    assert!((4..=6).contains(&soon.iter().sum::<usize>()), "{tries:?}");
    assert!((1..=3).contains(&late.iter().sum::<usize>()), "{tries:?}");

    let back = network.answer(1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    call(&mut client, 5).await;
    back.take();
    call(&mut client, 20).await;
    assert_eq!(back.take(), 10);
}
