//! Collectives of ranks, on GPUs and on the host.

use crate::each_case::each_case;
use std::time::Duration;

use todevice::distributed::{self as dist, CollectiveOptions, Ranks, ReduceOp};
use todevice::time::{Instant, sleep};
use todevice::{DType, Device, Machine, Result, Tensor, cuda};

use super::machine;

/// Runs a program on four ranks: with and without GPUs.
fn everywhere(program: impl Fn(usize, Device) -> Result<()> + Sync) {
    for (text, backend) in
        [("sim:t4x4", "nccl"), ("sim:rtx4090x4", ""), ("none", "gloo"), ("sim:h200x4", "gloo")]
    {
        let ranks = || {
            dist::spawn(4, |rank| {
                let device = if backend == "gloo" { Device::Cpu } else { Device::cuda(rank) };
                if device.is_cuda() {
                    cuda::set_device(rank)?;
                }
                dist::init_process_group(backend)?;
                assert_eq!((dist::get_rank()?, dist::get_world_size()?), (rank, 4));
                program(rank, device)?;
                dist::barrier()?;
                dist::destroy_process_group()
            })
        };
        machine(text).enter(ranks).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn every_rank_gets_the_reduction_of_all() {
    everywhere(|rank, device| {
        let of = |op| {
            let x = Tensor::new([rank as f32, 2.0 - rank as f32])?.to(device)?;
            dist::all_reduce(&x, op)?;
            x.to_vec::<f32>()
        };
        assert_eq!(of(ReduceOp::Sum)?, [6.0, 2.0]);
        assert_eq!(of(ReduceOp::Max)?, [3.0, 2.0]);
        assert_eq!(of(ReduceOp::Min)?, [0.0, -1.0]);
        if device.is_cuda() {
            assert_eq!(of(ReduceOp::Avg)?, [1.5, 0.5]);
        }
        let whole = Tensor::new([rank as i64])?.to(device)?;
        dist::all_reduce(&whole, ReduceOp::Sum)?;
        assert_eq!(whole.to_vec::<i64>()?, [6]);
        Ok(())
    });
}

/// The sums are large enough for simulated GPUs to divide them.
#[test]
fn what_a_rank_got_is_its_own_to_change() {
    const ROWS: usize = 256;
    everywhere(|rank, device| {
        let sum = || -> Result<Tensor> {
            let x = Tensor::zeros((&[ROWS, ROWS], device))?;
            x.fill_(rank as f64)?;
            dist::all_reduce(&x, ReduceOp::Sum)?;
            Ok(x)
        };
        let own = rank as f32;
        let holds = |x: &Tensor, first: f32, rest: f32| -> Result<()> {
            let values = x.to_vec::<f32>()?;
            assert_eq!(values[..ROWS], [first; ROWS]);
            assert_eq!(values[ROWS..], [rest; (ROWS - 1) * ROWS]);
            Ok(())
        };
        let [changed, in_part, added_to, overwritten, read] = [sum()?, sum()?, sum()?, sum()?, sum()?];
        let copy = changed.copy()?;
        changed.mul_(rank as f64)?;
        holds(&changed, 6.0 * own, 6.0 * own)?;
        in_part.narrow(0, 0, 1)?.fill_(rank as f64)?;
        holds(&in_part, own, 6.0)?;
        added_to.narrow(0, 0, 1)?.add_(&copy.narrow(0, 1, 1)?)?;
        holds(&added_to, 12.0, 6.0)?;
        overwritten.copy_(&read)?;
        overwritten.narrow(0, 1, ROWS - 1)?.copy_(&in_part.narrow(0, 0, 1)?)?;
        holds(&overwritten, 6.0, own)?;
        holds(&copy, 6.0, 6.0)?;
        holds(&read.matmul(&read)?, 36.0 * ROWS as f32, 36.0 * ROWS as f32)?;
        holds(&read, 6.0, 6.0)?;
        // New tensors reuse the memory of the shared ones.
        drop((changed, copy, overwritten));
        let product = in_part.narrow(0, 0, 1)?.expand(&[ROWS as i64, -1])?.matmul(&read)?;
        let product_holds = 6.0 * own * ROWS as f32;
        holds(&product, product_holds, product_holds)?;
        holds(&(&read * &read)?, 36.0, 36.0)
    });
}

/// Rank 0 arrives last, but its number is still the first of the sum: 1e8 - 1e8 + 1 would be 1.
#[test]
fn the_order_of_a_sum_is_that_of_the_ranks_whoever_comes_first() {
    everywhere(|rank, device| {
        let x = Tensor::new([[1.0f32, 1e8, -1e8, 0.0][rank]])?.to(device)?;
        let message = Tensor::zeros((&[1], device))?;
        match rank {
            0 => dist::recv(&message, 3)?,
            3 => dist::send(&message, 0)?,
            _ => {}
        }
        let x = (&x + &message)?; // after the message
        dist::all_reduce(&x, ReduceOp::Sum)?;
        assert_eq!(x.to_vec::<f32>()?, [0.0]);
        Ok(())
    });
}

#[test]
fn tensors_go_from_one_to_all_from_all_to_all_and_in_parts() {
    everywhere(|rank, device| {
        let x = Tensor::new([rank as f32; 3])?.to(device)?;
        dist::broadcast(&x, 2)?;
        assert_eq!(x.to_vec::<f32>()?, [2.0; 3]);

        let own = Tensor::new([rank as f32, 10.0])?.to(device)?;
        let all = dist::all_gather(&own)?;
        let all: Vec<Vec<f32>> = all.iter().map(Tensor::to_vec).collect::<Result<_>>()?;
        assert_eq!(all, [[0.0, 10.0], [1.0, 10.0], [2.0, 10.0], [3.0, 10.0]]);

        let parts: Vec<Tensor> =
            (0..4).map(|part| Tensor::new([(part * 10 + rank) as f32])?.to(device)).collect::<Result<_>>()?;
        let own = Tensor::zeros((&[1], device))?;
        dist::reduce_scatter(&own, &parts.iter().collect::<Vec<_>>(), ReduceOp::Sum)?;
        assert_eq!(own.to_vec::<f32>()?, [(40 * rank + 6) as f32]);
        Ok(())
    });
}

/// Each rank sends to the next and receives from the previous one, around the ring.
#[test]
fn messages_go_from_rank_to_rank() {
    everywhere(|rank, device| {
        let (sent, got) = (Tensor::new([rank as f32])?.to(device)?, Tensor::zeros((&[1], device))?);
        let sending = dist::isend(&sent, (rank + 1) % 4)?;
        dist::recv(&got, (rank + 3) % 4)?;
        sending.wait()?;
        assert_eq!(got.to_vec::<f32>()?, [((rank + 3) % 4) as f32]);
        // One after the other, with the host waiting for each.
        if rank > 0 {
            dist::recv(&got, rank - 1)?;
            assert_eq!(got.item()?, (100 + rank) as f64);
        }
        if rank < 3 {
            dist::send(&Tensor::new([(101 + rank) as f32])?.to(device)?, rank + 1)?;
        }
        Ok(())
    });
}

#[test]
fn a_collective_is_queued_and_the_host_goes_on() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        let waits = dist::spawn(2, |rank| {
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let x = Tensor::ones((&[1 << 20], Device::cuda(rank)))?;
            cuda::synchronize()?;
            let start = Instant::now();
            if rank == 1 {
                sleep(Duration::from_millis(5));
            }
            let work = dist::all_reduce(
                &x,
                (ReduceOp::Sum, CollectiveOptions { async_op: true, ..Default::default() }),
            )?;
            work.wait()?;
            let called = start.elapsed();
            assert!(rank == 1 || !work.is_completed()? || called > Duration::from_millis(5));
            cuda::synchronize()?;
            assert_eq!(x.mean()?.item()?, 2.0);
            Ok((called, start.elapsed()))
        })?;
        // Twice half of 4 MiB, at 10 GB/s.
        let time = Duration::from_micros(400);
        assert!(waits[0].0 < Duration::from_micros(100), "the host of rank 0 went on: {waits:?}");
        for (_, ended) in waits {
            assert!(ended > Duration::from_millis(5) + time && ended < Duration::from_millis(6), "{ended:?}");
        }
        Ok(())
    })
}

