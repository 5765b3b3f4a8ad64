//! Random programs against the naive model.

use std::panic::Location;

use proptest::prelude::*;

use super::driver::{FakeDriver, launch_failure, out_of_memory};
use super::model::{Model, Outcome};
use crate::cuda::allocator::{Allocation, Allocator, MallocError};
use crate::cuda::driver::StreamId;

#[derive(Clone, Copy, Debug)]
enum Step {
    Malloc {
        bytes: u64,
        stream: u32,
    },
    /// Frees one of those alive.
    Free(usize),
    EmptyCache,
    ResetPeak,
    /// Makes a later call of the driver fail; the next if `after` is 0.
    FailMalloc {
        after: usize,
        memory: bool,
    },
    FailFree {
        after: usize,
    },
}

fn bytes() -> impl Strategy<Value = u64> {
    const MIB: u64 = 1 << 20;
    prop_oneof![
        2 => 0u64..3000,
        2 => 0..=MIB,
        // Few different sizes, so that holes fit exactly and are alike.
        4 => (1u64..5).prop_map(|n| n * 256 * 1024),
        1 => MIB - 600..MIB + 600,
        2 => MIB..12 * MIB,
        2 => (1u64..6).prop_map(|n| n * 3 * MIB),
        1 => 10 * MIB - 600..10 * MIB + 600,
        1 => 10 * MIB..40 * MIB,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        50 => (bytes(), 0u32..3).prop_map(|(bytes, stream)| Step::Malloc { bytes, stream }),
        40 => any::<usize>().prop_map(Step::Free),
        3 => Just(Step::EmptyCache),
        1 => Just(Step::ResetPeak),
        1 => (0usize..3, any::<bool>()).prop_map(|(after, memory)| Step::FailMalloc { after, memory }),
        1 => (0usize..3).prop_map(|after| Step::FailFree { after }),
    ]
}

/// The allocator and the model, each with a driver of its own that behaves alike.
struct Pair {
    driver: FakeDriver,
    allocator: Allocator,
    model_driver: FakeDriver,
    model: Model,
    live: Vec<Allocation>,
}

impl Pair {
    fn run(&mut self, step: Step) {
        let Pair { driver, allocator, model_driver, model, live } = self;
        match step {
            Step::Malloc { bytes, stream } => {
                let stream_id = StreamId { device: 0, number: stream };
                let ours = allocator.malloc(driver, bytes as usize, stream_id, Location::caller());
                let theirs = model.malloc(model_driver, bytes, stream);
                let outcome = match &ours {
                    Ok(allocation) => Outcome::Address(allocation.pointer.0),
                    Err(MallocError::OutOfMemory(error)) => {
                        assert_eq!(error.allocated, allocator.stats().allocated_bytes.all.current);
                        assert_eq!(error.reserved, allocator.stats().reserved_bytes.all.current);
                        Outcome::OutOfMemory(error.requested)
                    }
                    Err(MallocError::Driver(_)) => Outcome::DriverFailed,
                    Err(MallocError::MoreThanAnExabyte) => unreachable!(),
                };
                assert_eq!(outcome, theirs);
                live.extend(ours.ok().filter(|_| bytes > 0));
            }
            Step::Free(_) if live.is_empty() => {}
            Step::Free(which) => {
                let allocation = live.swap_remove(which % live.len());
                allocator.free(allocation);
                model.free(allocation.pointer.0);
            }
            Step::EmptyCache => {
                assert_eq!(allocator.empty_cache(driver), model.empty_cache(model_driver));
            }
            Step::ResetPeak => {
                allocator.reset_peak_memory_stats();
                model.reset_peak();
            }
            Step::FailMalloc { after, memory } => {
                for driver in [driver, model_driver] {
                    let error = if memory { out_of_memory() } else { launch_failure() };
                    driver.fail_malloc(driver.calls().0 + after, error);
                }
            }
            Step::FailFree { after } => {
                for driver in [driver, model_driver] {
                    driver.fail_free(driver.calls().1 + after, launch_failure());
                }
            }
        }
        assert_eq!(allocator.stats(), model.stats());
    }

    /// Checks that no two live blocks share a byte, and that all there is comes from the driver.
    fn check(&self) {
        self.driver.check(&self.allocator);
        let blocks = self.allocator.snapshot().flat_map(|segment| segment.blocks);
        let theirs: Vec<u64> = blocks.filter(|block| block.allocated).map(|block| block.pointer.0).collect();
        let mut ours: Vec<u64> = self.live.iter().map(|allocation| allocation.pointer.0).collect();
        ours.sort_unstable();
        // Blocks do not overlap (above), so addresses that are the same say all.
        assert_eq!(ours, theirs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_programs_go_as_in_the_naive_model(
        capacity in prop_oneof![1 => Just(u64::MAX), 3 => (1u64..60).prop_map(|n| n << 22)],
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut pair = Pair {
            driver: FakeDriver::with_capacity(capacity),
            allocator: Allocator::default(),
            model_driver: FakeDriver::with_capacity(capacity),
            model: Model::default(),
            live: Vec::new(),
        };
        for step in steps {
            pair.run(step);
            pair.check();
        }
        while !pair.live.is_empty() {
            pair.run(Step::Free(0));
        }
        // A failure may still be on order.
        let freed = (0..4).any(|_| pair.allocator.empty_cache(&pair.driver).is_ok());
        prop_assert!(freed);
        pair.check();
        prop_assert_eq!(pair.driver.in_use(), 0);
        prop_assert_eq!(pair.allocator.vacant.len(), pair.allocator.blocks.len());
        prop_assert!(pair.allocator.large_blocks.is_empty() && pair.allocator.small_blocks.is_empty());
    }
}
