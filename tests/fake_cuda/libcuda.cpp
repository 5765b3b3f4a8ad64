// A stand-in for NVIDIA's driver: the functions of libcuda that the tensor crate calls, on the host.
//
// Memory of the device is memory of the host, and a kernel runs there too (`cuda_on_host.h`). All work is as late as a
// real GPU may be: it runs when somebody waits for it, or asks a second time whether it has run. So who forgets to wait
// reads what was there before. Like the driver it counts what is allocated, knows its handles, and once a kernel has
// failed answers every call with that error. Unlike it, it takes all streams for non-blocking. The environment says
// what it is to be:
//
//   FAKE_CUDA_KERNELS   the library with the kernels
//   FAKE_CUDA_DEVICES   how many GPUs there are (1)
//   FAKE_CUDA_MEMORY    bytes of memory of each (1 GiB)
//   FAKE_CUDA_VERSION   the CUDA of the driver (12040)
//   FAKE_CUDA_CAPABILITY  the compute capability (75)
//   FAKE_CUDA_INIT      what cuInit returns (0)
//   FAKE_CUDA_FAIL      a call that fails: cuMemAlloc_v2:3:2 is the third of that function, with error 2
//   FAKE_CUDA_LOG       a file that gets the name of every function called
//   FAKE_CUDA_GUARD     if it is set, memory begins or ends at a page that nobody may touch. A kernel that does ends the
//                       program, which prints the kernel's name, as `compute-sanitizer` does on a real GPU
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    ASSERT = 710,
    LAUNCH_FAILED = 719,
};

struct Record {
    bool done = false;
    struct Stream *stream; // Where it was recorded.
    std::chrono::steady_clock::time_point time;
};
// A piece of work, or a record to wait for.
struct Work {
    std::function<CUresult()> run;
    std::shared_ptr<Record> wait_for;
};
struct Stream {
    struct Context *context;
    std::deque<Work> queue;
};
struct Context {
    int device;
    Stream default_stream;
    int retained = 0;
    CUresult error = SUCCESS; // Of a kernel: it stays.
    size_t used = 0;
    std::set<int> peers;
};
struct Event {
    Context *context;
    bool timing;
    std::shared_ptr<Record> record; // The last one.
};
namespace {
struct Kernels; // A library of kernels for the host.
}
struct Module {
    Context *context;
    Kernels *kernels;
};
struct Function {
    std::string name;
    Kernels *kernels;
};

