//! The profiles of the simulated cards: data, each figure with its source.

use std::sync::Mutex;

use crate::figure::{Figure, Unit};
use crate::figure_file::{FigureSet, figures_by_name};
use crate::link::Link;
use Unit::{
    Bytes, GigabytesPerSecond, GigaflopsPerSecond, Megahertz, Microseconds, MicrosecondsPerMebibyte, One,
    Watts,
};

/// A kind of GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name in `--gpu sim:KEY`.
    pub key: &'static str,
    /// Its name in CUDA.
    pub name: &'static str,
    /// Major compute capability: the 7 of 7.5.
    pub major: u32,
    /// Minor compute capability: the 5 of 7.5.
    pub minor: u32,
    pub multiprocessors: Figure,
    pub threads_per_multiprocessor: Figure,
    pub clock: Figure,
    pub fp32: Figure,
    pub fp64: Figure,
    /// The fraction of the peak that a large matrix product attains.
    pub gemm_factor: Figure,
    /// Speed of the tensor cores, dense, accumulating in f32; 0 if they do not support the dtype.
    pub tensor_f16: Figure,
    pub tensor_bf16: Figure,
    pub tensor_tf32: Figure,
    /// The fraction of the tensor cores' peak that a large matrix product attains.
    pub tensor_factor: Figure,
    pub dram: Figure,
    /// The fraction of the bandwidth that a large copy attains.
    pub dram_factor: Figure,
    pub l2: Figure,
    /// Memory as CUDA reports it.
    pub memory: Figure,
    /// Memory that CUDA itself uses as soon as the device is used.
    pub context: Figure,
    /// The time from the call on the host to the start on the device.
    pub launch_latency: Figure,
    /// The time from the end of a kernel to the start of the next.
    pub kernel_gap: Figure,
    /// The duration of a kernel that does nothing.
    pub smallest_kernel: Figure,
    /// The time before a copy engine moves the first byte.
    pub copy_latency: Figure,
    pub pinned_to_device: Figure,
    pub pinned_to_host: Figure,
    pub pageable_to_device: Figure,
    pub pageable_to_host: Figure,
    /// The bandwidth of direct copies to another device of the same kind. 0: the cards are not peers.
    pub peer: Figure,
    /// The kind of connection to another device of the same kind, in `nvidia-smi`'s letters.
    pub link: Link,
    pub malloc: Figure,
    pub malloc_growth: Figure,
    pub free: Figure,
    /// The maximum power of the card.
    pub power_limit: Figure,
    /// The power when no program uses it.
    pub power_idle: Figure,
    /// The power when a program has a context on it but nothing runs.
    pub power_ready: Figure,
    /// The performance state when no program uses it: the 8 of P8.
    pub state_idle: u32,
    /// The performance state when a program has a context on it.
    pub state_ready: u32,
}

/// The profiles that the labs are tested on, beginning with the one that most readers meet first.
pub static PROFILES: [&Profile; 3] = [&T4, &RTX_4090, &H200];

/// All built-in profiles.
pub static ALL: [&Profile; 4] = [&T4, &RTX_4090, &H200, &RTX_5090];

/// Profiles loaded from files.
static LOADED: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

impl FigureSet for Profile {
    const KIND: &'static str = "profile";
    const ENDING: &'static str = ".profile";

    figures_by_name!(
        multiprocessors threads_per_multiprocessor clock fp32 fp64 gemm_factor tensor_f16 tensor_bf16 tensor_tf32
        tensor_factor dram dram_factor l2 memory context launch_latency kernel_gap smallest_kernel copy_latency
        pinned_to_device pinned_to_host pageable_to_device pageable_to_host peer malloc malloc_growth free power_limit
        power_idle power_ready
    );

