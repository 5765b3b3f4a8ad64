use crate::conv::ConvShape;
use crate::cpu::gemm::{GemmElement, gemm};
use crate::cpu::reserve::collect;
use crate::error::Result;

/// Computes y = W · columns (im2col) for one image and group at a time. The columns' rows follow the kernel's elements,
/// with the channels innermost, so a sum has another order than in the implicit product.
pub(super) fn forward<T: GemmElement>(shape: &ConvShape, [x, weight]: [&[T]; 2], y: &mut [T]) -> Result<()> {
    let &ConvShape { n, c, h, w, k, r, s, groups, .. } = shape;
    let [p, q] = shape.out();
    let (c, k) = (c / groups, k / groups);
    let inner = r * s * c;
    let in_order = (0..weight.len()).map(|i| {
        let (filter, at, channel) = (i / inner, i / c % (r * s), i % c);
        weight[(filter * c + channel) * r * s + at]
    });
    let weight = collect(in_order, weight.len())?;
    let mut columns = collect(std::iter::repeat_n(T::zeroed(), inner * p * q), inner * p * q)?;
    for (image, group) in (0..n).flat_map(|image| (0..groups).map(move |group| (image, group))) {
        let part = image * groups + group;
        write_columns(shape, &x[part * c * h * w..][..c * h * w], &mut columns);
        let weight = &weight[group * k * inner..][..k * inner];
        let y = &mut y[part * k * p * q..][..k * p * q];
        gemm(k, p * q, inner, weight, [inner, 1], &columns, [p * q, 1], y, false);
    }
    Ok(())
}

fn write_columns<T: GemmElement>(shape: &ConvShape, x: &[T], columns: &mut [T]) {
    let &ConvShape { h, w, r, s, stride, padding, dilation, .. } = shape;
    let [p, q] = shape.out();
    let channels = x.len() / (h * w);
    for (row, out) in columns.chunks_exact_mut(p * q).enumerate() {
        let (at, channel) = (row / channels, row % channels);
        let (dr, ds) = (at / s % r, at % s);
        let image = &x[channel * h * w..][..h * w];
        for (i, out) in out.chunks_exact_mut(q).enumerate() {
            let line = (i * stride[0] + dr * dilation[0]).checked_sub(padding[0]).filter(|line| *line < h);
            let Some(line) = line.map(|line| &image[line * w..][..w]) else {
                out.fill(T::zeroed());
                continue;
            };
            for (j, out) in out.iter_mut().enumerate() {
                let column = (j * stride[1] + ds * dilation[1]).checked_sub(padding[1]);
                *out = column.and_then(|column| line.get(column)).copied().unwrap_or(T::zeroed());
            }
        }
    }
}
