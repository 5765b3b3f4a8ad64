//! Misconfigured simulated computers: a PyTorch build too old for the card, and a connection between GPUs that loses
//! bytes.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::distributed::{self as dist, Ranks, ReduceOp};
use todevice::prelude::*;
use todevice::{GpuSpec, Machine, cuda};

fn machine(text: &str) -> Machine {
    text.parse().unwrap()
}

/// Runs on a machine, and returns the warnings.
fn with_warnings<R>(gpus: &str, run: impl FnOnce() -> Result<R>) -> (R, Vec<String>) {
    let (machine, warnings) = (machine(gpus), Arc::new(Mutex::new(Vec::new())));
    let heard = warnings.clone();
    machine.on_warning(move |warning| heard.lock().unwrap().push(warning.to_owned()));
    let result = machine.enter(run).unwrap();
    let warnings = warnings.lock().unwrap().clone();
    (result, warnings)
}

#[test]
fn a_build_without_code_for_the_card_warns_at_the_first_use_and_refuses_kernels_only() {
    let ((), warnings) = with_warnings("sim:rtx5090x2,build=cu126", || {
        assert!(cuda::is_available());
        assert_eq!(cuda::get_arch_list().join(" "), "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90");
        assert_eq!(cuda::get_device_capability(0)?, (12, 0));
        let x = Tensor::randn(&[8, 8])?;
        let there = x.to(Device::cuda(0))?;
        assert!(there.cpu()?.equal(&x)?); // A copy needs no kernel.
        let weight = Tensor::ones(&[4, 8, 3, 3])?.to(Device::cuda(0))?;
        let image = Tensor::ones(&[1, 8, 5, 5])?.to(Device::cuda(0))?;
        let calls: [(&str, Result<Tensor>); 4] = [
            ("add", &there + 1.0),
            ("mm", there.mm(&there)),
            ("fill", Tensor::ones((&[3], Device::cuda(0)))),
            ("conv2d", image.conv2d(&weight, None)),
        ];
        each_case(calls, |(name, result)| {
            let error = result.unwrap_err().to_string();
            let first = error.lines().next().unwrap();
            assert_eq!(
                first, "CUDA error: no kernel image is available for execution on the device",
                "{name}"
            );
            assert!(error.contains("`cudaErrorNoKernelImageForDevice'"), "{name}: {error}");
        });
        // Nothing else breaks: the next copy works.
        assert!(there.cpu()?.equal(&x)?);
        cuda::synchronize()
    });
    let firsts: Vec<&str> = warnings.iter().map(|text| text.trim_start().lines().next().unwrap()).collect();
    let found = |index| {
        format!(
            "Found GPU{index} NVIDIA GeForce RTX 5090 (simulated) which is of compute capability (CC) 12.0."
        )
    };
    let incompatible = "NVIDIA GeForce RTX 5090 (simulated) with CUDA capability sm_120 is not compatible with the current PyTorch \
                        installation.";
    assert_eq!(firsts, [&found(0), &found(1), incompatible, incompatible], "once, in PyTorch's order");
}