    fn built_in() -> &'static [&'static Profile] {
        &ALL
    }

    fn loaded() -> &'static Mutex<Vec<&'static Profile>> {
        &LOADED
    }

    fn key(&self) -> &'static str {
        self.key
    }

    fn with_key(self, key: &'static str) -> Profile {
        Profile { key, ..self }
    }

    /// A card may have no peers, and tensor cores that do not support a dtype.
    fn may_be_zero(name: &str) -> bool {
        ["peer", "tensor_f16", "tensor_bf16", "tensor_tf32"].contains(&name)
    }

    fn set_word(&mut self, name: &str, value: &'static str) -> Option<Result<(), String>> {
        match name {
            "name" if !value.is_empty() => self.name = value,
            "name" => return Some(Err("the name is empty".to_owned())),
            "link" => match value.parse() {
                Ok(link) => self.link = link,
                Err(expected) => return Some(Err(format!("link must be one of {expected}"))),
            },
            "capability" => {
                match value.split_once('.').map(|(major, minor)| (major.parse(), minor.parse())) {
                    Some((Ok(major), Ok(minor))) => (self.major, self.minor) = (major, minor),
                    _ => return Some(Err("capability must have the form 9.0".to_owned())),
                }
            }
            _ => return None,
        }
        Some(Ok(()))
    }
}

impl Profile {
    /// Whether cards of this kind can access each other's memory.
    pub fn has_peers(&self) -> bool {
        self.peer.value > 0.0
    }
}

const RULE_OF_THUMB: &str = "usual range of published microbenchmarks";
const OUTPUTS: &str = "usual range of outputs of nvidia-smi in bug reports";
const FREE_IS_A_MALLOC: &str = "assumed to take about as long as malloc";
const T4_SHEET: &str = "NVIDIA T4 datasheet";
const TURING: &str = "NVIDIA Turing architecture whitepaper";
const RTX_4090_PAGE: &str = "NVIDIA GeForce RTX 4090 specifications";
const ADA: &str = "NVIDIA Ada architecture whitepaper";
const RTX_5090_PAGE: &str = "NVIDIA GeForce RTX 5090 specifications";
const BLACKWELL: &str = "NVIDIA RTX Blackwell architecture whitepaper";
const H200_SHEET: &str = "NVIDIA H200 datasheet";
const HOPPER: &str = "NVIDIA H100 architecture whitepaper";
const DENSE: &str = "half of the H200 datasheet's number, which assumes sparsity";
const NOT_IN_TURING: &str = "Turing's tensor cores do not take the type, Turing whitepaper";
const CUDA_GUIDE: &str = "CUDA C++ Programming Guide, compute capabilities";
const CONTEXT_SMALL: &str = "a small card: below the 300-400 MB of pytorch/pytorch#109888";
const CONTEXT_LARGE: &str = "a large card: above the 300-400 MB of pytorch/pytorch#109888";
const CONTEXT_ADA: &str = "426 MiB on an RTX 6000 Ada, unslothai/unsloth-zoo#1053";

