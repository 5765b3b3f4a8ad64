//! GPU memory statistics, snapshots and settings (`torch.cuda.memory`).
//!
//! Memory is counted on three levels. *Allocated* memory is held by tensors, in blocks of the caching allocator.
//! *Reserved* memory is all memory of the allocator: allocated blocks, and free blocks for reuse. The memory in use on
//! the GPU ([`mem_get_info`]) also includes memory of CUDA and of other programs.
//!
//! The functions refer to the current device. For another device, call them in its scope: [`cuda::device(1,
//! cuda::memory_allocated)?`](super::device). Without a GPU the figures are 0.

use crate::place::Place;
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

/// The bytes in blocks held by tensors on the current device (`torch.cuda.memory_allocated`).
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

/// The peak of [`memory_allocated`] since [`reset_peak_memory_stats`] (`torch.cuda.max_memory_allocated`).
pub fn max_memory_allocated() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).allocated_bytes.all.peak)
}

/// The bytes in segments held by the caching allocator on the current device (`torch.cuda.memory_reserved`).
pub fn memory_reserved() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).reserved_bytes.all.current)
}

/// The peak of [`memory_reserved`] since [`reset_peak_memory_stats`] (`torch.cuda.max_memory_reserved`).
pub fn max_memory_reserved() -> u64 {
    of_current_device(|cuda, device| cuda.memory_stats(device).reserved_bytes.all.peak)
}

/// All statistics of the current device's caching allocator (`torch.cuda.memory_stats`). Empty without a GPU.
///
/// Most names have three parts: the quantity (`allocated_bytes`, `reserved_bytes`, `active_bytes`,
/// `inactive_split_bytes`, `requested_bytes`, or the counts `allocation`, `segment`, `active`, `inactive_split`), the
/// pool (`all`, `large_pool`, `small_pool`), and `current`, `peak`, or the totals over time, `allocated` and `freed`.
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

/// The statistics as a table (`torch.cuda.memory_summary`).
pub fn memory_summary() -> String {
    summary_table(false)
}

/// The table without the two pools (`torch.cuda.memory_summary(abbreviated=True)`).
pub fn memory_summary_abbreviated() -> String {
    summary_table(true)
}

fn summary_table(abbreviated: bool) -> String {
    let stats = of_current_device(|cuda, device| cuda.memory_stats(device));
    summary::table(&stats, current_index(), abbreviated)
}

/// Resets the peaks to the current values (`torch.cuda.reset_peak_memory_stats`).
pub fn reset_peak_memory_stats() {
    of_current_device(|cuda, device| cuda.reset_peak_memory_stats(device));
}

/// Resets the totals over time (`allocated`, `freed`, `num_…`) to 0 (`torch.cuda.reset_accumulated_memory_stats`).
pub fn reset_accumulated_memory_stats() {
    of_current_device(|cuda, device| cuda.reset_accumulated_memory_stats(device));
}

/// Waits for all devices, and returns unused segments to the driver (`torch.cuda.empty_cache`). Other programs can then
/// use the memory, which this program could have reused anyway.
#[track_caller]
pub fn empty_cache() -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    Machine::current().cuda().map_or(Ok(()), |cuda| Ok(cuda.empty_cache()?))
}

/// The free and total bytes of the current device, with the use of all programs (`torch.cuda.mem_get_info`).
pub fn mem_get_info() -> Result<(u64, u64)> {
    Ok(of_machine()?.memory_info(current_index())?)
}

/// Limits this program to a fraction of the current device's memory (`torch.cuda.set_per_process_memory_fraction`).
/// Beyond it the program is out of memory. Returns an error if the fraction is not between 0 and 1.
pub fn set_per_process_memory_fraction(fraction: f64) -> Result<()> {
    Ok(of_machine()?.set_memory_fraction(current_index(), fraction)?)
}

/// This program's fraction of the current device's memory (`torch.cuda.get_per_process_memory_fraction`).
pub fn get_per_process_memory_fraction() -> Result<f64> {
    Ok(of_machine()?.memory_fraction(current_index()))
}

