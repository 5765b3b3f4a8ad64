// Tensors computed from nothing but the positions of their elements.
#include "convert.cuh"
#include "elementwise.cuh"

// The type in which a range of Ts is calculated.
template <typename T> struct Counted { using type = float; };
template <> struct Counted<float> { using type = double; };
template <> struct Counted<double> { using type = double; };

// start + i · step, in integers for integer tensors: a double cannot distinguish 2⁵³ from 2⁵³ + 1. Floats are
// computed in vectors of 32 bytes, as on the CPU, which determines the last bits: a vector counts from its
// first element, which is rounded, and the remaining elements count from the start.
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

// The type in which evenly spaced Ts are calculated.
template <typename T> struct SpacedIn { using type = double; };
template <> struct SpacedIn<float> { using type = float; };

// Evenly spaced numbers, counted from both ends, so that the last value is exactly the end. For integers, the
// ends are integers too. For halves, every step of the calculation is rounded.
template <typename T>
__device__ T linspace_at(long long i, long long steps, long long whole_start, long long whole_end, double from,
                         double to) {
    const bool is_first_half = i < steps / 2;
    const long long count = is_first_half ? i : steps - 1 - i;
    if constexpr (sizeof(T) == 2) { // Only halves have two bytes.
        const auto round = [](float x) { return (float)(T)x; };
        const float start = round((float)from), end = round((float)to);
        const float step = round(round(end - start) / round((float)(steps - 1)));
        const float distance = round(step * round((float)count));
        return (T)(is_first_half ? start + distance : end - distance);
    } else {
        using C = typename SpacedIn<T>::type;
        const C start = is_float<T> ? (C)from : (C)whole_start, end = is_float<T> ? (C)to : (C)whole_end;
        const C step = (end - start) / (C)(steps - 1);
        return (T)(is_first_half ? fused(step, (C)count, start) : fused(-step, (C)count, end));
    }
}

#define LINSPACE(operation, suffix, T)                                                                                \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long steps, long long whole_start,            \
                                                    long long whole_end, double start, double end) {                   \
        const auto at = [=](long long i) { return linspace_at<T>(i, steps, whole_start, whole_end, start, end); };     \
        from_position(at, out, out_view);                                                                              \
    }

FOR_NUMBERS(LINSPACE, linspace)

// 1 on the diagonal of an n × n matrix, 0 elsewhere.
#define EYE(operation, suffix, T)                                                                    \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long n) {                   \
        from_position([=](long long i) { return (calculated<T>)(i / n == i % n); }, out, out_view);  \
    }

FOR_NUMBERS(EYE, eye)
