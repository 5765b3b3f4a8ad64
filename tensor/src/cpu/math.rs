//! `exp`, `ln`, `tanh` and similar functions, with the same bits on every machine.
//!
//! The `exp` of the C library, of a browser and of CUDA differ in the last digit, and training magnifies such a
//! difference into another loss curve. These f32 functions therefore rely only on operations that IEEE 754 defines to
//! the last bit: `+ - * /`, comparisons, and moves between floats and their bits. Three rules follow.
//!
//! * Every product and every sum is rounded separately. A fused multiply-add would save a rounding, but takes a dozen
//!   instructions on wasm ([`mul_add`]). (Rust never fuses. A CUDA port must be compiled with `-fmad=false`, without
//!   `-ftz`, and with IEEE division.)
//! * No branches and no tables: both sides of an `if` are computed and one is selected, so a loop over a slice becomes
//!   SIMD instructions.
//! * Each function is `inline(always)`, so it is compiled for the instruction set of the loop around it.
//!
//! Errors are in ulp, the distance between neighbouring floats at the exact result; a correctly rounded function has
//! 0.5. They were measured against f64 over all 2^32 inputs. The payload and sign of a NaN result may differ.
//!
//! `sin`, `cos`, `powf` and all f64 functions come from the `libm` crate, plain Rust on the same operations. It is
//! slower, because it branches, but also has the same bits everywhere. [`sin_all`] and [`cos_all`] compute slices of
//! angles without branches, with the same bits for every float.

use crate::cpu::simd::vectorized;
use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// ln 2 in two parts, as fdlibm splits it. The first has 15 bits, so its product with a 9-bit exponent is exact.
const LN2_HI: f32 = 0.693_145_75;
const LN2_LO: f32 = 1.428_606_8e-6;

/// 1.5 * 2^23. Floats of this size are 1 apart, so the sum with a small number has the nearest integer in its low bits.
const TO_INTEGER: f32 = 12_582_912.0;

/// Computes `a · b + c`, rounded once.
#[inline(always)]
pub(crate) fn mul_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_family = "wasm") { mul_add_in_f64(a, b, c) } else { a.mul_add(b, c) }
}

/// [`mul_add`] without an instruction for it. Unlike the function that Rust would call, it is vectorised.
///
/// The product is exact in f64. The sum with c is rounded to odd: of the two neighbouring f64s, the one whose last bit
/// is set, which is never half-way between two f32s. So rounding it again, to f32, gives the result of one rounding.
#[inline(always)]
fn mul_add_in_f64(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // The exact rounding error of the sum (Knuth's TwoSum). For an infinite or NaN sum it is NaN, and compares false.
    let of_c = sum - product;
    let lost = (product - (sum - of_c)) + (c - of_c);
    let even = sum.to_bits() & 1 == 0;
    let up = even & ((lost > 0.0) & (sum > 0.0) | (lost < 0.0) & (sum < 0.0));
    let down = even & ((lost > 0.0) & (sum < 0.0) | (lost < 0.0) & (sum > 0.0));
    f64::from_bits(sum.to_bits().wrapping_add(u64::from(up)).wrapping_sub(u64::from(down))) as f32
}

/// e^x. Largest error: 0.78 ulp among subnormal results, elsewhere 0.71.
///
/// Cody and Waite's reduction: x = n ln 2 + r with |r| <= ln 2 / 2, hence e^x = 2^n e^r.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Beyond these bounds the result is 0 or infinite; inside, n fits the two factors below. A NaN stays.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };

    let shifted = x * LOG2_E + TO_INTEGER;
    let n = shifted - TO_INTEGER;
    let hi = x - n * LN2_HI; // exact
    let lo = n * LN2_LO;
    let r = hi - lo;

    // e^r = 1 + r + r^2 q(r). This q is the minimax polynomial for the relative error of e^r, 2^-28: a linear program
    // over 500 Chebyshev points, solved again after each coefficient was rounded to f32.
    let q = 0.001_382_147_1;
    let q = q * r + 0.008_368_663;
    let q = q * r + 0.041_668_255;
    let q = q * r + 0.166_665_21;
    let q = q * r + 0.499_999_94;
    // 1 + hi is the only inexact sum here. `lost` is its exact error.
    let sum = 1.0 + hi;
    let lost = hi - (sum - 1.0);
    let power = sum + (lost + (r * r * q - lo));

    // 2^n in two factors: n = 128 and n = -150 are not exponents of an f32, but half of each is.
    let n = shifted.to_bits() as i32 - TO_INTEGER.to_bits() as i32;
    let half = n >> 1;
    power * two_to(half) * two_to(n - half)
}

