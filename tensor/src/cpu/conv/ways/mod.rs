//! A simulated GPU's algorithms for convolutions. Each sums in a different order, so no two give the same bits.
//! `simulated/convolution.rs` of `todevice-gpu` lists them with their requirements.

mod disorder;
mod explicit;
#[cfg(test)]
mod tests;
mod winograd;

use super::run_conv;
use crate::conv::{Conv, ConvPass, ConvShape, Way};
use crate::cpu::gemm::GemmElement;
use crate::cpu::half::{narrow_all, widened};
use crate::cpu::reserve::collect;
use crate::cpu::tf32;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::kernel::TwinResult;

/// Computes a convolution with the algorithm `way`. `order` selects the order of parts where it is not fixed.
pub(crate) fn compute(conv: &Conv, way: Way, [a, b]: [&[u8]; 2], out: &mut [u8], order: u64) -> TwinResult {
    match conv.tf32 {
        true => {
            let [a, b] = [a, b].map(|operand| tf32::rounded(bytemuck::cast_slice(operand)));
            compute_stored(way, conv, [bytemuck::cast_slice(&a?), bytemuck::cast_slice(&b?)], out, order)?
        }
        false => compute_stored(way, conv, [a, b], out, order)?,
    }
    Ok(())
}

/// Half types are multiplied and added in single precision, and rounded once.
fn compute_stored(way: Way, conv: &Conv, [a, b]: [&[u8]; 2], out: &mut [u8], order: u64) -> Result<()> {
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
        Way::Winograd => Err(not_implemented("winograd", T::DTYPE)),
        Way::Disorder => disorder::run(*pass, shape, [a, b], out, order),
    }
}

fn implicit<T: GemmElement + Element>(
    pass: ConvPass,
    shape: &ConvShape,
    [a, b]: [&[T]; 2],
    out: &mut [T],
) -> Result<()> {
    let out = bytemuck::cast_slice_mut(out);
    run_conv(pass, shape, T::DTYPE, bytemuck::cast_slice(a), bytemuck::cast_slice(b), out)
}
