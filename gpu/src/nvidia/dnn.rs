//! Convolutions with cuDNN.

use std::ffi::{c_int, c_void};
use std::ptr;

use cudarc::cudnn::sys::{
    cudnnConvolutionBwdDataAlgo_t as DataAlgorithm, cudnnConvolutionBwdFilterAlgo_t as FilterAlgorithm,
    cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t as ForwardAlgorithm,
    cudnnConvolutionMode_t as Mode, cudnnDataType_t as Type, cudnnDeterminism_t as Determinism,
    cudnnFilterDescriptor_t, cudnnHandle_t, cudnnMathType_t as Math, cudnnStatus_t as Status,
    cudnnTensorDescriptor_t, cudnnTensorFormat_t as Format,
};
use cudarc::driver::sys::CUstream;

use super::api;
use super::api::cudnn::*;
use super::errors::library;
use crate::base::conv::ConvPass;
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::dtype::DType;
use crate::contract::driver::{DevicePtr, DriverResult};

/// cuDNN on one device. It takes one call at a time.
pub(super) struct Dnn(cudnnHandle_t);

// SAFETY: any thread may use a handle, one at a time, and the owner has exclusive access.
unsafe impl Send for Dnn {}

const FORWARD: [ForwardAlgorithm; 8] = {
    use ForwardAlgorithm::*;
    [
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
        CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
        CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
        CUDNN_CONVOLUTION_FWD_ALGO_FFT,
        CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
    ]
};
const DATA: [DataAlgorithm; 6] = {
    use DataAlgorithm::*;
    [
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
    ]
};
const FILTER: [FilterAlgorithm; 7] = {
    use FilterAlgorithm::*;
    [
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING,
    ]
};
const MATH: [Math; 4] = [
    Math::CUDNN_DEFAULT_MATH,
    Math::CUDNN_TENSOR_OP_MATH,
    Math::CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
    Math::CUDNN_FMA_MATH,
];

/// A cuDNN descriptor, destroyed when it is dropped.
macro_rules! descriptor {
    ($Name:ident, $raw:ty, $create:ident, $destroy:ident) => {
        struct $Name($raw);

        impl $Name {
            fn new() -> DriverResult<$Name> {
                let mut raw = ptr::null_mut();
                // SAFETY: there is room for the answer.
                check(unsafe { $create(&mut raw) })?;
                Ok($Name(raw))
            }
        }

        impl Drop for $Name {
            fn drop(&mut self) {
                // SAFETY: it was created, and is not used again.
                unsafe { $destroy(self.0) };
            }
        }
    };
}
descriptor!(
    TensorDescriptor,
    cudnnTensorDescriptor_t,
    cudnnCreateTensorDescriptor,
    cudnnDestroyTensorDescriptor
);
descriptor!(
    FilterDescriptor,
    cudnnFilterDescriptor_t,
    cudnnCreateFilterDescriptor,
    cudnnDestroyFilterDescriptor
);
descriptor!(
    ConvolutionDescriptor,
    cudnnConvolutionDescriptor_t,
    cudnnCreateConvolutionDescriptor,
    cudnnDestroyConvolutionDescriptor
);

struct ConvDescriptors {
    x: TensorDescriptor,
    weight: FilterDescriptor,
    y: TensorDescriptor,
    convolution: ConvolutionDescriptor,
}

