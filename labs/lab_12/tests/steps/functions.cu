// Templates, calls within calls, a method, a lambda, references, and functions of the headers, which are one step.
#include <algorithm>
#include <cuda_fp16.h>

struct Scale {
    float by;
    __device__ float operator()(float x) const { return x * by; }
};

template <int N>
__device__ float power(float x) {
    if constexpr (N == 0) {
        return 1.0f;
    } else {
        return x * power<N - 1>(x);
    }
}

__device__ void swap_them(float &a, float &b) {
    float t = a;
    a = b;
    b = t;
}

template <typename T, int SIZE>
__global__ void calls(T *out, Scale scale) {
    T a = scale(threadIdx.x), b = power<2>(a);
    swap_them(a, b);
    auto larger = [=](T limit) { return max(a, limit); };
    T c = larger(2.0f) + std::min(b, 1.0f);
    __half half = __float2half(c);
    T parts[SIZE] = {a, b};
    parts[SIZE - 1] = c;
    T *end = &parts[SIZE];
    for (T *at = parts; at < end; at++) out[threadIdx.x] += *at;
    if (half > __float2half(100.0f)) return;
    out[threadIdx.x + 4] = c;
}

int main() {
    float *out;
    cudaMalloc(&out, 8 * sizeof(float));
    cudaMemset(out, 0, 8 * sizeof(float));
    calls<float, 3><<<1, 4>>>(out, Scale{3.0f});
    cudaDeviceSynchronize();
    cudaFree(out);
}
