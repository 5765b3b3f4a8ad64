// What the host halves of the puzzles share: inputs, memory of the device, and the comparison with the CPU's result.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

// The judge gives other values, for other inputs.
#ifndef SCALE
#define SCALE 1
#endif
#ifndef SHIFT
#define SHIFT 0
#endif

// Element i of an input. With small whole numbers, a sum has the same bits in any order.
inline float value(int i, int seed) {
    return (float)((i * 7 + i / 5 * 3 + seed * 13) % 23 - 11) * SCALE + SHIFT;
}

inline std::vector<float> values(int count, int seed) {
    std::vector<float> all(count);
    for (int i = 0; i < count; i++) all[i] = value(i, seed);
    return all;
}

// Copies an input to the device. The memory is freed at the end of the program.
template <typename T> T *to_device(const std::vector<T> &host) {
    T *device;
    cudaMalloc(&device, host.size() * sizeof(T));
    cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
    return device;
}

// Memory for an output. Nothing has been written to it; with FILL, its bytes are 0xff.
template <typename T> T *output(int count) {
    T *device;
    cudaMalloc(&device, count * sizeof(T));
#ifdef FILL
    cudaMemset(device, 0xff, count * sizeof(T));
#endif
    return device;
}

// Memory for counts and sums, which starts with zeros.
template <typename T> T *zeros(int count) {
    T *device;
    cudaMalloc(&device, count * sizeof(T));
    cudaMemset(device, 0, count * sizeof(T));
    return device;
}

// Whether nothing has written an element, which a run with FILL can tell.
template <typename T> bool is_unwritten(const T &element) {
#ifdef FILL
    unsigned int bits;
    memcpy(&bits, &element, sizeof(bits));
    return bits == 0xffffffffu;
#else
    return false;
#endif
}

// Compares an output with the CPU's result and prints how many elements are right. `columns` is that of a matrix.
// Returns 0 if all are right.
template <typename T>
int compare(const T *device, const std::vector<T> &wanted, int columns = 0, float tolerance = 0) {
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        printf("error: %s\n", cudaGetErrorString(error));
        return 1;
    }
    const int count = (int)wanted.size();
    std::vector<T> found(count);
    cudaMemcpy(found.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
    int wrong = 0, first = -1;
    for (int i = 0; i < count; i++) {
        const float difference = fabsf((float)found[i] - (float)wanted[i]);
        // A comparison with NaN is false.
        if (!(difference <= tolerance * fabsf((float)wanted[i]))) {
            wrong++;
            if (first < 0 || (is_unwritten(found[i]) && !is_unwritten(found[first]))) first = i;
        }
    }
    if (wrong > 0) {
        if (columns > 0) {
            printf("first wrong: out[%d][%d]", first / columns, first % columns);
        } else {
            printf("first wrong: out[%d]", first);
        }
        if (is_unwritten(found[first])) {
            printf(" was never written");
        } else {
            printf(" = %g", (float)found[first] + 0.0f);
        }
        // -0 + 0 is 0.
        printf(", should be %g\n", (float)wanted[first] + 0.0f);
    }
    printf("wrong: %d of %d\n", wrong, count);
    return wrong > 0;
}
