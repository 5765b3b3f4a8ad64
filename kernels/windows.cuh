// The windows that a convolution or pooling slides over a plane.
#pragma once

// The windows along one dimension of `size` elements.
struct Windows {
    long long kernel, stride, padding, dilation, size, count;

    // The start of window o, possibly before the first element.
    __device__ long long start(long long o) const { return o * stride - padding; }

    // The position of element k of window o, which may be outside.
    __device__ long long element(long long o, long long k) const { return start(o) + k * dilation; }
    __device__ bool inside(long long i) const { return i >= 0 && i < size; }

    // The window whose element k is element i; −1 if there is none.
    __device__ long long over(long long i, long long k) const {
        const long long start = i + padding - k * dilation;
        return start >= 0 && start % stride == 0 && start / stride < count ? start / stride : -1;
    }

    // The elements of window o without dilation: from `first` up to, but not including, `end`.
    __device__ long long first(long long o) const { return start(o) > 0 ? start(o) : 0; }
    __device__ long long end(long long o) const { return start(o) + kernel < size ? start(o) + kernel : size; }

    // The number of its elements, including padding. Positions beyond the padding do not count.
    __device__ long long padded_elements(long long o) const {
        const long long end = start(o) + kernel, last = size + padding;
        return (end < last ? end : last) - start(o);
    }

    // The windows that may contain element i: from `first_over` up to, but not including, `end_over`.
    __device__ long long first_over(long long i) const {
        const long long beyond = i + padding - ((kernel - 1) * dilation + 1);
        return beyond < 0 ? 0 : beyond / stride + 1;
    }
    __device__ long long end_over(long long i) const {
        const long long end = (i + padding) / stride + 1;
        return end < count ? end : count;
    }
};

// The windows of a plane, as kernel parameters.
#define WINDOWS const __grid_constant__ Windows down, const __grid_constant__ Windows across
