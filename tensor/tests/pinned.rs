//! Pinned memory and asynchronous copies: their benefits, and the errors without a synchronization. On simulated GPUs,
//! so the errors are the same every time.

use crate::each_case::each_case;
use std::time::Duration;

use todevice::cuda::{self, Stream};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{CopyOptions, Machine, ToOptions};

fn on<R>(gpus: &str, test: impl FnOnce() -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(test)
}

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_string(), |error| error.to_string())
}

fn gpu() -> Device {
    Device::cuda(0)
}

/// Non-blocking options.
fn at_once(device: Device) -> ToOptions {
    ToOptions { device: Some(device), non_blocking: true, ..Default::default() }
}

fn count_of(x: &Tensor, value: f32) -> Result<usize> {
    Ok(x.to_vec::<f32>()?.into_iter().filter(|other| *other == value).count())
}

fn time<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Keeps the current stream busy for some milliseconds without allocating from the driver, which would wait.
struct Busy(Tensor);

impl Busy {
    fn new() -> Result<Busy> {
        let busy = Busy(Tensor::ones((&[1024, 1024], gpu()))?);
        busy.work()?;
        cuda::synchronize()?;
        Ok(busy)
    }

    fn work(&self) -> Result<()> {
        self.0.matmul(&self.0)?.matmul(&self.0).map(drop)
    }
}

/// 4 MiB: about 350 µs on the bus of a T4.
const SIZE: usize = 1 << 20;

// Pinned tensors behave like any other.

