//! Random numbers on the CPU: same seed, same numbers as PyTorch 2.11, bit for bit. They are computed from the words of
//! an [`Engine`](crate::random::Engine).
//!
//! 1. `distributions`: turns words into uniforms, normals, integers, permutations and keep-masks. The number of words that a
//!    draw takes is part of the contract: one too many, and every later number of the program differs from PyTorch's.
//! 2. `wide`: the two draws that fill weight tensors, `rand` and `randn`, written so that the compiler handles eight
//!    numbers at a time.
//!
//! The reference is the official x86-64 build of PyTorch on a CPU with AVX2 or AVX-512. Its compiler fused many
//! products with the following sum, and a fused multiply-add rounds once where two operations round twice. So each
//! `mul_add` below is there to match PyTorch, never as an optimisation. `mul_add` gives the same bits on every machine;
//! without the hardware instruction it is only slower.

mod distributions;
#[allow(unsafe_code)] // SIMD kernels.
mod wide;

#[cfg(test)]
mod tests;

pub(crate) use distributions::*;
