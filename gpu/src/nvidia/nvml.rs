//! The monitor's functions of NVML, the library behind `nvidia-smi`. NVML comes with the driver. An older driver may
//! lack functions and a card may lack sensors, so each query fails separately.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use libloading::Library;

use crate::base::reading::ComputeMode;

const FILE: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };

/// NVML's return codes: success, and a list that needs more room.
const SUCCESS: c_int = 0;
const INSUFFICIENT_SIZE: c_int = 7;

/// NVML's value for unreported memory of a process.
const NOT_AVAILABLE: u64 = u64::MAX;

const UNKNOWN_STATE: c_uint = 32;

/// NVML, initialised, and shared by all threads.
pub struct Nvml(Library);

pub struct NvmlDevice {
    nvml: &'static Nvml,
    handle: *mut c_void,
}

/// Bytes of a GPU's memory, in NVML's fields.
#[repr(C)]
#[derive(Default)]
pub struct MemoryUse {
    version: c_uint,
    pub total: u64,
    pub reserved: u64,
    pub free: u64,
    pub used: u64,
}

/// Percentages of the time.
#[repr(C)]
#[derive(Default)]
pub struct Utilization {
    pub gpu: c_uint,
    pub memory: c_uint,
}

/// A direction over PCI Express, with NVML's number.
#[derive(Clone, Copy)]
pub enum PcieDirection {
    FromDevice = 0,
    ToDevice = 1,
}

#[repr(C)]
#[derive(Clone, Default)]
struct ProcessInfo {
    pid: c_uint,
    used_memory: u64,
    instances: [c_uint; 2],
}

/// A card's address on the PCI bus, in NVML's fields.
#[repr(C)]
#[derive(Default)]
struct PciInfo {
    legacy_bus_id: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    ids: [c_uint; 2],
    bus_id: [u8; 32],
}

/// The devices at the other end of an NVLink: a GPU, or a switch that leads to all GPUs.
const LINKED_TO_GPU: c_uint = 0;
const LINKED_TO_SWITCH: c_uint = 2;

/// An upper limit on the number of NVLinks of a card.
const MOST_NVLINKS: c_uint = 64;

/// Calls an NVML function as nvml.h declares it: `call!(nvml, "nvmlDeviceGetName", (card: *mut c_void, …))`.
macro_rules! call {
    ($nvml:expr, $name:expr, ($($argument:ident: $Type:ty),*)) => {{
        type CuFunction = unsafe extern "C" fn($($Type),*) -> c_int;
        // SAFETY: that is its signature, and the targets of the pointers outlive the call.
        let answer = unsafe { $nvml.0.get::<CuFunction>($name).map(|function| function($($argument),*)) };
        answer.map_err(|_| format!("it has no {}", $name))
    }};
}

impl Nvml {
    /// Loads NVML once. The result does not change while a program runs.
    pub fn get() -> Result<&'static Nvml, String> {
        static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
        NVML.get_or_init(Nvml::start).as_ref().map_err(Clone::clone)
    }

    fn start() -> Result<Nvml, String> {
        // SAFETY: the name is an NVIDIA library's, which we trust like any program that links with it.
        let library = unsafe { Library::new(FILE) };
        let nvml = Nvml(library.map_err(|error| match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        })?);
        nvml.check(call!(nvml, "nvmlInit_v2", ())?)?;
        Ok(nvml)
    }

    fn check(&self, answer: c_int) -> Result<(), String> {
        if answer == SUCCESS {
            return Ok(());
        }
        // SAFETY: that is its signature, and its strings are static.
        let text = unsafe {
            let function = self.0.get::<unsafe extern "C" fn(c_int) -> *const c_char>("nvmlErrorString").ok();
            function
                .map(|function| function(answer))
                .filter(|text| !text.is_null())
                .map(|text| CStr::from_ptr(text))
        };
        Err(text.map_or(format!("error {answer}"), |text| text.to_string_lossy().into_owned()))
    }

    /// The GPU at a PCI bus id such as `00000000:3B:00.0`.
    pub fn card(&'static self, bus_id: &CStr) -> Result<NvmlDevice, String> {
        let mut handle = null_mut();
        let (place, out) = (bus_id.as_ptr(), &mut handle);
        let name = "nvmlDeviceGetHandleByPciBusId_v2";
        self.check(call!(self, name, (place: *const c_char, out: *mut *mut c_void))?)?;
        Ok(NvmlDevice { nvml: self, handle })
    }

    /// NVML's version, such as `13.610.43.02`. The first number is CUDA's.
    pub fn version(&self) -> Result<String, String> {
        self.text_of("nvmlSystemGetNVMLVersion")
    }

    pub fn driver_version(&self) -> Result<String, String> {
        self.text_of("nvmlSystemGetDriverVersion")
    }

    /// The newest CUDA version that the driver supports: 13030 is 13.3.
    pub fn cuda_version(&self) -> Result<c_int, String> {
        let mut version = 0;
        let (name, out) = ("nvmlSystemGetCudaDriverVersion_v2", &mut version);
        self.check(call!(self, name, (out: *mut c_int))?)?;
        Ok(version)
    }

    fn text_of(&self, name: &str) -> Result<String, String> {
        text(|room, length| self.check(call!(self, name, (room: *mut c_char, length: c_uint))?))
    }

    pub fn process_name(&self, pid: u32) -> Result<String, String> {
        text(|room, length| {
            let name = "nvmlSystemGetProcessName";
            self.check(call!(self, name, (pid: c_uint, room: *mut c_char, length: c_uint))?)
        })
    }
}

