//! Why a driver is of no use.

/// What is the matter with NVIDIA's driver. `Probe::driver` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverTrouble {
    /// Its library is not there.
    NotInstalled,
    /// Its library is there, and cannot be loaded.
    CannotBeLoaded,
    /// It is older than CUDA 12.0.
    TooOld,
    /// It fails when it is asked what there is, with this number of CUDA's.
    Fails(u32),
    /// It has no GPU to show.
    NoGpu,
}