namespace {

std::recursive_mutex everything;
thread_local Context *current = nullptr;
Context contexts[16];
// What is allocated, and of which size.
std::map<CUdeviceptr, std::pair<Context *, size_t>> device_memory;
std::map<void *, size_t> host_memory;
std::set<Stream *> streams;
std::set<Event *> events;
std::set<Event *> ended; // With their context: the driver knows them no more, and may do anything.
std::set<Module *> modules;
std::map<std::pair<Kernels *, std::string>, Function *> functions;
bool initialized = false;

long long setting(const char *name, long long otherwise) {
    const char *value = getenv(name);
    return value ? atoll(value) : otherwise;
}

int device_count() { return (int)setting("FAKE_CUDA_DEVICES", 1); }
size_t total_memory() { return (size_t)setting("FAKE_CUDA_MEMORY", 1LL << 30); }

// Notes a call, and says whether it is the one that is to fail.
CUresult called(const char *function) {
    static std::map<std::string, int> calls;
    const int call = ++calls[function];
    if (const char *path = getenv("FAKE_CUDA_LOG")) {
        if (FILE *log = fopen(path, "a")) {
            fprintf(log, "%s\n", function);
            fclose(log);
        }
    }
    char name[64];
    int number, error;
    const char *fail = getenv("FAKE_CUDA_FAIL");
    if (fail && sscanf(fail, "%63[^:]:%d:%d", name, &number, &error) == 3 && !strcmp(name, function) &&
        number == call) {
        return error;
    }
    return SUCCESS;
}

constexpr size_t PAGE = 4096;
const bool guarded = getenv("FAKE_CUDA_GUARD") != nullptr;

size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

// Addresses are given in order, from 2 MiB to 2 MiB, the lowest that are free, as the driver does.
constexpr size_t GRANULE = 2 << 20, REACH = 1ull << 38;

CUdeviceptr take_addresses(size_t bytes) {
    static void *const base =
        mmap(nullptr, REACH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return 0;
    CUdeviceptr free_from = ((CUdeviceptr)base + GRANULE - 1) / GRANULE * GRANULE;
    const CUdeviceptr end = (CUdeviceptr)base + REACH;
    for (const auto &block : device_memory) {
        if (block.first - free_from >= bytes && block.first > free_from) break;
        free_from = (block.first + block.second.second + GRANULE - 1) / GRANULE * GRANULE;
    }
    return free_from + bytes <= end ? free_from : 0;
}

// Fresh memory holds anything: bytes of 0xa5. Every large block shows the pages of one file that is full of them, and gets
// pages of its own only where it is written to, so a lab may take all memory of a card that this computer has not.
constexpr int FRESH = 0xa5;
constexpr size_t FRESH_FILE = 16 * GRANULE;

int fresh_file() {
    static const int file = [] {
        const int file = memfd_create("fresh memory", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, FRESH_FILE)) return -1;
        void *bytes = mmap(nullptr, FRESH_FILE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (bytes == MAP_FAILED) return -1;
        memset(bytes, FRESH, FRESH_FILE);
        munmap(bytes, FRESH_FILE);
        return file;
    }();
    return file;
}

bool make_fresh(CUdeviceptr block, size_t bytes) {
    const int file = !guarded && bytes > FRESH_FILE ? fresh_file() : -1;
    for (size_t at = 0; file >= 0 && at + FRESH_FILE <= bytes; at += FRESH_FILE) {
        const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
        if (mmap((void *)(block + at), FRESH_FILE, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED) return false;
    }
    const size_t rest = file >= 0 ? bytes / FRESH_FILE * FRESH_FILE : 0;
    memset((void *)(block + rest), FRESH, bytes - rest);
    return true;
}

void give_pages(void *block, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
    if (bytes > FRESH_FILE) mmap(block, pages(bytes), PROT_READ | PROT_WRITE, flags, -1, 0);
    else madvise(block, bytes, MADV_DONTNEED);
}

// Guarded memory.

thread_local const char *running = "no kernel"; // Of this thread, for whoever touches a guard.

// Ends the program, and says whose fault it is. (Functions that no handler should call are called here: there is nothing left
// to go on with.)
void touched(int, siginfo_t *info, void *) {
    char text[300];
    const CUdeviceptr address = (CUdeviceptr)info->si_addr;
    const char *what = "far from all memory of the device";
    for (const auto &block : device_memory) {
        const CUdeviceptr end = block.first + block.second.second;
        if (address >= end && address - end < PAGE) what = "after the end of an allocation";
        if (address < block.first && block.first - address <= PAGE) what = "before an allocation";
    }
    const int length = snprintf(text, sizeof text, "%s reads or writes %s\n", running, what);
    if (write(STDERR_FILENO, text, (size_t)length) < 0) {
    }
    _exit(139);
}

// Pages that were given back, by how many bytes they are: to ask the system each time takes longer than most kernels.
std::map<size_t, std::vector<char *>> spare;

CUdeviceptr take_guarded(size_t bytes) {
    static const bool ready = [] {
        struct sigaction action = {};
        action.sa_sigaction = touched;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        return sigaction(SIGSEGV, &action, nullptr) == 0;
    }();
    const size_t inside = pages(bytes);
    std::vector<char *> &kept = spare[inside];
    if (kept.empty()) {
        void *base = mmap(nullptr, inside + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!ready || base == MAP_FAILED) return 0;
        kept.push_back((char *)base + PAGE);
        if (mprotect(kept.back(), inside, PROT_READ | PROT_WRITE)) return 0;
    }
    char *const begin = kept.back(), *const end = begin + inside;
    kept.pop_back();
    // In turn, but not in step with the tensors of an operation: it ends at a page; or nearly, so that 16 bytes can be moved
    // at a time, as from memory of the driver; or it begins at one.
    static unsigned long long turn = 1;
    turn = turn * 6364136223846793005 + 1442695040888963407;
    switch (turn >> 33 & 3) {
    case 0: return (CUdeviceptr)(end - bytes);
    case 1: return (CUdeviceptr)begin;
    default: return (CUdeviceptr)(end - (bytes + 15) / 16 * 16);
    }
}

void give_guarded(CUdeviceptr block, size_t bytes) { spare[pages(bytes)].push_back((char *)(block / PAGE * PAGE)); }

// Where an address is, if all of the range is allocated.
// Whether an address is in a variable of a program's kernels, which the stand-in for NVRTC compiled.
bool is_variable(CUdeviceptr address) {
    Dl_info info;
    return dladdr((void *)address, &info) && info.dli_fname && strstr(info.dli_fname, "/fake_nvrtc-");
}

bool holds(CUdeviceptr address, size_t bytes) {
    if (bytes == 0 || is_variable(address)) {
        return true;
    }
    auto block = device_memory.upper_bound(address);
    if (block == device_memory.begin()) {
        return false;
    }
    --block;
    return address + bytes <= block->first + block->second.second;
}

// Runs the first piece of work of a stream. What it waits for runs before it.
void run_one(Stream &stream) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    while (work.wait_for && !work.wait_for->done) {
        run_one(*work.wait_for->stream);
    }
    if (work.run && !stream.context->error) {
        stream.context->error = work.run();
    }
}

// Runs all work of a stream, and says how it went.
CUresult finish(Stream &stream) {
    while (!stream.queue.empty()) run_one(stream);
    return stream.context->error;
}

CUresult finish(Context &context) {
    finish(context.default_stream);
    for (Stream *stream : streams) {
        if (stream->context == &context) finish(*stream);
    }
    return context.error;
}

void finish_all() {
    for (Context &context : contexts) finish(context);
}

void queue(Stream *stream, std::function<CUresult()> run) {
    Stream &queued = stream ? *stream : current->default_stream;
    // A queue holds so much; then who adds to it waits.
    while (queued.queue.size() >= 1024) run_one(queued);
    queued.queue.push_back({std::move(run), nullptr});
}

struct Kernels {
    size_t (*parameters)(const char *, size_t *) = nullptr;
    int (*run)(const char *, const unsigned *, const unsigned *, unsigned, void **) = nullptr;
    const char *(*failure)() = nullptr;

    explicit Kernels(const char *path) {
        void *library = path ? dlopen(path, RTLD_NOW) : nullptr;
        if (library) {
            *(void **)&parameters = dlsym(library, "kernel_parameters");
            *(void **)&run = dlsym(library, "run_kernel");
            *(void **)&failure = dlsym(library, "run_kernel_failure");
        }
    }
};

Kernels &course_kernels() {
    static Kernels kernels(getenv("FAKE_CUDA_KERNELS"));
    return kernels;
}

// What every call of a context does first.
#define ENTER(function)                                          \
    std::lock_guard<std::recursive_mutex> lock(everything);      \
    if (CUresult error = called(#function)) return error;        \
    if (!initialized) return 3;                                  \
    if (!current || current->retained == 0) return INVALID_CONTEXT; \
    if (current->error) return current->error

#define ENTER_WITHOUT_CONTEXT(function)                     \
    std::lock_guard<std::recursive_mutex> lock(everything); \
    if (CUresult error = called(#function)) return error;   \
    if (!initialized) return 3

// A stream is one that was made for the context, or none: the default stream.
#define CHECK_STREAM(stream) \
    if (stream && (!streams.count(stream) || stream->context != current)) return INVALID_HANDLE

#define EXPORTED extern "C" __attribute__((visibility("default")))

} // namespace

EXPORTED CUresult cuInit(unsigned) {
    if (CUresult error = called("cuInit")) return error;
    const int error = (int)setting("FAKE_CUDA_INIT", SUCCESS);
    initialized = error == SUCCESS;
    for (int device = 0; device < 16; device++) {
        contexts[device].device = device;
        contexts[device].default_stream.context = &contexts[device];
    }
    return error;
}

EXPORTED CUresult cuDriverGetVersion(int *version) {
    *version = (int)setting("FAKE_CUDA_VERSION", 12040);
    return SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} ERRORS[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

EXPORTED CUresult cuGetErrorName(CUresult error, const char **name) {
    for (const auto &known : ERRORS) {
        if (known.error == error) {
            *name = known.name;
            return SUCCESS;
        }
    }
    *name = nullptr;
    return INVALID_VALUE;
}

EXPORTED CUresult cuGetErrorString(CUresult error, const char **text) {
    for (const auto &known : ERRORS) {
        if (known.error == error) {
            *text = known.text;
            return SUCCESS;
        }
    }
    *text = nullptr;
    return INVALID_VALUE;
}

EXPORTED CUresult cuDeviceGetCount(int *count) {
    ENTER_WITHOUT_CONTEXT(cuDeviceGetCount);
    *count = device_count();
    return SUCCESS;
}

EXPORTED CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER_WITHOUT_CONTEXT(cuDeviceGet);
    if (ordinal < 0 || ordinal >= device_count()) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

EXPORTED CUresult cuDeviceGetName(char *name, int length, CUdevice) {
    ENTER_WITHOUT_CONTEXT(cuDeviceGetName);
    snprintf(name, (size_t)length, "Stand-in for a GPU");
    return SUCCESS;
}

EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
    ENTER_WITHOUT_CONTEXT(cuDeviceTotalMem_v2);
    *bytes = total_memory();
    return SUCCESS;
}

EXPORTED CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
    ENTER_WITHOUT_CONTEXT(cuDeviceGetAttribute);
    switch (attribute) {
    case 1: *value = 1024; break;      // MAX_THREADS_PER_BLOCK
    case 10: *value = 32; break;       // WARP_SIZE
    case 13: *value = 1590000; break;  // CLOCK_RATE
    case 16: *value = 40; break;       // MULTIPROCESSOR_COUNT
    case 33: *value = 0x3b; break;     // PCI_BUS_ID, as in libnvidia-ml.cpp
    case 34: *value = 0; break;        // PCI_DEVICE_ID
    case 38: *value = 4 << 20; break;  // L2_CACHE_SIZE
    case 39: *value = 1024; break;     // MAX_THREADS_PER_MULTIPROCESSOR
    case 50: *value = 0; break;        // PCI_DOMAIN_ID
    case 75: *value = (int)setting("FAKE_CUDA_CAPABILITY", 75) / 10; break; // COMPUTE_CAPABILITY_MAJOR
    case 76: *value = (int)setting("FAKE_CUDA_CAPABILITY", 75) % 10; break; // COMPUTE_CAPABILITY_MINOR
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(Context **context, CUdevice device) {
    ENTER_WITHOUT_CONTEXT(cuDevicePrimaryCtxRetain);
    if (device < 0 || device >= device_count()) return INVALID_DEVICE;
    *context = &contexts[device];
    contexts[device].retained++;
    return SUCCESS;
}

// The last one to let go of a context ends it, and all that is in it.
EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ENTER_WITHOUT_CONTEXT(cuDevicePrimaryCtxRelease_v2);
    Context &context = contexts[device];
    if (context.retained == 0) return INVALID_CONTEXT;
    if (--context.retained > 0) return SUCCESS;
    finish(context);
    for (auto block = device_memory.begin(); block != device_memory.end();) {
        if (block->second.first == &context) {
            give_pages((void *)block->first, block->second.second);
            block = device_memory.erase(block);
        } else {
            ++block;
        }
    }
    for (auto event = events.begin(); event != events.end();) {
        if ((*event)->context == &context) {
            ended.insert(*event);
            event = events.erase(event);
        } else {
            ++event;
        }
    }
    context.used = 0;
    context.error = SUCCESS;
    context.peers.clear();
    return SUCCESS;
}

EXPORTED CUresult cuCtxSetCurrent(Context *context) {
    ENTER_WITHOUT_CONTEXT(cuCtxSetCurrent);
    current = context;
    return SUCCESS;
}

EXPORTED CUresult cuCtxSynchronize() {
    ENTER(cuCtxSynchronize);
    return finish(*current);
}

EXPORTED CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER_WITHOUT_CONTEXT(cuDeviceCanAccessPeer);
    *can = device != peer;
    return SUCCESS;
}

EXPORTED CUresult cuCtxEnablePeerAccess(Context *peer, unsigned flags) {
    ENTER(cuCtxEnablePeerAccess);
    if (flags != 0 || peer == current) return INVALID_VALUE;
    return current->peers.insert(peer->device).second ? SUCCESS : PEER_ACCESS_ALREADY_ENABLED;
}

EXPORTED CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    ENTER(cuMemGetInfo_v2);
    *total = total_memory();
    *available = *total - current->used;
    return SUCCESS;
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    ENTER(cuMemAlloc_v2);
    finish(*current);
    if (current->error) return current->error;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > total_memory() - current->used) return OUT_OF_MEMORY;
    *pointer = guarded ? take_guarded(bytes) : take_addresses(bytes);
    if (!*pointer) return OUT_OF_MEMORY;
    if (!make_fresh(*pointer, bytes)) return OUT_OF_MEMORY;
    current->used += bytes;
    device_memory[*pointer] = {current, bytes};
    return SUCCESS;
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr pointer) {
    ENTER(cuMemFree_v2);
    finish(*current);
    auto block = device_memory.find(pointer);
    if (block == device_memory.end()) return INVALID_VALUE;
    block->second.first->used -= block->second.second;
    if (guarded) give_guarded(pointer, block->second.second);
    else give_pages((void *)pointer, block->second.second);
    device_memory.erase(block);
    return SUCCESS;
}

EXPORTED CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    ENTER(cuMemHostAlloc);
    finish_all();
    if (flags & 4) return INVALID_VALUE; // Write-combined memory is slow to read: nobody here wants it.
    *pointer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*pointer) return OUT_OF_MEMORY;
    host_memory[*pointer] = bytes;
    return SUCCESS;
}

