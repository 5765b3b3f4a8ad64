//! The kernels that make values from nothing but their positions.

use std::convert::identity;

use half::{bf16, f16};

use crate::cpu::blocks::for_blocks;
use crate::cpu::half::InHalves;
use crate::dtype::{DType, Element, with_dtype, with_math};
use crate::error::Result;
use crate::kernel::{Cost, Geometry, KernelDef, NUMBERS, Parameter};
use crate::ops::elementwise::Convert;
use crate::ops::launch::launch;
use crate::ops::plain::fill_kernel;
use crate::tensor::Tensor;

/// A kernel whose element `i` is `value(i, ints, floats)`.
macro_rules! from_position {
    ($name:literal<$T:ident>, [$($Number:ident),+], $value:expr) => {{
        const KERNEL: &KernelDef = &KernelDef {
            name: $name,
            types: &[$T::DTYPE],
            parameters: &[Parameter::Out($T::DTYPE), $(Parameter::$Number),+],
            geometry: Geometry::Elements,
            cost: Cost::Cheap,
            twin: |args| {
                let (ints, floats) = (args.ints, args.floats);
                let value: fn(usize, &[i64], &[f64]) -> $T = $value;
                for_blocks(&mut args.outputs[0], Cost::Cheap, &|start, out: &mut [$T]| {
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = value(start + i, ints, floats);
                    }
                });
                Ok(())
            },
        };
        KERNEL
    }};
}

/// `start + i · step`, counted in whole numbers for tensors of them: an f64 does not tell 2⁵³ from 2⁵³ + 1.
pub(super) fn arange(out: &Tensor, whole: [i64; 2], floats: [f64; 2]) -> Result<()> {
    let pair = 2 * VECTOR / out.dtype().size();
    let in_vectors = out.numel() / pair * pair;
    launch(arange_kernel(out.dtype())?, [], [out], &[whole[0], whole[1], in_vectors as i64], &floats)
}

fn arange_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_dtype!(dtype,
    T => from_position!("arange"<T>, [Int, Int, Int, Float, Float], |i, ints, floats| T::in_range(i, ints, floats))))
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
    launch(linspace_kernel(out.dtype())?, [], [out], &[out.numel() as i64], &[start, end])
}

fn linspace_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_math!(dtype,
    T => from_position!("linspace"<T>, [Int, Float, Float], |i, ints, floats| {
        let (steps, start, end) = (ints[0] as usize, floats[0], floats[1]);
        let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
        match i < steps.div_ceil(2) {
            true => (start + step * i as f64).convert(),
            false => (end - step * (steps - 1 - i) as f64).convert(),
        }
    }))
    .storing(dtype))
}

/// 1 on the diagonal of a square matrix, 0 elsewhere.
pub(super) fn eye(out: &Tensor) -> Result<()> {
    launch(eye_kernel(out.dtype())?, [], [out], &[out.sizes()[0] as i64], &[])
}

fn eye_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_math!(dtype, T => from_position!("eye"<T>, [Int], |i, ints, _| {
        let n = ints[0] as usize;
        (i / n == i % n) as u8 as T
    }))
    .storing(dtype))
}

/// Every kernel of this folder.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    let each = [fill_kernel, arange_kernel, linspace_kernel, eye_kernel];
    each.into_iter().flat_map(|kernel| NUMBERS.into_iter().flat_map(kernel)).collect()
}
