//! The functions of NVIDIA's libraries that this crate calls.
//!
//! cudarc looks up a function at its first call, and panics if the library lacks it. The probe looks up all functions
//! that are named here, so no call panics.

use std::ffi::c_char;

use cudarc::driver::sys::{CUevent, CUfunction, CUresult, culib};

macro_rules! functions {
    ($library:ident: $($function:ident),* $(,)?) => {
        pub(super) mod $library {
            $(pub use cudarc::$library::sys::$function;)*
            pub const NAMES: &[&str] = &[$(stringify!($function)),*];
        }
    };
}

functions!(driver:
    cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString,
    cuDeviceGetCount, cuDeviceGet, cuDeviceGetName, cuDeviceGetAttribute, cuDeviceTotalMem_v2,
    cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease_v2, cuCtxSetCurrent, cuCtxSynchronize,
    cuDeviceCanAccessPeer, cuCtxEnablePeerAccess,
    cuMemGetInfo_v2, cuMemAlloc_v2, cuMemFree_v2, cuMemHostAlloc, cuMemFreeHost,
    cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyPeerAsync, cuMemsetD8Async,
    cuStreamCreate, cuStreamQuery, cuStreamSynchronize, cuStreamWaitEvent,
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuEventQuery, cuEventSynchronize,
    cuModuleLoadData, cuModuleUnload, cuModuleGetFunction, cuLaunchKernel,
);

functions!(nvrtc:
    nvrtcVersion, nvrtcGetNumSupportedArchs, nvrtcGetSupportedArchs, nvrtcGetErrorString,
    nvrtcCreateProgram, nvrtcCompileProgram, nvrtcDestroyProgram, nvrtcGetProgramLogSize, nvrtcGetProgramLog,
    nvrtcAddNameExpression, nvrtcGetLoweredName,
    nvrtcGetCUBINSize, nvrtcGetCUBIN, nvrtcGetPTXSize, nvrtcGetPTX,
);

functions!(cublas:
    cublasCreate_v2, cublasDestroy_v2, cublasGetStatusString,
    cublasSetStream_v2, cublasSetWorkspace_v2, cublasGemmStridedBatchedEx,
);

functions!(cudnn:
    cudnnGetVersion, cudnnGetErrorString, cudnnCreate, cudnnDestroy, cudnnSetStream,
    cudnnCreateTensorDescriptor, cudnnSetTensor4dDescriptor, cudnnDestroyTensorDescriptor,
    cudnnCreateFilterDescriptor, cudnnSetFilter4dDescriptor, cudnnDestroyFilterDescriptor,
    cudnnCreateConvolutionDescriptor, cudnnSetConvolution2dDescriptor, cudnnSetConvolutionGroupCount,
    cudnnSetConvolutionMathType, cudnnDestroyConvolutionDescriptor,
    cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionBackwardDataAlgorithm_v7,
    cudnnGetConvolutionBackwardFilterAlgorithm_v7,
    cudnnFindConvolutionForwardAlgorithmEx, cudnnFindConvolutionBackwardDataAlgorithmEx,
    cudnnFindConvolutionBackwardFilterAlgorithmEx,
    cudnnConvolutionForward, cudnnConvolutionBackwardData, cudnnConvolutionBackwardFilter,
);

/// Milliseconds between two events. Drivers before CUDA 12.8 lack the newer name, cudarc for CUDA 13 the older one.
pub(super) const EVENT_ELAPSED: [&str; 2] = ["cuEventElapsedTime", "cuEventElapsedTime_v2"];

/// # Safety
/// As for any function of the driver: it has been probed, and the events are alive.
pub(super) unsafe fn event_elapsed(milliseconds: &mut f32, start: CUevent, end: CUevent) -> CUresult {
    type Elapsed = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
    // SAFETY: both names are of functions of this type.
    unsafe {
        let library = culib();
        let elapsed = EVENT_ELAPSED.iter().find_map(|name| library.get::<Elapsed>(name.as_bytes()).ok());
        elapsed.map_or(CUresult::CUDA_ERROR_NOT_FOUND, |elapsed| elapsed(milliseconds, start, end))
    }
}

/// The parameter sizes of a loaded kernel in bytes. `None` from drivers before CUDA 12.4.
///
/// # Safety
/// The driver has been probed, and the function is loaded.
pub(super) unsafe fn parameter_sizes(function: CUfunction) -> Option<Vec<usize>> {
    type ParamInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> CUresult;
    // SAFETY: the name is of a function of this type, and there is room for its answers.
    unsafe {
        let info = culib().get::<ParamInfo>(b"cuFuncGetParamInfo").ok()?;
        let size = |index| {
            let (mut offset, mut size) = (0, 0);
            (info(function, index, &mut offset, &mut size) == CUresult::CUDA_SUCCESS).then_some(size)
        };
        Some((0..).map_while(size).collect())
    }
}

/// A string of a library, which is never freed.
///
/// # Safety
/// The pointer is null or points to a string that is never freed.
pub(super) unsafe fn text(pointer: *const c_char) -> &'static str {
    if pointer.is_null() {
        return "unknown error";
    }
    // SAFETY: by the contract.
    unsafe { std::ffi::CStr::from_ptr(pointer) }.to_str().unwrap_or("unknown error")
}
