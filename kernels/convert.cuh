// Conversions between dtypes.
#pragma once

#include "common.cuh"

// The smallest and the largest number of an integer type.
template <typename T> struct Range;
template <> struct Range<long long> {
    static constexpr long long low = -9223372036854775807LL - 1, high = 9223372036854775807LL;
};
template <> struct Range<int> {
    static constexpr int low = -2147483647 - 1, high = 2147483647;
};
template <> struct Range<unsigned char> {
    static constexpr unsigned char low = 0, high = 255;
};

// In C++, converting an out-of-range float to an integer is undefined, and GPUs differ from x86. Here it is as
// on the CPU: fractions are truncated; NaN and out-of-range values become the smallest integer. A u8 is
// converted through a long long, so that it wraps around, as it does from integers.
template <typename To, typename From>
__device__ To convert(From x) {
    if constexpr (is_float<From> && sizeof(To) == 1) {
        return (To)convert<long long>(x);
    } else if constexpr (is_float<From> && !is_float<To>) {
        constexpr From low = (From)Range<To>::low; // A power of two, as is the first float beyond the largest.
        return x >= low && x < -low ? (To)x : Range<To>::low;
    } else {
        return (To)x;
    }
}
