// Tensors made from nothing but the positions of their elements.
#include "convert.cuh"
#include "elementwise.cuh"

// The type that a range of Ts is counted in.
template <typename T> struct Counted { using type = float; };
template <> struct Counted<float> { using type = double; };
template <> struct Counted<double> { using type = double; };

// start + i · step, counted in whole numbers for tensors of them: a double does not tell 2⁵³ from 2⁵³ + 1. Floats are
// made in vectors of 32 bytes, as on the CPU, which decides the last bits: a vector counts from its first element, which
// is rounded, and the elements that are left from the start.
template <typename T>
__device__ T arange_at(long long i, long long whole_start, long long whole_step, long long in_vectors, double start,
                       double step) {
    if constexpr (is_float<T>) {
        using C = typename Counted<T>::type;
        const long long lane = i < in_vectors ? i % (32 / (long long)sizeof(T)) : i;
        C from = (C)start;
        if (i < in_vectors) {
            from = (C)(T)fused((C)step, (C)(i - lane), from);
        }
        return (T)fused((C)step, (C)lane, from);
    } else {
        return (T)((unsigned long long)whole_start + (unsigned long long)i * (unsigned long long)whole_step);
    }
}

#define ARANGE(operation, suffix, T)                                                                      \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long whole_start, long long whole_step, \
                                                    long long in_vectors, double start, double step) {    \
        const auto at = [=](long long i) {                                                                \
            return arange_at<T>(i, whole_start, whole_step, in_vectors, start, step);                     \
        };                                                                                                \
        from_position(at, out, out_view);                                                                 \
    }

FOR_NUMBERS(ARANGE, arange)

// Evenly spaced, counted from both ends, so that the last value is `end` itself.
template <typename T>
__device__ T linspace_at(long long i, long long steps, double start, double end) {
    const double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0.0;
    return convert<T>(i < (steps + 1) / 2 ? start + step * (double)i : end - step * (double)(steps - 1 - i));
}

#define LINSPACE(operation, suffix, T)                                                                         \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long steps, double start, double end) { \
        from_position([=](long long i) { return linspace_at<calculated<T>>(i, steps, start, end); }, out, out_view); \
    }

FOR_NUMBERS(LINSPACE, linspace)

// 1 on the diagonal of an n × n matrix, 0 elsewhere.
#define EYE(operation, suffix, T)                                                                    \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long n) {                   \
        from_position([=](long long i) { return (calculated<T>)(i / n == i % n); }, out, out_view);  \
    }

FOR_NUMBERS(EYE, eye)
