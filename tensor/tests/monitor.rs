//! Monitoring of simulated machines.

use crate::each_case::each_case;
use std::time::Duration;

use todevice::data::{DataLoader, DataLoaderOptions, Dataset};
use todevice::monitor::{self, Host, ProcessKind};
use todevice::time::{Instant, sleep};
use todevice::{Device, Machine, Result, Tensor, ToOptions, cuda};

fn on<R>(gpus: &str, scope: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(scope).unwrap()
}

/// Repeats work until it fills the monitor's whole sampling period.
fn for_a_period(mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() <= monitor::sample_period() {
        work()?;
    }
    Ok(())
}

fn pause() {
    sleep(monitor::sample_period());
}

#[test]
fn looking_takes_no_time_and_makes_no_context() {
    on("sim:t4,others=1GiB", || {
        let start = Instant::now();
        let gpu = monitor::gpu(0)?;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!((gpu.memory_used, gpu.performance_state), (1 << 30, Some(8)));
        assert_eq!(gpu.processes.len(), 1);
        assert_eq!(gpu.processes[0].kind, ProcessKind::Both);

        let made = Instant::now();
        cuda::synchronize()?;
        assert!(made.elapsed() > Duration::from_millis(100), "the context is made only now");
        let used = monitor::gpu(0)?;
        assert!(used.memory_used > gpu.memory_used && used.power_draw > gpu.power_draw);
        assert_eq!(used.performance_state, Some(0));
        Ok(())
    });
}

#[test]
fn utilization_is_the_share_of_the_period_in_which_kernels_ran() {
    on("sim:t4", || {
        let x = Tensor::ones((&[1024, 1024], Device::cuda(0)))?;
        x.matmul(&x)?;
        cuda::synchronize()?;
        pause();
        assert_eq!(cuda::utilization()?, 0);

        let (one, trace) = Machine::current().profile(|| x.matmul(&x));
        drop(one?);
        let share = trace.compute_time(0).as_secs_f64() / monitor::sample_period().as_secs_f64();
        assert_eq!(f64::from(cuda::utilization()?), (100.0 * share).round());

        // Unfinished work counts in proportion to its progress.
        pause();
        x.matmul(&x)?;
        sleep(Duration::from_micros(100));
        let begun = cuda::utilization()?;
        assert!((1..=3).contains(&begun), "{begun}");
        cuda::synchronize()?;
        assert!(cuda::utilization()? > begun);
        Ok(())
    });
}

#[test]
fn what_is_queued_but_has_not_run_does_not_count() {
    on("sim:t4", || {
        let x = Tensor::ones((&[1024, 1024], Device::cuda(0)))?;
        cuda::synchronize()?;
        pause();
        for _ in 0..100 {
            x.matmul(&x)?;
        }
        let early = cuda::utilization()?;
        cuda::synchronize()?;
        assert!(early < 20 && cuda::utilization()? > 95, "{early}");
        Ok(())
    });
}

#[test]
fn one_block_of_threads_keeps_a_gpu_busy_and_empty() {
    on("sim:t4", || {
        let row = Tensor::ones((&[1, 65536], Device::cuda(0)))?;
        cuda::synchronize()?;
        pause();
        for_a_period(|| row.argmax(1, false).map(drop))?;
        let gpu = monitor::gpu(0)?;
        assert!(gpu.utilization >= Some(95), "{gpu:?}");
        assert_eq!((gpu.sm_active, gpu.sm_occupancy), (Some(2), Some(1)), "1 of 40 multiprocessors");

        let large = Tensor::ones((&[1 << 22], Device::cuda(0)))?;
        for_a_period(|| large.tanh().map(drop))?;
        let full = monitor::gpu(0)?;
        assert!(full.sm_active >= Some(95) && full.sm_occupancy >= Some(95), "{full:?}");
        assert!(full.memory_utilization >= Some(95), "{full:?}");
        assert!(full.power_draw > gpu.power_draw && full.power_draw <= full.power_limit);
        Ok(())
    });
}

#[test]
fn bytes_over_the_bus_are_counted_each_way() {
    on("sim:t4", || {
        let host = Tensor::ones(&[1 << 18])?.pin_memory()?; // 1 MiB
        let there = host.to(Device::cuda(0))?;
        cuda::synchronize()?;
        pause();
        let to = ToOptions { device: Some(Device::cuda(0)), non_blocking: true, ..Default::default() };
        for _ in 0..3 {
            host.to(to)?;
        }
        cuda::synchronize()?;
        let gpu = monitor::gpu(0)?;
        let per_second = |mebibytes: u64| {
            Some((mebibytes << 20) * 1_000_000_000 / monitor::sample_period().as_nanos() as u64)
        };
        assert_eq!((gpu.pcie_to_device, gpu.pcie_to_host), (per_second(3), Some(0)));
        assert_eq!(gpu.utilization, Some(0), "a copy is no kernel");

        pause();
        there.to(Device::Cpu)?;
        let gpu = monitor::gpu(0)?;
        assert_eq!((gpu.pcie_to_device, gpu.pcie_to_host), (Some(0), per_second(1)));
        Ok(())
    });
}

