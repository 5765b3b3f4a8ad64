//! The recent activity of a device, for monitors.
//!
//! Real counters are averages over a sample period of a sixth of a second to one second. Programs on a simulated
//! machine are short, so its period is short too. It always ends now.

use std::collections::VecDeque;

use super::card::SimulatedDevice;
use super::cost;
use super::profile::Profile;
use super::task::{CopyTask, End, Task};
use crate::base::process::Process;
use crate::base::reading::{ComputeMode, Gpu, GpuProcess, ProcessKind};
use crate::contract::driver::Engine;

/// The sample period in nanoseconds.
pub const PERIOD: u64 = 4_000_000;

/// Threads per multiprocessor for which a good matrix product has registers.
const GEMM_THREADS: f64 = 256.0;

#[derive(Clone, Copy)]
struct BusyPiece {
    start: u64,
    end: u64,
    engine: Engine,
    /// Nanoseconds in which it moves bytes of the device's memory.
    moving: f64,
    /// Bytes over the bus.
    bus: u64,
    /// The fraction of multiprocessors with one of its blocks.
    multiprocessors: f64,
    /// Its threads as a fraction of the device's maximum.
    threads: f64,
}

impl BusyPiece {
    fn new(profile: &Profile, engine: Engine, task: &Task, (start, end): (u64, u64)) -> BusyPiece {
        let (count, room) = (profile.multiprocessors.value, profile.threads_per_multiprocessor.value);
        let (bytes, blocks, threads_of_block) = match task {
            Task::Kernel(launch) => {
                (launch.work.bytes, f64::from(launch.grid.max(1)), f64::from(launch.block.max(1)))
            }
            Task::Compiled(task) => {
                (task.cost.bytes, task.launch.blocks() as f64, task.launch.threads() as f64)
            }
            Task::Gemm(gemm) => (gemm.work().bytes, cost::gemm_pieces(profile, gemm), GEMM_THREADS),
            Task::Convolution(task) => {
                (cost::convolution_bytes(task), cost::convolution_pieces(profile, task), GEMM_THREADS)
            }
            Task::Memset { bytes, .. } => (*bytes as u64, blocks_of(*bytes), BLOCK),
            Task::Copy(CopyTask { bytes, .. }) if engine == Engine::Compute => {
                (2 * *bytes as u64, blocks_of(*bytes), BLOCK)
            }
            Task::Copy(copy) => (copy.bytes as u64, 0.0, 0.0),
            Task::Collective(part) => ((part.reads() + part.writes()) as u64, 0.0, 0.0),
            Task::Record(_) | Task::Wait { .. } => (0, 0.0, 0.0),
        };
        let bus = match task {
            Task::Copy(copy) if copy.places().iter().any(|place| matches!(place, End::Pinned(_))) => bytes,
            _ => 0,
        };
        BusyPiece {
            start,
            end,
            engine,
            moving: profile.dram.time_of(bytes) / profile.dram_factor.value,
            bus,
            multiprocessors: (blocks / count).min(1.0),
            threads: (blocks * threads_of_block / (count * room)).min(1.0),
        }
    }

    /// Its part between two times: in nanoseconds, and as a fraction.
    fn within(&self, from: u64, to: u64) -> (f64, f64) {
        let time = self.end.min(to).saturating_sub(self.start.max(from)) as f64;
        (time, time / (self.end - self.start).max(1) as f64)
    }
}

/// Threads per block of fills and of copies within the device. Each thread handles four bytes.
const BLOCK: f64 = 256.0;

fn blocks_of(bytes: usize) -> f64 {
    (bytes as f64 / 4.0 / BLOCK).ceil().max(1.0)
}

#[derive(Default)]
pub(super) struct Activity(VecDeque<BusyPiece>);

impl Activity {
    pub(super) fn note(&mut self, profile: &Profile, engine: Engine, task: &Task, (start, end): (u64, u64)) {
        while self.0.front().is_some_and(|first| first.end + PERIOD < end) {
            self.0.pop_front();
        }
        self.0.push_back(BusyPiece::new(profile, engine, task, (start, end)));
    }
}

#[derive(Default)]
struct Shares {
    compute: f64,
    moving: f64,
    multiprocessors: f64,
    threads: f64,
    /// In bytes.
    to_device: f64,
    to_host: f64,
}

impl Shares {
    fn add(&mut self, piece: &BusyPiece, now: u64) {
        let period = PERIOD as f64;
        let (time, share) = piece.within(now.saturating_sub(PERIOD), now);
        self.moving += piece.moving * share / period;
        match piece.engine {
            Engine::Compute => {
                self.compute += time / period;
                self.multiprocessors += piece.multiprocessors * time / period;
                self.threads += piece.threads * time / period;
            }
            Engine::HostToDevice => self.to_device += piece.bus as f64 * share,
            Engine::DeviceToHost => self.to_host += piece.bus as f64 * share,
            Engine::Peer => {}
        }
    }
}

/// A monitor's readings of a device. `running` is the current work: the task, its engine, its start and end.
pub(super) fn monitor<'a>(
    (index, device): (usize, &SimulatedDevice),
    now: u64,
    running: impl Iterator<Item = (&'a Task, Engine, (u64, u64))>,
) -> Gpu {
    let profile = device.profile;
    let mut shares = Shares::default();
    device.activity.0.iter().for_each(|piece| shares.add(piece, now));
    running.for_each(|(task, engine, times)| shares.add(&BusyPiece::new(profile, engine, task, times), now));

    let percent = |share: f64| (100.0 * share.min(1.0)).round() as u32;
    let per_second = |bytes: f64| (bytes * 1e9 / PERIOD as f64) as u64;
    let processes = device.processes();
    let limit = profile.power_limit.value;
    let base = if device.used { profile.power_ready.value } else { profile.power_idle.value };
    let power = base + (limit - base) * shares.multiprocessors.min(1.0);
    Gpu {
        index,
        name: device.properties().name,
        bus_id: None,
        fan_speed: None,
        temperature: None,
        performance_state: Some(if device.used { profile.state_ready } else { profile.state_idle }),
        power_draw: Some((1e3 * power) as u32),
        power_limit: Some((1e3 * limit) as u32),
        memory_used: processes.iter().map(|process| process.used_memory).sum(),
        memory_total: device.memory_info().total,
        utilization: Some(percent(shares.compute)),
        memory_utilization: Some(percent(shares.moving)),
        pcie_to_device: Some(per_second(shares.to_device)),
        pcie_to_host: Some(per_second(shares.to_host)),
        sm_active: Some(percent(shares.multiprocessors)),
        sm_occupancy: Some(percent(shares.threads)),
        persistence_mode: None,
        display_active: None,
        ecc_errors: None,
        // Other processes may use the device.
        compute_mode: Some(ComputeMode::Default),
        mig_mode: None,
        processes: processes.into_iter().map(process).collect(),
    }
}

fn process(process: Process) -> GpuProcess {
    GpuProcess {
        pid: process.pid,
        name: process.name.into_owned(),
        // The other process is a browser, which draws.
        kind: if process.is_this { ProcessKind::Compute } else { ProcessKind::Both },
        used_memory: Some(process.used_memory),
        is_this: process.is_this,
    }
}
