//! Random numbers on the CPU: the same seed gives the same numbers as PyTorch 2.11, bit for bit. They are computed from
//! the words of an [`Engine`](crate::random::Engine).
//!
//! 1. `distributions`: turns words into uniforms, normals, integers, permutations and keep-masks. A draw must take
//!    PyTorch's number of words: with one too many, every later number of the program differs.
//! 2. `wide`: the two draws for weight tensors, `rand` and `randn`, which the compiler vectorises.
//!
//! The reference is the official x86-64 build of PyTorch on a CPU with AVX2 or AVX-512. Its compiler fused many
//! products with the following sum, which rounds once instead of twice. So each `mul_add` is there to match PyTorch,
//! not as an optimisation. It gives the same bits on every machine, but is slower without the hardware instruction.

mod distributions;
#[allow(unsafe_code)] // SIMD kernels.
mod wide;

#[cfg(test)]
mod tests;

pub(crate) use distributions::*;
