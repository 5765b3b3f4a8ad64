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

// C++ says nothing about a float that its integer cannot hold. Here it is as on the CPU: fractions are cut off, what is
// too large or too small becomes the nearest integer there is, and a NaN becomes 0. The largest long long
// is no float; the comparison rounds it up to the first float that is too large, which is just as well.
template <typename To, typename From>
__device__ To convert(From x) {
    if constexpr (is_float<From> && !is_float<To>) {
        if (x != x) {
            return 0;
        }
        return x <= (From)Range<To>::low    ? Range<To>::low
               : x >= (From)Range<To>::high ? Range<To>::high
                                            : (To)x;
    } else {
        return (To)x;
    }
}
