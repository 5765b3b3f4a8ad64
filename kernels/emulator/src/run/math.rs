//! The math functions, bit-identical on every computer: those of the crate `libm`, and our `expf`, `logf` and `tanhf`.

use crate::ir::Prim;
use Prim::{F32, F64};

#[derive(Clone, Copy)]
pub enum Code {
    F1(fn(f32) -> f32),
    F2(fn(f32, f32) -> f32),
    F3(fn(f32, f32, f32) -> f32),
    D1(fn(f64) -> f64),
    D2(fn(f64, f64) -> f64),
    D3(fn(f64, f64, f64) -> f64),
    /// Functions that return integers or bools.
    FI(fn(f32) -> u64),
    DI(fn(f64) -> u64),
    /// Functions of a float and an `int`.
    FN(fn(f32, i32) -> f32),
    DN(fn(f64, i32) -> f64),
    /// Conversions of halves.
    FromHalf(fn(u32) -> f32),
    ToHalf(fn(f32) -> u32),
}

pub struct Function {
    pub name: &'static str,
    pub parameters: &'static [Prim],
    pub result: Prim,
    pub code: Code,
}

macro_rules! function {
    ($name:literal, $code:ident, $f:expr) => {
        Function {
            name: $name,
            parameters: parameters!($code),
            result: result!($code),
            code: Code::$code($f),
        }
    };
    ($name:literal, $code:ident, $f:expr, $result:expr) => {
        Function { name: $name, parameters: parameters!($code), result: $result, code: Code::$code($f) }
    };
}

macro_rules! parameters {
    (F1) => {
        &[F32]
    };
    (F2) => {
        &[F32, F32]
    };
    (F3) => {
        &[F32, F32, F32]
    };
    (D1) => {
        &[F64]
    };
    (D2) => {
        &[F64, F64]
    };
    (D3) => {
        &[F64, F64, F64]
    };
    (FI) => {
        &[F32]
    };
    (DI) => {
        &[F64]
    };
    (FN) => {
        &[F32, Prim::I32]
    };
    (DN) => {
        &[F64, Prim::I32]
    };
    (FromHalf) => {
        &[Prim::U16]
    };
    (ToHalf) => {
        &[F32]
    };
}

macro_rules! result {
    (F1) => {
        F32
    };
    (F2) => {
        F32
    };
    (F3) => {
        F32
    };
    (FN) => {
        F32
    };
    (FromHalf) => {
        F32
    };
    (ToHalf) => {
        Prim::U16
    };
    ($other:ident) => {
        F64
    };
}

/// Computes in double precision and rounds to float.
macro_rules! by_double {
    ($f:expr) => {
        |x| $f(f64::from(x)) as f32
    };
}

