// A convolution without cuDNN is a product of matrices, of the weight and of all that the kernel covers: im2col writes
// that out, col2im takes it back, which is its gradient.
//
// An image of 64×56×56 under a kernel of 3×3 becomes a matrix nine times as large. That is why libraries read the
// image in place instead ("implicit gemm").
#include "common.cuh"
#include "windows.cuh"

// A thread for each element of the columns: which element of the kernel at which position, hence which pixel.
template <typename T>
__device__ void im2col(const T *image, T *columns, long long n, const Windows &down, const Windows &across) {
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long positions = down.count * across.count, position = i % positions, row = i / positions;
        const long long y = down.element(position / across.count, row / across.kernel % down.kernel);
        const long long x = across.element(position % across.count, row % across.kernel);
        const long long channel = row / (down.kernel * across.kernel);
        const bool inside = down.inside(y) && across.inside(x);
        columns[i] = inside ? image[(channel * down.size + y) * across.size + x] : (T)0;
    }
}

// A thread for each pixel: it looks up which positions have covered it, in the order of the kernel's elements. The
// other way round, each element of the columns adding itself, needs atomics, and would add in whatever order.
template <typename T>
__device__ void col2im(const T *columns, T *image, long long n, const Windows &down, const Windows &across) {
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long line = i / across.size, x = i % across.size, y = line % down.size, channel = line / down.size;
        calculated<T> sum = 0;
        for (long long r = 0; r < down.kernel; r++) {
            const long long top = down.over(y, r);
            if (top < 0) {
                continue;
            }
            for (long long s = 0; s < across.kernel; s++) {
                const long long left = across.over(x, s);
                if (left < 0) {
                    continue;
                }
                const long long row = (channel * down.kernel + r) * across.kernel + s;
                sum = sum + columns[(row * down.count + top) * across.count + left];
            }
        }
        image[i] = sum;
    }
}

#define CONV(name, suffix, T)                                                             \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), WINDOWS) {     \
        name(x, out, elements(out_view), down, across);                                   \
    }

#define CONVOLUTION(name, suffix, T) CONV(im2col, suffix, T) CONV(col2im, suffix, T)

FOR_FLOATS(CONVOLUTION, conv)