/// Returns 2^n for -126 <= n <= 127, through the exponent field.
#[inline(always)]
fn two_to(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// The natural logarithm. Largest error: 0.91 ulp.
///
/// x = 2^k m with m between sqrt(1/2) and sqrt(2), hence ln x = k ln 2 + ln m.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // A subnormal has no leading bit where the next lines expect it, so scale it by 2^23 first.
    let subnormal = x < f32::MIN_POSITIVE;
    let lent = if subnormal { 23 } else { 0 };
    let normal = x * if subnormal { 8_388_608.0 } else { 1.0 };

    // Float bits are ordered like floats, so counting from sqrt(1/2) puts the steps of k there.
    let k = (normal.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits()) as i32) >> 23;
    let m = f32::from_bits(normal.to_bits().wrapping_sub((k << 23) as u32));
    let f = m - 1.0; // exact
    let k = (k - lent) as f32;

    // ln(1 + f) = f - f^2/2 + f^3 p(f). The minimax p for the relative error of ln(1 + f), found as q was.
    let p = -0.076_363_59;
    let p = p * f + 0.127_621_41;
    let p = p * f - 0.131_595_98;
    let p = p * f + 0.142_015_86;
    let p = p * f - 0.166_234_1;
    let p = p * f + 0.200_012_42;
    let p = p * f - 0.250_008_2;
    let p = p * f + 0.333_333_3;
    let f2 = f * f;
    let small = f2 * f * p - 0.5 * f2;

    // When k = 1 and m is near sqrt(1/2), much of k ln 2 and f cancels, so keep the error of their sum.
    let high = k * LN2_HI; // exact
    let sum = high + f;
    let lost = f - (sum - high);
    let result = sum + (lost + (small + k * LN2_LO));

    // The bits of the positive finite floats, for which `result` is valid, are 1 ..= 0x7f7f_ffff.
    let ordinary = x.to_bits().wrapping_sub(1) < f32::INFINITY.to_bits() - 1;
    let edge = if x < 0.0 { f32::NAN } else { x };
    let edge = if x == 0.0 { f32::NEG_INFINITY } else { edge };
    if ordinary { result } else { edge }
}

/// 1 / (1 + e^-x). Largest error: 2.41 ulp.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    // e^-|x| cannot overflow. For very negative x the result goes through the subnormals to 0, like e^x.
    let power = exp(-x.abs());
    let numerator = if x < 0.0 { power } else { 1.0 };
    numerator / (1.0 + power)
}

/// The hyperbolic tangent. Largest error: 1.35 ulp. From |x| = 9.02 on it is exactly 1 or -1.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();

    // 1 - 2 / (e^2a + 1) would cancel near 0. There, tanh a = a + a^3 p(a^2); the minimax p is for a <= 0.625 (the same
    // limit as in Cephes) and the relative error, found as q was.
    let a2 = a * a;
    let p = -0.005_692_296_7;
    let p = p * a2 + 0.020_628_167;
    let p = p * a2 - 0.053_736_515;
    let p = p * a2 + 0.133_314_06;
    let p = p * a2 - 0.333_332_8;
    let near = a + a * (a2 * p);

    let far = 1.0 - 2.0 / (exp(a + a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

/// The cumulative distribution of the standard normal. Largest error: 1.4e-7, 2.4 ulp for x > 0. It is 0 below −5.5.
///
/// The probability below −a falls off as e^(−a²/2). Its fourth root falls off so slowly that a polynomial can follow.
#[inline(always)]
pub(crate) fn normal_cdf(x: f32) -> f32 {
    let a = x.abs();

    // Twice that probability is p(a)^4. This is the minimax p for a <= 5.5 and an error of 2^-25 of the result for
    // positive x, found by least squares over 500 Chebyshev points, reweighted 60 times (Lawson). Then all coefficients
    // but the first were moved by single bits while that reduced the largest error here.
    let p = -8.711_299e-9;
    let p = p * a + 2.732_249_4e-7;
    let p = p * a - 3.285_458_4e-6;
    let p = p * a + 1.655_805_9e-5;
    let p = p * a - 5.835_094e-6;
    let p = p * a - 0.000_198_263_27;
    let p = p * a - 0.000_268_457_4;
    let p = p * a + 0.004_694_878_6;
    let p = p * a + 0.005_450_460_6;
    let p = p * a - 0.059_679_63;
    let p = p * a - 0.199_471_4;
    let p = p * a + 1.0;
    let square = p * p;
    let below = 0.5 * square * square;
    // A comparison in this direction keeps a NaN.
    let below = if a > 5.5 { 0.0 } else { below };

    if x < 0.0 { below } else { 1.0 - below }
}

/// The sine of any angle. Largest error: 0.501 ulp.
#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    libm::sinf(x)
}

/// The cosine of any angle. Largest error: 0.501 ulp.
#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    libm::cosf(x)
}

