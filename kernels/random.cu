// Random tensors.
#include "angle.cuh"
#include "double.cuh"
#include "elementwise.cuh"
#include "philox.cuh"

// Uniform in [0, 1): uses as many bits as the type has, so that the result is never 1.
template <typename T> __device__ T unit(Draws draws);
template <> __device__ inline float unit(Draws draws) { return (float)(draws.a >> 8) / 16777216.0f; }
template <> __device__ inline double unit(Draws draws) {
    return (double)(((unsigned long long)draws.a << 32 | draws.b) >> 11) / 9007199254740992.0;
}

template <typename T>
__device__ T uniform(Draws draws, double from, double to) {
    using C = calculated<T>;
    const C low = T((C)from), high = T((C)to);
    const C value = T(unit<C>(draws) * (high - low) + low);
    // Rounding may give the upper bound, which is not part of the range.
    return value == high ? low : value;
}

// Box-Muller: the radius from one number, the angle from the other.
template <typename T>
__device__ T normal(Draws draws, T mean, T std) {
    // In (0, 1], because the logarithm of 0 is infinite.
    const double distance = ((double)draws.a + 1.0) / 4294967296.0;
    const double angle = (double)draws.b / 4294967296.0;
    const double radius = __dsqrt_rn(-2.0 * math::log(distance));
    return (T)(radius * math::cos(6.28318530717958647693 * angle)) * std + mean;
}

// Integers from `low`, `range` of them; 0 means 2⁶⁴.
template <typename T>
__device__ T integer(Draws draws, long long low, long long range) {
    const unsigned long long bits = (unsigned long long)draws.a << 32 | draws.b;
    const unsigned long long offset = range == 0 ? bits : bits % (unsigned long long)range;
    return (T)(long long)((unsigned long long)low + offset);
}

#define FILL(name, function, Number, suffix, T)                                                                 \
    extern "C" __global__ void name##_##suffix(OUTPUT(T, out), long long seed, long long first, Number a, Number b) { \
        from_position([=](long long i) { return function(draw(seed, first, i), a, b); }, out, out_view);        \
    }

#define UNIFORM(name, suffix, T) FILL(name, (uniform<T>), double, suffix, T)
#define NORMAL(name, suffix, T) FILL(name, (normal<calculated<T>>), double, suffix, T)
#define RANDOM(name, suffix, T) FILL(name, (integer<calculated<T>>), long long, suffix, T)

FOR_FLOATS(UNIFORM, uniform)
FOR_FLOATS(NORMAL, normal)
FOR_NUMBERS(RANDOM, random)

// 1 with the probability given by each element of x, else 0.
extern "C" __global__ void bernoulli(INPUT(double, x), OUTPUT(unsigned char, out), long long seed, long long first) {
    const Input<double> probability = READ(x);
    from_position(
        [&](long long i) -> unsigned char {
            const double p = probability[i];
            assert(p >= 0 && p <= 1);
            return unit<double>(draw(seed, first, i)) < p;
        },
        out, out_view);
}
