//! Convolutions on a simulated GPU: the algorithms there are, what each takes, and how each computes.
//!
//! They are what cuDNN has by the same names, as far as it is known. Each adds up in an order of its own, so no two
//! give the same bits.
//!
//! | pass | algorithm | how | works in |
//! | --- | --- | --- | --- |
//! | forward | `IMPLICIT_PRECOMP_GEMM` | a product of matrices that reads the image in place | a table |
//! | | `GEMM` | the same, of a matrix of all that the kernel covers, written out ([`explicit`]) | that matrix |
//! | | `WINOGRAD_NONFUSED` | fewer multiplications for 3×3 kernels ([`winograd`]) | three transforms |
//! | gradient of the input | `ALGO_0` | parts that are added in whatever order they come ([`disorder`]) | |
//! | | `ALGO_1` | as `IMPLICIT_PRECOMP_GEMM` | a table |
//! | | `WINOGRAD_NONFUSED` | as forward, with the kernel turned round | three transforms |
//! | gradient of the weight | `ALGO_0` | parts that are added in whatever order they come | |
//! | | `ALGO_1` | as `IMPLICIT_PRECOMP_GEMM`, parts added in order | those parts |

mod disorder;
mod explicit;
#[cfg(test)]
mod tests;
mod winograd;

use super::execute::run;
use super::memory::{Access, AddressSpace, Bytes};
use super::profile::Profile;
use super::{cost, errors};
use crate::cuda::driver::{Conv, ConvAlgorithm, DriverResult};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::ops::conv::{ConvPass, ConvShape, run_conv};
use crate::ops::half::{narrow_all, widened};
use crate::ops::matmul::gemm::GemmElement;
use crate::ops::matmul::tf32;
use crate::ops::shape::collect;

/// The version of cuDNN whose algorithms these are modelled on.
pub(super) const VERSION: usize = 91_900;

/// How a convolution is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Implicit,
    Explicit,
    Winograd,
    Disorder,
}

/// A way with cuDNN's number of it.
fn ways(pass: ConvPass) -> &'static [(u32, Way)] {
    match pass {
        ConvPass::Forward => &[(1, Way::Implicit), (2, Way::Explicit), (7, Way::Winograd)],
        ConvPass::BackwardData => &[(0, Way::Disorder), (1, Way::Implicit), (5, Way::Winograd)],
        ConvPass::BackwardFilter => &[(0, Way::Disorder), (1, Way::Implicit)],
    }
}

/// A convolution by an algorithm.
#[derive(Clone, Copy)]
pub(super) struct Convolution {
    pub(super) conv: Conv,
    pub(super) way: Way,
}

impl Convolution {
    /// The convolution as a card computes it, if it has the algorithm.
    pub(super) fn new(
        profile: &Profile,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
    ) -> DriverResult<Convolution> {
        let way = ways(conv.pass).iter().find(|(number, _)| *number == algorithm.number);
        let (_, way) = way.ok_or_else(errors::invalid_value)?;
        let tf32 = conv.tf32 && *way != Way::Winograd && cost::has_tf32(profile);
        Ok(Convolution { conv: Conv { tf32, ..*conv }, way: *way })
    }

    /// The sizes as those of a product of matrices: m, n, k, and how many of them.
    pub(super) fn as_product(&self) -> [usize; 4] {
        let ConvShape { n, c, h, w, k, r, s, groups, .. } = self.conv.shape;
        let [p, q] = self.conv.shape.out();
        let (c, k) = (c / groups, k / groups);
        match self.conv.pass {
            ConvPass::Forward => [k, n * p * q, c * r * s, groups],
            ConvPass::BackwardData => [c, n * h * w, k * r * s, groups],
            ConvPass::BackwardFilter => [k, c * r * s, n * p * q, groups],
        }
    }

    /// Bytes of memory that it works in.
    pub(super) fn workspace(&self) -> usize {
        let shape = &self.conv.shape;
        let [m, n, k, groups] = self.as_product();
        match (self.way, self.conv.pass) {
            (Way::Disorder, _) => 0,
            // A part for each piece of the long sum, added in order at the end.
            (Way::Implicit, ConvPass::BackwardFilter) => {
                let pieces = cost::ordered_pieces(k);
                if pieces > 1 { pieces * m * n * groups * 4 } else { 0 }
            }
            // Where each row of the virtual matrix begins.
            (Way::Implicit, _) => k * groups * 4,
            (Way::Explicit, _) => k * n * groups * self.conv.dtype.size(),
            (Way::Winograd, _) => winograd::transformed(shape, self.conv.pass) * 4,
        }
    }

    fn is_possible(&self) -> bool {
        let shape = &self.conv.shape;
        match self.way {
            Way::Winograd => winograd::fits(shape) && self.conv.dtype != DType::F64,
            // Of groups the parts would be too small.
            Way::Disorder => shape.groups == 1,
            Way::Implicit | Way::Explicit => true,
        }
    }

