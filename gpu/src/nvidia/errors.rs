//! The errors of the driver, by the names that programs know them by.

use cudarc::driver::sys::CUresult;

use super::api;
use super::api::driver::{cuGetErrorName, cuGetErrorString};
use crate::contract::driver::{DriverError, DriverResult};

/// What a call of the driver came to.
pub(super) fn check(result: CUresult) -> DriverResult<()> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        error => Err(driver_error(error)),
    }
}

/// Whether something has run; any error but "not yet" is one.
pub(super) fn has_run(result: CUresult) -> DriverResult<bool> {
    match result {
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        result => check(result).map(|()| true),
    }
}

fn driver_error(error: CUresult) -> DriverError {
    let code = error as u32;
    let (mut name, mut message) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the driver fills in pointers to texts of its own.
    let (name, message) = unsafe {
        cuGetErrorName(error, &mut name);
        cuGetErrorString(error, &mut message);
        (api::text(name), api::text(message))
    };
    DriverError { code, name: runtime_name(code).unwrap_or(name), message, detail: None }
}

/// An error that is not the driver's, but of a library that it serves. It has no number of CUDA's.
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

/// Whether a context is lost with it: every later call fails with it too.
pub(super) fn sticks(error: &DriverError) -> bool {
    matches!(error.code, 214 | 226 | 700 | 702 | 710 | 714..=719 | 721)
}

/// The names that CUDA's runtime, and so PyTorch, has for the numbers that both know.
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
