// exp, log, tanh, sigmoid and the normal distribution of floats, bit-identical to the CPU.
//
// CUDA's own functions differ from those of the C library and of browsers in the last digit, and training
// amplifies one such digit into a different loss curve. So this is a port of the functions in
// tensor/src/cpu/math.rs, operation by operation: that file documents the source of the constants
// and the size of the errors. Every product and sum here is rounded separately (`--fmad=false`).
#pragma once

#include "common.cuh"

namespace math {

// ln 2 in two parts; the product of the first with an exponent is exact.
constexpr float LN2_HIGH = 0.69314575f, LN2_LOW = 1.4286068e-6f;
// 1.5 · 2²³: adding it rounds a small number to an integer, which is then in the low bits.
constexpr float TO_INTEGER = 12582912.0f;

// 2ⁿ for −126 ≤ n ≤ 127, by writing the exponent.
__device__ inline float two_to(int n) { return __uint_as_float((unsigned int)(n + 127) << 23); }

__device__ inline float exp(float x) {
    // Beyond these bounds the result is 0 or infinite. With these comparisons, NaN stays NaN.
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;

    // x = n ln 2 + r, so eˣ = 2ⁿ eʳ.
    const float shifted = x * 1.44269504f + TO_INTEGER;
    const float n = shifted - TO_INTEGER;
    const float hi = x - n * LN2_HIGH;
    const float lo = n * LN2_LOW;
    const float r = hi - lo;

    // eʳ = 1 + r + r² q(r)
    float q = 0.0013821471f;
    q = q * r + 0.008368663f;
    q = q * r + 0.041668255f;
    q = q * r + 0.16666521f;
    q = q * r + 0.49999994f;
    const float sum = 1.0f + hi;
    const float lost = hi - (sum - 1.0f);
    const float power = sum + (lost + (r * r * q - lo));

    // 2ⁿ in two factors, since n may be 128 or −150.
    const int whole = (int)(__float_as_uint(shifted) - __float_as_uint(TO_INTEGER));
    const int half = whole >> 1;
    return power * two_to(half) * two_to(whole - half);
}

__device__ inline float log(float x) {
    // A subnormal is scaled by 2²³.
    const bool subnormal = x < 1.17549435e-38f;
    const float normal = x * (subnormal ? 8388608.0f : 1.0f);

    // x = 2ᵏ m with m between √½ and √2, so ln x = k ln 2 + ln m.
    const unsigned int bits = __float_as_uint(normal);
    const int exponent = (int)(bits - __float_as_uint(0.707106781f)) >> 23;
    const float f = __uint_as_float(bits - ((unsigned int)exponent << 23)) - 1.0f;
    const float k = (float)(exponent - (subnormal ? 23 : 0));

    // ln(1 + f) = f − f²/2 + f³ p(f)
    float p = -0.07636359f;
    p = p * f + 0.12762141f;
    p = p * f - 0.13159598f;
    p = p * f + 0.14201586f;
    p = p * f - 0.1662341f;
    p = p * f + 0.20001242f;
    p = p * f - 0.2500082f;
    p = p * f + 0.3333333f;
    const float f2 = f * f;
    const float small = f2 * f * p - 0.5f * f2;

    const float large = k * LN2_HIGH;
    const float sum = large + f;
    const float lost = f - (sum - large);
    const float result = sum + (lost + (small + k * LN2_LOW));

    // The bits of positive finite numbers are 1 to 0x7f7fffff.
    const bool ordinary = __float_as_uint(x) - 1 < 0x7f7fffff;
    float edge = x < 0.0f ? __uint_as_float(0x7fc00000) : x;
    edge = x == 0.0f ? __uint_as_float(0xff800000) : edge;
    return ordinary ? result : edge;
}

__device__ inline float sigmoid(float x) {
    const float power = exp(-fabsf(x));
    return (x < 0.0f ? power : 1.0f) / (1.0f + power);
}

__device__ inline float tanh(float x) {
    const float a = fabsf(x);
    const float a2 = a * a;
    float p = -0.0056922967f;
    p = p * a2 + 0.020628167f;
    p = p * a2 - 0.053736515f;
    p = p * a2 + 0.13331406f;
    p = p * a2 - 0.3333328f;
    const float near = a + a * (a2 * p);
    const float far = 1.0f - 2.0f / (exp(a + a) + 1.0f);
    return copysignf(a < 0.625f ? near : far, x);
}

// The probability that a normally distributed number is below x. p⁴ is twice the probability of a number below
// −|x|.
__device__ inline float normal_cdf(float x) {
    const float a = fabsf(x);
    float p = -8.711299e-9f;
    p = p * a + 2.7322494e-7f;
    p = p * a - 3.2854584e-6f;
    p = p * a + 1.6558059e-5f;
    p = p * a - 5.835094e-6f;
    p = p * a - 0.00019826327f;
    p = p * a - 0.0002684574f;
    p = p * a + 0.0046948786f;
    p = p * a + 0.0054504606f;
    p = p * a - 0.05967963f;
    p = p * a - 0.1994714f;
    p = p * a + 1.0f;
    const float square = p * p;
    float below = 0.5f * square * square;
    below = a > 5.5f ? 0.0f : below; // With this comparison, NaN stays NaN.
    return x < 0.0f ? below : 1.0f - below;
}

} // namespace math
