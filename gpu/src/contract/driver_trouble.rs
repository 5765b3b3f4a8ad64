//! Problems of NVIDIA's driver.

/// The reason why NVIDIA's driver cannot be used. `Probe::driver` describes it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverTrouble {
    NotInstalled,
    /// The library exists, but cannot be loaded.
    CannotBeLoaded,
    /// Older than CUDA 12.0.
    TooOld,
    /// The driver cannot list the devices. The number is a CUDA error.
    Fails(u32),
    NoGpu,
}
