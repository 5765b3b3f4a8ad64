//! The machine: its GPUs, its clock, and its memory.

use crate::each_case::each_case;
use std::time::Duration;

use todevice::errors::{MachineError, TensorError};
use todevice::monitor::Link;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{GpuSpec, Machine, RandomOptions, cuda, get_rng_state, parse_seed, set_rng_state};

fn on<R>(gpus: &str, test: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(test).unwrap()
}

#[test]
fn a_machine_is_what_its_name_says() {
    each_case(
        [
            ("none", 0, "no GPU"),
            ("sim", 1, "Tesla T4 (simulated)"),
            ("sim:t4x2", 2, "2 x Tesla T4 (simulated)"),
            ("sim:rtx4090,mem=1GiB,seed=7", 1, "NVIDIA GeForce RTX 4090 (simulated)"),
            ("sim:h200x16", 16, "16 x NVIDIA H200 (simulated)"),
            ("sim:t4x2,host=pytorch", 2, "2 x Tesla T4 (simulated), host: pytorch"),
            ("sim:t4,host=laptop", 1, "Tesla T4 (simulated)"),
        ],
        |(text, count, shown)| {
            let machine: Machine = text.parse().unwrap();
            assert_eq!(machine.to_string(), shown);
            assert_eq!(machine.enter(cuda::device_count), count);
            // Its description parses to the same machine.
            assert_eq!(machine.gpus().to_string().parse::<GpuSpec>().unwrap(), *machine.gpus());
        },
    );
    // A real GPU is not a simulated one; without one, the error says so.
    match "real".parse::<Machine>() {
        Ok(machine) => assert!(!machine.time_is_modelled()),
        Err(error) => assert!(error.to_string().starts_with("--gpu real: "), "{error}"),
    }
    let error = "sim:voodoo".parse::<Machine>().unwrap_err();
    assert!(error.to_string().contains("t4, rtx4090, h200"));
}

#[test]
fn what_describes_a_machine_a_seed_or_a_state_is_refused_with_an_error_of_the_crate() {
    fn described(text: &str) -> Result<Machine> {
        text.parse::<GpuSpec>()?.with_host("laptop")?.machine()?.with_visible_devices("0")
    }
    fn seeded(text: &str) -> Result<Generator> {
        Ok(Generator::new().manual_seed(parse_seed(text)?))
    }
    fn restored(state: &[u8]) -> Result<Generator> {
        let generator = Generator::new();
        generator.set_state(state)?;
        Ok(generator)
    }
    assert_eq!(described("sim:t4x2").unwrap().enter(cuda::device_count), 1);
    assert_eq!(seeded("7").unwrap().initial_seed(), 7);
    let state = Generator::new().get_state();
    assert_eq!(restored(&state).unwrap().get_state(), state);

    let refused = [
        (described("voodoo").err(), "ValueError", "expected auto | none | real | sim"),
        (described("sim:t4x99").err(), "ValueError", "after x, expected a whole number from 1 to 16"),
        (described("none").err(), "ValueError", "--gpu none measures time"),
        (
            "sim:t4,seed=x".parse::<Machine>().err(),
            "ValueError",
            "after seed=, expected a whole number from -",
        ),
        (seeded("x").err(), "ValueError", "expected a whole number from -9223372036854775808 to"),
        (restored(&[]).err(), "RuntimeError", "Expected a CPUGeneratorImplState of size 5056"),
        ("NV".parse::<Link>().map_err(Error::from).err(), "RuntimeError", "PIX, PXB, PHB"),
    ];
    each_case(refused, |(error, kind, text)| {
        let error = error.expect(text);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string(), "what `main` prints");
    });
    if let Err(error) = Machine::real() {
        assert!(matches!(error.refusal(), Some(MachineError::Unavailable(_))), "{error}");
        assert_eq!(error.kind(), "RuntimeError");
    }
}

