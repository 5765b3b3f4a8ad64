//! The arguments of a launch, in the layout of a `__global__` function (`kernels/common.cuh`).

use std::ffi::c_void;

use smallvec::SmallVec;

use crate::base::kernel::{Argument, Geometry, KernelParameter, Launch};
use crate::base::shape::{Layout, MAX_DIMS};

/// Every argument consists of 8-byte words.
type Words = SmallVec<[u64; 96]>;

/// The words of a view: `ndim`, eight sizes and eight strides.
const VIEW: usize = 1 + 2 * MAX_DIMS;

/// The arguments, and the start of each.
pub(super) struct KernelParams {
    words: Words,
    starts: SmallVec<[usize; 16]>,
}

impl KernelParams {
    pub(super) fn of(launch: &Launch) -> KernelParams {
        let mut arguments = KernelParams { words: Words::new(), starts: SmallVec::new() };
        let sizes = elements_of(launch);
        for (parameter, argument) in launch.kernel.parameters.iter().zip(&launch.arguments) {
            let is_input = matches!(parameter, KernelParameter::In(_));
            match argument {
                Argument::Tensor { pointer, view } => {
                    arguments.push(&[pointer.0]);
                    if is_input {
                        arguments.push(&[0]);
                    }
                    arguments
                        .push(&sizes.and_then(|sizes| along(view, sizes)).unwrap_or_else(|| as_it_is(view)));
                }
                // A scalar has no memory. Its bytes are the first of the word.
                Argument::Value(bytes) => {
                    arguments.push(&[0]);
                    arguments.push(&[u64::from_ne_bytes(*bytes)]);
                    arguments.push(&[0; VIEW]);
                }
                Argument::Int(value) => arguments.push(&[*value as u64]),
                Argument::Float(value) => arguments.push(&[value.to_bits()]),
                Argument::Block(values) => arguments.push(bytemuck::cast_slice(values)),
            }
        }
        arguments
    }

    fn push(&mut self, words: &[u64]) {
        self.starts.push(self.words.len());
        self.words.extend_from_slice(words);
    }

    /// Pointers to the arguments, valid until these move.
    pub(super) fn pointers(&mut self) -> SmallVec<[*mut c_void; 16]> {
        let words = &mut self.words;
        self.starts.iter().map(|start| (&raw mut words[*start]).cast()).collect()
    }
}

/// The sizes of the first output, if the kernel iterates over its elements.
fn elements_of(launch: &Launch) -> Option<&[usize]> {
    let operands = launch.kernel.parameters.iter().zip(&launch.arguments);
    let output = operands
        .filter(|(parameter, _)| matches!(parameter, KernelParameter::Out(_)))
        .map(|(_, argument)| argument);
    match output.into_iter().next() {
        Some(Argument::Tensor { view, .. }) if launch.kernel.geometry == Geometry::Elements => {
            Some(view.sizes())
        }
        _ => None,
    }
}

/// A broadcast view with the fewest dimensions, because all but the first cost a division for each element.
fn along(view: &Layout, sizes: &[usize]) -> Option<[u64; VIEW]> {
    let (ndim, sizes, strides) = view.expand(sizes).ok()?.merged_dims();
    Some(words_of(&sizes[..ndim], &strides[..ndim]))
}

fn as_it_is(view: &Layout) -> [u64; VIEW] {
    words_of(view.sizes(), view.strides())
}

fn words_of(sizes: &[usize], strides: &[usize]) -> [u64; VIEW] {
    let mut words = [0; VIEW];
    words[0] = sizes.len() as u64;
    for (dim, (size, stride)) in sizes.iter().zip(strides).enumerate() {
        words[1 + dim] = *size as u64;
        words[1 + MAX_DIMS + dim] = *stride as u64;
    }
    words
}
