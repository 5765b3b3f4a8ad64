//! Launches that wait for their work: what is reported earlier, what takes longer, and what does not change.

use std::time::Duration;

use todevice::cuda::{self, Stream, SyncDebugMode};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, ToOptions};

fn gpu() -> Device {
    Device::cuda(0)
}

/// Runs a test twice, without and with blocking launches, each on a new machine.
fn both<R>(test: impl Fn() -> Result<R>) -> Result<[R; 2]> {
    let with = |blocking| {
        "sim:t4".parse::<Machine>().unwrap().enter(|| {
            cuda::set_launch_blocking(blocking)?;
            assert_eq!(cuda::launch_blocking()?, blocking);
            test()
        })
    };
    Ok([with(false)?, with(true)?])
}

/// Keeps the current stream busy for some milliseconds.
fn busy() -> Result<Tensor> {
    let x = Tensor::ones((&[1024, 1024], gpu()))?;
    x.matmul(&x)?.matmul(&x)
}

fn not_waiting(device: Device) -> ToOptions {
    ToOptions { device: Some(device), non_blocking: true, ..Default::default() }
}

type Operation = fn() -> Result<Tensor>;

const ASSERTS: [(&str, Operation); 4] = [
    ("index_select_f32", || {
        Tensor::ones((&[10, 4], gpu()))?.index_select(0, &Tensor::new([3, 12])?.to(gpu())?)
    }),
    ("gather_f32", || Tensor::ones((&[3, 2], gpu()))?.gather(0, &Tensor::new([[-1, 0]])?.to(gpu())?)),
    ("cross_entropy", || {
        let target = Tensor::new([0, 7])?.to(gpu())?;
        Tensor::ones((&[2, 3], gpu()))?.cross_entropy(&target)
    }),
    ("bernoulli", || Tensor::full(&[3], (1.5, gpu()))?.bernoulli(None)),
];

#[test]
fn an_error_is_of_the_call_that_caused_it_and_names_the_kernel() -> Result<()> {
    const LATE: &str = "might be asynchronously reported at some other API call";
    for (kernel, operation) in ASSERTS {
        let [late, blocking] = both(|| {
            busy()?;
            let called = operation();
            let at_call = called.as_ref().err().map(ToString::to_string);
            let later = cuda::synchronize().unwrap_err().to_string();
            Ok((at_call, later))
        })?;
        assert_eq!(late.0, None, "{kernel}: the call returns before the kernel has run");
        assert!(late.1.contains(LATE) && late.1.contains("CUDA_LAUNCH_BLOCKING=1"), "{}", late.1);
        let error = blocking.0.expect("the call fails");
        assert!(error.starts_with("CUDA error: device-side assert triggered (") && error.contains(kernel));
        assert!(!error.contains(LATE) && !error.contains("CUDA_LAUNCH_BLOCKING"), "{error}");
        assert!(error.ends_with("`TORCH_USE_CUDA_DSA` to enable device-side assertions."), "{error}");
        assert_eq!(blocking.1, error, "it sticks");
    }
    Ok(())
}

/// Also in backward, where a line other than the loss's launches the work.
#[test]
fn lines_before_the_culprit_succeed_and_those_after_it_are_not_reached() -> Result<()> {
    let lines = both(|| {
        let table = Tensor::ones((&[10, 4], gpu()))?;
        let ids = Tensor::new([3, 12])?.to(gpu())?;
        busy()?;
        let mut done = Vec::new();
        let mut run = || {
            let doubled = table.mul(2.0)?;
            done.push("mul");
            let rows = doubled.index_select(0, &ids)?;
            done.push("index_select");
            let mean = rows.mean()?;
            done.push("mean");
            mean.item()
        };
        assert!(run().is_err());
        Ok(done)
    })?;
    assert_eq!(lines, [vec!["mul", "index_select", "mean"], vec!["mul"]]);
    Ok(())
}