impl NvmlDevice {
    pub fn name(&self) -> Result<String, String> {
        let card = self.handle;
        text(|room, length| {
            let name = "nvmlDeviceGetName";
            self.nvml.check(call!(self.nvml, name, (card: *mut c_void, room: *mut c_char, length: c_uint))?)
        })
    }

    pub fn memory(&self) -> Result<MemoryUse, String> {
        // The version of a struct combines its number and its size.
        let mut memory =
            MemoryUse { version: size_of::<MemoryUse>() as c_uint | 2 << 24, ..MemoryUse::default() };
        let (card, out) = (self.handle, &mut memory);
        let name = "nvmlDeviceGetMemoryInfo_v2";
        self.nvml.check(call!(self.nvml, name, (card: *mut c_void, out: *mut MemoryUse))?)?;
        Ok(memory)
    }

    pub fn utilization(&self) -> Result<Utilization, String> {
        let mut rates = Utilization::default();
        let (card, out) = (self.handle, &mut rates);
        let name = "nvmlDeviceGetUtilizationRates";
        self.nvml.check(call!(self.nvml, name, (card: *mut c_void, out: *mut Utilization))?)?;
        Ok(rates)
    }

    /// The first fan's speed in percent of its maximum.
    pub fn fan_speed(&self) -> Result<u32, String> {
        self.number_of("nvmlDeviceGetFanSpeed_v2", 0)
    }

    /// The chip's temperature in degrees Celsius.
    pub fn temperature(&self) -> Result<u32, String> {
        self.number_of("nvmlDeviceGetTemperature", 0)
    }

    /// P0 to P15. `None` if unknown.
    pub fn performance_state(&self) -> Result<Option<u32>, String> {
        self.number("nvmlDeviceGetPerformanceState")
            .map(|state| Some(state).filter(|state| *state < UNKNOWN_STATE))
    }

    /// In milliwatts.
    pub fn power_draw(&self) -> Result<u32, String> {
        self.number("nvmlDeviceGetPowerUsage")
    }

    /// In milliwatts.
    pub fn power_limit(&self) -> Result<u32, String> {
        self.number("nvmlDeviceGetEnforcedPowerLimit")
    }

    /// In kilobytes per second.
    pub fn pcie_throughput(&self, way: PcieDirection) -> Result<u32, String> {
        self.number_of("nvmlDeviceGetPcieThroughput", way as c_uint)
    }

    pub fn persistence_mode(&self) -> Result<bool, String> {
        self.number("nvmlDeviceGetPersistenceMode").map(is_on)
    }

    pub fn display_active(&self) -> Result<bool, String> {
        self.number("nvmlDeviceGetDisplayActive").map(is_on)
    }

    /// `None` for an unknown mode.
    pub fn compute_mode(&self) -> Result<Option<ComputeMode>, String> {
        self.number("nvmlDeviceGetComputeMode").map(|mode| match mode {
            0 => Some(ComputeMode::Default),
            1 => Some(ComputeMode::ExclusiveThread),
            2 => Some(ComputeMode::Prohibited),
            3 => Some(ComputeMode::ExclusiveProcess),
            _ => None,
        })
    }

    pub fn uncorrected_errors(&self) -> Result<u64, String> {
        const UNCORRECTED: c_uint = 1;
        const SINCE_THE_DRIVER_WAS_LOADED: c_uint = 0;
        let mut errors = 0;
        let (card, kind, since) = (self.handle, UNCORRECTED, SINCE_THE_DRIVER_WAS_LOADED);
        let out = &mut errors;
        let name = "nvmlDeviceGetTotalEccErrors";
        let answer = call!(self.nvml, name, (card: *mut c_void, kind: c_uint, since: c_uint, out: *mut u64));
        self.nvml.check(answer?)?;
        Ok(errors)
    }

    /// Whether the card is currently partitioned.
    pub fn mig_mode(&self) -> Result<bool, String> {
        let (mut now, mut next) = (0, 0);
        let (card, out, after_reset) = (self.handle, &mut now, &mut next);
        let name = "nvmlDeviceGetMigMode";
        let answer = call!(self.nvml, name, (card: *mut c_void, out: *mut c_uint, after_reset: *mut c_uint));
        self.nvml.check(answer?)?;
        Ok(is_on(now))
    }

