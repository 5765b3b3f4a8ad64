//! The semantics of arithmetic instructions in one table. The interpreter's loops over lanes and constant folding are
//! both generated from it.

use crate::ir::{Bin, Prim, Un};

pub trait Lane: Copy {
    fn from_bits64(bits: u64) -> Self;
    fn to_bits64(self) -> u64;
}

macro_rules! lane {
    ($($ty:ty, $from:expr, $to:expr;)*) => {
        $(impl Lane for $ty {
            #[inline(always)]
            fn from_bits64(bits: u64) -> Self { ($from)(bits) }
            #[inline(always)]
            fn to_bits64(self) -> u64 { ($to)(self) }
        })*
    };
}

lane! {
    u32, |bits| bits as u32, u64::from;
    i32, |bits| bits as i32, |x: i32| u64::from(x as u32);
    u64, |bits| bits, |x: u64| x;
    i64, |bits| bits as i64, |x: i64| x as u64;
    f32, |bits| f32::from_bits(bits as u32), |x: f32| u64::from(x.to_bits());
    f64, f64::from_bits, |x: f64| x.to_bits();
}

#[macro_export]
macro_rules! binary_table {
    ($call:ident) => {
        $call! {
            Add32: u32, u32, u32, |a, b| a.wrapping_add(b);
            Sub32: u32, u32, u32, |a, b| a.wrapping_sub(b);
            Mul32: u32, u32, u32, |a, b| a.wrapping_mul(b);
            DivI32: i32, i32, i32, |a, b| if b == 0 { -1 } else { a.wrapping_div(b) };
            DivU32: u32, u32, u32, |a, b| a.checked_div(b).unwrap_or(u32::MAX);
            RemI32: i32, i32, i32, |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
            RemU32: u32, u32, u32, |a, b| if b == 0 { a } else { a % b };
            And32: u32, u32, u32, |a, b| a & b;
            Or32: u32, u32, u32, |a, b| a | b;
            Xor32: u32, u32, u32, |a, b| a ^ b;
            Shl32: u32, u32, u32, |a, b| if b > 31 { 0 } else { a << b };
            ShrI32: i32, u32, i32, |a, b| a >> b.min(31);
            ShrU32: u32, u32, u32, |a, b| if b > 31 { 0 } else { a >> b };
            Eq32: u32, u32, u32, |a, b| u32::from(a == b);
            Ne32: u32, u32, u32, |a, b| u32::from(a != b);
            LtI32: i32, i32, u32, |a, b| u32::from(a < b);
            LtU32: u32, u32, u32, |a, b| u32::from(a < b);
            LeI32: i32, i32, u32, |a, b| u32::from(a <= b);
            LeU32: u32, u32, u32, |a, b| u32::from(a <= b);
            MinI32: i32, i32, i32, |a, b| a.min(b);
            MaxI32: i32, i32, i32, |a, b| a.max(b);
            MinU32: u32, u32, u32, |a, b| a.min(b);
            MaxU32: u32, u32, u32, |a, b| a.max(b);
            MulHiI32: i32, i32, i32, |a, b| (i64::from(a) * i64::from(b) >> 32) as i32;
            MulHiU32: u32, u32, u32, |a, b| (u64::from(a) * u64::from(b) >> 32) as u32;
            Add64: u64, u64, u64, |a, b| a.wrapping_add(b);
            Sub64: u64, u64, u64, |a, b| a.wrapping_sub(b);
            Mul64: u64, u64, u64, |a, b| a.wrapping_mul(b);
            DivI64: i64, i64, i64, |a, b| if b == 0 { -1 } else { a.wrapping_div(b) };
            DivU64: u64, u64, u64, |a, b| a.checked_div(b).unwrap_or(u64::MAX);
            RemI64: i64, i64, i64, |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
            RemU64: u64, u64, u64, |a, b| if b == 0 { a } else { a % b };
            And64: u64, u64, u64, |a, b| a & b;
            Or64: u64, u64, u64, |a, b| a | b;
            Xor64: u64, u64, u64, |a, b| a ^ b;
            Shl64: u64, u32, u64, |a, b| if b > 63 { 0 } else { a << b };
            ShrI64: i64, u32, i64, |a, b| a >> b.min(63);
            ShrU64: u64, u32, u64, |a, b| if b > 63 { 0 } else { a >> b };
            Eq64: u64, u64, u32, |a, b| u32::from(a == b);
            Ne64: u64, u64, u32, |a, b| u32::from(a != b);
            LtI64: i64, i64, u32, |a, b| u32::from(a < b);
            LtU64: u64, u64, u32, |a, b| u32::from(a < b);
            LeI64: i64, i64, u32, |a, b| u32::from(a <= b);
            LeU64: u64, u64, u32, |a, b| u32::from(a <= b);
            MinI64: i64, i64, i64, |a, b| a.min(b);
            MaxI64: i64, i64, i64, |a, b| a.max(b);
            MinU64: u64, u64, u64, |a, b| a.min(b);
            MaxU64: u64, u64, u64, |a, b| a.max(b);
            MulHiI64: i64, i64, i64, |a, b| (i128::from(a) * i128::from(b) >> 64) as i64;
            MulHiU64: u64, u64, u64, |a, b| (u128::from(a) * u128::from(b) >> 64) as u64;
            AddF32: f32, f32, f32, |a, b| a + b;
            SubF32: f32, f32, f32, |a, b| a - b;
            MulF32: f32, f32, f32, |a, b| a * b;
            DivF32: f32, f32, f32, |a, b| a / b;
            EqF32: f32, f32, u32, |a, b| u32::from(a == b);
            NeF32: f32, f32, u32, |a, b| u32::from(a != b);
            LtF32: f32, f32, u32, |a, b| u32::from(a < b);
            LeF32: f32, f32, u32, |a, b| u32::from(a <= b);
            AddF64: f64, f64, f64, |a, b| a + b;
            SubF64: f64, f64, f64, |a, b| a - b;
            MulF64: f64, f64, f64, |a, b| a * b;
            DivF64: f64, f64, f64, |a, b| a / b;
            EqF64: f64, f64, u32, |a, b| u32::from(a == b);
            NeF64: f64, f64, u32, |a, b| u32::from(a != b);
            LtF64: f64, f64, u32, |a, b| u32::from(a < b);
            LeF64: f64, f64, u32, |a, b| u32::from(a <= b);
        }
    };
}