#[test]
fn time_is_virtual_where_gpus_are_simulated() {
    let twice = [0, 1].map(|_| {
        on("sim:t4", || {
            assert!(Machine::current().time_is_modelled());
            let start = Instant::now();
            assert_eq!(start.elapsed(), Duration::ZERO, "looking at the clock takes no time");
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(start.elapsed(), Duration::ZERO, "real time is none of its business");
            let x = Tensor::randn(&[1000, 1000])?;
            let on_the_cpu = start.elapsed();
            assert!(on_the_cpu > Duration::from_micros(100), "{on_the_cpu:?}");
            x.to(Device::cuda(0))?.matmul(&x.to(Device::cuda(0))?)?;
            cuda::synchronize()?;
            Ok([on_the_cpu, start.elapsed()])
        })
    });
    assert_eq!(twice[0], twice[1], "the same every time");
    on("none", || {
        assert!(!Machine::current().time_is_modelled());
        let start = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(start.elapsed() >= Duration::from_millis(2));
        Ok(())
    });
}

/// The parts of a training step cost what the host's profile says, on any device.
#[test]
fn another_host_takes_its_own_time() {
    let file = std::env::temp_dir().join(format!("machine-test-{}.host", std::process::id()));
    let text = "like = laptop\ndispatch = 100\nbackward = 10000\nnode = 1000\nstep = 20000\nsgd_parameter = 3000\n\
                zero_grad = 50000\nrow = 700\n";
    std::fs::write(&file, text).unwrap();
    let spent = |gpus: &str| {
        on(gpus, || {
            let p = nn::Parameter::new(&Tensor::ones(&[1])?)?;
            let mut optimizer = optim::SGD::new(vec![p.clone()], optim::SGDOptions::default())?;
            let loader = DataLoader::new(
                TensorDataset::new([Tensor::ones(&[3, 1])?])?,
                DataLoaderOptions { batch_size: 3, ..Default::default() },
            )?;
            let start = std::cell::Cell::new(Instant::now());
            let since = || start.replace(Instant::now()).elapsed().as_micros();
            let loss = p.tensor().relu()?;
            let forward = since();
            loss.backward()?;
            let backward = since();
            optimizer.step()?;
            let step = since();
            optimizer.zero_grad();
            let zero_grad = since();
            loader.iter().next().transpose()?;
            Ok([forward, backward, step, zero_grad, since()])
        })
    };
    let [forward, backward, step, zero_grad, batch] = spent(&format!("sim:t4,host={}", file.display()));
    std::fs::remove_file(&file).unwrap();
    // Each includes an operation or a few of 100 µs.
    assert_eq!((forward, zero_grad), (100, 50_000));
    assert!((12_000..13_000).contains(&backward), "backward(), a node and a leaf: {backward}");
    assert!((23_100..23_200).contains(&step), "{step}");
    assert!((2_100..3_000).contains(&batch), "three rows: {batch}");

    let [lean, pytorch] = ["sim:t4", "sim:t4,host=pytorch"].map(|gpus| spent(gpus).iter().sum::<u128>());
    assert!(pytorch > 5 * lean, "{lean} and {pytorch} µs");
}

#[test]
fn a_launch_returns_before_the_kernel_has_run_and_a_read_waits_for_it() {
    on("sim:t4", || {
        let x = Tensor::rand((&[1 << 24], Device::cuda(0)))?;
        cuda::synchronize()?;
        let start = Instant::now();
        let y = x.exp()?;
        let launched = start.elapsed();
        cuda::synchronize()?;
        let done = start.elapsed();
        // 128 MB at 320 GB/s take at least 0.4 ms.
        assert!(launched < Duration::from_micros(150), "{launched:?}");
        assert!(done > Duration::from_micros(400), "{done:?}");
        let start = Instant::now();
        let z = y.add(1.0)?;
        z.select(0, 0)?.item()?;
        assert!(start.elapsed() > Duration::from_micros(400), "item() waits");
        Ok(())
    });
}

/// A dataset whose samples take work to make.
struct Slow;

