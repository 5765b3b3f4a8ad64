// exp, log, sin, cos, tanh, sigmoid and pow, with the bits of the CPU.
//
// CUDA has its own, which differ from those of the C library and of a browser in the last digit, and a training run
// magnifies one such digit into another loss curve. So these are the functions of
// tensor/src/ops/elementwise/math.rs once more, operation by operation: that file says where the numbers come from
// and how large the errors are. Every product and sum here is rounded by itself (`--fmad=false`).
//
// The functions of doubles, and all of sin, cos and pow, are those of the Rust crate libm, which come from FreeBSD's:
//
//   Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved.
//   Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice
//   is preserved.
//
// They are long, and doubles are rare in training: `__noinline__` keeps one of each in the program.
#pragma once

#include "common.cuh"

namespace math {

// The upper 32 bits of a double: sign, exponent, and the first 20 bits of the fraction.
__device__ inline int high(double x) { return (int)(__double_as_longlong(x) >> 32); }
__device__ inline unsigned int low(double x) { return (unsigned int)__double_as_longlong(x); }
__device__ inline double from_words(unsigned int high, unsigned int low) {
    return __longlong_as_double((long long)((unsigned long long)high << 32 | low));
}
// Without its lower 32 bits.
__device__ inline double without_low(double x) { return from_words((unsigned int)high(x), 0); }

// ---------------------------------------------------------------- floats: exp, log, sigmoid, tanh

// ln 2 in two parts; the product of the first with an exponent is exact.
constexpr float LN2_HIGH = 0.69314575f, LN2_LOW = 1.4286068e-6f;
// 1.5 · 2²³: adding it rounds a small number to a whole one, which then stands in the low bits.
constexpr float TO_INTEGER = 12582912.0f;

// 2ⁿ for −126 ≤ n ≤ 127, by writing the exponent.
__device__ inline float two_to(int n) { return __uint_as_float((unsigned int)(n + 127) << 23); }

__device__ inline float exp(float x) {
    // Beyond these bounds the result is 0 or infinite. Asked this way round, a NaN comes through.
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

    // 2ⁿ in two halves, since n may be 128 or −150.
    const int whole = (int)(__float_as_uint(shifted) - __float_as_uint(TO_INTEGER));
    const int half = whole >> 1;
    return power * two_to(half) * two_to(whole - half);
}

__device__ inline float log(float x) {
    // A subnormal is lent 23 powers of two.
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

    // Positive and finite are the bits from 1 to 0x7f7fffff.
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

// ---------------------------------------------------------------- doubles: exp, log, sigmoid, tanh

constexpr double LN2_HI = 6.93147180369123816490e-01, LN2_LO = 1.90821492927058770002e-10;
constexpr double INV_LN2 = 1.44269504088896338700e+00;

// x · 2ⁿ, in up to three steps: 2ⁿ itself may be no double though the result is one.
__device__ inline double scale(double x, int n) {
    if (n > 1023) {
        x *= 0x1p1023;
        n -= 1023;
        if (n > 1023) {
            x *= 0x1p1023;
            n = n - 1023 > 1023 ? 1023 : n - 1023;
        }
    } else if (n < -1022) {
        // Not down to the subnormals at once, which would round twice.
        x *= 0x1p-969;
        n += 969;
        if (n < -1022) {
            x *= 0x1p-969;
            n = n + 969 < -1022 ? -1022 : n + 969;
        }
    }
    return x * from_words((unsigned int)(n + 1023) << 20, 0);
}

inline __device__ __noinline__ double exp(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    const bool negative = high(x) < 0;
    if (size >= 0x4086232b) { // |x| ≥ 708.39…
        if (x != x) {
            return x;
        }
        if (x > 709.782712893383973096) {
            return x * 0x1p1023;
        }
        if (x < -745.13321910194110842) {
            return 0.0;
        }
    }
    int k = 0;
    double hi = x, lo = 0.0;
    if (size > 0x3fd62e42) { // |x| > ½ ln 2
        k = size >= 0x3ff0a2b2 ? (int)(INV_LN2 * x + (negative ? -0.5 : 0.5)) : negative ? -1 : 1;
        hi = x - (double)k * LN2_HI;
        lo = (double)k * LN2_LO;
        x = hi - lo;
    } else if (size <= 0x3e300000) {
        return 1.0 + x;
    }
    const double xx = x * x;
    const double c =
        x - xx * (1.66666666666666019037e-01 +
                  xx * (-2.77777777770155933842e-03 +
                        xx * (6.61375632143793436117e-05 +
                              xx * (-1.65339022054652515390e-06 + xx * 4.13813679705723846039e-08))));
    const double y = 1.0 + (x * c / (2.0 - c) - lo + hi);
    return k == 0 ? y : scale(y, k);
}

inline __device__ __noinline__ double log(double x) {
    unsigned int size = (unsigned int)high(x);
    int k = 0;
    if (size < 0x00100000 || size >> 31 != 0) {
        if (x == 0.0) {
            return -1.0 / (x * x);
        }
        if (size >> 31 != 0) {
            return (x - x) / (x - x);
        }
        k = -54; // A subnormal.
        x *= 0x1p54;
        size = (unsigned int)high(x);
    } else if (size >= 0x7ff00000) {
        return x;
    } else if (x == 1.0) {
        return 0.0;
    }
    // x = 2ᵏ (1 + f), between √½ and √2.
    size += 0x3ff00000 - 0x3fe6a09e;
    k += (int)(size >> 20) - 0x3ff;
    const double f = from_words((size & 0x000fffff) + 0x3fe6a09e, low(x)) - 1.0;
    const double half_square = 0.5 * f * f;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double t1 = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t2 = z * (6.666666666666735130e-01 +
                           w * (2.857142874366239149e-01 +
                                w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double r = t2 + t1;
    return s * (half_square + r) + (double)k * LN2_LO - half_square + f + (double)k * LN2_HI;
}

// eˣ − 1, precise near 0.
inline __device__ __noinline__ double exp_minus_1(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    const bool negative = high(x) < 0;
    if (size >= 0x4043687a) { // |x| ≥ 56 ln 2
        if (x != x) {
            return x;
        }
        if (negative) {
            return -1.0;
        }
        if (x > 7.09782712893383973096e+02) {
            return x * 0x1p1023;
        }
    }
    int k = 0;
    double c = 0.0;
    if (size > 0x3fd62e42) { // |x| > ½ ln 2
        k = size < 0x3ff0a2b2 ? (negative ? -1 : 1) : (int)(INV_LN2 * x + (negative ? -0.5 : 0.5));
        const double hi = x - (double)k * LN2_HI;
        const double lo = (double)k * LN2_LO;
        x = hi - lo;
        c = (hi - x) - lo;
    } else if (size < 0x3c900000) {
        return x;
    }
    const double half = 0.5 * x;
    const double square = x * half;
    const double r1 =
        1.0 + square * (-3.33333333333331316428e-02 +
                        square * (1.58730158725481460165e-03 +
                                  square * (-7.93650757867487942473e-05 +
                                            square * (4.00821782732936239552e-06 +
                                                      square * -2.01099218183624371326e-07))));
    const double t = 3.0 - r1 * half;
    double e = square * ((r1 - t) / (6.0 - x * t));
    if (k == 0) {
        return x - (x * e - square);
    }
    e = x * (e - c) - c;
    e -= square;
    if (k == -1) {
        return 0.5 * (x - e) - 0.5;
    }
    if (k == 1) {
        return x < -0.25 ? -2.0 * (e - (x + 0.5)) : 1.0 + 2.0 * (x - e);
    }
    const double power = from_words((unsigned int)(0x3ff + k) << 20, 0); // 2ᵏ
    if (k < 0 || k > 56) {
        const double y = x - e + 1.0;
        return (k == 1024 ? y * 2.0 * 0x1p1023 : y * power) - 1.0;
    }
    const double inverse = from_words((unsigned int)(0x3ff - k) << 20, 0); // 2⁻ᵏ
    return k < 20 ? (x - e + (1.0 - inverse)) * power : (x - (e + inverse) + 1.0) * power;
}

inline __device__ __noinline__ double tanh(double x) {
    const double a = fabs(x);
    const unsigned int size = (unsigned int)high(a);
    double t = a;
    if (size > 0x3fe193ea) { // a > ½ ln 3, or a NaN
        t = size > 0x40340000 ? 1.0 - 0.0 / a : 1.0 - 2.0 / (exp_minus_1(2.0 * a) + 2.0);
    } else if (size > 0x3fd058ae) { // a > ½ ln 5/3
        t = exp_minus_1(2.0 * a);
        t = t / (t + 2.0);
    } else if (size >= 0x00100000) {
        t = exp_minus_1(-2.0 * a);
        t = -t / (t + 2.0);
    }
    return __double_as_longlong(x) < 0 ? -t : t;
}

__device__ inline double sigmoid(double x) {
    const double power = exp(-fabs(x));
    return (x < 0.0 ? power : 1.0) / (1.0 + power);
}

// ---------------------------------------------------------------- sin and cos

// An angle less n quarter turns: what is left, in two parts of a double each, is at most an eighth turn.
struct Reduced {
    int n;
    double y, rest;
};

// The digits of 2/π, 24 bits each.
__constant__ const int TWO_OVER_PI[66] = {
    0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB, 0xC561B7,
    0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5, 0x2EBB44, 0x84E99C,
    0x7026B4, 0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8, 0x97FFDE, 0x05980F, 0xEF2F11,
    0x8B5A0A, 0x6D1F6D, 0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D, 0x7527BA, 0xC7EBE5, 0xF17B3D, 0x0739F7,
    0x8A5292, 0xEA6BFB, 0x5FB11F, 0x8D5D08, 0x560330, 0x46FC7B, 0x6BABF0, 0xCFBC20, 0x9AF436, 0x1DA9E3, 0x91615E,
    0xE61B08, 0x659985, 0x5F14A0, 0x68408D, 0xFFD880, 0x4D7327, 0x310606, 0x1556CA, 0x73A8C9, 0x60E27B, 0xC08C6B,
};

// π/2 in pieces of 24 bits.
__constant__ const double HALF_PI[5] = {1.57079625129699707031e+00, 7.54978941586159635335e-08,
                                        5.39030252995776476554e-15, 3.28200341580791294123e-22,
                                        1.27065575308067607349e-29};

// A large angle: x times 2/π, of which only those digits are multiplied that tell where within a turn it is (Payne
// and Hanek). The angle comes in `count` pieces of 24 bits, the first times 2ᵉ; `terms` more digits are taken than
// there would have to be at least: 3 for the precision of a float, 4 for that of a double.
inline __device__ __noinline__ Reduced reduce_large(const double x0, const double x1, const double x2, int count, int e,
                                                    int terms) {
    const double x[3] = {x0, x1, x2};
    double digits[20], product[20], sums[20];
    int pieces[20];

    const int last = count - 1;
    const int skipped = e - 3 < 0 ? 0 : (e - 3) / 24;
    int q0 = e - 24 * (skipped + 1);
    for (int i = 0; i <= last + terms; i++) {
        const int digit = skipped - last + i;
        digits[i] = digit < 0 ? 0.0 : (double)TWO_OVER_PI[digit];
    }
    for (int i = 0; i <= terms; i++) {
        double sum = 0.0;
        for (int j = 0; j <= last; j++) {
            sum += x[j] * digits[last + i - j];
        }
        product[i] = sum;
    }

    int n, half, top = terms;
    double z;
    for (;;) {
        // The product in whole pieces of 24 bits, from the last.
        z = product[top];
        for (int i = 0, j = top; j > 0; i++, j--) {
            const double carry = (double)(int)(0x1p-24 * z);
            pieces[i] = (int)(z - 0x1p24 * carry);
            z = product[j - 1] + carry;
        }
        // n: the quarter turns, of which eight are two turns.
        z = scale(z, q0);
        z -= 8.0 * ::floor(z * 0.125);
        n = (int)z;
        z -= (double)n;
        half = 0;
        if (q0 > 0) {
            const int i = pieces[top - 1] >> (24 - q0);
            n += i;
            pieces[top - 1] -= i << (24 - q0);
            half = pieces[top - 1] >> (23 - q0);
        } else if (q0 == 0) {
            half = pieces[top - 1] >> 23;
        } else if (z >= 0.5) {
            half = 2;
        }
        if (half > 0) { // More than half a quarter turn: take one more, and what is too much.
            n += 1;
            bool carry = false;
            for (int i = 0; i < top; i++) {
                const int piece = pieces[i];
                if (carry) {
                    pieces[i] = 0xffffff - piece;
                } else if (piece != 0) {
                    carry = true;
                    pieces[i] = 0x1000000 - piece;
                }
            }
            if (q0 == 1) {
                pieces[top - 1] &= 0x7fffff;
            } else if (q0 == 2) {
                pieces[top - 1] &= 0x3fffff;
            }
            if (half == 2) {
                z = 1.0 - z;
                if (carry) {
                    z -= scale(1.0, q0);
                }
            }
        }
        if (z != 0.0) {
            break;
        }
        int some = 0;
        for (int i = top - 1; i >= terms; i--) {
            some |= pieces[i];
        }
        if (some != 0) {
            break;
        }
        // Nothing is left of the angle at this precision: take more digits.
        int more = 1;
        while (pieces[terms - more] == 0) {
            more++;
        }
        for (int i = top + 1; i <= top + more; i++) {
            digits[last + i] = (double)TWO_OVER_PI[skipped + i];
            double sum = 0.0;
            for (int j = 0; j <= last; j++) {
                sum += x[j] * digits[last + i - j];
            }
            product[i] = sum;
        }
        top += more;
    }

    if (z == 0.0) {
        do {
            top--;
            q0 -= 24;
        } while (pieces[top] == 0);
    } else {
        z = scale(z, -q0);
        if (z >= 0x1p24) {
            const double carry = (double)(int)(0x1p-24 * z);
            pieces[top] = (int)(z - 0x1p24 * carry);
            top++;
            q0 += 24;
            pieces[top] = (int)carry;
        } else {
            pieces[top] = (int)z;
        }
    }

    // Times π/2, as an angle again.
    double unit = scale(1.0, q0);
    for (int i = top; i >= 0; i--) {
        product[i] = unit * (double)pieces[i];
        unit *= 0x1p-24;
    }
    for (int i = top; i >= 0; i--) {
        double sum = 0.0;
        for (int k = 0; k <= terms && k <= top - i; k++) {
            sum += HALF_PI[k] * product[i + k];
        }
        sums[top - i] = sum;
    }
    double y = 0.0;
    for (int i = top; i >= 0; i--) {
        y += sums[i];
    }
    double rest = sums[0] - y;
    for (int i = 1; i <= top; i++) {
        rest += sums[i];
    }
    return {n & 7, half == 0 ? y : -y, half == 0 ? rest : -rest};
}

// A double between a quarter of a turn and 2²⁰ of them: π/2 in three pieces, as many as it takes.
__device__ inline Reduced reduce_medium(double x, int exponent) {
    const double n = x * 6.36619772367581382433e-01 + 6755399441055744.0 - 6755399441055744.0;
    double r = x - n * 1.57079632673412561417e+00;
    double w = n * 6.07710050650619224932e-11;
    double y = r - w;
    if (exponent - ((high(y) >> 20) & 0x7ff) > 16) { // So much cancelled that the second piece counts.
        double t = r;
        w = n * 6.07710050630396597660e-11;
        r = t - w;
        w = n * 2.02226624879595063154e-21 - ((t - r) - w);
        y = r - w;
        if (exponent - ((high(y) >> 20) & 0x7ff) > 49) {
            t = r;
            w = n * 2.02226624871116645580e-21;
            r = t - w;
            w = n * 8.47842766036889956997e-32 - ((t - r) - w);
            y = r - w;
        }
    }
    return {(int)n, y, (r - y) - w};
}

inline __device__ __noinline__ Reduced reduce(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    const bool negative = high(x) < 0;
    if (size <= 0x401c463b) { // Up to 9π/4
        int n;
        bool cancels; // Close to a whole number of quarter turns.
        if (size <= 0x400f6a7a) {
            cancels = (size & 0xfffff) == 0x921fb;
            n = size <= 0x4002d97c ? 1 : 2;
        } else if (size <= 0x4015fdbc) {
            cancels = size == 0x4012d97c;
            n = 3;
        } else {
            cancels = size == 0x401921fb;
            n = 4;
        }
        if (!cancels) {
            n = negative ? -n : n;
            const double z = x - (double)n * 1.57079632673412561417e+00;
            const double w = (double)n * 6.07710050650619224932e-11;
            const double y = z - w;
            return {n, y, (z - y) - w};
        }
    }
    if (size < 0x413921fb) {
        return reduce_medium(x, (int)(size >> 20));
    }
    if (size >= 0x7ff00000) {
        return {0, x - x, x - x};
    }
    // |x| in three pieces of 24 bits.
    double z = from_words((size & 0xfffff) | (0x3ff + 23) << 20, low(x));
    double pieces[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        pieces[i] = (double)(int)z;
        z = (z - pieces[i]) * 0x1p24;
    }
    const int count = z != 0.0 ? 3 : pieces[1] != 0.0 ? 2 : 1;
    const Reduced large = reduce_large(pieces[0], pieces[1], z, count, (int)(size >> 20) - (0x3ff + 23), 4);
    return negative ? Reduced{-large.n, -large.y, -large.rest} : large;
}

// For angles up to an eighth turn, of which the second part is `rest`.
__device__ inline double sin_near(double x, double rest) {
    const double z = x * x;
    const double w = z * z;
    const double r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
                     z * w * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    const double v = z * x;
    return x - ((z * (0.5 * rest - v * r) - rest) - v * -1.66666666666666324348e-01);
}

__device__ inline double cos_near(double x, double rest) {
    const double z = x * x;
    const double w = z * z;
    const double r = z * (4.16666666666666019037e-02 +
                          z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)) +
                     w * w * (-2.75573143513906633035e-07 +
                              z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
    const double half = 0.5 * z;
    const double first = 1.0 - half;
    return first + (((1.0 - first) - half) + (z * r - x * rest));
}

// Sine of the angle and `quarters` quarter turns: the cosine is the sine a quarter turn on.
__device__ inline double sin_turned(const Reduced &angle, int quarters) {
    switch ((angle.n + quarters) & 3) {
    case 0: return sin_near(angle.y, angle.rest);
    case 1: return cos_near(angle.y, angle.rest);
    case 2: return -sin_near(angle.y, angle.rest);
    default: return -cos_near(angle.y, angle.rest);
    }
}

inline __device__ __noinline__ double sin(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    if (size <= 0x3fe921fb) {
        if (size < 0x3e500000) {
            return x;
        }
        // Without a second part, which saves a rounding.
        const double z = x * x;
        const double w = z * z;
        const double r = 8.33333333332248946124e-03 +
                         z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
                         z * w * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
        return x + z * x * (-1.66666666666666324348e-01 + z * r);
    }
    return size >= 0x7ff00000 ? x - x : sin_turned(reduce(x), 0);
}

inline __device__ __noinline__ double cos(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    if (size <= 0x3fe921fb) {
        return size < 0x3e46a09e ? 1.0 : cos_near(x, 0.0);
    }
    return size >= 0x7ff00000 ? x - x : sin_turned(reduce(x), 1);
}

// A float, in double precision.
inline __device__ __noinline__ Reduced reduce(float x) {
    const double wide = x;
    const unsigned int size = __float_as_uint(x) & 0x7fffffff;
    if (size <= 0x40e231d5) { // Up to 9π/4
        const int n = size <= 0x3f490fda ? 0 : size <= 0x4016cbe3 ? 1 : size <= 0x407b53d1 ? 2 : size <= 0x40afeddf ? 3 : 4;
        const int turned = x < 0.0f ? -n : n;
        return {turned, wide - (double)turned * 1.57079632679489661923, 0.0};
    }
    if (size < 0x4dc90fdb) { // Up to 2²⁸ quarter turns
        const double n = wide * 6.36619772367581382433e-01 + 6755399441055744.0 - 6755399441055744.0;
        return {(int)n, wide - n * 1.57079631090164184570e+00 - n * 1.58932547735281966916e-08, 0.0};
    }
    const int e = (int)(size >> 23) - (0x7f + 23);
    const double piece = __uint_as_float(size - ((unsigned int)e << 23));
    const Reduced large = reduce_large(piece, 0.0, 0.0, 1, e, 3);
    return x < 0.0f ? Reduced{-large.n, -large.y, 0.0} : large;
}

__device__ inline float sin_turned(double y, int quarters) {
    const double z = y * y;
    const double w = z * z;
    if (quarters & 1) {
        const double r = -0.00138867637746099294692 + z * 0.0000243904487962774090654;
        const float cosine = (float)(((1.0 + z * -0.499999997251031003120) + w * 0.0416666233237390631894) + (w * z) * r);
        return quarters & 2 ? -cosine : cosine;
    }
    y = quarters & 2 ? -y : y;
    const double r = -0.000198393348360966317347 + z * 0.0000027183114939898219064;
    const double s = z * y;
    return (float)((y + s * (-0.166666666416265235595 + z * 0.0083333293858894631756)) + s * w * r);
}

__device__ inline float sin(float x) {
    const unsigned int size = __float_as_uint(x) & 0x7fffffff;
    if (size < 0x39800000) {
        return x;
    }
    if (size >= 0x7f800000) {
        return x - x;
    }
    const Reduced angle = reduce(x);
    return sin_turned(angle.y, angle.n & 3);
}

__device__ inline float cos(float x) {
    const unsigned int size = __float_as_uint(x) & 0x7fffffff;
    if (size < 0x39800000) {
        return 1.0f;
    }
    if (size >= 0x7f800000) {
        return x - x;
    }
    // The cosine of an angle is the sine a quarter turn on; of n = 1 and 3 it is minus and plus the sine.
    const Reduced angle = reduce(x);
    return sin_turned(angle.y, (angle.n + 1) & 3);
}

// ---------------------------------------------------------------- pow

// Whether y is a whole number, and odd or even: 0 for no, 1 for odd, 2 for even.
__device__ inline int whole(double y) {
    const double size = fabs(y);
    if (size >= 0x1p53) {
        return 2;
    }
    return size != ::floor(size) ? 0 : (long long)size & 1 ? 1 : 2;
}

// xʸ = 2^(y log₂ x), with the logarithm in two doubles, so that its error times y stays small.
inline __device__ __noinline__ double pow(double x, double y) {
    const int hx = high(x), hy = high(y);
    const int ix = hx & 0x7fffffff, iy = hy & 0x7fffffff;
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (x != x || y != y) {
        return x + y;
    }
    const int parity = hx < 0 ? whole(y) : 0;
    double a = fabs(x);
    if (low(y) == 0) {
        if (iy == 0x7ff00000) { // Infinite
            return a == 1.0 ? 1.0 : (ix >= 0x3ff00000) == (hy >= 0) ? fabs(y) : 0.0;
        }
        if (iy == 0x3ff00000) {
            return hy >= 0 ? x : 1.0 / x;
        }
        if (hy == 0x40000000) {
            return x * x;
        }
        if (hy == 0x3fe00000 && hx >= 0) {
            return __dsqrt_rn(x);
        }
    }
    if (low(x) == 0 && (ix == 0x7ff00000 || ix == 0 || ix == 0x3ff00000)) { // ±0, ±∞, ±1
        const double z = hy < 0 ? 1.0 / a : a;
        if (hx < 0 && ix == 0x3ff00000 && parity == 0) {
            return (z - z) / (z - z);
        }
        return hx < 0 && parity == 1 ? -z : z;
    }
    if (hx < 0 && parity == 0) {
        return (x - x) / (x - x);
    }
    const double sign = hx < 0 && parity == 1 ? -1.0 : 1.0;
    const double overflow = sign * infinity<double>(), underflow = sign * 0.0;

    double t1, t2; // log₂ a
    if (iy > 0x41e00000) { // |y| > 2³¹
        if (iy > 0x43f00000) { // |y| > 2⁶⁴: y is even
            return (ix <= 0x3fefffff) == (hy < 0) ? infinity<double>() : 0.0;
        }
        if (ix < 0x3fefffff) {
            return hy < 0 ? overflow : underflow;
        }
        if (ix > 0x3ff00000) {
            return hy > 0 ? overflow : underflow;
        }
        const double t = a - 1.0; // At most 2⁻²⁰
        const double w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25));
        const double u = 1.44269502162933349609e+00 * t;
        const double v = t * 1.92596299112661746887e-08 - w * INV_LN2;
        t1 = without_low(u + v);
        t2 = v - (t1 - u);
    } else {
        int n = 0, bits = ix;
        if (ix < 0x00100000) { // Subnormal
            a *= 0x1p53;
            n = -53;
            bits = high(a);
        }
        n += (bits >> 20) - 0x3ff;
        // a = 2ⁿ times a number around 1 or around 1.5.
        const int fraction = bits & 0x000fffff;
        bits = fraction | 0x3ff00000;
        const bool upper = fraction > 0x3988e && fraction < 0xbb67a; // From √(3/2) to √3
        if (fraction >= 0xbb67a) {
            n++;
            bits -= 0x00100000;
        }
        a = from_words((unsigned int)bits, low(a));
        const double base = upper ? 1.5 : 1.0;
        const double base_high = upper ? 5.84962487220764160156e-01 : 0.0; // log₂ of it
        const double base_low = upper ? 1.35003920212974897128e-08 : 0.0;

        // s = (a − base) / (a + base), in two parts.
        const double u = a - base;
        const double v = 1.0 / (a + base);
        const double s = u * v;
        const double s_high = without_low(s);
        double t_high = from_words(((unsigned int)bits >> 1 | 0x20000000) + 0x00080000 + (upper ? 1u << 18 : 0), 0);
        double t_low = a - (t_high - base);
        const double s_low = v * ((u - s_high * t_high) - s_high * t_low);

        const double square = s * s;
        double r = square * square *
                   (5.99999999999994648725e-01 +
                    square * (4.28571428578550184252e-01 +
                              square * (3.33333329818377432918e-01 +
                                        square * (2.72728123808534006489e-01 +
                                                  square * (2.30660745775561754067e-01 +
                                                            square * 2.06975017800338417784e-01)))));
        r += s_low * (s_high + s);
        const double square_high = s_high * s_high;
        t_high = without_low(3.0 + square_high + r);
        t_low = r - ((t_high - 3.0) - square_high);
        const double product = s_high * t_high;
        const double product_low = s_low * t_high + t_low * s;
        const double p_high = without_low(product + product_low);
        const double p_low = product_low - (p_high - product);
        const double z_high = 9.61796700954437255859e-01 * p_high;
        const double z_low = -7.02846165095275826516e-09 * p_high + p_low * 9.61796693925975554329e-01 + base_low;
        const double t = n;
        t1 = without_low(((z_high + z_low) + base_high) + t);
        t2 = z_low - (((t1 - t) - base_high) - z_high);
    }

    // y log₂ a
    const double y1 = without_low(y);
    const double p_low = (y - y1) * t1 + y * t2;
    double p_high = y1 * t1;
    double z = p_low + p_high;
    const int j = high(z);
    if (j >= 0x40900000) { // z ≥ 1024
        if (z != 1024.0 || p_low + 8.0085662595372944372e-017 > z - p_high) {
            return overflow;
        }
    } else if ((j & 0x7fffffff) >= 0x4090cc00) { // z ≤ −1075
        if (z != -1075.0 || p_low <= z - p_high) {
            return underflow;
        }
    }

    // 2 to the power of that: the whole part n goes to the exponent.
    const int i = j & 0x7fffffff;
    int n = 0;
    if (i > 0x3fe00000) { // |z| > ½
        n = j + (0x00100000 >> ((i >> 20) - 0x3ff + 1));
        const int k = ((n & 0x7fffffff) >> 20) - 0x3ff;
        const double t = from_words((unsigned int)(n & ~(0x000fffff >> k)), 0);
        n = ((n & 0x000fffff) | 0x00100000) >> (20 - k);
        n = j < 0 ? -n : n;
        p_high -= t;
    }
    const double t = without_low(p_low + p_high);
    const double u = t * 6.93147182464599609375e-01;
    const double v = (p_low - (t - p_high)) * 6.93147180559945286227e-01 + t * -1.90465429995776804525e-09;
    z = u + v;
    const double w = v - (z - u);
    const double square = z * z;
    const double c = z - square * (1.66666666666666019037e-01 +
                                   square * (-2.77777777770155933842e-03 +
                                             square * (6.61375632143793436117e-05 +
                                                       square * (-1.65339022054652515390e-06 +
                                                                 square * 4.13813679705723846039e-08))));
    const double r = (z * c) / (c - 2.0) - (w + z * w);
    z = 1.0 - (r - z);
    const int exponent = high(z) + (int)((unsigned int)n << 20);
    return sign * (exponent >> 20 <= 0 ? scale(z, n) : from_words((unsigned int)exponent, low(z)));
}

// Through a double, which is rounded once.
__device__ inline float pow(float x, float y) { return (float)pow((double)x, (double)y); }

} // namespace math