#[macro_export]
macro_rules! unary_table {
    ($call:ident) => {
        $call! {
            Neg32: u32, u32, |a| a.wrapping_neg();
            Neg64: u64, u64, |a| a.wrapping_neg();
            NegF32: f32, f32, |a| -a;
            NegF64: f64, f64, |a| -a;
            Not32: u32, u32, |a| !a;
            Not64: u64, u64, |a| !a;
            IsZero32: u32, u32, |a| u32::from(a == 0);
            Clz32: u32, u32, |a| a.leading_zeros();
            Clz64: u64, u32, |a| a.leading_zeros();
            Ffs32: u32, u32, |a| if a == 0 { 0 } else { a.trailing_zeros() + 1 };
            Ffs64: u64, u32, |a| if a == 0 { 0 } else { a.trailing_zeros() + 1 };
            Popc32: u32, u32, |a| a.count_ones();
            Popc64: u64, u32, |a| a.count_ones();
            Brev32: u32, u32, |a| a.reverse_bits();
            Brev64: u64, u64, |a| a.reverse_bits();
        }
    };
}

macro_rules! binary_scalar {
    ($($name:ident: $a:ty, $b:ty, $d:ty, $f:expr;)*) => {
        pub fn binary(op: Bin, a: u64, b: u64) -> u64 {
            match op {
                $(Bin::$name => {
                    let f: fn($a, $b) -> $d = $f;
                    f(<$a>::from_bits64(a), <$b>::from_bits64(b)).to_bits64()
                })*
            }
        }
    };
}
binary_table!(binary_scalar);