impl ConvDescriptors {
    fn new(conv: &Conv) -> DriverResult<ConvDescriptors> {
        let (data, compute, math) = match conv.dtype {
            DType::F32 if conv.tf32 => {
                (Type::CUDNN_DATA_FLOAT, Type::CUDNN_DATA_FLOAT, Math::CUDNN_DEFAULT_MATH)
            }
            DType::F32 => (Type::CUDNN_DATA_FLOAT, Type::CUDNN_DATA_FLOAT, Math::CUDNN_FMA_MATH),
            DType::F64 => (Type::CUDNN_DATA_DOUBLE, Type::CUDNN_DATA_DOUBLE, Math::CUDNN_DEFAULT_MATH),
            DType::F16 => (Type::CUDNN_DATA_HALF, Type::CUDNN_DATA_FLOAT, Math::CUDNN_TENSOR_OP_MATH),
            DType::BF16 => (Type::CUDNN_DATA_BFLOAT16, Type::CUDNN_DATA_FLOAT, Math::CUDNN_TENSOR_OP_MATH),
            dtype => return Err(library("cuDNN", "the type is not supported", dtype.to_string())),
        };
        let shape = &conv.shape;
        let [p, q] = shape.out();
        let image = |[n, c, h, w]: [usize; 4]| -> DriverResult<TensorDescriptor> {
            let tensor = TensorDescriptor::new()?;
            let (n, c, h, w) = (int(n)?, int(c)?, int(h)?, int(w)?);
            // SAFETY: the descriptor is alive.
            check(unsafe {
                cudnnSetTensor4dDescriptor(tensor.0, Format::CUDNN_TENSOR_NCHW, data, n, c, h, w)
            })?;
            Ok(tensor)
        };
        let described = ConvDescriptors {
            x: image([shape.n, shape.c, shape.h, shape.w])?,
            weight: FilterDescriptor::new()?,
            y: image([shape.n, shape.k, p, q])?,
            convolution: ConvolutionDescriptor::new()?,
        };
        let (k, c) = (int(shape.k)?, int(shape.c / shape.groups)?);
        let (r, s) = (int(shape.r)?, int(shape.s)?);
        let pair = |[a, b]: [usize; 2]| Ok((int(a)?, int(b)?));
        let (padding, stride, dilation) = (pair(shape.padding)?, pair(shape.stride)?, pair(shape.dilation)?);
        let convolution = described.convolution.0;
        // SAFETY: the descriptors are alive.
        unsafe {
            let nchw = Format::CUDNN_TENSOR_NCHW;
            check(cudnnSetFilter4dDescriptor(described.weight.0, data, nchw, k, c, r, s))?;
            // A convolution of a neural network is a cross-correlation in mathematics.
            let mode = Mode::CUDNN_CROSS_CORRELATION;
            check(cudnnSetConvolution2dDescriptor(
                convolution,
                padding.0,
                padding.1,
                stride.0,
                stride.1,
                dilation.0,
                dilation.1,
                mode,
                compute,
            ))?;
            check(cudnnSetConvolutionGroupCount(convolution, int(shape.groups)?))?;
            check(cudnnSetConvolutionMathType(convolution, math))?;
        }
        Ok(described)
    }
}

/// Makes the same call for each pass. The passes' functions differ in their names and in the order of the operands.
macro_rules! for_pass {
    (
        $described:ident, $conv:ident, [$forward:ident, $data:ident, $filter:ident],
        |$call:ident, $first:ident, $second:ident, $out:ident, $ALGORITHMS:ident| $body:expr
    ) => {{
        let (x, weight, y) = ($described.x.0, $described.weight.0, $described.y.0);
        let (a, b) = (pointer($conv.a), pointer($conv.b));
        match $conv.pass {
            ConvPass::Forward => {
                use $forward as $call;
                const $ALGORITHMS: &[ForwardAlgorithm] = &FORWARD;
                let ($first, $second, $out) = ((x, a), (weight, b), y);
                $body
            }
            ConvPass::BackwardData => {
                use $data as $call;
                const $ALGORITHMS: &[DataAlgorithm] = &DATA;
                let ($first, $second, $out) = ((weight, b), (y, a), x);
                $body
            }
            ConvPass::BackwardFilter => {
                use $filter as $call;
                const $ALGORITHMS: &[FilterAlgorithm] = &FILTER;
                let ($first, $second, $out) = ((x, a), (y, b), weight);
                $body
            }
        }
    }};
}

/// The usable algorithms that cuDNN returns, each with its time in milliseconds.
macro_rules! answers {
    ($most:expr, |$room:ident, $count:ident, $answers:ident| $call:expr) => {{
        let mut answers = Vec::with_capacity($most);
        let ($room, mut returned) = ($most as c_int, 0);
        let ($count, $answers) = (&mut returned, answers.as_mut_ptr());
        check($call)?;
        answers.set_len((returned.max(0) as usize).min($most));
        answers
            .into_iter()
            .filter(|answer| answer.status == Status::CUDNN_STATUS_SUCCESS)
            .map(|answer| {
                let algorithm = ConvAlgorithm {
                    number: answer.algo as u32,
                    workspace: answer.memory,
                    deterministic: answer.determinism == Determinism::CUDNN_DETERMINISTIC,
                    math: answer.mathType as u32,
                };
                (algorithm, answer.time)
            })
            .collect()
    }};
}

impl Dnn {
    /// Creates a handle for the device of the current context.
    pub(super) fn new() -> DriverResult<Dnn> {
        let mut handle = ptr::null_mut();
        // SAFETY: there is room for the answer.
        check(unsafe { cudnnCreate(&mut handle) })?;
        Ok(Dnn(handle))
    }

