//! The CUDA C++ sources of the kernels that the tensor crate launches on a real GPU, embedded as text.
//! NVIDIA's NVRTC compiles them for the GPU that is found, so building the course takes no CUDA.
//!
//! One family of operations a file. Start with `elementwise.cu` and `common.cuh`.

/// A file that is compiled by itself.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// `elementwise.cu`
    pub name: &'static str,
    pub text: &'static str,
    /// The files that it includes.
    pub headers: &'static [Header],
}

/// A file that sources include, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// `common.cuh`
    pub name: &'static str,
    pub text: &'static str,
}

const COMMON: Header = Header { name: "common.cuh", text: include_str!("../common.cuh") };

/// All sources.
pub const SOURCES: &[Source] = &[
    Source { name: "elementwise.cu", text: include_str!("../elementwise.cu"), headers: &[COMMON] },
    Source { name: "reduce.cu", text: include_str!("../reduce.cu"), headers: &[COMMON] },
    Source { name: "optimizer.cu", text: include_str!("../optimizer.cu"), headers: &[COMMON] },
];

/// How NVRTC is to compile them, whatever the GPU: every operation rounded by itself, as on the CPU, where
/// the source does not say otherwise. By default it fuses a product and a sum where it sees one.
pub const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false"];
