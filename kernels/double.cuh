// exp, log, tanh, sigmoid and erf of doubles, bit-identical to the CPU: a port of the Rust crate libm,
// operation by operation, which in turn comes from FreeBSD.
//
//   Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved.
//   Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice
//   is preserved.
//
// These functions are long, and doubles are rare in training: `__noinline__` keeps a single copy of each in the
// program.
#pragma once

#include "common.cuh"

namespace math {

// The upper 32 bits of a double: sign, exponent, and the first 20 bits of the fraction.
__device__ inline int high(double x) { return (int)(__double_as_longlong(x) >> 32); }
__device__ inline unsigned int low(double x) { return (unsigned int)__double_as_longlong(x); }
__device__ inline double from_words(unsigned int high, unsigned int low) {
    return __longlong_as_double((long long)((unsigned long long)high << 32 | low));
}
// The number without its lower 32 bits.
__device__ inline double without_low(double x) { return from_words((unsigned int)high(x), 0); }

constexpr double LN2_HI = 6.93147180369123816490e-01, LN2_LO = 1.90821492927058770002e-10;
constexpr double INV_LN2 = 1.44269504088896338700e+00;

// x · 2ⁿ, in up to three steps: 2ⁿ itself may not be representable though the result is.
__device__ inline double scale(double x, int n) {
    if (n > 1023) {
        x *= 0x1p1023;
        n -= 1023;
        if (n > 1023) {
            x *= 0x1p1023;
            n = n - 1023 > 1023 ? 1023 : n - 1023;
        }
    } else if (n < -1022) {
        // Avoid the subnormal range in this step, which would round twice.
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
        k = -54; // Subnormal
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

// eˣ − 1, accurate near 0.
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

// 1 − erf |x| for 0.84375 ≤ |x| < 28.
inline __device__ __noinline__ double erf_complement(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    if (size < 0x3ff40000) { // |x| < 1.25
        const double s = fabs(x) - 1.0;
        const double p =
            -2.36211856075265944077e-03 + s * (4.14856118683748331666e-01 + s * (-3.72207876035701323847e-01 +
            s * (3.18346619901161753674e-01 + s * (-1.10894694282396677476e-01 + s * (3.54783043256182359371e-02 +
            s * -2.16637559486879084300e-03)))));
        const double q =
            1.0 + s * (1.06420880400844228286e-01 + s * (5.40397917702171048937e-01 +
            s * (7.18286544141962662868e-02 + s * (1.26171219808761642112e-01 + s * (1.36370839120290507362e-02 +
            s * 1.19844998467991074170e-02)))));
        return 1.0 - 8.45062911510467529297e-01 - p / q;
    }
    x = fabs(x);
    const double s = 1.0 / (x * x);
    double r, t;
    if (size < 0x4006db6d) { // |x| < 1/0.35
        r = -9.86494403484714822705e-03 + s * (-6.93858572707181764372e-01 + s * (-1.05586262253232909814e+01 +
            s * (-6.23753324503260060396e+01 + s * (-1.62396669462573470355e+02 +
            s * (-1.84605092906711035994e+02 + s * (-8.12874355063065934246e+01 +
            s * -9.81432934416914548592e+00))))));
        t = 1.0 + s * (1.96512716674392571292e+01 + s * (1.37657754143519042600e+02 +
            s * (4.34565877475229228821e+02 + s * (6.45387271733267880336e+02 + s * (4.29008140027567833386e+02 +
            s * (1.08635005541779435134e+02 + s * (6.57024977031928170135e+00 +
            s * -6.04244152148580987438e-02)))))));
    } else {
        r = -9.86494292470009928597e-03 + s * (-7.99283237680523006574e-01 + s * (-1.77579549177547519889e+01 +
            s * (-1.60636384855821916062e+02 + s * (-6.37566443368389627722e+02 +
            s * (-1.02509513161107724954e+03 + s * -4.83519191608651397019e+02)))));
        t = 1.0 + s * (3.03380607434824582924e+01 + s * (3.25792512996573918826e+02 +
            s * (1.53672958608443695994e+03 + s * (3.19985821950859553908e+03 + s * (2.55305040643316442583e+03 +
            s * (4.74528541206955367215e+02 + s * -2.24409524465858183362e+01))))));
    }
    const double z = without_low(x);
    return exp(-z * z - 0.5625) * exp((z - x) * (z + x) + r / t) / x;
}

inline __device__ __noinline__ double erf(double x) {
    const unsigned int size = (unsigned int)high(x) & 0x7fffffff;
    const bool negative = high(x) < 0;
    if (size >= 0x7ff00000) { // infinite, or a NaN
        return 1.0 - 2.0 * (double)negative + 1.0 / x;
    }
    if (size < 0x3feb0000) { // |x| < 0.84375
        if (size < 0x3e300000) {
            return 0.125 * (8.0 * x + 1.02703333676410069053e+00 * x);
        }
        const double s = x * x;
        const double p =
            1.28379167095512558561e-01 + s * (-3.25042107247001499370e-01 + s * (-2.84817495755985104766e-02 +
            s * (-5.77027029648944159157e-03 + s * -2.37630166566501626084e-05)));
        const double q =
            1.0 + s * (3.97917223959155352819e-01 + s * (6.50222499887672944485e-02 +
            s * (5.08130628187576562776e-03 + s * (1.32494738004321644526e-04 +
            s * -3.96022827877536812320e-06))));
        return x + x * (p / q);
    }
    const double y = size < 0x40180000 ? 1.0 - erf_complement(x) : 1.0 - 0x1p-1022;
    return negative ? -y : y;
}

inline __device__ double normal_cdf(double x) { return 0.5 * (1.0 + erf(x * 0.70710678118654752440)); }

} // namespace math
