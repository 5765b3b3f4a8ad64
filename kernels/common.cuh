// Shared code of all kernels: the memory layout of tensors, and the elements that each thread takes.
//
// A kernel takes, for each input of type T, `const T* x, T x_value, View x_view`, and for each output `T* y,
// View y_view`. The macros INPUT and OUTPUT declare these parameters, so that every kernel agrees with the
// launches of the tensor crate.
#pragma once

#include "half.cuh"

// The memory layout of a tensor. Sizes and strides count elements, as in PyTorch. A broadcast dimension has
// stride 0. A tensor without dimensions is a scalar: one element.
//
// It is passed by value, so a launch needs no device memory for it; hence the fixed limit of 8 dimensions.
struct View {
    long long ndim;
    long long size[8];
    long long stride[8];
};

// `__grid_constant__`: the view is the same for all threads and never written, so they read it in the parameter
// memory. Otherwise, each thread might make its own copy to look up `size[dim]`.
#define INPUT(T, x) const T *x, const T x##_value, const __grid_constant__ View x##_view
#define OUTPUT(T, y) T *y, const __grid_constant__ View y##_view

// The loops over the dimensions are short, and there is one for each operand of each kernel. Unrolled, they
// would make up most of the program, so `#pragma unroll 1` prevents that.

// The number of elements.
__device__ inline long long elements(const View &view) {
    long long count = 1;
#pragma unroll 1
    for (int dim = 0; dim < view.ndim; dim++) {
        count *= view.size[dim];
    }
    return count;
}

// The position of element `index`, counted in row-major order. The last dimension varies fastest, so it is
// split off first: the remainder is its coordinate, and the quotient is the index into the other dimensions. A
// division takes about as long as dozens of additions, so there is only one per dimension, which gives the
// remainder too. The first dimension takes the final quotient, so a view with one dimension needs no division.
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

// A scalar input has no memory on the device: its pointer is null, and its value comes with the launch. All
// threads of a launch take the same branch, so the test is cheap.
template <typename T> struct Input {
    const T *x;
    T value;
    const View &view;

    // Element `index`, counted in row-major order.
    __device__ T operator[](long long index) const {
        return x == nullptr ? value : x[position(view, index)];
    }
};
template <typename T> Input(const T *, T, const View &) -> Input<T>;

// Input{x, x_value, x_view}
#define READ(x) Input{x, x##_value, x##_view}

// The first element of a thread, and the distance to its next one: a grid-stride loop,
//
//     for (long long i = first_element(); i < n; i += all_threads())
//
// It works for any number of blocks, and adjacent threads take adjacent elements, which the hardware fetches
// together. The product is 64-bit: in 32 bits it would overflow on large tensors.
__device__ inline long long first_element() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline long long all_threads() {
    return (long long)gridDim.x * blockDim.x;
}

// The name of each type in kernel names, for a kernel of every type.
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

// In C++ signed integers must not overflow; unsigned ones wrap around. So integer arithmetic uses unsigned
// types, which gives the same bits. Floats are used as they are.
template <typename T> struct Wrapping { using type = T; };
template <> struct Wrapping<long long> { using type = unsigned long long; };
template <> struct Wrapping<int> { using type = unsigned int; };
template <> struct Wrapping<unsigned char> { using type = unsigned int; };
template <typename T> using wrapping = typename Wrapping<T>::type;

// Whether a type is floating-point: only then is 1/2 not 0.
template <typename T> constexpr bool is_float = calculated<T>(1) / calculated<T>(2) != calculated<T>(0);

// a · b + c, rounded once. The compiler does not fuse operations itself (`--fmad=false`), so there is a fused
// multiply-add exactly where PyTorch has one.
__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <typename T> __device__ T infinity();
template <> __device__ inline float infinity() { return __int_as_float(0x7f800000); }
template <> __device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000); }
