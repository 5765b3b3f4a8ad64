// CUDA C++ on the host: what the kernels use of CUDA, for g++.
//
// With this file included first, g++ compiles a kernel unchanged to a function of the host, and `run_kernel` calls
// it for each thread of a grid. Blocks run one after another. The threads of a block share one thread of the host:
// each runs until it waits for others, at a barrier or in a shuffle; then the next one goes on. Arithmetic has the
// bits of a GPU, since both follow IEEE 754 and nothing here fuses (`-ffp-contract=off`).
//
// It is stricter than a GPU in one thing: threads that wait for one that has ended are an error, not luck.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "halves.h"
#define CONVERSIONS_OF_F16 // In the place of those of half.cuh.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline)) // After the headers, which say it without the rest.
#define __grid_constant__
#define __launch_bounds__(...)
#define __constant__ static
// Blocks run one after another, so the memory of one can be that of the next.
#define __shared__ static

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace on_host {

constexpr unsigned WARP = 32;
constexpr size_t STACK = 64 * 1024;

// Where a stack was left: what goes on there is what `switch_stacks` returns to.
//
// On x86-64 that is a pointer to the registers that a function must keep, pushed on the stack itself. `swapcontext`,
// which does for other processors, asks the operating system for the signal mask each time: that takes a hundred times
// as long, and threads that shuffle switch at every turn.
#ifdef __x86_64__
struct Place {
    void *stack_pointer;
};

__attribute__((naked, noinline)) inline void switch_stacks(Place &, const Place &) {
    asm("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov (%rsi), %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret");
}

// A stack that begins with a call of `run`, which never returns.
inline void begin(Place &place, char *stack, size_t size, void (*run)()) {
    void **top = reinterpret_cast<void **>((reinterpret_cast<size_t>(stack) + size) & ~size_t(15));
    *--top = nullptr; // The address to return to.
    *--top = reinterpret_cast<void *>(run);
    for (int registers = 0; registers < 6; registers++) {
        *--top = nullptr;
    }
    place.stack_pointer = top;
}
#else
struct Place {
    mutable ucontext_t context;
};

inline void switch_stacks(Place &from, const Place &to) { swapcontext(&from.context, &to.context); }

inline void begin(Place &place, char *stack, size_t size, void (*run)()) {
    getcontext(&place.context);
    place.context.uc_stack.ss_sp = stack;
    place.context.uc_stack.ss_size = size;
    place.context.uc_link = nullptr;
    makecontext(&place.context, run, 0);
}
#endif

// Where a thread that has begun but not ended stands. A fiber whose thread ends takes the next one that has not
// begun, so a kernel without barriers runs on one fiber and never switches.
struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK]};
    Place place;
    unsigned thread;
    bool waiting = false; // At a barrier that is still closed.
};

// A barrier of some threads: those that have arrived and wait.
struct Barrier {
    std::vector<Fiber *> arrived;
};

// What the lanes of a warp show each other in a shuffle or a vote. Two places each, used in turn: who comes to
// the next shuffle first does not overwrite what others have still to read. Nobody gets to the one after that
// before all have come to the next.
struct Meeting {
    Barrier barrier;
    unsigned long long shown[2][WARP];
    unsigned turn[WARP] = {};
};

// Lanes with different masks meet independently of each other.
struct Warp {
    unsigned ended = 0; // Lanes, as a mask.
    Meeting all;
    std::map<unsigned, Meeting> of_mask;
};

enum Outcome { DONE, FAILED };

struct Block {
    // The kernel with its arguments.
    void (*call)(void (*)(), void **);
    void (*kernel)();
    void **arguments;

    unsigned next;  // The first thread that has not begun.
    unsigned ended; // How many have ended.
    Barrier barrier;
    std::vector<Warp> warps;
    std::vector<std::unique_ptr<Fiber>> fibers; // Kept from block to block: stacks are costly to make.
    std::vector<Fiber *> idle;
    std::vector<Fiber *> active;
    size_t at; // The current fiber among the active ones.
    Fiber *current;
    Place caller; // Who runs the block.
    Outcome outcome;
};

inline Block block;
// Why the last kernel failed.
inline char failure[1024];

// Ends the block.
[[noreturn]] inline void leave(Outcome outcome) {
    block.outcome = outcome;
    switch_stacks(block.current->place, block.caller);
    abort(); // Nobody comes back.
}

[[noreturn]] inline void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure, sizeof failure, format, arguments);
    va_end(arguments);
    leave(FAILED);
}

void run_fiber();

