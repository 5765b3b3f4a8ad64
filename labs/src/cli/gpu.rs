//! The value of `--gpu`: which GPUs the machine has.

use std::str::FromStr;

use todevice::Machine;

/// What can be said, for help and errors.
pub(super) const GRAMMAR: &str = "auto | none | real | sim[:PROFILE[xN]][,mem=512MiB][,seed=7]";

/// The GPUs that can be simulated.
const PROFILES: [&str; 3] = ["t4", "rtx4090", "h200"];

/// A machine has at most this many GPUs.
const MOST_GPUS: usize = 16;

/// What `--gpu` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuChoice {
    /// The real GPUs if there are any, else a simulated one.
    Auto,
    /// No GPU.
    None,
    /// The real GPUs.
    Real,
    /// Simulated GPUs.
    Simulated(Simulated),
}

/// The simulated GPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    pub profile: &'static str,
    pub count: usize,
    /// Bytes of memory of each GPU, if not the profile's own.
    pub memory: Option<u64>,
    pub seed: Option<u64>,
}

impl GpuChoice {
    /// The machine, or why there is none. Only machines without a GPU exist so far.
    pub fn machine(&self) -> Result<Machine, String> {
        match self {
            GpuChoice::Auto | GpuChoice::None => Ok(Machine::new()),
            GpuChoice::Real => Err("--gpu real: real GPUs are not built yet; --gpu none works".to_owned()),
            GpuChoice::Simulated(_) => {
                Err("--gpu sim: the simulated GPU is not built yet; --gpu none works".to_owned())
            }
        }
    }
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<GpuChoice, String> {
        match text {
            "auto" => Ok(GpuChoice::Auto),
            "none" => Ok(GpuChoice::None),
            "real" => Ok(GpuChoice::Real),
            _ => simulated(text).map(GpuChoice::Simulated),
        }
    }
}

fn simulated(text: &str) -> Result<Simulated, String> {
    let (gpus, settings) = match text.split_once(',') {
        Some((gpus, settings)) => (gpus, settings.split(',').collect()),
        None => (text, Vec::new()),
    };
    let (profile, count) = match gpus.strip_prefix("sim") {
        Some("") => (PROFILES[0], 1),
        Some(rest) => profile_and_count(rest.strip_prefix(':').ok_or_else(outside_grammar)?)?,
        None => return Err(outside_grammar()),
    };

    let mut simulated = Simulated { profile, count, memory: None, seed: None };
    for setting in settings {
        match setting.split_once('=') {
            Some(("mem", size)) if simulated.memory.is_none() => simulated.memory = Some(memory(size)?),
            Some(("seed", seed)) if simulated.seed.is_none() => {
                simulated.seed =
                    Some(super::seed(seed).map_err(|expected| format!("after seed=, {expected}"))?)
            }
            _ => return Err(outside_grammar()),
        }
    }
    Ok(simulated)
}

/// `t4x2` → T4, 2. The profile is looked for first: the x in `rtx4090` counts nothing.
fn profile_and_count(text: &str) -> Result<(&'static str, usize), String> {
    let unknown = || format!("unknown profile '{text}', expected one of {}", PROFILES.join(", "));
    let known = PROFILES.into_iter().find_map(|profile| Some((profile, text.strip_prefix(profile)?)));
    let (profile, rest) = known.ok_or_else(unknown)?;
    if rest.is_empty() {
        return Ok((profile, 1));
    }
    let count = rest.strip_prefix('x').ok_or_else(unknown)?;
    let count = super::count(1..=MOST_GPUS)(count).map_err(|expected| format!("after x, {expected}"))?;
    Ok((profile, count))
}

/// `512MiB` → 536870912.
fn memory(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit: Option<u64> = match &text[digits.len()..] {
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("'{text}' is no size of memory, expected one such as 512MiB or 16GiB"))
}

fn outside_grammar() -> String {
    format!("expected {GRAMMAR}")
}
