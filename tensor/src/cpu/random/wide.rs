//! `rand` and `randn` in f32, eight lanes at a time. The loops have no branches and no calls, so the compiler can
//! vectorise them. By default it cannot use wide vectors, because an x86-64 program must run on the oldest 64-bit CPU.
//! So the code is compiled once for any CPU and once for AVX2 and FMA, and [`fill`] chooses at run time. Both give the
//! same bits. (The default for aarch64 has vectors and FMA.)

use crate::cpu::math::mul_add;
use crate::random::Mt19937;

#[derive(Clone, Copy)]
pub(super) enum Law {
    /// Uniform in [from, to).
    Uniform { from: f32, to: f32 },
    /// Normal, for each whole block of 16. A smaller remainder becomes uniforms in [0, 1).
    Normal { mean: f32, std: f32 },
}

/// Fills `out`, one word per element, front to back.
pub(super) fn fill(engine: &mut Mt19937, out: &mut [f32], law: Law) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: `fill_avx2` is safe code compiled for AVX2 and FMA, which this CPU has.
        return unsafe { fill_avx2(engine, out, law) };
    }
    fill_lanes(engine, out, law);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fill_avx2(engine: &mut Mt19937, out: &mut [f32], law: Law) {
    fill_lanes(engine, out, law);
}

// This function and its callees are always inlined, so they are compiled for the instruction set of `fill_avx2`.
#[inline(always)]
pub(super) fn fill_lanes(engine: &mut Mt19937, out: &mut [f32], law: Law) {
    match law {
        Law::Uniform { from, to } => {
            engine.fill_from_words(out, |word| mul_add(unit(word), to - from, from));
        }
        Law::Normal { mean, std } => {
            // The transform takes no words, so it follows the draws while they are in cache.
            for piece in out.chunks_mut(256 * 16) {
                engine.fill_from_words(piece, unit);
                for block in piece.as_chunks_mut::<16>().0 {
                    normal_block(block, mean, std);
                }
            }
        }
    }
}

/// Converts a word to a number in [0, 1): its 24 low bits, as many as an f32 holds exactly.
#[inline(always)]
pub(super) fn unit(word: u32) -> f32 {
    // Through i32, for which x86 has a vector conversion.
    (word & 0x00ff_ffff) as i32 as f32 * (1.0 / (1 << 24) as f32)
}

/// Applies Box-Muller to 16 uniforms (`normal_fill_16_AVX2` in PyTorch): lane j pairs element j with element j + 8.
#[inline(always)]
fn normal_block(block: &mut [f32; 16], mean: f32, std: f32) {
    let (first, second) = block.split_at_mut(8);
    for j in 0..8 {
        // 1 - u is in (0, 1], where the logarithm is finite.
        let radius = (-2.0 * ln(1.0 - first[j])).sqrt();
        let (sin, cos) = sin_cos(std::f32::consts::TAU * second[j]);
        first[j] = mul_add(radius * cos, std, mean);
        second[j] = mul_add(radius * sin, std, mean);
    }
}

// The logarithm, sine and cosine of PyTorch's avx_mathfun.h, after Stephen Moshier's Cephes library (logf.c, sinf.c).
// The standard library's are a little more accurate and therefore wrong here: four in ten normals would differ.

/// Natural logarithm of a positive, normal number.
#[inline(always)]
#[expect(clippy::excessive_precision)]
fn ln(x: f32) -> f32 {
    const P: [f32; 9] = [
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    ];
    // ln 2 in two parts. The product of the short high part with a small integer is exact.
    const LN_2_LOW: f32 = -2.12194440e-4;
    const LN_2_HIGH: f32 = 0.693359375;

    // x = m * 2^e with m in [0.5, 1), read from the bits.
    let bits = x.to_bits();
    let m = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let e = ((bits >> 23) as i32 - 126) as f32;
    // For m below sqrt(1/2), use 2m and e - 1, because the polynomial needs 1 + t near 1.
    let below = m < std::f32::consts::FRAC_1_SQRT_2;
    let e = if below { e - 1.0 } else { e };
    let t = if below { (m - 1.0) + m } else { m - 1.0 };

    // ln(1 + t) = t - t^2/2 + t^3 P(t)
    let z = t * t;
    let mut y = P[0];
    for p in &P[1..] {
        y = mul_add(y, t, *p);
    }
    y *= t;
    y = mul_add(y, z, e * LN_2_LOW);
    y = mul_add(-z, 0.5, y);
    mul_add(e, LN_2_HIGH, t + y)
}

/// Sine and cosine of an angle in [0, 2 pi].
#[inline(always)]
#[expect(clippy::excessive_precision)]
fn sin_cos(angle: f32) -> (f32, f32) {
    const FOUR_OVER_PI: f32 = 1.27323954473516;

    // Subtract the nearest even multiple j of pi/4. Of the three parts of pi/4, the first two multiply j exactly.
    let j = ((angle * FOUR_OVER_PI) as i32 + 1) & !1;
    let y = j as f32;
    let mut x = mul_add(y, -0.78515625, angle);
    x = mul_add(y, -2.4187564849853515625e-4, x);
    x = mul_add(y, -3.77489497744594108e-8, x);

    let z = x * x;
    let mut cos = mul_add(2.443315711809948e-5, z, -1.388731625493765e-3);
    cos = mul_add(cos, z, 4.166664568298827e-2) * z;
    cos = mul_add(cos, z, -(z * 0.5)) + 1.0;
    let mut sin = mul_add(-1.9515295891e-4, z, 8.3321608736e-3);
    sin = mul_add(sin, z, -1.6666654611e-1) * z;
    sin = mul_add(sin, x, x);

    // Bit 1 of j: an odd quarter turn, where sine and cosine are swapped. The signs follow from the quadrant.
    let (sin, cos) = if j & 2 == 0 { (sin, cos) } else { (cos, sin) };
    let sin = if j & 4 == 0 { sin } else { -sin };
    let cos = if (j - 2) & 4 == 0 { -cos } else { cos };
    (sin, cos)
}
