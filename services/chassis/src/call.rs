//! What a call carries along with its message: how long it may take, and the trace it belongs to.
//!
//! Both travel in the request's extensions, so that a call within the process and one over the wire look the same. The
//! edges put them in, [`child`] passes them on to the calls made on the way, and [`crate::upstream`] writes them into
//! the headers `grpc-timeout` and `traceparent`.

use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderValue};
use tokio::time::Instant;
use tonic::Request;

/// When the caller stops waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

impl Deadline {
    /// A deadline this far from now.
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// What is left; zero when it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The moment when half of what is left has passed.
    pub fn halfway(self) -> Self {
        Self::after(self.left() / 2)
    }
}

/// The W3C `traceparent` that a call came with, passed on as it is.
#[derive(Debug, Clone)]
pub struct TraceParent(pub HeaderValue);

impl TraceParent {
    /// The header, when it is there and has the form of version 00: `00-<32 hex>-<16 hex>-<2 hex>`.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get("traceparent")?;
        let text = value.to_str().ok()?;
        let lengths = text.split('-').map(str::len);
        let well_formed = lengths.eq([2, 32, 16, 2])
            && text.bytes().all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        well_formed.then(|| Self(value.clone()))
    }
}

/// A request for a call made on behalf of another: it carries the deadline and the trace of its parent.
pub fn child<M>(parent: &Extensions, message: M) -> Request<M> {
    let mut request = Request::new(message);
    if let Some(deadline) = parent.get::<Deadline>() {
        request.extensions_mut().insert(*deadline);
    }
    if let Some(trace) = parent.get::<TraceParent>() {
        request.extensions_mut().insert(trace.clone());
    }
    request
}

/// Asks, on behalf of another call, for a part that its reply can do without: what is asked gets half of the time that
/// is left, so that there is time to reply without it. `None` when that is over; without a deadline it may take for
/// ever.
pub async fn part<M, T, F>(parent: &Extensions, message: M, ask: impl FnOnce(Request<M>) -> F) -> Option<T>
where
    F: Future<Output = T>,
{
    let mut request = child(parent, message);
    let Some(deadline) = parent.get::<Deadline>().map(|deadline| deadline.halfway()) else {
        return Some(ask(request).await);
    };
    request.extensions_mut().insert(deadline);
    tokio::time::timeout_at(deadline.0, ask(request)).await.ok()
}

/// Parses a `grpc-timeout` header: up to 8 digits and a unit of `H M S m u n` (gRPC over HTTP/2, "Timeout").
pub fn parse_grpc_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}

/// Writes a `grpc-timeout` header, rounded up to the unit that holds it in 8 digits.
pub fn format_grpc_timeout(time: Duration) -> String {
    const LIMIT: u128 = 100_000_000;
    let units = [("n", 1), ("u", 1_000), ("m", 1_000_000), ("S", 1_000_000_000), ("M", 60_000_000_000)];
    for (unit, nanos) in units {
        let n = time.as_nanos().div_ceil(nanos);
        if n < LIMIT {
            return format!("{n}{unit}");
        }
    }
    "99999999H".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_survives_its_header() {
        for time in
            [Duration::ZERO, Duration::from_nanos(7), Duration::from_millis(50), Duration::from_secs(3600)]
        {
            assert_eq!(parse_grpc_timeout(&format_grpc_timeout(time)), Some(time));
        }
        let long = Duration::from_nanos(123_456_789_012);
        assert!(parse_grpc_timeout(&format_grpc_timeout(long)).is_some_and(|t| t >= long));
    }

    #[tokio::test]
    async fn a_part_gets_half_of_the_time() {
        let mut parent = Extensions::new();
        let given = |request: Request<()>| {
            let deadline = request.extensions().get::<Deadline>().copied();
            std::future::ready(deadline)
        };
        assert_eq!(part(&parent, (), given).await, Some(None));
        let whole = Deadline::after(Duration::from_secs(3600));
        parent.insert(whole);
        let half = part(&parent, (), given).await.flatten().unwrap();
        assert!(half < whole && half.left() <= Duration::from_secs(1800));
        parent.insert(Deadline::after(Duration::from_millis(1)));
        assert_eq!(part(&parent, (), |_| std::future::pending::<()>()).await, None);
    }

    #[test]
    fn a_broken_timeout_is_no_timeout() {
        for bad in ["", "S", "123456789S", "1x", "-1S", "1 S", "1é"] {
            assert_eq!(parse_grpc_timeout(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_traceparent_of_another_form_is_dropped() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (text, kept) in
            [(good, true), ("00-short-00f067aa0ba902b7-01", false), (&good.to_uppercase(), false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().unwrap());
            assert_eq!(TraceParent::from_headers(&headers).is_some(), kept, "{text}");
        }
    }
}
