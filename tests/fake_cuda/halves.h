// Conversions between floats and the numbers of 16 bits, by arithmetic: nothing here knows the instructions of a CPU.
#pragma once

#include <algorithm>
#include <cmath>

namespace halves {

// A sign, `exponent` bits and `fraction` bits.
inline float widen(unsigned short bits, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1, highest = (1 << exponent) - 1;
    const int e = bits >> fraction & highest, f = bits & ((1 << fraction) - 1);
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (e == highest) {
        return f ? NAN : sign * INFINITY;
    }
    // Below the smallest exponent there is no leading 1.
    return sign * (float)(e == 0 ? std::ldexp((double)f, 1 - bias - fraction)
                                 : std::ldexp((double)((1 << fraction) + f), e - bias - fraction));
}

// To the nearest, of two as near to the even one.
inline unsigned short narrow(float x, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1, infinity = ((1 << exponent) - 1) << fraction;
    const int sign = std::signbit(x) << 15;
    if (x != x) {
        return (unsigned short)(infinity | 1 << (fraction - 1));
    }
    const double a = std::fabs((double)x);
    if (a >= std::ldexp(1.0, bias + 1)) {
        return (unsigned short)(sign | infinity);
    }
    const int e = a == 0 ? 1 - bias : std::max(std::ilogb(a), 1 - bias);
    // In units of the last place. One that is carried raises the exponent, and at the end makes it that of infinity.
    const int units = (int)std::nearbyint(std::ldexp(a, fraction - e));
    return (unsigned short)(sign | (((e + bias - 1) << fraction) + units));
}

} // namespace halves

// As half.cuh calls them.
inline float float_of_f16(unsigned short bits) { return halves::widen(bits, 5, 10); }
inline unsigned short f16_of_float(float x) { return halves::narrow(x, 5, 10); }
