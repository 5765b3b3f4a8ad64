// The parts of CUDA that the random kernels use and that the tests' own header, `cuda_on_host.h`, does not have.
#pragma once

// Half types: stored in 16 bits, computed as floats, and rounded after each operation.
struct half {
    unsigned short bits;
    half() = default;
    half(float x) : bits(halves::narrow(x, 5, 10)) {}
    operator float() const { return halves::widen(bits, 5, 10); }
};
inline half operator+(half a, half b) { return half((float)a + (float)b); }
inline half operator-(half a, half b) { return half((float)a - (float)b); }
inline half operator*(half a, half b) { return half((float)a * (float)b); }
inline half operator/(half a, half b) { return half((float)a / (float)b); }
inline half operator-(half a) { return half(-(float)a); }
inline half &operator+=(half &a, half b) { return a = a + b; }
inline half &operator-=(half &a, half b) { return a = a - b; }
inline half &operator*=(half &a, half b) { return a = a * b; }
inline bool operator<(half a, half b) { return (float)a < (float)b; }
inline bool operator>(half a, half b) { return (float)a > (float)b; }
inline bool operator<=(half a, half b) { return (float)a <= (float)b; }
inline bool operator>=(half a, half b) { return (float)a >= (float)b; }
inline bool operator==(half a, half b) { return (float)a == (float)b; }
inline bool operator!=(half a, half b) { return (float)a != (float)b; }
// The exact sum, rounded to half: a long double has 64 bits, more than any sum of a product and a half takes.
inline half __hfma(half a, half b, half c) {
    const long double exact = (long double)(float)a * (float)b + (float)c;
    float near = (float)exact;
    // Rounded to odd, so that it can be rounded again.
    if (std::isfinite(near) && (long double)near != exact) {
        unsigned bits = on_host::bits<unsigned>(near);
        if (std::fabs((long double)near) > std::fabs(exact)) bits--;
        near = on_host::bits<float>(bits | 1);
    }
    return half(near);
}

#define VECTOR(T, N, A2, A4) \
    struct alignas(A2) N##2 { T x, y; }; \
    struct N##3 { T x, y, z; }; \
    struct alignas(A4) N##4 { T x, y, z, w; }; \
    inline N##2 make_##N##2(T x, T y) { return {x, y}; } \
    inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
    inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(signed char, char, 2, 4)
VECTOR(unsigned char, uchar, 2, 4)
VECTOR(short, short, 4, 8)
VECTOR(unsigned short, ushort, 4, 8)
VECTOR(int, int, 8, 16)
VECTOR(float, float, 8, 16)
VECTOR(long long, longlong, 16, 16)
VECTOR(unsigned long long, ulonglong, 16, 16)
VECTOR(double, double, 16, 16)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Threads take turns, so nothing comes between.
#define ATOMIC(name, result) \
    template <typename T, typename U> T name(T *address, U given) { \
        const T old = *address, value = (T)given; \
        *address = result; \
        return old; \
    }
ATOMIC(atomicSub, old - value)
ATOMIC(atomicMin, value < old ? value : old)
ATOMIC(atomicMax, value > old ? value : old)
ATOMIC(atomicAnd, old & value)
ATOMIC(atomicOr, old | value)
ATOMIC(atomicXor, old ^ value)
ATOMIC(atomicInc, old >= value ? 0 : old + 1)
template <typename T> T atomicCAS(T *address, T expected, T value) {
    const T old = *address;
    if (old == expected) *address = value;
    return old;
}

template <typename T> T __shfl_sync(unsigned mask, T value, int lane, int width) {
    const unsigned self = threadIdx.x % 32;
    return on_host::shuffle(mask, value, (self & ~(unsigned)(width - 1)) + (unsigned)lane % width, true);
}
template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width) {
    const unsigned self = threadIdx.x % 32;
    return on_host::shuffle(mask, value, self + delta, self % width + delta < (unsigned)width);
}
template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width) {
    const unsigned self = threadIdx.x % 32;
    return on_host::shuffle(mask, value, self - delta, self % width >= delta);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width) {
    const unsigned self = threadIdx.x % 32, from = self ^ (unsigned)flip;
    // A later group is out of reach, an earlier one is not.
    return on_host::shuffle(mask, value, from, from / width <= self / width);
}
template <typename T> unsigned __match_any_sync(unsigned mask, T value) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    const unsigned long long *shown = on_host::show(mask, bits);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        same |= (mask >> lane & 1) && shown[lane] == bits ? 1u << lane : 0;
    }
    return same;
}
inline int __syncthreads_count(int predicate) {
    static int counts[2], turn[1024];
    const int now = turn[threadIdx.x]++ % 2;
    counts[now] += predicate != 0;
    __syncthreads();
    const int count = counts[now];
    __syncthreads();
    counts[now] = 0;
    return count;
}
inline int __syncthreads_and(int predicate) { return __syncthreads_count(!predicate) == 0; }
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }

// As on a GPU, -0 is below +0, and a NaN gives way to a number.
template <typename T> T smaller(T a, T b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b; }
template <typename T> T greater(T a, T b) { return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a < b ? b : a; }
#define fminf smaller<float>
#define fmaxf greater<float>
#define fmin smaller<double>
#define fmax greater<double>
inline float min(float a, float b) { return smaller(a, b); }
inline float max(float a, float b) { return greater(a, b); }
inline double min(double a, double b) { return smaller(a, b); }
inline double max(double a, double b) { return greater(a, b); }
#define OF_INTEGERS(T) \
    inline T min(T a, T b) { return a < b ? a : b; } \
    inline T max(T a, T b) { return a > b ? a : b; }
OF_INTEGERS(int)
OF_INTEGERS(unsigned)
OF_INTEGERS(long long)
OF_INTEGERS(unsigned long long)

inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
// Arithmetic that a compiler may not change.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __int2float_rn(int x) { return (float)x; }

// The course's own functions.
#include "math.cuh"
#define expf math::exp
#define logf math::log
#define tanhf math::tanh
