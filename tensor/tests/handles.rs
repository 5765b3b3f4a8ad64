//! Handles that a driver never created, or has destroyed. They are plain numbers, so safe code can forge one, and each
//! driver has to reject it. NVIDIA's libraries are stand-ins. With a GPU: `TEST_GPU=real`.

use crate::each_case::each_case;
use todevice_gpu::contract::driver::{
    DevicePtr, Driver, DriverError, DriverResult, EventId, HostSource, HostTarget, PinnedPtr, StreamId,
};
use todevice_gpu::host::host_profile::LAPTOP_8_CORES;
use todevice_gpu::host::time::Clock;
use todevice_gpu::nvidia::Nvidia;
use todevice_gpu::simulated::profile::T4;
use todevice_gpu::simulated::{Simulated, SimulatedOptions};

#[test]
fn of_the_stand_ins() {
    if std::env::var_os("TEST_GPU").is_some() {
        return; // This is the child process.
    }
    let stand_ins = crate::stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    let output = stand_ins.on(&mut this).arg("handles::").env("TEST_GPU", "real").output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("5 passed"));
}

/// Runs a test on the simulated driver, and on NVIDIA's or its stand-in.
fn on_drivers(test: fn(&dyn Driver) -> DriverResult<()>) {
    let (profile, host) = (&T4, &LAPTOP_8_CORES);
    let options = SimulatedOptions {
        profile,
        host,
        count: 1,
        memory: None,
        others: 0,
        seed: None,
        setup: Default::default(),
    };
    test(&Simulated::new(options, Clock::default())).unwrap();
    if std::env::var_os("TEST_GPU").is_some() {
        test(&Nvidia::open(Clock::real()).unwrap()).unwrap();
    }
}

const STREAM: StreamId = StreamId::default_of(0);
const BYTES: usize = 64;

fn is_refused<T>(called: DriverResult<T>, code: u32, name: &str) -> bool {
    matches!(called, Err(DriverError { code: got, name: called, .. }) if got == code && called == name)
}

fn is_invalid_value<T>(called: DriverResult<T>) -> bool {
    is_refused(called, 1, "cudaErrorInvalidValue")
}

fn is_invalid_handle<T>(called: DriverResult<T>) -> bool {
    is_refused(called, 400, "cudaErrorInvalidResourceHandle")
}

fn refuses_pinned(gpu: &dyn Driver, pointer: PinnedPtr, device: DevicePtr) {
    let mut bytes = [1; BYTES];
    assert!(is_invalid_value(gpu.write_host(pointer, &bytes)), "{pointer:?}");
    assert!(is_invalid_value(gpu.read_host(pointer, &mut bytes)), "{pointer:?}");
    let up = gpu.copy_host_to_device(STREAM, device, HostSource::Pinned(pointer), BYTES);
    assert!(is_invalid_value(up), "{pointer:?}");
    let down = gpu.copy_device_to_host(STREAM, HostTarget::Pinned(pointer), device, BYTES);
    assert!(is_invalid_value(down), "{pointer:?}");
}

#[test]
fn pinned_memory_outside_every_block_is_refused() {
    on_drivers(|gpu| {
        let device = gpu.malloc(0, BYTES)?;
        refuses_pinned(gpu, PinnedPtr(8), device);
        let pinned = gpu.malloc_host(BYTES)?;
        each_case([0, 8, pinned.0 - 1, pinned.0 + 1, pinned.0 + BYTES as u64, u64::MAX], |address| {
            refuses_pinned(gpu, PinnedPtr(address), device);
            assert!(is_invalid_value(gpu.free_host(PinnedPtr(address))), "{address}");
        });
        gpu.free_host(pinned)?;
        refuses_pinned(gpu, pinned, device);
        assert!(is_invalid_value(gpu.free_host(pinned)));
        // Zero bytes are not accessed anyway.
        gpu.write_host(PinnedPtr(0), &[])?;
        gpu.read_host(PinnedPtr(0), &mut [])?;
        // Nor may a copy exceed the length of a slice.
        let up = gpu.copy_host_to_device(STREAM, device, HostSource::Pageable(&[1; 4]), BYTES);
        assert!(is_invalid_value(up));
        let down = gpu.copy_device_to_host(STREAM, HostTarget::Pageable(&mut [1; 4]), device, BYTES);
        assert!(is_invalid_value(down));
        Ok(())
    });
}

#[test]
fn pinned_memory_is_used_from_any_byte_on() {
    on_drivers(|gpu| {
        let (pinned, device) = (gpu.malloc_host(BYTES)?, gpu.malloc(0, BYTES)?);
        let part = PinnedPtr(pinned.0 + 8);
        gpu.write_host(part, &[7; BYTES - 8])?;
        gpu.copy_host_to_device(STREAM, device, HostSource::Pinned(pinned), BYTES)?;
        gpu.stream_synchronize(STREAM)?;
        gpu.write_host(pinned, &[0; BYTES])?;
        gpu.copy_device_to_host(STREAM, HostTarget::Pinned(part), DevicePtr(device.0 + 4), BYTES - 8)?;
        gpu.stream_synchronize(STREAM)?;
        let mut bytes = [1; BYTES];
        gpu.read_host(pinned, &mut bytes)?;
        assert_eq!((&bytes[..12], &bytes[12..]), (&[0; 12][..], &[7; BYTES - 12][..]));
        gpu.free_host(pinned)
    });
}

#[test]
fn events_that_are_not_there_are_refused() {
    on_drivers(|gpu| {
        let live = gpu.event_create(0, true)?;
        gpu.event_record(live, STREAM)?;
        gpu.event_synchronize(live)?;
        let destroyed = gpu.event_create(0, true)?;
        gpu.event_destroy(destroyed)?;
        let successor = gpu.event_create(0, true)?;
        each_case([EventId(8), EventId(u64::MAX), destroyed], |event| {
            assert!(is_invalid_handle(gpu.event_record(event, STREAM)), "{event:?}");
            assert!(is_invalid_handle(gpu.event_query(event)), "{event:?}");
            assert!(is_invalid_handle(gpu.event_synchronize(event)), "{event:?}");
            assert!(is_invalid_handle(gpu.event_elapsed(event, live)), "{event:?}");
            assert!(is_invalid_handle(gpu.event_elapsed(live, event)), "{event:?}");
            assert!(is_invalid_handle(gpu.stream_wait_event(STREAM, event)), "{event:?}");
            assert!(is_invalid_handle(gpu.event_destroy(event)), "{event:?}");
        });
        // None of this affected other handles.
        gpu.event_record(successor, STREAM)?;
        gpu.stream_wait_event(STREAM, successor)?;
        gpu.event_synchronize(successor)?;
        assert!(gpu.event_query(successor)? && gpu.event_elapsed(live, successor)? >= 0.0);
        // The driver destroys handles that their owner has not.
        gpu.event_destroy(live)
    });
}

#[test]
fn memory_is_not_given_back_while_another_thread_writes_it() {
    on_drivers(|gpu| {
        for _ in 0..20 {
            let pinned = gpu.malloc_host(1 << 16)?;
            let write = || gpu.write_host(pinned, &[1; 1 << 16]);
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| (0..).find_map(|_| write().err()));
                gpu.free_host(pinned)?;
                assert!(is_invalid_value(writer.join().unwrap().map_or(Ok(()), Err)));
                Ok(())
            })?;
        }
        Ok(())
    });
}
