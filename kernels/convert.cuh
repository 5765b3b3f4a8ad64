// Conversions between types of numbers.
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

// C++ says nothing about a float that its integer cannot hold, and a GPU says something else than x86. Here it is as on
// the CPU: fractions are cut off, a NaN and whatever is too large or too small become the smallest number there is. A byte
// is made by way of a long long, so that it wraps around, as it does from integers.
template <typename To, typename From>
__device__ To convert(From x) {
    if constexpr (is_float<From> && sizeof(To) == 1) {
        return (To)convert<long long>(x);
    } else if constexpr (is_float<From> && !is_float<To>) {
        constexpr From low = (From)Range<To>::low; // A power of two, and so is the first float beyond the largest.
        return x >= low && x < -low ? (To)x : Range<To>::low;
    } else {
        return (To)x;
    }
}
