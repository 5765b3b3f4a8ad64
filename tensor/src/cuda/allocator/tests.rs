mod driver;
mod model;
mod random;
mod traces;

use std::panic::Location;
use std::time::Instant;

use self::driver::FakeDriver;
use super::*;
use crate::cuda::stats::Stat;

const MIB: u64 = 1 << 20;
const STREAM: StreamId = StreamId::default_of(0);

#[track_caller]
fn malloc(allocator: &mut Allocator, driver: &FakeDriver, bytes: u64) -> Result<Allocation, MallocError> {
    allocator.malloc(driver, usize::try_from(bytes).unwrap(), STREAM, Location::caller())
}

/// Allocated, reserved, non-releasable bytes, and segments.
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
    allocator.free(tiny);
    assert_eq!(figures(allocator), [0, 2_097_152, 0, 1]);
    let x = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [108_000_256, 111_149_056, 1_051_648, 2]);
    let x2 = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [216_000_512, 220_200_960, 2_103_296, 3]);
    allocator.free(x);
    assert_eq!(figures(allocator), [108_000_256, 220_200_960, 1_051_648, 3]);
    let x3 = malloc(allocator, &driver, 108_000_000).unwrap();
    assert_eq!(figures(allocator), [216_000_512, 220_200_960, 2_103_296, 3]);
    allocator.free(x2);
    assert_eq!(figures(allocator), [108_000_256, 220_200_960, 1_051_648, 3]);
    allocator.empty_cache(&driver).unwrap();
    assert_eq!(figures(allocator), [108_000_256, 109_051_904, 1_051_648, 1]);
    allocator.free(x3);
    allocator.empty_cache(&driver).unwrap();
    assert_eq!(figures(allocator), [0; 4]);
    assert_eq!(driver.in_use(), 0);
}

