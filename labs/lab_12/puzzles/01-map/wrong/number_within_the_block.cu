// Fails: wrong elements, several blocks
// Every block works on the elements of the first.
__global__ void add_ten(const float *a, float *out) {
    int i = threadIdx.x;  // <-- here
    out[i] = a[i] + 10;
}
