// The supported thread groups: a block, and tiles of a warp.
namespace cooperative_groups {

struct thread_block {
    __device__ void sync() const { __syncthreads(); }
    __device__ unsigned int thread_rank() const {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ unsigned int size() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned int num_threads() const { return size(); }
    __device__ dim3 group_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ dim3 thread_index() const { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
};

inline __device__ thread_block this_thread_block() { return thread_block{}; }

template <unsigned int N> struct thread_block_tile {
    __device__ unsigned int __mask() const {
        return N == 32 ? 0xffffffffu : ((1u << (N % 32)) - 1) << (__emulator_lane() / N * N);
    }
    __device__ void sync() const { __syncwarp(__mask()); }
    __device__ unsigned int thread_rank() const { return __emulator_lane() % N; }
    __device__ unsigned int size() const { return N; }
    __device__ unsigned int num_threads() const { return N; }
    __device__ unsigned int meta_group_rank() const {
        return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / N;
    }
    __device__ unsigned int meta_group_size() const { return (blockDim.x * blockDim.y * blockDim.z + N - 1) / N; }
    template <typename T> __device__ T shfl(T value, int lane) const { return __shfl_sync(__mask(), value, lane, N); }
    template <typename T> __device__ T shfl_down(T value, unsigned int by) const { return __shfl_down_sync(__mask(), value, by, N); }
    template <typename T> __device__ T shfl_up(T value, unsigned int by) const { return __shfl_up_sync(__mask(), value, by, N); }
    template <typename T> __device__ T shfl_xor(T value, int flip) const { return __shfl_xor_sync(__mask(), value, flip, N); }
    __device__ int any(int p) const { return __any_sync(__mask(), p); }
    __device__ int all(int p) const { return __all_sync(__mask(), p); }
    __device__ unsigned int ballot(int p) const { return __ballot_sync(__mask(), p) >> (__emulator_lane() / N * N); }
};

template <unsigned int N> __device__ thread_block_tile<N> tiled_partition(const thread_block &block) {
    return thread_block_tile<N>{};
}

// A group whose size is known only at run time: a block, or a tile of a warp.
struct thread_group {
    unsigned int __n;
    bool __whole;
    __device__ thread_group(unsigned int n, bool whole) : __n(n), __whole(whole) {}
    __device__ thread_group(const thread_block &block) : __n(block.size()), __whole(true) {}
    template <unsigned int N> __device__ thread_group(const thread_block_tile<N> &tile) : __n(N), __whole(false) {}
    __device__ unsigned int __mask() const {
        return __n == 32 ? 0xffffffffu : ((1u << (__n % 32)) - 1) << (__emulator_lane() / __n * __n);
    }
    __device__ void sync() const {
        if (__whole) {
            __syncthreads();
        } else {
            __syncwarp(__mask());
        }
    }
    __device__ unsigned int thread_rank() const {
        return __whole ? threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) : __emulator_lane() % __n;
    }
    __device__ unsigned int size() const { return __n; }
    __device__ unsigned int num_threads() const { return __n; }
};
inline __device__ thread_group tiled_partition(const thread_group &group, unsigned int n) {
    return thread_group(n, false);
}

// The lanes that are active at this point.
struct coalesced_group {
    unsigned int __lanes;
    __device__ void sync() const { __syncwarp(__lanes); }
    __device__ unsigned int thread_rank() const { return __popc(__lanes & ((1u << __emulator_lane()) - 1)); }
    __device__ unsigned int size() const { return __popc(__lanes); }
    __device__ unsigned int num_threads() const { return __popc(__lanes); }
    __device__ int any(int p) const { return __any_sync(__lanes, p); }
    __device__ int all(int p) const { return __all_sync(__lanes, p); }
};
inline __device__ coalesced_group coalesced_threads() { return coalesced_group{__activemask()}; }

template <typename Group> __device__ void sync(const Group &group) { group.sync(); }

template <typename T> struct plus {
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> struct less {
    __device__ T operator()(T a, T b) const { return a < b ? a : b; }
};
template <typename T> struct greater {
    __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

template <typename Group, typename T, typename Operation>
__device__ T reduce(const Group &group, T value, Operation operation) {
    for (int by = group.size() / 2; by > 0; by /= 2) {
        value = operation(value, group.shfl_xor(value, by));
    }
    return value;
}

} // namespace cooperative_groups
