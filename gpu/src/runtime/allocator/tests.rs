mod driver;
mod model;
mod random;
mod traces;

use crate::base::place::Place;
use crate::each_case::each_case;
use std::time::Instant;

use self::driver::{CALLS, Call, FakeDriver};
use super::*;
use crate::runtime::stats::Stat;

const MIB: u64 = 1 << 20;
const STREAM: StreamId = StreamId::default_of(0);

#[track_caller]
fn malloc(allocator: &mut Allocator, driver: &FakeDriver, bytes: u64) -> Result<Allocation, MallocError> {
    allocator.malloc(driver, usize::try_from(bytes).unwrap(), STREAM, Place::caller())
}

/// Allocated, reserved and non-releasable bytes, and the number of segments.
fn figures(allocator: &Allocator) -> [u64; 4] {
    let stats = allocator.stats();
    [&stats.allocated_bytes, &stats.reserved_bytes, &stats.inactive_split_bytes, &stats.segment]
        .map(|counter| counter.all.current)
}

#[test]
fn the_notebook_has_the_figures_of_pytorch_at_every_step() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let tiny = malloc(allocator, &driver, 400).unwrap();
    assert_eq!(figures(allocator), [512, 2_097_152, 2_096_640, 1]);
    allocator.free(&driver, tiny);
    assert_eq!(figures(allocator), [0, 2_097_152, 0, 1]);
    let x = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [108_000_256, 111_149_056, 1_051_648, 2]);
    let x2 = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [216_000_512, 220_200_960, 2_103_296, 3]);
    allocator.free(&driver, x);
    assert_eq!(figures(allocator), [108_000_256, 220_200_960, 1_051_648, 3]);
    let x3 = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [216_000_512, 220_200_960, 2_103_296, 3]);
    allocator.free(&driver, x2);
    assert_eq!(figures(allocator), [108_000_256, 220_200_960, 1_051_648, 3]);
    allocator.empty_cache(&driver).unwrap();
    assert_eq!(figures(allocator), [108_000_256, 109_051_904, 1_051_648, 1]);
    allocator.free(&driver, x3);
    allocator.empty_cache(&driver).unwrap();
    assert_eq!(figures(allocator), [0; 4]);
    assert_eq!(driver.in_use(), 0);
}

