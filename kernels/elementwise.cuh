// The loop of kernels that compute each element of the output from the same element of each input.
//
// Such a kernel does hardly anything but read and write, so it runs at the speed of memory. Contiguous elements
// are moved 16 bytes at a time, the maximum of one instruction, which takes a quarter of the instructions for
// floats. Other layouts are moved element by element.
#pragma once

#include "common.cuh"

// Some adjacent elements. `alignas` makes it a single load or store.
template <typename T, int N> struct alignas(sizeof(T) * N) Pack {
    T at[N];
};

// Whether elements are adjacent, and the first is aligned for a pack. The launch reduces a view to as few
// dimensions as possible, so elements are adjacent exactly if there is one dimension with stride 1.
template <int N, typename T>
__device__ inline bool packed(const T *x, const View &view) {
    return view.ndim == 1 && view.stride[0] == 1 && (unsigned long long)x % sizeof(Pack<T, N>) == 0;
}

// A scalar needs no memory at all.
template <int N, typename T>
__device__ inline bool packed(const Input<T> &in) {
    return in.x == nullptr || packed<N>(in.x, in.view);
}

template <int N, typename T>
__device__ inline Pack<T, N> load_pack(const Input<T> &in, long long index) {
    if (in.x != nullptr) {
        return reinterpret_cast<const Pack<T, N> *>(in.x)[index];
    }
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; i++) {
        pack.at[i] = in.value;
    }
    return pack;
}

template <int N, typename F, typename O, typename... I>
__device__ inline void store_pack(F f, O *out, long long index, const Pack<I, N> &...in) {
    Pack<O, N> pack;
#pragma unroll
    for (int i = 0; i < N; i++) {
        pack.at[i] = f(in.at[i]...);
    }
    reinterpret_cast<Pack<O, N> *>(out)[index] = pack;
}

__device__ constexpr int largest(int a) { return a; }
template <typename... Rest> __device__ constexpr int largest(int a, int b, Rest... rest) {
    return largest(a > b ? a : b, rest...);
}

// out[i] = f(in[i]…). The output may be one of the inputs: only the thread that overwrites an element reads it.
template <typename F, typename O, typename... I>
__device__ inline void elementwise(F f, O *out, const View &out_view, Input<I>... in) {
    constexpr int N = 16 / largest(sizeof(O), sizeof(I)...);
    const long long n = elements(out_view);
    long long done = 0;
    if (packed<N>(out, out_view) && (packed<N>(in) && ... && true)) {
        for (long long i = first_element(); i < n / N; i += all_threads()) {
            store_pack<N>(f, out, i, load_pack<N>(in, i)...);
        }
        done = n / N * N; // The rest is less than a pack.
    }
    for (long long i = done + first_element(); i < n; i += all_threads()) {
        out[position(out_view, i)] = f(in[i]...);
    }
}

// out[i] = f(i)
template <typename F, typename O>
__device__ inline void from_position(F f, O *out, const View &out_view) {
    const long long n = elements(out_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        out[position(out_view, i)] = f(i);
    }
}

// The launch looks a kernel up by name, so it cannot be a template: `extern "C"` keeps its name in the program
// as written here. The macros write the same kernel for every operation and dtype; the function with the
// operation's name in the namespace `element` computes one element, taking halves as floats.
//
// MAP(add, f32, float, float, float) names the types of the output and of each input, of which there may be up
// to four. It is
//
//     add_f32(const float *a, float a_value, View a_view, const float *b, float b_value, View b_view,
//             float *out, View out_view)
#define MAP(operation, suffix, O, ...) MAP_BY(CALCULATED(element::operation), operation##_##suffix, O, __VA_ARGS__)

// A half is converted to the float used for arithmetic, any other number is unchanged.
#define CALCULATED(function) [](auto... x) { return function(calculated<decltype(x)>(x)...); }

// The same with a function that takes elements as they are. Each type shifts the names by one, so the fifth
// name is the macro for that number of inputs.
#define MAP_BY(function, name, O, ...) \
    FIFTH(__VA_ARGS__, MAP_4, MAP_3, MAP_2, MAP_1, )(function, name, O, __VA_ARGS__)

#define FIFTH(a, b, c, d, e, ...) e

#define MAP_1(function, name, O, A)                                \
    extern "C" __global__ void name(INPUT(A, a), OUTPUT(O, out)) { \
        elementwise(function, out, out_view, READ(a));             \
    }
#define MAP_2(function, name, O, A, B)                                          \
    extern "C" __global__ void name(INPUT(A, a), INPUT(B, b), OUTPUT(O, out)) { \
        elementwise(function, out, out_view, READ(a), READ(b));                 \
    }
#define MAP_3(function, name, O, A, B, C)                                                    \
    extern "C" __global__ void name(INPUT(A, a), INPUT(B, b), INPUT(C, c), OUTPUT(O, out)) { \
        elementwise(function, out, out_view, READ(a), READ(b), READ(c));                     \
    }
#define MAP_4(function, name, O, A, B, C, D)                                                              \
    extern "C" __global__ void name(INPUT(A, a), INPUT(B, b), INPUT(C, c), INPUT(D, d), OUTPUT(O, out)) { \
        elementwise(function, out, out_view, READ(a), READ(b), READ(c), READ(d));                         \
    }

#define UNARY(operation, suffix, T) MAP(operation, suffix, T, T)
#define BINARY(operation, suffix, T) MAP(operation, suffix, T, T, T)