#[test]
fn devices_are_watched_one_by_one() {
    on("sim:t4x2", || {
        let x = Tensor::ones((&[512, 512], Device::cuda(1)))?;
        for_a_period(|| x.matmul(&x).map(drop))?;
        assert_eq!(cuda::utilization()?, 0);
        assert!(cuda::device(1, cuda::utilization)?? > 90);
        assert_eq!((monitor::gpu(0)?.index, monitor::gpu(1)?.index), (0, 1));
        assert_eq!(monitor::gpu(0)?.memory_used, 0);
        let error = monitor::gpu(2).unwrap_err().to_string();
        assert!(error.starts_with("CUDA error: invalid device ordinal"), "{error}");
        Ok(())
    });
}

#[test]
fn torch_s_names_say_the_same() {
    on("sim:t4,others=1GiB", || {
        let x = Tensor::ones((&[512, 512], Device::cuda(0)))?;
        for_a_period(|| x.matmul(&x).map(drop))?;
        let gpu = monitor::gpu(0)?;
        assert_eq!(Some(cuda::utilization()?), gpu.utilization);
        assert_eq!(Some(cuda::memory_usage()?), gpu.memory_utilization);
        assert_eq!(Some(cuda::power_draw()?), gpu.power_draw);
        assert_eq!(cuda::device_memory_used()?, gpu.memory_used);
        let (free, total) = cuda::mem_get_info()?;
        assert_eq!(total - free, gpu.memory_used);
        assert_eq!(cuda::temperature().unwrap_err().to_string(), "temperature: unknown for this GPU");
        let text = cuda::list_gpu_processes()?;
        assert!(text.starts_with(
            "GPU:0\nprocess       2112 uses     1024.000 MB GPU memory\nprocess       4242 uses "
        ));
        Ok(())
    });
}

#[test]
fn without_a_gpu_there_is_the_host() {
    Machine::new().enter(|| {
        assert!(cuda::utilization().unwrap_err().to_string().starts_with("Found no NVIDIA driver"));
        assert!(cuda::list_gpu_processes().is_err() && monitor::gpu(0).is_err());

        let before = monitor::host();
        let mut sum = 0u64;
        while before.at.elapsed() < Duration::from_millis(100) {
            sum = std::hint::black_box(sum + 1);
        }
        let after = monitor::host();
        assert!(after.memory > Some(1 << 20) && after.memory < after.memory_total, "{after:?}");
        assert!(after.cpu_time > before.cpu_time, "{before:?} {after:?}");
        assert_eq!(after.cpu_usage_since(&after), None);
    });
}

/// Other tests start and end threads, so the two counts may be from different moments.
#[test]
#[cfg(target_os = "linux")]
fn threads_are_those_that_the_system_counts() {
    let of_system = || -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
        threads.trim().parse().unwrap()
    };
    let agree = || {
        let before = of_system();
        let found = monitor::host().threads.unwrap();
        (before == of_system()).then_some((found, before))
    };
    let (found, expected) = (0..1000).find_map(|_| agree()).expect("a quiet moment");
    assert_eq!(found, expected);
}

/// Samples that take some CPU time, and disk time.
struct Samples {
    sums: usize,
    disk: Duration,
}

impl Dataset for Samples {
    type Sample = Tensor;

    fn len(&self) -> usize {
        64
    }

    fn get(&self, _: usize) -> Result<Tensor> {
        sleep(self.disk);
        let mut x = Tensor::ones(&[64])?;
        for _ in 0..self.sums {
            x = (&x + 1.0)?;
        }
        Ok(x)
    }
}

/// The CPU utilization during the loading of an epoch, in percent of a core.
fn loading(samples: Samples, num_workers: usize) -> f64 {
    on("sim:t4", || {
        let loader =
            DataLoader::new(samples, DataLoaderOptions { batch_size: 8, num_workers, ..Default::default() })?;
        let before = monitor::host();
        loader.iter().try_for_each(|batch| batch.map(drop))?;
        Ok(monitor::host().cpu_usage_since(&before).unwrap())
    })
}

#[test]
fn workers_are_seen_at_work_and_who_waits_for_them_is_not() {
    let cpu_bound = |num_workers| loading(Samples { sums: 1000, disk: Duration::ZERO }, num_workers);
    assert_eq!(cpu_bound(0).round(), 100.0);
    // Starting them one after another takes the caller some time.
    each_case([(1, 100.0), (2, 200.0), (4, 400.0)], |(workers, expected)| {
        let found = cpu_bound(workers);
        assert!((found - expected).abs() < 0.015 * expected, "{workers}: {found}");
    });

    let disk_bound = |num_workers| loading(Samples { sums: 1, disk: Duration::from_millis(1) }, num_workers);
    assert!(disk_bound(0) < 1.0 && disk_bound(4) < 4.0, "who waits for a disk has no core");
}

#[test]
fn waiting_for_a_gpu_is_as_busy_as_work() {
    let usage = |before: Host| monitor::host().cpu_usage_since(&before).unwrap();
    on("sim:t4", || {
        let x = Tensor::ones((&[1024, 1024], Device::cuda(0)))?;
        x.matmul(&x)?;
        let before = monitor::host();
        cuda::synchronize()?;
        assert_eq!(usage(before), 100.0);
        let before = monitor::host();
        sleep(Duration::from_millis(1));
        assert_eq!(usage(before), 0.0);
        let (large, before) = (Tensor::ones(&[1024, 1024])?, monitor::host());
        large.matmul(&large)?;
        assert!(usage(before) > 700.0, "a large product is shared among 8 cores");
        Ok(())
    });
}
