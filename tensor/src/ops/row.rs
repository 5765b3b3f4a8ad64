//! Declares each kernel once, as a row: its name, dtypes, parameters, thread layout, cost, and host twin.
//!
//! ```text
//! rows! {
//!     static ADD: Row = row! {
//!         name: "add", types: numbers, cost: Cheap,
//!         element: |a: T, b: T| -> T { a.plus(b) },
//!     };
//!     static GATHER: Row = row! {
//!         name: "gather", types: each, geometry: Indexed, cost: Cheap,
//!         parameters: [In(T), In(i64), Out(T), Int],
//!         twin: gather_twin::<T>,
//!     };
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
//! | `mixed` | every floating-point dtype for both `X` and `W`, or a half type for `X` with f32 for `W` |
//! | `none` | one kernel, with no dtype in its name |
//!
//! The CUDA C++ kernel is in the file of `kernels/` named after the row's module: the rows of `ops/elementwise/pow.rs`
//! are in `kernels/elementwise/pow.cu`, those of `ops/pool/kernels.rs` in `kernels/pool.cu`.
//!
//! "Via f32" means that half types use the f32 kernel between two conversions (`cpu/half.rs`), not another twin.

use crate::dtype::{DType, Element};
use crate::error::{Result, not_implemented};
use crate::kernel::KernelDef;
use crate::operation::Operation;

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
}

/// An operation of a single kernel, such as a comparison or a gradient.
pub(crate) struct FusedOp {
    pub(crate) operation: Operation,
    pub(crate) kernel: Row,
    /// For a gradient: whether the strides of the result follow the input rather than the gradient it gets. PyTorch's
    /// differ.
    pub(crate) input_first: bool,
}

impl FusedOp {
    pub(crate) const fn new(kernel: Row) -> FusedOp {
        FusedOp { operation: Operation::new(kernel.name), kernel, input_first: false }
    }
}

