//! CUDA's errors: numbers, names and texts.

pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const INVALID_CONFIGURATION: u32 = 9;
pub const INVALID_SYMBOL: u32 = 13;
pub const INVALID_DIRECTION: u32 = 21;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_HANDLE: u32 = 400;
pub const NOT_READY: u32 = 600;

pub const ERRORS: &[(u32, &str, &str)] = &[
    (0, "cudaSuccess", "no error"),
    (1, "cudaErrorInvalidValue", "invalid argument"),
    (2, "cudaErrorMemoryAllocation", "out of memory"),
    (9, "cudaErrorInvalidConfiguration", "invalid configuration argument"),
    (21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    (101, "cudaErrorInvalidDevice", "invalid device ordinal"),
    (400, "cudaErrorInvalidResourceHandle", "invalid resource handle"),
    (600, "cudaErrorNotReady", "device not ready"),
    (700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    (702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    (710, "cudaErrorAssert", "device-side assert triggered"),
    (716, "cudaErrorMisalignedAddress", "misaligned address"),
    (719, "cudaErrorLaunchFailure", "unspecified launch failure"),
];

pub fn of(code: u32) -> (&'static str, &'static str) {
    let known = ERRORS.iter().find(|(known, ..)| *known == code);
    known.map_or(("cudaErrorUnknown", "unknown error"), |(_, name, text)| (name, text))
}

/// A failed call in compute-sanitizer's wording.
pub fn report(code: u32, call: &str) -> String {
    let (name, text) = of(code);
    format!("Program hit {name} (error {code}) due to \"{text}\" on CUDA API call to {call}.")
}
