//! Declares each kernel once, as a row: its name, dtypes, parameters, thread layout, cost, and host twin.
//!
//! ```text
//! rows! {
//!     ADD: row!("add", numbers, Cheap, |a: T, b: T| -> T { a.plus(b) });
//!     GATHER: row!("gather", each, [In(T), In(i64), Out(T), Int], Indexed, Cheap, gather_twin::<T>);
//! }
//! ```
//!
//! The first is elementwise: its parameters are those of its function, broadcast to its output. `T` is each of the
//! row's dtypes in turn, and `C` the dtype of the computation: f32 for half types.
//!
//! | types | `T` |
//! | --- | --- |
//! | `numbers` | f32, f64, i64, i32, u8, and both half types via f32 |
//! | `floats` | f32, f64, and both half types via f32 |
//! | `halves` | both half types via f32, where f32 has no such kernel |
//! | `sums` | f32, f64, i64, and both half types via f32 |
//! | `integers` | i64, i32, u8 |
//! | `each` | every dtype separately: nothing is computed, or the twin handles half types |
//! | `each_float` | every floating-point dtype separately |
//! | `[f32 bf16]` | the listed dtypes, separately |
//! | `none` | one kernel, with no dtype in its name |
//!
//! The CUDA C++ kernel is in the file of `kernels/` named after the row's module: the rows of `ops/elementwise/pow.rs`
//! are in `kernels/elementwise/pow.cu`, those of `ops/pool/kernels.rs` in `kernels/pool.cu`.
//!
//! "Via f32" means that half types use the f32 kernel between two conversions (`cpu/half.rs`), not another twin.

use crate::dtype::DType;
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::kernel::KernelDef;

/// A kernel in all its dtypes.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// PyTorch's name for the kernel in errors about dtypes.
    pub(crate) refused_as: &'static str,
    pub(crate) kernels: &'static [&'static KernelDef],
}

impl Row {
    /// Returns the kernel for a dtype. A bool is stored as a u8.
    pub(crate) fn of(&self, dtype: DType) -> Result<&'static KernelDef> {
        self.of_types(&[dtype])
    }

    pub(crate) fn of_types(&self, types: &[DType]) -> Result<&'static KernelDef> {
        let stored = |dtype: &DType| if *dtype == DType::Bool { DType::U8 } else { *dtype };
        let is_it = |kernel: &&&KernelDef| kernel.types.iter().copied().eq(types.iter().map(stored));
        self.kernels.iter().find(is_it).copied().ok_or_else(|| not_implemented(self.refused_as, types[0]))
    }

    pub(crate) fn only(&self) -> &'static KernelDef {
        self.kernels[0]
    }

    pub(crate) const fn without_f32(self) -> Row {
        match self.kernels {
            [_, halves @ ..] => Row { kernels: halves, ..self },
            [] => self,
        }
    }

    pub(crate) const fn refused_as(self, refused_as: &'static str) -> Row {
        Row { refused_as, ..self }
    }
}