pub static T4: Profile = Profile {
    key: "t4",
    name: "Tesla T4",
    major: 7,
    minor: 5,
    multiprocessors: Figure::datasheet(40.0, One, TURING),
    threads_per_multiprocessor: Figure::datasheet(1024.0, One, CUDA_GUIDE),
    clock: Figure::datasheet(1590.0, Megahertz, TURING),
    fp32: Figure::datasheet(8_100.0, GigaflopsPerSecond, T4_SHEET),
    fp64: Figure::datasheet(253.0, GigaflopsPerSecond, "1/32 of single precision, Turing whitepaper"),
    gemm_factor: Figure::guess(
        0.55,
        One,
        "a 70 W limit cannot sustain the boost clock, which leaves about 4.5 TFLOP/s",
    ),
    tensor_f16: Figure::datasheet(65_000.0, GigaflopsPerSecond, T4_SHEET),
    tensor_bf16: Figure::datasheet(0.0, GigaflopsPerSecond, NOT_IN_TURING),
    tensor_tf32: Figure::datasheet(0.0, GigaflopsPerSecond, NOT_IN_TURING),
    tensor_factor: Figure::guess(
        0.4,
        One,
        "a 70 W limit cannot sustain the boost clock, which leaves about 26 TFLOP/s",
    ),
    dram: Figure::datasheet(320.0, GigabytesPerSecond, T4_SHEET),
    dram_factor: Figure::guess(0.75, One, RULE_OF_THUMB),
    l2: Figure::datasheet(4.0 * 1048576.0, Bytes, TURING),
    memory: Figure::measured(15_655_829_504.0, Bytes, "deviceQuery, bottlerocket-os/bottlerocket#3798"),
    context: Figure::guess(256.0 * 1048576.0, Bytes, CONTEXT_SMALL),
    launch_latency: Figure::guess(6.0, Microseconds, RULE_OF_THUMB),
    kernel_gap: Figure::guess(1.0, Microseconds, RULE_OF_THUMB),
    smallest_kernel: Figure::guess(2.5, Microseconds, RULE_OF_THUMB),
    copy_latency: Figure::guess(2.0, Microseconds, RULE_OF_THUMB),
    pinned_to_device: Figure::guess(12.0, GigabytesPerSecond, "PCIe 3.0 x16, 15.75 GB/s less overhead"),
    pinned_to_host: Figure::guess(12.5, GigabytesPerSecond, "PCIe 3.0 x16, 15.75 GB/s less overhead"),
    pageable_to_device: Figure::guess(5.0, GigabytesPerSecond, "1/2 to 1/4 of pinned"),
    pageable_to_host: Figure::guess(4.5, GigabytesPerSecond, "1/2 to 1/4 of pinned"),
    peer: Figure::guess(10.0, GigabytesPerSecond, "PCIe 3.0 x16 through a switch"),
    link: Link::Pix, // that switch
    malloc: Figure::guess(60.0, Microseconds, "about 50 µs up to 512 KB, University of Virginia"),
    malloc_growth: Figure::guess(1.0, MicrosecondsPerMebibyte, RULE_OF_THUMB),
    free: Figure::guess(80.0, Microseconds, FREE_IS_A_MALLOC),
    power_limit: Figure::datasheet(70.0, Watts, T4_SHEET),
    power_idle: Figure::guess(9.0, Watts, OUTPUTS),
    power_ready: Figure::guess(26.0, Watts, OUTPUTS),
    state_idle: 8,
    state_ready: 0,
};

pub static RTX_4090: Profile = Profile {
    key: "rtx4090",
    name: "NVIDIA GeForce RTX 4090",
    major: 8,
    minor: 9,
    multiprocessors: Figure::datasheet(128.0, One, ADA),
    threads_per_multiprocessor: Figure::datasheet(1536.0, One, CUDA_GUIDE),
    clock: Figure::datasheet(2520.0, Megahertz, RTX_4090_PAGE),
    fp32: Figure::datasheet(82_600.0, GigaflopsPerSecond, ADA),
    fp64: Figure::datasheet(1_290.0, GigaflopsPerSecond, "1/64 of single precision, Ada whitepaper"),
    gemm_factor: Figure::guess(0.7, One, "large single precision products of cuBLAS"),
    tensor_f16: Figure::datasheet(165_200.0, GigaflopsPerSecond, ADA),
    tensor_bf16: Figure::datasheet(165_200.0, GigaflopsPerSecond, ADA),
    tensor_tf32: Figure::datasheet(82_600.0, GigaflopsPerSecond, ADA),
    tensor_factor: Figure::guess(0.85, One, "large products of cuBLAS"),
    dram: Figure::datasheet(1_008.0, GigabytesPerSecond, RTX_4090_PAGE),
    dram_factor: Figure::guess(0.9, One, RULE_OF_THUMB),
    l2: Figure::datasheet(72.0 * 1048576.0, Bytes, ADA),
    memory: Figure::measured(25_393_692_672.0, Bytes, "the 23.65 GiB that PyTorch shows on Linux"),
    context: Figure::guess(426.0 * 1048576.0, Bytes, CONTEXT_ADA),
    launch_latency: Figure::guess(4.0, Microseconds, RULE_OF_THUMB),
    kernel_gap: Figure::guess(0.7, Microseconds, RULE_OF_THUMB),
    smallest_kernel: Figure::guess(1.8, Microseconds, RULE_OF_THUMB),
    copy_latency: Figure::guess(1.5, Microseconds, RULE_OF_THUMB),
    pinned_to_device: Figure::guess(25.0, GigabytesPerSecond, "PCIe 4.0 x16, 31.5 GB/s less overhead"),
    pinned_to_host: Figure::guess(25.5, GigabytesPerSecond, "PCIe 4.0 x16, 31.5 GB/s less overhead"),
    pageable_to_device: Figure::guess(10.0, GigabytesPerSecond, "1/2 to 1/4 of pinned"),
    pageable_to_host: Figure::guess(9.0, GigabytesPerSecond, "1/2 to 1/4 of pinned"),
    peer: Figure::datasheet(0.0, GigabytesPerSecond, "GeForce cards of this generation have no peer access"),
    link: Link::Phb, // Each sits in a slot of its own.
    malloc: Figure::guess(50.0, Microseconds, "about 50 µs up to 512 KB, University of Virginia"),
    malloc_growth: Figure::guess(0.7, MicrosecondsPerMebibyte, RULE_OF_THUMB),
    free: Figure::guess(60.0, Microseconds, FREE_IS_A_MALLOC),
    power_limit: Figure::datasheet(450.0, Watts, RTX_4090_PAGE),
    power_idle: Figure::guess(20.0, Watts, OUTPUTS),
    power_ready: Figure::guess(60.0, Watts, OUTPUTS),
    state_idle: 8,
    state_ready: 2, // Cards for games compute in P2.
};

