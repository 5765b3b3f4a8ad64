// Conversions between floats and the numbers of 16 bits, by arithmetic: nothing here knows the instructions of a CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

namespace halves {

// Of numbers that are normal as doubles, as all floats are. `std::ldexp` and `std::ilogb` do the same, slowly.
inline double power_of_two(int e) {
    const unsigned long long bits = (unsigned long long)(1023 + e) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}
inline int exponent_of(double x) {
    unsigned long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

// A sign, `exponent` bits and `fraction` bits.
inline float widen(unsigned short bits, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1, highest = (1 << exponent) - 1;
    const int e = bits >> fraction & highest, f = bits & ((1 << fraction) - 1);
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (e == highest) {
        return f ? NAN : sign * INFINITY;
    }
    // Below the smallest exponent there is no leading 1.
    return sign * (float)(e == 0 ? f * power_of_two(1 - bias - fraction)
                                 : ((1 << fraction) + f) * power_of_two(e - bias - fraction));
}

// To the nearest, of two as near to the even one.
inline unsigned short narrow(float x, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1, infinity = ((1 << exponent) - 1) << fraction;
    const int sign = std::signbit(x) << 15;
    if (x != x) {
        return (unsigned short)(infinity | 1 << (fraction - 1));
    }
    const double a = std::fabs((double)x);
    if (a >= power_of_two(bias + 1)) {
        return (unsigned short)(sign | infinity);
    }
    const int e = a == 0 ? 1 - bias : std::max(exponent_of(a), 1 - bias);
    // In units of the last place. One that is carried raises the exponent, and at the end makes it that of infinity.
    const int units = (int)std::nearbyint(a * power_of_two(fraction - e));
    return (unsigned short)(sign | (((e + bias - 1) << fraction) + units));
}

} // namespace halves

// As half.cuh calls them.
inline float float_of_f16(unsigned short bits) { return halves::widen(bits, 5, 10); }
inline unsigned short f16_of_float(float x) { return halves::narrow(x, 5, 10); }
