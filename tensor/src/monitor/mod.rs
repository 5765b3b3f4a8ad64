//! The data of `nvidia-smi` and `htop`: the load of the GPUs, the processes on them, and the load of the host.
//!
//! Real GPUs are read through NVML, the driver's monitoring library (`nvidia/nvml.rs` of `todevice-gpu`). Simulated
//! GPUs answer from their own state (`simulated/activity.rs` there): memory is exact; utilization, power and bus
//! traffic are modelled.
//!
//! Monitoring is free: it creates no CUDA context, waits for nothing, and takes no simulated time.

mod host;

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)] // For the test that substitutes NVML.
pub use crate::gpu::nvidia::reading::{
    gpu as nvml_gpu, topology as nvml_topology, versions as nvml_versions,
};
pub use crate::reading::{ComputeMode, Gpu, GpuProcess, ProcessKind, Versions};
pub use crate::topology::{Link, Topology};
pub use host::{Host, host};

use std::fmt::Write;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::gpu::simulated::activity;
use crate::gpu::{check_ordinal, current_index, of_machine};
use crate::machine::{GpuSpec, Machine};

/// Returns the monitor's data about a GPU.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda, monitor};
///
/// let machine: Machine = "sim:t4,others=1GiB".parse()?;
/// machine.enter(|| {
///     let before = monitor::gpu(0)?;
///     assert_eq!((before.memory_used, before.performance_state), (1 << 30, Some(8)));
///
///     let x = Tensor::ones((&[1 << 20], Device::cuda(0)))?; // 4 MiB
///     let now = monitor::gpu(0)?;
///     let this = now.processes.iter().find(|process| process.is_this).unwrap();
///     let context = this.used_memory.unwrap() - cuda::memory_reserved();
///     assert_eq!(now.memory_used, (1 << 30) + context + cuda::memory_reserved());
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error if the device does not exist or NVML is not available.
pub fn gpu(index: usize) -> Result<Gpu> {
    let cuda = check_ordinal(index)?;
    if let Some(gpu) = cuda.monitor(index) {
        return Ok(gpu);
    }
    #[cfg(not(target_family = "wasm"))]
    if let Some(bus_id) = cuda.pci_bus_id(index) {
        let mut gpu = nvml_gpu(&bus_id).map_err(Error::custom)?;
        gpu.index = index;
        return Ok(gpu);
    }
    Err(Error::custom("this GPU cannot be monitored: its driver does not say where it sits"))
}

/// Returns the connections between the machine's GPUs, as `nvidia-smi topo -m` prints them. Simulated GPUs hidden by
/// `CUDA_VISIBLE_DEVICES` are included, hidden real GPUs are not. Peer access is a separate question:
/// [`cuda::can_device_access_peer`](crate::cuda::can_device_access_peer).
///
/// ```
/// use todevice::{Machine, monitor, monitor::Link};
///
/// # fn main() -> todevice::Result<()> {
/// let machine: Machine = "sim:h200x2".parse()?;
/// let topology = machine.enter(monitor::topology)?;
/// assert_eq!(topology.between(0, 1), Some(Link::Nv(18))); // 18 NVLinks
/// let text = topology.to_string();
/// let lines: Vec<&str> = text.lines().collect();
/// assert_eq!(lines, ["        GPU0    GPU1", "GPU0     X      NV18", "GPU1    NV18     X"]);
/// # Ok(())
/// # }
/// ```
///
/// Returns an error without a GPU, or if NVML is not available.
pub fn topology() -> Result<Topology> {
    let machine = Machine::current();
    if let GpuSpec::Simulated(gpus) = machine.gpus() {
        let link = gpus.card().link;
        return Ok(Topology::new(gpus.count, |_, _| link));
    }
    let cuda = of_machine()?;
    let count = cuda.device_count();
    #[cfg(not(target_family = "wasm"))]
    if let Some(bus_ids) = (0..count).map(|index| cuda.pci_bus_id(index)).collect::<Option<Vec<_>>>() {
        return nvml_topology(&bus_ids).map_err(Error::custom);
    }
    Err(Error::custom(format!(
        "how its {count} GPUs are connected is not known: their driver does not say where they sit"
    )))
}