/// Times depend on the program, not on which rank runs first: rank 0 runs ahead until it must wait, and the last rank
/// finds all others waiting.
#[test]
fn all_ranks_of_one_program_take_the_same_time() -> Result<()> {
    each_case(["sim:t4x8", "sim:h200x8", "sim:rtx4090x8"], |text| -> Result<()> {
        let times = machine(text).enter(|| {
            dist::spawn(8, |rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                let device = Device::cuda(rank);
                let x = Tensor::ones((&[256, 256], device))?;
                let mut times = Vec::new();
                for step in 0..6 {
                    let y = x.matmul(&x)?;
                    dist::all_reduce(&y, ReduceOp::Sum)?;
                    let z = y.relu()?.mul(0.5)?;
                    if step % 2 == 1 {
                        z.sum()?.item()?;
                    }
                    times.push(Instant::now());
                }
                cuda::synchronize()?;
                times.push(Instant::now());
                Ok(times)
            })
        })?;
        assert!(times.iter().all(|time| *time == times[0]), "{text}: {times:#?}");
        Ok(())
    });
    Ok(())
}

/// Run in phases, a program gives the same results with threads and, as in a page, without.
#[test]
fn phases_run_with_threads_and_without() -> Result<()> {
    let run = |ranks: fn(usize) -> Result<Ranks>| {
        machine("sim:t4x4").enter(|| {
            let ranks = ranks(4)?;
            let mut tensors = ranks.run(|rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                Tensor::full(&[1000], (rank as f64, Device::cuda(rank)))
            })?;
            let mut seen = Vec::new();
            for _ in 0..3 {
                ranks.run_each(&mut tensors, |rank, x| {
                    assert_eq!(cuda::current_device()?, rank, "kept from phase to phase");
                    dist::all_reduce(x, ReduceOp::Avg)?;
                    x.add_(rank as f64).map(drop)
                })?;
                seen.push(ranks.run_each(&mut tensors, |_, x| Ok((x.mean()?.item()?, Instant::now())))?);
            }
            Ok::<_, todevice::Error>(seen)
        })
    };
    let (with, without) = (run(Ranks::new)?, run(Ranks::in_turns)?);
    assert_eq!(with, without);
    assert_eq!(with[2].iter().map(|(mean, _)| *mean).collect::<Vec<_>>(), [4.5, 5.5, 6.5, 7.5]);
    Ok(())
}

