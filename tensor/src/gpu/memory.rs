//! What a program can ask about the memory of its GPUs, and do about it (`torch.cuda.memory`).
//!
//! Memory is counted on three levels. What tensors hold is *allocated*, in blocks of the caching allocator. What
//! the allocator took from the driver is *reserved*: it holds the allocated blocks and those that are free to be
//! used again. What the GPU has in use ([`mem_get_info`]) is more than that: CUDA's own, and other programs'.
//!
//! The functions are about the current device. To ask about another one, call them in its scope:
//! [`cuda::device(1, cuda::memory_allocated)?`](super::device). Without a GPU the figures are 0.

use std::collections::BTreeMap;
use std::panic::Location;

use super::allocator::Pool;
use super::allocator::settings::Settings;
pub use super::allocator::snapshot::BlockState;
use super::allocator::snapshot::SegmentInfo;
use super::runtime::Cuda;
use super::{current_index, device, device_count, is_available, of_machine, summary};
use crate::error::{GpuError, Result};
use crate::machine::Machine;
use crate::scope;

/// Bytes of blocks that tensors hold on the current device (`torch.cuda.memory_allocated`).
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let x = Tensor::zeros((&[1000], Device::cuda(0)))?;
///     assert_eq!(cuda::memory_allocated(), 4096); // 4000 bytes, and what makes it a multiple of 512
///     assert_eq!(cuda::memory_reserved(), 2 << 20);
///     drop(x);
///     assert_eq!(cuda::memory_allocated(), 0);
///     assert_eq!(cuda::memory_reserved(), 2 << 20); // kept for reuse
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn memory_allocated() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).allocated_bytes.all.current)
}

/// The most [`memory_allocated`] there was since the start or the last [`reset_peak_memory_stats`]
/// (`torch.cuda.max_memory_allocated`).
pub fn max_memory_allocated() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).allocated_bytes.all.peak)
}

/// Bytes of segments that the caching allocator holds on the current device (`torch.cuda.memory_reserved`).
pub fn memory_reserved() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).reserved_bytes.all.current)
}

/// The most [`memory_reserved`] there was since the start or the last [`reset_peak_memory_stats`]
/// (`torch.cuda.max_memory_reserved`).
pub fn max_memory_reserved() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).reserved_bytes.all.peak)
}

/// Everything that the caching allocator of the current device counts, by PyTorch's names
/// (`torch.cuda.memory_stats`); nothing without a GPU.
///
/// Most names have three parts. The first is what is counted: `allocated_bytes`, `reserved_bytes`, `active_bytes`,
/// `inactive_split_bytes`, `requested_bytes`, and in pieces `allocation`, `segment`, `active`, `inactive_split`.
/// The second is where: in `all` pools, the `large_pool` or the `small_pool`. The third is `current`, `peak`, and
/// what was `allocated` and `freed` over time.
///
/// ```
/// # use todevice::{Device, Machine, Tensor, cuda};
/// # "sim:t4".parse::<Machine>()?.enter(|| {
/// let x = Tensor::zeros((&[1000], Device::cuda(0)))?;
/// assert_eq!(cuda::memory_stats()["requested_bytes.all.current"], 4000);
/// # Ok::<(), todevice::Error>(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn memory_stats() -> BTreeMap<String, i64> {
    of_current_device(|cuda, device| cuda.memory_stats_by_name(device))
}

/// The same as a table for people (`torch.cuda.memory_summary`).
pub fn memory_summary() -> String {
    summary_table(false)
}

/// That table without the two pools (`torch.cuda.memory_summary(abbreviated=True)`).
pub fn memory_summary_abbreviated() -> String {
    summary_table(true)
}

fn summary_table(abbreviated: bool) -> String {
    let stats = of_current_device(|cuda, device| cuda.memory_stats(device));
    summary::table(&stats, current_index(), abbreviated)
}

/// Starts the peaks anew from what there is now (`torch.cuda.reset_peak_memory_stats`).
pub fn reset_peak_memory_stats() {
    of_current_device(|cuda, device| cuda.reset_peak_memory_stats(device));
}

