use todevice::backends::cuda::matmul;
use todevice::cuda;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, ToOptions};

use super::how;
use super::timing::{
    Lines, busy, microseconds, on_device, on_host, rounds, shortest, side,
};

/// Measures `cuda:0` of the current machine, and returns a profile.
pub fn card() -> Result<String> {
    let device = Device::cuda(0);
    let properties = cuda::get_device_properties(0)?;
    let modelled = Machine::current().time_is_modelled();
    // Unmeasured figures come from the nearest built-in profile.
    let (like, gemm_factor, tensor_factor, dram_factor, gap) =
        match (properties.major, properties.minor) {
            (9 | 10, _) => ("h200", 0.77, 0.75, 0.85, 0.8),
            (8 | 11.., _) => ("rtx4090", 0.7, 0.85, 0.9, 0.7),
            _ => ("t4", 0.55, 0.4, 0.75, 1.0),
        };
    let how = how();
    let mut lines = Lines::default();
    lines.0 += &format!(
        "like = {like}\nname = {}\n",
        properties.name.trim_end_matches(" (simulated)")
    );
    lines.0 += &format!("capability = {}.{}\n", properties.major, properties.minor);
    lines.add(
        "multiprocessors",
        properties.multi_processor_count.into(),
        "as the driver says",
    );
    let threads = properties.max_threads_per_multi_processor.into();
    lines.add("threads_per_multiprocessor", threads, "as the driver says");
    lines.add(
        "clock",
        f64::from(properties.clock_rate) / 1e3,
        "MHz, as the driver says",
    );
    lines.0 +=
        &format!("l2 = {} # bytes, as the driver says\n", properties.l2_cache_size);
    lines.0 +=
        &format!("memory = {} # bytes, as the driver says\n", properties.total_memory);

    let (side, busy) = (side(), busy(device)?);
    let double = Tensor::randn((&[side / 2, side / 2], (device, DType::F64)))?;

    // Small operations.
    let one = Tensor::ones((&[1], device))?;
    let many = 20;
    let tiny = on_device(&busy, || (0..many).try_for_each(|_| one.neg().map(drop)))?
        / f64::from(many);
    let smallest = (tiny - gap).max(0.1);
    lines.add(
        "smallest_kernel",
        smallest,
        &format!("µs, {how}: {tiny:.2} with the gap to the next"),
    );
    let call = shortest(|| {
        cuda::synchronize()?;
        let start = Instant::now();
        (0..many).try_for_each(|_| one.neg().map(drop))?;
        Ok(microseconds(start.elapsed()) / f64::from(many))
    })?;
    // The wait begins before the kernel has finished.
    let there_and_back = on_host(|| one.neg().map(drop))?;
    let latency = (there_and_back - call - smallest).max(0.1);
    lines.add(
        "launch_latency",
        latency,
        &format!("µs, {how}; the call takes {call:.2}"),
    );

    // Device memory: each element is read and written.
    let elements =
        (properties.total_memory / 64).min(if modelled { 1 << 24 } else { 1 << 29 })
            as usize
            / 4;
    let large = Tensor::ones((&[elements], device))?;
    let rate =
        8.0 * elements as f64 / on_device(&busy, || large.neg_().map(drop))? / 1e3;
    lines.add("dram_factor", dram_factor, "assumed");
    lines.add(
        "dram",
        rate / dram_factor,
        &format!("GB/s, {how}: {rate:.0} of it by neg_"),
    );
    drop(large);

    // Products.
    let flops = |side: usize| 2.0 * (side as f64).powi(3);
    let single = flops(side) / on_device(&busy, || busy.matmul(&busy).map(drop))? / 1e3;
    let in_double =
        flops(side / 2) / on_device(&busy, || double.matmul(&double).map(drop))? / 1e3;
    lines.add("gemm_factor", gemm_factor, "assumed");
    lines.add(
        "fp32",
        single / gemm_factor,
        &format!("GFLOP/s, {how}: {single:.0} by a product of {side}³"),
    );
    lines.add(
        "fp64",
        in_double / gemm_factor,
        &format!("GFLOP/s, {how}: {in_double:.0} by a product of {}³", side / 2),
    );

    // Tensor cores. Before compute capability 8.0, they support neither bf16 nor TF32.
    lines.add("tensor_factor", tensor_factor, "assumed");
    for (name, dtype, since) in [
        ("tensor_f16", DType::F16, 7),
        ("tensor_bf16", DType::BF16, 8),
        ("tensor_tf32", DType::F32, 8),
    ] {
        if properties.major < since {
            lines.0 +=
                &format!("{name} = 0 # this generation does not support the type\n");
            continue;
        }
        let operand = busy.to(dtype)?;
        let rounded = matmul::allow_tf32();
        matmul::set_allow_tf32(true);
        let time = on_device(&busy, || operand.matmul(&operand).map(drop));
        matmul::set_allow_tf32(rounded);
        let rate = flops(side) / time? / 1e3;
        lines.add(
            name,
            rate / tensor_factor,
            &format!("GFLOP/s, {how}: {rate:.0} by a product of {side}³"),
        );
    }

    copies(&mut lines, &busy, how)?;
    allocations(&mut lines, how)?;
    Ok(lines.0)
}

