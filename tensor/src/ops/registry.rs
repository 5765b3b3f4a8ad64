//! All kernels.

use super::{
    conv, elementwise, index, loss, matmul, norm, optimizer, pool, random, reduce, scaler, shape, softmax,
};
use crate::kernel::KernelDef;

/// Every kernel that a device can be asked to launch.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    let families = [
        conv::every_kernel,
        elementwise::every_kernel,
        index::every_kernel,
        loss::every_kernel,
        matmul::every_kernel,
        norm::every_kernel,
        optimizer::every_kernel,
        pool::every_kernel,
        random::every_kernel,
        reduce::every_kernel,
        scaler::every_kernel,
        shape::every_kernel,
        softmax::every_kernel,
    ];
    families.into_iter().flat_map(|family| family()).collect()
}

/// What every kernel takes, by the name of its `__global__` function, in the words of the launch contract:
/// `In f32`, `Out f32`, `Int`, `Float`. For the tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_signatures() -> Vec<(String, Vec<String>)> {
    every_kernel().into_iter().map(|kernel| (kernel.symbol(), kernel.signature())).collect()
}
