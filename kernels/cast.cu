// Copies: to another place in memory, or to another type.
#include "convert.cuh"
#include "elementwise.cuh"

#define COPY(operation, suffix, T)                                                  \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), OUTPUT(T, out)) {  \
        elementwise([](T x) { return x; }, out, out_view, READ(x));                 \
    }

FOR_NUMBERS(COPY, copy)

// cast_f32_i64(const float *x, float x_value, View x_view, long long *out, View out_view)
#define CAST(from, From, to, To)                                                          \
    extern "C" __global__ void cast_##from##_##to(INPUT(From, x), OUTPUT(To, out)) {      \
        elementwise([](From x) { return convert<To>(x); }, out, out_view, READ(x));       \
    }

CAST(f32, float, f64, double)
CAST(f32, float, i64, long long)
CAST(f32, float, i32, int)
CAST(f32, float, u8, unsigned char)

CAST(f64, double, f32, float)
CAST(f64, double, i64, long long)
CAST(f64, double, i32, int)
CAST(f64, double, u8, unsigned char)

CAST(i64, long long, f32, float)
CAST(i64, long long, f64, double)
CAST(i64, long long, i32, int)
CAST(i64, long long, u8, unsigned char)

CAST(i32, int, f32, float)
CAST(i32, int, f64, double)
CAST(i32, int, i64, long long)
CAST(i32, int, u8, unsigned char)

// A truth is a byte too, so this is also how it becomes a number.
CAST(u8, unsigned char, f32, float)
CAST(u8, unsigned char, f64, double)
CAST(u8, unsigned char, i64, long long)
CAST(u8, unsigned char, i32, int)
CAST(u8, unsigned char, u8, unsigned char)

// Everything but 0 is true, a NaN too.
#define TRUTH(operation, suffix, T)                                                            \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), OUTPUT(unsigned char, out)) { \
        elementwise([](T x) -> unsigned char { return x != 0; }, out, out_view, READ(x));      \
    }

FOR_NUMBERS(TRUTH, truth)