EXPORTED CUresult cuMemFreeHost(void *pointer) {
    ENTER(cuMemFreeHost);
    finish_all();
    if (!host_memory.erase(pointer)) return INVALID_VALUE;
    free(pointer);
    return SUCCESS;
}

EXPORTED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, Stream *stream) {
    ENTER(cuMemcpyHtoDAsync_v2);
    CHECK_STREAM(stream);
    if (!holds(to, bytes)) return INVALID_VALUE;
    // Pageable memory, too: who lends it has to wait.
    queue(stream, [=] { return memcpy((void *)to, from, bytes), (CUresult)SUCCESS; });
    return SUCCESS;
}

EXPORTED CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, Stream *stream) {
    ENTER(cuMemcpyDtoHAsync_v2);
    CHECK_STREAM(stream);
    if (!holds(from, bytes)) return INVALID_VALUE;
    queue(stream, [=] { return memcpy(to, (void *)from, bytes), (CUresult)SUCCESS; });
    return SUCCESS;
}

EXPORTED CUresult cuMemcpyPeerAsync(CUdeviceptr to, Context *, CUdeviceptr from, Context *, size_t bytes,
                                    Stream *stream) {
    ENTER(cuMemcpyPeerAsync);
    CHECK_STREAM(stream);
    if (!holds(to, bytes) || !holds(from, bytes)) return INVALID_VALUE;
    queue(stream, [=] { return memcpy((void *)to, (void *)from, bytes), (CUresult)SUCCESS; });
    return SUCCESS;
}