/// Starts what is counted over time (`allocated`, `freed`, `num_…`) anew from 0
/// (`torch.cuda.reset_accumulated_memory_stats`).
pub fn reset_accumulated_memory_stats() {
    of_current_device(|cuda, device| cuda.reset_accumulated_memory_stats(device));
}

/// Gives the segments in which no tensor lives back to the driver, on all devices (`torch.cuda.empty_cache`). It
/// waits for the devices; without a GPU it does nothing.
///
/// Tensors keep what they have. Other programs can have what is given back; this one could have used it anyway.
#[track_caller]
pub fn empty_cache() -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    Machine::current().cuda().map_or(Ok(()), |cuda| Ok(cuda.empty_cache()?))
}

/// Bytes free on the current device, and all it has (`torch.cuda.mem_get_info`): whoever uses the rest.
pub fn mem_get_info() -> Result<(u64, u64)> {
    Ok(of_machine()?.memory_info(current_index())?)
}

/// Lets this program reserve no more than a share of the current device's memory
/// (`torch.cuda.set_per_process_memory_fraction`). Beyond it is out of memory, whatever the device still has.
///
/// An error if the share is not between 0 and 1.
pub fn set_per_process_memory_fraction(fraction: f64) -> Result<()> {
    Ok(of_machine()?.set_memory_fraction(current_index(), fraction)?)
}

/// The share of the current device's memory that this program may reserve
/// (`torch.cuda.get_per_process_memory_fraction`).
pub fn get_per_process_memory_fraction() -> Result<f64> {
    Ok(of_machine()?.memory_fraction(current_index()))
}

/// Changes the options of the caching allocator on all devices of the machine
/// (`torch.cuda.memory._set_allocator_settings`), which are written as in the environment variable
/// `PYTORCH_CUDA_ALLOC_CONF`: `max_split_size_mb:200,per_process_memory_fraction:0.5`. Those that are not named have
/// their defaults again; only the fraction stays.
///
/// There are `max_split_size_mb`, `max_non_split_rounding_mb` and `per_process_memory_fraction`. An option that is
/// unknown, or not supported, is an error, and so is a wrong value. (In the environment, which was set for PyTorch,
/// each is ignored with a warning: [`GpuSpec::machine`](crate::GpuSpec::machine).)
pub fn set_allocator_settings(options: &str) -> Result<()> {
    let settings = Settings::parse(options).map_err(GpuError::AllocatorOption)?;
    if let Some(cuda) = Machine::current().cuda() {
        cuda.set_allocator_settings(settings);
    }
    Ok(())
}

/// Whether the caching allocator caches, on all devices of the machine (`torch.cuda.caching_allocator_enable`). It does
/// unless it is told not to.
///
/// Without it each tensor is memory of the driver's own. That is slow, because memory can only be given back when the device
/// has done all its work, and no statistics count it. But a tool such as `compute-sanitizer` then sees where each tensor ends.
pub fn caching_allocator_enable(value: bool) {
    if let Some(cuda) = Machine::current().cuda() {
        cuda.caching_allocator_enable(value);
    }
}

/// A segment: memory that the caching allocator took from the driver. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySegment {
    /// The device whose memory it is.
    pub device: usize,
    /// Where it begins.
    pub address: u64,
    /// All of it.
    pub total_size: u64,
    /// What of it tensors hold.
    pub allocated_size: u64,
    /// What of it is not free to be used again.
    pub active_size: u64,
    /// What was asked for of that, before rounding.
    pub requested_size: u64,
    /// The stream whose work it serves; 0 is the default one.
    pub stream: u32,
    /// Which pool it belongs to.
    pub segment_type: SegmentType,
    /// Its blocks, in the order of their addresses, without gaps.
    pub blocks: Vec<MemoryBlock>,
}

/// Which pool a segment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentType {
    /// Blocks of up to 1 MiB.
    Small,
    /// Larger ones.
    Large,
}

