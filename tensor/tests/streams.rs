//! Streams and events: ordering, memory ownership, and gradients across streams. On simulated GPUs, so races have the
//! same outcome every time.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use todevice::cuda::{self, BlockState, Event, EventOptions, MemoryBlock, Stream};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::EventKind;
use todevice::{Machine, ToOptions};

fn on<R>(gpus: &str, test: impl FnOnce() -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(test)
}

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_string(), |error| error.to_string())
}

fn timed() -> Event {
    Event::new(EventOptions { enable_timing: true })
}

fn gpu() -> Device {
    Device::cuda(0)
}

fn full(sizes: &[usize], value: f64, device: Device) -> Result<Tensor> {
    Tensor::zeros((sizes, device))?.fill_(value)
}

/// Keeps the current stream busy for some milliseconds.
fn busy() -> Result<Tensor> {
    let x = Tensor::ones((&[1024, 1024], gpu()))?;
    x.matmul(&x)?.matmul(&x)
}

// Getting streams, and making them current.

#[test]
fn a_pool_of_32_streams_is_handed_out_in_turn() -> Result<()> {
    on("sim:t4x2", || {
        let streams = (0..33).map(|_| Stream::new(gpu())).collect::<Result<Vec<_>>>()?;
        for (i, stream) in streams[..32].iter().enumerate() {
            assert!(streams[..i].iter().all(|other| other != stream), "stream {i} is a new one");
            assert_ne!(*stream, cuda::default_stream(gpu())?);
            assert_eq!(stream.device(), gpu());
        }
        assert_eq!(streams[32], streams[0], "the 33rd is the first again");
        assert_ne!(Stream::new(Device::cuda(1))?, streams[0], "each device has its own");
        assert_eq!(format!("{:?}", streams[1]), "<torch.cuda.Stream device=cuda:0 cuda_stream=0x2>");
        Ok(())
    })
}

#[test]
fn a_stream_is_of_a_gpu_that_is_there() {
    let of = |device: Device| {
        [text(Stream::new(device)), text(cuda::current_stream(device)), text(cuda::default_stream(device))]
    };
    on("sim:t4", || {
        assert_eq!(of(Device::Cpu), ["Expected a cuda device, but got: cpu"; 3]);
        let [new, current, default] = of(Device::cuda(1));
        assert!(new.starts_with("CUDA error: invalid device ordinal"));
        assert_eq!([current, default], ["Device index value 1 is out of index range [0, 1)"; 2]);
        let elsewhere = on("sim:t4", gpu);
        let belongs = "cuda:0 does not belong to the machine entered here";
        assert_eq!(of(elsewhere), [belongs; 3]);
    });
    on("none", || {
        assert!(of(gpu()).iter().all(|text| text.starts_with("Found no NVIDIA driver")));
    });
}