impl Dataset for Slow {
    type Sample = Tensor;

    fn len(&self) -> usize {
        32
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        let x = Tensor::full(&[100_000], (index as f64, DType::F32))?;
        x.exp()?.sum()
    }
}

#[test]
fn workers_work_on_lanes_of_their_own() {
    let epoch = |num_workers| {
        on("sim:t4", || {
            let loader = DataLoader::new(
                Slow,
                DataLoaderOptions { batch_size: 4, num_workers, ..Default::default() },
            )?;
            let start = Instant::now();
            for batch in &loader {
                batch?;
            }
            Ok(start.elapsed())
        })
    };
    let [alone, one, two, four] = [0, 1, 2, 4].map(epoch);
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    // One worker does what the caller did, while the caller is idle.
    assert!((0.95..1.05).contains(&ratio(one, alone)), "{one:?} and {alone:?}");
    assert!((0.45..0.55).contains(&ratio(two, one)), "{two:?} and {one:?}");
    assert!((0.20..0.30).contains(&ratio(four, one)), "{four:?} and {one:?}");
    // However the threads were actually scheduled.
    assert_eq!((0..5).map(|_| epoch(3)).collect::<std::collections::HashSet<_>>().len(), 1);
}

#[test]
fn memory_is_counted_as_the_caching_allocator_counts_it() {
    on("sim:t4", || {
        let device = Device::cuda(0);
        assert_eq!((cuda::memory_allocated(), cuda::memory_reserved()), (0, 0));
        let x = Tensor::rand((&[300, 300, 300], device))?;
        assert_eq!(cuda::memory_allocated(), 108_000_256);
        assert_eq!(cuda::memory_reserved(), 109_051_904);
        drop(x);
        assert_eq!(cuda::memory_allocated(), 0);
        assert_eq!(cuda::memory_reserved(), 109_051_904, "kept for reuse");
        assert_eq!(cuda::max_memory_allocated(), 108_000_256);
        cuda::empty_cache()?;
        assert_eq!(cuda::memory_reserved(), 0);
        cuda::reset_peak_memory_stats();
        assert_eq!((cuda::max_memory_allocated(), cuda::max_memory_reserved()), (0, 0));
        let (free, total) = cuda::mem_get_info()?;
        assert!(free < total && total == cuda::get_device_properties(0)?.total_memory);
        Ok(())
    });
}

#[test]
fn the_first_product_takes_the_workspace_of_cublas() {
    each_case(
        [("sim:t4", 8_519_680), ("sim:rtx4090", 8_519_680), ("sim:h200", 33_554_432)],
        |(gpu, workspace)| -> Result<()> {
            on(gpu, || {
                let x = Tensor::zeros((&[4, 4], Device::cuda(0)))?;
                let before = cuda::memory_allocated();
                let y = x.matmul(&x)?;
                assert_eq!(cuda::memory_allocated(), before + workspace + 512, "{gpu}");
                drop((y, x.matmul(&x)?));
                assert_eq!(cuda::memory_allocated(), before + workspace, "{gpu}: once, and for good");
                Ok(())
            });
            Ok(())
        },
    );
}

#[test]
fn what_the_gpus_did_is_counted() {
    on("sim:t4x2", || {
        let machine = Machine::current();
        let x = Tensor::randn(&[8])?;
        let before = machine.counters();
        let y = x.to(Device::cuda(0))?;
        let z = y.to(Device::cuda(1))?;
        z.exp()?.item().unwrap_err();
        z.sum()?.item()?;
        cuda::synchronize()?;
        let counted = machine.counters() - before;
        assert_eq!((counted.copies_to_device, counted.bytes_to_device), (1, 32));
        assert_eq!((counted.copies_between_devices, counted.bytes_between_devices), (1, 32));
        assert_eq!((counted.copies_to_host, counted.bytes_to_host), (1, 4));
        assert_eq!((counted.launches, counted.synchronizations), (2, 1));
        assert_eq!((counted.allocations, counted.driver_mallocs), (4, 2));
        Ok(())
    });
    assert_eq!(on("none", || Ok(Machine::current().counters())), Default::default());
}

