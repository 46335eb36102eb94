//! Random calls against a model of what an order shop is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proto::Reason;
use proto::ordering::v1::{OrderState, OrderView};
use tonic::Status;

use crate::fakes::{Fault, Step};
use crate::shop::{Shop, refused};

const STOCK: i32 = 6;

#[derive(Debug, Clone)]
enum Op {
    /// Places an order for so many copies of book 1, with a fault on the way.
    Place {
        request: u8,
        copies: i32,
        fault: Option<(Step, bool)>,
    },
    Cancel {
        request: u8,
        away: bool,
    },
    Get {
        request: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let step = prop_oneof![Just(Step::Price), Just(Step::Reserve), Just(Step::Confirm)];
    let fault = proptest::option::weighted(0.3, (step, any::<bool>()));
    prop_oneof![
        4 => (0..5u8, 1..4, fault).prop_map(|(request, copies, fault)| Op::Place { request, copies, fault }),
        2 => (0..5u8, proptest::bool::weighted(0.2)).prop_map(|(request, away)| Op::Cancel { request, away }),
        1 => (0..5u8).prop_map(|request| Op::Get { request }),
    ]
}

/// What is known of the orders, by request.
#[derive(Debug, Default)]
struct Model(BTreeMap<u8, Known>);

#[derive(Debug)]
struct Known {
    id: String,
    copies: i32,
    state: OrderState,
}

impl Model {
    fn left(&self) -> i32 {
        let with_units = self.0.values().filter(|known| known.state != OrderState::Cancelled);
        STOCK - with_units.map(|known| known.copies).sum::<i32>()
    }

    async fn place(&mut self, shop: &Shop, request: u8, copies: i32, fault: Option<(Step, bool)>) {
        if let Some((step, worked)) = fault {
            let away = Status::unavailable("away");
            shop.script.fail(step, if worked { Fault::LoseReply(away) } else { Fault::Refuse(away) });
        }
        let result = shop.place(&request.to_string(), &[(1, copies)]).await;
        match (self.0.get(&request), fault) {
            (Some(known), _) if known.copies == copies => assert_eq!(result.unwrap().order_id, known.id),
            (Some(_), _) => drop(refused(result, Reason::IdempotencyKeyReused)),
            (None, Some((Step::Price | Step::Reserve, _))) => {
                refused(result, Reason::UpstreamUnavailable);
            }
            (None, _) if copies > self.left() => drop(refused(result, Reason::OutOfStock)),
            (None, Some(_)) => drop(refused(result, Reason::UpstreamUnavailable)),
            (None, None) => {
                let order = result.unwrap();
                assert_eq!((order.state(), order.lines[0].quantity), (OrderState::Placed, copies));
                self.0.insert(request, Known { id: order.order_id, copies, state: OrderState::Placed });
            }
        }
        shop.script.heal();
    }

    async fn cancel(&mut self, shop: &Shop, request: u8, away: bool) {
        let Some(known) = self.0.get_mut(&request) else { return };
        if away {
            shop.script.fail(Step::Release, Fault::Refuse(Status::unavailable("away")));
        }
        let result = shop.cancel(&known.id).await;
        known.state = match known.state {
            OrderState::Placed | OrderState::Cancelling if away => OrderState::Cancelling,
            _ => OrderState::Cancelled,
        };
        assert_eq!(result.unwrap().state(), known.state);
        shop.script.heal();
    }

    async fn get(&self, shop: &Shop, request: u8) {
        if let Some(known) = self.0.get(&request) {
            let order = shop.get(&known.id, OrderView::Full).await.unwrap();
            assert_eq!((order.state(), order.lines[0].quantity), (known.state, known.copies));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_and_stock_follow_the_model(ops in proptest::collection::vec(op(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let shop = Shop::new();
            shop.inventory.stock(1, STOCK);
            let mut model = Model::default();
            for op in ops {
                match op {
                    Op::Place { request, copies, fault } => model.place(&shop, request, copies, fault).await,
                    Op::Cancel { request, away } => model.cancel(&shop, request, away).await,
                    Op::Get { request } => model.get(&shop, request).await,
                }
                assert_eq!(shop.inventory.in_stock(1), model.left());
                let mut made = shop.made().await;
                made.sort_unstable();
                let mut known: Vec<_> = model.0.values().map(|known| known.id.clone()).collect();
                known.sort_unstable();
                assert_eq!(made, known);
            }
        });
    }
}