macro_rules! unary_scalar {
    ($($name:ident: $a:ty, $d:ty, $f:expr;)*) => {
        pub fn unary(op: Un, a: u64) -> u64 {
            match op {
                $(Un::$name => {
                    let f: fn($a) -> $d = $f;
                    f(<$a>::from_bits64(a)).to_bits64()
                })*
            }
        }
    };
}
unary_table!(unary_scalar);

/// Truncates bits to a type, in the form that rows hold.
pub fn narrowed(ty: Prim, bits: u64) -> u64 {
    match ty {
        Prim::Bool => u64::from(bits != 0),
        Prim::I8 => u64::from(bits as i8 as i32 as u32),
        Prim::U8 => u64::from(bits as u8),
        Prim::I16 => u64::from(bits as i16 as i32 as u32),
        Prim::U16 => u64::from(bits as u16),
        Prim::I32 | Prim::U32 | Prim::F32 => u64::from(bits as u32),
        _ => bits,
    }
}

/// Whether a division of signed integers is minimum / -1, which overflows.
pub fn quotient_overflows(op: Bin, a: u64, b: u64) -> bool {
    match op {
        Bin::DivI32 | Bin::RemI32 => a as i32 == i32::MIN && b as i32 == -1,
        Bin::DivI64 | Bin::RemI64 => a as i64 == i64::MIN && b as i64 == -1,
        _ => false,
    }
}

/// The result of every float operation of a GPU that produces a NaN. The host's NaN has the sign set.
pub const NAN_OF_DEVICE: u32 = 0x7fff_ffff;

#[inline(always)]
pub fn as_on_device(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(NAN_OF_DEVICE) } else { x }
}

/// As [`as_on_device`], for the bits of a folded constant.
pub fn bits_as_on_device(bits: u64) -> u64 {
    u64::from(as_on_device(f32::from_bits(bits as u32)).to_bits())
}

#[inline(always)]
pub fn convert(from: Prim, to: Prim, bits: u64) -> u64 {
    // Integers as 64 bits, floats as doubles: both hold every value.
    let wide = match from {
        Prim::F32 => return from_float(to, f64::from(f32::from_bits(bits as u32))),
        Prim::F64 => return from_float(to, f64::from_bits(bits)),
        Prim::I64 | Prim::U64 => bits,
        Prim::U32 | Prim::Bool | Prim::U8 | Prim::U16 | Prim::Void => u64::from(bits as u32),
        Prim::I8 | Prim::I16 | Prim::I32 => bits as u32 as i32 as i64 as u64,
    };
    match to {
        Prim::F32 if from == Prim::U64 => u64::from((wide as f32).to_bits()),
        Prim::F32 => u64::from((wide as i64 as f32).to_bits()),
        Prim::F64 if from == Prim::U64 => (wide as f64).to_bits(),
        Prim::F64 => (wide as i64 as f64).to_bits(),
        _ => narrowed(to, wide),
    }
}

#[inline(always)]
fn from_float(to: Prim, x: f64) -> u64 {
    match to {
        Prim::Void => 0,
        Prim::Bool => u64::from(x != 0.0),
        Prim::I8 | Prim::I16 => narrowed(to, u64::from(x as i32 as u32)),
        Prim::U8 | Prim::U16 => narrowed(to, u64::from(x as u32)),
        Prim::I32 => u64::from(x as i32 as u32),
        Prim::U32 => u64::from(x as u32),
        Prim::I64 => x as i64 as u64,
        Prim::U64 => x as u64,
        Prim::F32 => u64::from((x as f32).to_bits()),
        Prim::F64 => x.to_bits(),
    }
}
