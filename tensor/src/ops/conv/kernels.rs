//! The kernels of a convolution without cuDNN: what the kernel covers, written out as columns, and back.

use crate::conv::ConvShape;
use crate::cpu::parallel::for_pieces;
use crate::error::Result;
use crate::kernel::{Args, Ran};
use crate::ops::launch::launch;
use crate::ops::row::{row, rows};
use crate::tensor::Tensor;

/// Writes all that the kernel covers of an image (c, h, w) as columns, one for each position: (c·r·s, p·q). Where it
/// covers padding there are zeros.
pub(super) fn im2col(shape: &ConvShape, image: &Tensor, columns: &Tensor) -> Result<()> {
    launch(IM2COL.of(columns.dtype())?, [image], [columns], &numbers(shape), &[])
}

/// Adds up, for each element of an image, the elements of the columns that it would have been copied to.
pub(super) fn col2im(shape: &ConvShape, columns: &Tensor, image: &Tensor) -> Result<()> {
    launch(COL2IM.of(image.dtype())?, [columns], [image], &numbers(shape), &[])
}

fn numbers(shape: &ConvShape) -> [i64; 12] {
    let ConvShape { h, w, r, s, stride, padding, dilation, .. } = *shape;
    let [p, q] = shape.out();
    [h, w, r, s, p, q, stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1]]
        .map(|size| size as i64)
}

/// The sizes as a kernel gets them.
struct Sizes {
    image: [usize; 2],
    kernel: [usize; 2],
    out: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Sizes {
    fn of(args: &Args<'_, '_>) -> Sizes {
        let pair = |at: usize| [args.ints[at] as usize, args.ints[at + 1] as usize];
        Sizes {
            image: pair(0),
            kernel: pair(2),
            out: pair(4),
            stride: pair(6),
            padding: pair(8),
            dilation: pair(10),
        }
    }

    /// Where on the image, in dimension `dim`, element `at` of the kernel lies for result `out`.
    fn covered(&self, dim: usize, out: usize, at: usize) -> Option<usize> {
        let padded = out * self.stride[dim] + at * self.dilation[dim];
        padded.checked_sub(self.padding[dim]).filter(|at| *at < self.image[dim])
    }

    /// The result for which element `at` of the kernel lies on element `on` of the image.
    fn covering(&self, dim: usize, on: usize, at: usize) -> Option<usize> {
        let start = (on + self.padding[dim]).checked_sub(at * self.dilation[dim])?;
        (start.is_multiple_of(self.stride[dim]))
            .then(|| start / self.stride[dim])
            .filter(|out| *out < self.out[dim])
    }
}

rows! {
    IM2COL: row!("im2col", floats, [
        In(T), Out(T),
        // Height and width of the image, of the kernel and of the result; stride, padding, dilation.
        Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int,
    ], Indexed, Cheap, im2col_twin::<T>).refused_as("slow_conv2d_cuda");
    COL2IM: row!("col2im", floats, [
        In(T), Out(T), Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int,
    ], Indexed, Cheap, col2im_twin::<T>).refused_as("slow_conv2d_cuda");
}

fn im2col_twin<T: bytemuck::Pod + Send + Sync>(args: Args<'_, '_>) -> Ran {
    let sizes = Sizes::of(&args);
    let ([h, w], [r, s], [p, q]) = (sizes.image, sizes.kernel, sizes.out);
    let image: &[T] = args.inputs[0].elements();
    for_pieces(args.outputs[0].elements::<T>(), p * q, &|row, out| {
        let (channel, dr, ds) = (row / (r * s), row / s % r, row % s);
        for (i, out) in out.iter_mut().enumerate() {
            let at = sizes.covered(0, i / q, dr).zip(sizes.covered(1, i % q, ds));
            *out = at.map_or(T::zeroed(), |(y, x)| image[(channel * h + y) * w + x]);
        }
    });
    Ok(())
}

fn col2im_twin<T: bytemuck::Pod + Send + Sync + std::ops::Add<Output = T>>(args: Args<'_, '_>) -> Ran {
    let sizes = Sizes::of(&args);
    let ([h, w], [r, s], [p, q]) = (sizes.image, sizes.kernel, sizes.out);
    let columns: &[T] = args.inputs[0].elements();
    for_pieces(args.outputs[0].elements::<T>(), h * w, &|channel, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = T::zeroed();
            for dr in 0..r {
                let Some(row) = sizes.covering(0, i / w, dr) else { continue };
                for ds in 0..s {
                    let Some(column) = sizes.covering(1, i % w, ds) else { continue };
                    sum = sum + columns[((channel * r + dr) * s + ds) * p * q + row * q + column];
                }
            }
            *out = sum;
        }
    });
    Ok(())
}
