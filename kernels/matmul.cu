// Matrix products of integers. cuBLAS computes those of floats.
#include "common.cuh"

// One thread calculates one element of the result: a row of `a` times a column of `b`. Integer products are
// rare here, so this is the simple version, which reads each number as often as it is used.
template <typename T>
__device__ void mm(const T *a, const View &a_view, const T *b, const View &b_view, T *out, const View &out_view,
                   bool accumulate) {
    // A batch of matrices has one more dimension.
    const int row_dim = (int)a_view.ndim - 2, b_row_dim = (int)b_view.ndim - 2;
    const long long m = out_view.size[out_view.ndim - 2], n = out_view.size[out_view.ndim - 1];
    const long long k = a_view.size[row_dim + 1];
    const long long a_row = a_view.stride[row_dim], a_column = a_view.stride[row_dim + 1];
    const long long b_row = b_view.stride[b_row_dim], b_column = b_view.stride[b_row_dim + 1];
    const long long a_matrix = row_dim > 0 ? a_view.stride[0] : 0;
    const long long b_matrix = b_row_dim > 0 ? b_view.stride[0] : 0;

    const long long all = elements(out_view);
    for (long long i = first_element(); i < all; i += all_threads()) {
        const long long batch = i / (m * n), row = i / n % m, column = i % n;
        const T *from_a = a + batch * a_matrix + row * a_row;
        const T *from_b = b + batch * b_matrix + column * b_column;
        wrapping<T> sum = accumulate ? (wrapping<T>)out[i] : 0;
        for (long long j = 0; j < k; j++) {
            sum += (wrapping<T>)from_a[j * a_column] * (wrapping<T>)from_b[j * b_row];
        }
        out[i] = (T)sum;
    }
}

#define MM(name, suffix, T)                                                                                        \
    extern "C" __global__ void name##_##suffix(INPUT(T, a), INPUT(T, b), OUTPUT(T, out), long long accumulate) {   \
        mm(a, a_view, b, b_view, out, out_view, accumulate != 0);                                                  \
    }

FOR_INTEGERS(MM, mm)
