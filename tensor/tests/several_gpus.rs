//! Several GPUs of one machine: visibility, connections, and copies between them.

use crate::each_case::each_case;
use todevice::monitor::{self, Link};
use todevice::parallel::DataParallel;
use todevice::prelude::*;
use todevice::trace::{CopyKind, EventKind, Trace, TracedWork};
use todevice::{GpuError, GpuSpec, Machine, RaceCheck, ToOptions, cuda, distributed};

fn machine(gpus: &str) -> Machine {
    gpus.parse().unwrap()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_owned(), |error| error.to_string())
}

// Visible GPUs.

#[test]
fn visible_devices_are_counted_anew_in_the_order_of_the_list() -> Result<()> {
    machine("sim:t4x4,mem=1GiB").with_visible_devices("3,1")?.enter(|| {
        assert_eq!(
            (cuda::device_count(), Machine::current().to_string().as_str()),
            (2, "2 x Tesla T4 (simulated)")
        );
        assert_eq!(cuda::get_device_properties(1)?.total_memory, 1 << 30, "they are the same GPUs else");
        assert_eq!(text(cuda::get_device_properties(2)), "Invalid device id");
        assert!(text(cuda::set_device(2)).starts_with("CUDA error: invalid device ordinal"));
        assert!(
            text(Tensor::zeros((&[1], Device::cuda(3)))).starts_with("CUDA error: invalid device ordinal")
        );
        let x = Tensor::ones((&[1], Device::cuda(1)))?;
        assert_eq!((x.device().to_string().as_str(), monitor::gpu(1)?.index), ("cuda:1", 1));
        let model = DataParallel::new(nn::Linear::new(3, 1)?)?;
        model.to(Device::cuda(0))?;
        model.forward(&Tensor::ones(&[4, 3])?)?.sum()?.backward()?;
        assert!(cuda::device(1, cuda::max_memory_allocated)? > 1024, "it took its part");
        assert_eq!(monitor::topology()?.gpu_count(), 4, "nvidia-smi sees all");
        // A rank is a process with the same environment.
        assert_eq!(distributed::spawn(2, |_| Ok(cuda::device_count()))?, [2, 2]);
        Ok(())
    })
}

#[test]
fn where_all_are_hidden_there_is_no_gpu() -> Result<()> {
    let machine = machine("sim:t4x2").with_visible_devices("2,0")?;
    assert_eq!(machine.to_string(), "no GPU");
    machine.enter(|| {
        assert!(!cuda::is_available());
        assert_eq!((cuda::device_count(), Device::cuda_if_available()), (0, Device::Cpu));
        manual_seed(3);
        let x = Tensor::rand(&[2])?;
        let none = "No CUDA GPUs are available";
        assert_eq!(text(x.cuda()), none);
        assert_eq!(text(x.pin_memory()), none);
        assert_eq!(text(cuda::current_device()), none);
        assert_eq!(text(cuda::synchronize()), none);
        let refused = cuda::can_device_access_peer(0, 1).unwrap_err();
        assert!(matches!(refused.gpu(), Some(GpuError::NoGpus)), "{refused}");
        let model = DataParallel::new(nn::Linear::new(2, 1)?)?;
        assert!(!model.forward(&x.reshape(&[1, 2])?)?.is_cuda());
        Ok(())
    })
}

#[test]
fn what_is_visible_is_no_part_of_what_was_asked_for() {
    let seen = machine("sim:h200x8,seed=3").with_visible_devices("5").unwrap();
    assert_eq!(seen.gpus().to_string(), "sim:h200x8,seed=3");
    let again = seen.with_visible_devices("7,6").unwrap();
    assert_eq!(again.enter(cuda::device_count), 2, "numbers are those of all, not of what was visible");
    assert_eq!(Machine::new().with_visible_devices("0").unwrap().enter(cuda::device_count), 0);
}

