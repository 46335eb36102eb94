//! Random sequences of operations (proptest), told in every style and held against one model: no style may differ from
//! it, or from another.
//!
//! `BOOKSTORE_SEQUENCES` is the number of sequences, `BOOKSTORE_SEQUENCES_SEED` chooses them. A failure is shown as the
//! shortest sequence that fails, with the seed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::cases::sequences::{op, sequence};
use super::{STYLES, run};
use crate::dice::setting;
use crate::harness::{Shape, Suite};

/// Sequences in a plain run.
const SEQUENCES: u64 = 15;

/// Seeds that failed once are tried again first.
const KEPT: &[u64] = &[];

#[test]
fn any_sequence_does_what_the_model_says_in_every_style() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let suite = runtime.block_on(Suite::shared(Shape::Up));
    let seed = setting("BOOKSTORE_SEQUENCES_SEED").unwrap_or(1);
    let sequences = u32::try_from(setting("BOOKSTORE_SEQUENCES").unwrap_or(SEQUENCES)).unwrap();
    let steps: RefCell<BTreeMap<&str, u64>> = RefCell::default();
    for seed in KEPT.iter().copied().chain([seed]) {
        let bytes: Vec<u8> = seed.to_le_bytes().repeat(4);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let config = Config { failure_persistence: None, ..Config::with_cases(sequences) };
        let tried =
            TestRunner::new_with_rng(config, rng).run(&proptest::collection::vec(op(), 5..40), |ops| {
                let case = sequence(&ops);
                for step in &case.steps {
                    *steps.borrow_mut().entry(step.method).or_default() += 1;
                }
                let told = || runtime.block_on(run(&suite, vec![case]));
                catch_unwind(AssertUnwindSafe(told)).map_err(|_| TestCaseError::fail("see above"))
            });
        if let Err(error) = tried {
            panic!("seed {seed}: {error}");
        }
    }
    println!(
        "sequences, seed {seed}: {sequences} sequences in {} styles, 0 divergences; steps in each style: {:?}",
        STYLES.len(),
        steps.borrow()
    );
}
