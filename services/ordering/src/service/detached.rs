//! Work that is brought to its end when its caller leaves: stopped in the middle, it would leave units sold that are
//! part of no order, or an order without its units.

use std::future::Future;
use std::time::Duration;

use chassis::Work;
use chassis::call::{Deadline, child};
use proto::{Reason, Refusal};
use tonic::{Extensions, Status};

use super::upstream;

/// How long the calls of such work may take together, if their caller's deadline isn't sooner. There may be nobody left
/// to give up on a service that doesn't answer.
const LONGEST: Duration = Duration::from_secs(30);

/// What the calls of such work carry: the caller's trace, and a deadline in any case.
pub(super) fn extensions(call: &Extensions) -> Extensions {
    let (_, mut own, ()) = child(call, ()).into_parts();
    let latest = Deadline::after(LONGEST);
    let deadline = own.get::<Deadline>().map_or(latest, |deadline| latest.min(*deadline));
    own.insert(deadline);
    own
}

/// Runs the work in a task of its own, for which its caller waits until the deadline of `call`, and a server that goes
/// down as long as it may.
pub(super) async fn run<T: Send + 'static>(
    tasks: &Work,
    call: &Extensions,
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let done = tasks.spawn(work);
    let done = match call.get::<Deadline>() {
        Some(deadline) => tokio::time::timeout_at(deadline.0, done).await.map_err(|_| {
            let message = "the time was over before the order was done; what was begun is finished or undone";
            Refusal::new(Reason::DeadlineExceeded, message)
        })?,
        None => done.await,
    };
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "work ended before it was done");
        Err(upstream::internal())
    })
}

#[cfg(test)]
mod tests {
    use proto::Reason;

    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_an_internal_error() {
        let call = extensions(&Extensions::new());
        let status = run::<()>(&Work::new(), &call, async { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(Reason::of(&status), Reason::Internal);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_until_the_deadline_and_the_work_goes_on() {
        let (tasks, mut call) = (Work::new(), Extensions::new());
        let deadline = Deadline::after(LONGEST);
        call.insert(deadline);
        let status = run::<()>(&tasks, &call, std::future::pending()).await.unwrap_err();
        assert_eq!(Reason::of(&status), Reason::DeadlineExceeded);
        assert!(deadline.left().is_zero());
        assert_eq!(tasks.running(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn work_has_a_deadline_whatever_its_caller_says() {
        let left = |call: &Extensions| extensions(call).get::<Deadline>().unwrap().left();
        let mut call = Extensions::new();
        assert_eq!(left(&call), LONGEST);
        call.insert(Deadline::after(LONGEST * 2));
        assert_eq!(left(&call), LONGEST);
        call.insert(Deadline::after(LONGEST / 2));
        assert_eq!(left(&call), LONGEST / 2);
    }
}
