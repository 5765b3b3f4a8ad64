//! Random numbers on the CPU: same seed, same numbers as PyTorch 2.11, bit for bit.
//!
//! Four small ideas, one file each:
//!
//! 1. `mt19937`: the *engine*. It knows nothing but a stream of 32-bit words.
//! 2. `distributions`: turns words into uniforms, normals, integers, permutations and keep-masks. How
//!    many words a draw takes is part of the contract: one too many, and every later number of the
//!    program differs from PyTorch's.
//! 3. `wide`: the two draws that fill weight tensors, `rand` and `randn`, written so that the compiler
//!    works on eight numbers at a time.
//! 4. `generator`: `torch.Generator`, a handle that several owners share, with `get_state` and `set_state`.
//!
//! The reference is the official x86-64 build of PyTorch on a CPU with AVX2 or AVX-512. Its compiler
//! fused many products with the sum that follows them, and a fused multiply-add rounds once where two
//! operations round twice, so each `mul_add` below is a statement about PyTorch and none of them is an
//! optimisation. `mul_add` gives the same bits on every machine; without the hardware instruction it is
//! only slower.

mod distributions;
mod generator;
mod mt19937;
mod philox;
#[allow(unsafe_code)] // SIMD kernels.
mod wide;

#[cfg(test)]
mod tests;

pub use generator::Generator;
pub use mt19937::Engine;
pub use philox::{Philox, bits as philox_bits};

/// SplitMix64's last step: every bit of the result depends on every bit of the input.
pub fn mix(word: u64) -> u64 {
    let word = (word.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