/// A block: a piece of a segment. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBlock {
    /// Where it begins.
    pub address: u64,
    /// All of it.
    pub size: u64,
    /// What was asked for; 0 if it is free.
    pub requested_size: u64,
    /// What it is used for.
    pub state: BlockState,
    /// The line of the program that asked for it; none if it is free.
    pub place: Option<&'static Location<'static>>,
    /// Whether cuBLAS works in it. The line that happened to multiply first took it, for all.
    pub workspace: bool,
}

/// All segments and blocks of all devices, in the order of their addresses (`torch.cuda.memory_snapshot`).
///
/// ```
/// # use todevice::{Device, Machine, Tensor, cuda};
/// # "sim:t4".parse::<Machine>()?.enter(|| {
/// let x = Tensor::zeros((&[1000], Device::cuda(0)))?;
/// for block in &cuda::memory_snapshot()[0].blocks {
///     println!("{:#x} {:>7} {}", block.address, block.size, block.state);
/// }
/// # Ok::<(), todevice::Error>(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn memory_snapshot() -> Vec<MemorySegment> {
    let Some(cuda) = Machine::current().cuda().cloned() else { return Vec::new() };
    let of_device = |device| {
        let (segments, workspaces) = (cuda.memory_snapshot(device), cuda.workspaces(device));
        segments.into_iter().map(move |segment| memory_segment(segment, &workspaces))
    };
    (0..cuda.device_count()).flat_map(of_device).collect()
}

fn memory_segment(segment: SegmentInfo, workspaces: &[u64]) -> MemorySegment {
    let blocks: Vec<MemoryBlock> = segment
        .blocks
        .iter()
        .map(|block| MemoryBlock {
            address: block.pointer.0,
            size: block.size,
            requested_size: block.requested_size,
            state: block.state,
            place: block.place,
            workspace: workspaces.contains(&block.pointer.0),
        })
        .collect();
    let size_where = |holds: fn(BlockState) -> bool| {
        blocks.iter().filter(|block| holds(block.state)).map(|block| block.size).sum()
    };
    MemorySegment {
        device: segment.stream.device,
        address: segment.pointer.0,
        total_size: segment.size,
        allocated_size: size_where(|state| state == BlockState::ActiveAllocated),
        active_size: size_where(|state| state != BlockState::Inactive),
        requested_size: blocks.iter().map(|block| block.requested_size).sum(),
        stream: segment.stream.number,
        segment_type: match segment.pool {
            Pool::Small => SegmentType::Small,
            Pool::Large => SegmentType::Large,
        },
        blocks,
    }
}

/// The old name of [`memory_reserved`] (`torch.cuda.memory_cached`).
#[deprecated(note = "memory_cached has been renamed to memory_reserved")]
pub fn memory_cached() -> u64 {
    memory_reserved()
}

/// The old name of [`max_memory_reserved`] (`torch.cuda.max_memory_cached`).
#[deprecated(note = "max_memory_cached has been renamed to max_memory_reserved")]
pub fn max_memory_cached() -> u64 {
    max_memory_reserved()
}

/// The old way to reset one peak. As in PyTorch it now resets all of them
/// (`torch.cuda.reset_max_memory_allocated`).
#[deprecated(note = "use reset_peak_memory_stats: it resets all peaks, and so does this")]
pub fn reset_max_memory_allocated() {
    reset_peak_memory_stats();
}

/// The old way to reset one peak. As in PyTorch it now resets all of them
/// (`torch.cuda.reset_max_memory_cached`).
#[deprecated(note = "use reset_peak_memory_stats: it resets all peaks, and so does this")]
pub fn reset_max_memory_cached() {
    reset_peak_memory_stats();
}

fn of_current_device<T: Default>(read: impl FnOnce(&Cuda, usize) -> T) -> T {
    Machine::current().cuda().map(|cuda| read(cuda, current_index())).unwrap_or_default()
}

// Older names, for programs that were written with them. Each of these functions is about a device by its number; the scope
// `device` replaces them.

