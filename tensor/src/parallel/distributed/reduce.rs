//! Reductions over ranks, always in rank order, so that every rank gets the same bits in every run. (NCCL's order
//! depends on the ring and varies within a tensor. Exact sums do not depend on it.)

use bytemuck::Pod;
use half::{bf16, f16};

use crate::collective::ReduceOp;
use crate::cpu::parallel::for_pieces;
use crate::cpu::pool::threads_for;
use crate::dtype::DType;

pub(super) fn reduce(op: ReduceOp, dtype: DType, first: &mut [u8], others: &[&[u8]]) {
    match dtype {
        DType::F32 => floats::<f32>(op, first, others),
        DType::F64 => floats::<f64>(op, first, others),
        // Summed in f32, and rounded once.
        DType::F16 => halves(op, first, others, f16::to_f32, f16::from_f32),
        DType::BF16 => halves(op, first, others, bf16::to_f32, bf16::from_f32),
        DType::I64 => integers::<i64>(op, first, others, i64::wrapping_add, |sum, count| sum / count as i64),
        DType::I32 => integers::<i32>(op, first, others, i32::wrapping_add, |sum, count| sum / count as i32),
        DType::U8 => {
            integers::<u8>(op, first, others, u8::wrapping_add, |sum, count| sum / count.max(1) as u8)
        }
        // The sum of bools is their OR.
        DType::Bool => fold::<u8>(first, others, |a, b| if op == ReduceOp::Min { a & b } else { a | b }),
    }
}

/// The bytes of all inputs to keep in the cache at a time.
const BLOCK: usize = 16 << 10;

/// The minimum bytes for which waking a thread pays off.
const WORTH_SHARING: usize = 16 * BLOCK;

/// Combines the first input with each of the others in turn.
fn fold<T: Pod>(first: &mut [u8], others: &[&[u8]], join: impl Fn(T, T) -> T + Sync) {
    for_pieces(threads_for(first.len(), WORTH_SHARING), first, BLOCK, &|block, first| {
        for other in others {
            let other = &other[block * BLOCK..];
            for (a, b) in first.chunks_exact_mut(size_of::<T>()).zip(other.chunks_exact(size_of::<T>())) {
                let joined = join(bytemuck::pod_read_unaligned(a), bytemuck::pod_read_unaligned(b));
                a.copy_from_slice(bytemuck::bytes_of(&joined));
            }
        }
    });
}

fn map<T: Pod>(elements: &mut [u8], change: impl Fn(T) -> T) {
    for a in elements.chunks_exact_mut(size_of::<T>()) {
        let changed = change(bytemuck::pod_read_unaligned(a));
        a.copy_from_slice(bytemuck::bytes_of(&changed));
    }
}

trait ReduceFloat: Pod + std::ops::Add<Output = Self> + std::ops::Div<Output = Self> {
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn of_count(count: usize) -> Self;
}

macro_rules! float {
    ($($T:ty),*) => {$(
        impl ReduceFloat for $T {
            fn larger(self, other: $T) -> $T {
                self.max(other)
            }
            fn smaller(self, other: $T) -> $T {
                self.min(other)
            }
            fn of_count(count: usize) -> $T {
                count as $T
            }
        }
    )*};
}
float!(f32, f64);

fn floats<T: ReduceFloat>(op: ReduceOp, first: &mut [u8], others: &[&[u8]]) {
    match op {
        ReduceOp::Sum => fold::<T>(first, others, |a, b| a + b),
        ReduceOp::Max => fold::<T>(first, others, T::larger),
        ReduceOp::Min => fold::<T>(first, others, T::smaller),
        ReduceOp::Avg => {
            fold::<T>(first, others, |a, b| a + b);
            let count = T::of_count(1 + others.len());
            map::<T>(first, |sum| sum / count);
        }
    }
}

fn halves<T: Pod>(
    op: ReduceOp,
    first: &mut [u8],
    others: &[&[u8]],
    wide: impl Fn(T) -> f32,
    narrow: impl Fn(f32) -> T,
) {
    let size = size_of::<T>();
    for (index, out) in first.chunks_exact_mut(size).enumerate() {
        let own = wide(bytemuck::pod_read_unaligned(out));
        let values = others
            .iter()
            .map(|other| wide(bytemuck::pod_read_unaligned(&other[index * size..(index + 1) * size])));
        let reduced = match op {
            ReduceOp::Sum => values.fold(own, |a, b| a + b),
            ReduceOp::Avg => values.fold(own, |a, b| a + b) / (1 + others.len()) as f32,
            ReduceOp::Max => values.fold(own, f32::max),
            ReduceOp::Min => values.fold(own, f32::min),
        };
        out.copy_from_slice(bytemuck::bytes_of(&narrow(reduced)));
    }
}

fn integers<T: Pod + Ord>(
    op: ReduceOp,
    first: &mut [u8],
    others: &[&[u8]],
    add: impl Fn(T, T) -> T + Sync,
    divide: impl Fn(T, usize) -> T,
) {
    match op {
        ReduceOp::Sum => fold(first, others, add),
        ReduceOp::Max => fold(first, others, |a: T, b| a.max(b)),
        ReduceOp::Min => fold(first, others, |a: T, b| a.min(b)),
        ReduceOp::Avg => {
            fold(first, others, add);
            map(first, |sum: T| divide(sum, 1 + others.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Pod>(op: ReduceOp, dtype: DType, inputs: &[&[T]]) -> Vec<T> {
        let bytes: Vec<&[u8]> = inputs.iter().map(|input| bytemuck::cast_slice(input)).collect();
        let mut first = bytes[0].to_vec();
        reduce(op, dtype, &mut first, &bytes[1..]);
        bytemuck::pod_collect_to_vec(&first)
    }

    #[test]
    fn every_type_is_reduced_in_the_order_of_the_ranks() {
        let inputs: [&[f32]; 3] = [&[1e8, 1.0], &[1.0, -2.0], &[-1e8, 4.0]];
        assert_eq!(of(ReduceOp::Sum, DType::F32, &inputs), [(1e8f32 + 1.0) - 1e8, 3.0]);
        assert_eq!(of(ReduceOp::Avg, DType::F32, &inputs), [((1e8f32 + 1.0) - 1e8) / 3.0, 1.0]);
        assert_eq!(of(ReduceOp::Max, DType::F64, &[&[1.0f64][..], &[-3.0]]), [1.0]);
        assert_eq!(of(ReduceOp::Min, DType::I64, &[&[1i64][..], &[-3]]), [-3]);
        assert_eq!(of(ReduceOp::Sum, DType::U8, &[&[250u8][..], &[10]]), [4]);
        let halves = [f16::from_f32(2048.0), f16::from_f32(1.0), f16::from_f32(1.0)];
        let halves: Vec<&[f16]> = halves.chunks(1).collect();
        assert_eq!(of(ReduceOp::Sum, DType::F16, &halves), [f16::from_f32(2050.0)], "rounded once");
        assert_eq!(of(ReduceOp::Sum, DType::Bool, &[&[0u8, 1][..], &[0, 1]]), [0, 1]);
        let long: Vec<i32> = (0..3 * BLOCK as i32 / 4 + 1).collect();
        let doubled: Vec<i32> = long.iter().map(|number| 2 * number).collect();
        assert_eq!(of(ReduceOp::Sum, DType::I32, &[&long[..], &long]), doubled, "in several blocks");
        assert_eq!(of(ReduceOp::Min, DType::Bool, &[&[0u8, 1][..], &[1, 1]]), [0, 1]);
    }
}