    /// The memory it uses: two operands and the result.
    pub(super) fn accesses(&self) -> [Access; 3] {
        let Conv { pass, shape, dtype, a, b, out, .. } = self.conv;
        let [x, weight, y] = shape.elements();
        let [of_a, of_b, of_out] = match pass {
            ConvPass::Forward => [x, weight, y],
            ConvPass::BackwardData => [y, weight, x],
            ConvPass::BackwardFilter => [x, y, weight],
        };
        let access = |(address, elements, write): (u64, usize, bool)| Access {
            address,
            bytes: elements * dtype.size(),
            write,
        };
        [(a.0, of_a, false), (b.0, of_b, false), (out.0, of_out, true)].map(access)
    }
}

/// All algorithms for a convolution, in the order of a rule of thumb. It knows the sizes, not the card, so it can be
/// wrong: benchmark mode finds out.
pub(super) fn algorithms(profile: &Profile, conv: &Conv) -> Vec<ConvAlgorithm> {
    let algorithm = |(number, way): &(u32, Way)| {
        let none =
            ConvAlgorithm { number: *number, workspace: 0, deterministic: *way != Way::Disorder, math: 0 };
        let convolution = Convolution::new(profile, conv, &none).ok().filter(Convolution::is_possible)?;
        Some((*way, ConvAlgorithm { workspace: convolution.workspace(), ..none }))
    };
    let mut found: Vec<(Way, ConvAlgorithm)> = ways(conv.pass).iter().filter_map(algorithm).collect();
    let many_channels = conv.shape.c.min(conv.shape.k) >= 64;
    let rank = |way: Way| match (way, conv.pass) {
        (Way::Winograd, _) if many_channels => 0,
        // A small result of a long sum: only parts of it are enough work for all multiprocessors.
        (Way::Disorder, ConvPass::BackwardFilter) => 1,
        (Way::Implicit, _) => 2,
        (Way::Winograd, _) => 3,
        (Way::Explicit | Way::Disorder, _) => 4,
    };
    found.sort_by_key(|(way, _)| rank(*way));
    found.into_iter().map(|(_, algorithm)| algorithm).collect()
}

/// Computes a convolution. `order` decides in which order parts come, where nobody keeps it.
pub(super) fn execute(memory: &mut AddressSpace, convolution: &Convolution, order: u64) -> DriverResult<()> {
    let Convolution { conv, way } = convolution;
    match &mut memory.borrow(&convolution.accesses())?[..] {
        [Bytes::Read(a), Bytes::Read(b), Bytes::Write(out)] => run(
            || format!("convolution {:?}", conv.pass),
            || match conv.tf32 {
                true => {
                    let [a, b] = [&**a, b].map(|operand| tf32::rounded(bytemuck::cast_slice(operand)));
                    compute(*way, conv, [bytemuck::cast_slice(&a?), bytemuck::cast_slice(&b?)], out, order)
                }
                false => compute(*way, conv, [a, b], out, order),
            },
        ),
        _ => Err(errors::illegal_address()),
    }
}

/// Halves are multiplied and added in single precision, and the result is rounded once.
fn compute(way: Way, conv: &Conv, [a, b]: [&[u8]; 2], out: &mut [u8], order: u64) -> Result<()> {
    match conv.dtype {
        DType::F16 | DType::BF16 => {
            let [a, b] = [a, b].map(|operand| widened(conv.dtype, bytemuck::cast_slice(operand)));
            let mut wide = collect(std::iter::repeat_n(0f32, out.len() / 2), out.len() / 2)?;
            compute_single(way, conv, [&a?, &b?], &mut wide, order)?;
            narrow_all(conv.dtype, &wide, bytemuck::cast_slice_mut(out));
            Ok(())
        }
        DType::F64 => {
            let [a, b]: [&[f64]; 2] = [bytemuck::cast_slice(a), bytemuck::cast_slice(b)];
            compute_floats(way, conv, [a, b], bytemuck::cast_slice_mut(out), order)
        }
        _ => {
            let [a, b]: [&[f32]; 2] = [bytemuck::cast_slice(a), bytemuck::cast_slice(b)];
            compute_single(way, conv, [a, b], bytemuck::cast_slice_mut(out), order)
        }
    }
}

fn compute_single(way: Way, conv: &Conv, operands: [&[f32]; 2], out: &mut [f32], order: u64) -> Result<()> {
    match way {
        Way::Winograd => winograd::run(conv.pass, &conv.shape, operands, out),
        way => compute_floats(way, conv, operands, out, order),
    }
}

fn compute_floats<T: GemmElement + Element>(
    way: Way,
    conv: &Conv,
    [a, b]: [&[T]; 2],
    out: &mut [T],
    order: u64,
) -> Result<()> {
    let Conv { pass, shape, .. } = conv;
    match way {
        Way::Implicit => implicit(*pass, shape, [a, b], out),
        Way::Explicit => explicit::forward(shape, [a, b], out),
        Way::Winograd => Err(Error::NotImplemented { operation: "winograd", dtype: T::DTYPE }),
        Way::Disorder => disorder::run(*pass, shape, [a, b], out, order),
    }
}

/// As on the host.
fn implicit<T: GemmElement + Element>(
    pass: ConvPass,
    shape: &ConvShape,
    [a, b]: [&[T]; 2],
    out: &mut [T],
) -> Result<()> {
    let out = bytemuck::cast_slice_mut(out);
    run_conv(pass, shape, T::DTYPE, bytemuck::cast_slice(a), bytemuck::cast_slice(b), out)
}
