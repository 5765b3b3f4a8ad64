//! Kernels that compute values from positions.

use std::convert::identity;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::cpu::blocks::for_blocks;
use crate::error::Result;
use crate::kernel::{Args, Cost, TwinResult};
use crate::ops::elementwise::Convert;
use crate::ops::launch::launch;
use crate::ops::row::{row, rows};
use crate::tensor::Tensor;

/// The twin of a kernel whose element `i` is `value(i, ints, floats)`.
fn from_position<T: Pod + Send>(args: Args<'_, '_>, value: fn(usize, &[i64], &[f64]) -> T) -> TwinResult {
    let (ints, floats) = (args.ints, args.floats);
    for_blocks(&mut args.outputs[0], Cost::Cheap, &|start, out: &mut [T]| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = value(start + i, ints, floats);
        }
    });
    Ok(())
}

rows! {
    ARANGE: row!("arange", each, [Out(T), Int, Int, Int, Float, Float], Elements, Cheap, |args| {
        from_position(args, <T as InRange>::in_range)
    });
    LINSPACE: row!("linspace", each, [Out(T), Int, Int, Int, Float, Float], Elements, Cheap, |args| {
        from_position(args, <T as Spaced>::spaced)
    });
    EYE: row!("eye", numbers, [Out(T), Int], Elements, Cheap, |args| {
        from_position(args, |i, ints, _| -> T {
            let n = ints[0] as usize;
            (i / n == i % n) as u8 as T
        })
    });
}

/// Computes `start + i · step`, in integers for integer tensors: an f64 cannot distinguish 2⁵³ from 2⁵³ + 1.
pub(super) fn arange(out: &Tensor, whole: [i64; 2], floats: [f64; 2]) -> Result<()> {
    let pair = 2 * VECTOR / out.dtype().size();
    let in_vectors = out.numel() / pair * pair;
    launch(ARANGE.of(out.dtype())?, [], [out], &[whole[0], whole[1], in_vectors as i64], &floats)
}

/// The size in bytes of PyTorch's vectors for a floating-point range, which it writes in pairs.
const VECTOR: usize = 32;

trait InRange: Sized {
    fn in_range(i: usize, ints: &[i64], floats: &[f64]) -> Self;
}

macro_rules! in_range {
    ($($T:ty as $Math:ty: $round:expr, $widen:expr;)*) => {$(
        impl InRange for $T {
            /// A vector counts from its rounded first element, a remainder below two vectors from the start.
            fn in_range(i: usize, ints: &[i64], floats: &[f64]) -> $T {
                let [start, step] = [floats[0] as $Math, floats[1] as $Math];
                let at = |i: usize, from: $Math| step.mul_add(i as $Math, from);
                if i >= ints[2] as usize {
                    return $round(at(i, start));
                }
                let lane = i % (VECTOR / size_of::<$T>());
                let first: $T = $round(at(i - lane, start));
                $round(at(lane, $widen(first)))
            }
        }
    )*};
}
in_range! {
    f32 as f64: Convert::convert, f64::from;
    f64 as f64: identity, identity;
    f16 as f32: f16::from_f32, f16::to_f32;
    bf16 as f32: bf16::from_f32, bf16::to_f32;
}

macro_rules! whole_in_range {
    ($($T:ty),*) => {$(
        impl InRange for $T {
            fn in_range(i: usize, ints: &[i64], _: &[f64]) -> $T {
                ints[0].wrapping_add((i as i64).wrapping_mul(ints[1])) as $T
            }
        }
    )*};
}
whole_in_range!(i64, i32, u8);

/// Computes evenly spaced values, counted from both ends, so the last is exactly `end`.
pub(super) fn linspace(out: &Tensor, start: f64, end: f64) -> Result<()> {
    let ints = [out.numel() as i64, start as i64, end as i64];
    launch(LINSPACE.of(out.dtype())?, [], [out], &ints, &[start, end])
}

trait Spaced: Sized {
    fn spaced(i: usize, ints: &[i64], floats: &[f64]) -> Self;
}

/// Returns whether element `i` is counted from the start, its number of steps from that end, and the last index.
fn counted(i: usize, ints: &[i64]) -> (bool, usize, usize) {
    let steps = ints[0] as usize;
    let is_first_half = i < steps / 2;
    (is_first_half, if is_first_half { i } else { steps - 1 - i }, steps - 1)
}

macro_rules! spaced {
    ($($T:ty as $Math:ty: $ends:expr;)*) => {$(
        impl Spaced for $T {
            fn spaced(i: usize, ints: &[i64], floats: &[f64]) -> $T {
                let ends: fn(&[i64], &[f64]) -> [$Math; 2] = $ends;
                let ([start, end], (is_first_half, count, last)) = (ends(ints, floats), counted(i, ints));
                let step = (end - start) / last as $Math;
                match is_first_half {
                    true => step.mul_add(count as $Math, start) as $T,
                    false => (-step).mul_add(count as $Math, end) as $T,
                }
            }
        }
    )*};
}
spaced! {
    f32 as f32: |_, floats| [floats[0] as f32, floats[1] as f32];
    f64 as f64: |_, floats| [floats[0], floats[1]];
    i64 as f64: |ints, _| [ints[1] as f64, ints[2] as f64];
    i32 as f64: |ints, _| [ints[1] as f64, ints[2] as f64];
    u8 as f64: |ints, _| [ints[1] as f64, ints[2] as f64];
}

macro_rules! spaced_halves {
    ($($T:ty),*) => {$(
        impl Spaced for $T {
            fn spaced(i: usize, ints: &[i64], floats: &[f64]) -> $T {
                let round = |x: f32| <$T>::from_f32(x).to_f32();
                let [start, end] = [round(floats[0] as f32), round(floats[1] as f32)];
                let (is_first_half, count, last) = counted(i, ints);
                let step = round(round(end - start) / round(last as f32));
                let distance = round(step * round(count as f32));
                <$T>::from_f32(if is_first_half { start + distance } else { end - distance })
            }
        }
    )*};
}
spaced_halves!(f16, bf16);

pub(super) fn eye(out: &Tensor) -> Result<()> {
    launch(EYE.of(out.dtype())?, [], [out], &[out.sizes()[0] as i64], &[])
}