#[test]
fn a_build_with_code_for_the_card_says_nothing() {
    each_case(
        [
            ("sim:rtx5090", "sm_120"),
            ("sim:t4x2", "sm_75"),
            ("none", ""),
            ("sim:rtx5090,build=cu130", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
            ("sim:rtx4090,build=cu126", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"),
        ],
        |(gpus, arch_list)| -> Result<()> {
            let (sum, warnings) = with_warnings(gpus, || {
                assert_eq!(cuda::get_arch_list().join(" "), arch_list, "{gpus}");
                Tensor::ones((&[3, 3], Device::cuda_if_available()))?.sum()?.item()
            });
            assert_eq!((sum, warnings.len()), (9.0, 0), "{gpus}");
            Ok(())
        },
    );
}

/// How many of `count` ones arrive on the second GPU, directly and through the host.
fn ones_that_arrive(gpus: &str, count: usize) -> [usize; 2] {
    machine(gpus).enter(|| {
        let x = Tensor::ones((&[count], Device::cuda(0))).unwrap();
        let ways = [x.to(Device::cuda(1)), x.cpu().and_then(|x| x.to(Device::cuda(1)))];
        ways.map(|there| there.unwrap().sum().unwrap().item().unwrap() as usize)
    })
}

#[test]
fn a_broken_way_between_gpus_loses_bytes_and_the_way_through_the_host_does_not() {
    each_case([1, 64, 1000, 1 << 18], |count| {
        for gpus in ["sim:t4x2,p2p=broken", "sim:h200x2,p2p=broken"] {
            let [straight, through_the_host] = ones_that_arrive(gpus, count);
            assert!(straight < count, "{gpus}: {straight} of {count}");
            assert_eq!(through_the_host, count, "{gpus}");
        }
        for gpus in ["sim:t4x2", "sim:t4x2,p2p=off", "sim:rtx4090x2"] {
            assert_eq!(ones_that_arrive(gpus, count), [count; 2], "{gpus}");
        }
    });
    let seeded = |seed| ones_that_arrive(&format!("sim:t4x2,seed={seed},p2p=broken"), 1 << 18)[0];
    assert_eq!(seeded(3), seeded(3));
    assert_ne!(seeded(3), seeded(4));
    let peers = |gpus| machine(gpus).enter(|| cuda::can_device_access_peer(0, 1).unwrap());
    assert_eq!(["sim:t4x2", "sim:t4x2,p2p=broken", "sim:t4x2,p2p=off"].map(peers), [true, true, false]);
}

/// The tensors of two ranks after an all-reduce of ones and twos.
fn sums(machine: &Machine) -> Vec<f64> {
    let run = || {
        let ranks = Ranks::new(2)?;
        let mut tensors = ranks.run(|rank| {
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let x = Tensor::full(&[1 << 16], (rank as f64 + 1.0, Device::cuda(rank)))?;
            dist::all_reduce(&x, ReduceOp::Sum)?;
            Ok(x)
        })?;
        ranks.run_each(&mut tensors, |_, x| x.mean()?.item())
    };
    machine.enter(run).unwrap()
}

#[test]
fn collectives_lose_bytes_too_unless_nccl_is_told_to_use_the_host() {
    let broken = machine("sim:t4x2,p2p=broken");
    let lost = sums(&broken);
    assert!(lost.iter().all(|sum| *sum < 3.0) && lost[0] != lost[1], "{lost:?}");
    let disabled = broken.with_nccl_p2p_disabled().unwrap();
    assert_eq!(sums(&disabled), [3.0; 2]);
    assert_eq!(sums(&machine("sim:t4x2,p2p=off")), [3.0; 2]);
    assert_eq!(sums(&machine("sim:t4x2").with_nccl_p2p_disabled().unwrap()), [3.0; 2]);
    // The variable is NCCL's: an ordinary copy still goes directly.
    disabled.enter(|| {
        let x = Tensor::ones((&[1000], Device::cuda(0))).unwrap();
        let there = x.to(Device::cuda(1)).unwrap();
        assert!(there.sum().unwrap().item().unwrap() < 1000.0);
    });
    // Through the host it takes longer.
    let time = |machine: &Machine| {
        machine.enter(|| {
            dist::collective_time(dist::CollectiveKind::AllReduce(ReduceOp::Sum), 1 << 20, 2).unwrap().total()
        })
    };
    assert!(time(&disabled) > time(&broken));
}

#[test]
fn each_rank_is_a_process_of_its_own_to_a_monitor() {
    let pids = machine("sim:t4x2").enter(|| {
        Ranks::new(2)?.run(|rank| {
            let _x = Tensor::ones((&[1], Device::cuda(rank)))?;
            Ok(todevice::monitor::gpu(rank)?.processes[0].pid)
        })
    });
    assert_eq!(pids.unwrap(), [4242, 4243]);
}

#[test]
fn builds_and_ways_are_read_as_they_are_written_and_refused_in_one_line() {
    each_case(
        ["sim:rtx5090,build=cu126", "sim:t4x2,p2p=broken", "sim:h200x8,seed=2,build=cu130,p2p=off"],
        |text| {
            assert_eq!(text.parse::<GpuSpec>().unwrap().to_string(), text);
        },
    );
    each_case(
        [
            ("sim:t4,build=cu99", "after build=, unknown build 'cu99', expected cu126 or cu130"),
            ("sim:t4,build=", "after build=, unknown build '', expected cu126 or cu130"),
            ("sim:t4,build=cu126,build=cu126", "build= occurs twice, expected it once"),
            ("sim:t4x2,p2p=slow", "after p2p=, expected broken or off, but got 'slow'"),
            ("sim:t4x2,p2p=", "after p2p=, expected broken or off, but got ''"),
            ("sim:t4x2,p2p=off,p2p=broken", "p2p= occurs twice, expected it once"),
            ("sim:t4,p2p=broken", "p2p=broken needs two GPUs, such as sim:t4x2,p2p=broken"),
            (
                "sim:rtx4090x2,p2p=off",
                "p2p=off needs cards that reach each other's memory, as t4 and h200 do; rtx4090 does not",
            ),
            ("none,p2p=off", "expected auto | none"),
        ],
        |(text, why)| {
            let error = text.parse::<Machine>().unwrap_err().to_string();
            assert!(error.starts_with(why) && error.lines().count() == 1, "{text}: {error}");
        },
    );
}