#[test]
fn sizes_at_the_edges_of_the_rules_get_their_block_and_segment() {
    // Bytes requested, block size, segment size.
    let table = [
        (1, 512, 2 * MIB),
        (511, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB - 1, MIB, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        // Rounded to 10 MiB, the request gets a segment of that size.
        (10 * MIB - 1, 10 * MIB, 10 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        // The rest is split off here, because it has more than 1 MiB. A smaller one stays with the request.
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
        (11 * MIB - 512, 11 * MIB - 512, 12 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),
        (11 * MIB + 1, 12 * MIB, 12 * MIB),
    ];
    for (bytes, block, segment) in table {
        let driver = FakeDriver::default();
        let allocator = &mut Allocator::default();
        let allocation = malloc(allocator, &driver, bytes).unwrap();
        let split = segment - block;
        assert_eq!(figures(allocator), [block, segment, split, 1], "{bytes} bytes");
        let stats = allocator.stats();
        assert_eq!(stats.requested_bytes.all.current, bytes);
        let (counted, other) = match segment == 2 * MIB {
            true => (stats.allocated_bytes.small_pool, stats.allocated_bytes.large_pool),
            false => (stats.allocated_bytes.large_pool, stats.allocated_bytes.small_pool),
        };
        assert_eq!((counted.current, other.current), (block, 0), "the pool of {bytes} bytes");
        allocator.free(&driver, allocation);
        assert_eq!(figures(allocator), [0, segment, 0, 1], "{bytes} bytes, freed");
    }
}

#[test]
fn nothing_asked_for_is_nothing_given_and_nothing_counted() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let nothing = malloc(allocator, &driver, 0).unwrap();
    assert_eq!(nothing.pointer, DevicePtr(0));
    allocator.free(&driver, nothing);
    assert_eq!(*allocator.stats(), DeviceStats::default());
    assert_eq!(CALLS.map(|call| driver.calls(call)), [0; 6]);
    // The null allocation must not be mistaken for the block at position 0.
    let first = malloc(allocator, &driver, 1).unwrap();
    allocator.free(&driver, nothing);
    assert_eq!(allocator.stats().allocation.all.current, 1);
    allocator.free(&driver, first);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn sizes_that_no_device_has_are_errors() {
    let driver = FakeDriver::with_capacity(1 << 40);
    let allocator = &mut Allocator::default();
    each_case([u64::MAX, u64::MAX - 511, 1 << 63, EXABYTE], |bytes| {
        assert_eq!(malloc(allocator, &driver, bytes), Err(MallocError::MoreThanAnExabyte));
    });
    assert_eq!(*allocator.stats(), DeviceStats::default());
    assert_eq!(
        malloc(allocator, &driver, EXABYTE - 1),
        Err(MallocError::OutOfMemory(AllocationFailure {
            requested: EXABYTE,
            allocated: 0,
            reserved: 0,
            allowed: None
        }))
    );
    assert_eq!(allocator.stats().num_ooms, 1);
    malloc(allocator, &driver, 1).unwrap();
}

#[test]
fn memory_beyond_what_32_bits_count_is_counted() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    for _ in 0..5 {
        malloc(allocator, &driver, 1 << 30).unwrap();
    }
    assert_eq!(figures(allocator), [5 << 30, 5 << 30, 0, 5]);
}

#[test]
fn out_of_memory_says_what_was_tried_and_what_is_held_after_the_cache_is_emptied() {
    let driver = FakeDriver::with_capacity(64 * MIB);
    let allocator = &mut Allocator::default();
    let _live = malloc(allocator, &driver, 30 * MIB).unwrap();
    let cached = malloc(allocator, &driver, 16 * MIB).unwrap();
    allocator.free(&driver, cached);
    let error = malloc(allocator, &driver, 51 * MIB).unwrap_err();
    assert_eq!(
        error,
        MallocError::OutOfMemory(AllocationFailure {
            requested: 52 * MIB,
            allocated: 30 * MIB,
            reserved: 30 * MIB,
            allowed: None,
        })
    );
    let stats = allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams), (1, 1, 1));
    assert_eq!((stats.num_device_alloc, stats.num_device_free), (2, 1));
    malloc(allocator, &driver, 34 * MIB).unwrap();
}

#[test]
fn a_stream_never_gets_memory_of_another() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let place = Place::caller();
    let on = |number| StreamId { device: 0, number };
    for number in [1, 0, 2] {
        let block = allocator.malloc(&driver, 4096, on(number), place).unwrap();
        allocator.free(&driver, block);
    }
    let pointers: Vec<DevicePtr> = allocator.snapshot().map(|segment| segment.pointer).collect();
    each_case([(1, pointers[0]), (0, pointers[1]), (2, pointers[2])], |(number, pointer)| {
        assert_eq!(allocator.malloc(&driver, 4096, on(number), place).unwrap().pointer, pointer);
    });
    // Stream 0 has no block of 4 MiB. The next stream in the pool has one.
    let large = allocator.malloc(&driver, 4 << 20, on(1), place).unwrap();
    allocator.free(&driver, large);
    assert_ne!(allocator.malloc(&driver, 4 << 20, on(0), place).unwrap().pointer, large.pointer);
}

#[test]
fn a_snapshot_shows_every_block_and_the_line_that_asked_for_it() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let small = malloc(allocator, &driver, 1000).unwrap();
    malloc(allocator, &driver, 3 * MIB).unwrap();
    let line = line!() + 1;
    let third = malloc(allocator, &driver, 513).unwrap();
    allocator.free(&driver, small);

    let segments: Vec<_> = allocator.snapshot().collect();
    let sizes: Vec<(u64, Pool)> = segments.iter().map(|segment| (segment.size, segment.pool)).collect();
    assert_eq!(sizes, [(2 * MIB, Pool::Small), (20 * MIB, Pool::Large)]);
    let blocks: Vec<_> =
        segments[0].blocks.iter().map(|block| (block.size, block.requested_size, block.state)).collect();
    assert_eq!(
        blocks,
        [
            (1024, 0, BlockState::Inactive),
            (1024, 513, BlockState::ActiveAllocated),
            (2 * MIB - 2048, 0, BlockState::Inactive)
        ]
    );
    assert_eq!(segments[0].blocks[0].place, None);
    assert_eq!(segments[0].blocks[1].pointer, third.pointer);
    let place = segments[0].blocks[1].place.unwrap();
    assert_eq!((place.file(), place.line()), (file!(), line));
}

