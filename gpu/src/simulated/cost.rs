//! The durations of work on a device, in nanoseconds: a roofline model, with the losses of small work.
//!
//! A kernel is limited by memory or by arithmetic, whichever takes longer. With a quarter of the threads that hide the
//! memory latency, it gets a quarter of the bandwidth. No kernel is shorter than an empty one.

use todevice_figures::product::{self, INNER, tiles_of};

use super::convolution::Convolution;
use super::profile::Profile;
use crate::base::collective::{Algorithm, CollectiveKind, CollectiveTime};
use crate::base::conv::{ConvPass, Way};
use crate::base::dtype::DType;
use crate::base::figure::Figure;
use crate::base::gemm::Gemm;
use crate::base::kernel::KernelWork;
use crate::base::random::mix;
use crate::contract::driver::Engine;

/// Threads per multiprocessor that keep memory and arithmetic busy: a quarter of the maximum of an H200. With the
/// independent loads of each thread, they hide the memory latency.
const SATURATING_THREADS: f64 = 512.0;

/// The fraction of tensor cores' speed if a size of the product is not a multiple of 16 bytes, so that rows begin in
/// the middle of a 16-byte load. (A guess. NVIDIA's guide to mixed precision recommends such multiples.)
const MISFIT: f64 = 0.5;

pub fn kernel(profile: &Profile, work: &KernelWork, grid: u32, block: u32) -> u64 {
    let threads = f64::from(grid.max(1)) * f64::from(block.max(1));
    let filled = (threads / (profile.multiprocessors.value * SATURATING_THREADS)).min(1.0);
    let memory = profile.dram.time_of(work.bytes) / profile.dram_factor.value;
    let arithmetic = peak(profile, work.double).time_of(work.flops);
    smallest(profile, memory.max(arithmetic) / filled)
}

pub fn gemm(profile: &Profile, gemm: &Gemm) -> u64 {
    let (sizes, pace) = sizes_and_pace(profile, gemm);
    product::time(profile, gemm.work().bytes, sizes, pace)
}

/// The pieces of a product that the multiprocessors share.
pub(super) fn gemm_pieces(profile: &Profile, gemm: &Gemm) -> f64 {
    let (sizes, pace) = sizes_and_pace(profile, gemm);
    tiles_of(profile, sizes, pace, u64::MAX).1
}

fn sizes_and_pace(profile: &Profile, gemm: &Gemm) -> ([u64; 4], f64) {
    let sizes = [gemm.m, gemm.n, gemm.k, gemm.batch].map(|size| size as u64);
    (sizes, product_pace(profile, gemm.dtype, gemm.tf32, &[gemm.m, gemm.n, gemm.k]))
}

/// The fraction of its speed that a product attains if it reads an image in place, because of index arithmetic.
const IN_PLACE: f64 = 0.85;

/// The maximum number of ordered pieces of a long sum. A second step adds the pieces.
const ORDERED: usize = 8;

/// The pieces of a gradient's sum over `positions` positions, if the order is fixed.
pub(super) fn ordered_pieces(positions: usize) -> usize {
    positions.div_ceil(INNER as usize).clamp(1, ORDERED)
}

/// The time of a convolution: its matrix product, and the costs or savings of its algorithm.
pub fn convolution(profile: &Profile, task: &Convolution) -> u64 {
    let (arithmetic, _) = convolution_tiling(profile, task);
    let memory = profile.dram.time_of(convolution_bytes(task)) / profile.dram_factor.value;
    // Other kernels write the columns, or transform the image, the weight and the result.
    let kernels = match task.way {
        Way::Implicit | Way::Disorder => 1,
        Way::Explicit => 2,
        Way::Winograd => 4,
    };
    let between = (kernels - 1) * (profile.smallest_kernel.nanoseconds() + profile.kernel_gap.nanoseconds());
    profile.smallest_kernel.nanoseconds() + between + memory.max(arithmetic) as u64
}

/// The bytes of the operands, and of the workspace, which is written and read.
pub(super) fn convolution_bytes(task: &Convolution) -> u64 {
    let table =
        matches!((task.way, task.conv.pass), (Way::Implicit, ConvPass::Forward | ConvPass::BackwardData));
    let workspace = if table { 0 } else { 2 * task.workspace() as u64 };
    task.conv.shape.work(task.conv.dtype).bytes + workspace
}

pub(super) fn convolution_pieces(profile: &Profile, task: &Convolution) -> f64 {
    convolution_tiling(profile, task).1
}