/// Sets the options of the caching allocator on all devices of the machine
/// (`torch.cuda.memory._set_allocator_settings`). The format is that of `PYTORCH_CUDA_ALLOC_CONF`:
/// `max_split_size_mb:200,per_process_memory_fraction:0.5`. Missing options get their defaults, except the fraction.
///
/// The options are `max_split_size_mb`, `max_non_split_rounding_mb` and `per_process_memory_fraction`. Other options
/// and invalid values are errors. (In the environment they are ignored with a warning:
/// [`GpuSpec::machine`](crate::GpuSpec::machine).)
pub fn set_allocator_settings(options: &str) -> Result<()> {
    let settings = Settings::parse(options).map_err(GpuError::AllocatorOption)?;
    if let Some(cuda) = Machine::current().cuda() {
        cuda.set_allocator_settings(settings);
    }
    Ok(())
}

/// Turns caching on or off, on all devices of the machine (`torch.cuda.caching_allocator_enable`). On by default.
///
/// Without caching, each tensor gets separate memory from the driver. This is slow, because a release waits for the
/// device, and statistics do not count the memory. But tools such as `compute-sanitizer` detect the end of a tensor.
pub fn caching_allocator_enable(value: bool) {
    if let Some(cuda) = Machine::current().cuda() {
        cuda.caching_allocator_enable(value);
    }
}

/// A segment of the caching allocator. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySegment {
    /// Its device.
    pub device: usize,
    /// Its start address.
    pub address: u64,
    /// Its size.
    pub total_size: u64,
    /// The part held by tensors.
    pub allocated_size: u64,
    /// The part that is not free for reuse.
    pub active_size: u64,
    /// The requested part, before rounding.
    pub requested_size: u64,
    /// The stream that uses it. 0 is the default stream.
    pub stream: u32,
    /// Its pool.
    pub segment_type: SegmentType,
    /// Its blocks by address, without gaps.
    pub blocks: Vec<MemoryBlock>,
}

/// The pool of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentType {
    /// For blocks of up to 1 MiB.
    Small,
    /// For larger blocks.
    Large,
}

/// A part of a segment. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBlock {
    /// Its start address.
    pub address: u64,
    /// Its size.
    pub size: u64,
    /// The requested size. 0 if it is free.
    pub requested_size: u64,
    /// Its state.
    pub state: BlockState,
    /// The line that requested it. `None` if it is free.
    pub place: Option<Place>,
    /// Whether it is a cuBLAS workspace, which the first matrix product requests for all.
    pub workspace: bool,
}

/// Returns all segments and blocks of all devices, by address (`torch.cuda.memory_snapshot`).
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

/// Deprecated name of [`memory_reserved`] (`torch.cuda.memory_cached`).
#[deprecated(note = "memory_cached has been renamed to memory_reserved")]
pub fn memory_cached() -> u64 {
    memory_reserved()
}

/// Deprecated name of [`max_memory_reserved`] (`torch.cuda.max_memory_cached`).
#[deprecated(note = "max_memory_cached has been renamed to max_memory_reserved")]
pub fn max_memory_cached() -> u64 {
    max_memory_reserved()
}

/// Resets all peaks, as in PyTorch (`torch.cuda.reset_max_memory_allocated`).
#[deprecated(note = "use reset_peak_memory_stats: it resets all peaks, and so does this")]
pub fn reset_max_memory_allocated() {
    reset_peak_memory_stats();
}

/// Resets all peaks, as in PyTorch (`torch.cuda.reset_max_memory_cached`).
#[deprecated(note = "use reset_peak_memory_stats: it resets all peaks, and so does this")]
pub fn reset_max_memory_cached() {
    reset_peak_memory_stats();
}

fn of_current_device<T: Default>(read: impl FnOnce(&Cuda, usize) -> T) -> T {
    Machine::current().cuda().map(|cuda| read(cuda, current_index())).unwrap_or_default()
}

// Older names, for existing programs. They take the index of a device instead of the scope `device`.

/// Reads a device's statistics. PyTorch's error without such a device. Without a GPU the figures are 0.
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

/// Uses a device's allocator. PyTorch's error without such a device.
fn with_allocator<R>(index: usize, ask: impl FnOnce() -> Result<R>) -> Result<R> {
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
    with_allocator(index, || set_per_process_memory_fraction(fraction))
}

/// The older form of `cuda::device(index, cuda::get_per_process_memory_fraction)`.
#[deprecated(note = "write cuda::device(index, cuda::get_per_process_memory_fraction)??")]
pub fn get_per_process_memory_fraction_device(index: usize) -> Result<f64> {
    with_allocator(index, get_per_process_memory_fraction)
}
