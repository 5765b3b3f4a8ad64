//! Products of matrices, as a driver is asked for them.

use crate::base::dtype::DType;
use crate::base::handles::DevicePtr;
use crate::base::kernel::{Ran, Work};

/// A batch of matrix products `C = A·B`, or `C += A·B` (`cublasGemmStridedBatchedEx`). Row-major, with
/// strides in elements: `[row, column]`, and from matrix to matrix. C is contiguous.
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
    /// Whether operands in f32 may be rounded to TF32, for a device that is faster then.
    pub tf32: bool,
    /// Memory to work in, and how many bytes of it.
    #[cfg_attr(target_family = "wasm", allow(dead_code))] // The simulated GPU needs none.
    pub workspace: (DevicePtr, usize),
    /// The same on the host, for a device that is simulated: on the bytes of A, B and C, each from its first element on.
    pub twin: fn(&Gemm, &[u8], &[u8], &mut [u8]) -> Ran,
}

impl Gemm {
    /// What it does, each operand moved once.
    pub fn work(&self) -> Work {
        let (batch, m, n, k) = (self.batch as u64, self.m as u64, self.n as u64, self.k as u64);
        let elements = m * k + k * n + m * n * (1 + u64::from(self.accumulate));
        Work {
            bytes: batch * elements * self.dtype.size() as u64,
            flops: 2 * batch * m * n * k,
            double: self.dtype == DType::F64,
        }
    }

    /// How many elements of memory A, B and C reach, each from its first one on.
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