/// Copies to the device and back: small and large, from pageable and from pinned memory.
fn copies(lines: &mut Lines, busy: &Tensor, how: &str) -> Result<()> {
    let device = busy.device();
    let to = |device| ToOptions {
        device: Some(device),
        non_blocking: true,
        ..Default::default()
    };
    let rate = |bytes: usize, time: f64| bytes as f64 / time / 1e3;
    let (small, large) = (1 << 12, 1usize << 26);
    let host = Tensor::zeros(&[large / 4])?;
    let pinned = host.pin_memory()?;
    let there = host.to(device)?;
    let few = host.narrow(0, 0, small / 4)?.pin_memory()?;

    let latency = on_device(busy, || few.to(to(device)).map(drop))?;
    let to_device = rate(large, on_device(busy, || pinned.to(to(device)).map(drop))?);
    let to_host = rate(large, on_device(busy, || there.to(to(Device::Cpu)).map(drop))?);
    lines.add("copy_latency", latency, &format!("µs, {how}: a copy of {small} bytes"));
    lines.add("pinned_to_device", to_device, &format!("GB/s, {how}: 64 MiB"));
    lines.add("pinned_to_host", to_host, &format!("GB/s, {how}: 64 MiB"));
    let to_device = rate(large, on_host(|| host.to(device).map(drop))?);
    let to_host = rate(large, on_host(|| there.to(Device::Cpu).map(drop))?);
    lines.add("pageable_to_device", to_device, &format!("GB/s, {how}: 64 MiB"));
    lines.add("pageable_to_host", to_host, &format!("GB/s, {how}: 64 MiB"));
    Ok(())
}

fn allocations(lines: &mut Lines, how: &str) -> Result<()> {
    let take = |bytes: usize| -> Result<[f64; 2]> {
        let (mut malloc, mut free) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds() {
            cuda::empty_cache()?;
            cuda::synchronize()?;
            let time = |work: &dyn Fn() -> Result<()>| {
                let start = Instant::now();
                work().map(|()| microseconds(start.elapsed()))
            };
            let make =
                || Tensor::zeros((&[bytes], (Device::cuda(0), DType::U8))).map(drop);
            let (first, second) = (time(&make)?, time(&make)?);
            cuda::synchronize()?;
            malloc = malloc.min(first - second);
            free = free.min(time(&cuda::empty_cache)?);
        }
        Ok([malloc.max(0.1), free])
    };
    let ([small, free], [large, _]) = (take(32 << 20)?, take(512 << 20)?);
    let growth = ((large - small) / 480.0).max(1e-3);
    lines.add("malloc", (small - 32.0 * growth).max(0.1), &format!("µs, {how}"));
    lines.add("malloc_growth", growth, &format!("µs a MiB, {how}"));
    lines.add("free", free, &format!("µs, {how}: 32 MiB"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The measured profile of a simulated card equals its own, and a card with that profile gives the same again.
    #[test]
    fn what_is_measured_of_a_simulated_gpu_is_its_profile() {
        let values = |profile: &str| -> Vec<(String, f64)> {
            let lines = profile.lines().filter_map(|line| line.split_once(" = "));
            let number = |value: &str| value.split(' ').next()?.parse().ok();
            lines
                .filter_map(|(name, value)| Some((name.to_owned(), number(value)?)))
                .collect()
        };
        let measure = |gpu: &str| gpu.parse::<Machine>().unwrap().enter(card).unwrap();
        let first = measure("sim:t4");
        let known = [
            ("smallest_kernel", 2.5),
            ("launch_latency", 6.0),
            ("dram", 320.0),
            ("pinned_to_device", 12.0),
            ("pinned_to_host", 12.5),
            ("pageable_to_device", 5.0),
            ("pageable_to_host", 4.5),
            ("malloc_growth", 1.0),
            ("multiprocessors", 40.0),
            ("memory", 15_655_829_504.0),
        ];
        let found = values(&first);
        for (name, value) in known {
            let (_, found) = found.iter().find(|(found, _)| found == name).unwrap();
            assert!((found / value - 1.0).abs() < 0.03, "{name}: {found}, not {value}");
        }
        // No product of this size reaches the full peak.
        let fp32 = found.iter().find(|(name, _)| name == "fp32").unwrap().1;
        assert!((6_500.0..8_100.0).contains(&fp32), "{fp32}");

        let of = |name: &str| found.iter().find(|(found, _)| found == name).unwrap().1;
        assert!(
            (20_000.0..65_000.0).contains(&of("tensor_f16"))
                && of("tensor_bf16") + of("tensor_tf32") == 0.0
        );

        let file = std::env::temp_dir()
            .join(format!("calibrate-{}.profile", std::process::id()));
        std::fs::write(&file, &first).unwrap();
        let second = values(&measure(&format!("sim:{}", file.display())));
        std::fs::remove_file(&file).unwrap();
        // Figures derived from products get smaller each time. The malloc figure includes the time of a call.
        let left_out = ["fp32", "fp64", "tensor_f16", "malloc", "free", "copy_latency"];
        for ((name, first), (_, second)) in found.iter().zip(&second) {
            let alike = left_out.contains(&name.as_str())
                || first == second
                || (first / second - 1.0).abs() < 0.05;
            assert!(alike, "{name}: {first}, then {second}");
        }
    }
}
