// A convolution without cuDNN is a matrix product of the weight and of all patches that the kernel covers:
// im2col writes out the patches, and col2im, its gradient, sums them back.
//
// A 64×56×56 image with a 3×3 kernel becomes a matrix nine times as large. That is why libraries read the image
// in place instead ("implicit gemm").
#include "common.cuh"
#include "windows.cuh"

// One thread per element of the columns: the kernel element and position determine the pixel.
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

// One thread per pixel: it finds the positions that cover it, in the order of the kernel's elements. If instead
// each element of the columns added itself, that would need atomics, and the order of additions would be
// arbitrary.
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
