//! The value of `--gpu`, which describes a machine's GPUs.

use std::fmt;
use std::str::FromStr;

use super::error::MachineError;
use super::{Machine, environment};
use crate::error::{Error, GpuError, Result};
use crate::figure_file::{find, find_or_load};
use crate::gpu::allocator::settings::Settings;
use crate::gpu::simulated::Setup;
use crate::gpu::simulated::profile::{ALL, PROFILES, Profile};
use crate::host_profile::{HOSTS, HostProfile};

/// Whether `verify --gpu real` has confirmed the book's outputs on a real card. Until then, `auto` simulates a card.
const VERIFIED_ON_A_REAL_GPU: bool = false;

/// The maximum number of GPUs in a machine.
const MOST_GPUS: usize = 16;

/// A parsed value of `--gpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSpec {
    /// A simulated GPU. Once the labs have been verified on a real GPU: the real GPUs, if there are any.
    Auto,
    /// No GPU.
    None,
    /// The real GPUs.
    Real,
    /// Simulated GPUs.
    Simulated(SimulatedGpus),
}

/// The simulated GPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedGpus {
    /// The name of the profile: t4, rtx4090, h200, rtx5090, or the path of a profile file, `my-card.profile`.
    pub profile: &'static str,
    /// The number of GPUs.
    pub count: usize,
    /// Bytes of each GPU's memory, if not the profile's.
    pub memory: Option<u64>,
    /// Bytes of each GPU's memory held by another process, such as a browser.
    pub others: Option<u64>,
    /// Varies all times reproducibly.
    pub seed: Option<u64>,
    /// The name of the host's profile: laptop, pytorch, or the path of a profile file, `my-computer.host`.
    pub host: &'static str,
    /// The indices of the GPUs that a program sees, in its order, from `CUDA_VISIBLE_DEVICES`. All by default.
    pub visible: Option<Vec<usize>>,
    /// The emulated PyTorch build, and the access between GPUs: `build=`, `p2p=` and `NCCL_P2P_DISABLE`.
    pub setup: Setup,
}

impl SimulatedGpus {
    #[doc(hidden)]
    pub fn card(&self) -> &'static Profile {
        find(self.profile).unwrap_or(PROFILES[0])
    }

    pub(super) fn visible_count(&self) -> usize {
        self.visible.as_ref().map_or(self.count, Vec::len)
    }

    #[doc(hidden)]
    pub fn host_profile(&self) -> &'static HostProfile {
        find(self.host).unwrap_or(HOSTS[0])
    }
}

impl Default for SimulatedGpus {
    fn default() -> SimulatedGpus {
        let (profile, host) = (PROFILES[0].key, HOSTS[0].key);
        SimulatedGpus {
            profile,
            count: 1,
            memory: None,
            others: None,
            seed: None,
            host,
            visible: None,
            setup: Setup::default(),
        }
    }
}

impl GpuSpec {
    /// The syntax, for help and errors.
    pub const GRAMMAR: &str = "auto | none | real | sim[:PROFILE[xN]][,mem=512MiB][,others=1GiB][,seed=7][,host=HOST][,build=cu126][,p2p=broken]";

    /// The possible values of HOST.
    pub const HOSTS: &str = "laptop | pytorch | FILE.host";

    /// Returns the same GPUs with another modelled host.
    pub fn with_host(self, host: &str) -> Result<GpuSpec> {
        let host = find_or_load::<HostProfile>(host).map_err(MachineError::Description)?.key;
        match self {
            GpuSpec::Auto => Ok(GpuSpec::Simulated(SimulatedGpus { host, ..Default::default() })),
            GpuSpec::Simulated(gpus) => Ok(GpuSpec::Simulated(SimulatedGpus { host, ..gpus })),
            GpuSpec::None | GpuSpec::Real => {
                let why = format!("--gpu {self} measures time; only simulated GPUs have a modelled host");
                Err(MachineError::Description(why).into())
            }
        }
    }

    /// Returns the same GPUs for `CUDA_VISIBLE_DEVICES=list`. For real GPUs the driver handles it.
    pub(super) fn visible(&self, list: &str) -> GpuSpec {
        let simulated = match self {
            GpuSpec::Simulated(gpus) => gpus.clone(),
            GpuSpec::Auto if !VERIFIED_ON_A_REAL_GPU => SimulatedGpus::default(),
            GpuSpec::Auto | GpuSpec::None | GpuSpec::Real => return self.clone(),
        };
        let visible = Some(environment::visible(list, simulated.count));
        GpuSpec::Simulated(SimulatedGpus { visible, ..simulated })
    }

    /// Returns the same GPUs for `NCCL_P2P_DISABLE=1`. For real GPUs NCCL handles it.
    pub(super) fn without_nccl_p2p(&self) -> GpuSpec {
        let simulated = match self {
            GpuSpec::Simulated(gpus) => gpus.clone(),
            GpuSpec::Auto if !VERIFIED_ON_A_REAL_GPU => SimulatedGpus::default(),
            GpuSpec::Auto | GpuSpec::None | GpuSpec::Real => return self.clone(),
        };
        let setup = Setup { nccl_p2p_disable: true, ..simulated.setup };
        GpuSpec::Simulated(SimulatedGpus { setup, ..simulated })
    }