    /// Process ids and, if reported, bytes of memory.
    pub fn compute_processes(&self) -> Result<Vec<(u32, Option<u64>)>, String> {
        self.processes("nvmlDeviceGetComputeRunningProcesses_v3")
    }

    pub fn graphics_processes(&self) -> Result<Vec<(u32, Option<u64>)>, String> {
        self.processes("nvmlDeviceGetGraphicsRunningProcesses_v3")
    }

    /// NVML's level of the PCI Express tree at which the paths of both cards meet: 10 is one bridge.
    pub fn common_ancestor(&self, other: &NvmlDevice) -> Result<u32, String> {
        let mut level = 0;
        let (card, other, out) = (self.handle, other.handle, &mut level);
        let name = "nvmlDeviceGetTopologyCommonAncestor";
        let answer = call!(self.nvml, name, (card: *mut c_void, other: *mut c_void, out: *mut c_uint));
        self.nvml.check(answer?)?;
        Ok(level)
    }

    /// The number of NVLinks to another card, directly or through switches.
    pub fn nvlinks_to(&self, bus_id: &str) -> u32 {
        let leads_there = |link: c_uint| {
            let end = self.number_of("nvmlDeviceGetNvLinkRemoteDeviceType", link).ok();
            end == Some(LINKED_TO_SWITCH)
                || end.is_none_or(|end| end == LINKED_TO_GPU)
                    && self.linked_to(link).is_ok_and(|other| other.eq_ignore_ascii_case(bus_id))
        };
        // A card returns an error for a link that it does not have.
        let states = (0..MOST_NVLINKS)
            .map_while(|link| Some((link, self.number_of("nvmlDeviceGetNvLinkState", link).ok()?)));
        states.filter(|(link, state)| is_on(*state) && leads_there(*link)).count() as u32
    }

    /// The PCI bus id of the card at the other end of an NVLink.
    fn linked_to(&self, link: c_uint) -> Result<String, String> {
        let mut place = PciInfo::default();
        let (card, out) = (self.handle, &mut place);
        let name = "nvmlDeviceGetNvLinkRemotePciInfo_v2";
        self.nvml.check(call!(self.nvml, name, (card: *mut c_void, link: c_uint, out: *mut PciInfo))?)?;
        let bus_id = CStr::from_bytes_until_nul(&place.bus_id)
            .map_err(|_| "a string without a terminator".to_owned())?;
        Ok(bus_id.to_string_lossy().into_owned())
    }

    fn number(&self, name: &str) -> Result<u32, String> {
        let mut number = 0;
        let (card, out) = (self.handle, &mut number);
        self.nvml.check(call!(self.nvml, name, (card: *mut c_void, out: *mut c_uint))?)?;
        Ok(number)
    }

    /// For one fan, sensor or direction.
    fn number_of(&self, name: &str, which: c_uint) -> Result<u32, String> {
        let mut number = 0;
        let (card, out) = (self.handle, &mut number);
        self.nvml.check(call!(self.nvml, name, (card: *mut c_void, which: c_uint, out: *mut c_uint))?)?;
        Ok(number)
    }

    fn processes(&self, name: &str) -> Result<Vec<(u32, Option<u64>)>, String> {
        let card = self.handle;
        let list = |count: &mut c_uint, room: *mut ProcessInfo| call!(self.nvml, name, (card: *mut c_void, count: *mut c_uint, room: *mut ProcessInfo));
        let mut count = 0;
        let answer = list(&mut count, null_mut())?;
        if answer != INSUFFICIENT_SIZE {
            return self.nvml.check(answer).map(|()| Vec::new());
        }
        // More processes may have started.
        count += 5;
        let mut processes = vec![ProcessInfo::default(); count as usize];
        self.nvml.check(list(&mut count, processes.as_mut_ptr())?)?;
        processes.truncate(count as usize);
        let known = |bytes| Some(bytes).filter(|bytes| *bytes != NOT_AVAILABLE);
        Ok(processes.into_iter().map(|process| (process.pid, known(process.used_memory))).collect())
    }
}

fn is_on(answer: c_uint) -> bool {
    answer == 1
}

/// Returns a string that NVML writes into a buffer.
fn text(write: impl Fn(*mut c_char, c_uint) -> Result<(), String>) -> Result<String, String> {
    let mut room = [0u8; 256];
    write(room.as_mut_ptr().cast(), room.len() as c_uint)?;
    let text = CStr::from_bytes_until_nul(&room).map_err(|_| "a string without a terminator".to_owned())?;
    Ok(text.to_string_lossy().into_owned())
}