fn convolution_tiling(profile: &Profile, task: &Convolution) -> (f64, f64) {
    let Convolution { conv, way } = task;
    let [m, n, k, groups] = task.as_product().map(|size| size as u64);
    let channels = [conv.shape.c, conv.shape.k].map(|channels| channels / conv.shape.groups);
    let pace = product_pace(profile, conv.dtype, conv.tf32, &channels);
    let whole = u64::MAX;
    match way {
        Way::Explicit => tiles_of(profile, [m, n, k, groups], pace, whole),
        Way::Disorder => tiles_of(profile, [m, n, k, groups], pace * IN_PLACE, whole),
        Way::Implicit => {
            let most = if conv.pass == ConvPass::BackwardFilter { ORDERED as u64 } else { whole };
            tiles_of(profile, [m, n, k, groups], pace * IN_PLACE, most)
        }
        // 16 products for each 2×2 tile of the result, over all channels, in single precision.
        Way::Winograd => {
            let [p, q] = conv.shape.out();
            let (rows, columns) =
                if conv.pass == ConvPass::Forward { (p, q) } else { (conv.shape.h, conv.shape.w) };
            let tiles = (conv.shape.n * rows.div_ceil(2) * columns.div_ceil(2)) as u64;
            let pace = product_pace(profile, DType::F32, false, &channels);
            tiles_of(profile, [m, tiles, k / 9, 16], pace, whole)
        }
    }
}

pub fn memset(profile: &Profile, bytes: usize) -> u64 {
    smallest(profile, profile.dram.time_of(bytes as u64) / profile.dram_factor.value)
}

/// Each byte is read and written.
pub fn copy_within(profile: &Profile, bytes: usize) -> u64 {
    memset(profile, 2 * bytes)
}

/// The time of a copy to or from page-locked memory, or to a peer.
pub fn copy(profile: &Profile, engine: Engine, bytes: usize) -> u64 {
    let bandwidth = match engine {
        Engine::Compute => return copy_within(profile, bytes),
        Engine::HostToDevice => &profile.pinned_to_device,
        Engine::DeviceToHost => &profile.pinned_to_host,
        Engine::Peer => &profile.peer,
    };
    profile.copy_latency.nanoseconds() + bandwidth.time_of(bytes as u64) as u64
}

/// The time of a copy to or from pageable memory, through a few KiB of staging memory.
pub fn pageable_copy(profile: &Profile, engine: Engine, bytes: usize) -> u64 {
    let to_device = engine == Engine::HostToDevice;
    let bandwidth = if to_device { &profile.pageable_to_device } else { &profile.pageable_to_host };
    profile.copy_latency.nanoseconds() + bandwidth.time_of(bytes as u64) as u64
}

/// The time of a collective of `ranks` devices with `bytes` bytes each, once all have reached it.
///
/// A ring has a link from each of n ranks to the next. An all-reduce goes round it twice, each time with all but one of
/// n parts. A tree (in fact two, so that all links are busy) moves all data up and down, in as few steps as its height.
/// The faster one is used. Each step has the latency of a copy.
///
/// Cards without peer access go through the host: down from one card and up to the next. The model omits that cards
/// share the host's memory and switches, and that a collective occupies multiprocessors.
pub fn collective(
    profile: &Profile,
    uses_p2p: bool,
    kind: CollectiveKind,
    bytes: usize,
    ranks: usize,
) -> CollectiveTime {
    let hop = profile.copy_latency.nanoseconds() * if uses_p2p { 1 } else { 2 };
    let link = |bytes: f64| match uses_p2p {
        true => bytes / profile.peer.value,
        false => bytes / profile.pinned_to_host.value + bytes / profile.pinned_to_device.value,
    };
    let (n, bytes) = (ranks.max(1) as f64, bytes as f64);
    let height = u64::from(ranks.max(1).next_power_of_two().trailing_zeros());
    let round = ranks.max(1) as u64 - 1;
    let share = (n - 1.0) / n;
    let ring = |steps, bytes| (Algorithm::Ring, steps, bytes);
    let tree = |steps, bytes| (Algorithm::Tree, steps, bytes);
    let one_way = if ranks > 1 { bytes } else { 0.0 };
    let ways: &[(Algorithm, u64, f64)] = match kind {
        CollectiveKind::AllReduce(_) => {
            &[ring(2 * round, 2.0 * share * bytes), tree(2 * height, 2.0 * one_way)]
        }
        CollectiveKind::Broadcast { .. } => &[ring(round, one_way), tree(height, one_way)],
        CollectiveKind::AllGather => &[ring(round, (n - 1.0) * bytes)],
        CollectiveKind::ReduceScatter(_) => &[ring(round, share * bytes)],
        CollectiveKind::Barrier => &[ring(2 * round, 0.0), tree(2 * height, 0.0)],
        CollectiveKind::PointToPoint => &[ring(1, bytes)],
    };
    let time = |&(algorithm, steps, bytes): &(Algorithm, u64, f64)| CollectiveTime {
        algorithm,
        latency: profile.smallest_kernel.nanoseconds() + steps * hop,
        transfer: link(bytes) as u64,
    };
    let ring = time(&ways[0]);
    ways.iter().map(time).rfind(|other| other.total() < ring.total()).unwrap_or(ring)
}

