//! The driver's errors, under the runtime's names.

use cudarc::driver::sys::CUresult;

use super::api;
use super::api::driver::{cuGetErrorName, cuGetErrorString};
use crate::contract::driver::{DriverError, DriverResult};

pub(super) fn check(result: CUresult) -> DriverResult<()> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        error => Err(driver_error(error)),
    }
}

/// Whether work has run. Results other than success and "not ready" are errors.
pub(super) fn has_run(result: CUresult) -> DriverResult<bool> {
    match result {
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        result => check(result).map(|()| true),
    }
}

fn driver_error(error: CUresult) -> DriverError {
    let code = error as u32;
    let (mut name, mut message) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the driver fills in pointers to its own strings.
    let (name, message) = unsafe {
        cuGetErrorName(error, &mut name);
        cuGetErrorString(error, &mut message);
        (api::text(name), api::text(message))
    };
    DriverError { code, name: runtime_name(code).unwrap_or(name), message, detail: None }
}

/// An error of a library such as cuBLAS, without a CUDA error number.
pub(super) fn library(name: &'static str, message: &'static str, detail: String) -> DriverError {
    DriverError { code: 0, name, message, detail: Some(detail) }
}

pub(super) fn invalid_value() -> DriverError {
    invalid(1, "invalid argument")
}

pub(super) fn invalid_handle() -> DriverError {
    invalid(400, "invalid resource handle")
}

pub(super) fn invalid(code: u32, message: &'static str) -> DriverError {
    DriverError { code, name: runtime_name(code).unwrap_or_default(), message, detail: None }
}

/// Whether the error is sticky: the context is lost, and every later call fails with it.
pub(super) fn sticks(error: &DriverError) -> bool {
    matches!(error.code, 214 | 226 | 700 | 702 | 710 | 714..=719 | 721)
}

/// The names of CUDA's runtime, and so of PyTorch, for the numbers that it shares with the driver.
fn runtime_name(code: u32) -> Option<&'static str> {
    Some(match code {
        1 => "cudaErrorInvalidValue",
        2 => "cudaErrorMemoryAllocation",
        3 => "cudaErrorInitializationError",
        4 => "cudaErrorCudartUnloading",
        35 => "cudaErrorInsufficientDriver",
        46 => "cudaErrorDevicesUnavailable",
        100 => "cudaErrorNoDevice",
        101 => "cudaErrorInvalidDevice",
        200 => "cudaErrorInvalidKernelImage",
        201 => "cudaErrorDeviceUninitialized",
        209 => "cudaErrorNoKernelImageForDevice",
        214 => "cudaErrorECCUncorrectable",
        217 => "cudaErrorPeerAccessUnsupported",
        218 => "cudaErrorInvalidPtx",
        222 => "cudaErrorUnsupportedPtxVersion",
        304 => "cudaErrorOperatingSystem",
        400 => "cudaErrorInvalidResourceHandle",
        500 => "cudaErrorSymbolNotFound",
        600 => "cudaErrorNotReady",
        700 => "cudaErrorIllegalAddress",
        701 => "cudaErrorLaunchOutOfResources",
        702 => "cudaErrorLaunchTimeout",
        704 => "cudaErrorPeerAccessAlreadyEnabled",
        705 => "cudaErrorPeerAccessNotEnabled",
        710 => "cudaErrorAssert",
        714 => "cudaErrorHardwareStackError",
        715 => "cudaErrorIllegalInstruction",
        716 => "cudaErrorMisalignedAddress",
        717 => "cudaErrorInvalidAddressSpace",
        718 => "cudaErrorInvalidPc",
        719 => "cudaErrorLaunchFailure",
        801 => "cudaErrorNotSupported",
        802 => "cudaErrorSystemNotReady",
        803 => "cudaErrorSystemDriverMismatch",
        999 => "cudaErrorUnknown",
        _ => return None,
    })
}