    /// Creates the machine for a user's program. It follows the environment: the allocator's settings
    /// ([`cuda::set_allocator_settings`](crate::cuda::set_allocator_settings)), blocking launches
    /// ([`cuda::set_launch_blocking`](crate::cuda::set_launch_blocking)), visible GPUs
    /// ([`Machine::with_visible_devices`]), and collectives without peer access ([`Machine::with_nccl_p2p_disabled`]).
    /// Allocator options that this crate lacks were set for PyTorch, so they are ignored with a warning
    /// ([`Machine::on_warning`]). A hidden simulated GPU also causes a warning.
    pub fn machine(&self) -> Result<Machine> {
        let (settings, mut ignored) = Settings::from_environment();
        let blocking = environment::launch_blocking().map_err(MachineError::Description)?;
        let list = environment::visible_devices();
        let spec = list.as_ref().map_or_else(|| self.clone(), |list| self.visible(list));
        let spec = if environment::nccl_p2p_disable().map_err(MachineError::Description)? {
            spec.without_nccl_p2p()
        } else {
            spec
        };
        let machine = spec.bare_machine()?;
        if let (GpuSpec::Simulated(gpus), Some(list)) = (&spec, list)
            && gpus.visible_count() < gpus.count
        {
            let list = list.replace(char::is_control, " "); // The warning must be a single line.
            ignored.push(format!(
                "{}={list} lets programs see {} of the {} simulated GPUs",
                environment::VISIBLE,
                gpus.visible_count(),
                gpus.count
            ));
        }
        if let Some(cuda) = machine.cuda() {
            cuda.set_allocator_settings(settings);
            cuda.set_launch_blocking(blocking);
        }
        machine.host().warn_later(ignored);
        Ok(machine)
    }

    /// The reason why `auto` does not use this computer's GPU: a missing library, or a GPU only used by request.
    #[cfg(not(target_family = "wasm"))]
    pub fn why_simulated(&self) -> Option<String> {
        if *self != GpuSpec::Auto {
            return None; // Probing takes time.
        }
        let probe = crate::gpu::probe();
        if !probe.driver.is_found() {
            return None;
        }
        let unverified = "The labs have not been verified on a real GPU yet; --gpu real runs them on yours";
        probe.obstacle().or_else(|| (!VERIFIED_ON_A_REAL_GPU).then(|| unverified.to_owned()))
    }

    /// Creates the machine regardless of the environment, for tests and books, like `"sim:t4".parse()`.
    pub fn bare_machine(&self) -> Result<Machine> {
        match self {
            GpuSpec::None => Ok(Machine::new()),
            GpuSpec::Real => Machine::real().map_err(|reason| {
                let advice = "cargo run --bin doctor explains the solution; --gpu sim:t4 simulates a card";
                MachineError::Unavailable(format!("--gpu real: {reason} ({advice})")).into()
            }),
            GpuSpec::Auto => {
                let real = if VERIFIED_ON_A_REAL_GPU { Machine::real().ok() } else { None };
                Ok(real.unwrap_or_else(|| Machine::simulated(SimulatedGpus::default())))
            }
            GpuSpec::Simulated(gpus) => Ok(Machine::simulated(gpus.clone())),
        }
    }
}

impl fmt::Display for GpuSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuSpec::Auto => f.write_str("auto"),
            GpuSpec::None => f.write_str("none"),
            GpuSpec::Real => f.write_str("real"),
            GpuSpec::Simulated(SimulatedGpus {
                profile, count, memory, others, seed, host, setup, ..
            }) => {
                write!(f, "sim:{profile}")?;
                if *count != 1 {
                    write!(f, "x{count}")?;
                }
                for (name, bytes) in [("mem", memory), ("others", others)] {
                    match bytes {
                        Some(bytes) if bytes % (1 << 30) == 0 => write!(f, ",{name}={}GiB", bytes >> 30)?,
                        Some(bytes) if bytes % (1 << 20) == 0 => write!(f, ",{name}={}MiB", bytes >> 20)?,
                        Some(bytes) => write!(f, ",{name}={}KiB", bytes >> 10)?,
                        None => {}
                    }
                }
                if let Some(seed) = seed {
                    write!(f, ",seed={seed}")?;
                }
                if *host != HOSTS[0].key {
                    write!(f, ",host={host}")?;
                }
                if let Some(build) = setup.build {
                    write!(f, ",build={build}")?;
                }
                setup.p2p.name().map_or(Ok(()), |p2p| write!(f, ",p2p={p2p}"))
            }
        }
    }
}

