// The names that CUDA C++ provides without a header.
typedef unsigned long long size_t;
typedef long long ptrdiff_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;

struct uint3 { unsigned int x, y, z; };

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
    __host__ __device__ dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#define __EMULATOR_VECTOR(T, N, A2, A4) \
    struct N##1 { T x; }; \
    struct alignas(A2) N##2 { T x, y; }; \
    struct N##3 { T x, y, z; }; \
    struct alignas(A4) N##4 { T x, y, z, w; }; \
    inline __host__ __device__ N##1 make_##N##1(T x) { return {x}; } \
    inline __host__ __device__ N##2 make_##N##2(T x, T y) { return {x, y}; } \
    inline __host__ __device__ N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
    inline __host__ __device__ N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

__EMULATOR_VECTOR(char, char, 2, 4)
__EMULATOR_VECTOR(unsigned char, uchar, 2, 4)
__EMULATOR_VECTOR(short, short, 4, 8)
__EMULATOR_VECTOR(unsigned short, ushort, 4, 8)
__EMULATOR_VECTOR(int, int, 8, 16)
__EMULATOR_VECTOR(float, float, 8, 16)
__EMULATOR_VECTOR(long long, longlong, 16, 16)
__EMULATOR_VECTOR(unsigned long long, ulonglong, 16, 16)
__EMULATOR_VECTOR(double, double, 16, 16)

struct uint1 { unsigned int x; };
struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(16) uint4 { unsigned int x, y, z, w; };
inline __host__ __device__ uint2 make_uint2(unsigned int x, unsigned int y) { return {x, y}; }
inline __host__ __device__ uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) { return {x, y, z}; }
inline __host__ __device__ uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) {
    return {x, y, z, w};
}

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchTimeout = 702,
    cudaErrorAssert = 710,
    cudaErrorMisalignedAddress = 716,
    cudaErrorLaunchFailure = 719
};
typedef cudaError_t cudaError;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16
};

enum cudaMemoryAdvise {
    cudaMemAdviseSetReadMostly = 1,
    cudaMemAdviseUnsetReadMostly = 2,
    cudaMemAdviseSetPreferredLocation = 3,
    cudaMemAdviseUnsetPreferredLocation = 4,
    cudaMemAdviseSetAccessedBy = 5,
    cudaMemAdviseUnsetAccessedBy = 6
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int major;
    int minor;
    int multiProcessorCount;
    int maxThreadsPerMultiProcessor;
    int regsPerMultiprocessor;
    size_t totalConstMem;
};

struct __emulator_stream { int unused; };
struct __emulator_event { int unused; };
typedef __emulator_stream *cudaStream_t;
typedef __emulator_event *cudaEvent_t;

typedef long long time_t;
typedef long long clock_t;
// The clock stands still.
struct timeval { long tv_sec, tv_usec; };
struct timespec { long tv_sec, tv_nsec; };
struct timezone { int tz_minuteswest, tz_dsttime; };
inline int gettimeofday(timeval *now, const void *) {
    now->tv_sec = 1700000000;
    now->tv_usec = 0;
    return 0;
}
inline long random() { return rand(); }
inline void srandom(unsigned int seed) { srand(seed); }
inline int clock_gettime(int, timespec *now) {
    now->tv_sec = 1700000000;
    now->tv_nsec = 0;
    return 0;
}

// `new` and `delete` in host code.
template <typename T> struct __emulator_is_plain { static constexpr bool value = false; };
template <typename T> struct __emulator_is_plain<T *> { static constexpr bool value = true; };
#define __EMULATOR_PLAIN(T) template <> struct __emulator_is_plain<T> { static constexpr bool value = true; };
__EMULATOR_PLAIN(bool)
__EMULATOR_PLAIN(char)
__EMULATOR_PLAIN(unsigned char)
__EMULATOR_PLAIN(short)
__EMULATOR_PLAIN(unsigned short)
__EMULATOR_PLAIN(int)
__EMULATOR_PLAIN(unsigned int)
__EMULATOR_PLAIN(long long)
__EMULATOR_PLAIN(unsigned long long)
__EMULATOR_PLAIN(float)
__EMULATOR_PLAIN(double)

template <typename T> T *__emulator_new(const T &value) {
    T *p = (T *)malloc(sizeof(T));
    *p = value;
    return p;
}
template <typename T> T *__emulator_new_zeros(size_t n) {
    T *p = (T *)calloc(n, sizeof(T));
    if constexpr (!__emulator_is_plain<T>::value) {
        for (size_t i = 0; i < n; i++) p[i] = T();
    }
    return p;
}
template <typename T> T *__emulator_new_array(size_t n) {
    if constexpr (__emulator_is_plain<T>::value) return (T *)malloc(n * sizeof(T));
    return __emulator_new_zeros<T>(n);
}
template <typename T> void __emulator_put(T *) {}
template <typename T, typename V, typename... W> void __emulator_put(T *p, V value, W... rest) {
    *p = value;
    __emulator_put(p + 1, rest...);
}
template <typename T, typename... V> T *__emulator_new_list(size_t n, V... values) {
    T *p = __emulator_new_zeros<T>(n);
    __emulator_put(p, values...);
    return p;
}
inline void __emulator_delete(const void *p) { free((void *)p); }