/// Declares rows, and `ROWS`, the list of them.
macro_rules! rows {
    ($($(#[$meta:meta])* $vis:vis $NAME:ident: $row:expr;)+) => {
        $($(#[$meta])* $vis static $NAME: $crate::ops::row::Row = $row;)+

        pub(in crate::ops) const ROWS: &[&$crate::ops::row::Row] = &[$(&$NAME),+];
    };
}

/// Declares a struct of integers, a single kernel parameter: `Block(Name)` in its row. CUDA C++ has the same struct.
macro_rules! block {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident { $($(#[$of_field:meta])* $of:vis $field:ident: i64,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        $vis struct $Name { $($(#[$of_field])* $of $field: i64,)+ }

        impl $Name {
            $vis const PARAMETER: $crate::kernel::Parameter =
                $crate::kernel::Parameter::Block(stringify!($Name), &[$(stringify!($field)),+]);
        }
    };
}

macro_rules! row {
    ($name:literal, $types:tt, $cost:ident, |$($x:ident: $X:ty),+| -> $O:ty { $body:expr }) => {
        $crate::ops::row::row!($name, $types, [$(In($X),)+ Out($O)], Elements, $cost, |args| {
            let kernel = $crate::cpu::simd::kernel!($cost, |$($x: $X),+| -> $O { $body });
            $crate::ops::row::row!(@map $($x)+)(args, $crate::kernel::Cost::$cost, kernel)
        })
    };
    ($name:literal, numbers, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32 f64 i64 i32 u8] [f16 bf16] $name, $($row)*)
    };
    ($name:literal, floats, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32 f64] [f16 bf16] $name, $($row)*)
    };
    ($name:literal, sums, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32 f64 i64] [f16 bf16] $name, $($row)*)
    };
    ($name:literal, halves, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32] [f16 bf16] $name, $($row)*).without_f32()
    };
    ($name:literal, integers, $($row:tt)*) => {
        $crate::ops::row::row!(@types [i64 i32 u8] [] $name, $($row)*)
    };
    ($name:literal, each, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32 f64 f16 bf16 i64 i32 u8] [] $name, $($row)*)
    };
    ($name:literal, each_float, $($row:tt)*) => {
        $crate::ops::row::row!(@types [f32 f64 f16 bf16] [] $name, $($row)*)
    };
    ($name:literal, [$($T:ident)+], $($row:tt)*) => {
        $crate::ops::row::row!(@types [$($T)+] [] $name, $($row)*)
    };
    ($name:literal, none, $parameters:tt, $geometry:ident, $cost:ident, $twin:expr) => {{
        static KERNEL: $crate::kernel::KernelDef =
            $crate::ops::row::row!(@kernel $name, &[], $parameters, $geometry, $cost, $twin, None);
        $crate::ops::row::Row { name: $name, refused_as: $name, kernels: &[&KERNEL] }
    }};
    (@types [$($T:ident)+] [$($Half:ident)*]
        $name:literal, $parameters:tt, $geometry:ident, $cost:ident, $twin:expr) => {{
        use $crate::dtype::Element;
        $(
            #[allow(non_upper_case_globals)]
            static $T: $crate::kernel::KernelDef = {
                #[allow(dead_code)]
                type T = $crate::ops::row::types::$T;
                #[allow(dead_code)]
                type C = <T as $crate::dtype::Memory>::Math;
                const TYPES: &[$crate::DType] = &[T::DTYPE];
                $crate::ops::row::row!(@kernel $name, TYPES, $parameters, $geometry, $cost, $twin, None)
            };
        )+
        $(
            #[allow(non_upper_case_globals)]
            static $Half: $crate::kernel::KernelDef = {
                #[allow(dead_code)]
                type T = $crate::ops::row::types::$Half;
                #[allow(dead_code)]
                type C = f32;
                const TYPES: &[$crate::DType] = &[T::DTYPE];
                $crate::ops::row::row!(@kernel $name, TYPES, $parameters, $geometry, $cost,
                    $crate::cpu::half::by_way_of_f32, Some(&f32))
            };
        )*
        $crate::ops::row::Row { name: $name, refused_as: $name, kernels: &[$(&$T,)+ $(&$Half),*] }
    }};
    (@kernel $name:literal, $types:expr, [$($kind:ident $(($X:ty))?),+ $(,)?], $geometry:ident, $cost:ident,
        $twin:expr, $of_f32:expr) => {
        $crate::kernel::KernelDef {
            name: $name,
            module: module_path!(),
            types: $types,
            parameters: &[$($crate::ops::row::row!(@parameter $kind $(($X))?)),+],
            geometry: $crate::kernel::Geometry::$geometry,
            cost: $crate::kernel::Cost::$cost,
            twin: $twin,
            of_f32: $of_f32,
        }
    };
    (@parameter Block($X:ty)) => { <$X>::PARAMETER };
    (@parameter $kind:ident $(($X:ty))?) => {
        $crate::kernel::Parameter::$kind $((<$X as $crate::dtype::Element>::DTYPE))?
    };
    (@map $a:ident) => { $crate::cpu::blocks::map1 };
    (@map $a:ident $b:ident) => { $crate::cpu::blocks::map2 };
    (@map $a:ident $b:ident $c:ident) => { $crate::cpu::blocks::map3 };
    (@map $a:ident $b:ident $c:ident $d:ident) => { $crate::cpu::blocks::map4 };
}

#[allow(non_camel_case_types)]
pub(crate) mod types {
    pub(crate) use half::{bf16, f16};
    macro_rules! primitive {
        ($($T:ident)+) => { $(pub(crate) type $T = core::primitive::$T;)+ };
    }
    primitive!(f32 f64 i64 i32 u8);
}

pub(crate) use {block, row, rows};
