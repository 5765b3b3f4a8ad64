//! The kernels of a convolution without cuDNN: im2col and col2im.

use std::ops::Add;

use bytemuck::{Pod, cast_slice};

use crate::conv::ConvShape;
use crate::cpu::parallel::for_rows;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::pool::{Grid, Windows};
use crate::ops::row::{row, rows};
use crate::tensor::Tensor;

/// Writes an image (c, h, w), padded with zeros, as columns, one per output position: (c·r·s, p·q).
pub(super) fn im2col(shape: &ConvShape, image: &Tensor, columns: &Tensor) -> Result<()> {
    launch(IM2COL.of(columns.dtype())?, [image], [columns], cast_slice(&[grid(shape)]), &[])
}

/// Adds the elements of the columns to the image elements that im2col would read them from.
pub(super) fn col2im(shape: &ConvShape, columns: &Tensor, image: &Tensor) -> Result<()> {
    launch(COL2IM.of(image.dtype())?, [columns], [image], cast_slice(&[grid(shape)]), &[])
}

fn grid(shape: &ConvShape) -> Grid {
    let ConvShape { h, w, r, s, stride, padding, dilation, .. } = *shape;
    let along = |i: usize, size: usize, kernel: usize| Windows {
        kernel: kernel as i64,
        stride: stride[i] as i64,
        padding: padding[i] as i64,
        dilation: dilation[i] as i64,
        size: size as i64,
        count: shape.out()[i] as i64,
    };
    Grid { down: along(0, h, r), across: along(1, w, s) }
}

rows! {
    IM2COL: row!("im2col", floats, [
        In(T), Out(T), Block(Windows), Block(Windows),
    ], Indexed, Cheap, im2col_twin::<T>).refused_as("slow_conv2d_cuda");
    COL2IM: row!("col2im", floats, [
        In(T), Out(T), Block(Windows), Block(Windows),
    ], Indexed, Cheap, col2im_twin::<T>).refused_as("slow_conv2d_cuda");
}

fn im2col_twin<T: Pod + Send + Sync>(Args { inputs, outputs, ints, .. }: Args<'_, '_>) -> TwinResult {
    let grid @ Grid { down, across } = cast_slice(ints)[0];
    let [[h, w], [r, s], [p, q]] = grid.extents();
    let image: &[T] = inputs[0].elements();
    for_rows(outputs[0].elements::<T>(), p * q, |row, out| {
        let (channel, dr, ds) = (row / (r * s), row / s % r, row % s);
        for (i, out) in out.iter_mut().enumerate() {
            let at = down.element(i / q, dr as i64).zip(across.element(i % q, ds as i64));
            *out = at.map_or(T::zeroed(), |(y, x)| image[(channel * h + y) * w + x]);
        }
    });
    Ok(())
}

fn col2im_twin<T: Pod + Send + Sync + Add<Output = T>>(args: Args<'_, '_>) -> TwinResult {
    let grid @ Grid { down, across } = cast_slice(args.ints)[0];
    let [[h, w], [r, s], [p, q]] = grid.extents();
    let columns: &[T] = args.inputs[0].elements();
    for_rows(args.outputs[0].elements::<T>(), h * w, |channel, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = T::zeroed();
            for dr in 0..r {
                let Some(row) = down.over(i / w, dr as i64) else { continue };
                for ds in 0..s {
                    let Some(column) = across.over(i % w, ds as i64) else { continue };
                    sum = sum + columns[((channel * r + dr) * s + ds) * p * q + row * q + column];
                }
            }
            *out = sum;
        }
    });
    Ok(())
}
