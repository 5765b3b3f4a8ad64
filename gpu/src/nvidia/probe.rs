//! Searches this computer for NVIDIA's driver, its GPUs, and the libraries that this crate uses. Any of them may be
//! missing or too old. Findings are worded for the computer's owner.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::{cublas, cudnn, driver, nvrtc};

use super::api::driver::*;
use super::api::nvrtc::nvrtcVersion;
use super::errors::check;
use super::libraries::{self, CUBLAS, CUDNN, Library, NCCL, NVRTC};
use super::{api, properties};
use crate::contract::driver::DeviceProperties;
use crate::contract::driver::{DriverError, DriverResult};
use crate::contract::driver_trouble::DriverTrouble;

/// Installs the libraries that do not come with the driver.
pub const INSTALL: &str = "pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12 nvidia-cudnn-cu12";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Found {
        version: String,
        /// Its file, if the system reports it.
        path: Option<PathBuf>,
    },
    /// Absent or unusable.
    Missing {
        /// In one line.
        reason: String,
    },
}

impl Finding {
    fn missing(reason: impl Into<String>) -> Finding {
        Finding::Missing { reason: reason.into() }
    }

    pub fn is_found(&self) -> bool {
        matches!(self, Finding::Found { .. })
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Finding::Found { .. } => None,
            Finding::Missing { reason } => Some(reason),
        }
    }
}

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probe {
    /// libcuda. Its version is the newest CUDA version that it supports.
    pub driver: Finding,
    pub trouble: Option<DriverTrouble>,
    /// The GPUs that are visible to this program.
    pub devices: Vec<DeviceProperties>,
    /// libnvrtc, the compiler of kernels.
    pub nvrtc: Finding,
    /// libcublas, for matrix products.
    pub cublas: Finding,
    /// libcudnn, for convolutions.
    pub cudnn: Finding,
    /// libnccl, for several GPUs.
    pub nccl: Finding,
    pub searched: Vec<PathBuf>,
}

impl Probe {
    /// The one-line reason why tensors cannot be on a real GPU. `None` if they can.
    pub fn obstacle(&self) -> Option<String> {
        if let Some(reason) = self.driver.reason() {
            return Some(reason.to_owned());
        }
        if let Some(old) = self.devices.iter().find(|device| device.major < 7) {
            let capability = format!("{}.{}", old.major, old.minor);
            return Some(format!(
                "{} has compute capability {capability}, and the kernels need 7.0",
                old.name
            ));
        }
        let missing =
            |(name, finding): (&str, &Finding)| Some(format!("{name} is missing: {}", finding.reason()?));
        let missing: Vec<String> =
            [("NVRTC", &self.nvrtc), ("cuBLAS", &self.cublas)].into_iter().filter_map(missing).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

/// Searches once. The result does not change while a program runs.
pub fn probe() -> &'static Probe {
    static PROBE: OnceLock<Probe> = OnceLock::new();
    PROBE.get_or_init(look)
}

fn look() -> Probe {
    let driver = look_for_driver();
    // Without a driver the libraries cannot be used, but the probe still reports them.
    let cuda = driver.as_ref().map_or(13, |(version, _)| version / 1000);
    let nvrtc = look_for(NVRTC, cuda, "nvidia-cuda-nvrtc-cu12", || unsafe {
        // SAFETY: the library and the functions that are called are present.
        if !nvrtc::sys::is_culib_present() {
            return Err("it cannot be loaded".to_owned());
        }
        lacks(nvrtc::sys::culib(), api::nvrtc::NAMES)?;
        let (mut major, mut minor) = (0, 0);
        nvrtcVersion(&mut major, &mut minor);
        // The loader may find another version first, by a name without a version.
        match (NVRTC.versions)(cuda).contains(&(major.max(0) as u32)) {
            true => Ok(format!("{major}.{minor}")),
            false => {
                Err(format!("the loader finds version {major}.{minor} first, which does not fit the driver"))
            }
        }
    });
    let cublas = look_for(CUBLAS, cuda, "nvidia-cublas-cu12", || unsafe {
        // SAFETY: as above.
        if !cublas::sys::is_culib_present() {
            return Err("it cannot be loaded".to_owned());
        }
        lacks(cublas::sys::culib(), api::cublas::NAMES).map(|()| String::new())
    });
    let cudnn = look_for(CUDNN, cuda, "nvidia-cudnn-cu12", || unsafe {
        // SAFETY: as above.
        if !cudnn::sys::is_culib_present() {
            return Err("it cannot be loaded".to_owned());
        }
        lacks(cudnn::sys::culib(), api::cudnn::NAMES)?;
        let version = api::cudnn::cudnnGetVersion();
        match version / 10_000 {
            9 => Ok(format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)),
            _ => Err(format!("the loader finds version {version} first, and 9 is needed")),
        }
    });
    let nccl = look_for(NCCL, cuda, "nvidia-nccl-cu12", || Ok(String::new()));
    let (driver, trouble, devices) = match driver {
        Ok((version, devices)) => {
            let version = format!("{}.{}", version / 1000, version % 1000 / 10);
            (Finding::Found { version, path: libraries::loaded_from("libcuda.so") }, None, devices)
        }
        Err((trouble, reason)) => (Finding::missing(reason), Some(trouble), Vec::new()),
    };
    Probe { driver, trouble, devices, nvrtc, cublas, cudnn, nccl, searched: libraries::searched() }
}

