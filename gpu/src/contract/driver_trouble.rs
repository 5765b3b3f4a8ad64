//! Why a driver cannot be used.

/// The problem with NVIDIA's driver. `Probe::driver` describes it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverTrouble {
    /// Its library does not exist.
    NotInstalled,
    /// Its library exists, but cannot be loaded.
    CannotBeLoaded,
    /// It is older than CUDA 12.0.
    TooOld,
    /// It fails to list the devices, with this CUDA error number.
    Fails(u32),
    /// It reports no GPU.
    NoGpu,
}