/// The figures of a device, or PyTorch's error for statistics of a device that is not there. Without a GPU they are those of
/// none.
fn figures<R>(index: usize, read: impl FnOnce() -> R) -> Result<R> {
    if !is_available() {
        return Ok(read());
    }
    // PyTorch prints the index as a character, which is invisible.
    if index >= device_count() {
        return Err(GpuError::NoMemoryStats { index }.into());
    }
    device(index, read)
}

/// What the allocator of a device says, or PyTorch's error for one that is not there.
fn asked_of_allocator<R>(index: usize, ask: impl FnOnce() -> Result<R>) -> Result<R> {
    of_machine()?;
    if index >= device_count() {
        return Err(GpuError::NoAllocator { index }.into());
    }
    device(index, ask)?
}

/// The older form of `cuda::device(index, cuda::memory_allocated)`.
#[deprecated(note = "write cuda::device(index, cuda::memory_allocated)?")]
pub fn memory_allocated_device(index: usize) -> Result<u64> {
    figures(index, memory_allocated)
}

/// The older form of `cuda::device(index, cuda::max_memory_allocated)`.
#[deprecated(note = "write cuda::device(index, cuda::max_memory_allocated)?")]
pub fn max_memory_allocated_device(index: usize) -> Result<u64> {
    figures(index, max_memory_allocated)
}

/// The older form of `cuda::device(index, cuda::memory_reserved)`.
#[deprecated(note = "write cuda::device(index, cuda::memory_reserved)?")]
pub fn memory_reserved_device(index: usize) -> Result<u64> {
    figures(index, memory_reserved)
}

/// The older form of `cuda::device(index, cuda::max_memory_reserved)`.
#[deprecated(note = "write cuda::device(index, cuda::max_memory_reserved)?")]
pub fn max_memory_reserved_device(index: usize) -> Result<u64> {
    figures(index, max_memory_reserved)
}

/// The older form of `cuda::device(index, cuda::memory_stats)`.
#[deprecated(note = "write cuda::device(index, cuda::memory_stats)?")]
pub fn memory_stats_device(index: usize) -> Result<BTreeMap<String, i64>> {
    figures(index, memory_stats)
}

/// The older form of `cuda::device(index, cuda::memory_summary)`, and of `memory_summary_abbreviated`.
#[deprecated(note = "write cuda::device(index, cuda::memory_summary)?")]
pub fn memory_summary_device(index: usize, abbreviated: bool) -> Result<String> {
    figures(index, if abbreviated { memory_summary_abbreviated } else { memory_summary })
}

/// The older form of `cuda::device(index, cuda::reset_peak_memory_stats)`.
#[deprecated(note = "write cuda::device(index, cuda::reset_peak_memory_stats)?")]
pub fn reset_peak_memory_stats_device(index: usize) -> Result<()> {
    of_machine()?;
    figures(index, reset_peak_memory_stats)
}

/// The older form of `cuda::device(index, cuda::reset_accumulated_memory_stats)`.
#[deprecated(note = "write cuda::device(index, cuda::reset_accumulated_memory_stats)?")]
pub fn reset_accumulated_memory_stats_device(index: usize) -> Result<()> {
    of_machine()?;
    figures(index, reset_accumulated_memory_stats)
}

/// The older form of `cuda::device(index, cuda::mem_get_info)`.
#[deprecated(note = "write cuda::device(index, cuda::mem_get_info)??")]
pub fn mem_get_info_device(index: usize) -> Result<(u64, u64)> {
    device(index, mem_get_info)?
}

/// The older form of `cuda::device(index, || cuda::set_per_process_memory_fraction(fraction))`.
#[deprecated(note = "write cuda::device(index, || cuda::set_per_process_memory_fraction(fraction))??")]
pub fn set_per_process_memory_fraction_device(fraction: f64, index: usize) -> Result<()> {
    asked_of_allocator(index, || set_per_process_memory_fraction(fraction))
}

/// The older form of `cuda::device(index, cuda::get_per_process_memory_fraction)`.
#[deprecated(note = "write cuda::device(index, cuda::get_per_process_memory_fraction)??")]
pub fn get_per_process_memory_fraction_device(index: usize) -> Result<f64> {
    asked_of_allocator(index, get_per_process_memory_fraction)
}
