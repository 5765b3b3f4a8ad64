use crate::autograd::{Context, Function, Saved};
use crate::cpu::blocks::map1;
use crate::cpu::half::{by_way_of_f32, from_f32, to_f32};
use crate::cpu::simd::vectorized;
use crate::dtype::{DType, Element, Memory};
use crate::error::Result;
use crate::kernel::{Args, Cost, Geometry, KernelDef, KernelParameter, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::COPY;
use crate::ops::row::types::{bf16, f16};
use crate::ops::row::{Row, row, rows};
use crate::ops::{self, Operation, operations};
use crate::shape::MemoryFormat;
use crate::tensor::Tensor;

/// Converts a number to another type, as PyTorch does on the CPU.
///
/// Integers wrap around, and floats lose their fraction. C++ leaves out-of-range floats undefined. As in PyTorch on
/// x86, NaN and out-of-range values become the lowest integer. A float becomes a u8 through an i64, so it wraps around.
pub(crate) trait Convert<To> {
    fn convert(self) -> To;
}

macro_rules! impl_convert_by_cast {
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
impl_convert_by_cast! {
    u8 => [u8, i32, i64, f32, f64];
    i32 => [u8, i32, i64, f32, f64];
    i64 => [u8, i32, i64, f32, f64];
    f32 => [f32, f64];
    f64 => [f32, f64];
}

macro_rules! impl_convert_to_integer {
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
impl_convert_to_integer! {
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

rows! {
    static TRUTH: Row = row! {
        name: "truth", types: numbers, cost: Cheap,
        element: |x: T| -> u8 { (x != (0 as T)) as u8 },
    };
    // Conversions from and to half types go through f32. As in PyTorch, an f64 is therefore rounded twice.
    static CAST: Row = Row {
        name: "cast",
        refused_as: "cast",
        kernels: &[
            &F32_TO_F64,
            &F32_TO_I64,
            &F32_TO_I32,
            &F32_TO_U8,
            &F64_TO_F32,
            &direct::<f64, i64>(),
            &direct::<f64, i32>(),
            &direct::<f64, u8>(),
            &I64_TO_F32,
            &direct::<i64, f64>(),
            &direct::<i64, i32>(),
            &direct::<i64, u8>(),
            &I32_TO_F32,
            &direct::<i32, f64>(),
            &direct::<i32, i64>(),
            &direct::<i32, u8>(),
            &U8_TO_F32,
            &direct::<u8, f64>(),
            &direct::<u8, i64>(),
            &direct::<u8, i32>(),
            &direct::<u8, u8>(),
            &kernel::<f16, f32>(to_f32::<f16>, None),
            &kernel::<f32, f16>(from_f32::<f16>, None),
            &kernel::<bf16, f32>(to_f32::<bf16>, None),
            &kernel::<f32, bf16>(from_f32::<bf16>, None),
            &via_f32::<f16, bf16>(COPY.kernels[0]),
            &via_f32::<f16, f64>(&F32_TO_F64),
            &via_f32::<f16, i64>(&F32_TO_I64),
            &via_f32::<f16, i32>(&F32_TO_I32),
            &via_f32::<f16, u8>(&F32_TO_U8),
            &via_f32::<f64, f16>(&F64_TO_F32),
            &via_f32::<i64, f16>(&I64_TO_F32),
            &via_f32::<i32, f16>(&I32_TO_F32),
            &via_f32::<u8, f16>(&U8_TO_F32),
            &via_f32::<bf16, f16>(COPY.kernels[0]),
            &via_f32::<bf16, f64>(&F32_TO_F64),
            &via_f32::<bf16, i64>(&F32_TO_I64),
            &via_f32::<bf16, i32>(&F32_TO_I32),
            &via_f32::<bf16, u8>(&F32_TO_U8),
            &via_f32::<f64, bf16>(&F64_TO_F32),
            &via_f32::<i64, bf16>(&I64_TO_F32),
            &via_f32::<i32, bf16>(&I32_TO_F32),
            &via_f32::<u8, bf16>(&U8_TO_F32),
        ],
    };
}

static F32_TO_F64: KernelDef = direct::<f32, f64>();
static F32_TO_I64: KernelDef = direct::<f32, i64>();
static F32_TO_I32: KernelDef = direct::<f32, i32>();
static F32_TO_U8: KernelDef = direct::<f32, u8>();
static F64_TO_F32: KernelDef = direct::<f64, f32>();
static I64_TO_F32: KernelDef = direct::<i64, f32>();
static I32_TO_F32: KernelDef = direct::<i32, f32>();
static U8_TO_F32: KernelDef = direct::<u8, f32>();

/// Returns a conversion between types that the host computes in.
const fn direct<From: Memory + Convert<To>, To: Memory>() -> KernelDef {
    kernel::<From, To>(direct_twin::<(From, To)>, None)
}

/// Returns a conversion from or to a half type, through the conversion `of_f32`.
const fn via_f32<From: Element, To: Element>(of_f32: &'static KernelDef) -> KernelDef {
    kernel::<From, To>(by_way_of_f32, Some(of_f32))
}

const fn kernel<From: Element, To: Element>(
    twin: fn(Args<'_, '_>) -> TwinResult,
    of_f32: Option<&'static KernelDef>,
) -> KernelDef {
    KernelDef {
        name: "cast",
        module: module_path!(),
        types: const { &[From::DTYPE, To::DTYPE] },
        parameters: const { &[KernelParameter::In(From::DTYPE), KernelParameter::Out(To::DTYPE)] },
        geometry: Geometry::Elements,
        cost: Cost::Cheap,
        twin,
        of_f32,
    }
}

/// A pair of types with a conversion from the first to the second.
trait Conversion {
    type From: Memory + Convert<Self::To>;
    type To: Memory;
}

impl<From: Memory + Convert<To>, To: Memory> Conversion for (From, To) {
    type From = From;
    type To = To;
}

fn direct_twin<P: Conversion>(args: Args<'_, '_>) -> TwinResult {
    #[inline(always)]
    fn convert_all<P: Conversion>(x: &[P::From], out: &mut [P::To]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = x.convert();
        }
    }
    map1(args, Cost::Cheap, vectorized!([P: Conversion] convert_all::<P>, (x: &[P::From], out: &mut [P::To])))
}

pub(crate) fn cast(from: DType, to: DType) -> Result<&'static KernelDef> {
    if to == DType::Bool { TRUTH.of(from) } else { CAST.of_types(&[from, to]) }
}

operations! {
    static TO_DTYPE: Operation = Operation::new("_to_copy").node("ToCopyBackward0");
}

impl Tensor {
    /// [`to`](Self::to) with another dtype.
    #[track_caller]
    pub(in crate::ops) fn to_dtype(&self, dtype: DType, format: MemoryFormat) -> Result<Tensor> {
        ops::apply(ToDtype { dtype, format }, [self])
    }
}

/// The operation of `to` with another dtype.
struct ToDtype {
    dtype: DType,
    format: MemoryFormat,
}

impl Function<1> for ToDtype {
    fn operation(&self) -> &'static Operation {
        &TO_DTYPE
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let out = x.uninit_with(x.layout().in_format(self.format)?, self.dtype)?;
        launch(cast(x.dtype(), self.dtype)?, [x], [&out], &[], &[])?;
        Ok(out)
    }

    /// The engine converts every gradient to the dtype of its input.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}