/// A process has a single environment, so a child process changes its own.
#[test]
fn the_environment_is_asked_by_the_machine_for_people() {
    let seen = |list: &str| {
        let this = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "several_gpus::in_an_environment", "--ignored", "--nocapture"])
            .env("CUDA_VISIBLE_DEVICES", list)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&this.stdout).into_owned();
        assert!(this.status.success(), "{said}");
        said.lines().filter_map(|line| line.strip_prefix("seen: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(seen("1,0"), ["2", "4"]);
    assert_eq!(seen("0"), ["1", "CUDA_VISIBLE_DEVICES=0 lets programs see 1 of the 2 simulated GPUs", "4"]);
    assert_eq!(seen(""), ["0", "CUDA_VISIBLE_DEVICES= lets programs see 0 of the 2 simulated GPUs", "4"]);
}

#[test]
#[ignore = "run by the_environment_is_asked_by_the_machine_for_people"]
fn in_an_environment() {
    let machine = "sim:t4x2".parse::<GpuSpec>().unwrap().machine().unwrap();
    println!("\nseen: {}", machine.enter(cuda::device_count));
    machine.on_warning(|warning| println!("seen: {warning}"));
    println!("seen: {}", self::machine("sim:t4x4").enter(cuda::device_count)); // the same as tests do
}

// Connections.

#[test]
fn how_cards_are_connected_is_a_matter_of_the_profile() -> Result<()> {
    each_case(
        [
            ("sim:t4x2", Link::Pix, true),
            ("sim:rtx4090x2", Link::Phb, false),
            ("sim:h200x8", Link::Nv(18), true),
        ],
        |(gpus, link, peers)| -> Result<()> {
            machine(gpus).enter(|| {
                let topology = monitor::topology()?;
                assert_eq!(topology.gpu_count(), cuda::device_count());
                for (a, b) in
                    (0..topology.gpu_count()).flat_map(|a| (0..topology.gpu_count()).map(move |b| (a, b)))
                {
                    assert_eq!(topology.between(a, b), Some(if a == b { Link::X } else { link }));
                    assert_eq!(cuda::can_device_access_peer(a, b)?, peers && a != b, "{gpus}");
                }
                assert_eq!(text(cuda::can_device_access_peer(0, 9)), "Invalid peer device id");
                assert_eq!(text(cuda::can_device_access_peer(9, 0)), "Invalid device id");
                Ok::<_, Error>(())
            })?;
            Ok(())
        },
    );
    let alone = machine("sim:t4").enter(monitor::topology)?;
    assert_eq!(alone.to_string(), "        GPU0\nGPU0     X");
    assert!(text(Machine::new().enter(monitor::topology)).starts_with("Found no NVIDIA driver"));
    Ok(())
}

// Copies.

/// The device-to-device copies in a recording.
fn peer_copies(trace: &Trace) -> Vec<&TracedWork> {
    let is_peer = |work: &&TracedWork| matches!(work.call.kind, EventKind::Copy { kind: CopyKind::Peer, .. });
    trace.work.iter().filter(is_peer).collect()
}

/// The time from the start of the first to the end of the last piece of work, in nanoseconds.
fn time(work: &[&TracedWork]) -> u64 {
    work[work.len() - 1].span.end - work[0].span.start
}

#[test]
fn a_peer_copy_is_faster_than_one_by_hand_through_the_host() -> Result<()> {
    let elements: usize = 16 << 20; // 64 MiB
    let mut direct = Vec::new();
    each_case(["sim:t4x2", "sim:rtx4090x2", "sim:h200x2"], |gpus| -> Result<()> {
        let machine = machine(gpus);
        let (by_driver, by_hand) = machine.enter(|| {
            let x = Tensor::ones((&[elements], Device::cuda(0)))?;
            let pinned = Tensor::zeros(&[elements])?.pin_memory()?;
            let (y, by_driver) = machine.profile(|| x.to(Device::cuda(1)));
            let (z, by_hand) = machine.profile(|| {
                pinned.copy_(&x)?;
                pinned.to(Device::cuda(1))
            });
            assert_eq!((y?.sum()?.item()?, z?.sum()?.item()?), (elements as f64, elements as f64));
            Ok::<_, Error>((by_driver, by_hand))
        })?;
        let by_hand: Vec<&TracedWork> = by_hand.work.iter().collect();
        let copies = peer_copies(&by_driver);
        match gpus {
            // No peer access: the driver does what a program would do by hand, down and up, but without waiting in
            // between.
            "sim:rtx4090x2" => {
                assert_eq!((copies.len(), by_hand.len()), (2, 2));
                assert!(time(&copies) <= time(&by_hand), "{gpus}");
            }
            _ => {
                assert_eq!((copies.len(), by_hand.len()), (1, 2));
                assert!(3 * time(&copies) < 2 * time(&by_hand), "{gpus}");
                direct.push(time(&copies));
            }
        }
        Ok(())
    });
    assert!(direct[0] > 30 * direct[1], "PCI Express against NVLink: {direct:?}");
    Ok(())
}

#[test]
fn a_copy_between_gpus_synchronizes_both_by_itself() -> Result<()> {
    each_case(["sim:t4x2", "sim:rtx4090x2", "sim:h200x2"], |gpus| -> Result<()> {
        let machine = machine(gpus);
        machine.set_race_check(RaceCheck::Error);
        machine.enter(|| {
            let [x, other] = [0, 1].map(|gpu| Tensor::ones((&[512, 512], Device::cuda(gpu))));
            let (x, other) = (x?, other?);
            x.to(Device::cuda(1))?; // Enables peer access.
            cuda::synchronize()?;
            let before = machine.counters().synchronizations;
            let (result, trace) = machine.profile(|| {
                let on_source = x.matmul(&x)?;
                let on_target = other.matmul(&other)?;
                let there = on_source.to(Device::cuda(1))?;
                Ok::<_, Error>((there.add(&on_target)?, machine.counters().synchronizations))
            });
            let (sum, after) = result?;
            assert_eq!((sum.max()?.item()?, after), (1024.0, before), "{gpus}: nobody waited on the host");
            let of = |name: &str, gpu: usize| {
                let is = |work: &&TracedWork| work.call.kind.name() == name && work.span.stream.device == gpu;
                trace.work.iter().find(is).unwrap_or_else(|| panic!("{name} {gpu}: {trace:?}")).span
            };
            let copies = peer_copies(&trace);
            let (start, end) = (copies[0].span.start, copies[copies.len() - 1].span.end);
            assert!(of("gemm", 0).end <= start && of("gemm", 1).end <= start, "{gpus}: it waits for both");
            assert!(end <= of("add_f32", 1).start, "{gpus}: what comes after on the target waits");
            Ok::<_, Error>(())
        })?;
        assert_eq!(machine.races(), []);
        Ok(())
    });
    Ok(())
}

#[test]
fn two_gpus_work_at_once_and_the_host_asks_one_after_the_other() -> Result<()> {
    let machine = machine("sim:t4x2");
    machine.enter(|| {
        let both = [0, 1].map(|gpu| Tensor::ones((&[1024, 1024], Device::cuda(gpu))));
        let [a, b] = both;
        let (a, b) = (a?, b?);
        a.matmul(&a)?;
        b.matmul(&b)?; // Workspaces are allocated.
        cuda::device(0, || cuda::synchronize())??;
        cuda::device(1, || cuda::synchronize())??;
        let (_, trace) = machine.profile(|| [a.matmul(&a), b.matmul(&b)]);
        let [first, second] = &trace.work[..] else { panic!("{trace:?}") };
        let length = |work: &TracedWork| work.span.end - work.span.start;
        assert_eq!([first, second].map(|work| work.span.stream.device), [0, 1]);
        assert_eq!(length(first), length(second));
        assert!(first.call.end <= second.call.begin, "one launch after the other");
        let both_at_once = first.span.end.saturating_sub(second.span.start);
        assert!(10 * both_at_once > 9 * length(first), "{first:?} {second:?}");
        // On one GPU they would take turns.
        let (_, trace) = machine.profile(|| [a.matmul(&a), a.matmul(&a)]);
        assert!(trace.work[0].span.end <= trace.work[1].span.start);
        Ok(())
    })
}

#[test]
fn parts_of_pinned_memory_go_to_all_gpus_while_the_host_goes_on() -> Result<()> {
    let machine = machine("sim:t4x2");
    machine.enter(|| {
        let x = Tensor::ones(&[1 << 22])?.pin_memory()?;
        for gpu in 0..2 {
            x.narrow(0, 0, 1 << 21)?.to(Device::cuda(gpu))?;
        }
        let (parts, trace) = machine.profile(|| todevice::parallel::scatter(&x, 0, &[0, 1]));
        let [first, second] = &trace.work[..] else { panic!("{trace:?}") };
        assert!(second.span.start < first.span.end, "two copy engines");
        assert!(second.call.end < first.span.end, "the host was ahead");
        let options = ToOptions { device: Some(Device::Cpu), ..Default::default() };
        assert_eq!(parts?[1].to(options)?.sum()?.item()?, (1 << 21) as f64);
        Ok(())
    })
}
