//! Sums to which the blocks of a GPU add when they finish (`atomicAdd`). Their order is not fixed, and floating-point
//! sums depend on it: the same program with the same numbers gives different bits.
//!
//! On hardware, the order depends on clocks, temperatures and other work. Here it depends on the number of the
//! operation. A second call gives different bits from the first, but a second run of the program gives the same bits.

use super::implicit;
use crate::conv::{ConvPass, ConvShape};
use crate::cpu::gemm::GemmElement;
use crate::cpu::reserve::{collect, reserve};
use crate::dtype::Element;
use crate::error::Result;
use crate::random::mix;

const PARTS: usize = 8;

/// Adds the parts of a gradient in an order that depends on `order`. A part is some of the images for the weight's
/// gradient, and some of the output's channels for the input's gradient.
pub(super) fn run<T: GemmElement + Element>(
    pass: ConvPass,
    shape: &ConvShape,
    [a, b]: [&[T]; 2],
    out: &mut [T],
    order: u64,
) -> Result<()> {
    let &ConvShape { n, c, h, w, k, r, s, .. } = shape;
    let [p, q] = shape.out();
    out.fill(T::zeroed());
    let mut part = collect(std::iter::repeat_n(T::zeroed(), out.len()), out.len())?;
    let all = if pass == ConvPass::BackwardData { k } else { n };
    for (start, end) in shuffled(all, order) {
        let count = end - start;
        if pass == ConvPass::BackwardData {
            let mut dy = reserve(n * count * p * q)?;
            for image in 0..n {
                dy.extend_from_slice(&a[(image * k + start) * p * q..][..count * p * q]);
            }
            let weight = &b[start * c * r * s..end * c * r * s];
            implicit(pass, &ConvShape { k: count, ..*shape }, [&dy, weight], &mut part)?;
        } else {
            let x = &a[start * c * h * w..end * c * h * w];
            let dy = &b[start * k * p * q..end * k * p * q];
            implicit(pass, &ConvShape { n: count, ..*shape }, [x, dy], &mut part)?;
        }
        for (out, part) in out.iter_mut().zip(&part) {
            *out = *out + *part;
        }
    }
    Ok(())
}

fn shuffled(all: usize, order: u64) -> Vec<(usize, usize)> {
    let parts = PARTS.min(all);
    let mut borders: Vec<(usize, usize)> =
        (0..parts).map(|part| (all * part / parts, all * (part + 1) / parts)).collect();
    let mut random = order;
    for i in (1..borders.len()).rev() {
        random = mix(random);
        borders.swap(i, (random % (i as u64 + 1)) as usize);
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_in_orders_that_differ() {
        for all in [0, 1, 3, 8, 64, 65] {
            let mut sorted = shuffled(all, 5);
            sorted.sort_unstable();
            let count: usize = sorted.iter().map(|(start, end)| end - start).sum();
            assert!(count == all && sorted.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        let orders: std::collections::HashSet<_> = (0..20).map(|order| shuffled(64, order)).collect();
        assert!(orders.len() > 15);
        assert_eq!(shuffled(64, 3), shuffled(64, 3));
    }
}
