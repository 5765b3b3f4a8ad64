//! The CUDA C++ sources of the kernels that the tensor crate launches on a real GPU, embedded as text.
//! NVIDIA's NVRTC compiles them for the GPU that is found, so building the course takes no CUDA.
//!
//! They are named as the tensor crate names its operations: `elementwise/pow.cu` has the kernels that
//! `tensor/src/ops/elementwise/pow.rs` declares, `pool.cu` those of `tensor/src/ops/pool/kernels.rs`. Start with
//! `elementwise/binary.cu`, `elementwise.cuh` and `common.cuh`; then `tree.cuh`, where threads work together.

/// A file of CUDA C++.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// `elementwise/binary.cu`, `common.cuh`
    pub name: &'static str,
    pub text: &'static str,
}

/// Files, by their names.
macro_rules! files {
    ($($name:literal)+) => {
        &[$(Source { name: $name, text: include_str!(concat!("../", $name)) }),+]
    };
}

/// The files that are compiled, each by itself.
pub static SOURCES: &[Source] = files!(
    "conv.cu"
    "elementwise/activation.cu"
    "elementwise/binary.cu"
    "elementwise/by_number.cu"
    "elementwise/compare.cu"
    "elementwise/convert.cu"
    "elementwise/pow.cu"
    "elementwise/select.cu"
    "elementwise/unary.cu"
    "index.cu"
    "loss.cu"
    "matmul.cu"
    "norm.cu"
    "optimizer.cu"
    "plain.cu"
    "pool.cu"
    "random.cu"
    "random/dropout.cu"
    "reduce.cu"
    "reduce/cumsum.cu"
    "scaler.cu"
    "shape.cu"
    "softmax.cu"
);

/// The files that others include.
pub static HEADERS: &[Source] = files!(
    "angle.cuh"
    "common.cuh"
    "convert.cuh"
    "double.cuh"
    "elementwise.cuh"
    "half.cuh"
    "math.cuh"
    "philox.cuh"
    "pow.cuh"
    "softmax.cuh"
    "tree.cuh"
    "windows.cuh"
);

/// The headers that a text includes, and those that they include.
pub fn headers(text: &str) -> Vec<&'static Source> {
    let mut found: Vec<&Source> = Vec::new();
    let mut texts = vec![text];
    while let Some(text) = texts.pop() {
        for header in HEADERS {
            let is_known = found.iter().any(|known| known.name == header.name);
            if !is_known && text.contains(&format!("#include \"{}\"", header.name)) {
                found.push(header);
                texts.push(header.text);
            }
        }
    }
    found
}

/// How NVRTC is to compile them, whatever the GPU: every operation rounded by itself, as on the CPU, where
/// the source does not say otherwise; by default it fuses a product and a sum where it sees one. And a lambda is code
/// of the device: there is no other.
pub const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false", "--device-as-default-execution-space"];
