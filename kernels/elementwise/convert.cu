// Conversions of each element to another dtype.
#include "convert.cuh"
#include "elementwise.cuh"

// cast_f32_i64(const float *a, float a_value, View a_view, long long *out, View out_view)
#define CAST(from, From, to, To) MAP_BY(CALCULATED(convert<calculated<To>>), cast_##from##_##to, To, From)

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

// A bool is a byte too, so this also converts bools to numbers.
CAST(u8, unsigned char, f32, float)
CAST(u8, unsigned char, f64, double)
CAST(u8, unsigned char, i64, long long)
CAST(u8, unsigned char, i32, int)
CAST(u8, unsigned char, u8, unsigned char)

// A half is converted to another type through float, and so is any type to a half: a double is rounded twice,
// as in PyTorch.
#define CAST_TO_HALVES(_, from, From) \
    CAST(from, From, f16, f16)        \
    CAST(from, From, bf16, bf16)

CAST_TO_HALVES(, f32, float)
CAST_TO_HALVES(, f64, double)
FOR_INTEGERS(CAST_TO_HALVES, )
CAST(f16, f16, bf16, bf16)
CAST(bf16, bf16, f16, f16)

#define CAST_OF_HALVES(_, from, From) \
    CAST(from, From, f32, float)      \
    CAST(from, From, f64, double)     \
    CAST(from, From, i64, long long)  \
    CAST(from, From, i32, int)        \
    CAST(from, From, u8, unsigned char)

FOR_HALVES(CAST_OF_HALVES, )

namespace element {

// Everything but 0 is true, even NaN.
template <typename T> __device__ unsigned char truth(T x) { return x != 0; }

} // namespace element

#define TRUTH(operation, suffix, T) MAP(operation, suffix, unsigned char, T)

FOR_NUMBERS(TRUTH, truth)