#[test]
fn peaks_and_sums_start_again_when_they_are_reset() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let one = malloc(allocator, &driver, 1 << 20).unwrap();
    let _two = malloc(allocator, &driver, 512).unwrap();
    allocator.free(&driver, one);
    let current = 512;
    let peak = (1 << 20) + 512;
    let expected = Stat { current, peak, allocated: peak, freed: 1 << 20 };
    assert_eq!(allocator.stats().allocated_bytes.small_pool, expected);
    allocator.reset_peak_memory_stats();
    assert_eq!(allocator.stats().allocated_bytes.small_pool, Stat { peak: current, ..expected });
    allocator.reset_accumulated_memory_stats();
    let expected = Stat { current, peak: current, allocated: 0, freed: 0 };
    assert_eq!(allocator.stats().allocated_bytes.small_pool, expected);
    assert_eq!(allocator.stats().num_device_alloc, 0);
}

#[test]
#[should_panic(expected = "is freed, but is not allocated")]
fn freeing_twice_is_noticed() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let one = malloc(allocator, &driver, 1).unwrap();
    allocator.free(&driver, one);
    allocator.free(&driver, one);
}

/// A run with every kind of driver call: hits, splits, merges, shared blocks, a retry, and an emptied cache.
fn exercise(allocator: &mut Allocator, driver: &FakeDriver) -> Result<(), MallocError> {
    let other = StreamId { device: 0, number: 1 };
    let mut held = Vec::new();
    let result = (|| {
        for bytes in [1000, 3 * MIB, 18 * MIB, 700 * 1024] {
            held.push(malloc(allocator, driver, bytes)?);
        }
        allocator.record_stream(held[1], other);
        allocator.record_stream(held[3], other);
        for block in held.drain(1..) {
            allocator.free(driver, block);
        }
        driver.advance(other, 1);
        held.push(malloc(allocator, driver, 2 * MIB)?);
        allocator.record_stream(held[1], other);
        allocator.free(driver, held.remove(1));
        // More than is free, but not more than the total.
        held.push(malloc(allocator, driver, 44 * MIB)?);
        for block in held.drain(..) {
            allocator.free(driver, block);
        }
        allocator.empty_cache(driver)?;
        Ok(())
    })();
    held.into_iter().for_each(|block| allocator.free(driver, block));
    result
}

#[test]
fn any_driver_call_may_fail_and_nothing_is_lost() {
    let calls = {
        let driver = FakeDriver::with_capacity(48 * MIB);
        exercise(&mut Allocator::default(), &driver).unwrap();
        CALLS.map(|call| (call, driver.calls(call)))
    };
    each_case(calls, |(call, count)| {
        assert!(count >= 2, "{call:?} is called {count} times");
        for number in 0..count {
            let at = format!("{call:?} {number}");
            let driver = FakeDriver::with_capacity(48 * MIB);
            let error = driver::launch_failure();
            driver.fail(call, number, error.clone());
            let allocator = &mut Allocator::default();
            let result = exercise(allocator, &driver);
            match call {
                // Freeing cannot return an error. Recording is retried later, and only a failed retry is reported.
                Call::CreateEvent | Call::RecordEvent => assert_eq!(result, Ok(()), "{at}"),
                _ => assert_eq!(result, Err(MallocError::Driver(error)), "{at}"),
            }
            driver.check(allocator);
            exercise(allocator, &driver).unwrap();
            driver.check(allocator);
            allocator.empty_cache(&driver).unwrap();
            assert_eq!((driver.in_use(), figures(allocator)), (0, [0; 4]), "{at}");
            assert!(allocator.uses.pending.is_empty(), "{at}");
        }
    });
}

