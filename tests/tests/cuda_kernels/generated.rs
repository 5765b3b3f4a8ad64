//! Random kernels, run by the emulator and as g++ compiles them. More of them by the emulator's example `against_gpp`.

#[path = "../../../kernels/emulator/examples/against_gpp/compare.rs"]
mod compare;
#[path = "../../../kernels/emulator/examples/against_gpp/generator/mod.rs"]
pub mod generator;

use crate::stand_ins::fake_cuda::gpp::gpp;

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn a_hundred_random_kernels_have_the_bits_of_gpp() {
    let seeds: Vec<u64> = (1..=100).collect();
    let found = compare::differences(&seeds, gpp().unwrap()).unwrap();
    let shown =
        |(seed, why): &(u64, String)| format!("seed {seed}: {why}\n{}", generator::kernel("k", *seed));
    assert!(found.is_empty(), "{}", found.iter().map(shown).collect::<Vec<_>>().join("\n"));
}
