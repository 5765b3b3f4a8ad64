//! The errors of a CUDA driver.

use crate::contract::driver::DriverError;

const fn plain(code: u32, name: &'static str, message: &'static str) -> DriverError {
    DriverError { code, name, message, detail: None }
}

pub(super) const fn invalid_value() -> DriverError {
    plain(1, "cudaErrorInvalidValue", "invalid argument")
}

pub(super) const fn out_of_memory() -> DriverError {
    plain(2, "cudaErrorMemoryAllocation", "out of memory")
}

/// The profile has enough memory, but the computer does not.
pub(super) fn out_of_host_memory(bytes: usize) -> DriverError {
    let detail = format!("this computer cannot provide the {bytes} bytes of the simulated memory");
    DriverError { detail: Some(detail), ..out_of_memory() }
}

/// The computer has no memory for a simulated kernel's workspace, which hardware does not need.
pub(super) fn out_of_host_memory_in(kernel: &str, bytes: usize) -> DriverError {
    let detail =
        format!("this computer cannot provide the {bytes} bytes that the simulated kernel {kernel} needs");
    DriverError { detail: Some(detail), ..out_of_memory() }
}

pub(super) const fn invalid_device() -> DriverError {
    plain(101, "cudaErrorInvalidDevice", "invalid device ordinal")
}

pub(super) const fn no_kernel_image() -> DriverError {
    let message = "no kernel image is available for execution on the device";
    plain(209, "cudaErrorNoKernelImageForDevice", message)
}

pub(super) const fn peer_access_unsupported() -> DriverError {
    let message = "peer access is not supported between these two devices";
    plain(217, "cudaErrorPeerAccessUnsupported", message)
}

pub(super) const fn invalid_handle() -> DriverError {
    plain(400, "cudaErrorInvalidResourceHandle", "invalid resource handle")
}

pub(super) const fn not_ready() -> DriverError {
    plain(600, "cudaErrorNotReady", "device not ready")
}

pub(super) const fn illegal_address() -> DriverError {
    plain(700, "cudaErrorIllegalAddress", "an illegal memory access was encountered")
}

pub(super) const fn peer_access_already_enabled() -> DriverError {
    plain(704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled")
}

pub(super) fn device_assert(kernel: String, error: &dyn std::error::Error) -> DriverError {
    let detail = Some(format!("{kernel}: {error}"));
    DriverError { detail, ..plain(710, "cudaErrorAssert", "device-side assert triggered") }
}

pub(super) const fn misaligned_address() -> DriverError {
    plain(716, "cudaErrorMisalignedAddress", "misaligned address")
}

pub(super) fn launch_failure(kernel: String) -> DriverError {
    let detail = Some(format!("{kernel} panicked"));
    DriverError { detail, ..plain(719, "cudaErrorLaunchFailure", "unspecified launch failure") }
}

/// Not a CUDA error: the call found a race.
pub(super) const fn race() -> DriverError {
    plain(999, crate::contract::races::RACE, "data race")
}

pub(super) fn deadlock(waiting: String) -> DriverError {
    let detail = Some(format!("deadlock: {waiting}"));
    DriverError { detail, ..plain(999, "cudaErrorUnknown", "unknown error") }
}

/// Not a CUDA error: processes did not meet.
pub(super) const fn meeting() -> DriverError {
    plain(999, crate::contract::others::MEETING, "ranks did not come together")
}
