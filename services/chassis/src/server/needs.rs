//! What a server can't do without.

use std::time::Duration;

use tokio::sync::watch;
use tonic::Request;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::{Deadline, Upstream};

/// How often a service is asked for its health, and how long it has for the answer.
const PAUSE: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(1);

/// So many times in a row a service that was there must fail to say that it is, to be missing: one replica that goes
/// down must not take everybody with it who asked just then.
const MISSES: u32 = 3;

/// A service that a server can't do without. The server is ready while all of them say that they are.
#[derive(Debug, Clone)]
pub struct Need {
    name: &'static str,
    upstream: Upstream,
}

impl Need {
    /// The service of this name, at the other end of this transport.
    pub fn new(name: &'static str, upstream: Upstream) -> Self {
        Self { name, upstream }
    }

    async fn is_there(&self) -> bool {
        let mut request = Request::new(HealthCheckRequest::default());
        request.extensions_mut().insert(Deadline::after(PATIENCE));
        let answer = HealthClient::new(self.upstream.clone()).check(request).await;
        answer.is_ok_and(|answer| answer.into_inner().status() == ServingStatus::Serving)
    }
}

/// The name of one that is missing, or none.
pub(super) type Missing = Option<&'static str>;

/// What is said before anybody was asked: they are missing until they say otherwise.
pub(super) fn at_start(needs: &[Need]) -> Missing {
    needs.first().map(|need| need.name)
}

/// Asks, again and again, and tells when what is missing has changed.
pub(super) async fn follow(needs: Vec<Need>, missing: watch::Sender<Missing>) {
    if needs.is_empty() {
        return std::future::pending().await;
    }
    let mut misses = vec![MISSES; needs.len()];
    loop {
        for (need, misses) in needs.iter().zip(&mut misses) {
            *misses = if need.is_there().await { 0 } else { misses.saturating_add(1) };
        }
        let first = needs.iter().zip(&misses).find(|(_, misses)| **misses >= MISSES);
        let now = first.map(|(need, _)| need.name);
        missing.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
        tokio::time::sleep(PAUSE).await;
    }
}
