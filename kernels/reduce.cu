// Sums of rows.
//
// A floating point sum depends on the order of its additions, so the order is part of the operation, the same
// as on the CPU (tensor/src/ops/reduce/tree.rs). Elements are taken 1024 to a chunk.
//
// - Within a chunk, lane j of 32 adds elements j, j + 32, j + 64, … in order. Then lane j takes in lane j + 16,
//   then j + 8, j + 4, j + 2, j + 1. A lane without elements takes no part: a sum of −0.0 alone is −0.0.
// - The sums of the chunks are summed in the same way, until one is left.
//
// The order was made for this hardware: a lane is a thread of a warp, and the 32 threads of a warp read 32
// neighbouring elements at a time.
#include "common.cuh"

constexpr int LANES = 32;
constexpr int CHUNK = 1024;
constexpr unsigned int ALL_LANES = 0xffffffff;

// The sum of up to 1024 elements, made by one warp. All its threads have to come along. Lane 0 gets the sum,
// the others something in between.
template <typename T, typename Element>
__device__ T chunk(long long count, Element element) {
    const int lane = threadIdx.x % LANES;
    T sum = lane < count ? element(lane) : T(0);
    for (long long i = lane + LANES; i < count; i += LANES) {
        sum += element(i);
    }
    // A shuffle hands a register to another thread of the warp, without any memory in between: here every
    // lane gets the sum of the one `width` further on.
    for (int width = LANES / 2; width > 0; width /= 2) {
        const T other = __shfl_down_sync(ALL_LANES, sum, width);
        if (lane + width < count) {
            sum += other;
        }
    }
    return sum;
}

__device__ inline long long divide_up(long long a, long long b) { return (a + b - 1) / b; }

__device__ inline long long at_most(long long limit, long long count) { return count < limit ? count : limit; }

// One block sums one row, a warp one chunk of it: so a block has a multiple of 32 threads, best one warp for
// each chunk. The rows of `x` are its first dimensions, each row `length` elements.
template <typename T>
__device__ void sum_rows(const T *x, T x_value, const View &x_view, T *out, const View &out_view,
                         long long length) {
    // The levels of the tree above the elements. A row has up to 128 · 2³⁰ elements: no GPU holds more.
    __shared__ T chunks[CHUNK];  // sums of 2¹⁰ elements each
    __shared__ T groups[CHUNK];  // sums of 2²⁰
    __shared__ T largest[128];   // sums of 2³⁰

    const int lane = threadIdx.x % LANES;
    const int warp = threadIdx.x / LANES;
    const int warps = blockDim.x / LANES;
    const long long rows = elements(out_view);
    const long long all_chunks = divide_up(length, CHUNK);
    const long long all_groups = divide_up(all_chunks, CHUNK);

    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        for (long long group = 0; group < all_groups; group++) {
            // The warps take the chunks of this group in turn.
            const long long in_group = at_most(CHUNK, all_chunks - group * CHUNK);
            for (long long i = warp; i < in_group; i += warps) {
                const long long start = (group * CHUNK + i) * CHUNK;
                const T sum = chunk<T>(at_most(CHUNK, length - start), [&](long long j) {
                    return load(x, x_value, x_view, row * length + start + j);
                });
                if (lane == 0) {
                    chunks[i] = sum;
                }
            }
            // One warp sums the chunks' sums, once all warps have written theirs …
            __syncthreads();
            if (warp == 0) {
                const T sum = chunk<T>(in_group, [&](long long i) { return chunks[i]; });
                if (lane == 0) {
                    groups[group % CHUNK] = sum;
                }
                __syncwarp(); // The other lanes are about to read what lane 0 wrote.
                // … and the groups' sums when there are 1024 of them, or no more to come.
                if (group % CHUNK == CHUNK - 1 || group == all_groups - 1) {
                    const T sum = chunk<T>(group % CHUNK + 1, [&](long long i) { return groups[i]; });
                    if (lane == 0) {
                        largest[group / CHUNK] = sum;
                    }
                    __syncwarp();
                }
            }
            // No warp may write the next chunk's sum over one that has not been read.
            __syncthreads();
        }
        if (warp == 0) {
            const T sum = chunk<T>(divide_up(all_groups, CHUNK), [&](long long i) { return largest[i]; });
            if (lane == 0) {
                out[position(out_view, row)] = sum;
            }
        }
    }
}

// The same for rows that are long and few: one block each would leave most of the GPU idle. So a warp sums a chunk,
// whatever row it belongs to, and a second launch, of the kernel above, sums the chunks' sums of each row.
template <typename T>
__device__ void sum_chunks(const T *x, T x_value, const View &x_view, T *out, const View &out_view,
                           long long length) {
    const long long chunks = divide_up(length, CHUNK);
    const long long warps = (long long)gridDim.x * (blockDim.x / LANES);
    const long long first = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    for (long long c = first; c < elements(out_view); c += warps) {
        const long long start = c % chunks * CHUNK;
        const T sum = chunk<T>(at_most(CHUNK, length - start), [&](long long j) {
            return load(x, x_value, x_view, c / chunks * length + start + j);
        });
        if (threadIdx.x % LANES == 0) {
            out[position(out_view, c)] = sum;
        }
    }
}

extern "C" __global__ void sum_f32(INPUT(float, x), OUTPUT(float, out), long long length) {
    sum_rows(x, x_value, x_view, out, out_view, length);
}

extern "C" __global__ void sum_f64(INPUT(double, x), OUTPUT(double, out), long long length) {
    sum_rows(x, x_value, x_view, out, out_view, length);
}

extern "C" __global__ void sum_chunks_f32(INPUT(float, x), OUTPUT(float, out), long long length) {
    sum_chunks(x, x_value, x_view, out, out_view, length);
}

extern "C" __global__ void sum_chunks_f64(INPUT(double, x), OUTPUT(double, out), long long length) {
    sum_chunks(x, x_value, x_view, out, out_view, length);
}