inline Fiber *fresh_fiber() {
    if (block.idle.empty()) {
        block.fibers.push_back(std::make_unique<Fiber>());
        Fiber *fiber = block.fibers.back().get();
        begin(fiber->place, fiber->stack.get(), STACK, run_fiber);
        return fiber;
    }
    Fiber *fiber = block.idle.back();
    block.idle.pop_back();
    return fiber;
}

// Goes on with another thread, and comes back to `from` when its turn has come. Round and round: each that has begun
// gets its turn, from `block.at` on, then a new one, so that warps fill up.
inline void give_way(Place &from) {
    Fiber *next = nullptr;
    for (size_t tried = 0; tried < block.active.size() && !next; tried++, block.at++) {
        if (block.at >= block.active.size()) {
            if (block.next < blockDim.x) {
                break;
            }
            block.at = 0;
        }
        if (!block.active[block.at]->waiting) {
            next = block.active[block.at--]; // Which the loop counts up again.
        }
    }
    if (!next && block.next < blockDim.x) {
        block.at = block.active.size();
        block.active.push_back(next = fresh_fiber());
    }
    if (!next) {
        fail("block [%u,0,0] hangs: some of its threads wait at a barrier, or in a shuffle, that others never reach",
             blockIdx.x);
    }
    block.current = next;
    switch_stacks(from, next->place);
}

inline void open(Barrier &barrier) {
    for (Fiber *fiber : barrier.arrived) {
        fiber->waiting = false;
    }
    barrier.arrived.clear();
}

// Waits until as many threads have arrived.
inline void wait(Barrier &barrier, unsigned threads) {
    if (barrier.arrived.size() + 1 >= threads) {
        open(barrier);
        return;
    }
    barrier.arrived.push_back(block.current);
    Fiber *self = block.current;
    self->waiting = true;
    block.at++;
    give_way(self->place);
    threadIdx.x = self->thread;
}

inline void run_threads() {
    const unsigned threads = blockDim.x;
    while (block.next < threads) {
        block.current->thread = threadIdx.x = block.next++;
        block.call(block.kernel, block.arguments);
        // The fiber may have given way in between, but it is its own thread that ends here.
        const unsigned thread = block.current->thread;
        block.warps[thread / WARP].ended |= 1u << thread % WARP;
        block.ended++;
        // Who has ended is waited for no longer.
        if (!block.barrier.arrived.empty() && block.barrier.arrived.size() == threads - block.ended) {
            open(block.barrier);
        }
    }
}

inline void run_fiber() {
    for (;;) {
        run_threads();
        // No thread is left to begin: it is wanted again for the next block.
        if (block.ended == blockDim.x) {
            block.outcome = DONE;
            switch_stacks(block.current->place, block.caller);
            continue;
        }
        Fiber *self = block.current;
        block.idle.push_back(self);
        block.active.erase(block.active.begin() + block.at);
        give_way(self->place);
    }
}

// All threads of one block. False: the kernel failed.
inline bool run_block() {
    const unsigned threads = blockDim.x;
    block.next = block.ended = 0;
    block.barrier.arrived.clear();
    block.warps.resize((threads + WARP - 1) / WARP);
    for (Warp &warp : block.warps) {
        warp.ended = 0;
        warp.all.barrier.arrived.clear();
        std::fill_n(warp.all.turn, WARP, 0);
        warp.of_mask.clear();
    }
    block.idle.clear();
    block.active.clear();
    for (auto &fiber : block.fibers) {
        block.idle.push_back(fiber.get());
        fiber->waiting = false;
    }
    block.at = 0;
    block.current = nullptr;
    give_way(block.caller);
    return block.outcome == DONE;
}

template <typename... P, size_t... I>
void call(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<P> *>(arguments[I])...);
}

// A kernel in the table of kernels.
struct Kernel {
    const char *name;
    void (*function)();
    void (*call)(void (*)(), void **);
    // Writes how many bytes each parameter has, and returns how many there are.
    size_t (*parameters)(size_t *);
};

template <typename... P>
Kernel kernel(const char *name, void (*function)(P...)) {
    return {name, reinterpret_cast<void (*)()>(function), [](void (*function)(), void **arguments) {
                call(reinterpret_cast<void (*)(P...)>(function), arguments, std::index_sequence_for<P...>{});
            },
            [](size_t *sizes) {
                const size_t all[] = {sizeof(P)...};
                std::copy(all, all + sizeof...(P), sizes);
                return sizeof...(P);
            }};
}

inline const Kernel *find(const Kernel *kernels, size_t count, const char *name) {
    const auto is_it = [&](const Kernel &kernel) { return strcmp(kernel.name, name) == 0; };
    const Kernel *found = std::find_if(kernels, kernels + count, is_it);
    return found == kernels + count ? nullptr : found;
}