#[test]
fn an_event_that_cannot_be_recorded_keeps_its_block_until_it_can() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let other = StreamId { device: 0, number: 1 };
    let block = malloc(allocator, &driver, 512).unwrap();
    allocator.record_stream(block, other);
    let error = driver::launch_failure();
    driver.fail(Call::RecordEvent, 0, error.clone());
    driver.fail(Call::RecordEvent, 1, error.clone());
    allocator.free(&driver, block);
    assert_eq!(malloc(allocator, &driver, 512), Err(MallocError::Driver(error)));
    // Now the event is recorded, and only then does the stream advance.
    let second = malloc(allocator, &driver, 512).unwrap();
    assert_ne!(second.pointer, block.pointer);
    driver.advance(other, 1);
    assert_eq!(malloc(allocator, &driver, 512).unwrap().pointer, block.pointer);
    driver.check(allocator);
}

#[test]
fn a_block_that_other_streams_use_is_free_when_all_of_them_are_done() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let on = |number| StreamId { device: 0, number };
    let elsewhere = StreamId { device: 1, number: 0 };
    let block = malloc(allocator, &driver, 512).unwrap();
    let neighbour = malloc(allocator, &driver, 512).unwrap();
    for stream in [on(1), on(0), elsewhere, on(1)] {
        allocator.record_stream(block, stream);
    }
    allocator.record_stream(Allocation::NULL, on(1));
    allocator.free(&driver, block);
    assert_eq!(driver.events(), (2, 2), "its own stream needs no event, another needs one");
    let state = |allocator: &Allocator| allocator.snapshot().next().unwrap().blocks[0].state;
    let figures = |allocator: &Allocator| {
        let stats = allocator.stats();
        [stats.allocated_bytes, stats.active_bytes, stats.requested_bytes].map(|stat| stat.all.current)
    };
    assert_eq!(state(allocator), BlockState::ActiveAwaitingFree);
    assert_eq!(figures(allocator), [512, 1024, 1024]);
    allocator.free(&driver, neighbour);
    assert_eq!(figures(allocator), [0, 512, 512]);
    driver.advance(on(1), 1);
    assert_eq!(malloc(allocator, &driver, 512).unwrap().pointer, neighbour.pointer);
    driver.advance(elsewhere, 1);
    assert_eq!(
        state(allocator),
        BlockState::ActiveAwaitingFree,
        "events are looked at when memory is asked for"
    );
    assert_eq!(malloc(allocator, &driver, 512).unwrap().pointer, block.pointer);
    assert_eq!(figures(allocator), [1024; 3]);
    driver.check(allocator);
    allocator.record_stream(block, on(2));
    allocator.free(&driver, block);
    assert_eq!(driver.events(), (2, 1));
}

#[test]
fn an_emptied_cache_has_waited_for_all_streams() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    for number in [1, 2] {
        let block = malloc(allocator, &driver, 4 * MIB).unwrap();
        allocator.record_stream(block, StreamId { device: 0, number });
        allocator.free(&driver, block);
    }
    assert_eq!(figures(allocator)[1], 20 * MIB);
    allocator.empty_cache(&driver).unwrap();
    assert_eq!((figures(allocator), driver.events()), ([0; 4], (2, 0)));
    assert_eq!(allocator.stats().num_sync_all_streams, 1);
}

#[test]
fn a_limit_counts_as_a_full_device() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    allocator.set_allowed(40 * MIB);
    let cached = malloc(allocator, &driver, 30 * MIB).unwrap();
    allocator.free(&driver, cached);
    let live = malloc(allocator, &driver, 20 * MIB).unwrap();
    assert_eq!(live.pointer, cached.pointer, "what is reserved already may be used");
    let error = malloc(allocator, &driver, 11 * MIB).unwrap_err();
    let expected = AllocationFailure {
        requested: 12 * MIB,
        allocated: 20 * MIB,
        reserved: 30 * MIB,
        allowed: Some(40 * MIB),
    };
    assert_eq!(error, MallocError::OutOfMemory(expected));
    assert_eq!(driver.calls(Call::Malloc), 1, "the driver is not even asked");
    malloc(allocator, &driver, 10 * MIB + 1 - 512).unwrap();
    allocator.set_allowed(0);
    assert!(matches!(malloc(allocator, &driver, 21 * MIB), Err(MallocError::OutOfMemory(_))));
}