/// Returns the versions above `nvidia-smi`'s table. A simulated GPU has none.
pub fn versions() -> Versions {
    #[cfg(not(target_family = "wasm"))]
    if !Machine::current().time_is_modelled() {
        return nvml_versions();
    }
    Versions::default()
}

/// Returns the sample period of [`gpu`]'s utilization: up to a second on a real GPU, depending on the card (NVML
/// documents 1/6 s to 1 s), and 4 ms on a simulated GPU, whose programs are short.
pub fn sample_period() -> Duration {
    match Machine::current().time_is_modelled() {
        true => Duration::from_nanos(activity::PERIOD),
        false => Duration::from_secs(1),
    }
}

/// Returns `GPU-Util` (`torch.cuda.utilization`): the percentage of the last sample period in which a kernel ran on the
/// current device.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda, monitor, time};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let x = Tensor::ones((&[512, 512], Device::cuda(0)))?;
///     let start = time::Instant::now();
///     while start.elapsed() < monitor::sample_period() {
///         x.matmul(&x)?;
///     }
///     assert!(cuda::utilization()? > 90);
///     cuda::synchronize()?;
///     time::sleep(monitor::sample_period());
///     assert_eq!(cuda::utilization()?, 0);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn utilization() -> Result<u32> {
    known(of_current()?.utilization, "GPU utilization")
}

/// Returns the percentage of the last sample period in which the current device's memory was read or written
/// (`torch.cuda.memory_usage`). The fill level is [`device_memory_used`].
pub fn memory_usage() -> Result<u32> {
    known(of_current()?.memory_utilization, "memory utilization")
}

/// Returns `Memory-Usage`, the bytes that all programs use on the current device (`torch.cuda.device_memory_used`).
pub fn device_memory_used() -> Result<u64> {
    Ok(of_current()?.memory_used)
}

/// Returns the temperature of the current device in degrees Celsius (`torch.cuda.temperature`).
pub fn temperature() -> Result<u32> {
    known(of_current()?.temperature, "temperature")
}

/// Returns the power draw of the current device in milliwatts (`torch.cuda.power_draw`).
pub fn power_draw() -> Result<u32> {
    known(of_current()?.power_draw, "power draw")
}

/// Lists the compute processes on the current device with their memory (`torch.cuda.list_gpu_processes`). As in
/// PyTorch, an `MB` is a MiB.
///
/// ```
/// # use todevice::{Device, Machine, Tensor, cuda};
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     assert_eq!(cuda::list_gpu_processes()?, "GPU:0\nno processes are running");
///     let x = Tensor::ones((&[1], Device::cuda(0)))?;
///     let text = cuda::list_gpu_processes()?;
///     assert_eq!(text, "GPU:0\nprocess       4242 uses      258.000 MB GPU memory");
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn list_gpu_processes() -> Result<String> {
    let gpu = of_current()?;
    let mut text = format!("GPU:{}", gpu.index);
    let compute = gpu.processes.iter().filter(|process| process.kind != ProcessKind::Graphics);
    let lines: Vec<_> = compute
        .map(|process| match process.used_memory {
            Some(bytes) => {
                let mebibytes = bytes as f64 / 1048576.0;
                format!("process {:>10} uses {mebibytes:>12.3} MB GPU memory", process.pid)
            }
            None => format!("process {:>10} uses {:>12} MB GPU memory", process.pid, "N/A"),
        })
        .collect();
    for line in lines.iter().map(String::as_str).chain(lines.is_empty().then_some("no processes are running"))
    {
        let _ = write!(text, "\n{line}");
    }
    Ok(text)
}

fn of_current() -> Result<Gpu> {
    gpu(current_index())
}

fn known(reading: Option<u32>, what: &str) -> Result<u32> {
    reading.ok_or_else(|| Error::custom(format!("{what}: not known of this GPU")))
}
