//! Element types, their promotion, and their Rust types.

use std::convert::identity;
use std::fmt;

use half::{bf16, f16};

/// The type of a tensor's elements (`torch.dtype`). Operations on `F16` and `BF16` compute in f32 and round once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// `torch.bool`, one byte per element.
    Bool,
    /// `torch.uint8`
    U8,
    /// `torch.int32`
    I32,
    /// `torch.int64`, the type of indices and class labels.
    I64,
    /// `torch.float16`: 5 bits of exponent, 10 of fraction. From 6·10⁻⁸ to 65504.
    F16,
    /// `torch.bfloat16`: 8 bits of exponent, 7 of fraction. The range of `F32` with two to three decimal digits.
    BF16,
    /// `torch.float32`, the default.
    F32,
    /// `torch.float64`
    F64,
}

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Whether tensors of this type can have gradients.
    #[inline]
    pub const fn is_floating_point(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// The name in PyTorch's error messages ("Float", "Long").
    pub const fn scalar_type(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::U8 => "Byte",
            DType::I32 => "Int",
            DType::I64 => "Long",
            DType::F16 => "Half",
            DType::BF16 => "BFloat16",
            DType::F32 => "Float",
            DType::F64 => "Double",
        }
    }

    /// The C++ name in some of PyTorch's messages ("float", "double").
    pub const fn cpp_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "unsigned char",
            DType::I32 => "int",
            DType::I64 => "long int",
            DType::F16 => "c10::Half",
            DType::BF16 => "c10::BFloat16",
            DType::F32 => "float",
            DType::F64 => "double",
        }
    }

    /// Bool < integers < floating point: the first criterion of promotion.
    const fn category(self) -> u8 {
        match self {
            DType::Bool => 0,
            DType::U8 | DType::I32 | DType::I64 => 1,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => 2,
        }
    }

    /// The later one in the order of declaration (`torch.promote_types`). Only the two half types promote to a third.
    pub fn promote(self, other: DType) -> DType {
        match (self, other) {
            (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
            _ if self as u8 >= other as u8 => self,
            _ => other,
        }
    }

    /// Whether an in-place operation may write this type into a `target` tensor, whose category must not be lower.
    pub fn can_cast(self, target: DType) -> bool {
        self.category() <= target.category()
    }

    #[inline]
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Bool => "torch.bool",
            DType::U8 => "torch.uint8",
            DType::I32 => "torch.int32",
            DType::I64 => "torch.int64",
            DType::F16 => "torch.float16",
            DType::BF16 => "torch.bfloat16",
            DType::F32 => "torch.float32",
            DType::F64 => "torch.float64",
        })
    }
}

pub trait Element: Copy + PartialEq + Send + Sync + fmt::Debug + 'static + sealed::Sealed {
    /// The type in memory. A `bool` is stored as a byte, because not every byte is a valid `bool`.
    #[doc(hidden)]
    type Stored: bytemuck::Pod + Send + Sync;
    const DTYPE: DType;
    #[doc(hidden)]
    fn store(self) -> Self::Stored;
    #[doc(hidden)]
    fn load(stored: Self::Stored) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_element {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            type Stored = $type;
            const DTYPE: DType = DType::$dtype;
            fn store(self) -> $type {
                self
            }
            fn load(stored: $type) -> $type {
                stored
            }
        }
    )*};
}
impl_element!(f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, i64 => I64, i32 => I32, u8 => U8);

/// A storage type, and the type in which its elements are computed.
pub trait Memory: Element<Stored = Self> + bytemuck::Pod {
    type Math;
    fn widen(self) -> Self::Math;
    /// Rounds to nearest, ties to even.
    fn narrow(value: Self::Math) -> Self;
}

macro_rules! impl_memory {
    ($($T:ty => $Math:ty: $widen:expr, $narrow:expr;)*) => {$(
        impl Memory for $T {
            type Math = $Math;
            #[inline(always)]
            fn widen(self) -> $Math {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(value: $Math) -> $T {
                $narrow(value)
            }
        }
    )*};
}
impl_memory! {
    f16 => f32: f16::to_f32, f16::from_f32;
    bf16 => f32: bf16::to_f32, bf16::from_f32;
    f32 => f32: identity, identity;
    f64 => f64: identity, identity;
    i64 => i64: identity, identity;
    i32 => i32: identity, identity;
    u8 => u8: identity, identity;
}

impl sealed::Sealed for bool {}
impl Element for bool {
    type Stored = u8;
    const DTYPE: DType = DType::Bool;
    fn store(self) -> u8 {
        self as u8
    }
    fn load(stored: u8) -> bool {
        stored != 0
    }
}

/// A number in an operation with tensors (a Python number in PyTorch).
///
/// It decides the result's type only if its category is higher than the tensor's: an i64 tensor times `2.5` is f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    /// The dtype of a tensor made from this number.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
        }
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => value as u8 as f64,
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(value) => value as i64,
            Scalar::Int(value) => value,
            Scalar::Float(value) => value as i64,
        }
    }
}

