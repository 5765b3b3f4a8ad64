//! Random programs against the naive model.

use proptest::prelude::*;

use super::driver::{CALLS, Call, FakeDriver, launch_failure, out_of_memory};
use super::model::{Model, Outcome};
use crate::base::place::Place;
use crate::contract::driver::StreamId;
use crate::runtime::allocator::settings::Settings;
use crate::runtime::allocator::snapshot::BlockState;
use crate::runtime::allocator::{Allocation, Allocator, MallocError};

#[derive(Clone, Copy, Debug)]
enum Step {
    Malloc {
        bytes: u64,
        stream: u32,
    },
    Free(usize),
    RecordStream {
        which: usize,
        stream: u32,
    },
    Advance {
        stream: u32,
        events: usize,
    },
    Allow(u64),
    EmptyCache,
    ResetPeak,
    /// Makes a later `malloc` of the driver fail. 0 means the next one.
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
        // Few sizes, so that holes fit exactly and ties occur.
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
        12 => (any::<usize>(), 0u32..3).prop_map(|(which, stream)| Step::RecordStream { which, stream }),
        8 => (0u32..3, 1usize..4).prop_map(|(stream, events)| Step::Advance { stream, events }),
        1 => (0u64..80).prop_map(|n| Step::Allow(n << 21)),
        3 => Just(Step::EmptyCache),
        1 => Just(Step::ResetPeak),
        1 => (0usize..3, any::<bool>()).prop_map(|(after, memory)| Step::FailMalloc { after, memory }),
        1 => (0usize..3).prop_map(|after| Step::FailFree { after }),
    ]
}

/// The allocator and the model, with equal drivers.
struct Pair {
    driver: FakeDriver,
    allocator: Allocator,
    model_driver: FakeDriver,
    model: Model,
    /// The live allocations, each with its stream and the other streams that use it.
    live: Vec<(Allocation, u32, Vec<u32>)>,
}

impl Pair {
    fn run(&mut self, step: Step) {
        let Pair { driver, allocator, model_driver, model, live } = self;
        match step {
            Step::Malloc { bytes, stream } => {
                let stream_id = StreamId { device: 0, number: stream };
                let ours = allocator.malloc(driver, bytes as usize, stream_id, Place::caller());
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
                live.extend(
                    ours.ok().filter(|_| bytes > 0).map(|allocation| (allocation, stream, Vec::new())),
                );
            }
            Step::Free(_) | Step::RecordStream { .. } if live.is_empty() => {}
            Step::Free(which) => {
                let (allocation, _, used_on) = live.swap_remove(which % live.len());
                allocator.free(driver, allocation);
                model.free(allocation.pointer.0, &used_on);
            }
            Step::RecordStream { which, stream } => {
                let index = which % live.len();
                let (allocation, own, used_on) = &mut live[index];
                allocator.record_stream(*allocation, StreamId { device: 0, number: stream });
                if stream != *own && !used_on.contains(&stream) {
                    used_on.push(stream);
                }
            }
            Step::Advance { stream, events } => {
                driver.advance(StreamId { device: 0, number: stream }, events);
                model.advance(stream, events);
            }
            Step::Allow(bytes) => {
                allocator.set_allowed(bytes);
                model.allowed = Some(bytes);
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
                    driver.fail(Call::Malloc, driver.calls(Call::Malloc) + after, error);
                }
            }
            Step::FailFree { after } => {
                for driver in [driver, model_driver] {
                    driver.fail(Call::Free, driver.calls(Call::Free) + after, launch_failure());
                }
            }
        }
        assert_eq!(allocator.stats(), model.stats());
    }

    fn check(&self) {
        self.driver.check(&self.allocator);
        let live = self.live.iter().map(|(allocation, ..)| *allocation);
        check_live(&self.allocator, live);
    }
}

/// Checks that the live allocations are the allocated blocks. The driver has checked that blocks do not overlap.
fn check_live(allocator: &Allocator, live: impl Iterator<Item = Allocation>) {
    let blocks = allocator.snapshot().flat_map(|segment| segment.blocks);
    let theirs: Vec<u64> = blocks
        .filter(|block| block.state == BlockState::ActiveAllocated)
        .map(|block| block.pointer.0)
        .collect();
    let mut ours: Vec<u64> = live.map(|allocation| allocation.pointer.0).collect();
    ours.sort_unstable();
    assert_eq!(ours, theirs);
}

/// Checks that everything is returned: to the driver, and in the allocator's state.
fn check_that_nothing_is_lost(allocator: &mut Allocator, driver: &FakeDriver) {
    // Injected failures may still be pending.
    let freed = (0..40).any(|_| allocator.empty_cache(driver).is_ok());
    assert!(freed);
    driver.check(allocator);
    assert_eq!(driver.in_use(), 0);
    assert_eq!(allocator.vacant.len(), allocator.blocks.len());
    assert!(allocator.large_blocks.is_empty() && allocator.small_blocks.is_empty());
    assert!(allocator.uses.pending.is_empty());
}

fn max_split() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![2 => Just(None), 2 => (20u64..30).prop_map(Some)]
}

fn settings(max_split: Option<u64>) -> Settings {
    let options = max_split.map(|megabytes| format!("max_split_size_mb:{megabytes}"));
    Settings::parse(&options.unwrap_or_default()).unwrap()
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
        max_split in max_split(),
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut pair = Pair {
            driver: FakeDriver::with_capacity(capacity),
            allocator: Allocator::default(),
            model_driver: FakeDriver::with_capacity(capacity),
            model: Model::new(max_split.map(|megabytes| megabytes << 20)),
            live: Vec::new(),
        };
        pair.allocator.set_settings(settings(max_split));
        for step in steps {
            pair.run(step);
            pair.check();
        }
        while !pair.live.is_empty() {
            pair.run(Step::Free(0));
        }
        check_that_nothing_is_lost(&mut pair.allocator, &pair.driver);
    }

    /// Here every call of the driver may fail, including those for events.
    #[test]
    fn random_failures_lose_nothing(
        max_split in max_split(),
        steps in proptest::collection::vec(step(), 1..150),
        failures in proptest::collection::vec((0..CALLS.len(), 0usize..20), 0..30),
    ) {
        let driver = &FakeDriver::with_capacity(100 << 20);
        let allocator = &mut Allocator::default();
        allocator.set_settings(settings(max_split));
        for (call, number) in failures {
            driver.fail(CALLS[call], number, launch_failure());
        }
        let mut live: Vec<Allocation> = Vec::new();
        for step in steps {
            match step {
                Step::Malloc { bytes, stream } => {
                    let stream = StreamId { device: 0, number: stream };
                    let block = allocator.malloc(driver, bytes as usize, stream, Place::caller());
                    live.extend(block.ok().filter(|_| bytes > 0));
                }
                Step::Free(which) if !live.is_empty() => {
                    let index = which % live.len();
                    allocator.free(driver, live.swap_remove(index));
                }
                Step::RecordStream { which, stream } if !live.is_empty() => {
                    allocator.record_stream(live[which % live.len()], StreamId { device: 0, number: stream });
                }
                Step::Advance { stream, events } => {
                    driver.advance(StreamId { device: 0, number: stream }, events);
                }
                Step::EmptyCache => drop(allocator.empty_cache(driver)),
                _ => {}
            }
            driver.check(allocator);
            check_live(allocator, live.iter().copied());
        }
        live.into_iter().for_each(|block| allocator.free(driver, block));
        check_that_nothing_is_lost(allocator, driver);
    }
}
