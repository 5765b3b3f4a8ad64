//! Readings of real GPUs from NVML, which identifies GPUs by PCI bus id. (Its indices may differ from CUDA's.) Each
//! query is separate: a card without a fan speed still has a temperature.

use std::collections::BTreeMap;
use std::ffi::CString;

use super::nvml::{Nvml, NvmlDevice, PcieDirection};
use crate::base::process::Process;
use crate::base::reading::{Gpu, GpuProcess, ProcessKind, Versions};
use crate::base::topology::{Link, Topology};

fn card(bus_id: &str) -> Result<NvmlDevice, String> {
    let nvml = Nvml::get().map_err(|error| format!("NVML cannot be used: {error}"))?;
    let place = CString::new(bus_id).map_err(|error| error.to_string());
    place
        .and_then(|place| nvml.card(&place))
        .map_err(|error| format!("NVML finds no GPU at {bus_id}: {error}"))
}

pub fn gpu(bus_id: &str) -> Result<Gpu, String> {
    let card = card(bus_id)?;
    let memory = card.memory().map_err(|error| format!("NVML does not report the memory: {error}"))?;
    let rates = card.utilization().ok();
    let bytes = |way| Some(1000 * u64::from(card.pcie_throughput(way).ok()?));
    Ok(Gpu {
        index: 0,
        name: card.name().unwrap_or_default(),
        bus_id: Some(bus_id.to_owned()),
        fan_speed: card.fan_speed().ok(),
        temperature: card.temperature().ok(),
        performance_state: card.performance_state().ok().flatten(),
        power_draw: card.power_draw().ok(),
        power_limit: card.power_limit().ok(),
        memory_used: memory.used,
        memory_total: memory.total,
        utilization: rates.as_ref().map(|rates| rates.gpu),
        memory_utilization: rates.as_ref().map(|rates| rates.memory),
        pcie_to_device: bytes(PcieDirection::ToDevice),
        pcie_to_host: bytes(PcieDirection::FromDevice),
        sm_active: None,
        sm_occupancy: None,
        persistence_mode: card.persistence_mode().ok(),
        display_active: card.display_active().ok(),
        ecc_errors: card.uncorrected_errors().ok(),
        compute_mode: card.compute_mode().ok().flatten(),
        mig_mode: card.mig_mode().ok(),
        processes: processes_of(&card),
    })
}

/// The connections of the GPUs at these PCI bus ids. NVLinks take precedence over the bus.
pub fn topology(bus_ids: &[String]) -> Result<Topology, String> {
    let cards = bus_ids.iter().map(|bus_id| card(bus_id)).collect::<Result<Vec<_>, _>>()?;
    let link = |from: usize, to: usize| match cards[from].nvlinks_to(&bus_ids[to]) {
        0 => match cards[from].common_ancestor(&cards[to])? {
            0..=10 => Ok(Link::Pix), // 0: two GPUs on one board
            11..=20 => Ok(Link::Pxb),
            21..=30 => Ok(Link::Phb),
            31..=40 => Ok(Link::Node),
            _ => Ok(Link::Sys),
        },
        count => Ok(Link::Nv(count)),
    };
    let mut links = Vec::new();
    for from in 0..cards.len() {
        for to in 0..cards.len() {
            let way = if from == to { Ok(Link::X) } else { link(from, to) };
            links.push(way.map_err(|error: String| {
                format!("NVML does not report the connections of the GPUs: {error}")
            })?);
        }
    }
    Ok(Topology::new(cards.len(), |from, to| links[from * cards.len() + to]))
}

/// The versions that NVML reports. Empty without NVML.
pub fn versions() -> Versions {
    let Ok(nvml) = Nvml::get() else { return Versions::default() };
    Versions {
        // 13.610.43.02 is 610.43.02 for CUDA 13.
        nvml: nvml.version().ok().and_then(|text| Some(text.split_once('.')?.1.to_owned())),
        driver: nvml.driver_version().ok(),
        // 13030 is 13.3.
        cuda: nvml.cuda_version().ok().map(|number| format!("{}.{}", number / 1000, number % 1000 / 10)),
    }
}

pub fn processes(bus_id: &str) -> Vec<Process> {
    let known = |process: GpuProcess| {
        let used_memory = process.used_memory?;
        Some(Process { pid: process.pid, name: process.name.into(), used_memory, is_this: process.is_this })
    };
    let processes = card(bus_id).map(|card| processes_of(&card)).unwrap_or_default();
    processes.into_iter().filter_map(known).collect()
}

/// A process that computes and draws is in both of NVML's lists.
fn processes_of(card: &NvmlDevice) -> Vec<GpuProcess> {
    let mut by_pid = BTreeMap::new();
    let lists = [
        (ProcessKind::Compute, card.compute_processes().unwrap_or_default()),
        (ProcessKind::Graphics, card.graphics_processes().unwrap_or_default()),
    ];
    for (kind, list) in lists {
        for (pid, used_memory) in list {
            by_pid
                .entry(pid)
                .and_modify(|known: &mut GpuProcess| {
                    known.kind = if known.kind == kind { kind } else { ProcessKind::Both }
                })
                .or_insert_with(|| GpuProcess {
                    pid,
                    name: Nvml::get().and_then(|nvml| nvml.process_name(pid)).unwrap_or_default(),
                    kind,
                    used_memory,
                    is_this: pid == std::process::id(),
                });
        }
    }
    by_pid.into_values().collect()
}