/// Without the wait for the device.
pub fn malloc(profile: &Profile, bytes: usize) -> u64 {
    let mebibytes = bytes as f64 / 1048576.0;
    profile.malloc.nanoseconds() + (profile.malloc_growth.value * mebibytes * 1e3) as u64
}

/// Varies a duration by up to a fifth, depending on `seed`.
pub fn jitter(duration: u64, op: u64, seed: Option<u64>) -> u64 {
    let Some(seed) = seed else { return duration };
    let part = (mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mix(op)) >> 11) as f64 / (1u64 << 53) as f64;
    (duration as f64 * (0.8 + 0.4 * part)) as u64
}

/// Floating point operations per nanosecond of matrix products. `sizes` are the possible row lengths of the operands.
fn product_pace(profile: &Profile, dtype: DType, tf32: bool, sizes: &[usize]) -> f64 {
    let tensor_cores = match dtype {
        DType::F16 => &profile.tensor_f16,
        DType::BF16 => &profile.tensor_bf16,
        DType::F32 if tf32 => &profile.tensor_tf32,
        dtype => return peak(profile, dtype == DType::F64).value * profile.gemm_factor.value,
    };
    if tensor_cores.value == 0.0 {
        // The operands are converted when they are loaded, and multiplied in single precision.
        return profile.fp32.value * profile.gemm_factor.value;
    }
    let fits = sizes.iter().all(|size| size.is_multiple_of(16 / dtype.size()));
    let pace = if fits { 1.0 } else { MISFIT };
    tensor_cores.value * profile.tensor_factor.value * pace
}

/// Whether the card's tensor cores take f32 operands, rounded to TF32.
pub(super) fn has_tf32(profile: &Profile) -> bool {
    profile.tensor_tf32.value > 0.0
}

fn peak(profile: &Profile, double: bool) -> &Figure {
    if double { &profile.fp64 } else { &profile.fp32 }
}

fn smallest(profile: &Profile, duration: f64) -> u64 {
    profile.smallest_kernel.nanoseconds().max(duration as u64)
}

#[cfg(test)]
mod tests {
    use super::super::profile::{H200, PROFILES, RTX_4090, T4};
    use super::super::tests::squares;
    use super::*;
    use crate::each_case::each_case;
    use crate::host::host_profile::LAPTOP_8_CORES;

    /// Formulas to check by hand: a ring goes round twice with all but one part, a tree up and down with all.
    #[test]
    fn a_collective_takes_what_the_ring_or_the_tree_takes() {
        use crate::base::collective::ReduceOp;
        let sum = CollectiveKind::AllReduce(ReduceOp::Sum);
        let of = |profile, bytes, ranks| {
            let CollectiveTime { algorithm, latency, transfer } =
                collective(profile, profile.has_peers(), sum, bytes, ranks);
            (algorithm, latency, transfer)
        };
        // 10 MB at 10 GB/s: half of the data twice, in two steps.
        assert_eq!(of(&T4, 10_000_000, 2), (Algorithm::Ring, 2_500 + 2 * 2_000, 1_000_000));
        // 7/8 of the data twice, in 14 steps. The tree would move all of it twice.
        assert_eq!(of(&T4, 10_000_000, 8), (Algorithm::Ring, 2_500 + 14 * 2_000, 1_750_000));
        // A kibibyte on NVLink: three steps up and three down.
        assert_eq!(of(&H200, 1024, 8), (Algorithm::Tree, 2_000 + 6 * 1_500, 2 * 1024 / 380));
        assert!(collective(&H200, true, sum, 1024, 8).latency_rules());
        assert!(!collective(&H200, true, sum, 400 << 20, 8).latency_rules());
        // No peers: down from one, 25.5 GB/s, and up to the next, 25.
        let (_, latency, transfer) = of(&RTX_4090, 25_000_000, 2);
        assert_eq!((latency, transfer), (1_800 + 2 * 3_000, (25e6 / 25.5 + 1e6) as u64));
        assert_eq!(of(&T4, 1 << 20, 1), (Algorithm::Ring, 2_500, 0), "alone");
    }

    fn square(size: usize) -> Gemm {
        squares(1, size)
    }

    fn on_device(profile: &Profile, size: usize) -> u64 {
        LAPTOP_8_CORES.launch.nanoseconds()
            + profile.launch_latency.nanoseconds()
            + gemm(profile, &square(size))
            + LAPTOP_8_CORES.synchronize.nanoseconds()
    }

