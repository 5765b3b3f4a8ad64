//! The three products of a convolution in host memory.

use super::shape::{ConvPass, ConvShape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::matmul::gemm::GemmElement;

/// Computes one of the products of a convolution. All operands are dense: those of [`ConvPass`], in its order.
pub(crate) fn run_conv(
    pass: ConvPass,
    shape: &ConvShape,
    dtype: DType,
    a: &[u8],
    b: &[u8],
    out: &mut [u8],
) -> Result<()> {
    match dtype {
        DType::F32 => run::<f32>(pass, shape, a, b, out),
        DType::F64 => run::<f64>(pass, shape, a, b, out),
        dtype => return Err(Error::NotImplemented { operation: "slow_conv2d_cpu", dtype }),
    }
    Ok(())
}

fn run<T: GemmElement>(pass: ConvPass, shape: &ConvShape, a: &[u8], b: &[u8], out: &mut [u8]) {
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    out.fill(T::zeroed());
    let &ConvShape { n, c, h, w, k, r, s, stride, padding, dilation, groups } = shape;
    let [p, q] = shape.out();
    let (c_group, k_group) = (c / groups, k / groups);
    for (image, filter) in (0..n).flat_map(|image| (0..k).map(move |filter| (image, filter))) {
        for (channel, dr, ds) in
            (0..c_group).flat_map(|c| (0..r).flat_map(move |r| (0..s).map(move |s| (c, r, s))))
        {
            let at_w = ((filter * c_group + channel) * r + dr) * s + ds;
            for (row, column) in (0..p).flat_map(|p| (0..q).map(move |q| (p, q))) {
                let y = row * stride[0] + dr * dilation[0];
                let x = column * stride[1] + ds * dilation[1];
                if y < padding[0] || x < padding[1] || y - padding[0] >= h || x - padding[1] >= w {
                    continue;
                }
                let channel = filter / k_group * c_group + channel;
                let at_x = ((image * c + channel) * h + y - padding[0]) * w + x - padding[1];
                let at_y = ((image * k + filter) * p + row) * q + column;
                let (to, left, right) = match pass {
                    ConvPass::Forward => (at_y, a[at_x], b[at_w]),
                    ConvPass::BackwardData => (at_x, a[at_y], b[at_w]),
                    ConvPass::BackwardFilter => (at_w, a[at_x], b[at_y]),
                };
                out[to] = T::mul_add(left, right, out[to]);
            }
        }
    }
}