macro_rules! impl_scalar_from {
    ($($type:ty => $variant:ident),*) => {$(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar {
                Scalar::$variant(value.into())
            }
        }
    )*};
}
impl_scalar_from!(bool => Bool, u8 => Int, i32 => Int, i64 => Int);
impl_scalar_from!(f16 => Float, bf16 => Float, f32 => Float, f64 => Float);

/// The type of a mixed operation (`torch.result_type`).
///
/// Tensors with dimensions decide, then 0-dim tensors, then numbers: each only if its category is higher.
pub fn result_type(tensors: &[(DType, usize)], scalars: &[Scalar]) -> DType {
    let join = |best: Option<DType>, next: DType| Some(best.map_or(next, |best| best.promote(next)));
    let with_dims = tensors.iter().filter(|(_, ndim)| *ndim > 0).map(|(dtype, _)| *dtype).fold(None, join);
    let zero_dim = tensors.iter().filter(|(_, ndim)| *ndim == 0).map(|(dtype, _)| *dtype).fold(None, join);
    let numbers = scalars.iter().map(|scalar| scalar.dtype()).fold(None, join);
    [with_dims, zero_dim, numbers]
        .into_iter()
        .flatten()
        .reduce(|best, next| if next.category() > best.category() { next } else { best })
        .unwrap_or(DType::F32)
}

/// Runs `$body` with `$T` as an alias for the storage type of `$dtype`, for code that only moves elements.
#[macro_export]
#[doc(hidden)]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::U8 | $crate::DType::Bool => {
                type $T = u8;
                $body
            }
            $crate::DType::F16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = $crate::bf16;
                $body
            }
        }
    };
}

/// Like `with_dtype`, but `$T` is the type that the elements are computed in: f32 for halves.
#[macro_export]
#[doc(hidden)]
macro_rules! with_math {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::with_float!($dtype, $T => $body, else match $dtype {
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            _ => {
                type $T = u8; // And `bool`.
                $body
            }
        })
    };
}

/// Like `with_math`, for floating point types only. `$else` is the result for others.
#[macro_export]
#[doc(hidden)]
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr, else $else:expr) => {
        match $dtype {
            $crate::DType::F32 | $crate::DType::F16 | $crate::DType::BF16 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            _ => $else,
        }
    };
}

pub use crate::{with_dtype, with_float, with_math};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    #[test]
    fn promotion_is_pytorchs_table() {
        use DType::*;
        each_case([F16, BF16], |half| {
            let types = [Bool, U8, I32, I64, half, F32, F64];
            for (i, a) in types.into_iter().enumerate() {
                for (j, b) in types.into_iter().enumerate() {
                    assert_eq!(a.promote(b), types[i.max(j)], "{a} with {b}");
                }
            }
        });
        assert_eq!([F16.promote(BF16), BF16.promote(F16)], [F32, F32]);
    }

    #[test]
    fn numbers_and_zero_dim_tensors_count_only_by_category() {
        use DType::*;
        assert_eq!(result_type(&[(I64, 1)], &[Scalar::Float(2.5)]), F32);
        assert_eq!(result_type(&[(F32, 1)], &[Scalar::Int(2)]), F32);
        assert_eq!(result_type(&[(F32, 2), (F64, 0)], &[]), F32);
        assert_eq!(result_type(&[(I32, 2), (F64, 0)], &[]), F64);
        assert_eq!(result_type(&[(U8, 2), (I64, 0)], &[]), U8);
        assert_eq!(result_type(&[(F64, 0)], &[Scalar::Float(1.0)]), F64);
        assert_eq!(result_type(&[(Bool, 1)], &[Scalar::Int(1)]), I64);
        assert_eq!(result_type(&[(F16, 1)], &[Scalar::Float(2.5)]), F16);
        assert_eq!(result_type(&[(BF16, 1), (F64, 0)], &[]), BF16);
        assert_eq!(result_type(&[(F16, 0), (BF16, 0)], &[]), F32);
        assert_eq!(result_type(&[(I64, 2), (F16, 0)], &[]), F16);
    }
}
