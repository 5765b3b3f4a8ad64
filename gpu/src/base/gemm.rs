//! Matrix products, as requests to a driver.

use crate::base::device::DevicePtr;
use crate::base::dtype::DType;
use crate::base::kernel::{KernelWork, TwinResult};

/// A batch of matrix products `C = A·B`, or `C += A·B` (`cublasGemmStridedBatchedEx`). Row-major, with strides of
/// `[row, column]` in elements, and a step from matrix to matrix. C is contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    pub dtype: DType,
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: DevicePtr,
    pub a_strides: [usize; 2],
    pub a_step: usize,
    pub b: DevicePtr,
    pub b_strides: [usize; 2],
    pub b_step: usize,
    pub c: DevicePtr,
    pub accumulate: bool,
    /// Whether f32 operands may be rounded to TF32, on a device that is faster with it.
    pub tf32: bool,
    /// Address and bytes.
    #[cfg_attr(target_family = "wasm", allow(dead_code))] // The simulated GPU needs none.
    pub workspace: (DevicePtr, usize),
    /// Computes the products on the host for a simulated device. The bytes of A, B and C begin at their first elements.
    pub twin: fn(&Gemm, &[u8], &[u8], &mut [u8]) -> TwinResult,
}

impl Gemm {
    /// The work, with each operand moved once.
    pub fn work(&self) -> KernelWork {
        let (batch, m, n, k) = (self.batch as u64, self.m as u64, self.n as u64, self.k as u64);
        let elements = m * k + k * n + m * n * (1 + u64::from(self.accumulate));
        KernelWork {
            bytes: batch * elements * self.dtype.size() as u64,
            flops: 2 * batch * m * n * k,
            double: self.dtype == DType::F64,
        }
    }

    /// The elements from the first to the last in memory, for A, B and C.
    pub fn reach(&self) -> [usize; 3] {
        let reach = |step: usize, sizes: [usize; 2], strides: [usize; 2]| match self.batch {
            0 => 0,
            _ if sizes.contains(&0) => 0,
            batch => 1 + (batch - 1) * step + (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1],
        };
        [
            reach(self.a_step, [self.m, self.k], self.a_strides),
            reach(self.b_step, [self.k, self.n], self.b_strides),
            self.batch * self.m * self.n,
        ]
    }
}
