// Reductions: a block or a warp combines many elements into one number.
//
// A floating-point sum depends on the order of its additions, so the order is part of the operation, the same
// as on the CPU (tensor/src/cpu/tree.rs). Elements are grouped into chunks of 1024.
//
// - Within a chunk, lane j of 32 combines elements j, j + 32, j + 64, … in order. Then lane j combines its
//   result with that of lane j + 16, then j + 8, j + 4, j + 2, j + 1. A lane without elements is skipped: a sum
//   of −0.0 alone is −0.0.
// - The results of the chunks are combined in the same way, until one is left.
//
// The order suits this hardware: a lane is a thread of a warp, and the 32 threads of a warp read 32 adjacent
// elements at a time.
#pragma once

#include "common.cuh"

constexpr int LANES = 32;
constexpr int CHUNK = 1024;
constexpr unsigned int ALL_LANES = 0xffffffff;

// Combines two numbers. An operation also defines the result of no elements.
struct Sum {
    template <typename T> static __device__ T nothing() { return 0; }
    template <typename T> static __device__ T combine(T a, T b) { return (T)((wrapping<T>)a + (wrapping<T>)b); }
};

__device__ inline long long divide_up(long long a, long long b) { return (a + b - 1) / b; }

// The number of elements in a chunk, out of `count`.
__device__ inline int in_chunk(long long count) { return count < CHUNK ? (int)count : CHUNK; }

// A shuffle passes a register to another thread of the warp, without going through memory.
template <typename T>
__device__ inline T from_lane(T value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }
template <typename T>
__device__ inline T from_lane_further_on(T value, int lanes) { return __shfl_down_sync(ALL_LANES, value, lanes); }
// Shuffles exist only for numbers of 32 or 64 bits.
__device__ inline unsigned char from_lane(unsigned char value, int lane) {
    return (unsigned char)from_lane((int)value, lane);
}
__device__ inline unsigned char from_lane_further_on(unsigned char value, int lanes) {
    return (unsigned char)from_lane_further_on((int)value, lanes);
}

// The result of up to 1024 elements, computed by one warp. All its threads must participate. Lane 0 gets the
// result, the others an intermediate value.
template <typename Operation, typename T, typename Element>
__device__ T chunk(int count, Element element) {
    const int lane = threadIdx.x % LANES;
    T result = lane < count ? (T)element(lane) : Operation::template nothing<T>();
    // Four concurrent loads hide some of the latency; more would make the program too long.
#pragma unroll 4
    for (int i = lane + LANES; i < count; i += LANES) {
        result = Operation::combine(result, (T)element(i));
    }
    for (int width = LANES / 2; width > 0; width /= 2) {
        const T other = from_lane_further_on(result, width);
        if (lane + width < count) {
            result = Operation::combine(result, other);
        }
    }
    return result;
}

// The same for adjacent elements anywhere in memory. `__noinline__`: it is called in several places, and need
// not be duplicated.
template <typename Operation, typename T>
__device__ __noinline__ calculated<T> chunk_in_order(int count, const T *elements) {
    return chunk<Operation, calculated<T>>(count, [=](int i) { return elements[i]; });
}

// The levels of the tree above the elements, in shared memory: the block writes them, and one warp reads them.
// A row has up to 128 · 2³⁰ elements, more than any GPU holds.
template <typename T> struct Levels {
    T chunks[CHUNK]; // results of 2¹⁰ elements each
    T groups[CHUNK]; // results of 2²⁰
    T largest[128];  // results of 2³⁰
    T all;
};

// The threads that work on a row: a warp, for a row of at most one chunk …
template <typename T> struct Warp {
    __device__ int first() const { return threadIdx.x % LANES; }
    __device__ int threads() const { return LANES; }

    // The result of a row, in all threads.
    template <typename Operation, typename Element>
    __device__ T reduce(long long length, Element element) const {
        return from_lane(chunk<Operation, T>((int)length, element), 0);
    }

    // The same, given `of_chunk(start, count)`, which returns the result of a chunk.
    template <typename Operation, typename OfChunk>
    __device__ T reduce_chunks(long long length, OfChunk of_chunk) const {
        return from_lane(of_chunk(0, (int)length), 0);
    }
};