#[test]
fn a_rank_is_a_process_of_its_own() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        let outside = Tensor::ones(&[1])?.cuda()?;
        let seen = dist::spawn(2, |rank| {
            assert!(!dist::is_initialized());
            assert_eq!(cuda::current_device()?, 0);
            assert!(outside.add(1.0).is_err(), "another program's memory");
            cuda::set_device(rank)?;
            todevice::manual_seed(rank as u64);
            let x = Tensor::randn(&[1 << 20])?.cuda()?;
            Ok((
                cuda::memory_allocated(),
                cuda::device(1 - rank, cuda::memory_allocated)?,
                x.device().to_string(),
            ))
        })?;
        assert_eq!(seen, [(4 << 20, 0, "cuda:0".to_owned()), (4 << 20, 0, "cuda:1".to_owned())]);
        Ok(())
    })
}

#[test]
fn a_recording_sees_all_ranks() -> Result<()> {
    let machine: Machine = machine("sim:h200x4");
    let (_, trace) = machine.enter(|| {
        machine.profile(|| {
            dist::spawn(4, |rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                let x = Tensor::ones((&[1 << 20], Device::cuda(rank)))?;
                if rank == 2 {
                    sleep(Duration::from_millis(1));
                }
                dist::all_reduce(&x, ReduceOp::Sum)
            })
        })
    });
    let parts: Vec<_> = trace.work.iter().filter(|work| work.call.kind.name() == "all_reduce").collect();
    let mut ranks: Vec<_> =
        parts.iter().map(|work| (work.call.rank.unwrap(), work.span.stream.device)).collect();
    ranks.sort();
    assert_eq!(ranks, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    assert!(parts.iter().all(|work| work.span.end == parts[0].span.end), "they end together");
    let waited = |rank: usize| {
        let span = parts.iter().find(|work| work.span.stream.device == rank).unwrap().span;
        span.end - span.start
    };
    assert!(waited(0) > 1_000_000 + waited(2) / 2 && waited(2) < 200_000, "{} {}", waited(0), waited(2));
    assert_eq!(machine.counters().collectives, 4);
    Ok(())
}