pub static H200: Profile = Profile {
    key: "h200",
    name: "NVIDIA H200",
    major: 9,
    minor: 0,
    multiprocessors: Figure::datasheet(132.0, One, HOPPER),
    threads_per_multiprocessor: Figure::datasheet(2048.0, One, CUDA_GUIDE),
    clock: Figure::datasheet(1980.0, Megahertz, HOPPER),
    fp32: Figure::datasheet(67_000.0, GigaflopsPerSecond, H200_SHEET),
    fp64: Figure::datasheet(34_000.0, GigaflopsPerSecond, H200_SHEET),
    gemm_factor: Figure::measured(0.77, One, "51.3 TFLOP/s, zzc0721/torch-performance-test-data#45"),
    tensor_f16: Figure::datasheet(989_000.0, GigaflopsPerSecond, DENSE),
    tensor_bf16: Figure::datasheet(989_000.0, GigaflopsPerSecond, DENSE),
    tensor_tf32: Figure::datasheet(494_500.0, GigaflopsPerSecond, DENSE),
    tensor_factor: Figure::guess(0.75, One, "large products of cuBLAS"),
    dram: Figure::datasheet(4_800.0, GigabytesPerSecond, H200_SHEET),
    dram_factor: Figure::guess(0.85, One, RULE_OF_THUMB),
    l2: Figure::datasheet(50.0 * 1048576.0, Bytes, HOPPER),
    memory: Figure::measured(150_109_880_320.0, Bytes, "the 139.8 GiB that PyTorch shows"),
    context: Figure::guess(500.0 * 1048576.0, Bytes, CONTEXT_LARGE),
    launch_latency: Figure::guess(4.0, Microseconds, RULE_OF_THUMB),
    kernel_gap: Figure::guess(0.8, Microseconds, RULE_OF_THUMB),
    smallest_kernel: Figure::guess(2.0, Microseconds, RULE_OF_THUMB),
    copy_latency: Figure::guess(1.5, Microseconds, RULE_OF_THUMB),
    pinned_to_device: Figure::measured(55.6, GigabytesPerSecond, "PCIe 5.0, nvbandwidth's sample output"),
    pinned_to_host: Figure::guess(55.6, GigabytesPerSecond, "as to the device"),
    pageable_to_device: Figure::guess(15.0, GigabytesPerSecond, "bound by the host's copy to staging memory"),
    pageable_to_host: Figure::guess(12.0, GigabytesPerSecond, "bound by the host's copy from staging memory"),
    peer: Figure::guess(380.0, GigabytesPerSecond, "NVLink 4, 450 GB/s one way less overhead"),
    link: Link::Nv(18), // as many as a GPU of the generation has, through switches
    malloc: Figure::guess(50.0, Microseconds, "about 50 µs up to 512 KB, University of Virginia"),
    malloc_growth: Figure::guess(0.7, MicrosecondsPerMebibyte, RULE_OF_THUMB),
    free: Figure::guess(60.0, Microseconds, FREE_IS_A_MALLOC),
    power_limit: Figure::datasheet(700.0, Watts, H200_SHEET),
    power_idle: Figure::guess(75.0, Watts, OUTPUTS),
    power_ready: Figure::guess(115.0, Watts, OUTPUTS),
    state_idle: 0, // It never leaves P0.
    state_ready: 0,
};

