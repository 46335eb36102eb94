//! Shoppers: they place orders and cancel some, and ask again until they have an answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proto::Reason;
use proto::ordering::v1 as pb;
use proto::ordering::v1::ordering_service_server::OrderingService;
use tonic::Status;

use crate::dice::Dice;

/// Books that are traded: few, so that orders meet.
pub(crate) const BOOKS: i32 = 3;

/// How long a shopper waits for one answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// By then there is an answer that another try can't change: longer than a failed attempt keeps its request id.
const SETTLED: Duration = Duration::from_secs(200);

/// What became of a request, as far as its shopper knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Placed,
    Cancelled,
    Refused(Reason),
    /// It was placed, and then nobody knew of it.
    Gone,
}

/// One request to place an order, and its answers.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) order_id: String,
    pub(crate) copies: BTreeMap<i32, i32>,
    pub(crate) outcome: Outcome,
    /// When the last answer came.
    pub(crate) at: Duration,
}

/// All that shoppers asked and were told.
#[derive(Debug)]
pub(crate) struct History {
    begun: Instant,
    /// By request id.
    pub(crate) told: BTreeMap<String, Told>,
    /// What happened, in order.
    pub(crate) trace: Vec<String>,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { begun: Instant::now(), told: BTreeMap::new(), trace: Vec::new(), calls: 0, failed: 0 }
    }
}

impl History {
    /// How long it has gone on: in the time of the simulation, if there is one.
    pub(crate) fn elapsed(&self) -> Duration {
        turmoil::sim_elapsed().unwrap_or_else(|| self.begun.elapsed())
    }

    pub(crate) fn note(&mut self, what: impl std::fmt::Display) {
        let at = self.elapsed();
        self.trace.push(format!("{:>7.3} {what}", at.as_secs_f64()));
    }
}

pub(crate) type Shared = Rc<RefCell<History>>;

/// Asks until there is an answer that another try can't change.
async fn settled<T>(
    history: &Shared,
    what: &str,
    pace: u64,
    dice: &mut Dice,
    call: impl AsyncFn() -> Result<T, Status>,
) -> Result<T, Reason> {
    let begun = history.borrow().elapsed();
    while history.borrow().elapsed() < begun + SETTLED {
        history.borrow_mut().calls += 1;
        let reason = match call().await {
            Ok(answer) => return Ok(answer),
            Err(status) => Reason::of(&status),
        };
        history.borrow_mut().note(format!("{what}: {reason}"));
        match reason {
            Reason::UpstreamUnavailable | Reason::DeadlineExceeded | Reason::RequestInProgress => {
                history.borrow_mut().failed += 1;
                let pause = pace / 10 + dice.below(pace / 2);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            reason => return Err(reason),
        }
    }
    panic!("{what}: no answer in {SETTLED:?}\n{}", history.borrow().trace.join("\n"));
}

/// Something to ask, and how long one waits for the answer.
pub(crate) fn request<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.extensions_mut().insert(chassis::Deadline::after(PATIENCE));
    request
}

/// Places so many orders at `ordering`, one after the other and up to `pace` milliseconds apart, and cancels some.
pub(crate) async fn shop(
    name: String,
    ordering: impl OrderingService,
    pace: u64,
    mut dice: Dice,
    orders: u32,
    history: Shared,
) -> turmoil::Result {
    for n in 0..orders {
        tokio::time::sleep(Duration::from_millis(dice.below(pace))).await;
        let request_id = format!("{name}-{n}");
        let copies: BTreeMap<i32, i32> =
            (0..dice.between(1, 3)).map(|_| (dice.between(1, BOOKS), dice.between(1, 4))).collect();
        let lines = copies.iter();
        let lines = lines
            .map(|(book, quantity)| pb::PlaceOrderLine { sku: proto::seed::sku(*book), quantity: *quantity });
        let message = pb::PlaceOrderRequest {
            request_id: request_id.clone(),
            lines: lines.collect(),
            ..Default::default()
        };
        let what = format!("{request_id} {copies:?}");
        let placed = settled(&history, &what, pace, &mut dice, async || {
            ordering
                .place_order(request(message.clone()))
                .await
                .map(|reply| reply.into_inner().order.unwrap())
        })
        .await;
        let told = |order_id: &str, outcome: Outcome| {
            let at = history.borrow().elapsed();
            let told = Told { order_id: order_id.to_owned(), copies: copies.clone(), outcome, at };
            let mut history = history.borrow_mut();
            history.note(format!("{request_id} {:?}", told.outcome));
            let before = history.told.insert(request_id.clone(), told);
            assert!(
                before.is_none_or(|before| before.order_id == order_id),
                "{request_id} became two orders"
            );
        };
        let order = match placed {
            Ok(order) => order,
            Err(reason) => {
                told("", Outcome::Refused(reason));
                continue;
            }
        };
        assert_eq!(order.state(), pb::OrderState::Placed, "{request_id}");
        told(&order.order_id, Outcome::Placed);
        if dice.percent(40) {
            tokio::time::sleep(Duration::from_millis(dice.below(pace))).await;
            let cancelled = settled(&history, &format!("cancel {request_id}"), pace, &mut dice, async || {
                let message = pb::CancelOrderRequest { order_id: order.order_id.clone() };
                ordering.cancel_order(request(message)).await
            })
            .await;
            match cancelled {
                Ok(_) => told(&order.order_id, Outcome::Cancelled),
                Err(Reason::OrderNotFound) => told(&order.order_id, Outcome::Gone),
                Err(reason) => panic!("cancel {request_id}: {reason}"),
            }
        }
    }
    Ok(())
}