pub static FUNCTIONS: &[Function] = &[
    function!("sqrtf", F1, f32::sqrt),
    function!("__fsqrt_rn", F1, f32::sqrt),
    function!("rsqrtf", F1, |x| (1.0 / libm::sqrt(f64::from(x))) as f32),
    function!("__frsqrt_rn", F1, |x| (1.0 / libm::sqrt(f64::from(x))) as f32),
    function!("__frcp_rn", F1, |x| 1.0 / x),
    function!("fabsf", F1, f32::abs),
    function!("floorf", F1, libm::floorf),
    function!("ceilf", F1, libm::ceilf),
    function!("truncf", F1, libm::truncf),
    function!("roundf", F1, libm::roundf),
    function!("rintf", F1, libm::rintf),
    function!("nearbyintf", F1, libm::rintf),
    function!("expf", F1, exp32),
    function!("__expf", F1, exp32),
    function!("exp2f", F1, by_double!(libm::exp2)),
    function!("exp10f", F1, by_double!(libm::exp10)),
    function!("expm1f", F1, by_double!(libm::expm1)),
    function!("logf", F1, log32),
    function!("__logf", F1, log32),
    function!("log2f", F1, by_double!(libm::log2)),
    function!("__log2f", F1, by_double!(libm::log2)),
    function!("log10f", F1, by_double!(libm::log10)),
    function!("log1pf", F1, by_double!(libm::log1p)),
    function!("sinf", F1, libm::sinf),
    function!("__sinf", F1, libm::sinf),
    function!("cosf", F1, libm::cosf),
    function!("__cosf", F1, libm::cosf),
    function!("tanf", F1, libm::tanf),
    function!("__tanf", F1, libm::tanf),
    function!("asinf", F1, by_double!(libm::asin)),
    function!("acosf", F1, by_double!(libm::acos)),
    function!("atanf", F1, by_double!(libm::atan)),
    function!("sinhf", F1, by_double!(libm::sinh)),
    function!("coshf", F1, by_double!(libm::cosh)),
    function!("tanhf", F1, tanh32),
    function!("asinhf", F1, by_double!(libm::asinh)),
    function!("acoshf", F1, by_double!(libm::acosh)),
    function!("atanhf", F1, by_double!(libm::atanh)),
    function!("cbrtf", F1, by_double!(libm::cbrt)),
    function!("erff", F1, by_double!(libm::erf)),
    function!("erfcf", F1, by_double!(libm::erfc)),
    function!("lgammaf", F1, by_double!(libm::lgamma)),
    function!("tgammaf", F1, by_double!(libm::tgamma)),
    function!("__saturatef", F1, |x| if x > 0.0 { x.min(1.0) } else { 0.0 }),
    function!("powf", F2, |x, y| libm::pow(f64::from(x), f64::from(y)) as f32),
    function!("__powf", F2, |x, y| libm::pow(f64::from(x), f64::from(y)) as f32),
    function!("fmodf", F2, libm::fmodf),
    function!("remainderf", F2, libm::remainderf),
    function!("atan2f", F2, |x, y| libm::atan2(f64::from(x), f64::from(y)) as f32),
    function!("hypotf", F2, |x, y| libm::hypot(f64::from(x), f64::from(y)) as f32),
    function!("copysignf", F2, f32::copysign),
    function!("fminf", F2, smaller32),
    function!("fmaxf", F2, larger32),
    function!("fdimf", F2, libm::fdimf),
    function!("nextafterf", F2, libm::nextafterf),
    function!("__fadd_rn", F2, |x, y| x + y),
    function!("__fsub_rn", F2, |x, y| x - y),
    function!("__fmul_rn", F2, |x, y| x * y),
    function!("__fdiv_rn", F2, |x, y| x / y),
    function!("fdividef", F2, |x, y| x / y),
    function!("__fdividef", F2, |x, y| x / y),
    function!("fmaf", F3, fma32),
    function!("__fmaf_rn", F3, fma32),
    function!("sqrt", D1, f64::sqrt),
    function!("__dsqrt_rn", D1, f64::sqrt),
    function!("rsqrt", D1, |x| 1.0 / libm::sqrt(x)),
    function!("__drcp_rn", D1, |x| 1.0 / x),
    function!("fabs", D1, f64::abs),
    function!("floor", D1, libm::floor),
    function!("ceil", D1, libm::ceil),
    function!("trunc", D1, libm::trunc),
    function!("round", D1, libm::round),
    function!("rint", D1, libm::rint),
    function!("nearbyint", D1, libm::rint),
    function!("exp", D1, libm::exp),
    function!("exp2", D1, libm::exp2),
    function!("exp10", D1, libm::exp10),
    function!("expm1", D1, libm::expm1),
    function!("log", D1, libm::log),
    function!("log2", D1, libm::log2),
    function!("log10", D1, libm::log10),
    function!("log1p", D1, libm::log1p),
    function!("sin", D1, libm::sin),
    function!("cos", D1, libm::cos),
    function!("tan", D1, libm::tan),
    function!("asin", D1, libm::asin),
    function!("acos", D1, libm::acos),
    function!("atan", D1, libm::atan),
    function!("sinh", D1, libm::sinh),
    function!("cosh", D1, libm::cosh),
    function!("tanh", D1, libm::tanh),
    function!("asinh", D1, libm::asinh),
    function!("acosh", D1, libm::acosh),
    function!("atanh", D1, libm::atanh),
    function!("cbrt", D1, libm::cbrt),
    function!("erf", D1, libm::erf),
    function!("erfc", D1, libm::erfc),
    function!("lgamma", D1, libm::lgamma),
    function!("tgamma", D1, libm::tgamma),
    function!("pow", D2, libm::pow),
    function!("fmod", D2, libm::fmod),
    function!("remainder", D2, libm::remainder),
    function!("atan2", D2, libm::atan2),
    function!("hypot", D2, libm::hypot),
    function!("copysign", D2, f64::copysign),
    function!("fmin", D2, smaller64),
    function!("fmax", D2, larger64),
    function!("fdim", D2, libm::fdim),
    function!("nextafter", D2, libm::nextafter),
    function!("__dadd_rn", D2, |x, y| x + y),
    function!("__dsub_rn", D2, |x, y| x - y),
    function!("__dmul_rn", D2, |x, y| x * y),
    function!("__ddiv_rn", D2, |x, y| x / y),
    function!("fma", D3, libm::fma),
    function!("__fma_rn", D3, libm::fma),
    function!("isnan", DI, |x| u64::from(x.is_nan()), Prim::Bool),
    function!("isinf", DI, |x| u64::from(x.is_infinite()), Prim::Bool),
    function!("isfinite", DI, |x| u64::from(x.is_finite()), Prim::Bool),
    function!("signbit", DI, |x| u64::from(x.is_sign_negative()), Prim::Bool),
    function!("lround", DI, |x| libm::round(x) as i64 as u64, Prim::I64),
    function!("lrint", DI, |x| libm::rint(x) as i64 as u64, Prim::I64),
    function!("llround", DI, |x| libm::round(x) as i64 as u64, Prim::I64),
    function!("llrint", DI, |x| libm::rint(x) as i64 as u64, Prim::I64),
    function!("lroundf", FI, |x| libm::roundf(x) as i64 as u64, Prim::I64),
    function!("lrintf", FI, |x| libm::rintf(x) as i64 as u64, Prim::I64),
    function!("__float2int_rn", FI, |x| u64::from(libm::rintf(x) as i32 as u32), Prim::I32),
    function!("__float2int_rz", FI, |x| u64::from(x as i32 as u32), Prim::I32),
    function!("__float2int_rd", FI, |x| u64::from(libm::floorf(x) as i32 as u32), Prim::I32),
    function!("__float2int_ru", FI, |x| u64::from(libm::ceilf(x) as i32 as u32), Prim::I32),
    function!("__float2uint_rn", FI, |x| u64::from(libm::rintf(x) as u32), Prim::U32),
    function!("__float2uint_rz", FI, |x| u64::from(x as u32), Prim::U32),
    function!("__double2int_rn", DI, |x| u64::from(libm::rint(x) as i32 as u32), Prim::I32),
    function!("__double2int_rz", DI, |x| u64::from(x as i32 as u32), Prim::I32),
    function!("ldexpf", FN, |x, n| libm::scalbn(f64::from(x), n) as f32),
    function!("scalbnf", FN, |x, n| libm::scalbn(f64::from(x), n) as f32),
    function!("ldexp", DN, libm::scalbn),
    function!("scalbn", DN, libm::scalbn),
    function!("__emulator_float_of_f16", FromHalf, float_of_f16),
    function!("__emulator_f16_of_float", ToHalf, f16_of_float),
    function!("__emulator_bf16_of_float", ToHalf, bf16_of_float),
];

