use crate::cpu::blocks::map1;
use crate::cpu::half::{by_way_of_f32, from_f32, to_f32};
use crate::cpu::simd::kernel;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Cost, KernelDef};
use crate::ops::plain::COPY;
use crate::ops::row::types::{bf16, f16};
use crate::ops::row::{Row, row, rows};

/// Converts a number to another type, as PyTorch does on the CPU.
///
/// Integers wrap around, and floats lose their fraction. C++ leaves out-of-range floats undefined. As in PyTorch on
/// x86, NaN and out-of-range values become the lowest integer. A float becomes a u8 through an i64, so it wraps around.
pub(crate) trait Convert<To> {
    fn convert(self) -> To;
}

macro_rules! convert {
    ($($From:ty => [$($To:ty),+];)+) => {$($(
        impl Convert<$To> for $From {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)] // For conversions to the same type.
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
                // A power of two is exact in every floating-point type.
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
        // An f32 outside the range of i32 is a multiple of 256, like the lowest i32 that it becomes.
        Convert::<i32>::convert(self) as u8
    }
}

impl Convert<u8> for f64 {
    #[inline(always)]
    fn convert(self) -> u8 {
        Convert::<i64>::convert(self) as u8
    }
}

/// Declares conversions as `NAME: from to`, and those of half types with the f32 conversion that they use. Half types
/// convert through f32, as in PyTorch, so an f64 is rounded twice.
macro_rules! casts {
    ($($NAME:ident: $From:ident $To:ident),+ $(,)?; $($Half:ident),+; $($Read:ident $Written:ident: $of_f32:expr),+ $(,)?) => {
        $(static $NAME: KernelDef = row!(@kernel "cast", &[<$From>::DTYPE, <$To>::DTYPE], [In($From), Out($To)], Elements,
            Cheap, |args| {
                let convert = kernel!(Cheap, |x: $From| -> $To { Convert::<$To>::convert(x) });
                map1(args, Cost::Cheap, convert)
            }, None);)+

        rows! {
            TRUTH: row!("truth", numbers, Cheap, |x: T| -> u8 { (x != (0 as T)) as u8 });
            CAST: Row {
                name: "cast",
                refused_as: "cast",
                kernels: &[$(&$NAME,)+ $({
                    static TO_F32: KernelDef = row!(@kernel "cast", &[<$Half>::DTYPE, DType::F32],
                        [In($Half), Out(f32)], Elements, Cheap, to_f32::<$Half>, None);
                    &TO_F32
                }, {
                    static FROM_F32: KernelDef = row!(@kernel "cast", &[DType::F32, <$Half>::DTYPE],
                        [In(f32), Out($Half)], Elements, Cheap, from_f32::<$Half>, None);
                    &FROM_F32
                },)+ $({
                    static OF_HALVES: KernelDef = row!(@kernel "cast", &[<$Read>::DTYPE, <$Written>::DTYPE],
                        [In($Read), Out($Written)], Elements, Cheap, by_way_of_f32, Some($of_f32));
                    &OF_HALVES
                }),+],
            };
        }
    };
}
casts! {
    F32_TO_F64: f32 f64, F32_TO_I64: f32 i64, F32_TO_I32: f32 i32, F32_TO_U8: f32 u8, F64_TO_F32: f64 f32,
    F64_TO_I64: f64 i64, F64_TO_I32: f64 i32, F64_TO_U8: f64 u8, I64_TO_F32: i64 f32, I64_TO_F64: i64 f64,
    I64_TO_I32: i64 i32, I64_TO_U8: i64 u8, I32_TO_F32: i32 f32, I32_TO_F64: i32 f64, I32_TO_I64: i32 i64,
    I32_TO_U8: i32 u8, U8_TO_F32: u8 f32, U8_TO_F64: u8 f64, U8_TO_I64: u8 i64, U8_TO_I32: u8 i32,
    U8_TO_U8: u8 u8;
    f16, bf16;
    f16 bf16: COPY.kernels[0], f16 f64: &F32_TO_F64, f16 i64: &F32_TO_I64, f16 i32: &F32_TO_I32,
    f16 u8: &F32_TO_U8, f64 f16: &F64_TO_F32, i64 f16: &I64_TO_F32, i32 f16: &I32_TO_F32, u8 f16: &U8_TO_F32,
    bf16 f16: COPY.kernels[0], bf16 f64: &F32_TO_F64, bf16 i64: &F32_TO_I64, bf16 i32: &F32_TO_I32,
    bf16 u8: &F32_TO_U8, f64 bf16: &F64_TO_F32, i64 bf16: &I64_TO_F32, i32 bf16: &I32_TO_F32,
    u8 bf16: &U8_TO_F32,
}

pub(crate) fn cast(from: DType, to: DType) -> Result<&'static KernelDef> {
    if to == DType::Bool { TRUTH.of(from) } else { CAST.of_types(&[from, to]) }
}