// What `run_kernel` does (see mod.rs, which writes the table of kernels).
inline int run(const Kernel *kernels, size_t count, const char *name, const unsigned grid[3],
               const unsigned threads[3], unsigned shared, void **arguments) {
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    failure[0] = 0;
    const Kernel *found = find(kernels, count, name);
    if (found == nullptr) {
        snprintf(failure, sizeof failure, "there is no kernel %s", name);
        return 1;
    }
    const unsigned n = threads[0];
    const bool flat = grid[1] == 1 && grid[2] == 1 && threads[1] == 1 && threads[2] == 1;
    if (!flat || grid[0] == 0 || n == 0 || n > 1024 || shared != 0) {
        snprintf(failure, sizeof failure, "%s: %u×%u×%u blocks of %u×%u×%u threads with %u bytes of shared memory",
                 name, grid[0], grid[1], grid[2], n, threads[1], threads[2], shared);
        return 3;
    }
    gridDim = {grid[0], 1, 1};
    blockDim = {n, 1, 1};
    block.call = found->call;
    block.kernel = found->function;
    block.arguments = arguments;
    for (unsigned b = 0; b < grid[0]; b++) {
        blockIdx = {b, 0, 0};
        if (!run_block()) {
            // Its threads never go on: the stacks begin anew.
            for (auto &fiber : block.fibers) {
                begin(fiber->place, fiber->stack.get(), STACK, run_fiber);
            }
            return 2;
        }
    }
    return 0;
}

// Waits for the lanes of the mask, each of which shows a value, and returns where the values of all are.
inline const unsigned long long *show(unsigned mask, unsigned long long value) {
    const unsigned lane = threadIdx.x % WARP;
    Warp &warp = block.warps[threadIdx.x / WARP];
    if ((mask >> lane & 1) == 0 || (mask & warp.ended) != 0) {
        fail("a warp operation with mask %#x, which thread [%u,0,0] is not in, or one that has ended is", mask,
             threadIdx.x);
    }
    Meeting &meeting = mask == ~0u ? warp.all : warp.of_mask[mask];
    unsigned long long *shown = meeting.shown[meeting.turn[lane]++ % 2];
    shown[lane] = value;
    wait(meeting.barrier, __builtin_popcount(mask));
    return shown;
}

template <typename T>
T shown_by(const unsigned long long *shown, unsigned lane) {
    T value;
    memcpy(&value, &shown[lane], sizeof value);
    return value;
}

template <typename T>
T shuffle(unsigned mask, T value, unsigned from, bool inside) {
    static_assert(sizeof(T) <= 8);
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    const unsigned long long *shown = show(mask, bits);
    // Beyond the end of the warp a lane gets its own value back.
    return inside ? shown_by<T>(shown, from) : value;
}

template <typename To, typename From>
To bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

} // namespace on_host

// What the driver says of a device-side assertion, in the words that CUDA prints.
#undef assert
#define assert(condition)                                                                                       \
    ((condition) ? (void)0                                                                                      \
                 : on_host::fail("%s:%d: %s: block: [%u,0,0], thread: [%u,0,0] Assertion `%s` failed.",         \
                                 strrchr(__FILE__, '/') ? strrchr(__FILE__, '/') + 1 : __FILE__, __LINE__,      \
                                 __PRETTY_FUNCTION__, blockIdx.x, threadIdx.x, #condition))


inline void __syncthreads() { on_host::wait(on_host::block.barrier, blockDim.x - on_host::block.ended); }
inline void __syncwarp(unsigned mask = 0xffffffff) { on_host::show(mask, 0); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
    return on_host::shuffle(mask, value, lane % 32, true);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
    const unsigned from = threadIdx.x % 32 + delta;
    return on_host::shuffle(mask, value, from, from < 32);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
    const unsigned lane = threadIdx.x % 32;
    return on_host::shuffle(mask, value, lane - delta, lane >= delta);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int flip) {
    return on_host::shuffle(mask, value, threadIdx.x % 32 ^ flip, true);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const unsigned long long *shown = on_host::show(mask, predicate != 0);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        votes |= (mask >> lane & 1) && shown[lane] ? 1u << lane : 0;
    }
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// Threads take turns, so nothing comes between.
template <typename T, typename U>
T atomicAdd(T *address, U value) {
    const T old = *address;
    *address = old + value;
    return old;
}

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}
inline int __float_as_int(float x) { return on_host::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return on_host::bits<unsigned>(x); }
inline float __int_as_float(int x) { return on_host::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return on_host::bits<float>(x); }
inline long long __double_as_longlong(double x) { return on_host::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return on_host::bits<double>(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
