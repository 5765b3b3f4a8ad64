//! Lists all kernels and operations by family.

use super::row::Row;
use super::{
    Operation, conv, elementwise, index, loss, matmul, norm, optimizer, pin, plain, pool, random, reduce,
    scaler, shape, softmax, transfer,
};
use crate::kernel::KernelDef;

static FAMILIES: &[(&[&Row], &[&Operation])] = &[
    (conv::ROWS, conv::OPERATIONS),
    (elementwise::activation::ROWS, elementwise::activation::OPERATIONS),
    (elementwise::binary::ROWS, elementwise::binary::OPERATIONS),
    (elementwise::by_number::ROWS, &[]),
    (elementwise::compare::ROWS, elementwise::compare::OPERATIONS),
    (elementwise::convert::ROWS, elementwise::convert::OPERATIONS),
    (&[], elementwise::operators::OPERATIONS),
    (elementwise::pow::ROWS, elementwise::pow::OPERATIONS),
    (elementwise::select::ROWS, elementwise::select::OPERATIONS),
    (elementwise::unary::ROWS, elementwise::unary::OPERATIONS),
    (index::ROWS, index::OPERATIONS),
    (&[], index::along::OPERATIONS),
    (&[], index::embedding::OPERATIONS),
    (&[], index::mask::OPERATIONS),
    (loss::ROWS, &[]),
    (&[], loss::classification::OPERATIONS),
    (&[], loss::regression::OPERATIONS),
    (&[], loss::soft::OPERATIONS),
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
    (&[], pin::OPERATIONS),
    (&[], transfer::OPERATIONS),
];

pub(crate) fn every_kernel() -> impl Iterator<Item = &'static KernelDef> {
    FAMILIES.iter().flat_map(|(rows, _)| rows.iter()).flat_map(|row| row.kernels.iter().copied())
}

/// Returns the name of every `__global__` function and its file, for tests of the CUDA C++.
#[doc(hidden)]
pub fn kernel_sources() -> Vec<(String, String)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.source())).collect()
}

/// Returns the name and parameters of every `__global__` function, for tests of the CUDA C++. Parameters are written
/// `In f32`, `Out f32`, `Int`, `Float` or `Block Name field field`.
#[doc(hidden)]
pub fn kernel_signatures() -> Vec<(String, Vec<String>)> {
    every_kernel().map(|kernel| (kernel.symbol(), kernel.signature())).collect()
}

/// Returns every operation, for tests of common properties.
#[doc(hidden)]
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|(_, operations)| operations.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;
    use crate::kernel::{Args, Input, KernelParameter, Output};
    use crate::shape::Layout;

    /// Elements per operand: more than a vector, and not a multiple of one.
    const COUNT: usize = 37;

    /// Runs a kernel on small positive numbers, with an output filled with `before`.
    fn over(kernel: &'static KernelDef, before: u8) -> Vec<u8> {
        let layout = Layout::contiguous(&[COUNT]).unwrap();
        let (mut inputs, mut written) = (Vec::new(), Vec::new());
        for parameter in kernel.parameters {
            match parameter {
                KernelParameter::In(dtype) => {
                    inputs.push((0..COUNT * dtype.size()).map(|i| (i % 61) as u8).collect::<Vec<u8>>());
                }
                KernelParameter::Out(dtype) => written = vec![before; COUNT * dtype.size()],
                other => panic!("{other:?} is no tensor"),
            }
        }
        let inputs: Vec<Input> =
            inputs.iter().map(|bytes| Input { bytes: Some(bytes), layout: &layout }).collect();
        let outputs = &mut [Output { bytes: &mut written, layout: &layout }];
        (kernel.twin)(Args { kernel, inputs: &inputs, outputs, ints: &[], floats: &[] }).unwrap();
        written
    }

    /// A simulated GPU discards the output's old contents before an elementwise kernel runs.
    #[test]
    fn elementwise_kernels_overwrite_their_output_and_read_none_of_it() {
        let kernels: Vec<_> = every_kernel().filter(|kernel| kernel.is_elementwise()).collect();
        assert!(kernels.len() > 100, "{}", kernels.len());
        each_case(kernels, |kernel| {
            assert_eq!(over(kernel, 0), over(kernel, 0xa5), "{}", kernel.symbol());
        });
    }

    #[test]
    fn the_kernel_that_copies_is_called_so() {
        let copies: Vec<_> = every_kernel().filter(|kernel| kernel.is_copy()).collect();
        assert_eq!(copies.len(), crate::kernel::NUMBERS.len());
        each_case(copies, |kernel| {
            let [KernelParameter::In(from), KernelParameter::Out(to)] = kernel.parameters else {
                panic!("{kernel:?}")
            };
            assert_eq!(from, to);
            let copied: Vec<u8> = (0..COUNT * to.size()).map(|i| (i % 61) as u8).collect();
            assert_eq!(over(kernel, 0), copied);
        });
    }
}
