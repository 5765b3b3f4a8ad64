//! The arguments of a launch as a `__global__` function takes them (`kernels/common.cuh`).

use std::ffi::c_void;

use smallvec::SmallVec;

use crate::base::kernel::{Argument, Geometry, Launch, Parameter};
use crate::base::shape::{Layout, MAX_DIMS};

/// Words of 8 bytes: every argument is made of such.
type Words = SmallVec<[u64; 96]>;

/// A view is `ndim`, eight sizes, eight strides.
const VIEW: usize = 1 + 2 * MAX_DIMS;

/// The arguments, and where each begins.
pub(super) struct Arguments {
    words: Words,
    starts: SmallVec<[usize; 16]>,
}

impl Arguments {
    pub(super) fn of(launch: &Launch) -> Arguments {
        let mut arguments = Arguments { words: Words::new(), starts: SmallVec::new() };
        let sizes = elements_of(launch);
        for (parameter, argument) in launch.kernel.parameters.iter().zip(&launch.arguments) {
            let is_input = matches!(parameter, Parameter::In(_));
            match argument {
                Argument::Tensor { pointer, view } => {
                    arguments.push(&[pointer.0]);
                    if is_input {
                        arguments.push(&[0]);
                    }
                    arguments
                        .push(&sizes.and_then(|sizes| along(view, sizes)).unwrap_or_else(|| as_it_is(view)));
                }
                // A number has no memory. Its bytes are the first ones of the word, as long as its type is.
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

    /// Pointers to the arguments, which are good for as long as these live and do not move.
    pub(super) fn pointers(&mut self) -> SmallVec<[*mut c_void; 16]> {
        let words = &mut self.words;
        self.starts.iter().map(|start| (&raw mut words[*start]).cast()).collect()
    }
}

/// The sizes of the first output, if the kernel goes through its elements.
fn elements_of(launch: &Launch) -> Option<&[usize]> {
    let operands = launch.kernel.parameters.iter().zip(&launch.arguments);
    let output = operands
        .filter(|(parameter, _)| matches!(parameter, Parameter::Out(_)))
        .map(|(_, argument)| argument);
    match output.into_iter().next() {
        Some(Argument::Tensor { view, .. }) if launch.kernel.geometry == Geometry::Elements => {
            Some(view.sizes())
        }
        _ => None,
    }
}

/// A view broadcast to sizes, in as few dimensions as can be: which they were does not matter to a kernel that counts
/// its elements, and finding one takes a division for each dimension but the first.
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
