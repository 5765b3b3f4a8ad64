//! Real GPUs: NVML, the library behind `nvidia-smi`. It comes with the driver.
//!
//! It knows GPUs by their place on the PCI bus; its numbers need not be CUDA's. Each question is asked by itself: a card
//! that does not know its fan speed still has a temperature.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use nvml_wrapper::enum_wrappers::device::{PcieUtilCounter, PerformanceState, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::{Gpu, GpuProcess, ProcessKind};
use crate::cuda::driver::Process;

/// The most letters of a program's name that are asked for.
const NAME: usize = 256;

/// Looked for once; what is found does not change while a program runs.
fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().map_err(|error| format!("NVML cannot be used: {error}")))
        .as_ref()
        .map_err(Clone::clone)
}

fn device(bus_id: &str) -> Result<Device<'static>, String> {
    let device = nvml()?.device_by_pci_bus_id(bus_id);
    device.map_err(|error| format!("NVML does not know the GPU at {bus_id}: {error}"))
}

/// What NVML says of the GPU at a place of the PCI bus.
pub fn gpu(bus_id: &str) -> Result<Gpu, String> {
    let device = device(bus_id)?;
    let memory = device.memory_info().map_err(|error| format!("NVML does not tell the memory: {error}"))?;
    let rates = device.utilization_rates().ok();
    let kilobytes = |way| Some(1000 * u64::from(device.pcie_throughput(way).ok()?));
    Ok(Gpu {
        index: 0,
        name: device.name().unwrap_or_default(),
        bus_id: Some(bus_id.to_owned()),
        fan_speed: device.fan_speed(0).ok(),
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        performance_state: device.performance_state().ok().and_then(number),
        power_draw: device.power_usage().ok(),
        power_limit: device.enforced_power_limit().ok(),
        memory_used: memory.used,
        memory_total: memory.total,
        utilization: rates.as_ref().map(|rates| rates.gpu),
        memory_utilization: rates.as_ref().map(|rates| rates.memory),
        pcie_to_device: kilobytes(PcieUtilCounter::Receive),
        pcie_to_host: kilobytes(PcieUtilCounter::Send),
        sm_active: None,
        sm_occupancy: None,
        processes: processes_of(&device),
    })
}

/// Who holds memory of that GPU; nobody where that is not known.
pub(crate) fn processes(bus_id: &str) -> Vec<Process> {
    let known = |process: GpuProcess| {
        let used_memory = process.used_memory?;
        Some(Process { pid: process.pid, name: process.name.into(), used_memory, is_this: process.is_this })
    };
    let processes = device(bus_id).map(|device| processes_of(&device)).unwrap_or_default();
    processes.into_iter().filter_map(known).collect()
}

/// A process that computes and draws is in both lists.
fn processes_of(device: &Device) -> Vec<GpuProcess> {
    let mut by_pid = BTreeMap::new();
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    let listed = compute.into_iter().map(|process| (process, ProcessKind::Compute));
    for (process, kind) in listed.chain(graphics.into_iter().map(|process| (process, ProcessKind::Graphics)))
    {
        by_pid
            .entry(process.pid)
            .and_modify(|known: &mut GpuProcess| {
                known.kind = if known.kind == kind { kind } else { ProcessKind::Both }
            })
            .or_insert_with(|| named(&process, kind));
    }
    by_pid.into_values().collect()
}

fn named(process: &ProcessInfo, kind: ProcessKind) -> GpuProcess {
    GpuProcess {
        pid: process.pid,
        name: nvml().ok().and_then(|nvml| nvml.sys_process_name(process.pid, NAME).ok()).unwrap_or_default(),
        kind,
        used_memory: match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
        is_this: process.pid == std::process::id(),
    }
}

fn number(state: PerformanceState) -> Option<u32> {
    (state != PerformanceState::Unknown).then_some(state as u32)
}