// … or a block, whose warps take a chunk each.
template <typename T> struct Block {
    Levels<T> &levels;

    __device__ int first() const { return threadIdx.x; }
    __device__ int threads() const { return blockDim.x; }

    template <typename Operation, typename Element>
    __device__ T reduce(long long length, Element element) const {
        return reduce_chunks<Operation>(length, [&](long long start, int count) {
            return chunk<Operation, T>(count, [&](int i) { return element(start + i); });
        });
    }

    template <typename Operation, typename OfChunk>
    __device__ T reduce_chunks(long long length, OfChunk of_chunk) const {
        const int lane = threadIdx.x % LANES;
        const int warp = threadIdx.x / LANES;
        const int warps = blockDim.x / LANES;
        const long long all_chunks = divide_up(length, CHUNK);
        const long long all_groups = divide_up(all_chunks, CHUNK);

        for (long long group = 0; group < all_groups; group++) {
            // The warps take the chunks of this group in turn.
            const int in_group = in_chunk(all_chunks - group * CHUNK);
            for (int i = warp; i < in_group; i += warps) {
                const long long start = (group * CHUNK + i) * CHUNK;
                const T result = of_chunk(start, in_chunk(length - start));
                if (lane == 0) {
                    levels.chunks[i] = result;
                }
            }
            // One warp combines the chunks' results once all warps have written theirs …
            __syncthreads();
            if (warp == 0) {
                const T result = chunk_in_order<Operation>(in_group, levels.chunks);
                if (lane == 0) {
                    levels.groups[group % CHUNK] = result;
                }
                __syncwarp(); // Lane 0's write must be visible to the other lanes.
                // … and the groups' results when there are 1024 of them, or no more groups.
                if (group % CHUNK == CHUNK - 1 || group == all_groups - 1) {
                    const T result = chunk_in_order<Operation>((int)(group % CHUNK) + 1, levels.groups);
                    if (lane == 0) {
                        levels.largest[group / CHUNK] = result;
                    }
                    __syncwarp();
                }
            }
            // The next chunk's results must not overwrite unread ones.
            __syncthreads();
        }
        if (warp == 0) {
            const T result = chunk_in_order<Operation>((int)divide_up(all_groups, CHUNK), levels.largest);
            if (lane == 0) {
                levels.all = result;
            }
        }
        __syncthreads();
        // The next call writes `all` only after its own barriers or, without elements, writes the same value
        // again.
        return levels.all;
    }
};

// Calls `work(row, threads)` for each row, with the threads that work on it: a warp if a row is one chunk, so
// that a block handles several rows at once without waiting; otherwise a block, which needs shared memory.
template <typename T, typename Work>
__device__ void for_rows(Levels<T> &levels, long long rows, long long length, Work work) {
    if (length <= CHUNK) {
        const int warps = blockDim.x / LANES;
        for (long long row = (long long)blockIdx.x * warps + threadIdx.x / LANES; row < rows;
             row += (long long)gridDim.x * warps) {
            work(row, Warp<T>{});
        }
    } else {
        for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
            work(row, Block<T>{levels});
        }
    }
}

// Whether the elements of a view are adjacent.
__device__ inline bool contiguous(const View &view) {
    long long expected = 1;
#pragma unroll 1
    for (int dim = (int)view.ndim - 1; dim >= 0; dim--) {
        if (view.size[dim] != 1 && view.stride[dim] != expected) {
            return false;
        }
        expected *= view.size[dim];
    }
    return true;
}

// The columns of a matrix, whose neighbours in memory belong to neighbouring results. If each thread walked along
// a column, it would read 4 bytes at a time, while memory is read in units of 32 bytes. So a block takes up to
// 32 columns, and adjacent threads take adjacent elements of a row and, if rows are shorter than a warp, of the
// next row. A lane of the tree, which is a thread when reducing a row, is a row of threads here; it combines
// the same numbers in the same order.

// The number of columns from `first` that a block takes.
__device__ inline int in_block(long long columns, long long first) {
    return columns - first < LANES ? (int)(columns - first) : LANES;
}

// Combines the results of up to 32 lanes, which are `step` apart in shared memory.
template <typename Operation, typename T>
__device__ inline T lanes_together(T *lanes, int step, int count) {
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width && lane + width < count; lane++) {
            lanes[lane * step] = Operation::combine(lanes[lane * step], lanes[(lane + width) * step]);
        }
    }
    return lanes[0];
}

// One chunk of some columns, from `element(row, column)`: thread i gets the result of column i, and threads
// beyond the columns get nothing. The block has at least as many threads as there are columns, and all of them
// must participate.
template <typename Operation, typename C, typename Element>
__device__ C chunk_of_columns(C *lanes, int columns, int count, Element element) {
    const int used = (count < LANES ? count : LANES) * columns;
    for (int i = threadIdx.x; i < used; i += blockDim.x) {
        const int column = i % columns;
        C result = element(i / columns, column);
#pragma unroll 4
        for (int row = i / columns + LANES; row < count; row += LANES) {
            result = Operation::combine(result, (C)element(row, column));
        }
        lanes[i] = result;
    }
    __syncthreads();
    const bool mine = threadIdx.x < columns;
    const C result = mine ? lanes_together<Operation>(lanes + threadIdx.x, columns, count)
                          : Operation::template nothing<C>();
    __syncthreads(); // The next chunk uses the same memory.
    return result;
}
