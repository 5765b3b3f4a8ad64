//! Convolutions, as requests to a driver: sizes, the three passes, and algorithms.

use crate::base::device::DevicePtr;
use crate::base::dtype::DType;
use crate::base::kernel::{KernelWork, TwinResult};

/// The sizes of a convolution with dense operands: x (n, c, h, w), weight (k, c / groups, r, s), y (n, k, p, q). Only
/// `n` and `c` may be zero. No kernel is larger than the padded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvShape {
    pub n: usize,
    pub c: usize,
    pub h: usize,
    pub w: usize,
    pub k: usize,
    pub r: usize,
    pub s: usize,
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvPass {
    /// y from x and the weight.
    Forward,
    /// The gradient of x from that of y and the weight.
    BackwardData,
    /// The gradient of the weight from x and the gradient of y.
    BackwardFilter,
}

impl ConvPass {
    pub fn name(self) -> &'static str {
        match self {
            ConvPass::Forward => "conv_forward",
            ConvPass::BackwardData => "conv_backward_data",
            ConvPass::BackwardFilter => "conv_backward_filter",
        }
    }

    /// cuDNN's name of an algorithm, without the prefix (`cudnnConvolutionFwdAlgo_t` and others).
    pub fn algorithm(self, number: u32) -> &'static str {
        let names: &[&str] = match self {
            ConvPass::Forward => &[
                "IMPLICIT_GEMM",
                "IMPLICIT_PRECOMP_GEMM",
                "GEMM",
                "DIRECT",
                "FFT",
                "FFT_TILING",
                "WINOGRAD",
                "WINOGRAD_NONFUSED",
            ],
            ConvPass::BackwardData => {
                &["ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"]
            }
            ConvPass::BackwardFilter => {
                &["ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"]
            }
        };
        names.get(number as usize).copied().unwrap_or("of a later version")
    }
}

impl ConvShape {
    pub fn out(&self) -> [usize; 2] {
        let [height, width] = self.padded();
        let [rows, columns] = self.reach();
        [(height - rows) / self.stride[0] + 1, (width - columns) / self.stride[1] + 1]
    }

    /// Height and width of x with its padding.
    pub fn padded(&self) -> [usize; 2] {
        [self.h + 2 * self.padding[0], self.w + 2 * self.padding[1]]
    }

    /// Height and width of the area that a dilated kernel covers.
    pub fn reach(&self) -> [usize; 2] {
        [self.dilation[0] * (self.r - 1) + 1, self.dilation[1] * (self.s - 1) + 1]
    }

    /// [`padded`](Self::padded) and [`reach`](Self::reach), or `None` if one of them, or a stride, exceeds `isize`.
    pub fn checked_extents(&self) -> Option<([usize; 2], [usize; 2])> {
        let padded = |size: usize, zeros: usize| size.checked_add(zeros.checked_mul(2)?);
        let reach = |size: usize, apart: usize| apart.checked_mul(size.checked_sub(1)?)?.checked_add(1);
        let padded = [padded(self.h, self.padding[0])?, padded(self.w, self.padding[1])?];
        let reach = [reach(self.r, self.dilation[0])?, reach(self.s, self.dilation[1])?];
        let all = [padded, reach, self.stride].concat();
        all.iter().all(|extent| isize::try_from(*extent).is_ok()).then_some((padded, reach))
    }

    /// Elements of a transformed image tile in Winograd's F(2×2, 3×3).
    pub const WINOGRAD_TILE: usize = 16;

    /// The number of 2×2 tiles of y, over all images.
    pub fn winograd_tiles(&self) -> usize {
        let [p, q] = self.out();
        self.n * p.div_ceil(2) * q.div_ceil(2)
    }

    /// The forward convolution that computes this pass. The input's gradient is a convolution of the output's gradient,
    /// with the kernel rotated by 180° and the channels swapped.
    pub fn as_forward(&self, pass: ConvPass) -> ConvShape {
        let [p, q] = self.out();
        match pass {
            ConvPass::BackwardData => ConvShape {
                c: self.k,
                k: self.c,
                h: p,
                w: q,
                padding: self.padding.map(|zeros| 2 - zeros),
                ..*self
            },
            ConvPass::Forward | ConvPass::BackwardFilter => *self,
        }
    }

    pub fn elements(&self) -> [usize; 3] {
        let [p, q] = self.out();
        [
            self.n * self.c * self.h * self.w,
            self.k * (self.c / self.groups) * self.r * self.s,
            self.n * self.k * p * q,
        ]
    }

    /// Floating point operations of any pass: two for each element of y and each of its weights.
    pub fn flops(&self) -> u64 {
        let [.., y] = self.elements();
        2 * (y * (self.c / self.groups) * self.r * self.s) as u64
    }

    /// The work of any pass, with each operand moved once.
    pub fn work(&self, dtype: DType) -> KernelWork {
        let elements: usize = self.elements().iter().sum();
        KernelWork {
            bytes: (elements * dtype.size()) as u64,
            flops: self.flops(),
            double: dtype == DType::F64,
        }
    }
}

/// One pass of a convolution with dense operands (`cudnnConvolutionForward` and others).
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    pub pass: ConvPass,
    pub shape: ConvShape,
    pub dtype: DType,
    /// Whether f32 operands may be rounded to TF32.
    pub tf32: bool,
    pub a: DevicePtr,
    pub b: DevicePtr,
    pub out: DevicePtr,
    /// Computes the convolution on the host for a simulated device, from the bytes of both operands. [`Way::Disorder`]
    /// adds partial sums in a random order, seeded by the number.
    pub twin: fn(&Conv, Way, [&[u8]; 2], &mut [u8], u64) -> TwinResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Implicit,
    Explicit,
    Winograd,
    Disorder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvAlgorithm {
    /// cuDNN's number, within its pass.
    pub number: u32,
    /// Bytes of workspace.
    pub workspace: usize,
    /// Whether it gives the same bits in every run.
    pub deterministic: bool,
    /// The allowed arithmetic: a `cudnnMathType_t`, which is passed back to cuDNN.
    pub math: u32,
}