EXPORTED CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, Stream *stream) {
    ENTER(cuMemsetD8Async);
    CHECK_STREAM(stream);
    if (!holds(to, bytes)) return INVALID_VALUE;
    queue(stream, [=] { return memset((void *)to, value, bytes), (CUresult)SUCCESS; });
    return SUCCESS;
}

EXPORTED CUresult cuStreamCreate(Stream **stream, unsigned) {
    ENTER(cuStreamCreate);
    *stream = new Stream{current, {}};
    streams.insert(*stream);
    return SUCCESS;
}

EXPORTED CUresult cuStreamQuery(Stream *stream) {
    ENTER(cuStreamQuery);
    CHECK_STREAM(stream);
    Stream &asked = stream ? *stream : current->default_stream;
    if (asked.queue.empty()) return SUCCESS;
    run_one(asked); // Who asks often enough sees it end.
    return NOT_READY;
}

EXPORTED CUresult cuStreamSynchronize(Stream *stream) {
    ENTER(cuStreamSynchronize);
    CHECK_STREAM(stream);
    return finish(stream ? *stream : current->default_stream);
}

EXPORTED CUresult cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
    ENTER(cuStreamWaitEvent);
    CHECK_STREAM(stream);
    if (!events.count(event)) return INVALID_HANDLE;
    if (event->record) {
        (stream ? stream : &current->default_stream)->queue.push_back({nullptr, event->record});
    }
    return SUCCESS;
}