#[test]
fn a_pinned_tensor_is_a_copy_on_the_host() -> Result<()> {
    on("sim:t4", || {
        let x = Tensor::arange(0, 6, (1, DType::F32))?.reshape(&[2, 3])?;
        let pinned = x.pin_memory()?;
        assert!(pinned.is_pinned() && !x.is_pinned());
        assert_eq!((pinned.device(), pinned.sizes(), pinned.dtype()), (Device::Cpu, &[2, 3][..], DType::F32));
        assert!(pinned.pin_memory()?.is_same(&pinned), "it is pinned already");
        assert!(pinned.t()?.is_pinned() && pinned.detach().is_pinned(), "views are");
        assert!(!pinned.add(1.0)?.is_pinned() && !pinned.copy()?.is_pinned(), "results are not");
        x.fill_(9.0)?;
        assert_eq!(pinned.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(pinned.to_string(), "tensor([[0., 1., 2.],\n        [3., 4., 5.]])");
        Ok(())
    })
}

#[test]
fn operations_of_the_host_work_on_pinned_tensors_as_on_others() -> Result<()> {
    let run = |pin: bool| -> Result<Vec<Vec<f64>>> {
        manual_seed(1);
        let pinned = |x: Tensor| if pin { x.pin_memory() } else { Ok(x) };
        let x = pinned(Tensor::randn(&[33, 17])?)?;
        let y = pinned(Tensor::randn(&[17, 5])?)?;
        let index = pinned(Tensor::new([3, 0, 32])?)?;
        let number = pinned(Tensor::new(2.5f32)?)?;
        x.narrow(1, 2, 7)?.fill_(0.25)?; // Part of it, with gaps.
        x.t()?.mul_(&number)?;
        x.add_(&x)?;
        // Onto overlapping memory.
        x.narrow(0, 0, 5)?.narrow(1, 0, 16)?.copy_(&x.narrow(0, 3, 5)?.narrow(1, 0, 16)?)?;
        let leaf = pinned(Tensor::ones(&[17, 5])?)?.requires_grad_(true)?;
        let loss = x.matmul(&(&leaf * &y)?)?.tanh()?.mean()?;
        loss.backward()?;
        let grad = leaf.grad().expect("a gradient");
        let all = [
            x.matmul(&y)?,
            x.index_select(0, &index)?,
            x.clone(),
            loss,
            grad,
            x.select(1, 3)?,
            y.t()?.contiguous()?,
        ];
        all.iter().map(|x| x.to(DType::F64)?.to_vec::<f64>()).collect()
    };
    on("sim:t4", || {
        assert_eq!(run(true)?, run(false)?);
        Ok(())
    })
}

#[test]
fn a_row_of_a_pinned_tensor_costs_the_host_no_more_than_a_row() -> Result<()> {
    on("sim:t4", || {
        let rows = Tensor::arange(0, 1 << 20, (1, DType::I64))?.reshape(&[1 << 14, 64])?.pin_memory()?; // 8 MiB
        let machine = Machine::current();
        let memory = machine.host_memory();
        memory.reset_peak();
        let before = memory.allocated();
        let row = rows.select(0, 1000)?;
        assert_eq!(row.to_vec::<i64>()?[..2], [64000, 64001]);
        // Also written: read where it is written, and read where other parts are.
        row.add_(1)?;
        rows.narrow(0, 1001, 2)?.copy_(&rows.narrow(0, 1003, 2)?)?;
        assert_eq!(memory.max_allocated() - before, 2048, "two rows and a copy of them");
        assert_eq!(
            rows.narrow(0, 999, 5)?.select(1, 0)?.to_vec::<i64>()?,
            [63936, 64001, 64192, 64256, 64192]
        );
        Ok(())
    })
}

#[test]
fn empty_parts_of_pinned_tensors_are_read_and_written() -> Result<()> {
    on("sim:t4", || {
        each_case([&[3, 0][..], &[0, 3], &[4, 5]], |sizes| -> Result<()> {
            let x = Tensor::ones(sizes)?.pin_memory()?;
            for (dim, start) in [(0, sizes[0]), (1, sizes[1]), (0, sizes[0].saturating_sub(1))] {
                let length = usize::from(sizes == [3, 0] && start == 2);
                let part = x.narrow(dim, start, length)?;
                assert_eq!(part.numel(), 0);
                assert!(Tensor::ones(sizes)?.narrow(dim, start, length)?.pin_memory()?.is_pinned());
                part.fill_(5.0)?;
                assert!(part.to_vec::<f32>()?.is_empty() && part.add(&part)?.to(at_once(gpu()))?.is_cuda());
            }
            assert_eq!(count_of(&x, 1.0)?, x.numel());
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn every_type_and_every_way_to_lie_is_pinned_and_copied() -> Result<()> {
    on("sim:t4", || {
        each_case(
            [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F32, DType::F64],
            |dtype| -> Result<()> {
                for sizes in [&[][..], &[0], &[1], &[3, 0, 2], &[7, 5], &[2, 3, 4]] {
                    let count = sizes.iter().product::<usize>() as i64;
                    let x = Tensor::arange(0, count, (1, DType::I64))?
                        .reshape(&sizes.iter().map(|n| *n as i64).collect::<Vec<_>>())?;
                    let x = x.to(dtype)?;
                    let lies = match sizes {
                        [_, _] => vec![x.clone(), x.t()?, x.narrow(1, 1, 3)?, x.narrow(0, 2, 4)?],
                        _ => vec![x.clone()],
                    };
                    for x in lies {
                        let plain = x.to(DType::F64)?.to_vec::<f64>()?;
                        let pinned = x.pin_memory()?;
                        for view in [
                            pinned.clone(),
                            pinned.narrow(0, 0, pinned.size(0).unwrap_or(0)).unwrap_or(pinned),
                        ] {
                            for non_blocking in [false, true] {
                                let there = view.to(ToOptions { non_blocking, ..at_once(gpu()) })?;
                                let back = there.to(ToOptions { non_blocking, ..at_once(Device::Cpu) })?;
                                assert_eq!(back.is_pinned(), non_blocking);
                                cuda::synchronize()?;
                                assert_eq!(back.to(DType::F64)?.to_vec::<f64>()?, plain, "{dtype} {sizes:?}");
                            }
                        }
                    }
                }
                Ok(())
            },
        );
        Ok(())
    })
}

#[test]
fn gradients_pass_through_pinning_and_copies_nobody_waits_for() -> Result<()> {
    on("sim:t4", || {
        let x = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
        let pinned = x.pin_memory()?;
        assert_eq!(pinned.grad_fn(), Some("PinMemoryBackward0"));
        pinned.to(at_once(gpu()))?.square()?.sum()?.backward()?;
        let grad = x.grad().expect("a gradient");
        assert!(!grad.is_cuda() && !grad.is_pinned());
        assert_eq!(grad.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
        Ok(())
    })
}

#[test]
fn what_cannot_be_pinned_is_refused_in_pytorchs_words() -> Result<()> {
    on("sim:t4", || {
        let refused = text(Tensor::ones((&[3], gpu()))?.pin_memory());
        assert_eq!(refused, "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned");
        Ok::<(), Error>(())
    })?;
    on("none", || {
        let x = Tensor::ones(&[3])?;
        assert!(text(x.pin_memory()).starts_with("Found no NVIDIA driver on your system."));
        assert!(!x.is_pinned());
        assert!(x.to(at_once(Device::Cpu))?.is_same(&x), "nothing changes");
        Ok(())
    })
}

#[test]
fn pinned_memory_outlives_its_machine_and_is_ordinary_memory_to_another() -> Result<()> {
    let pinned = on("sim:t4", || Tensor::arange(0, 4, (1, DType::F32))?.pin_memory())?;
    on("sim:t4", || {
        assert!(pinned.is_pinned());
        let there = pinned.to(at_once(gpu()))?;
        assert_eq!((there.sum()?.item()?, pinned.sum()?.item()?), (6.0, 6.0));
        Ok(())
    })
}

// Time.

#[test]
fn a_copy_from_pinned_memory_returns_at_once_if_asked_and_is_faster_in_any_case() -> Result<()> {
    on("sim:t4", || {
        let x = Tensor::ones(&[SIZE])?;
        let pinned = x.pin_memory()?;
        drop((x.to(gpu())?, x.to(at_once(gpu()))?)); // The device's memory is in the cache.
        let pageable = time(|| x.to(gpu()));
        let blocking = time(|| pinned.to(gpu()));
        let at_once = time(|| pinned.to(at_once(gpu())));
        assert!(blocking < pageable, "{blocking:?} {pageable:?}");
        assert!(at_once < Duration::from_micros(20) && at_once * 10 < blocking, "{at_once:?} {blocking:?}");
        Ok(())
    })
}

#[test]
fn a_blocking_copy_waits_for_its_stream_and_for_no_other() -> Result<()> {
    on("sim:t4", || {
        let (side, pinned) = (Stream::new(gpu())?, Tensor::ones(&[SIZE])?.pin_memory()?);
        drop(pinned.to(gpu())?);
        let busy = Busy::new()?;
        cuda::stream(&side, || busy.work())?; // Allocates its memory.
        cuda::synchronize()?;
        cuda::stream(&side, || busy.work())?;
        let quick = time(|| pinned.to(gpu()));
        assert!(!side.query()? && cuda::current_stream(gpu())?.query()?);
        busy.work()?;
        assert!(time(|| pinned.to(gpu())) > 3 * quick);
        Ok(())
    })
}

#[test]
fn copies_overlap_with_work_of_another_stream() -> Result<()> {
    on("sim:t4", || {
        let (side, pinned, busy) = (Stream::new(gpu())?, Tensor::ones(&[SIZE])?.pin_memory()?, Busy::new()?);
        drop(cuda::stream(&side, || pinned.to(at_once(gpu())))?);
        cuda::synchronize()?;
        let copy =
            time(|| cuda::stream(&side, || pinned.to(at_once(gpu()))).and_then(|_| cuda::synchronize()));
        let work = time(|| busy.work().and_then(|()| cuda::synchronize()));
        let both = time(|| {
            busy.work().unwrap();
            let _there = cuda::stream(&side, || pinned.to(at_once(gpu()))).unwrap();
            cuda::synchronize().unwrap();
        });
        assert!(both < work + copy / 4, "{both:?} {work:?} {copy:?}");
        Ok(())
    })
}

// Hazards.

/// Overwrites a pinned tensor of ones with twos while it is copied. Returns how many of each arrived.
fn overwritten(synchronize: bool) -> Result<(usize, usize)> {
    let pinned = Tensor::ones(&[SIZE])?.pin_memory()?;
    drop(pinned.to(gpu())?);
    let there = pinned.to(at_once(gpu()))?;
    if synchronize {
        cuda::synchronize()?;
    }
    pinned.fill_(2.0)?;
    Ok((count_of(&there, 1.0)?, count_of(&there, 2.0)?))
}

#[test]
fn a_source_that_is_overwritten_too_early_tears() -> Result<()> {
    let (ones, twos) = on("sim:t4", || overwritten(false))?;
    assert!(ones > 0 && twos > 0 && ones + twos == SIZE, "{ones} {twos}");
    assert_eq!(on("sim:t4", || overwritten(false))?, (ones, twos), "the same way every time");
    assert_eq!(on("sim:t4", || overwritten(true))?, (SIZE, 0));
    Ok(())
}

#[test]
fn pageable_memory_may_be_overwritten_at_once() -> Result<()> {
    on("sim:t4", || {
        each_case([10, SIZE], |size| -> Result<()> {
            let x = Tensor::ones(&[size])?;
            let busy = Busy::new()?;
            busy.work()?;
            let there = x.to(at_once(gpu()))?;
            x.fill_(2.0)?;
            assert_eq!(count_of(&there, 1.0)?, size);
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn a_result_that_is_read_too_early_is_not_there_yet() -> Result<()> {
    on("sim:t4", || {
        let busy = Busy::new()?;
        let x = Tensor::ones((&[1000], gpu()))?;
        drop(x.to(at_once(Device::Cpu))?); // The block exists.
        cuda::synchronize()?;
        x.fill_(2.0)?;
        busy.work()?;
        let back = x.to(at_once(Device::Cpu))?;
        assert!(back.is_pinned());
        // Its content is undefined: here, the previous content of the block.
        assert_eq!((count_of(&back, 2.0)?, back.add(0.0)?.sum()?.item()?), (0, 1000.0));
        cuda::synchronize()?;
        assert_eq!(count_of(&back, 2.0)?, 1000);
        Ok(())
    })
}

#[test]
fn a_result_that_is_read_during_the_copy_is_torn_and_a_snapshot_stays_as_it_is() -> Result<()> {
    on("sim:t4", || {
        let x = Tensor::ones((&[SIZE], gpu()))?;
        drop(x.to(at_once(Device::Cpu))?);
        cuda::synchronize()?;
        x.fill_(2.0)?;
        let back = x.to(at_once(Device::Cpu))?;
        let early = back.copy()?; // Takes about half as long as the copy.
        cuda::synchronize()?;
        let arrived = count_of(&early, 2.0)?;
        assert!(arrived > 0 && arrived < SIZE, "{arrived}");
        assert_eq!(count_of(&back, 2.0)?, SIZE);
        Ok(())
    })
}

#[test]
fn a_blocking_copy_to_the_host_needs_no_synchronization() -> Result<()> {
    on("sim:t4", || {
        let busy = Busy::new()?;
        let x = Tensor::zeros((&[SIZE], gpu()))?;
        busy.work()?;
        x.fill_(2.0)?;
        let back = x.to(Device::Cpu)?;
        assert!(!back.is_pinned());
        assert_eq!(count_of(&back, 2.0)?, SIZE);
        Ok(())
    })
}

#[test]
fn what_the_host_writes_to_a_result_on_its_way_is_overwritten_by_it() -> Result<()> {
    on("sim:t4", || {
        let (busy, x) = (Busy::new()?, Tensor::ones((&[1000], gpu()))?);
        busy.work()?;
        let back = x.to(at_once(Device::Cpu))?;
        back.narrow(0, 0, 10)?.fill_(5.0)?;
        assert_eq!(count_of(&back, 5.0)?, 10);
        cuda::synchronize()?;
        assert_eq!((count_of(&back, 5.0)?, count_of(&back, 1.0)?), (0, 1000));
        back.narrow(0, 0, 10)?.fill_(5.0)?;
        assert_eq!((count_of(&back, 5.0)?, count_of(&back, 1.0)?), (10, 990));
        Ok(())
    })
}

#[test]
fn an_in_place_copy_has_the_times_and_the_hazards_of_to() -> Result<()> {
    const AT_ONCE: CopyOptions = CopyOptions { non_blocking: true };
    on("sim:t4", || {
        let (host, there) = (Tensor::ones(&[SIZE])?.pin_memory()?, Tensor::zeros((&[SIZE], gpu()))?);
        let busy = Busy::new()?;
        let waited = time(|| there.copy_(&host));
        assert!(time(|| there.copy_with_(&host, AT_ONCE)) * 10 < waited);
        cuda::synchronize()?;

        // A source that is overwritten too early is torn; with a wait it is not.
        there.copy_with_(&host, AT_ONCE)?;
        host.fill_(2.0)?;
        let (ones, twos) = (count_of(&there, 1.0)?, count_of(&there, 2.0)?);
        assert!(ones > 0 && twos > 0 && ones + twos == SIZE, "{ones} {twos}");
        there.copy_(&host)?;
        host.fill_(3.0)?;
        assert_eq!(count_of(&there, 2.0)?, SIZE);

        // A target that is read too early has not arrived; with a wait it has.
        let part = host.narrow(0, SIZE / 2, SIZE / 4)?;
        busy.work()?;
        part.copy_with_(&there.narrow(0, 0, SIZE / 4)?, AT_ONCE)?;
        assert_eq!(count_of(&host, 3.0)?, SIZE);
        cuda::synchronize()?;
        assert_eq!((count_of(&host, 3.0)?, count_of(&part, 2.0)?), (SIZE / 4 * 3, SIZE / 4));
        busy.work()?;
        host.copy_(&there)?;
        assert_eq!(count_of(&host, 2.0)?, SIZE);
        assert_eq!(Machine::current().races().len(), 2, "of the two, the copies that nobody waited for");

        // Copies that convert first, or go through pageable memory, wait where they must.
        let doubles = Tensor::zeros((&[SIZE], DType::F64))?.pin_memory()?;
        there.fill_(4.0)?;
        busy.work()?;
        doubles.narrow(0, 0, SIZE / 2)?.t()?.copy_with_(&there.narrow(0, 0, SIZE / 2)?, AT_ONCE)?;
        let strided = Tensor::zeros(&[SIZE / 4, 2])?.pin_memory()?.select(1, 0)?;
        busy.work()?;
        strided.copy_with_(&there.narrow(0, 0, SIZE / 4)?, AT_ONCE)?;
        assert_eq!(count_of(&strided, 4.0)?, SIZE / 4);
        Ok(())
    })
}

// The cache.

#[test]
fn a_dropped_block_is_used_again_only_when_its_copies_have_run() -> Result<()> {
    on("sim:t4", || {
        let busy = Busy::new()?;
        let machine = Machine::current();
        let mallocs = |run: &dyn Fn() -> Result<()>| -> Result<usize> {
            let (done, trace) = machine.profile(run);
            done?;
            Ok(trace.calls.iter().filter(|call| call.kind.call() == "cudaMallocHost").count())
        };
        let ones = Tensor::ones(&[1000])?;
        drop(ones.pin_memory()?.to(gpu())?);
        cuda::synchronize()?;
        // No pending copy: the same block is reused for all sizes that round up to its own.
        let again = mallocs(&|| {
            drop(ones.pin_memory()?);
            drop(Tensor::ones(&[513])?.pin_memory()?);
            drop(Tensor::ones(&[1024])?.pin_memory()?);
            Ok(())
        })?;
        assert_eq!(again, 0);
        assert_eq!(mallocs(&|| Tensor::ones(&[512])?.pin_memory().map(drop))?, 1, "another size");

        // Dropped with a pending copy: another block is used, so the copied data is intact.
        let fresh = mallocs(&|| {
            busy.work()?;
            let there = ones.pin_memory()?.to(at_once(gpu()))?;
            let other = Tensor::full(&[1000], (7.0, DType::F32))?.pin_memory()?;
            cuda::synchronize()?;
            assert_eq!((count_of(&there, 1.0)?, count_of(&other, 7.0)?), (1000, 1000));
            Ok(())
        })?;
        assert_eq!(fresh, 1);
        // Later both can be reused.
        let both = mallocs(&|| {
            let _pair = (ones.pin_memory()?, ones.pin_memory()?);
            Ok(())
        })?;
        assert_eq!(both, 0);
        Ok(())
    })
}

#[test]
fn a_block_that_two_streams_used_waits_for_both() -> Result<()> {
    on("sim:t4", || {
        let (quick, slow, busy) = (Stream::new(gpu())?, Stream::new(gpu())?, Busy::new()?);
        let work = |stream: &Stream| cuda::stream(stream, || busy.work());
        work(&slow)?;
        let ones = Tensor::ones(&[1000])?;
        for stream in [&quick, &slow] {
            drop(cuda::stream(stream, || ones.to(gpu()))?);
        }
        cuda::synchronize()?;
        let pinned = ones.pin_memory()?;
        work(&slow)?;
        let late = cuda::stream(&slow, || pinned.to(at_once(gpu())))?;
        drop(cuda::stream(&quick, || pinned.to(at_once(gpu())))?);
        drop(pinned);
        quick.synchronize()?;
        assert!(!slow.query()?);
        let _other = Tensor::zeros(&[1000])?.pin_memory()?;
        cuda::synchronize()?;
        assert_eq!(count_of(&late, 1.0)?, 1000);
        Ok(())
    })
}

#[test]
fn a_pinned_tensor_may_be_dropped_by_another_thread() -> Result<()> {
    on("sim:t4", || {
        let busy = Busy::new()?;
        let pinned = Tensor::ones(&[1000])?.pin_memory()?;
        drop(pinned.to(gpu())?);
        busy.work()?;
        let there = pinned.to(at_once(gpu()))?;
        std::thread::spawn(move || drop(pinned)).join().expect("no panic");
        let _other = Tensor::zeros(&[1000])?.pin_memory()?;
        cuda::synchronize()?;
        assert_eq!(count_of(&there, 1.0)?, 1000);
        Ok(())
    })
}

// Random small programs.

/// A pseudorandom generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A program that sends tensors there and back, computes on both sides, and overwrites what it has sent. With streams
/// it waits only where necessary; without, it waits for every copy. Returns its host tensors.
fn program(seed: u64, streams: Option<&[Stream]>) -> Result<Vec<Vec<f32>>> {
    let mut dice = Dice(seed);
    let size = [1, 1000, 100_000][dice.below(3)];
    let mut host = (0..3)
        .map(|i| Tensor::full(&[size], (f64::from(i), DType::F32))?.pin_memory())
        .collect::<Result<Vec<Tensor>>>()?;
    // The stream that still reads or writes each of them.
    let mut busy: Vec<Option<Stream>> = vec![None; 3];
    for step in 0..30 {
        let (i, turn, kind) = (dice.below(3), dice.below(4), dice.below(4));
        let device = ToOptions { device: Some(gpu()), ..Default::default() };
        let compute = |x: &Tensor| x.mul(0.5)?.add(f64::from(step))?.sin();
        let Some(streams) = streams else {
            match kind {
                0 => drop(host[i].add_(1.0)?),
                1 => host[i] = Tensor::full(&[size], (f64::from(step), DType::F32))?,
                _ => host[i] = compute(&host[i].to(device)?)?.to(Device::Cpu)?,
            }
            continue;
        };
        let stream = &streams[turn % streams.len()];
        match kind {
            0 => {
                if let Some(user) = busy[i].take() {
                    user.record_event()?.synchronize()?;
                }
                host[i].add_(1.0)?;
            }
            1 => {
                // A pending copy keeps the old tensor's memory.
                host[i] = Tensor::full(&[size], (f64::from(step), DType::F32))?.pin_memory()?;
                busy[i] = None;
            }
            _ => {
                if let Some(user) = &busy[i] {
                    stream.wait_stream(user)?;
                }
                let at_once =
                    |device| ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
                host[i] =
                    cuda::stream(stream, || compute(&host[i].to(at_once(gpu()))?)?.to(at_once(Device::Cpu)))?;
                busy[i] = Some(stream.clone());
            }
        }
    }
    cuda::synchronize()?;
    host.iter().map(Tensor::to_vec).collect()
}

#[test]
fn programs_that_wait_where_they_must_compute_what_they_compute_when_all_is_waited_for() -> Result<()> {
    for seed in 0..60 {
        let plain = on("sim:t4", || program(seed, None))?;
        // The machine's seed varies all durations.
        for gpus in ["sim:t4".to_string(), format!("sim:rtx4090,seed={seed}")] {
            on(&gpus, || {
                let streams = (0..=seed % 4).map(|_| Stream::new(gpu())).collect::<Result<Vec<_>>>()?;
                assert_eq!(program(seed, Some(&streams))?, plain, "program {seed} on {gpus}");
                assert_eq!(cuda::memory_allocated(), 0);
                Ok::<(), Error>(())
            })?;
        }
    }
    Ok(())
}