#[test]
fn halves_and_other_types_are_reduced_too() {
    everywhere(|rank, device| {
        each_case([DType::F16, DType::BF16, DType::F64, DType::I32, DType::U8], |dtype| -> Result<()> {
            let x = Tensor::new([1.0f32 + rank as f32, 0.0])?.to((device, dtype))?;
            dist::all_reduce(&x, ReduceOp::Sum)?;
            assert_eq!(x.to(DType::F32)?.to_vec::<f32>()?, [10.0, 0.0], "{dtype}");
            Ok(())
        });
        Ok(())
    });
}

/// The same for random programs: each rank has its own pace, uses two streams, and takes part in collectives of two
/// groups. Whichever rank starts first, every rank's clock shows the same time at the end.
#[test]
fn who_runs_first_does_not_matter() -> Result<()> {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    let program = proptest::collection::vec((0..7u8, 0..3usize, 0..200u64), 1..14);
    let run = |steps: &[(u8, usize, u64)], first: usize| -> Result<Vec<Instant>> {
        let times = machine("sim:t4x3").enter(|| {
            // The ranks are renumbered, and so run in another order.
            dist::spawn(3, |number| {
                let device = (number + first) % 3;
                cuda::set_device(device)?;
                dist::init_process_group("nccl")?;
                let group = dist::new_group(&[0, 1, 2])?;
                let device_name = Device::cuda(device);
                let (x, y) =
                    (Tensor::ones((&[64, 64], device_name))?, Tensor::ones((&[64, 64], device_name))?);
                let side = cuda::Stream::new(device_name)?;
                let mut under_way = None;
                for (what, who, amount) in steps {
                    let reduce = |x: &Tensor, group| {
                        dist::all_reduce(x, (ReduceOp::Max, CollectiveOptions { group, async_op: true }))
                    };
                    match what {
                        0 => _ = x.matmul(&x)?,
                        1 if *who == device => sleep(Duration::from_micros(*amount)),
                        1 => {}
                        2 => reduce(&x, None)?.wait()?,
                        3 => under_way = Some(reduce(&y, Some(group.clone()))?),
                        4 => match under_way.take() {
                            Some(work) => work.wait()?,
                            None => cuda::synchronize()?,
                        },
                        5 if *who == device => _ = x.sum()?.item()?,
                        5 => {}
                        _ => {
                            side.wait_stream(&cuda::current_stream(device_name)?)?;
                            cuda::stream(&side, || x.add(1.0))?;
                            cuda::current_stream(device_name)?.wait_stream(&side)?;
                        }
                    }
                }
                cuda::synchronize()?;
                Ok((device, Instant::now()))
            })
        })?;
        let mut times = times;
        times.sort_by_key(|(device, _)| *device);
        Ok(times.into_iter().map(|(_, time)| time).collect())
    };
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() };
    let test = |steps: Vec<(u8, usize, u64)>| {
        let first = run(&steps, 0).unwrap();
        for other in 1..3 {
            prop_assert_eq!(&run(&steps, other).unwrap(), &first);
        }
        Ok(())
    };
    TestRunner::new(config).run(&program, test).unwrap_or_else(|failed| panic!("{failed}"));
    Ok(())
}