/// A card for which builds of PyTorch from before 2025 have no kernels.
pub static RTX_5090: Profile = Profile {
    key: "rtx5090",
    name: "NVIDIA GeForce RTX 5090",
    major: 12,
    minor: 0,
    multiprocessors: Figure::datasheet(170.0, One, BLACKWELL),
    threads_per_multiprocessor: Figure::datasheet(1536.0, One, CUDA_GUIDE),
    clock: Figure::datasheet(2407.0, Megahertz, BLACKWELL),
    fp32: Figure::datasheet(104_800.0, GigaflopsPerSecond, BLACKWELL),
    fp64: Figure::datasheet(
        1_637.0,
        GigaflopsPerSecond,
        "1/64 of single precision, RTX Blackwell whitepaper",
    ),
    gemm_factor: Figure::guess(0.7, One, "large single precision products of cuBLAS"),
    tensor_f16: Figure::datasheet(209_500.0, GigaflopsPerSecond, BLACKWELL),
    tensor_bf16: Figure::datasheet(209_500.0, GigaflopsPerSecond, BLACKWELL),
    tensor_tf32: Figure::datasheet(104_800.0, GigaflopsPerSecond, BLACKWELL),
    tensor_factor: Figure::guess(0.85, One, "large products of cuBLAS"),
    dram: Figure::datasheet(1_792.0, GigabytesPerSecond, BLACKWELL),
    dram_factor: Figure::guess(0.9, One, RULE_OF_THUMB),
    l2: Figure::datasheet(96.0 * 1048576.0, Bytes, BLACKWELL),
    memory: Figure::guess(31.36 * 1073741824.0, Bytes, "32 GB, less about what an RTX 4090 keeps for itself"),
    context: Figure::guess(500.0 * 1048576.0, Bytes, CONTEXT_LARGE),
    launch_latency: Figure::guess(4.0, Microseconds, RULE_OF_THUMB),
    kernel_gap: Figure::guess(0.7, Microseconds, RULE_OF_THUMB),
    smallest_kernel: Figure::guess(1.8, Microseconds, RULE_OF_THUMB),
    copy_latency: Figure::guess(1.5, Microseconds, RULE_OF_THUMB),
    pinned_to_device: Figure::guess(52.0, GigabytesPerSecond, "PCIe 5.0 x16, 63 GB/s less overhead"),
    pinned_to_host: Figure::guess(52.0, GigabytesPerSecond, "PCIe 5.0 x16, 63 GB/s less overhead"),
    pageable_to_device: Figure::guess(15.0, GigabytesPerSecond, "bound by the host's copy to staging memory"),
    pageable_to_host: Figure::guess(12.0, GigabytesPerSecond, "bound by the host's copy from staging memory"),
    peer: Figure::guess(0.0, GigabytesPerSecond, "GeForce cards have no peer access since the RTX 40 series"),
    link: Link::Phb, // Each sits in a slot of its own.
    malloc: Figure::guess(50.0, Microseconds, "about 50 µs up to 512 KB, University of Virginia"),
    malloc_growth: Figure::guess(0.7, MicrosecondsPerMebibyte, RULE_OF_THUMB),
    free: Figure::guess(60.0, Microseconds, FREE_IS_A_MALLOC),
    power_limit: Figure::datasheet(575.0, Watts, RTX_5090_PAGE),
    power_idle: Figure::guess(20.0, Watts, OUTPUTS),
    power_ready: Figure::guess(70.0, Watts, OUTPUTS),
    state_idle: 8,
    state_ready: 2, // As an RTX 4090.
};