/// Declares statics, and lists them as the module's `ROWS` for the registry.
///
/// `rows! { static ADD: Row = …; }` is `static ADD: Row = …;` and `pub(in crate::ops) const ROWS: &[&Row] = &[&ADD];`.
macro_rules! rows {
    ($($(#[$meta:meta])* $vis:vis static $NAME:ident: $Row:ty = $row:expr;)+) => {
        $($(#[$meta])* $vis static $NAME: $Row = $row;)+

        pub(in crate::ops) const ROWS: &[&$crate::ops::row::Row] = &[$(&$NAME),+];
    };
}

/// Declares operations with a kernel as statics, and lists them in `ROWS` and `OPERATIONS` for the registry.
macro_rules! table {
    ($($vis:vis static $NAME:ident: $Op:ident = $op:expr;)+) => {
        $($vis static $NAME: $Op = $op;)+

        pub(in crate::ops) const ROWS: &[&$crate::ops::row::Row] = &[$(&$NAME.kernel),+];
        pub(in crate::ops) const OPERATIONS: &[&$crate::ops::Operation] = &[$(&$NAME.operation),+];
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
            $vis const PARAMETER: $crate::kernel::KernelParameter =
                $crate::kernel::KernelParameter::Block(stringify!($Name), &[$(stringify!($field)),+]);
        }
    };
}

/// Makes a [`Row`]: a [`KernelDef`] for each of its dtypes. The fields must be in this order.
///
/// ```text
/// row! {
///     name: "gather", types: [f32 i64], geometry: Indexed, cost: Cheap,
///     parameters: [In(T), In(i64), Out(T), Int],
///     twin: gather_twin::<T>,
/// }
/// ```
///
/// expands to
///
/// ```text
/// Row {
///     name: "gather",
///     refused_as: "gather",
///     kernels: {
///         static f32: KernelDef = {
///             type T = f32;
///             KernelDef {
///                 name: "gather",
///                 module: module_path!(),
///                 types: &[DType::F32],
///                 parameters: &[KernelParameter::In(DType::F32), KernelParameter::In(DType::I64), …],
///                 geometry: Geometry::Indexed,
///                 cost: Cost::Cheap,
///                 twin: gather_twin::<T>,
///                 of_f32: None,
///             }
///         };
///         static i64: KernelDef = …;
///         &[&f32, &i64]
///     },
/// }
/// ```
///
/// Rows with `element` or `elements` are elementwise: `parameters`, `geometry` and `twin` follow from the function.
/// With `elements`, the function maps an input slice to an output slice.
macro_rules! row {
    {
        name: $name:literal, $(refused_as: $refused_as:literal,)? types: $types:tt, cost: $cost:ident,
        element: |$($x:ident: $X:ty),+| -> $O:ty $element:block $(,)?
    } => {
        $crate::ops::row::row! {
            name: $name, $(refused_as: $refused_as,)? types: $types, geometry: Elements, cost: $cost,
            parameters: [$(In($X),)+ Out($O)],
            twin: |args| {
                let kernel = $crate::cpu::simd::kernel!($cost, |$($x: $X),+| -> $O { $element });
                $crate::ops::row::row!(@map $($x)+)(args, $crate::kernel::Cost::$cost, kernel)
            },
        }
    };
    { name: $name:literal, types: $types:tt, cost: $cost:ident, elements: $function:path $(,)? } => {
        $crate::ops::row::row! {
            name: $name, types: $types, geometry: Elements, cost: $cost,
            parameters: [In(T), Out(T)],
            twin: |args| $crate::cpu::blocks::map1::<T, T>(args, $crate::kernel::Cost::$cost, $function),
        }
    };
    {
        name: $name:literal, $(refused_as: $refused_as:literal,)? types: $types:tt, geometry: $geometry:ident,
        cost: $cost:ident, parameters: $parameters:tt, twin: $twin:expr $(,)?
    } => {
        $crate::ops::row::Row {
            name: $name,
            refused_as: $crate::ops::row::row!(@last $name $($refused_as)?),
            kernels: $crate::ops::row::row!(@types $types [$name, $geometry, $cost, $parameters, $twin]),
        }
    };

    // The dtypes of a name: first those with a separate twin, then those that use the f32 twin.
    (@types numbers $kernel:tt) => { $crate::ops::row::row!(@kernels [f32 f64 i64 i32 u8] [f16 bf16] $kernel) };
    (@types floats $kernel:tt) => { $crate::ops::row::row!(@kernels [f32 f64] [f16 bf16] $kernel) };
    (@types halves $kernel:tt) => {
        $crate::ops::row::without_f32($crate::ops::row::row!(@kernels [f32] [f16 bf16] $kernel))
    };
    (@types sums $kernel:tt) => { $crate::ops::row::row!(@kernels [f32 f64 i64] [f16 bf16] $kernel) };
    (@types integers $kernel:tt) => { $crate::ops::row::row!(@kernels [i64 i32 u8] [] $kernel) };
    (@types each $kernel:tt) => { $crate::ops::row::row!(@kernels [f32 f64 f16 bf16 i64 i32 u8] [] $kernel) };
    (@types each_float $kernel:tt) => { $crate::ops::row::row!(@kernels [f32 f64 f16 bf16] [] $kernel) };
    (@types [$($T:ident)+] $kernel:tt) => { $crate::ops::row::row!(@kernels [$($T)+] [] $kernel) };
    (@types mixed $kernel:tt) => {
        $crate::ops::row::row!(@mixed $kernel
            F32 [f32 f32] F64 [f64 f64] F16 [f16 f16] BF16 [bf16 bf16] F16_F32 [f16 f32] BF16_F32 [bf16 f32])
    };
    (@types none $kernel:tt) => {{
        static KERNEL: $crate::kernel::KernelDef = $crate::ops::row::row!(@kernel &[], $kernel);
        &[&KERNEL]
    }};

    (@kernels [$($T:ident)+] [$($Half:ident)*] $kernel:tt) => {{
        use $crate::dtype::Element;
        $(
            #[allow(non_upper_case_globals)]
            static $T: $crate::kernel::KernelDef = {
                #[allow(dead_code)]
                type T = $crate::ops::row::types::$T;
                #[allow(dead_code)]
                type C = <T as $crate::dtype::Memory>::Math;
                const TYPES: &[$crate::DType] = &[T::DTYPE];
                $crate::ops::row::row!(@kernel TYPES, $kernel)
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
                $crate::ops::row::row!(@half TYPES, &f32, $kernel)
            };
        )*
        &[$(&$T,)+ $(&$Half),*]
    }};
    (@mixed $kernel:tt $($KERNEL:ident [$X:ident $W:ident])+) => {{
        $(
            static $KERNEL: $crate::kernel::KernelDef = {
                #[allow(dead_code)]
                type X = $crate::ops::row::types::$X;
                #[allow(dead_code)]
                type W = $crate::ops::row::types::$W;
                #[allow(dead_code)]
                type C = <X as $crate::dtype::Memory>::Math;
                const TYPES: &[$crate::DType] = $crate::ops::row::mixed_types::<X, W>();
                $crate::ops::row::row!(@kernel TYPES, $kernel)
            };
        )+
        &[$(&$KERNEL),+]
    }};

    (@kernel $types:expr, [$name:literal, $geometry:ident, $cost:ident, $parameters:tt, $twin:expr]) => {
        $crate::kernel::KernelDef {
            name: $name,
            module: module_path!(),
            types: $types,
            parameters: $crate::ops::row::row!(@parameters $parameters),
            geometry: $crate::kernel::Geometry::$geometry,
            cost: $crate::kernel::Cost::$cost,
            twin: $twin,
            of_f32: None,
        }
    };
    (@half $types:expr, $of_f32:expr, [$name:literal, $geometry:ident, $cost:ident, $parameters:tt, $twin:expr]) => {
        $crate::kernel::KernelDef {
            name: $name,
            module: module_path!(),
            types: $types,
            parameters: $crate::ops::row::row!(@parameters $parameters),
            geometry: $crate::kernel::Geometry::$geometry,
            cost: $crate::kernel::Cost::$cost,
            twin: $crate::cpu::half::by_way_of_f32,
            of_f32: Some($of_f32),
        }
    };
    (@parameters [$($kind:ident $(($X:ty))?),+ $(,)?]) => {
        &[$($crate::ops::row::row!(@parameter $kind $(($X))?)),+]
    };
    (@parameter Block($X:ty)) => { <$X>::PARAMETER };
    (@parameter $kind:ident $(($X:ty))?) => {
        $crate::kernel::KernelParameter::$kind $((<$X as $crate::dtype::Element>::DTYPE))?
    };

    (@last $name:literal) => { $name };
    (@last $name:literal $refused_as:literal) => { $refused_as };

    (@map $a:ident) => { $crate::cpu::blocks::map1 };
    (@map $a:ident $b:ident) => { $crate::cpu::blocks::map2 };
    (@map $a:ident $b:ident $c:ident) => { $crate::cpu::blocks::map3 };
    (@map $a:ident $b:ident $c:ident $d:ident) => { $crate::cpu::blocks::map4 };
}

/// Returns the kernels of a row of `halves`: its f32 kernel is never launched.
pub(crate) const fn without_f32(kernels: &'static [&'static KernelDef]) -> &'static [&'static KernelDef] {
    match kernels {
        [_, halves @ ..] => halves,
        [] => kernels,
    }
}

/// Returns the dtypes that identify a kernel of `mixed` types: one if both are equal.
pub(crate) const fn mixed_types<X: Element, W: Element>() -> &'static [DType] {
    match (X::DTYPE, W::DTYPE) {
        (DType::F16, DType::F32) => &[DType::F16, DType::F32],
        (DType::BF16, DType::F32) => &[DType::BF16, DType::F32],
        (DType::F32, _) => &[DType::F32],
        (DType::F64, _) => &[DType::F64],
        (DType::F16, _) => &[DType::F16],
        _ => &[DType::BF16],
    }
}

#[allow(non_camel_case_types)]
pub(crate) mod types {
    pub(crate) use half::{bf16, f16};
    macro_rules! primitive {
        ($($T:ident)+) => { $(pub(crate) type $T = core::primitive::$T;)+ };
    }
    primitive!(f32 f64 i64 i32 u8);
}

pub(crate) use {block, row, rows, table};
