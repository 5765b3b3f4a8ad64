//! The kernels that make values from nothing but their positions.

use super::copy::fill_kernel;
use crate::dtype::{DType, Element, with_math};
use crate::error::Result;
use crate::ops::elementwise::Convert;
use crate::ops::elementwise::blocks::for_blocks;
use crate::ops::kernel::{Cost, Geometry, KernelDef, NUMBERS, Parameter, launch};
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
pub(super) fn arange(out: &Tensor, ints: [i64; 2], floats: [f64; 2]) -> Result<()> {
    launch(arange_kernel(out.dtype())?, [], [out], &ints, &floats)
}

fn arange_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_math!(dtype,
    T => from_position!("arange"<T>, [Int, Int, Float, Float], |i, ints, floats| {
        match T::DTYPE.is_floating_point() {
            true => (floats[0] + i as f64 * floats[1]) as T,
            false => ints[0].wrapping_add((i as i64).wrapping_mul(ints[1])) as T,
        }
    }))
    .storing(dtype))
}

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