    /// Lists the usable algorithms, the most promising first.
    pub(super) fn algorithms(&self, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>> {
        let described = ConvDescriptors::new(conv)?;
        // SAFETY: there is room for the requested answers, and the descriptors are alive.
        let answers: Vec<(ConvAlgorithm, f32)> = for_pass!(
            described,
            conv,
            [
                cudnnGetConvolutionForwardAlgorithm_v7,
                cudnnGetConvolutionBackwardDataAlgorithm_v7,
                cudnnGetConvolutionBackwardFilterAlgorithm_v7
            ],
            |get, first, second, out, ALGORITHMS| unsafe {
                answers!(ALGORITHMS.len(), |room, count, answers| get(
                    self.0,
                    first.0,
                    second.0,
                    described.convolution.0,
                    out,
                    room,
                    count,
                    answers
                ))
            }
        );
        Ok(answers.into_iter().map(|(algorithm, _)| algorithm).collect())
    }

    /// Benchmarks the algorithms on a stream, and waits for the results.
    pub(super) fn find(
        &self,
        stream: CUstream,
        conv: &Conv,
        (workspace, bytes): (DevicePtr, usize),
    ) -> DriverResult<Vec<(ConvAlgorithm, f32)>> {
        let described = ConvDescriptors::new(conv)?;
        let to = pointer(conv.out).cast_mut();
        let workspace = pointer(workspace).cast_mut();
        // SAFETY: as above. The operands are memory of the allocator, and have the given sizes.
        unsafe {
            check(cudnnSetStream(self.0, stream.cast()))?;
            Ok(for_pass!(
                described,
                conv,
                [
                    cudnnFindConvolutionForwardAlgorithmEx,
                    cudnnFindConvolutionBackwardDataAlgorithmEx,
                    cudnnFindConvolutionBackwardFilterAlgorithmEx
                ],
                |find, first, second, out, ALGORITHMS| answers!(ALGORITHMS.len(), |room, count, answers| {
                    find(
                        self.0,
                        first.0,
                        first.1,
                        second.0,
                        second.1,
                        described.convolution.0,
                        out,
                        to,
                        room,
                        count,
                        answers,
                        workspace,
                        bytes,
                    )
                })
            ))
        }
    }

    pub(super) fn run(
        &self,
        stream: CUstream,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: DevicePtr,
    ) -> DriverResult<()> {
        let described = ConvDescriptors::new(conv)?;
        let unknown = || library("cuDNN", "there is no such algorithm", format!("{algorithm:?}"));
        let math = *MATH.get(algorithm.math as usize).ok_or_else(unknown)?;
        // out = alpha · product + beta · out. Alpha and beta have the dtype of the computation.
        let (single, double) = ([1f32, 0.0], [1f64, 0.0]);
        let [alpha, beta]: [*const c_void; 2] = match conv.dtype {
            DType::F64 => [0, 1].map(|i| (&raw const double[i]).cast()),
            _ => [0, 1].map(|i| (&raw const single[i]).cast()),
        };
        let to = pointer(conv.out).cast_mut();
        let workspace = pointer(workspace).cast_mut();
        // SAFETY: as above. The workspace has the algorithm's size.
        unsafe {
            check(cudnnSetStream(self.0, stream.cast()))?;
            check(cudnnSetConvolutionMathType(described.convolution.0, math))?;
            check(for_pass!(
                described,
                conv,
                [cudnnConvolutionForward, cudnnConvolutionBackwardData, cudnnConvolutionBackwardFilter],
                |run, first, second, out, ALGORITHMS| run(
                    self.0,
                    alpha,
                    first.0,
                    first.1,
                    second.0,
                    second.1,
                    described.convolution.0,
                    *ALGORITHMS.get(algorithm.number as usize).ok_or_else(unknown)?,
                    workspace,
                    algorithm.workspace,
                    beta,
                    out,
                    to
                )
            ))
        }
    }

    /// The context must be alive.
    pub(super) fn destroy(self) {
        // SAFETY: the handle was created and is not used again.
        unsafe { cudnnDestroy(self.0) };
    }
}

fn int(size: usize) -> DriverResult<c_int> {
    size.try_into().map_err(|_| library("cuDNN", "the tensor is too large", format!("{size}")))
}

fn pointer(address: DevicePtr) -> *const c_void {
    address.0 as *const c_void
}

fn check(status: Status) -> DriverResult<()> {
    if status == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: its strings are never freed.
    let message = unsafe { api::text(cudnnGetErrorString(status)) };
    Err(library("cuDNN", message, format!("{status:?}")))
}
