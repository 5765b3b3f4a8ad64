//! Changing the type of numbers.

use crate::cpu::blocks::elementwise;
use crate::cpu::half::InHalves;
use crate::dtype::{DType, with_math};
use crate::error::Result;
use crate::kernel::KernelDef;
use crate::ops::plain::copy_kernel;

/// A number in another type, as PyTorch has it on the CPU.
///
/// Whole numbers wrap around; the fraction of a float is cut off. C++ says nothing about a float that its integer cannot
/// hold. PyTorch then gives what x86 does, and so it is here on every computer: a NaN and whatever is too large or too
/// small become the lowest number there is. A float becomes a u8 by way of an i64, so it wraps around as well.
pub(crate) trait Convert<To> {
    fn convert(self) -> To;
}

macro_rules! convert {
    ($($From:ty => [$($To:ty),+];)+) => {$($(
        impl Convert<$To> for $From {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)] // From a type to itself.
            fn convert(self) -> $To {
                self as $To
            }
        }
    )+)+};
}
convert! {
    u8 => [u8, i32, i64, f32, f64];
    i32 => [u8, i32, i64, f32, f64];
    i64 => [u8, i32, i64, f32, f64];
    f32 => [f32, f64];
    f64 => [f32, f64];
}

macro_rules! convert_to_whole {
    ($($From:ty => [$($To:ty),+];)+) => {$($(
        impl Convert<$To> for $From {
            #[inline(always)]
            fn convert(self) -> $To {
                // A power of two, so every float type has it.
                const END: $From = -(<$To>::MIN as $From);
                if (-END..END).contains(&self) { self as $To } else { <$To>::MIN }
            }
        }
    )+)+};
}
convert_to_whole! {
    f32 => [i32, i64];
    f64 => [i32, i64];
}

impl Convert<u8> for f32 {
    #[inline(always)]
    fn convert(self) -> u8 {
        // All that an i32 cannot hold are multiples of 256, as is the lowest i32.
        Convert::<i32>::convert(self) as u8
    }
}

impl Convert<u8> for f64 {
    #[inline(always)]
    fn convert(self) -> u8 {
        Convert::<i64>::convert(self) as u8
    }
}

/// The kernel that converts elements.
pub(crate) fn cast(from: DType, to: DType) -> Result<&'static KernelDef> {
    if from.is_half() || to.is_half() {
        return cast_of_halves(from, to);
    }
    Ok(with_math!(from, From => match to {
        DType::Bool => elementwise!("truth"<From>, Cheap, |x: From| -> u8 { (x != (0 as From)) as u8 }),
        to => with_math!(to, To => elementwise!("cast"<From, To>, Cheap, |x: From| -> To { Convert::<To>::convert(x) })),
    }))
}

/// Halves are f32s when they are converted to another type, and so is what becomes halves: as in PyTorch, an f64 is
/// rounded twice.
fn cast_of_halves(from: DType, to: DType) -> Result<&'static KernelDef> {
    let from = if from == DType::Bool { DType::U8 } else { from };
    let f32_for = |dtype: DType| if dtype.is_half() { DType::F32 } else { dtype };
    let kernel = match (f32_for(from), f32_for(to)) {
        (_, DType::Bool) => return Ok(cast(DType::F32, DType::Bool)?.storing(from)),
        (from, to) if from == to => copy_kernel(from)?,
        (from, to) => cast(from, to)?,
    };
    Ok(kernel.between("cast", &[from, to], from, to))
}