#[test]
fn a_call_takes_as_long_as_its_work_and_the_work_as_long_as_before() -> Result<()> {
    let [(call, all), (blocking_call, blocking_all)] = both(|| {
        let x = Tensor::ones((&[1024, 1024], gpu()))?;
        x.matmul(&x)?.matmul(&x)?; // allocates memory
        cuda::synchronize()?;
        let start = Instant::now();
        let y = x.matmul(&x)?;
        let call = start.elapsed();
        for _ in 0..9 {
            y.matmul(&x)?;
        }
        cuda::synchronize()?;
        Ok((call, start.elapsed()))
    })?;
    assert!(call < Duration::from_micros(20), "{call:?}");
    assert!(blocking_call > 20 * call, "{blocking_call:?}");
    // Ten waits take longer than one, but most of the time is in the products.
    assert!(all < blocking_all && blocking_all < all * 6 / 5, "{all:?} {blocking_all:?}");
    Ok(())
}

#[test]
fn all_that_queues_work_waits_for_it() -> Result<()> {
    let pending = both(|| {
        let pinned = Tensor::ones(&[1 << 20])?.pin_memory()?;
        let x = Tensor::ones((&[1 << 20], gpu()))?;
        cuda::synchronize()?;
        let stream = cuda::current_stream(gpu())?;
        let mut pending = Vec::new();
        let mut note = |done: Result<Tensor>| {
            pending.push(!done.and_then(|_| stream.query())?);
            cuda::synchronize()
        };
        note(x.add(1.0))?;
        note(x.reshape(&[1024, 1024])?.matmul(&x.reshape(&[1024, 1024])?))?;
        note(pinned.to(not_waiting(gpu())))?;
        note(x.to(not_waiting(Device::Cpu)))?;
        Ok(pending)
    })?;
    assert_eq!(pending, [[true; 4], [false; 4]]);
    Ok(())
}

#[test]
fn it_is_no_synchronization_of_the_program() -> Result<()> {
    let [without, with] = both(|| {
        let pinned = Tensor::ones(&[1000])?.pin_memory()?;
        let before = Machine::current().counters();
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        pinned.to(not_waiting(gpu()))?.add(1.0)?.sum()?;
        Ok(Machine::current().counters() - before)
    })?;
    assert_eq!(without, with);
    Ok(())
}

/// A program that is correct only because each launch waits is still wrong.
#[test]
fn it_hides_races_from_the_numbers_and_not_from_their_reports() -> Result<()> {
    let [(stale, races), (right, blocking)] = both(|| {
        let side = Stream::new(gpu())?;
        let x = Tensor::zeros((&[1000], gpu()))?;
        busy()?;
        cuda::synchronize()?;
        cuda::stream(&side, || x.sum()?.item())?; // allocates memory now, because that makes the GPU wait
        busy()?;
        x.fill_(1.0)?;
        let sum = cuda::stream(&side, || x.sum()?.item())?;
        let host = x.to(not_waiting(Device::Cpu))?.to_vec::<f32>()?[0];
        Ok(((sum, host), Machine::current().races()))
    })?;
    assert_eq!((stale.0, right), (0.0, (1000.0, 1.0)));
    assert_eq!(races.len(), 2, "of the streams, and of the host with the copy: {races:?}");
    assert_eq!(races, blocking);
    Ok(())
}

#[test]
fn it_is_of_one_machine_and_takes_a_gpu() {
    let none = "none".parse::<Machine>().unwrap();
    none.enter(|| {
        let error = cuda::set_launch_blocking(true).unwrap_err().to_string();
        assert!(error.starts_with("Found no NVIDIA driver"), "{error}");
        assert!(cuda::launch_blocking().is_err());
    });
    let [a, b] = [(); 2].map(|()| "sim:t4".parse::<Machine>().unwrap());
    a.enter(|| cuda::set_launch_blocking(true)).unwrap();
    assert_eq!([a, b].map(|machine| machine.enter(cuda::launch_blocking).unwrap()), [true, false]);
}