/// A single block for a long row would leave the other multiprocessors idle.
#[test]
fn a_long_sum_takes_two_launches_and_keeps_its_bits() {
    on("sim:t4", || {
        let device = Device::cuda(0);
        let machine = Machine::current();
        each_case(
            [
                (&[8_191][..], &[][..], 2), // 8 chunks, the last one short
                (&[7_000], &[], 1),
                (&[1 << 20], &[], 2),
                (&[3, 20_011], &[1], 2),
                (&[20_011, 3], &[0], 2),
                (&[2, 9_000, 3], &[1], 2),
                (&[1023, 8_192], &[1], 2),
                (&[1024, 8_192], &[1], 1), // enough blocks for every multiprocessor
            ],
            |(sizes, dims, launches)| -> Result<()> {
                let x = Tensor::randn(sizes)?;
                let on_device = x.to(device)?;
                let before = machine.counters();
                let sum = on_device.sum_dims(dims, false)?;
                assert_eq!((machine.counters() - before).launches, launches, "{sizes:?}");
                assert_eq!(bits(&sum)?, bits(&x.sum_dims(dims, false)?)?, "{sizes:?}");
                assert_eq!(bits(&on_device.amax(dims, true)?)?, bits(&x.amax(dims, true)?)?, "{sizes:?}");
                Ok(())
            },
        );
        let x = Tensor::zeros((&[1 << 24], device))?;
        x.sum()?;
        cuda::synchronize()?;
        let start = Instant::now();
        x.sum()?;
        cuda::synchronize()?;
        // 64 MB at 320 GB/s take 0.21 ms.
        let time = start.elapsed();
        assert!((210..350).contains(&time.as_micros()), "{time:?}");
        Ok(())
    });
}

