// A convolution without cuDNN is a product of matrices, of the weight and of all that the kernel covers: im2col writes
// that out, col2im takes it back, which is its gradient.
//
// An image of 64×56×56 under a kernel of 3×3 becomes a matrix nine times as large. That is why libraries read the
// image in place instead ("implicit gemm").
#include "common.cuh"

// Height and width of the image, of the kernel and of the result, and how the kernel moves.
struct Sizes {
    long long h, w, r, s, p, q, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
};

// A thread for each element of the columns: which element of the kernel at which position, hence which pixel.
template <typename T> __device__ void im2col(const T *image, T *columns, long long n, const Sizes &z) {
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long position = i % (z.p * z.q), row = i / (z.p * z.q);
        const long long y = position / z.q * z.stride_h + row / z.s % z.r * z.dilation_h - z.padding_h;
        const long long x = position % z.q * z.stride_w + row % z.s * z.dilation_w - z.padding_w;
        const bool inside = y >= 0 && y < z.h && x >= 0 && x < z.w;
        const long long channel = row / (z.r * z.s);
        columns[i] = inside ? image[(channel * z.h + y) * z.w + x] : (T)0;
    }
}

// A thread for each pixel: it looks up which positions have covered it, in the order of the kernel's elements. The
// other way round, each element of the columns adding itself, needs atomics, and would add in whatever order.
template <typename T> __device__ void col2im(const T *columns, T *image, long long n, const Sizes &z) {
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long x = i % z.w, y = i / z.w % z.h, channel = i / (z.w * z.h);
        calculated<T> sum = 0;
        for (long long r = 0; r < z.r; r++) {
            const long long top = y + z.padding_h - r * z.dilation_h;
            if (top < 0 || top % z.stride_h != 0 || top / z.stride_h >= z.p) {
                continue;
            }
            for (long long s = 0; s < z.s; s++) {
                const long long left = x + z.padding_w - s * z.dilation_w;
                if (left < 0 || left % z.stride_w != 0 || left / z.stride_w >= z.q) {
                    continue;
                }
                const long long row = (channel * z.r + r) * z.s + s;
                sum = sum + columns[row * z.p * z.q + top / z.stride_h * z.q + left / z.stride_w];
            }
        }
        image[i] = sum;
    }
}

#define CONV(name, suffix, T)                                                                                       \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), long long h, long long w, long long r,  \
                                               long long s, long long p, long long q, long long stride_h,           \
                                               long long stride_w, long long padding_h, long long padding_w,        \
                                               long long dilation_h, long long dilation_w) {                        \
        name(x, out, elements(out_view),                                                                            \
             {h, w, r, s, p, q, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w});                 \
    }

#define CONVOLUTION(name, suffix, T) CONV(im2col, suffix, T) CONV(col2im, suffix, T)

FOR_FLOATS(CONVOLUTION, conv)
