//! A simulated device and the state that CUDA keeps for it.

use std::borrow::Cow;
use std::sync::Arc;

use super::activity::Activity;
use super::memory::{AddressSpace, Room};
use super::profile::Profile;
use crate::base::process::Process;
use crate::contract::driver::DeviceProperties;
use crate::contract::driver::{DriverError, MemoryInfo};

/// The base address of device 0. The next device begins [`APART`] later. As on current GPUs, addresses have 48 bits.
const BASE: u64 = 0x0a00_0000_0000;
const APART: u64 = 0x0100_0000_0000;

/// Memory is mapped in pages of 2 MiB. Each block has separate pages, unlike small blocks in CUDA.
const PAGE: u64 = 2 << 20;

/// The other process on a simulated GPU, if there is one.
const BROWSER: Process =
    Process { pid: 2112, name: Cow::Borrowed("/opt/google/chrome/chrome"), used_memory: 0, is_this: false };

/// This program. Its process id is constant, so that output is the same in every run.
const THIS_PROGRAM: Process =
    Process { pid: 4242, name: Cow::Borrowed("todevice"), used_memory: 0, is_this: true };

/// The device of an address. `None` for a host address.
pub(super) fn index_of(address: u64) -> Option<usize> {
    (address < super::pinned::BASE).then(|| (address.saturating_sub(BASE) / APART) as usize)
}

pub(super) struct SimulatedDevice {
    pub(super) profile: &'static Profile,
    /// In bytes. May be less than the profile's.
    total: u64,
    others: u64,
    process: usize,
    pub(super) memory: AddressSpace,
    /// CUDA creates a device's context at its first use.
    pub(super) used: bool,
    /// The indices of its streams among all streams, by stream number.
    pub(super) streams: Vec<usize>,
    pub(super) queued: usize,
    /// The error that killed the context. Every later call returns it. If the computer had no memory for the
    /// simulation, the context recovers after the error has been returned.
    pub(super) fault: Option<DriverError>,
    /// The devices whose memory it may access.
    pub(super) peers: Vec<usize>,
    pub(super) activity: Activity,
}

impl SimulatedDevice {
    pub(super) fn new(
        index: usize,
        profile: &'static Profile,
        (total, others): (u64, u64),
        process: usize,
        room: &Arc<Room>,
    ) -> SimulatedDevice {
        SimulatedDevice {
            profile,
            total,
            others,
            process,
            memory: AddressSpace::new(BASE + index as u64 * APART, PAGE, room.clone()),
            used: false,
            streams: Vec::new(),
            queued: 0,
            fault: None,
            peers: Vec::new(),
            activity: Activity::default(),
        }
    }

    pub(super) fn properties(&self) -> DeviceProperties {
        DeviceProperties {
            name: format!("{} (simulated)", self.profile.name),
            major: self.profile.major,
            minor: self.profile.minor,
            total_memory: self.total,
            multi_processor_count: self.profile.multiprocessors.value as u32,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_multi_processor: self.profile.threads_per_multiprocessor.value as u32,
            l2_cache_size: self.profile.l2.value as u64,
            clock_rate: (self.profile.clock.value * 1e3) as u32,
        }
    }

    /// The bytes of CUDA's context and of this program's allocations.
    fn taken(&self) -> u64 {
        self.profile.context.value as u64 + self.memory.taken()
    }

    pub(super) fn memory_info(&self) -> MemoryInfo {
        let free = self.total.saturating_sub(self.taken()).saturating_sub(self.others);
        MemoryInfo { free, total: self.total }
    }

    /// The processes that hold memory, the earliest first.
    pub(super) fn processes(&self) -> Vec<Process> {
        let other = Process { used_memory: self.others, is_this: false, ..BROWSER };
        let this = Process { used_memory: self.taken(), is_this: true, ..THIS_PROGRAM };
        let this = Process { pid: this.pid + self.process as u32, ..this };
        let mut processes = Vec::new();
        processes.extend((self.others > 0).then_some(other));
        processes.extend(self.used.then_some(this));
        processes
    }

    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        bytes as u64 <= self.total && self.memory.size_of(bytes) <= self.memory_info().free
    }
}