#[test]
fn a_scope_sets_stream_and_device_and_restores_both_also_when_it_panics() -> Result<()> {
    on("sim:t4x2", || {
        let second = Device::cuda(1);
        let (a, b) = (Stream::new(gpu())?, Stream::new(second)?);
        let now = || {
            Ok::<_, Error>((
                cuda::current_device()?,
                cuda::current_stream(gpu())?,
                cuda::current_stream(second)?,
            ))
        };
        let before = (0, cuda::default_stream(gpu())?, cuda::default_stream(second)?);
        assert_eq!(now()?, before);
        let value = cuda::stream(&b, || {
            assert_eq!(now()?, (1, before.1.clone(), b.clone()));
            cuda::stream(&a, || {
                assert_eq!(now()?, (0, a.clone(), b.clone()));
                let inner = cuda::stream(&cuda::default_stream(gpu())?, now)?;
                assert_eq!(inner, (0, before.1.clone(), b.clone()));
                Ok::<(), Error>(())
            })?;
            assert_eq!(now()?, (1, before.1.clone(), b.clone()));
            Ok::<_, Error>(7)
        })?;
        assert_eq!((value, now()?), (7, before.clone()));
        let panicked = catch_unwind(AssertUnwindSafe(|| cuda::stream(&b, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(now()?, before);
        Ok(())
    })
}

#[test]
fn a_stream_of_another_machine_changes_nothing_here() -> Result<()> {
    on("sim:t4x2", || {
        let (strange, event) = on("sim:t4x2", || {
            let stream = Stream::new(Device::cuda(1))?;
            let event = stream.record_event()?;
            Ok::<_, Error>((stream, event))
        })?;
        cuda::stream(&strange, || {
            assert_eq!(cuda::current_device()?, 0);
            assert_eq!(cuda::current_stream(Device::cuda(1))?, cuda::default_stream(Device::cuda(1))?);
            Ok::<(), Error>(())
        })?;
        let own = Stream::new(gpu())?;
        let x = Tensor::ones((&[3], gpu()))?;
        each_case(
            [
                text(own.wait_stream(&strange)),
                text(own.wait_event(&event)),
                text(event.record_on(&own)),
                text(x.record_stream(&strange)),
            ],
            |refused| {
                assert!(refused.contains("does not belong to the machine"), "{refused}");
            },
        );
        Ok(())
    })
}

// Ordering.

/// Leaves memory for these tests' tensors in a stream's cache, and no work pending: allocating from the driver would
/// wait for the device, and hide races.
fn warm(stream: &Stream) -> Result<()> {
    busy()?;
    cuda::stream(stream, || {
        busy()?;
        Tensor::zeros((&[1000], gpu()))?.add(1.0)
    })?;
    cuda::synchronize()
}

/// One of two streams uses what the other computes late. Returns the value that it reads.
fn handed_over(order: impl FnOnce(&Stream, &Stream) -> Result<()>) -> Result<f64> {
    let (maker, user) = (cuda::default_stream(gpu())?, Stream::new(gpu())?);
    let x = Tensor::zeros((&[1000], gpu()))?;
    warm(&user)?;
    let _work = busy()?;
    x.fill_(1.0)?;
    order(&maker, &user)?;
    let y = cuda::stream(&user, || x.add(0.0))?;
    cuda::synchronize()?;
    y.sum()?.item()
}

#[test]
fn without_an_event_a_stream_finds_what_was_there_before() -> Result<()> {
    let seen = || on("sim:t4", || handed_over(|_, _| Ok(())));
    assert_eq!(seen()?, 0.0, "the other stream has not come to it yet");
    assert_eq!(seen()?, 0.0, "a race that comes out the same way every time");
    Ok(())
}

#[test]
fn every_way_to_wait_makes_order() -> Result<()> {
    let ways: [fn(&Stream, &Stream) -> Result<()>; 8] = [
        |maker, user| user.wait_stream(maker),
        |maker, user| user.wait_event(&maker.record_event()?),
        |maker, user| maker.record_event()?.wait_on(user),
        |_, user| {
            let event = timed();
            event.record()?;
            cuda::stream(user, || event.wait())
        },
        |maker, _| maker.synchronize(),
        |maker, _| maker.record_event()?.synchronize(),
        |_, _| cuda::synchronize(),
        |maker, _| {
            while !maker.query()? {}
            Ok(())
        },
    ];
    each_case(ways.into_iter().enumerate(), |(way, wait)| -> Result<()> {
        assert_eq!(on("sim:t4", || handed_over(wait))?, 1000.0, "way {way}");
        Ok(())
    });
    Ok(())
}

#[test]
fn an_event_that_recorded_nothing_is_waited_for_by_nobody() -> Result<()> {
    let way = |_: &Stream, user: &Stream| user.wait_event(&Event::new(EventOptions::default()));
    assert_eq!(on("sim:t4", || handed_over(way))?, 0.0);
    on("sim:t4", || {
        let event = timed();
        event.synchronize()?;
        assert!(event.query()?);
        Ok(())
    })
}

#[test]
fn an_event_stands_for_its_last_record_at_the_time_of_the_wait() -> Result<()> {
    let before = |maker: &Stream, user: &Stream| {
        let event = Event::new(EventOptions::default());
        event.record_on(user)?;
        user.wait_event(&event)?; // It marks the position of `user` itself.
        event.record_on(maker)
    };
    assert_eq!(on("sim:t4", || handed_over(before))?, 0.0);
    let after = |maker: &Stream, user: &Stream| {
        let event = Event::new(EventOptions::default());
        event.record_on(user)?;
        event.record_on(maker)?;
        user.wait_event(&event)
    };
    assert_eq!(on("sim:t4", || handed_over(after))?, 1000.0);
    Ok(())
}

#[test]
fn the_host_waits_for_a_stream_and_not_for_its_neighbours() -> Result<()> {
    on("sim:t4", || {
        let (quick, slow) = (Stream::new(gpu())?, Stream::new(gpu())?);
        let x = cuda::stream(&quick, || Tensor::ones((&[10], gpu())))?;
        let _work = cuda::stream(&slow, busy)?;
        quick.synchronize()?;
        assert!(quick.query()? && !slow.query()?);
        slow.synchronize()?;
        assert!(slow.query()?);
        assert_eq!(x.sum()?.item()?, 10.0);
        Ok(())
    })
}

#[test]
fn waits_reach_across_devices_and_records_do_not() -> Result<()> {
    on("sim:t4x2", || {
        let event = timed();
        event.record()?;
        let other = cuda::default_stream(Device::cuda(1))?;
        other.wait_event(&event)?;
        assert_eq!(
            text(event.record_on(&other)),
            "Event device 0 does not match recording stream's device 1."
        );
        event.record()?;
        event.synchronize()
    })
}

// Time.

#[test]
fn events_measure_the_time_of_the_device() -> Result<()> {
    on("sim:t4", || {
        busy()?.sum()?.item()?; // Warm up: memory is allocated.
        let machine = Machine::current();
        let (elapsed, trace) = machine.profile(|| {
            let (start, end) = (timed(), timed());
            start.record()?;
            let _work = busy()?;
            end.record()?;
            end.synchronize()?;
            assert_eq!(start.elapsed_time(&start)?, 0.0);
            assert_eq!(end.elapsed_time(&start)?, -start.elapsed_time(&end)?);
            start.elapsed_time(&end)
        });
        let (elapsed, computed) = (Duration::from_secs_f64(elapsed? / 1e3), trace.compute_time(0));
        assert!(
            computed <= elapsed && elapsed < computed + Duration::from_micros(30),
            "{elapsed:?} {computed:?}"
        );
        each_case(["cudaEventRecord", "cudaEventSynchronize"], |name| {
            assert!(trace.calls.iter().any(|call| call.kind.call() == name), "{name}");
        });
        Ok(())
    })
}

#[test]
fn times_that_are_not_there_are_refused_in_pytorchs_words() -> Result<()> {
    on("sim:t4", || {
        let (a, b, plain) = (timed(), timed(), Event::new(EventOptions::default()));
        let timing = "Both events must be created with argument 'enable_timing=True'.";
        assert_eq!([text(a.elapsed_time(&plain)), text(plain.elapsed_time(&a))], [timing; 2]);
        let recorded = "Both events must be recorded before calculating elapsed time.";
        assert_eq!(text(a.elapsed_time(&b)), recorded);
        a.record()?;
        assert_eq!([text(a.elapsed_time(&b)), text(b.elapsed_time(&a))], [recorded; 2]);
        let _work = busy()?;
        b.record()?;
        assert!(!b.query()?);
        assert_eq!(
            text(a.elapsed_time(&b)),
            "Both events must be completed before calculating elapsed time."
        );
        b.synchronize()?;
        assert!(b.query()? && a.elapsed_time(&b)? > 1.0);
        Ok(())
    })
}

// Memory.

/// Drops a tensor that another stream uses late, and reuses its memory.
fn dropped_early(record: bool) -> Result<f64> {
    let side = Stream::new(gpu())?;
    warm(&side)?;
    let x = Tensor::ones((&[1000], gpu()))?;
    side.wait_stream(&cuda::current_stream(gpu())?)?;
    let y = cuda::stream(&side, || {
        let _work = busy()?;
        x.add(0.0)
    })?;
    if record {
        x.record_stream(&side)?;
    }
    drop(x);
    let _other = full(&[1000], 7.0, gpu())?;
    cuda::synchronize()?;
    y.sum()?.item()
}

#[test]
fn memory_goes_back_to_its_own_stream_which_knows_nothing_of_others() -> Result<()> {
    assert_eq!(on("sim:t4", || dropped_early(false))?, 7000.0, "it was overwritten before it was read");
    assert_eq!(on("sim:t4", || dropped_early(true))?, 1000.0);
    Ok(())
}

/// Several threads drop tensors that a stream still uses, in any order. Returns the stream's results, the time at the
/// end, and the log of the recording.
fn dropped_elsewhere() -> Result<(Vec<f64>, Duration, String)> {
    let machine = Machine::current();
    let side = Stream::new(gpu())?;
    warm(&side)?;
    let used = (0..4).map(|_| Tensor::ones((&[1000], gpu()))).collect::<Result<Vec<_>>>()?;
    side.wait_stream(&cuda::current_stream(gpu())?)?;
    let sums = cuda::stream(&side, || {
        let _work = busy()?;
        used.iter().map(|x| x.add(0.0)?.sum()).collect::<Result<Vec<_>>>()
    })?;
    used.iter().try_for_each(|x| x.record_stream(&side))?;

    machine.start_trace();
    let (start, allocated) = (Instant::now(), cuda::memory_allocated());
    let threads: Vec<_> = used.into_iter().map(|x| std::thread::spawn(move || drop(x))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(start.elapsed(), Duration::ZERO, "the thread of the GPU did nothing");
    assert_eq!(allocated - cuda::memory_allocated(), 4 * 4096);

    let others = (0..4).map(|_| full(&[1000], 7.0, gpu())).collect::<Result<Vec<_>>>()?;
    cuda::synchronize()?;
    let sums = sums.iter().map(Tensor::item).collect::<Result<Vec<f64>>>()?;
    // The stream is done, and the memory is available again.
    drop(others);
    cuda::empty_cache()?;
    let awaiting = |block: &MemoryBlock| block.state == BlockState::ActiveAwaitingFree;
    assert!(!cuda::memory_snapshot().iter().flat_map(|segment| &segment.blocks).any(awaiting));
    assert_eq!(machine.races().len(), 0);
    let mut trace = machine.trace();
    for call in &mut trace.calls {
        // The order in which blocks are freed depends on the threads.
        if let EventKind::Allocate { address, .. }
        | EventKind::Free { address, .. }
        | EventKind::FreeCompleted { address } = &mut call.kind
        {
            *address = 0;
        }
    }
    Ok((sums, start.elapsed(), format!("{trace:?}")))
}

#[test]
fn memory_that_other_threads_drop_waits_for_its_streams_and_the_same_way_every_time() -> Result<()> {
    let (sums, time, trace) = on("sim:t4", dropped_elsewhere)?;
    assert_eq!(sums, [1000.0; 4]);
    for _ in 0..5 {
        assert_eq!(on("sim:t4", dropped_elsewhere)?, (sums.clone(), time, trace.clone()));
    }
    Ok(())
}

#[test]
fn memory_of_one_stream_is_not_given_to_another() -> Result<()> {
    on("sim:t4", || {
        drop(Tensor::ones((&[1 << 20], gpu()))?);
        let reserved = cuda::memory_reserved();
        drop(Tensor::ones((&[1 << 20], gpu()))?);
        assert_eq!(cuda::memory_reserved(), reserved);
        let side = Stream::new(gpu())?;
        drop(cuda::stream(&side, || Tensor::ones((&[1 << 20], gpu())))?);
        assert_eq!(cuda::memory_reserved(), 2 * reserved);
        assert_eq!(cuda::memory_allocated(), 0);
        Ok(())
    })
}

#[test]
fn each_stream_that_multiplies_has_a_workspace() -> Result<()> {
    on("sim:t4", || {
        let multiply = || {
            let x = Tensor::ones((&[4, 4], gpu()))?;
            x.matmul(&x).map(drop)
        };
        multiply()?;
        multiply()?;
        assert_eq!(cuda::memory_allocated(), 8_519_680);
        cuda::stream(&Stream::new(gpu())?, multiply)?;
        assert_eq!(cuda::memory_allocated(), 2 * 8_519_680);
        Ok(())
    })
}

#[test]
fn what_is_of_no_stream_is_not_recorded() -> Result<()> {
    on("sim:t4", || {
        let stream = Stream::new(gpu())?;
        let refused = text(Tensor::ones(&[3])?.record_stream(&stream));
        assert!(
            refused.starts_with("Could not run 'aten::record_stream' with arguments from the 'CPU' backend")
        );
        Tensor::ones((&[0], gpu()))?.record_stream(&stream)?;
        let x = Tensor::ones((&[3], gpu()))?;
        x.record_stream(&cuda::default_stream(gpu())?)?;
        x.record_stream(&stream)?;
        x.record_stream(&stream)
    })
}

// Copies.

#[test]
fn copies_between_cards_wait_for_both_current_streams() -> Result<()> {
    each_case(["sim:t4x2", "sim:h200x2"], |gpus| -> Result<()> {
        on(gpus, || {
            let second = Device::cuda(1);
            let (from, to) = (Stream::new(gpu())?, Stream::new(second)?);
            let y = cuda::stream(&from, || {
                let x = Tensor::zeros((&[1000], gpu()))?;
                let _work = busy()?;
                x.fill_(3.0)?;
                cuda::stream(&to, || x.to(second)?.add(1.0))
            })?;
            to.synchronize()?;
            assert_eq!(cuda::stream(&to, || y.sum()?.item())?, 4000.0, "{gpus}");
            Ok::<(), Error>(())
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn reading_waits_for_the_current_stream_only() -> Result<()> {
    on("sim:t4", || {
        let side = Stream::new(gpu())?;
        let x = Tensor::zeros((&[10], gpu()))?;
        cuda::synchronize()?;
        cuda::stream(&side, || {
            let _work = busy()?;
            x.fill_(1.0)
        })?;
        assert_eq!(x.sum()?.item()?, 0.0, "read on the default stream, which waits for nothing");
        assert_eq!(cuda::stream(&side, || x.sum()?.item())?, 10.0);
        Ok(())
    })
}

// Gradients.

/// The gradients of two layers that run on the streams `first` and `second`.
fn gradients(first: Option<&Stream>, second: Option<&Stream>) -> Result<Vec<Vec<f32>>> {
    let run = |stream: Option<&Stream>, x: &Tensor, w: &Tensor| {
        let Some(stream) = stream else { return x.matmul(w)?.tanh() };
        stream.wait_stream(&cuda::current_stream(gpu())?)?;
        let y = cuda::stream(stream, || {
            let _work = busy()?; // So that a missing wait shows up.
            x.matmul(w)?.tanh()
        })?;
        cuda::current_stream(gpu())?.wait_stream(stream)?;
        [x, w].into_iter().filter(|used| used.is_cuda()).try_for_each(|used| used.record_stream(stream))?;
        y.record_stream(&cuda::current_stream(gpu())?)?;
        Ok(y)
    };
    manual_seed(3);
    let to = |x: Tensor| x.to(gpu())?.requires_grad_(true);
    let (x, w, v) =
        (to(Tensor::randn(&[8, 16])?)?, to(Tensor::randn(&[16, 16])?)?, to(Tensor::randn(&[16, 4])?)?);
    let hidden = run(first, &x, &w)?;
    let out = run(second, &hidden, &v)?;
    // Two uses of one tensor, whose gradients are summed.
    ((out.sum()? + hidden.square()?.sum()?)? + w.sum()?)?.backward()?;
    [x, w, v].iter().map(|leaf| leaf.grad().expect("a gradient").to_vec::<f32>()).collect()
}

#[test]
fn gradients_are_the_same_on_any_streams() -> Result<()> {
    let plain = on("sim:t4", || gradients(None, None))?;
    on("sim:t4", || {
        let (a, b) = (Stream::new(gpu())?, Stream::new(gpu())?);
        each_case(
            [
                (Some(&a), None),
                (None, Some(&b)),
                (Some(&a), Some(&b)),
                (Some(&b), Some(&a)),
                (Some(&a), Some(&a)),
            ],
            |(first, second)| -> Result<()> {
                assert_eq!(gradients(first, second)?, plain);
                Ok(())
            },
        );
        // Backward on a different stream than forward.
        assert_eq!(cuda::stream(&b, || gradients(Some(&a), None))?, plain);
        Ok(())
    })
}

#[test]
fn a_backward_runs_on_the_stream_of_its_forward() -> Result<()> {
    on("sim:t4", || {
        let side = Stream::new(gpu())?;
        let x = Tensor::ones((&[4], gpu()))?.requires_grad_(true)?;
        side.wait_stream(&cuda::current_stream(gpu())?)?;
        let y = cuda::stream(&side, || x.exp()?.sum())?;
        cuda::synchronize()?;
        let (done, trace) = Machine::current().profile(|| y.backward());
        done?;
        let product = trace.work.iter().find(|work| work.call.kind.name() == "mul_f32");
        assert_eq!(product.map(|work| work.span.stream.number), Some(1), "{trace:?}");
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1f32.exp(); 4]);
        Ok(())
    })
}

/// The caller's stream waits for it once at the end, not for each leaf.
#[test]
fn a_gradient_is_collected_on_the_stream_of_the_first_use() -> Result<()> {
    on("sim:t4", || {
        let side = Stream::new(gpu())?;
        let [x, w] = [3.0, 5.0].map(|value| full(&[4], value, gpu()).and_then(|x| x.requires_grad_(true)));
        let (x, w) = (x?, w?);
        let streams = Arc::new(Mutex::new(Vec::new()));
        for leaf in [&x, &w] {
            let streams = streams.clone();
            leaf.register_post_accumulate_grad_hook(move |_| {
                streams.lock().unwrap().push(cuda::current_stream(gpu())?);
                Ok(())
            })?;
        }
        side.wait_stream(&cuda::current_stream(gpu())?)?;
        let y = cuda::stream(&side, || x.mul(&w)?.sum())?;
        cuda::synchronize()?;
        let (done, trace) = Machine::current().profile(|| y.backward());
        done?;
        assert_eq!(*streams.lock().unwrap(), [side.clone(), side.clone()]);
        let waits = trace.calls.iter().filter(|call| call.kind.call() == "cudaStreamWaitEvent").count();
        assert_eq!(waits, 2, "there and back: {trace:?}");
        assert_eq!(
            [x.grad(), w.grad()].map(|grad| grad.unwrap().to_vec::<f32>().unwrap()),
            [[5.0; 4], [3.0; 4]]
        );
        Ok(())
    })
}

#[test]
fn a_model_on_two_cards_and_two_streams_learns_as_on_one() -> Result<()> {
    let train = |devices: [Device; 2], streams: Option<[Stream; 2]>| -> Result<Vec<f64>> {
        manual_seed(0);
        let (first, second) = (nn::Linear::new(4, 8)?, nn::Linear::new(8, 1)?);
        first.to(devices[0])?;
        second.to(devices[1])?;
        let parameters = [first.parameters(), second.parameters()].concat();
        let mut optimizer = optim::SGD::new(parameters, SGDOptions { lr: 0.1, ..Default::default() })?;
        let (x, y) = (Tensor::randn(&[16, 4])?.to(devices[0])?, Tensor::randn(&[16, 1])?.to(devices[1])?);
        let mut step = || {
            let hidden = first.forward(&x)?.relu()?.to(devices[1])?;
            let loss = second.forward(&hidden)?.mse_loss(&y, Reduction::Mean)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            loss.item()
        };
        (0..5)
            .map(|_| match &streams {
                None => step(),
                Some([a, b]) => {
                    a.wait_stream(&cuda::default_stream(devices[0])?)?;
                    b.wait_stream(&cuda::default_stream(devices[1])?)?;
                    cuda::stream(a, || cuda::stream(b, &mut step))
                }
            })
            .collect()
    };
    let plain = on("sim:t4", || train([gpu(), gpu()], None))?;
    on("sim:h200x2", || {
        let devices = [gpu(), Device::cuda(1)];
        assert_eq!(train(devices, None)?, plain);
        assert_eq!(train(devices, Some([Stream::new(devices[0])?, Stream::new(devices[1])?]))?, plain);
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

/// A program of operations on a few tensors, each on a random stream, with events wherever one stream uses another's
/// result. Returns the final tensors.
fn program(seed: u64, streams: &[Stream], device: Device) -> Result<Vec<Vec<f32>>> {
    let mut dice = Dice(seed);
    let size = [8, 1000, 200_000][dice.below(3)];
    let start = |value: f64| full(&[size], value, device);
    let mut tensors: Vec<(Tensor, usize)> = vec![(start(1.0)?, 0), (start(2.0)?, 0), (start(3.0)?, 0)];
    for step in 0..40 {
        let (turn, i, j, k) = (dice.below(streams.len().max(1)), dice.below(3), dice.below(3), dice.below(3));
        let kind = dice.below(4);
        let x = [tensors[i].clone(), tensors[j].clone()];
        let compute = || match kind {
            0 => x[0].0.add(&x[1].0)?.mul(0.5),
            1 => x[0].0.sub(&x[1].0)?.tanh(),
            2 => x[0].0.mul_(0.75),
            _ => x[0].0.add(&full(&[size], step as f64, device)?)?.sin(),
        };
        let Some(stream) = streams.get(turn) else {
            tensors[k] = (compute()?, 0);
            continue;
        };
        for other in streams {
            // In-place writes wait for all streams that may still read.
            if kind == 2 || x.iter().any(|(_, owner)| streams[*owner] == *other) {
                stream.wait_stream(other)?;
            }
        }
        let result = cuda::stream(stream, compute)?;
        for (tensor, _) in &x {
            tensor.record_stream(stream)?;
        }
        tensors[k] = (result, turn);
        if kind == 2 {
            // The other streams may read the result only after this one.
            for tensor in &mut tensors {
                if tensor.0.shares_storage(&x[0].0) {
                    tensor.1 = turn;
                }
            }
        }
    }
    if device.is_cuda() {
        cuda::synchronize()?;
    }
    tensors.iter().map(|(tensor, _)| tensor.to(ToOptions::from(Device::Cpu))?.to_vec::<f32>()).collect()
}

#[test]
fn programs_with_events_compute_what_they_compute_without_streams() -> Result<()> {
    for seed in 0..60 {
        let plain = on("none", || program(seed, &[], Device::Cpu))?;
        // The machine's seed varies all durations.
        for gpus in ["sim:t4".to_string(), format!("sim:h200,seed={seed}")] {
            on(&gpus, || {
                assert_eq!(program(seed, &[], gpu())?, plain, "program {seed}");
                let mut streams = vec![cuda::default_stream(gpu())?];
                for _ in 0..seed % 4 {
                    streams.push(Stream::new(gpu())?);
                }
                assert_eq!(program(seed, &streams, gpu())?, plain, "program {seed} on {gpus}, {streams:?}");
                assert_eq!(cuda::memory_allocated(), 0, "nothing is left");
                Ok::<(), Error>(())
            })?;
        }
    }
    Ok(())
}