    #[test]
    fn the_gpu_overtakes_the_cpu_at_matrices_of_some_hundred() {
        let faster =
            |size: usize| on_device(&T4, size) < LAPTOP_8_CORES.gemm_time(&square(size).work()).nanoseconds;
        assert!(!faster(16) && !faster(32) && !faster(64));
        assert!(faster(512) && faster(1024) && faster(4096));
    }

    #[test]
    fn large_products_come_near_what_is_attainable_and_small_ones_do_not() {
        for profile in PROFILES {
            let attainable = profile.fp32.value * profile.gemm_factor.value;
            let attained = |size: usize| {
                square(size).work().flops as f64 / gemm(profile, &square(size)) as f64 / attainable
            };
            assert!((0.85..=1.0).contains(&attained(4096)), "{}: {}", profile.key, attained(4096));
            assert!(attained(128) < 0.25, "{}: {}", profile.key, attained(128));
        }
    }

    #[test]
    fn tensor_cores_are_as_fast_as_their_type_is() {
        let pace = |profile, dtype, tf32, size| {
            let gemm_ = Gemm { dtype, tf32, ..square(size) };
            gemm_.work().flops as f64 / gemm(profile, &gemm_) as f64
        };
        use DType::{BF16, F16, F32};
        // A T4 has no tensor cores for TF32 and bf16.
        assert!(pace(&T4, F16, false, 4096) > 5.0 * pace(&T4, F32, false, 4096));
        assert_eq!(pace(&T4, F32, true, 4096), pace(&T4, F32, false, 4096));
        assert!((pace(&T4, BF16, false, 4096) / pace(&T4, F32, false, 4096) - 1.0).abs() < 0.01);
        each_case([&RTX_4090, &H200], |profile| {
            let [single, tf32] = [false, true].map(|tf32| pace(profile, F32, tf32, 8192));
            assert!(tf32 > 1.1 * single && pace(profile, BF16, false, 8192) > 1.8 * tf32, "{}", profile.key);
            assert_eq!(pace(profile, F16, false, 8192), pace(profile, BF16, false, 8192));
            // With one more row, neighbouring rows begin in the middle of a 16-byte load.
            assert!(pace(profile, F16, false, 4097) < 0.6 * pace(profile, F16, false, 4096));
        });
        assert!(pace(&H200, F16, false, 16) < 1.2 * pace(&H200, F32, false, 16));
    }

    #[test]
    fn larger_products_never_take_less() {
        for profile in PROFILES {
            let times: Vec<u64> = (4..=12).map(|log| gemm(profile, &square(1 << log))).collect();
            assert!(times.is_sorted(), "{}: {times:?}", profile.key);
        }
    }

    #[test]
    fn a_long_inner_dimension_is_shared_among_multiprocessors() {
        let tall = Gemm { m: 64, n: 16, k: 65_536, ..square(0) };
        let one_tile_after_another = 2.0 * 64.0 * 64.0 * 65_536.0 / (8_100.0 * 0.55 * 0.75 / 40.0);
        assert!((gemm(&T4, &tall) as f64) < one_tile_after_another / 10.0);
    }

    #[test]
    fn kernels_are_bound_by_memory_arithmetic_or_their_own_launch() {
        let time = |bytes, flops, double| kernel(&T4, &KernelWork { bytes, flops, double }, 10_000, 256);
        assert_eq!(time(0, 0, false), 2_500);
        assert_eq!(time(240_000_000, 0, false), 1_000_000); // 320 GB/s, three quarters of it attained.
        assert_eq!(time(0, 8_100_000_000, false), 1_000_000);
        assert_eq!(time(0, 253_000_000, true), 1_000_000);
    }

    #[test]
    fn a_single_block_cannot_keep_a_gpu_busy() {
        let work = KernelWork { bytes: 1 << 24, flops: 1 << 22, double: false };
        assert!(kernel(&H200, &work, 1, 256) > 100 * kernel(&H200, &work, 10_000, 256));
    }

    #[test]
    fn jitter_is_reproducible_and_stays_within_a_fifth() {
        let jittered: Vec<u64> = (0..1_000).map(|op| jitter(10_000, op, Some(7))).collect();
        assert!(jittered.iter().all(|time| (8_000..=12_000).contains(time)));
        assert!(jittered.iter().any(|time| *time < 8_200) && jittered.iter().any(|time| *time > 11_800));
        assert_eq!(jitter(10_000, 3, Some(7)), jittered[3]);
        assert_ne!(jitter(10_000, 3, Some(8)), jittered[3]);
        assert_eq!(jitter(10_000, 3, None), 10_000);
    }

    #[test]
    fn faster_cards_are_faster() {
        let work = KernelWork { bytes: 1 << 30, flops: 1 << 28, double: false };
        let time = |profile| kernel(profile, &work, 1 << 20, 256);
        assert!(time(&H200) < time(&RTX_4090) && time(&RTX_4090) < time(&T4));
    }
}
