//! All kernels and all operations, a family after the other.

use super::row::Row;
use super::{
    Operation, cast, conv, elementwise, index, loss, matmul, norm, optimizer, plain, pool, random, reduce,
    scaler, shape, softmax, transfer,
};
use crate::kernel::KernelDef;

/// What each family declares: its kernels and its operations.
static FAMILIES: &[(&[&Row], &[&Operation])] = &[
    (&[], cast::OPERATIONS),
    (conv::ROWS, conv::OPERATIONS),
    (elementwise::activation::ROWS, elementwise::activation::OPERATIONS),
    (elementwise::binary::ROWS, elementwise::binary::OPERATIONS),
    (elementwise::by_number::ROWS, &[]),
    (elementwise::compare::ROWS, elementwise::compare::OPERATIONS),
    (elementwise::convert::ROWS, &[]),
    (&[], elementwise::operators::OPERATIONS),
    (elementwise::pow::ROWS, elementwise::pow::OPERATIONS),
    (elementwise::select::ROWS, elementwise::select::OPERATIONS),
    (elementwise::unary::ROWS, elementwise::unary::OPERATIONS),
    (index::ROWS, index::OPERATIONS),
    (&[], index::along::OPERATIONS),
    (&[], index::embedding::OPERATIONS),
    (loss::ROWS, &[]),
    (&[], loss::classification::OPERATIONS),
    (&[], loss::regression::OPERATIONS),
    (matmul::ROWS, matmul::OPERATIONS),
    (norm::ROWS, norm::OPERATIONS),
    (optimizer::ROWS, optimizer::OPERATIONS),
    (plain::ROWS, &[]),
    (pool::ROWS, pool::OPERATIONS),
    (random::ROWS, random::OPERATIONS),
    (random::dropout::ROWS, random::dropout::OPERATIONS),
    (reduce::ROWS, &[]),
    (reduce::cumsum::ROWS, reduce::cumsum::OPERATIONS),
    (&[], reduce::extreme::OPERATIONS),
    (&[], reduce::sum::OPERATIONS),
    (scaler::ROWS, scaler::OPERATIONS),
    (shape::ROWS, &[]),
    (&[], shape::copy::OPERATIONS),
    (&[], shape::create::OPERATIONS),
    (&[], shape::join::OPERATIONS),
    (&[], shape::views::OPERATIONS),
    (softmax::ROWS, softmax::OPERATIONS),
    (&[], transfer::OPERATIONS),
];

/// Every kernel that a device can be asked to launch.
pub(crate) fn every_kernel() -> impl Iterator<Item = &'static KernelDef> {
    FAMILIES.iter().flat_map(|(rows, _)| rows.iter()).flat_map(|row| row.kernels.iter().copied())
}

/// The name of every `__global__` function, and the file it is in. For the tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_sources() -> Vec<(String, String)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.source())).collect()
}

/// What every kernel takes, by the name of its `__global__` function, in the words of the launch contract:
/// `In f32`, `Out f32`, `Int`, `Float`, `Block Name field field`. For the tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_signatures() -> Vec<(String, Vec<String>)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.signature())).collect()
}

/// Every operation. For the tests of what is told of all of them.
#[doc(hidden)]
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|(_, operations)| operations.iter().copied())
}
