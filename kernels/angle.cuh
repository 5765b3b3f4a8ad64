// sin and cos of any angle, however large, bit-identical to the CPU: a port of the Rust crate libm, operation
// by operation, which in turn comes from FreeBSD.
//
//   Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved.
//   Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice
//   is preserved.
#pragma once

#include "double.cuh"

namespace math {

// An angle minus n quarter turns: the remainder, as the sum of two doubles, is at most an eighth turn.
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

// Reduces a large angle: multiplies x by only those digits of 2/π that determine the position within a turn
// (Payne and Hanek). The angle comes in `count` pieces of 24 bits, the first scaled by 2ᵉ; `terms` more digits
// are used than the minimum: 3 for float precision, 4 for double.
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
        // The product in integer pieces of 24 bits, from the last.
        z = product[top];
        for (int i = 0, j = top; j > 0; i++, j--) {
            const double carry = (double)(int)(0x1p-24 * z);
            pieces[i] = (int)(z - 0x1p24 * carry);
            z = product[j - 1] + carry;
        }
        // n: the number of quarter turns, modulo eight, which is two turns.
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
        if (half > 0) { // More than half a quarter turn: take one more, and the remainder is negative.
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
        // Nothing is left of the angle at this precision: use more digits.
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

    // Multiply by π/2 to get an angle again.
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

// A double between a quarter turn and 2²⁰ of them: subtracts π/2 in up to three pieces, as needed.
__device__ inline Reduced reduce_medium(double x, int exponent) {
    const double n = x * 6.36619772367581382433e-01 + 6755399441055744.0 - 6755399441055744.0;
    double r = x - n * 1.57079632673412561417e+00;
    double w = n * 6.07710050650619224932e-11;
    double y = r - w;
    if (exponent - ((high(y) >> 20) & 0x7ff) > 16) { // Enough bits cancelled for the second piece to matter.
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
        bool cancels; // Close to a multiple of a quarter turn.
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

// For angles up to an eighth turn; `rest` is the second part.
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

// The sine of the angle plus `quarters` quarter turns: the cosine is the sine a quarter turn later.
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

// Reduces a float, in double precision.
inline __device__ __noinline__ Reduced reduce(float x) {
    const double wide = x;
    const unsigned int size = __float_as_uint(x) & 0x7fffffff;
    if (size <= 0x40e231d5) { // Up to 9π/4
        const int n = size <= 0x3f490fda   ? 0
                      : size <= 0x4016cbe3 ? 1
                      : size <= 0x407b53d1 ? 2
                      : size <= 0x40afeddf ? 3
                                           : 4;
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
        const double first = (1.0 + z * -0.499999997251031003120) + w * 0.0416666233237390631894;
        const float cosine = (float)(first + (w * z) * r);
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
    // The cosine of an angle is the sine a quarter turn later; for n = 1 and 3 it is minus and plus the sine.
    const Reduced angle = reduce(x);
    return sin_turned(angle.y, (angle.n + 1) & 3);
}

} // namespace math