impl FromStr for GpuSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<GpuSpec> {
        match text {
            "auto" => Ok(GpuSpec::Auto),
            "none" => Ok(GpuSpec::None),
            "real" => Ok(GpuSpec::Real),
            _ => match simulated(text) {
                Ok(gpus) => Ok(GpuSpec::Simulated(gpus)),
                Err(why) => Err(MachineError::Description(why).into()),
            },
        }
    }
}

fn simulated(text: &str) -> Result<SimulatedGpus, String> {
    let (gpus, settings) = match text.split_once(',') {
        Some((gpus, settings)) => (gpus, settings.split(',').collect()),
        None => (text, Vec::new()),
    };
    let (profile, count) = match gpus.strip_prefix("sim") {
        Some("") => (PROFILES[0].key, 1),
        Some(rest) => profile_and_count(rest.strip_prefix(':').ok_or_else(outside_grammar)?)?,
        None => return Err(outside_grammar()),
    };

    let mut simulated = SimulatedGpus { profile, count, ..Default::default() };
    let mut given = Vec::new();
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or_else(|| no_option(setting))?;
        if given.contains(&name) {
            return Err(format!("{name}= occurs twice, expected it once"));
        }
        given.push(name);
        let read = match name {
            "mem" => memory(value).map(|size| simulated.memory = Some(size)),
            "others" => memory(value).map(|size| simulated.others = Some(size)),
            "seed" => {
                parse_seed(value).map(|seed| simulated.seed = Some(seed)).map_err(|wrong| wrong.to_string())
            }
            "build" => {
                let build = value.parse().map_err(|wrong: GpuError| wrong.to_string());
                build.map(|build| simulated.setup.build = Some(build))
            }
            "host" => {
                simulated.host = find_or_load::<HostProfile>(value)?.key;
                Ok(())
            }
            "p2p" => {
                simulated.setup.p2p = value.parse().map_err(|wrong: GpuError| wrong.to_string())?;
                Ok(())
            }
            _ => return Err(no_option(setting)),
        };
        read.map_err(|what| format!("after {name}=, {what}"))?;
    }
    check_p2p(&simulated)?;
    let context = simulated.card().context.value as u64;
    let total = simulated.memory.unwrap_or(simulated.card().memory.value as u64);
    let taken =
        |size: u64| format!("CUDA itself takes {} MiB of a {profile} as soon as it is used", size >> 20);
    if total <= context {
        return Err(format!("mem= is too small: {}", taken(context)));
    }
    match simulated.others {
        Some(others) if others >= total - context => {
            Err(format!("others= is too large for {} MiB of memory: {}", total >> 20, taken(context)))
        }
        _ => Ok(simulated),
    }
}

/// Rejects `p2p=` for GPUs without peer access.
fn check_p2p(gpus: &SimulatedGpus) -> Result<(), String> {
    let Some(p2p) = gpus.setup.p2p.name() else { return Ok(()) };
    if !gpus.card().has_peers() {
        let those = ALL.iter().filter(|card| card.has_peers()).map(|card| card.key);
        let those = those.collect::<Vec<_>>().join(" and ");
        return Err(format!(
            "p2p={p2p} needs cards that reach each other's memory, as {those} do; {} does not",
            gpus.profile
        ));
    }
    match gpus.count {
        1 => Err(format!("p2p={p2p} needs two GPUs, such as sim:{}x2,p2p={p2p}", gpus.profile)),
        _ => Ok(()),
    }
}

/// Parses `t4x2` as T4 and 2, and `my-card.profile` as that file and 1. The x of `rtx4090` is no count.
fn profile_and_count(text: &str) -> Result<(&'static str, usize), String> {
    let counted = ALL
        .iter()
        .find_map(|profile| Some((profile.key, text.strip_prefix(profile.key)?.strip_prefix('x')?)));
    let Some((profile, count)) = counted else {
        return Ok((find_or_load::<Profile>(text)?.key, 1));
    };
    let number = count.parse().ok().filter(|count| (1..=MOST_GPUS).contains(count));
    let number = number.ok_or_else(|| format!("after x, expected a whole number from 1 to {MOST_GPUS}"))?;
    Ok((profile, number))
}

/// Parses a memory size: `512MiB` is 536870912.
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
        .ok_or_else(|| format!("'{text}' is not a size of memory, expected one such as 512MiB or 16GiB"))
}

/// Parses a seed like `torch.manual_seed`: any 64-bit integer. A negative one is its two's complement.
///
/// ```
/// assert_eq!(todevice::parse_seed("-1")?, u64::MAX);
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn parse_seed(text: &str) -> Result<u64> {
    let unsigned = text.parse::<u64>().ok();
    let signed = || text.parse::<i64>().ok().map(i64::cast_unsigned);
    let expected = || format!("expected a whole number from {} to {}", i64::MIN, u64::MAX);
    unsigned.or_else(signed).ok_or_else(|| MachineError::Description(expected()).into())
}

fn no_option(setting: &str) -> String {
    format!("unknown option '{setting}', expected {}", GpuSpec::GRAMMAR)
}

fn outside_grammar() -> String {
    format!("expected {}", GpuSpec::GRAMMAR)
}
