//! Convolutions on a simulated GPU: algorithms and costs. The caller supplies the computation ([`Conv::twin`]).
//!
//! The algorithms model cuDNN's of the same names. Each sums in a different order, so no two give the same bits.
//!
//! | pass | algorithm | method | workspace |
//! | --- | --- | --- | --- |
//! | forward | `IMPLICIT_PRECOMP_GEMM` | a matrix product that reads the image in place | a table |
//! | | `GEMM` | the same, with the matrix of all image patches written out | that matrix |
//! | | `WINOGRAD_NONFUSED` | fewer multiplications for 3×3 kernels | three transforms |
//! | gradient of the input | `ALGO_0` | partial sums, added in any order | |
//! | | `ALGO_1` | as `IMPLICIT_PRECOMP_GEMM` | a table |
//! | | `WINOGRAD_NONFUSED` | as forward, with the kernel rotated | three transforms |
//! | gradient of the weight | `ALGO_0` | partial sums, added in any order | |
//! | | `ALGO_1` | as `IMPLICIT_PRECOMP_GEMM`, partial sums added in order | the partial sums |

use super::execute::run;
use super::memory::{Access, AddressSpace, Bytes};
use super::profile::Profile;
use super::{cost, errors};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::conv::{ConvPass, ConvShape, Way};
use crate::base::dtype::DType;
use crate::base::sort;
use crate::contract::driver::DriverResult;

/// The modelled version of cuDNN.
pub const VERSION: usize = 91_900;

/// The algorithms of a pass, with cuDNN's numbers.
pub fn ways(pass: ConvPass) -> &'static [(u32, Way)] {
    match pass {
        ConvPass::Forward => &[(1, Way::Implicit), (2, Way::Explicit), (7, Way::Winograd)],
        ConvPass::BackwardData => &[(0, Way::Disorder), (1, Way::Implicit), (5, Way::Winograd)],
        ConvPass::BackwardFilter => &[(0, Way::Disorder), (1, Way::Implicit)],
    }
}

#[derive(Clone, Copy)]
pub struct Convolution {
    pub conv: Conv,
    pub way: Way,
}

impl Convolution {
    /// Adapts a convolution to the card. Fails if the card does not have the algorithm.
    pub fn new(profile: &Profile, conv: &Conv, algorithm: &ConvAlgorithm) -> DriverResult<Convolution> {
        let way = ways(conv.pass).iter().find(|(number, _)| *number == algorithm.number);
        let (_, way) = way.ok_or_else(errors::invalid_value)?;
        let tf32 = conv.tf32 && *way != Way::Winograd && cost::has_tf32(profile);
        Ok(Convolution { conv: Conv { tf32, ..*conv }, way: *way })
    }

    /// The sizes of the matrix products: m, n, k and their number.
    pub fn as_product(&self) -> [usize; 4] {
        let ConvShape { n, c, h, w, k, r, s, groups, .. } = self.conv.shape;
        let [p, q] = self.conv.shape.out();
        let (c, k) = (c / groups, k / groups);
        match self.conv.pass {
            ConvPass::Forward => [k, n * p * q, c * r * s, groups],
            ConvPass::BackwardData => [c, n * h * w, k * r * s, groups],
            ConvPass::BackwardFilter => [k, c * r * s, n * p * q, groups],
        }
    }

    /// In bytes.
    pub fn workspace(&self) -> usize {
        let shape = &self.conv.shape;
        let [m, n, k, groups] = self.as_product();
        match (self.way, self.conv.pass) {
            (Way::Disorder, _) => 0,
            // A partial sum for each piece of the long sum, added in order.
            (Way::Implicit, ConvPass::BackwardFilter) => {
                let pieces = cost::ordered_pieces(k);
                if pieces > 1 { pieces * m * n * groups * 4 } else { 0 }
            }
            // The start of each row of the virtual matrix.
            (Way::Implicit, _) => k * groups * 4,
            (Way::Explicit, _) => k * n * groups * self.conv.dtype.size(),
            (Way::Winograd, _) => winograd_transformed(shape, self.conv.pass) * 4,
        }
    }

    pub fn is_possible(&self) -> bool {
        let shape = &self.conv.shape;
        match self.way {
            Way::Winograd => winograd_fits(shape) && self.conv.dtype != DType::F64,
            // With groups, the parts would be too small.
            Way::Disorder => shape.groups == 1,
            Way::Implicit | Way::Explicit => true,
        }
    }

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

fn winograd_fits(shape: &ConvShape) -> bool {
    let plain = shape.stride == [1, 1] && shape.dilation == [1, 1] && shape.groups == 1;
    plain && [shape.r, shape.s] == [3, 3] && shape.padding.iter().all(|zeros| *zeros <= 2)
}

/// Elements of the transformed image, kernel and result.
fn winograd_transformed(shape: &ConvShape, pass: ConvPass) -> usize {
    let shape = shape.as_forward(pass);
    let tiles = shape.winograd_tiles();
    ConvShape::WINOGRAD_TILE * (shape.c * tiles + shape.k * shape.c + shape.k * tiles)
}

/// Lists the algorithms by a rule of thumb. It ignores the card, so benchmark mode may find a better one.
pub fn algorithms(profile: &Profile, conv: &Conv) -> Vec<ConvAlgorithm> {
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
        // A long sum with a small result: only its parts occupy all multiprocessors.
        (Way::Disorder, ConvPass::BackwardFilter) => 1,
        (Way::Implicit, _) => 2,
        (Way::Winograd, _) => 3,
        (Way::Explicit | Way::Disorder, _) => 4,
    };
    sort::by_key(&mut found, |(way, _)| rank(*way));
    found.into_iter().map(|(_, algorithm)| algorithm).collect()
}

/// `order` is the seed of the order in which [`Way::Disorder`] adds partial sums.
pub(super) fn execute(memory: &mut AddressSpace, convolution: &Convolution, order: u64) -> DriverResult<()> {
    let Convolution { conv, way } = convolution;
    match &mut memory.borrow(&convolution.accesses())?[..] {
        [Bytes::Read(a), Bytes::Read(b), Bytes::Write(out)] => {
            run(|| format!("convolution {:?}", conv.pass), || (conv.twin)(conv, *way, [a, b], out, order))
        }
        _ => Err(errors::illegal_address()),
    }
}
