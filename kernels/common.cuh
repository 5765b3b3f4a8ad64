// What all kernels share: where the elements of a tensor are, and which thread takes which of them.
//
// A kernel takes, for each input of type T, `const T* x, T x_value, View x_view`, and for each output
// `T* y, View y_view`. The macros INPUT and OUTPUT write that down, so that every kernel agrees with the
// launches of the tensor crate.
#pragma once

#include "half.cuh"

// How a tensor lies in memory. Sizes and strides count elements, as in PyTorch. A broadcast dimension has
// stride 0. A tensor without dimensions is a number: one element.
//
// It is passed by value, so a launch needs no memory on the device for it; hence the fixed 8 dimensions.
struct View {
    long long ndim;
    long long size[8];
    long long stride[8];
};

// `__grid_constant__`: the view is the same for all threads and never written, so they read it where the
// launch put it. Without this, each thread could make a copy of its own to look up `size[dim]`.
#define INPUT(T, x) const T *x, const T x##_value, const __grid_constant__ View x##_view
#define OUTPUT(T, y) T *y, const __grid_constant__ View y##_view

// The loops over the dimensions are short, and there is one for each operand of each kernel. Unrolled by the
// compiler they would be most of the program: `#pragma unroll 1` says not to.

// How many elements there are.
__device__ inline long long elements(const View &view) {
    long long count = 1;
#pragma unroll 1
    for (int dim = 0; dim < view.ndim; dim++) {
        count *= view.size[dim];
    }
    return count;
}

// Where element `index`, counted row by row, is. The last dimension counts fastest, so it comes off first:
// the remainder is its coordinate, the quotient what is left for the others. A division takes about as long as
// dozens of additions, so there is but one for a dimension, from which the remainder follows too. And the first
// dimension takes all that is left, so a view with one dimension needs none.
__device__ inline long long position(const View &view, long long index) {
    if (view.ndim == 0) {
        return 0;
    }
    long long position = 0;
#pragma unroll 1
    for (int dim = (int)view.ndim - 1; dim > 0; dim--) {
        const long long rest = (long long)((unsigned long long)index / (unsigned long long)view.size[dim]);
        position += (index - rest * view.size[dim]) * view.stride[dim];
        index = rest;
    }
    return position + index * view.stride[0];
}

// An input that is a number has no memory on the device: its pointer is null, and the number came with the launch.
// All threads of a launch take the same way, so the question is cheap.
template <typename T> struct Input {
    const T *x;
    T value;
    const View &view;

    // Element `index`, counted row by row.
    __device__ T operator[](long long index) const {
        return x == nullptr ? value : x[position(view, index)];
    }
};
template <typename T> Input(const T *, T, const View &) -> Input<T>;

// Input{x, x_value, x_view}
#define READ(x) Input{x, x##_value, x##_view}

// Which element a thread takes first, and how far its next one is: a grid-stride loop,
//
//     for (long long i = first_element(); i < n; i += all_threads())
//
// It is right for any number of blocks, and neighbouring threads take neighbouring elements, which the
// hardware then fetches together. The product is made in 64 bits: in 32 it overflows on large tensors.
__device__ inline long long first_element() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline long long all_threads() {
    return (long long)gridDim.x * blockDim.x;
}

// What each type is called in the name of a kernel, for a kernel of every type.
#define FOR_FLOATS(KERNEL, ...) \
    KERNEL(__VA_ARGS__, f32, float) \
    KERNEL(__VA_ARGS__, f64, double) \
    FOR_HALVES(KERNEL, __VA_ARGS__)

#define FOR_HALVES(KERNEL, ...) \
    KERNEL(__VA_ARGS__, f16, f16) \
    KERNEL(__VA_ARGS__, bf16, bf16)

#define FOR_INTEGERS(KERNEL, ...) \
    KERNEL(__VA_ARGS__, i64, long long) \
    KERNEL(__VA_ARGS__, i32, int) \
    KERNEL(__VA_ARGS__, u8, unsigned char)

#define FOR_NUMBERS(KERNEL, ...) \
    FOR_FLOATS(KERNEL, __VA_ARGS__) \
    FOR_INTEGERS(KERNEL, __VA_ARGS__)

// In C++ a signed integer must not overflow; an unsigned one wraps around. So integers are calculated with as
// unsigned ones, which gives the same bits. Floats are taken as they are.
template <typename T> struct Wrapping { using type = T; };
template <> struct Wrapping<long long> { using type = unsigned long long; };
template <> struct Wrapping<int> { using type = unsigned int; };
template <> struct Wrapping<unsigned char> { using type = unsigned int; };
template <typename T> using wrapping = typename Wrapping<T>::type;

// Whether a type has fractions: only then is half of one not nothing.
template <typename T> constexpr bool is_float = calculated<T>(1) / calculated<T>(2) != calculated<T>(0);

// a · b + c, rounded once. The compiler is told to fuse nothing by itself (`--fmad=false`), so a fused
// multiply-add is where PyTorch has one, and nowhere else.
__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <typename T> __device__ T infinity();
template <> __device__ inline float infinity() { return __int_as_float(0x7f800000); }
template <> __device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000); }