#[test]
fn a_late_limit_for_splitting_leaves_split_segments_whole() {
    let driver = FakeDriver::with_capacity(100 * MIB);
    let allocator = &mut Allocator::default();
    let first = malloc(allocator, &driver, 60 * MIB).unwrap();
    allocator.free(&driver, first);
    let small = malloc(allocator, &driver, 2 * MIB).unwrap();
    allocator.set_settings(Settings::parse("max_split_size_mb:20").unwrap());
    let stats = *allocator.stats();
    assert_eq!((stats.oversize_allocations.current, stats.oversize_segments.current), (0, 1));
    // 58 MiB are free beside the small block, in a segment that cannot be returned to the driver.
    assert!(matches!(malloc(allocator, &driver, 90 * MIB), Err(MallocError::OutOfMemory(_))));
    driver.check(allocator);
    allocator.free(&driver, small);
    malloc(allocator, &driver, 90 * MIB).unwrap();
    driver.check(allocator);
    allocator.set_settings(Settings::default());
    assert_eq!(allocator.stats().oversize_allocations.current, 0);
}

#[test]
fn an_error_that_is_not_about_memory_leaves_the_cache_alone() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let cached = malloc(allocator, &driver, 4 * MIB).unwrap();
    allocator.free(&driver, cached);
    driver.fail(Call::Malloc, 1, driver::launch_failure());
    assert_eq!(malloc(allocator, &driver, 1), Err(MallocError::Driver(driver::launch_failure())));
    let stats = allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.segment.all.current), (0, 0, 1));
}

/// `cargo test --release -p todevice hit_takes -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn how_long_a_hit_takes() {
    const PAIRS: u32 = 2_000_000;
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    // As in a training run: about 200 live blocks, with about 100 free ones of other sizes between them.
    let blocks: Vec<_> = (0..300).map(|i| malloc(allocator, &driver, 1000 * (i % 60 + 1)).unwrap()).collect();
    blocks.into_iter().step_by(3).for_each(|block| allocator.free(&driver, block));
    for (what, bytes) in [
        ("small, whole", 4000),
        ("small, split", 2500),
        ("large, whole", 16 << 20),
        ("large, split", 3 << 20),
    ] {
        let warm = malloc(allocator, &driver, bytes).unwrap();
        allocator.free(&driver, warm);
        let start = Instant::now();
        for _ in 0..PAIRS {
            let block = malloc(allocator, &driver, bytes).unwrap();
            allocator.free(&driver, std::hint::black_box(block));
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(PAIRS);
        println!("{what}: {nanoseconds:.0} ns per malloc and free");
    }
}

#[test]
fn without_the_cache_each_request_is_one_of_the_driver_and_nothing_counts_it() {
    let driver = FakeDriver::with_capacity(MIB);
    let allocator = &mut Allocator::default();
    let cached = malloc(allocator, &driver, 1000);
    assert!(cached.is_err(), "a segment has 2 MiB");
    allocator.enable(false);
    let stats = *allocator.stats();
    let held = [1, 1000, MIB - 1001].map(|bytes| malloc(allocator, &driver, bytes).unwrap());
    assert_eq!(driver.in_use(), MIB);
    assert_eq!(held.map(|allocation| allocator.size_of(allocation)), [1, 1000, MIB - 1001]);
    assert!(matches!(
        malloc(allocator, &driver, 1),
        Err(MallocError::OutOfMemory(AllocationFailure {
            requested: 1,
            allocated: 0,
            reserved: 0,
            allowed: None
        }))
    ));
    allocator.record_stream(held[1], StreamId { device: 0, number: 1 });
    for allocation in held {
        allocator.free(&driver, allocation);
        assert!(!allocator.waits(allocation));
    }
    assert_eq!((driver.in_use(), *allocator.stats(), allocator.snapshot().count()), (0, stats, 0));
    assert_eq!(malloc(allocator, &driver, 0), Ok(Allocation::NULL));
}

#[test]
fn memory_goes_back_to_where_it_came_from() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let cached = malloc(allocator, &driver, MIB).unwrap();
    allocator.enable(false);
    let uncached = malloc(allocator, &driver, MIB).unwrap();
    allocator.free(&driver, cached);
    assert_eq!((figures(allocator)[0], driver.in_use()), (0, 3 * MIB));
    allocator.enable(true);
    allocator.free(&driver, uncached);
    assert_eq!((figures(allocator)[1], driver.in_use()), (2 * MIB, 2 * MIB));
    driver.check(allocator);
    assert_eq!(malloc(allocator, &driver, 1).unwrap().pointer, cached.pointer);
}
