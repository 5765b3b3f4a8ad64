// Whole CUDA programs for g++: the tests' header runs the kernels, and this one adds the host's half of CUDA, with the
// answers that the emulator gives.
#pragma once

#include <cfloat>
#include <climits>
#include <functional>
#include <map>
#include <new>

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cuda_on_host.h"

#undef __shared__
#undef assert
#define __shared__ static
#define __CUDACC__ 1
#define assert(condition)                                                                                       \
    ((condition) ? (void)0 : (printf("Assertion `%s` failed.\n", #condition), fflush(stdout), _exit(134)))

namespace whole {

struct Shape {
    unsigned x, y, z;
    Shape(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    Shape(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

alignas(128) inline char dynamic[64 * 1024];
inline int last_error = 0;
inline bool has_launched = false;

} // namespace whole

// Names that a program may declare again.
inline whole::Shape whole_grid, whole_threads;
inline uint3 whole_block;

namespace whole {

// The header below numbers the threads of a block, and this is the place of the current one.
inline uint3 thread() {
    const unsigned n = ::threadIdx.x;
    return {n % whole_threads.x, n / whole_threads.x % whole_threads.y, n / (whole_threads.x * whole_threads.y)};
}

struct Launch {
    Shape grid, threads;
    Launch(Shape grid, Shape threads, size_t shared = 0, const void *stream = nullptr) : grid(grid), threads(threads) {
        const unsigned long long n = (unsigned long long)threads.x * threads.y * threads.z;
        if (n == 0 || n > 1024 || threads.z > 64 || grid.x * grid.y * grid.z == 0 || grid.y > 65535 || grid.z > 65535) {
            last_error = 9;
            this->grid.x = 0;
        } else if (shared > 48 * 1024) {
            last_error = 1;
            this->grid.x = 0;
        }
        memset(dynamic, 0, sizeof dynamic);
        if (!has_launched) fclose(fopen("launched", "w"));
        has_launched = true;
    }
    template <typename F> void operator->*(F kernel) const {
        std::function<void()> call = kernel;
        whole_grid = grid;
        whole_threads = threads;
        ::blockDim = {threads.x * threads.y * threads.z, 1, 1};
        ::gridDim = {1, 1, 1};
        on_host::block.call = [](void (*)(), void **call) { (*reinterpret_cast<std::function<void()> *>(call))(); };
        on_host::block.arguments = reinterpret_cast<void **>(&call);
        for (unsigned z = 0; z < grid.z; z++) {
            for (unsigned y = 0; y < grid.y; y++) {
                for (unsigned x = 0; x < grid.x; x++) {
                    whole_block = {x, y, z};
                    if (!on_host::run_block()) {
                        fprintf(stderr, "%s\n", on_host::failure);
                        _exit(139);
                    }
                }
            }
        }
    }
};

} // namespace whole

#define dim3 whole::Shape
#define threadIdx (whole::thread())
#define blockIdx whole_block
#define blockDim whole_threads
#define gridDim whole_grid
constexpr int warpSize = 32;

template <typename T> T __shfl_sync(unsigned mask, T value, int lane, int width) {
    const unsigned me = on_host::block.current->thread % 32;
    return on_host::shuffle(mask, value, me / width * width + lane % width, true);
}
template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width) {
    const unsigned me = on_host::block.current->thread % 32, from = me + delta;
    return on_host::shuffle(mask, value, from, from < me / width * width + width);
}
template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width) {
    const unsigned me = on_host::block.current->thread % 32;
    return on_host::shuffle(mask, value, me - delta, me % width >= delta);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width) {
    const unsigned me = on_host::block.current->thread % 32, from = me ^ flip;
    return on_host::shuffle(mask, value, from, from < me / width * width + width);
}

#define ATOMIC(name, value)                                                                                     \
    template <typename T, typename U> T name(T *address, U operand) {                                           \
        const T old = *address, given = (T)operand;                                                             \
        *address = value;                                                                                       \
        return old;                                                                                             \
    }
ATOMIC(atomicSub, old - given)
ATOMIC(atomicMax, old < given ? given : old)
ATOMIC(atomicMin, given < old ? given : old)
ATOMIC(atomicExch, given)
ATOMIC(atomicAnd, old & given)
ATOMIC(atomicOr, old | given)
ATOMIC(atomicXor, old ^ given)
ATOMIC(atomicInc, old >= given ? 0 : old + 1)
ATOMIC(atomicDec, old == 0 || old > given ? given : old - 1)
template <typename T, typename U, typename V> T atomicCAS(T *address, U compare, V value) {
    const T old = *address;
    if (old == (T)compare) *address = (T)value;
    return old;
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
constexpr int cudaCpuDeviceId = -1;
template <typename T> T __ldg(const T *p) { return *p; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
template <typename A, typename B> auto min(A a, B b) { return b < a ? b : a; }
template <typename A, typename B> auto max(A a, B b) { return a < b ? b : a; }

#define VECTOR(T, N)                                                                                            \
    struct N##2 { T x, y; };                                                                                    \
    struct N##3 { T x, y, z; };                                                                                 \
    struct N##4 { T x, y, z, w; };                                                                              \
    inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                        \
    inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                                \
    inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(float, float)
VECTOR(double, double)
VECTOR(int, int)
VECTOR(unsigned char, uchar)
VECTOR(char, char)
VECTOR(short, short)
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101
};
typedef cudaError cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, memPitch, textureAlignment;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor;
    int multiProcessorCount, maxThreadsPerMultiProcessor, regsPerMultiprocessor, clockRate, memoryClockRate, memoryBusWidth, l2CacheSize;
    int deviceOverlap, kernelExecTimeoutEnabled, integrated, canMapHostMemory, concurrentKernels;
};
typedef struct Stream_ *cudaStream_t;
typedef struct Event_ *cudaEvent_t;
enum { cudaStreamDefault, cudaStreamNonBlocking, cudaHostAllocDefault = 0, cudaMemAttachGlobal = 1 };

inline cudaError_t whole_allocate(void **p, size_t size) {
    *p = malloc(size);
    return cudaSuccess;
}
template <typename T> cudaError_t cudaMalloc(T **p, size_t size) { return whole_allocate((void **)p, size); }
template <typename T> cudaError_t cudaMallocManaged(T **p, size_t size, unsigned = 1) { return whole_allocate((void **)p, size); }
template <typename T> cudaError_t cudaMallocHost(T **p, size_t size) { return whole_allocate((void **)p, size); }
template <typename T> cudaError_t cudaHostAlloc(T **p, size_t size, unsigned) { return whole_allocate((void **)p, size); }
inline cudaError_t cudaFree(void *p) { free(p); return cudaSuccess; }
inline cudaError_t cudaFreeHost(void *p) { free(p); return cudaSuccess; }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind) {
    memmove(to, from, size);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t = 0) {
    return cudaMemcpy(to, from, size, kind);
}
inline cudaError_t cudaMemset(void *to, int value, size_t size) { memset(to, value, size); return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t = 0) { return cudaMemset(to, value, size); }
template <typename T>
cudaError_t cudaMemcpyToSymbol(T &to, const void *from, size_t size, size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
    memcpy((char *)&to + offset, from, size);
    return cudaSuccess;
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void *to, const T &from, size_t size, size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    memcpy(to, (const char *)&from + offset, size);
    return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaThreadSynchronize() { return cudaSuccess; }
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return (cudaError_t)whole::last_error; }
inline cudaError_t cudaGetLastError() {
    const int error = whole::last_error;
    whole::last_error = 0;
    return (cudaError_t)error;
}
inline const char *cudaGetErrorString(cudaError_t error) {
    return error == 0 ? "no error" : error == 9 ? "invalid configuration argument" : "invalid argument";
}
inline const char *cudaGetErrorName(cudaError_t error) {
    return error == 0 ? "cudaSuccess" : error == 9 ? "cudaErrorInvalidConfiguration" : "cudaErrorInvalidValue";
}
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
inline cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = 0) { return cudaSuccess; }
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) { *stream = nullptr; return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t *event) { *event = nullptr; return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float *time, cudaEvent_t, cudaEvent_t) { *time = 0; return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    memset(p, 0, sizeof *p);
    strcpy(p->name, "Tesla T4 (emulated)");
    p->totalGlobalMem = 15655829504;
    p->sharedMemPerBlock = 49152;
    p->regsPerBlock = p->regsPerMultiprocessor = p->totalConstMem = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsPerMultiProcessor = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->major = 7;
    p->minor = 5;
    p->multiProcessorCount = 40;
    return cudaSuccess;
}

// The clocks stand still, as in the emulator. These take the place of the C library's.
extern "C" {
inline __attribute__((used)) int clock_gettime(clockid_t, timespec *now) noexcept {
    *now = {1700000000, 0};
    return 0;
}
inline __attribute__((used)) int gettimeofday(timeval *now, void *) noexcept {
    *now = {1700000000, 0};
    return 0;
}
inline __attribute__((used)) time_t time(time_t *now) noexcept {
    if (now) *now = 1700000000;
    return 1700000000;
}
inline __attribute__((used)) clock_t clock() noexcept { return 0; }
}
inline const int whole_unbuffered = setvbuf(stdout, nullptr, _IONBF, 0);