/// The driver's CUDA version, 12040 for 12.4, and its GPUs.
fn look_for_driver() -> Result<(u32, Vec<DeviceProperties>), (DriverTrouble, String)> {
    let too_old = |reason| (DriverTrouble::TooOld, format!("the NVIDIA driver is too old: {reason}"));
    let fails = |error: DriverError| {
        (DriverTrouble::Fails(error.code), format!("the NVIDIA driver cannot be used: {}", error.message))
    };
    let loaded = libraries::load_driver();
    // SAFETY: libcuda does nothing when it is loaded.
    if !unsafe { driver::sys::is_culib_present() } {
        return Err(match loaded {
            Err(Some(wrong)) => {
                (DriverTrouble::CannotBeLoaded, format!("the NVIDIA driver cannot be loaded: {wrong}"))
            }
            _ => {
                let reason = format!("no NVIDIA driver: {} is not installed", libraries::DRIVER);
                (DriverTrouble::NotInstalled, reason)
            }
        });
    }
    // SAFETY: it is present.
    let library = unsafe { driver::sys::culib() };
    lacks(library, api::driver::NAMES).map_err(too_old)?;
    if api::EVENT_ELAPSED.iter().all(|name| lacks(library, &[name]).is_err()) {
        return Err(too_old(format!("it has no {}", api::EVENT_ELAPSED[0])));
    }
    // SAFETY: the called functions are present, and get room for their results.
    unsafe {
        let (mut version, mut count) = (0, 0);
        check(cuInit(0)).map_err(fails)?;
        check(cuDriverGetVersion(&mut version)).map_err(fails)?;
        if version < 12_000 {
            let known = format!("{}.{}", version / 1000, version % 1000 / 10);
            return Err(too_old(format!("it supports CUDA {known}, and 12.0 is needed")));
        }
        check(cuDeviceGetCount(&mut count)).map_err(fails)?;
        if count == 0 {
            return Err((DriverTrouble::NoGpu, "the NVIDIA driver finds no GPU".to_owned()));
        }
        let devices: Result<_, _> = (0..count).map(device_properties).collect();
        Ok((version as u32, devices.map_err(fails)?))
    }
}

fn device_properties(ordinal: c_int) -> DriverResult<DeviceProperties> {
    let mut device = 0;
    // SAFETY: there is room for the answer.
    check(unsafe { cuDeviceGet(&mut device, ordinal) })?;
    properties(device)
}

/// Fails with the name of the first missing function.
fn lacks(library: &libloading::Library, names: &[&str]) -> Result<(), String> {
    // SAFETY: the function is only looked up.
    let missing =
        names.iter().find(|name| unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err());
    missing.map_or(Ok(()), |name| Err(format!("it has no {name}")))
}

fn look_for(
    library: Library,
    cuda: u32,
    package: &str,
    version: impl FnOnce() -> Result<String, String>,
) -> Finding {
    let path = match library.load(cuda) {
        Ok(path) => path,
        Err(wrong) if wrong.is_empty() => {
            let names: Vec<String> = (library.versions)(cuda)
                .iter()
                .map(|version| format!("{}.{version}", library.file))
                .collect();
            let newer = library.too_new(cuda);
            let newer = newer.map(|path| format!(", and {} is for a newer driver", path.display()));
            return Finding::missing(format!(
                "{} was not found{} (pip install {package})",
                names.join(" or "),
                newer.unwrap_or_default()
            ));
        }
        Err(wrong) => return Finding::missing(format!("it cannot be loaded: {}", wrong.join("; "))),
    };
    let path = path.or_else(|| libraries::loaded_from(library.file));
    match version() {
        Ok(version) if version.is_empty() => {
            let version = path.as_deref().and_then(libraries::version_of).unwrap_or_default();
            Finding::Found { version, path }
        }
        Ok(version) => Finding::Found { version, path },
        Err(reason) => Finding::missing(format!("{}: {reason}", library.file)),
    }
}

pub(super) fn attribute(device: c_int, attribute: Attribute) -> DriverResult<u32> {
    let mut value = 0;
    // SAFETY: there is room for the answer.
    check(unsafe { cuDeviceGetAttribute(&mut value, attribute, device) })?;
    Ok(value.max(0) as u32)
}