/// The sine of each angle, with the bits of [`sin`].
pub(crate) fn sin_all(angles: &[f32], out: &mut [f32]) {
    let vectors = vectorized!(Costly sin_lanes, (angles: &[f32], out: &mut [f32]));
    of_angles(vectors, sin, angles, out);
}

pub(crate) fn cos_all(angles: &[f32], out: &mut [f32]) {
    let vectors = vectorized!(Costly cos_lanes, (angles: &[f32], out: &mut [f32]));
    of_angles(vectors, cos, angles, out);
}

/// Beyond this angle, two parts of π do not determine the quarter turn.
const MOST_RADIANS: f32 = 268_435_456.0;

fn of_angles(vectors: fn(&[f32], &mut [f32]), one: fn(f32) -> f32, angles: &[f32], out: &mut [f32]) {
    let are_small = angles.iter().fold(true, |all, angle| all & (angle.abs() < MOST_RADIANS));
    match are_small {
        true => vectors(angles, out),
        false => angles.iter().zip(out).for_each(|(angle, out)| *out = one(*angle)),
    }
}

#[inline(always)]
fn sin_lanes(angles: &[f32], out: &mut [f32]) {
    for (angle, out) in angles.iter().zip(out) {
        let (quarters, rest) = quarter_turns(*angle);
        let size = if quarters & 1 == 0 { sin_of_eighth(rest) } else { cos_of_eighth(rest) };
        let sine = if quarters & 2 == 0 { size } else { -size };
        // −0 stays −0.
        *out = if angle.abs() < 1.0 / 4096.0 { *angle } else { sine };
    }
}

#[inline(always)]
fn cos_lanes(angles: &[f32], out: &mut [f32]) {
    for (angle, out) in angles.iter().zip(out) {
        let (quarters, rest) = quarter_turns(*angle);
        let size = if quarters & 1 == 0 { cos_of_eighth(rest) } else { sin_of_eighth(rest) };
        *out = if (quarters + 1) & 2 == 0 { size } else { -size };
    }
}

/// Returns the nearest multiple of π/2 in the two lowest bits, and the angle's distance from it, as in musl's
/// `rem_pio2f`. For small multiples, musl uses π/2 in a single part.
#[inline(always)]
fn quarter_turns(angle: f32) -> (u64, f64) {
    // The sum has no space for a fraction, so the integer is in the lowest bits.
    const ROUNDS: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    const HIGH: f64 = 1.570_796_310_901_641_8; // the first 25 bits of π/2
    const LOW: f64 = 1.589_325_477_352_819_7e-8;
    let angle = f64::from(angle);
    let shifted = angle * std::f64::consts::FRAC_2_PI + ROUNDS;
    let quarters = shifted - ROUNDS;
    let near = angle - quarters * std::f64::consts::FRAC_PI_2;
    let far = angle - quarters * HIGH - quarters * LOW;
    (shifted.to_bits(), if quarters.abs() <= 4.0 { near } else { far })
}

/// The sine of an angle within π/4 of 0: musl's `k_sinf`.
#[inline(always)]
fn sin_of_eighth(x: f64) -> f32 {
    let z = x * x;
    let r = -0.000_198_393_348_360_966_32 + z * 0.000_002_718_311_493_989_822;
    let s = z * x;
    ((x + s * (-0.166_666_666_416_265_24 + z * 0.008_333_329_385_889_463)) + s * (z * z) * r) as f32
}

/// The cosine of an angle within π/4 of 0: musl's `k_cosf`.
#[inline(always)]
fn cos_of_eighth(x: f64) -> f32 {
    let z = x * x;
    let w = z * z;
    let r = -0.001_388_676_377_460_993 + z * 0.000_024_390_448_796_277_41;
    (((1.0 + z * -0.499_999_997_251_031) + w * 0.041_666_623_323_739_06) + (w * z) * r) as f32
}

/// x^y, through f64. Error: 0.5 ulp, plus or minus the last bits of an f64.
#[inline(always)]
pub(crate) fn powf(x: f32, y: f32) -> f32 {
    libm::pow(f64::from(x), f64::from(y)) as f32
}

