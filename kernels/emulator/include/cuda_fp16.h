// a · b + c as a float, rounded to odd, so that rounding it to a half is not a double rounding. The product is exact.
inline __host__ __device__ float __emulator_odd_sum(double product, double c) {
    double sum = product + c, part = sum - product;
    double lost = (product - (sum - part)) + (c - part);
    float near = (float)sum;
    if (!isfinite(near) || near == 0.0f) return near;
    double rest = sum - (double)near;
    if (rest == 0.0) rest = lost;
    if (rest == 0.0) return near;
    unsigned int bits = __float_as_uint(near);
    if ((rest > 0.0) != (near > 0.0f)) bits--;
    return __uint_as_float(bits | 1);
}

// Half types: stored in 16 bits, computed as floats, and rounded after each operation.
#define __EMULATOR_HALF(H, Name, to, from) \
    struct Name { \
        unsigned short __x; \
        Name() = default; \
        __host__ __device__ Name(float x) : __x(to(x)) {} \
        __host__ __device__ explicit Name(int x) : __x(to((float)x)) {} \
        __host__ __device__ explicit Name(double x) : __x(to(__emulator_odd_sum(x, 0.0))) {} \
        __host__ __device__ operator float() const { return from(__x); } \
    }; \
    inline __host__ __device__ Name operator+(Name a, Name b) { return Name((float)a + (float)b); } \
    inline __host__ __device__ Name operator-(Name a, Name b) { return Name((float)a - (float)b); } \
    inline __host__ __device__ Name operator*(Name a, Name b) { return Name((float)a * (float)b); } \
    inline __host__ __device__ Name operator/(Name a, Name b) { return Name((float)a / (float)b); } \
    inline __host__ __device__ Name operator-(Name a) { return Name(-(float)a); } \
    inline __host__ __device__ Name &operator+=(Name &a, Name b) { a = Name((float)a + (float)b); return a; } \
    inline __host__ __device__ Name &operator*=(Name &a, Name b) { a = Name((float)a * (float)b); return a; } \
    inline __host__ __device__ Name __hadd(Name a, Name b) { return a + b; } \
    inline __host__ __device__ Name __hsub(Name a, Name b) { return a - b; } \
    inline __host__ __device__ Name __hmul(Name a, Name b) { return a * b; } \
    inline __host__ __device__ Name __hdiv(Name a, Name b) { return a / b; } \
    inline __host__ __device__ Name __hfma(Name a, Name b, Name c) { \
        return Name(__emulator_odd_sum((double)(float)a * (double)(float)b, (double)(float)c)); \
    } \
    inline __host__ __device__ bool __hlt(Name a, Name b) { return (float)a < (float)b; } \
    inline __host__ __device__ bool __hgt(Name a, Name b) { return (float)a > (float)b; } \
    inline __host__ __device__ Name __hmax(Name a, Name b) { return (float)a > (float)b ? a : b; } \
    inline __host__ __device__ Name __hmin(Name a, Name b) { return (float)a < (float)b ? a : b; }

__EMULATOR_HALF(f16, __half, __emulator_f16_of_float, __emulator_float_of_f16)
typedef __half half;

inline __host__ __device__ float __emulator_float_of_bf16(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__EMULATOR_HALF(bf16, __nv_bfloat16, __emulator_bf16_of_float, __emulator_float_of_bf16)
typedef __nv_bfloat16 nv_bfloat16;

inline __host__ __device__ __half __float2half(float x) { return __half(x); }
inline __host__ __device__ __half __float2half_rn(float x) { return __half(x); }
inline __host__ __device__ float __half2float(__half x) { return (float)x; }
inline __host__ __device__ __half __int2half_rn(int x) { return __half((float)x); }
inline __host__ __device__ __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __host__ __device__ float __bfloat162float(__nv_bfloat16 x) { return (float)x; }

struct alignas(4) __half2 {
    __half x, y;
};
typedef __half2 half2;
inline __host__ __device__ __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __host__ __device__ __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __host__ __device__ __half __low2half(__half2 v) { return v.x; }
inline __host__ __device__ __half __high2half(__half2 v) { return v.y; }
inline __host__ __device__ __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
inline __host__ __device__ __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
inline __host__ __device__ __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