pub fn find(name: &str) -> Option<u16> {
    FUNCTIONS.iter().position(|function| function.name == name).map(|at| at as u16)
}

/// Whether a function only moves bits, so that a NaN keeps its bits.
pub fn moves_bits(function: u16) -> bool {
    let name = FUNCTIONS[function as usize].name;
    matches!(name, "fabsf" | "copysignf") || name.starts_with("__emulator_")
}

pub fn apply(function: u16, a: u64, b: u64, c: u64) -> u64 {
    let f = |bits: u64| f32::from_bits(bits as u32);
    let d = f64::from_bits;
    let of32 = |x: f32| u64::from(x.to_bits());
    match FUNCTIONS[function as usize].code {
        Code::F1(code) => of32(code(f(a))),
        Code::F2(code) => of32(code(f(a), f(b))),
        Code::F3(code) => of32(code(f(a), f(b), f(c))),
        Code::D1(code) => code(d(a)).to_bits(),
        Code::D2(code) => code(d(a), d(b)).to_bits(),
        Code::D3(code) => code(d(a), d(b), d(c)).to_bits(),
        Code::FI(code) => code(f(a)),
        Code::DI(code) => code(d(a)),
        Code::FN(code) => of32(code(f(a), b as i32)),
        Code::DN(code) => code(d(a), b as i32).to_bits(),
        Code::FromHalf(code) => of32(code(a as u32)),
        Code::ToHalf(code) => u64::from(code(f(a))),
    }
}

/// As on a GPU, -0 is below +0. Equal numbers differ at most in their sign.
fn smaller32(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() | y.to_bits()) } else { libm::fminf(x, y) }
}

fn larger32(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() & y.to_bits()) } else { libm::fmaxf(x, y) }
}

fn smaller64(x: f64, y: f64) -> f64 {
    if x == y { f64::from_bits(x.to_bits() | y.to_bits()) } else { libm::fmin(x, y) }
}