fn bits(x: &Tensor) -> Result<Vec<u32>> {
    Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

#[test]
fn a_trace_has_all_the_work_however_long_it_was_and_however_often_it_is_asked_for() {
    on("sim:t4", || {
        let machine = Machine::current();
        let x = Tensor::ones(&[1])?.cuda()?;
        machine.start_trace();
        for _ in 0..270_000 {
            x.add_(0.0)?;
        }
        assert_eq!(machine.trace().work.len(), 270_000);
        assert_eq!(machine.trace().work.len(), 270_000);
        machine.start_trace();
        assert_eq!(machine.trace().work.len(), 0);
        Ok(())
    });
}

#[test]
fn what_is_made_on_a_device_is_not_copied_there() {
    on("sim:t4", || {
        let device = Device::cuda(0);
        let machine = Machine::current();
        let before = machine.counters();
        let made = [
            Tensor::zeros((&[3], device))?,
            Tensor::full(&[3], (2.5, device))?,
            Tensor::arange(0, 10, (3, device))?,
            Tensor::arange(9, -1, (-4, (device, DType::I64)))?,
            Tensor::linspace(0.0, 1.0, (7, device))?,
            Tensor::eye((3, device))?,
            Tensor::rand((&[3], device))?,
            Tensor::randn((&[3], device))?,
            Tensor::randint(0, 9, (&[3], (device, DType::I64)))?,
        ];
        assert!(made.iter().all(Tensor::is_cuda));
        let counted = machine.counters() - before;
        assert_eq!((counted.copies_to_device, counted.launches), (0, made.len() as u64));
        // Printing a tensor copies its bytes.
        let before = machine.counters();
        assert_eq!(made[1].to_string(), "tensor([2.5000, 2.5000, 2.5000], device='cuda:0')");
        let counted = machine.counters() - before;
        assert_eq!((counted.launches, counted.copies_to_host, counted.bytes_to_host), (0, 1, 12));
        Ok(())
    });
}

#[test]
fn a_machine_stops_a_program_that_does_not_end() {
    let steps: [(&str, fn(&Tensor) -> Result<()>); 7] = [
        ("add", |x| (x + 1.0).map(drop)),
        ("item", |x| x.item().map(drop)),
        ("item", |x| x.is_nonzero().map(drop)),
        ("tolist", |x| x.to_vec::<f32>().map(drop)),
        ("empty", |x| Tensor::empty((&[2], x.device())).map(drop)),
        ("tensor", |_| Tensor::from_slice(&[1.0f32], &[1]).map(drop)),
        ("tensor", |_| Tensor::new([1.0f32, 2.0]).map(drop)),
    ];
    each_case([("none", "cpu"), ("sim:t4", "cpu"), ("sim:t4", "cuda:0")], |(spec, device)| -> Result<()> {
        for (name, step) in steps {
            let machine: Machine = spec.parse().unwrap();
            machine.limit_operations(100);
            let mut done = 0;
            let ended = machine.enter(|| -> Result<()> {
                let x = Tensor::zeros((&[], device.parse::<Device>()?))?;
                while done < 1000 {
                    step(&x)?;
                    done += 1;
                }
                Ok(())
            });
            let error = ended.expect_err(name);
            let refusal = error.refusal();
            assert!(
                matches!(refusal, Some(TensorError::NoMoreOperations { operation }) if *operation == name),
                "{name}: {error}"
            );
            assert_eq!(done, 99, "{name} on {spec}: the first made `x`");
        }
        Ok(())
    });
}

fn machine_of(spec: &str) -> Machine {
    spec.parse().unwrap()
}

#[test]
fn a_seed_that_is_given_before_a_machine_is_entered_seeds_it() {
    // A new machine, because all tests share the generator of the process.
    Machine::new().enter(|| {
        each_case([("none", "cpu"), ("sim:t4x2", "cpu"), ("sim:t4x2", "cuda:1")], |(spec, device)| {
            let machine = || machine_of(spec);
            let draw = || {
                let (device, generator) = (device.parse::<Device>().unwrap(), None);
                Tensor::rand((&[4], RandomOptions { device, generator, ..Default::default() }))
                    .unwrap()
                    .to_vec::<f32>()
                    .unwrap()
            };
            let expected = machine().enter(|| {
                manual_seed(7);
                [draw(), draw()]
            });
            // The seed applies once: a machine that is entered again continues.
            for again in [machine(), machine()] {
                manual_seed(7);
                assert_eq!([again.enter(draw), again.enter(draw)], expected, "{spec} {device}");
                manual_seed(7);
                assert_eq!(again.enter(draw), expected[0], "{spec} {device}");
            }
            // Also for a machine inside another one, but not after the outer one has been left.
            let (outer, inner) = (machine(), machine());
            outer.enter(|| manual_seed(8));
            manual_seed(7);
            outer.enter(|| assert_eq!([inner.enter(draw), inner.enter(draw)], expected));
            outer.enter(|| manual_seed(8));
            assert_eq!(machine().enter(draw), expected[0]);
            // Numbers drawn since the seed stay drawn, and setting a state counts as seeding.
            if device == "cpu" {
                manual_seed(7);
                assert_eq!([draw(), machine_of(spec).enter(draw)], expected, "{spec}");
                manual_seed(7);
                let state = get_rng_state().unwrap();
                manual_seed(8);
                set_rng_state(&state).unwrap();
                assert_eq!(machine_of(spec).enter(draw), expected[0], "{spec}");
                Machine::default_generator().manual_seed(7);
                assert_eq!(machine_of(spec).enter(draw), expected[0], "{spec}");
            } else {
                cuda::manual_seed_all(7);
                assert_eq!(machine_of(spec).enter(draw), expected[0], "{spec}");
            }
            // A seed set inside the machine takes precedence.
            let machine = machine();
            manual_seed(8);
            machine.enter(|| manual_seed(7));
            assert_eq!(machine.enter(draw), expected[0]);
        });
    })
}