EXPORTED CUresult cuEventCreate(Event **event, unsigned flags) {
    ENTER(cuEventCreate);
    *event = new Event{current, !(flags & 2), nullptr};
    events.insert(*event);
    return SUCCESS;
}

EXPORTED CUresult cuEventDestroy_v2(Event *event) {
    ENTER(cuEventDestroy_v2);
    if (ended.count(event)) {
        fprintf(stderr, "an event is destroyed after its context\n");
        abort();
    }
    if (!events.erase(event)) return INVALID_HANDLE;
    delete event;
    return SUCCESS;
}

EXPORTED CUresult cuEventRecord(Event *event, Stream *stream) {
    ENTER(cuEventRecord);
    CHECK_STREAM(stream);
    if (!events.count(event) || event->context != current) return INVALID_HANDLE;
    auto record = std::make_shared<Record>();
    record->stream = stream ? stream : &current->default_stream;
    event->record = record;
    queue(stream, [record] {
        record->time = std::chrono::steady_clock::now();
        record->done = true;
        return (CUresult)SUCCESS;
    });
    return SUCCESS;
}

EXPORTED CUresult cuEventQuery(Event *event) {
    ENTER(cuEventQuery);
    if (!events.count(event)) return INVALID_HANDLE;
    if (!event->record || event->record->done) return SUCCESS;
    run_one(*event->record->stream);
    return current->error ? current->error : NOT_READY;
}

