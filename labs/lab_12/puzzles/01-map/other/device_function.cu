// A device function and a template.
template <typename T> __device__ T plus_ten(T x) { return x + T(10); }

__global__ void add_ten(const float *__restrict__ a, float *__restrict__ out) {
    const unsigned int i = threadIdx.x + blockDim.x * blockIdx.x;
    out[i] = plus_ten(__ldg(&a[i]));
}
