// pow, bit-identical to the CPU: a port of the Rust crate libm, operation by operation, which in turn comes
// from FreeBSD.
//
//   Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved.
//   Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice
//   is preserved.
#pragma once

#include "double.cuh"

namespace math {

// Whether y is an integer, and its parity: 0 for no integer, 1 for odd, 2 for even.
__device__ inline int whole(double y) {
    const double size = fabs(y);
    if (size >= 0x1p53) {
        return 2;
    }
    return size != ::floor(size) ? 0 : (long long)size & 1 ? 1 : 2;
}

// xʸ = 2^(y log₂ x), with the logarithm as two doubles, so that its error times y stays small.
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
        const double base_high = upper ? 5.84962487220764160156e-01 : 0.0; // its log₂
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

    // 2 to that power: the integer part n goes into the exponent.
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

// Calculated in double, and rounded once.
__device__ inline float pow(float x, float y) { return (float)pow((double)x, (double)y); }

} // namespace math