/// The same functions for f64 tensors, which are rare in training, from `libm`. They are at most a few ulp off.
pub(crate) mod double {
    pub(crate) fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }

    pub(crate) fn exp(x: f64) -> f64 {
        libm::exp(x)
    }

    pub(crate) fn ln(x: f64) -> f64 {
        libm::log(x)
    }

    pub(crate) fn sigmoid(x: f64) -> f64 {
        let power = exp(-x.abs());
        let numerator = if x < 0.0 { power } else { 1.0 };
        numerator / (1.0 + power)
    }

    pub(crate) fn tanh(x: f64) -> f64 {
        libm::tanh(x)
    }

    pub(crate) fn sin(x: f64) -> f64 {
        libm::sin(x)
    }

    pub(crate) fn cos(x: f64) -> f64 {
        libm::cos(x)
    }

    pub(crate) fn sin_all(angles: &[f64], out: &mut [f64]) {
        angles.iter().zip(out).for_each(|(angle, out)| *out = sin(*angle));
    }

    pub(crate) fn cos_all(angles: &[f64], out: &mut [f64]) {
        angles.iter().zip(out).for_each(|(angle, out)| *out = cos(*angle));
    }

    pub(crate) fn powf(x: f64, y: f64) -> f64 {
        libm::pow(x, y)
    }

    pub(crate) fn normal_cdf(x: f64) -> f64 {
        0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// About a million floats of every kind and magnitude. The step is prime, so the low bits vary, too.
    fn samples() -> impl Iterator<Item = f32> {
        (0..=u32::MAX).step_by(4099).map(f32::from_bits)
    }

    fn ulp(exact: f64) -> f64 {
        let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
        2f64.powi(exponent.max(-126) - 23)
    }

    #[test]
    fn a_product_and_a_sum_in_f64_have_the_bits_of_the_fused_ones() {
        let check = |a: f32, b: f32, c: f32| {
            let (ours, fused) = (mul_add_in_f64(a, b, c), a.mul_add(b, c));
            let same = ours.to_bits() == fused.to_bits() || ours.is_nan() && fused.is_nan();
            assert!(same, "{a:e} * {b:e} + {c:e}: {ours:e}, {fused:e}");
        };
        // The product is half an ulp of c, plus a little that decides. Plain f64 would round to even first.
        check(1.0 + 2f32.powi(-12), 2f32.powi(-24) * (1.0 - 2f32.powi(-12)), 1.0);
        check(1.0 + 2f32.powi(-12), -2f32.powi(-24) * (1.0 + 2f32.powi(-12)), 1.0 + f32::EPSILON);
        for edge in [0.0, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            for b in [-1.5, 0.0, 1e30] {
                for c in [-0.0, 1e-40, f32::INFINITY] {
                    check(edge, b, c);
                }
            }
        }
        let mut word = 1u32;
        let mut next = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word
        };
        for i in 0..300_000 {
            let [a, b, c] = [next(), next(), next()];
            match i % 3 {
                0 => check(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)),
                // Numbers of similar magnitude, and short ones, whose sums are half-way between two f32s.
                1 => check(a as i32 as f32, b as i32 as f32, c as i32 as f32 * 2f32.powi((c % 64) as i32)),
                _ => check((a >> 19) as f32, (b >> 19) as f32, (c >> 8) as f32 * 2f32.powi((c % 32) as i32)),
            }
        }
    }

    #[test]
    fn sines_of_many_have_the_bits_of_sines_of_one() {
        let near = (0..200_000).map(|i| (i - 100_000) as f32 * 1e-4);
        let odd = [0.0, -0.0, 3.006105, -3.006105, 2.5e-4, 1e-38, MOST_RADIANS, f32::NAN, f32::INFINITY];
        let angles: Vec<f32> = samples().chain(near).chain(odd).collect();
        // Some blocks have only small angles, and blocks end anywhere.
        for block in angles.chunks(1021).chain(odd.chunks(1)) {
            for (all, one) in [(sin_all as fn(&[f32], &mut [f32]), sin as fn(f32) -> f32), (cos_all, cos)] {
                let mut out = vec![0.0; block.len()];
                all(block, &mut out);
                for (angle, out) in block.iter().zip(out) {
                    assert!(
                        out.to_bits() == one(*angle).to_bits() || out.is_nan() && one(*angle).is_nan(),
                        "{angle:e}"
                    );
                }
            }
        }
    }

    /// The largest error of `f` in ulp. Zeros must have the right sign; infinities and NaN must match.
    fn worst(f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let mut worst = 0.0;
        for x in samples() {
            let (result, exact) = (f(x), exact(f64::from(x)));
            if result.is_finite() && result != 0.0 {
                worst = f64::max(worst, (f64::from(result) - exact).abs() / ulp(exact));
            } else if !result.is_nan() || !exact.is_nan() {
                assert_eq!(result.to_bits(), (exact as f32).to_bits(), "at {x:e}");
            }
        }
        worst
    }

    fn sigmoid_exact(x: f64) -> f64 {
        if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
    }

    #[test]
    fn errors_stay_as_documented() {
        assert!(worst(exp, f64::exp) < 0.78);
        assert!(worst(ln, f64::ln) < 0.91);
        assert!(worst(sigmoid, sigmoid_exact) < 2.41);
        assert!(worst(tanh, f64::tanh) < 1.35);
        assert!(worst(sin, f64::sin) < 0.501);
        assert!(worst(cos, f64::cos) < 0.501);
        assert!(worst(|x| powf(x, 3.0), |x| x.powi(3)) < 0.501);
    }

    /// Where e^(−x²/2) is small, so is the result, but its error is relative to 1.
    #[test]
    fn the_normal_cdf_is_off_by_a_few_of_the_last_bits_of_1() {
        let exact = |x: f32| 0.5 * libm::erfc(-f64::from(x) * std::f64::consts::FRAC_1_SQRT_2);
        let near = (-600_000..=600_000).map(|i| i as f32 * 1e-5);
        for x in samples().filter(|x| !x.is_nan()).chain(near) {
            let error = (f64::from(normal_cdf(x)) - exact(x)).abs();
            assert!(error < 1.4e-7, "at {x:e}: {error:e}");
        }
        // The result is never negative, and is 0 or 1 where GELU must be 0 or x.
        assert!(samples().filter(|x| !x.is_nan()).all(|x| (0.0..=1.0).contains(&normal_cdf(x))));
        assert_eq!([0.0, -0.0, 5.6, -5.6].map(normal_cdf), [0.5, 0.5, 1.0, 0.0]);
        assert_eq!([f32::INFINITY, f32::NEG_INFINITY, f32::MAX].map(normal_cdf), [1.0, 0.0, 1.0]);
    }

    fn fingerprint(f: fn(f32) -> f32) -> u64 {
        samples().map(f).fold(0xcbf2_9ce4_8422_2325, |hash, result| {
            let bits = if result.is_nan() { f32::NAN.to_bits() } else { result.to_bits() };
            (hash ^ u64::from(bits)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The hashes are from x86. Every other machine must produce the same.
    #[test]
    fn bits_are_the_same_everywhere() {
        assert_eq!(fingerprint(exp), 0x47aa_4e86_19d2_8b28, "exp");
        assert_eq!(fingerprint(ln), 0xa905_ab42_a6cb_db2a, "ln");
        assert_eq!(fingerprint(sigmoid), 0xc72c_ac07_2257_2cf6, "sigmoid");
        assert_eq!(fingerprint(tanh), 0x2c17_5794_ddc1_9659, "tanh");
        assert_eq!(fingerprint(normal_cdf), 0x1cd4_0036_b386_e7cd, "normal_cdf");
        assert_eq!(fingerprint(sin), 0x52c9_15d9_bf34_379c, "sin");
        assert_eq!(fingerprint(cos), 0x64de_cc07_ffb7_95bd, "cos");
        assert_eq!(fingerprint(|x| powf(x, 1.7)), 0x3a8b_d16f_8d62_a722, "powf");
    }

    /// Tests the instructions of this computer, and any number of elements at a time.
    #[test]
    fn vectors_have_the_bits_of_elements_taken_one_by_one() {
        let x: Vec<f32> = samples().collect();
        macro_rules! check {
            ($($f:ident),*) => {$({
                let kernel = crate::cpu::simd::kernel!(Costly, |x: f32| -> f32 { $f(x) });
                let mut results = vec![0.0; x.len()];
                kernel(&x, &mut results);
                for (x, result) in x.iter().zip(results) {
                    let expected = $f(*x);
                    let same = result.to_bits() == expected.to_bits() || (result.is_nan() && expected.is_nan());
                    assert!(same, "{} of {x:e}: {result:e}, not {expected:e}", stringify!($f));
                }
            })*};
        }
        check!(exp, ln, sigmoid, tanh, normal_cdf);
    }

    #[test]
    fn edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(88.722_84), f32::INFINITY);
        assert_eq!(exp(-103.9), f32::from_bits(1));
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(-90.0), exp(-90.0));
        assert_eq!((tanh(9.02), tanh(-9.02)), (1.0, -1.0));
        assert!(ln(-1.0).is_nan());
        assert!([exp, ln, sigmoid, tanh, normal_cdf].iter().all(|f| f(f32::NAN).is_nan()));
    }
}