EXPORTED CUresult cuEventSynchronize(Event *event) {
    ENTER(cuEventSynchronize);
    if (!events.count(event)) return INVALID_HANDLE;
    while (event->record && !event->record->done && !current->error) run_one(*event->record->stream);
    return current->error;
}

EXPORTED CUresult cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    ENTER(cuEventElapsedTime);
    for (Event *event : {start, end}) {
        if (!events.count(event) || !event->timing || !event->record) return INVALID_HANDLE;
        if (!event->record->done) return NOT_READY;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->record->time - start->record->time).count();
    return SUCCESS;
}

// What the stand-in for NVRTC makes begins so: of the course's kernels, and of one of the program's own.
static const char MAGIC[] = "stand-in for machine code: ", OWN[] = "stand-in for a kernel: ";

EXPORTED CUresult cuModuleLoadData(Module **module, const void *image) {
    ENTER(cuModuleLoadData);
    if (strncmp((const char *)image, MAGIC, strlen(MAGIC)) == 0) {
        *module = new Module{current, &course_kernels()};
    } else if (strncmp((const char *)image, OWN, strlen(OWN)) == 0) {
        const std::string path = (const char *)image + strlen(OWN);
        *module = new Module{current, new Kernels(path.c_str())};
        // Once loaded, nobody needs the file.
        remove(path.c_str());
        remove(path.substr(0, path.rfind('/')).c_str());
    } else {
        return INVALID_IMAGE;
    }
    modules.insert(*module);
    return SUCCESS;
}

EXPORTED CUresult cuModuleUnload(Module *module) {
    ENTER(cuModuleUnload);
    if (!modules.erase(module)) return INVALID_HANDLE;
    delete module;
    return SUCCESS;
}

EXPORTED CUresult cuModuleGetFunction(Function **function, Module *module, const char *name) {
    ENTER(cuModuleGetFunction);
    if (!modules.count(module)) return INVALID_HANDLE;
    size_t sizes[64];
    Kernels *kernels = module->kernels;
    if (!kernels->parameters || kernels->parameters(name, sizes) == (size_t)-1) return NOT_FOUND;
    Function *&known = functions[{kernels, name}];
    if (!known) known = new Function{name, kernels};
    *function = known;
    return SUCCESS;
}

EXPORTED CUresult cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *size) {
    ENTER(cuFuncGetParamInfo);
    size_t sizes[64];
    if (index >= function->kernels->parameters(function->name.c_str(), sizes)) return INVALID_VALUE;
    *offset = 0; // Nobody here asks for it.
    *size = sizes[index];
    return SUCCESS;
}

EXPORTED CUresult cuLaunchKernel(Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                 Stream *stream, void **arguments, void **) {
    ENTER(cuLaunchKernel);
    CHECK_STREAM(stream);
    const unsigned threads = block_x * block_y * block_z;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || threads == 0 || threads > 1024) return INVALID_VALUE;
    // The arguments are copied: the caller's are gone when the kernel runs.
    struct alignas(16) Argument {
        char bytes[256];
    };
    size_t sizes[64];
    const size_t count = function->kernels->parameters(function->name.c_str(), sizes);
    auto copies = std::make_shared<std::vector<Argument>>(count);
    for (size_t i = 0; i < count; i++) {
        memcpy((*copies)[i].bytes, arguments[i], sizes[i]);
    }
    queue(stream, [=] {
        const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
        std::vector<void *> pointers;
        for (Argument &argument : *copies) pointers.push_back(argument.bytes);
        running = function->name.c_str();
        const int failed = function->kernels->run(running, grid, block, shared, pointers.data());
        running = "no kernel";
        if (failed == 0) return (CUresult)SUCCESS;
        fprintf(stderr, "%s\n", function->kernels->failure());
        return (CUresult)(failed == 2 ? ASSERT : LAUNCH_FAILED);
    });
    return SUCCESS;
}

// cuBLAS, which is another library, queues its products here.
EXPORTED void fake_cuda_queue(Stream *stream, void (*run)(void *), void *argument) {
    std::lock_guard<std::recursive_mutex> lock(everything);
    queue(stream, [=] { return run(argument), (CUresult)SUCCESS; });
}
