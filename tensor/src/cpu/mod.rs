//! CPU arithmetic on slices: the computations of operations, without tensors.
//!
//! - [`simd`]: one source for vectors of every width
//! - [`pool`], [`parallel`], [`parts`]: threads and their shares of the work
//! - [`number`], [`math`], [`half`], [`float16`]: arithmetic of each type
//! - [`blocks`]: elementwise operations   - [`transpose`]: copies of transposed matrices
//! - [`tree`]: the order of a reduction
//! - [`gemm`], [`tf32`]: matrix products   - [`conv`]: convolutions   - [`random`]

pub(crate) mod blocks;
pub(crate) mod conv;
#[cfg(any(target_family = "wasm", test))]
mod float16;
#[allow(unsafe_code)] // SIMD kernels.
pub(crate) mod gemm;
pub(crate) mod half;
pub(crate) mod math;
pub(crate) mod number;
pub(crate) mod parallel;
pub(crate) mod parts;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reserve;
pub(crate) mod simd;
pub(crate) mod tf32;
mod thread;
pub(crate) mod transpose;
pub(crate) mod tree;
