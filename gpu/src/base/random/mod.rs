//! Random numbers: generators and their state. The tensor crate turns their words into values.
//!
//! 1. `mt19937`: the *engine* of the CPU, which produces a stream of 32-bit words.
//! 2. `generator`: `torch.Generator`, a handle that several owners share, with `get_state` and `set_state`.
//! 3. `philox`: numbers generated on a device.

mod generator;
mod mt19937;
mod philox;

pub use generator::Generator;
pub use mt19937::Mt19937;
pub use philox::{Philox, fill as philox_fill};

/// SplitMix64's last step: every bit of the result depends on every bit of the input.
pub fn mix(word: u64) -> u64 {
    let word = (word.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
