// Reductions over a row of scores, for softmax and cross entropy.
#pragma once

#include "double.cuh"
#include "math.cuh"
#include "tree.cuh"

// The larger of two numbers, NaN if either is.
struct Larger {
    template <typename T> static __device__ T nothing() { return -infinity<T>(); }
    template <typename T> static __device__ T combine(T a, T b) { return a > b || a != a ? a : b; }
};

// The largest score, and the sum of the exponentials of all scores minus the largest, so that none overflows.
template <typename C> struct Exponentials {
    C largest, total;
};

template <typename T, typename Threads, typename C = calculated<T>>
__device__ Exponentials<C> exponentials(const T *row, long long length, Threads threads) {
    const C largest = threads.template reduce<Larger>(length, [&](long long i) { return row[i]; });
    const C total = threads.template reduce<Sum>(length, [&](long long i) { return math::exp(row[i] - largest); });
    return {largest, total};
}
