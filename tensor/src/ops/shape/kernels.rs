//! The kernels that make values from nothing but their positions.

use std::convert::identity;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::cpu::blocks::for_blocks;
use crate::error::Result;
use crate::kernel::{Args, Cost, Ran};
use crate::ops::elementwise::Convert;
use crate::ops::launch::launch;
use crate::ops::row::{row, rows};
use crate::tensor::Tensor;

/// The twin of a kernel whose element `i` is `value(i, ints, floats)`.
fn from_position<T: Pod + Send>(args: Args<'_, '_>, value: fn(usize, &[i64], &[f64]) -> T) -> Ran {
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
    LINSPACE: row!("linspace", numbers, [Out(T), Int, Float, Float], Elements, Cheap, |args| {
        from_position(args, |i, ints, floats| -> T {
            let (steps, start, end) = (ints[0] as usize, floats[0], floats[1]);
            let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
            match i < steps.div_ceil(2) {
                true => (start + step * i as f64).convert(),
                false => (end - step * (steps - 1 - i) as f64).convert(),
            }
        })
    });
    EYE: row!("eye", numbers, [Out(T), Int], Elements, Cheap, |args| {
        from_position(args, |i, ints, _| -> T {
            let n = ints[0] as usize;
            (i / n == i % n) as u8 as T
        })
    });
}

/// `start + i · step`, counted in whole numbers for tensors of them: an f64 does not tell 2⁵³ from 2⁵³ + 1.
pub(super) fn arange(out: &Tensor, whole: [i64; 2], floats: [f64; 2]) -> Result<()> {
    let pair = 2 * VECTOR / out.dtype().size();
    let in_vectors = out.numel() / pair * pair;
    launch(ARANGE.of(out.dtype())?, [], [out], &[whole[0], whole[1], in_vectors as i64], &floats)
}

/// Bytes of the vectors in which PyTorch makes a range of floats, two at a time.
const VECTOR: usize = 32;

/// An element of a range.
trait InRange: Sized {
    fn in_range(i: usize, ints: &[i64], floats: &[f64]) -> Self;
}

macro_rules! in_range {
    ($($T:ty as $Math:ty: $round:expr, $widen:expr;)*) => {$(
        impl InRange for $T {
            /// A vector counts from its first element, which is rounded; what fills no two vectors counts from the
            /// start. That decides the last bits.
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

/// Evenly spaced, counted from both ends, so that the last value is `end` itself.
pub(super) fn linspace(out: &Tensor, start: f64, end: f64) -> Result<()> {
    launch(LINSPACE.of(out.dtype())?, [], [out], &[out.numel() as i64], &[start, end])
}

/// 1 on the diagonal of a square matrix, 0 elsewhere.
pub(super) fn eye(out: &Tensor) -> Result<()> {
    launch(EYE.of(out.dtype())?, [], [out], &[out.sizes()[0] as i64], &[])
}
