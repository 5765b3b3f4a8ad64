//! Convolutions of 3×3 kernels with fewer multiplications: Winograd's F(2×2, 3×3), after Lavin and Gray ("Fast
//! Algorithms for Convolutional Neural Networks", arXiv:1509.09308).
//!
//! A tile of 2×2 results depends on 4×4 elements of the image. The direct sum takes 4 · 9 = 36 multiplications; this
//! one takes 16, one per element of the transformed tile. The price is the transforms' additions and memory.

use crate::conv::{ConvPass, ConvShape};
use crate::cpu::gemm::gemm;
use crate::cpu::reserve::collect;
use crate::error::Result;

const TILE: usize = ConvShape::WINOGRAD_TILE;

/// Computes a pass from the image, or the gradient of the result, and the weight.
pub(super) fn run(pass: ConvPass, shape: &ConvShape, [x, weight]: [&[f32]; 2], y: &mut [f32]) -> Result<()> {
    let filter = |k: usize, c: usize| -> [f32; 9] {
        std::array::from_fn(|at| match pass {
            ConvPass::BackwardData => weight[(c * shape.c + k) * 9 + 8 - at],
            ConvPass::Forward | ConvPass::BackwardFilter => weight[(k * shape.c + c) * 9 + at],
        })
    };
    let shape = &shape.as_forward(pass);
    let &ConvShape { n, c, h, w, k, padding, .. } = shape;
    let [p, q] = shape.out();
    let (down, across) = (p.div_ceil(2), q.div_ceil(2));
    let tiles = shape.winograd_tiles();
    let zeros = |elements: usize| collect(std::iter::repeat_n(0.0, elements), elements);

    // The kernels: G·g·Gᵀ, where each of the 16 elements is a matrix (k, c).
    let mut kernels = zeros(TILE * k * c)?;
    for (row, channel) in (0..k).flat_map(|k| (0..c).map(move |c| (k, c))) {
        for (at, value) in of_kernel(filter(row, channel)).into_iter().enumerate() {
            kernels[(at * k + row) * c + channel] = value;
        }
    }
    // The image: Bᵀ·d·B, where each of the 16 elements is a matrix (c, tiles).
    let mut image = zeros(TILE * c * tiles)?;
    for (channel, tile) in (0..c).flat_map(|c| (0..tiles).map(move |tile| (c, tile))) {
        let (number, down_at, across_at) = (tile / (down * across), tile / across % down, tile % across);
        let plane = &x[(number * c + channel) * h * w..][..h * w];
        let covered: [f32; 16] = std::array::from_fn(|at| {
            let line = (2 * down_at + at / 4).checked_sub(padding[0]).filter(|line| *line < h);
            let column = (2 * across_at + at % 4).checked_sub(padding[1]).filter(|column| *column < w);
            line.zip(column).map_or(0.0, |(line, column)| plane[line * w + column])
        });
        for (at, value) in of_image(covered).into_iter().enumerate() {
            image[(at * c + channel) * tiles + tile] = value;
        }
    }
    let mut products = zeros(TILE * k * tiles)?;
    for at in 0..TILE {
        let (kernels, image) = (&kernels[at * k * c..][..k * c], &image[at * c * tiles..][..c * tiles]);
        let product = &mut products[at * k * tiles..][..k * tiles];
        gemm(k, tiles, c, kernels, [c, 1], image, [tiles, 1], product, false);
    }
    // The result: Aᵀ·m·A.
    for (number, row) in (0..n).flat_map(|n| (0..k).map(move |k| (n, k))) {
        let plane = &mut y[(number * k + row) * p * q..][..p * q];
        for (down_at, across_at) in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
            let tile = (number * down + down_at) * across + across_at;
            let result = of_result(std::array::from_fn(|at| products[(at * k + row) * tiles + tile]));
            for (at, value) in result.into_iter().enumerate() {
                let (line, column) = (2 * down_at + at / 2, 2 * across_at + at % 2);
                if line < p && column < q {
                    plane[line * q + column] = value;
                }
            }
        }
    }
    Ok(())
}

/// Bᵀ·d·B with Bᵀ = [1 0 −1 0; 0 1 1 0; 0 −1 1 0; 0 1 0 −1].
fn of_image(d: [f32; 16]) -> [f32; 16] {
    let step = |[a, b, c, d]: [f32; 4]| [a - c, b + c, c - b, b - d];
    both_ways(d, step)
}

/// G·g·Gᵀ with G = [1 0 0; ½ ½ ½; ½ −½ ½; 0 0 1].
fn of_kernel(g: [f32; 9]) -> [f32; 16] {
    let step = |[a, b, c]: [f32; 3]| {
        let ends = a + c;
        [a, (ends + b) * 0.5, (ends - b) * 0.5, c]
    };
    let columns: [[f32; 4]; 3] = std::array::from_fn(|j| step([g[j], g[3 + j], g[6 + j]]));
    let rows: [[f32; 4]; 4] = std::array::from_fn(|i| step([columns[0][i], columns[1][i], columns[2][i]]));
    std::array::from_fn(|at| rows[at / 4][at % 4])
}

/// Aᵀ·m·A with Aᵀ = [1 1 1 0; 0 1 −1 −1].
fn of_result(m: [f32; 16]) -> [f32; 4] {
    let step = |[a, b, c, d]: [f32; 4]| [a + b + c, b - c - d];
    let columns: [[f32; 2]; 4] = std::array::from_fn(|j| step([m[j], m[4 + j], m[8 + j], m[12 + j]]));
    let row = |i: usize| step(std::array::from_fn(|j| columns[j][i]));
    let ([a, b], [c, d]) = (row(0), row(1));
    [a, b, c, d]
}

fn both_ways(values: [f32; 16], step: impl Fn([f32; 4]) -> [f32; 4]) -> [f32; 16] {
    let columns: [[f32; 4]; 4] = std::array::from_fn(|j| step(std::array::from_fn(|i| values[4 * i + j])));
    let rows: [[f32; 4]; 4] = std::array::from_fn(|i| step(std::array::from_fn(|j| columns[j][i])));
    std::array::from_fn(|at| rows[at / 4][at % 4])
}
