//! The card that a time is modelled on: a profile of the simulated GPU, with the limits of its generation.

use cuda_emulator::run::occupancy::Card;
use todevice_figures::figure_file::find_or_load;
use todevice_figures::profile::{PROFILES, Profile};

/// The card that most readers meet first.
pub static DEFAULT: &Profile = PROFILES[0];

/// Parses a value of `--gpu`, such as `sim`, `sim:h200` or `sim:my-card.profile`. `auto` is the default, as in other
/// labs.
pub fn parse(text: &str) -> Result<&'static Profile, String> {
    let expected = "expected auto | sim[:PROFILE]";
    match text.strip_prefix("sim") {
        Some("") => Ok(DEFAULT),
        Some(rest) => find_or_load(rest.strip_prefix(':').ok_or(expected)?),
        None if text == "auto" => Ok(DEFAULT),
        None if text == "none" => Err(format!("a modelled time needs a card, {expected}")),
        None => Err(expected.to_owned()),
    }
}

/// The limits of a generation that the profiles lack. Sources: the CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability" and "Throughput of Native Arithmetic Instructions"; NVIDIA's occupancy
/// calculator for the allocation units.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Resident blocks of a multiprocessor.
    pub blocks: u64,
    /// Of a multiprocessor.
    pub shared_kib: u64,
    /// Lanes of a multiprocessor for integers, and for loads and stores: results per cycle.
    pub integer_lanes: f64,
    pub memory_lanes: f64,
}

/// Returns the limits of a compute capability, or of the nearest earlier one if it is not listed.
pub fn generation(profile: &Profile) -> Generation {
    let (blocks, shared_kib, integer_lanes, memory_lanes) = match (profile.major, profile.minor) {
        (..=5, _) => (32, 64, 128.0, 32.0),
        (6, 0) => (32, 64, 64.0, 32.0),
        (6, _) => (32, 96, 128.0, 32.0),
        (7, ..=4) => (32, 96, 64.0, 32.0),
        (7, _) => (16, 64, 64.0, 16.0), // Turing: 16 load/store units, 64 bytes per cycle
        (8, 0) => (32, 164, 64.0, 32.0),
        (8, ..=8) => (16, 100, 64.0, 32.0),
        (8, _) => (24, 100, 64.0, 32.0),
        (9..=11, _) => (32, 228, 64.0, 32.0),
        (12.., _) => (24, 100, 128.0, 32.0), // RTX Blackwell: twice the integer lanes
    };
    Generation { blocks, shared_kib, integer_lanes, memory_lanes }
}

pub fn card(profile: &Profile) -> Card {
    let generation = generation(profile);
    let has_system_share = profile.major >= 8;
    Card {
        name: profile.name.to_owned(),
        multiprocessors: profile.multiprocessors.value as u64,
        warps: profile.threads_per_multiprocessor.value as u64 / 32,
        blocks: generation.blocks,
        shared: generation.shared_kib * 1024,
        shared_of_system: if has_system_share { 1024 } else { 0 },
        shared_unit: if has_system_share { 128 } else { 256 },
        flops: profile.fp32.value * 1e9,
        bytes: profile.dram.value * 1e9,
    }
}
