//! The CUDA C++ sources of the kernels that the tensor crate launches on a real GPU, embedded as text.
//! NVIDIA's NVRTC compiles them for the GPU that is found, so building the course takes no CUDA.
//!
//! One family of operations a file. Start with `elementwise.cu`, `elementwise.cuh` and `common.cuh`; then `tree.cuh`,
//! where threads work together.

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

/// A header, by its name.
macro_rules! header {
    ($name:literal) => {
        Header { name: $name, text: include_str!(concat!("../", $name)) }
    };
}

const ANGLE: Header = header!("angle.cuh");
const COMMON: Header = header!("common.cuh");
const CONVERT: Header = header!("convert.cuh");
const DOUBLE: Header = header!("double.cuh");
const ELEMENTWISE: Header = header!("elementwise.cuh");
const HALF: Header = header!("half.cuh");
const MATH: Header = header!("math.cuh");
const PHILOX: Header = header!("philox.cuh");
const POW: Header = header!("pow.cuh");
const SOFTMAX: Header = header!("softmax.cuh");
const TREE: Header = header!("tree.cuh");

/// A source with all headers that it includes, or that those include.
macro_rules! source {
    ($name:literal, $headers:expr) => {
        Source { name: $name, text: include_str!(concat!("../", $name)), headers: $headers }
    };
}

/// All sources.
pub const SOURCES: &[Source] = &[
    source!("elementwise.cu", &[COMMON, ELEMENTWISE, HALF]),
    source!("functions.cu", &[ANGLE, COMMON, DOUBLE, ELEMENTWISE, HALF, MATH, POW]),
    source!("compare.cu", &[COMMON, ELEMENTWISE, HALF]),
    source!("cast.cu", &[COMMON, CONVERT, ELEMENTWISE, HALF]),
    source!("create.cu", &[COMMON, CONVERT, ELEMENTWISE, HALF]),
    source!("random.cu", &[ANGLE, COMMON, DOUBLE, ELEMENTWISE, HALF, PHILOX]),
    source!("reduce.cu", &[COMMON, CONVERT, HALF, TREE]),
    source!("softmax.cu", &[COMMON, DOUBLE, HALF, MATH, SOFTMAX, TREE]),
    source!("loss.cu", &[COMMON, DOUBLE, HALF, MATH, SOFTMAX, TREE]),
    source!("index.cu", &[COMMON, HALF, TREE]),
    source!("matmul.cu", &[COMMON, HALF]),
    source!("conv.cu", &[COMMON, HALF]),
    source!("optimizer.cu", &[COMMON, HALF]),
    source!("gelu.cu", &[COMMON, DOUBLE, ELEMENTWISE, HALF, MATH]),
    source!("norm.cu", &[COMMON, HALF, TREE]),
    source!("pool.cu", &[COMMON, CONVERT, HALF]),
    source!("scaler.cu", &[COMMON, HALF]),
];

/// How NVRTC is to compile them, whatever the GPU: every operation rounded by itself, as on the CPU, where
/// the source does not say otherwise; by default it fuses a product and a sum where it sees one. And a lambda is code
/// of the device: there is no other.
pub const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false", "--device-as-default-execution-space"];
