//! Convolution on a device: with cuDNN, or as matrix products on im2col columns.

use super::kernels;
use crate::backends::{are_deterministic_algorithms_enabled, cudnn};
use crate::conv::{Conv, ConvPass, ConvShape};
use crate::cpu::conv::compute;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::runtime::{Choice, DeviceMemory};
use crate::ops::matmul::product;
use crate::tensor::{Tensor, pointer_of};

/// Computes a pass into `out`, whose memory is `memory`. All tensors are dense.
pub(super) fn pass(
    memory: &DeviceMemory,
    which: ConvPass,
    shape: &ConvShape,
    [a, b]: [&Tensor; 2],
    out: &Tensor,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if a.numel() == 0 || b.numel() == 0 {
        return out.zero_().map(|out| drop(out.as_new()));
    }
    let cudnn::Flags { enabled, benchmark, benchmark_limit, deterministic, allow_tf32 } = cudnn::current();
    if !enabled || memory.cuda().cudnn_version().is_none() {
        return without_cudnn(which, shape, [a, b], out);
    }
    let dtype = out.dtype();
    let conv = Conv {
        pass: which,
        shape: *shape,
        dtype,
        tf32: dtype == DType::F32 && allow_tf32,
        a: pointer_of(a)?,
        b: pointer_of(b)?,
        out: pointer_of(out)?,
        twin: compute,
    };
    let deterministic = deterministic || are_deterministic_algorithms_enabled();
    let choice = Choice { benchmark, benchmark_limit, deterministic };
    Ok(memory.cuda().convolution(memory.current_stream(), conv, choice)?)
}

/// Handles one image at a time, as PyTorch does (`slow_conv2d`): im2col, then one matrix product per group.
fn without_cudnn(which: ConvPass, shape: &ConvShape, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
    let &ConvShape { n, c, k, r, s, groups, .. } = shape;
    let [p, q] = shape.out();
    let (g, inner, outputs, positions) = (groups as i64, c / groups * r * s, k / groups, p * q);
    let columns = out.uninit_beside(&[groups, inner, positions], out.dtype())?;
    let filters = |weight: &Tensor| weight.reshape(&[g, outputs as i64, inner as i64]);
    let pixels = |y: &Tensor| y.reshape(&[g, outputs as i64, positions as i64]);
    for image in 0..n {
        let of = |tensor: &Tensor| tensor.select(0, image as i64);
        match which {
            ConvPass::Forward => {
                kernels::im2col(shape, &of(a)?, &columns)?;
                product(&filters(b)?, &columns, &pixels(&of(out)?)?, false)?;
            }
            ConvPass::BackwardData => {
                product(&filters(b)?.transpose(1, 2)?, &pixels(&of(a)?)?, &columns, false)?;
                kernels::col2im(shape, &columns, &of(out)?)?;
            }
            ConvPass::BackwardFilter => {
                kernels::im2col(shape, &of(a)?, &columns)?;
                product(&pixels(&of(b)?)?, &columns.transpose(1, 2)?, &filters(out)?, image > 0)?;
            }
        }
    }
    Ok(())
}
