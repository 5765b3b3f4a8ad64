//! All kernels, a family after the other.

use super::row::Row;
use super::{
    conv, elementwise, index, loss, matmul, norm, optimizer, plain, pool, random, reduce, scaler, shape,
    softmax,
};
use crate::kernel::KernelDef;

static FAMILIES: &[&[&Row]] = &[
    conv::ROWS,
    elementwise::UNARY,
    elementwise::OF_UNARY,
    elementwise::BINARY,
    elementwise::COMPARE,
    elementwise::SELECT,
    elementwise::ACTIVATION,
    elementwise::GELU,
    elementwise::CAST,
    index::ROWS,
    loss::ROWS,
    matmul::ROWS,
    norm::ROWS,
    optimizer::ROWS,
    plain::ROWS,
    pool::ROWS,
    random::ROWS,
    random::DROPOUT,
    reduce::ROWS,
    reduce::CUMSUM,
    scaler::ROWS,
    shape::ROWS,
    softmax::ROWS,
];

/// Every kernel that a device can be asked to launch.
pub(crate) fn every_kernel() -> impl Iterator<Item = &'static KernelDef> {
    FAMILIES.iter().flat_map(|rows| rows.iter()).flat_map(|row| row.kernels.iter().copied())
}

/// The name of every `__global__` function, and the file it is in. For the tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_sources() -> Vec<(String, String)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.source())).collect()
}

/// What every kernel takes, by the name of its `__global__` function, in the words of the launch contract:
/// `In f32`, `Out f32`, `Int`, `Float`. For the tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_signatures() -> Vec<(String, Vec<String>)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.signature())).collect()
}
