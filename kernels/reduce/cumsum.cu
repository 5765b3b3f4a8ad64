// Cumulative sums.
#include "tree.cuh"

// The cumulative sums of rows along the last dimension; or, in reverse, the sums of all remaining elements.
// Both tensors are contiguous. A warp takes a row, 32 elements at a time: each lane adds the sum 1 lane before
// it, then those 2, 4, 8 and 16 lanes before it; finally all add the sum of everything before these 32. Floats
// are summed as doubles, and each sum is rounded once.
template <bool FIRST, typename A, typename B> struct Either { using type = A; };
template <typename A, typename B> struct Either<false, A, B> { using type = B; };

template <typename T>
__device__ void cumsum(const T *x, T *out, const View &view, bool from_the_end) {
    using C = calculated<T>;
    using Wide = typename Either<is_float<T>, double, long long>::type;
    const long long length = view.ndim == 0 ? 1 : view.size[view.ndim - 1];
    const long long rows = elements(view) / length;
    const int lane = threadIdx.x % LANES;
    for (long long row = first_element() / LANES; row < rows; row += all_threads() / LANES) {
        Wide before = 0;
        for (long long start = 0; start < length; start += LANES) {
            const long long i = start + lane;
            const long long at = row * length + (from_the_end ? length - 1 - i : i);
            Wide sum = i < length ? (Wide)(C)x[at] : 0;
            for (int distance = 1; distance < LANES; distance *= 2) {
                const Wide other = __shfl_up_sync(ALL_LANES, sum, distance);
                if (lane >= distance) {
                    sum = Sum::combine(sum, other);
                }
            }
            sum = Sum::combine(sum, before);
            if (i < length) {
                out[at] = (C)sum;
            }
            before = from_lane(sum, LANES - 1);
        }
    }
}

#define CUMSUM(name, suffix, T)                                                                                   \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), long long from_the_end) {             \
        cumsum(x, out, out_view, from_the_end != 0);                                                              \
    }

FOR_FLOATS(CUMSUM, cumsum)
CUMSUM(cumsum, i64, long long)
