//! What a failed call to another service means for the caller of this one.

use std::future::Future;

use chassis::call::Deadline;
use proto::inventory::v1::{ReservationLine, ReserveStockRequest};
use proto::{Reason, Refusal};
use tonic::{Extensions, Response, Status};

use crate::domain::{Reservation, Sku};

/// A call to another service that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The service refused for a reason of the business, and did nothing. The reason is the caller's to know.
    Refused(Reason, Status),
    /// Anything else. Whether the service did its work is not known.
    Failed(Status),
}

impl Failure {
    /// Sorts the status with which `service` answered, and logs what the operator should know of.
    pub(super) fn of(service: &'static str, status: Status) -> Self {
        let reason = Reason::of(&status);
        match reason {
            Reason::DeadlineExceeded => {
                let message = format!("{service} did not answer in time");
                Self::Failed(Refusal::new(Reason::DeadlineExceeded, message).into())
            }
            // What we sent was wrong, whatever our own caller sent.
            Reason::InvalidField
            | Reason::InvalidPageToken
            | Reason::MalformedRequest
            | Reason::MessageTooLarge
            | Reason::RouteNotFound
            | Reason::MethodNotAllowed
            | Reason::UnsupportedMediaType
            | Reason::InvalidQuery
            | Reason::QueryTooComplex
            | Reason::PersistedQueryNotFound => {
                tracing::error!(service, %reason, message = status.message(), "a call was malformed");
                Self::Failed(internal())
            }
            Reason::TooManyRequests
            | Reason::Cancelled
            | Reason::UpstreamUnavailable
            | Reason::ShuttingDown
            | Reason::Internal => {
                tracing::warn!(service, %reason, message = status.message(), "a call failed");
                Self::Failed(unavailable(service))
            }
            Reason::BookNotFound
            | Reason::AuthorNotFound
            | Reason::UnknownSku
            | Reason::ReservationNotFound
            | Reason::OrderNotFound
            | Reason::SkuTaken
            | Reason::OutOfStock
            | Reason::OrderIdConflict
            | Reason::ReservationExpired
            | Reason::ReservationReleased
            | Reason::OrderShipped
            | Reason::IdempotencyKeyReused
            | Reason::RequestInProgress
            | Reason::VersionMismatch
            | Reason::StoreFull => {
                // Made anew, because the status of a call over the wire also holds the headers of the reply.
                let details = status.details().to_vec().into();
                Self::Refused(reason, Status::with_details(status.code(), status.message(), details))
            }
        }
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        match failure {
            Failure::Refused(_, status) | Failure::Failed(status) => status,
        }
    }
}

/// What `service` replies before the deadline of `call` is over.
pub(super) async fn reply<T>(
    service: &'static str,
    call: &Extensions,
    reply: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Failure> {
    let reply = match call.get::<Deadline>() {
        // A service in this process doesn't look at deadlines: it would do its work although the time is over.
        Some(deadline) if deadline.left().is_zero() => Err(Status::deadline_exceeded("the time is over")),
        Some(deadline) => tokio::time::timeout_at(deadline.0, reply)
            .await
            .unwrap_or_else(|elapsed| Err(Status::deadline_exceeded(elapsed.to_string()))),
        None => reply.await,
    };
    reply.map(Response::into_inner).map_err(|status| Failure::of(service, status))
}

/// What holds these lines under this name.
pub(super) fn reservation<'a>(
    lines: impl Iterator<Item = (&'a Sku, i32)>,
    name: Reservation,
) -> ReserveStockRequest {
    let line = |(sku, quantity): (&Sku, i32)| ReservationLine { sku: sku.as_str().to_owned(), quantity };
    ReserveStockRequest { order_id: name.to_string(), lines: lines.map(line).collect() }
}

/// `service` can't be reached, or can't do its work.
pub(super) fn unavailable(service: &'static str) -> Status {
    Refusal::new(Reason::UpstreamUnavailable, format!("{service} can't be reached"))
        .with("service", service)
        .into()
}

/// A fault of ours, which the log tells more of.
pub(super) fn internal() -> Status {
    Refusal::new(Reason::Internal, "the order could not be handled").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(status: Status) -> Reason {
        Reason::of(&Failure::of("inventory", status).into())
    }

    #[test]
    fn a_reason_of_the_business_passes_through() {
        let refusal = proto::out_of_stock("9790000000018", 3, 2);
        let mut status = Status::from(refusal);
        status.metadata_mut().insert("server", "x".parse().unwrap());
        let Failure::Refused(reason, passed) = Failure::of("inventory", status.clone()) else { panic!() };
        assert_eq!(reason, Reason::OutOfStock);
        assert_eq!((passed.code(), passed.message()), (status.code(), status.message()));
        assert_eq!(passed.details(), status.details());
        assert!(passed.metadata().is_empty());
    }

    #[test]
    fn other_failures_become_one_of_three() {
        assert_eq!(mapped(Status::deadline_exceeded("late")), Reason::DeadlineExceeded);
        for status in [
            Status::unavailable("connection refused"),
            Status::internal("boom"),
            Status::unknown("?"),
            Status::cancelled("reset"),
            Status::not_found("no details"),
            Status::resource_exhausted("slow down"),
            Refusal::new(Reason::ShuttingDown, "going").into(),
        ] {
            assert_eq!(mapped(status.clone()), Reason::UpstreamUnavailable, "{status}");
        }
        for status in [
            Status::unimplemented("no such method"),
            Status::invalid_argument("what?"),
            Refusal::field("lines", "must have 1 to 1000 entries, had 0").into(),
        ] {
            assert_eq!(mapped(status.clone()), Reason::Internal, "{status}");
        }
    }
}