#[test]
fn sizes_at_the_edges_of_the_rules_get_their_block_and_segment() {
    // Bytes asked for, block, segment.
    let table = [
        (1, 512, 2 * MIB),
        (511, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB - 1, MIB, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        // Rounded to 10 MiB, it needs no more than its own segment, which it fills.
        (10 * MIB - 1, 10 * MIB, 10 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        // A remainder of up to 1 MiB is not worth a block: all of the segment is charged. Here more remains.
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
        allocator.free(allocation);
        assert_eq!(figures(allocator), [0, segment, 0, 1], "{bytes} bytes, freed");
    }
}

#[test]
fn nothing_asked_for_is_nothing_given_and_nothing_counted() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let nothing = malloc(allocator, &driver, 0).unwrap();
    assert_eq!(nothing.pointer, DevicePtr(0));
    allocator.free(nothing);
    assert_eq!(*allocator.stats(), DeviceStats::default());
    assert_eq!(driver.calls(), (0, 0));
    // The null allocation is not mistaken for the block at position 0.
    let first = malloc(allocator, &driver, 1).unwrap();
    allocator.free(nothing);
    assert_eq!(allocator.stats().allocation.all.current, 1);
    allocator.free(first);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn sizes_that_no_device_has_are_errors() {
    let driver = FakeDriver::with_capacity(1 << 40);
    let allocator = &mut Allocator::default();
    for bytes in [u64::MAX, u64::MAX - 511, 1 << 63, EXABYTE] {
        assert_eq!(malloc(allocator, &driver, bytes), Err(MallocError::MoreThanAnExabyte));
    }
    assert_eq!(*allocator.stats(), DeviceStats::default());
    assert_eq!(
        malloc(allocator, &driver, EXABYTE - 1),
        Err(MallocError::OutOfMemory(OutOfMemory { requested: EXABYTE, allocated: 0, reserved: 0 }))
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
    allocator.free(cached);
    let error = malloc(allocator, &driver, 51 * MIB).unwrap_err();
    assert_eq!(
        error,
        MallocError::OutOfMemory(OutOfMemory {
            requested: 52 * MIB,
            allocated: 30 * MIB,
            reserved: 30 * MIB
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
    let place = Location::caller();
    let on = |number| StreamId { device: 0, number };
    for number in [1, 0, 2] {
        let block = allocator.malloc(&driver, 4096, on(number), place).unwrap();
        allocator.free(block);
    }
    let pointers: Vec<DevicePtr> = allocator.snapshot().map(|segment| segment.pointer).collect();
    for (number, pointer) in [(1, pointers[0]), (0, pointers[1]), (2, pointers[2])] {
        assert_eq!(allocator.malloc(&driver, 4096, on(number), place).unwrap().pointer, pointer);
    }
    // Stream 0 has none of 4 MiB, though the streams behind it may.
    let large = allocator.malloc(&driver, 4 << 20, on(1), place).unwrap();
    allocator.free(large);
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
    allocator.free(small);

    let segments: Vec<_> = allocator.snapshot().collect();
    let sizes: Vec<(u64, Pool)> = segments.iter().map(|segment| (segment.size, segment.pool)).collect();
    assert_eq!(sizes, [(2 * MIB, Pool::Small), (20 * MIB, Pool::Large)]);
    let blocks: Vec<_> =
        segments[0].blocks.iter().map(|block| (block.size, block.requested_size, block.allocated)).collect();
    assert_eq!(blocks, [(1024, 0, false), (1024, 513, true), (2 * MIB - 2048, 0, false)]);
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
    allocator.free(one);
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
    allocator.free(one);
    allocator.free(one);
}

/// A run that touches everything the driver does: hits, splits, merges, a retry, emptying the cache.
fn exercise(allocator: &mut Allocator, driver: &FakeDriver) -> Result<(), MallocError> {
    let mut held = Vec::new();
    let result = (|| {
        for bytes in [1000, 3 * MIB, 18 * MIB, 700 * 1024] {
            held.push(malloc(allocator, driver, bytes)?);
        }
        for block in held.drain(1..) {
            allocator.free(block);
        }
        // More than is left, but not more than there is.
        held.push(malloc(allocator, driver, 44 * MIB)?);
        for block in held.drain(..) {
            allocator.free(block);
        }
        allocator.empty_cache(driver)?;
        Ok(())
    })();
    held.into_iter().for_each(|block| allocator.free(block));
    result
}

#[test]
fn any_driver_call_may_fail_and_nothing_is_lost() {
    let (mallocs, frees) = {
        let driver = FakeDriver::with_capacity(48 * MIB);
        exercise(&mut Allocator::default(), &driver).unwrap();
        driver.calls()
    };
    assert!(mallocs >= 5 && frees >= 4, "{mallocs} {frees}");
    let error = driver::launch_failure();
    for call in 0..mallocs + frees {
        let driver = FakeDriver::with_capacity(48 * MIB);
        match call.checked_sub(mallocs) {
            None => driver.fail_malloc(call, error.clone()),
            Some(call) => driver.fail_free(call, error.clone()),
        }
        let allocator = &mut Allocator::default();
        assert_eq!(exercise(allocator, &driver), Err(MallocError::Driver(error.clone())), "call {call}");
        driver.check(allocator);
        // The next time all is well.
        exercise(allocator, &driver).unwrap();
        driver.check(allocator);
        allocator.empty_cache(&driver).unwrap();
        assert_eq!((driver.in_use(), figures(allocator)), (0, [0; 4]), "call {call}");
    }
}

#[test]
fn an_error_that_is_not_about_memory_leaves_the_cache_alone() {
    let driver = FakeDriver::default();
    let allocator = &mut Allocator::default();
    let cached = malloc(allocator, &driver, 4 * MIB).unwrap();
    allocator.free(cached);
    driver.fail_malloc(1, driver::launch_failure());
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
    // As in a training run: some 200 live blocks, and some 100 free ones of other sizes between them.
    let blocks: Vec<_> = (0..300).map(|i| malloc(allocator, &driver, 1000 * (i % 60 + 1)).unwrap()).collect();
    blocks.into_iter().step_by(3).for_each(|block| allocator.free(block));
    for (what, bytes) in [
        ("small, whole", 4000),
        ("small, split", 2500),
        ("large, whole", 16 << 20),
        ("large, split", 3 << 20),
    ] {
        let warm = malloc(allocator, &driver, bytes).unwrap();
        allocator.free(warm);
        let start = Instant::now();
        for _ in 0..PAIRS {
            let block = malloc(allocator, &driver, bytes).unwrap();
            allocator.free(std::hint::black_box(block));
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(PAIRS);
        println!("{what}: {nanoseconds:.0} ns per malloc and free");
    }
}
