//! Matrix products with cuBLAS.

use std::ffi::{c_int, c_void};
use std::ptr;

use cudarc::cublas::sys::{
    cublasComputeType_t as Compute, cublasGemmAlgo_t as Algorithm, cublasHandle_t,
    cublasOperation_t as Operation, cublasStatus_t as Status, cudaDataType as Type,
};
use cudarc::driver::sys::CUstream;

use super::api;
use super::api::cublas::*;
use super::errors::library;
use crate::base::dtype::DType;
use crate::base::gemm::Gemm;
use crate::contract::driver::{DevicePtr, DriverResult};

/// cuBLAS on one device. It takes one call at a time.
pub(super) struct Blas(cublasHandle_t);

// SAFETY: any thread may use a handle, one at a time, and the owner has exclusive access.
unsafe impl Send for Blas {}

impl Blas {
    /// Creates a handle for the device of the current context.
    pub(super) fn new() -> DriverResult<Blas> {
        let mut handle = ptr::null_mut();
        // SAFETY: there is room for the answer.
        check(unsafe { cublasCreate_v2(&mut handle) })?;
        Ok(Blas(handle))
    }

    pub(super) fn gemm(&self, stream: CUstream, gemm: &Gemm) -> DriverResult<()> {
        let (data, compute) = match gemm.dtype {
            DType::F32 if gemm.tf32 => (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F_FAST_TF32),
            DType::F32 => (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            DType::F64 => (Type::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F),
            // Multiplied and summed in f32, and rounded once.
            DType::F16 => (Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F),
            DType::BF16 => (Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F),
            dtype => return Err(library("cuBLAS", "the type is not supported", dtype.to_string())),
        };
        // C = A·B in row-major order is Cᵀ = Bᵀ·Aᵀ in column-major order, which cuBLAS uses.
        let (m, n, k) = (int(gemm.n)?, int(gemm.m)?, int(gemm.k)?);
        let (first, first_stride) = operand(gemm.b_strides, [gemm.k, gemm.n])?;
        let (second, second_stride) = operand(gemm.a_strides, [gemm.m, gemm.k])?;
        // C = alpha·A·B + beta·C. Alpha and beta have the dtype of the computation.
        let beta = if gemm.accumulate { 1 } else { 0 };
        let (floats, doubles) = ([1.0, beta as f32], [1.0, f64::from(beta)]);
        let [alpha, beta]: [*const c_void; 2] = match gemm.dtype {
            DType::F64 => [0, 1].map(|i| (&raw const doubles[i]).cast()),
            _ => [0, 1].map(|i| (&raw const floats[i]).cast()),
        };
        let (workspace, workspace_bytes) = gemm.workspace;
        // SAFETY: the operands are memory of the allocator, and have the given sizes. Setting the stream resets the
        // workspace, so the workspace is set second.
        unsafe {
            check(cublasSetStream_v2(self.0, stream.cast()))?;
            check(cublasSetWorkspace_v2(self.0, pointer(workspace).cast_mut(), workspace_bytes))?;
            check(cublasGemmStridedBatchedEx(
                self.0,
                first,
                second,
                m,
                n,
                k,
                alpha,
                pointer(gemm.b),
                data,
                first_stride,
                gemm.b_step as i64,
                pointer(gemm.a),
                data,
                second_stride,
                gemm.a_step as i64,
                beta,
                pointer(gemm.c).cast_mut(),
                data,
                m.max(1),
                (gemm.m * gemm.n) as i64,
                int(gemm.batch)?,
                compute,
                Algorithm::CUBLAS_GEMM_DFALT,
            ))
        }
    }

    /// The context must be alive.
    pub(super) fn destroy(self) {
        // SAFETY: the handle was created and is not used again.
        unsafe { cublasDestroy_v2(self.0) };
    }
}

/// Returns whether a matrix is transposed for cuBLAS, and the stride between its columns.
fn operand(strides: [usize; 2], sizes: [usize; 2]) -> DriverResult<(Operation, c_int)> {
    let leading = |stride: usize, size: usize| int(stride.max(size).max(1));
    match strides {
        // Rows without gaps are, in column-major order, the required transpose.
        [row, 1] => Ok((Operation::CUBLAS_OP_N, leading(row, sizes[1])?)),
        [1, column] => Ok((Operation::CUBLAS_OP_T, leading(column, sizes[0])?)),
        _ => Err(library("cuBLAS", "the matrix has gaps in both dimensions", format!("strides {strides:?}"))),
    }
}

fn int(size: usize) -> DriverResult<c_int> {
    size.try_into().map_err(|_| library("cuBLAS", "the matrix is too large", format!("{size}")))
}

fn pointer(address: DevicePtr) -> *const c_void {
    address.0 as *const c_void
}

fn check(status: Status) -> DriverResult<()> {
    if status == Status::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: its strings are never freed.
    let message = unsafe { api::text(cublasGetStatusString(status)) };
    Err(library("cuBLAS", message, format!("{status:?}")))
}
