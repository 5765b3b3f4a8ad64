//! Random numbers on the CPU: same seed, same numbers as PyTorch 2.11, bit for bit. They are made of the words of an
//! [`Engine`](crate::random::Engine).
//!
//! 1. `distributions`: turns words into uniforms, normals, integers, permutations and keep-masks. How
//!    many words a draw takes is part of the contract: one too many, and every later number of the
//!    program differs from PyTorch's.
//! 2. `wide`: the two draws that fill weight tensors, `rand` and `randn`, written so that the compiler
//!    works on eight numbers at a time.
//!
//! The reference is the official x86-64 build of PyTorch on a CPU with AVX2 or AVX-512. Its compiler
//! fused many products with the sum that follows them, and a fused multiply-add rounds once where two
//! operations round twice, so each `mul_add` below is a statement about PyTorch and none of them is an
//! optimisation. `mul_add` gives the same bits on every machine; without the hardware instruction it is
//! only slower.

mod distributions;
#[allow(unsafe_code)] // SIMD kernels.
mod wide;

#[cfg(test)]
mod tests;

pub(crate) use distributions::*;