fn larger64(x: f64, y: f64) -> f64 {
    if x == y { f64::from_bits(x.to_bits() & y.to_bits()) } else { libm::fmax(x, y) }
}

/// a · b + c, rounded once. The product is exact in double precision. The sum is first rounded to odd, so that rounding
/// to float is not a double rounding.
fn fma32(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    if !sum.is_finite() {
        return sum as f32;
    }
    // The rounding error of the sum.
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    if lost == 0.0 || bits & 1 == 1 {
        return sum as f32;
    }
    let up = (lost > 0.0) == (sum > 0.0);
    let odd = if sum == 0.0 {
        bits
    } else if up {
        bits + 1
    } else {
        bits - 1
    };
    f64::from_bits(odd) as f32
}

fn two_to(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// As in `kernels/math.cuh`.
fn exp32(x: f32) -> f32 {
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + 12_582_912.0;
    let n = shifted - 12_582_912.0;
    let hi = x - n * 0.693_145_75;
    let lo = n * 1.428_606_8e-6;
    let r = hi - lo;
    let mut q = 0.001_382_147_1f32;
    q = q * r + 0.008_368_663;
    q = q * r + 0.041_668_255;
    q = q * r + 0.166_665_21;
    q = q * r + 0.499_999_94;
    let sum = 1.0 + hi;
    let lost = hi - (sum - 1.0);
    let power = sum + (lost + (r * r * q - lo));
    let whole = shifted.to_bits().wrapping_sub(12_582_912.0f32.to_bits()) as i32;
    let half = whole >> 1;
    power * two_to(half) * two_to(whole.wrapping_sub(half))
}

fn log32(x: f32) -> f32 {
    let subnormal = x < 1.175_494_4e-38;
    let normal = x * if subnormal { 8_388_608.0 } else { 1.0 };
    let bits = normal.to_bits();
    let exponent = bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits()) as i32 >> 23;
    let f = f32::from_bits(bits.wrapping_sub((exponent as u32) << 23)) - 1.0;
    let k = (exponent - if subnormal { 23 } else { 0 }) as f32;
    let mut p = -0.076_363_59f32;
    for c in
        [0.127_621_41, -0.131_595_98, 0.142_015_86, -0.166_234_1, 0.200_012_42, -0.250_008_2, 0.333_333_3f32]
    {
        p = p * f + c;
    }
    let f2 = f * f;
    let small = f2 * f * p - 0.5 * f2;
    let large = k * 0.693_145_75;
    let sum = large + f;
    let lost = f - (sum - large);
    let result = sum + (lost + (small + k * 1.428_606_8e-6));
    if x.to_bits().wrapping_sub(1) < 0x7f7f_ffff {
        return result;
    }
    if x == 0.0 {
        f32::NEG_INFINITY
    } else if x < 0.0 {
        f32::from_bits(0x7fc0_0000)
    } else {
        x
    }
}

fn tanh32(x: f32) -> f32 {
    let a = x.abs();
    let a2 = a * a;
    let mut p = -0.005_692_296_7f32;
    for c in [0.020_628_167, -0.053_736_515, 0.133_314_06, -0.333_332_8f32] {
        p = p * a2 + c;
    }
    let near = a + a * (a2 * p);
    let far = 1.0 - 2.0 / (exp32(a + a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

pub fn float_of_f16(bits: u32) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15 & 1, bits >> 10 & 31, bits & 1023);
    let size = match exponent {
        0 => fraction as f32 * f32::from_bits(0x3380_0000), // 2⁻²⁴
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::from_bits(0x7fc0_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    f32::from_bits(size.to_bits() | sign << 31)
}

fn f16_of_float(x: f32) -> u32 {
    let bits = x.to_bits();
    let sign = bits >> 16 & 0x8000;
    let size = bits & 0x7fff_ffff;
    if size > 0x7f80_0000 {
        return 0x7fff;
    }
    if size >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if size < 0x3880_0000 {
        // Subnormal: in units of 2⁻²⁴, rounded to nearest even.
        let units = libm::rintf(f32::from_bits(size) * 16_777_216.0) as u32;
        return sign | units;
    }
    let rounded = size + 0x0fff + (size >> 13 & 1);
    sign | ((rounded - 0x3800_0000) >> 13)
}

fn bf16_of_float(x: f32) -> u32 {
    let all = x.to_bits();
    if x.is_nan() { 0x7fff } else { (all + 0x7fff + (all >> 16 & 1)) >> 16 }
}
