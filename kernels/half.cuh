// Half-precision floats, for storage and transfer only. Arithmetic on them uses float.
//
//            sign  exponent  fraction
//     f16       1         5        10    precise to 3 digits, but ends at 65504 (torch.float16)
//     bf16      1         8         7    the upper half of a float: 2 digits, and its range (torch.bfloat16)
//
// Both convert implicitly. So a kernel reads a half into a float, calculates like any other kernel, and its
// result is rounded once, to the nearest half, ties to even.
#pragma once

// These are GPU instructions; tests that run the kernels on the host provide their own functions.
#ifndef CONVERSIONS_OF_F16
__device__ inline float float_of_f16(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

__device__ inline unsigned short f16_of_float(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#endif

__device__ inline unsigned short bf16_of_float(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    // GPUs before the A100 have no instruction for it. The lower half is cut off. Adding just less than half a
    // unit of the last bit kept, plus one if that bit is odd, carries into it exactly when the number should be
    // rounded up. The largest numbers become infinity, as they should; a NaN must not overflow.
    const unsigned int all = __float_as_uint(x);
    return x != x ? 0x7fff : (unsigned short)((all + 0x7fff + (all >> 16 & 1)) >> 16);
#endif
}

struct f16 {
    unsigned short bits;
    f16() = default;
    __device__ f16(float x) : bits(f16_of_float(x)) {}
    __device__ operator float() const { return float_of_f16(bits); }
};

struct bf16 {
    unsigned short bits;
    bf16() = default;
    __device__ bf16(float x) : bits(bf16_of_float(x)) {}
    __device__ operator float() const { return __uint_as_float((unsigned int)bits << 16); }
};

// The type used for arithmetic on a type.
template <typename T> struct Calculated { using type = T; };
template <> struct Calculated<f16> { using type = float; };
template <> struct Calculated<bf16> { using type = float; };
template <typename T> using calculated = typename Calculated<T>::type;
