// Stands in for NVML, the library behind nvidia-smi, where there is no GPU: a card, as its owner might see it, and two more to
// which it is connected. What the
// card does not know, a fan it has none of and what its owner may not ask for, answers as NVML does, or is missing.

#include <cstring>

namespace {

enum Return { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct Memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct Utilization {
    unsigned gpu, memory;
};

struct Process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

const unsigned long long NOT_AVAILABLE = ~0ull;
const unsigned NONE = ~0u;
const unsigned long long MIB = 1 << 20;

// A browser draws and computes; what a window manager holds is not told.
const Process COMPUTE[] = {{2112, 1024 * MIB, NONE, NONE}, {4242, 300 * MIB, NONE, NONE}};
const Process GRAPHICS[] = {{900, NOT_AVAILABLE, NONE, NONE}, {2112, 1024 * MIB, NONE, NONE}};

int list(const Process *known, unsigned *count, Process *room) {
    const unsigned there = 2;
    if (room == nullptr || *count < there) {
        *count = there;
        return INSUFFICIENT_SIZE;
    }
    memcpy(room, known, there * sizeof(Process));
    *count = there;
    return SUCCESS;
}

int text(const char *from, char *to, unsigned length) {
    strncpy(to, from, length - 1);
    to[length - 1] = 0;
    return SUCCESS;
}

// The first two are connected by two NVLinks. The third has none, and sits at another processor.
const char *const CARDS[] = {"00000000:3B:00.0", "00000000:3C:00.0", "00000000:AF:00.0"};

int index_of(void *device) { return (int)((const char *const *)device - CARDS); }

struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain, bus, device, ids[2];
    char bus_id[32];
};

}  // namespace

extern "C" {

int nvmlInit_v2() { return SUCCESS; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    for (const char *const &card : CARDS) {
        *device = (void *)&card;
        if (strcmp(bus_id, card) == 0) return SUCCESS;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *, char *name, unsigned length) { return text("Tesla T4", name, length); }

int nvmlDeviceGetMemoryInfo_v2(void *, Memory *memory) {
    if (memory->version != (sizeof(Memory) | 2u << 24)) return INVALID_ARGUMENT;
    memory->total = 15360 * MIB;
    memory->reserved = 430 * MIB;
    memory->used = 1400 * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *, Utilization *rates) {
    *rates = {12, 3};
    return SUCCESS;
}

int nvmlDeviceGetFanSpeed_v2(void *, unsigned, unsigned *) { return NOT_SUPPORTED; }

int nvmlDeviceGetTemperature(void *, int sensor, unsigned *degrees) {
    *degrees = 47;
    return sensor == 0 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetPerformanceState(void *, int *state) {
    *state = 8;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *, unsigned *milliwatts) {
    *milliwatts = 9480;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void *, unsigned *milliwatts) {
    *milliwatts = 70000;
    return SUCCESS;
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length) { return text("13.610.43.02", version, length); }

int nvmlSystemGetDriverVersion(char *version, unsigned length) { return text("610.43.02", version, length); }

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13030;
    return SUCCESS;
}

int nvmlDeviceGetPersistenceMode(void *, int *mode) {
    *mode = 1;
    return SUCCESS;
}

int nvmlDeviceGetDisplayActive(void *, int *active) {
    *active = 0;
    return SUCCESS;
}

int nvmlDeviceGetComputeMode(void *, int *mode) {
    *mode = 3;
    return SUCCESS;
}

// Of errors type 1 are those that were not corrected; counter 0 begins with the driver.
int nvmlDeviceGetTotalEccErrors(void *, int type, int counter, unsigned long long *errors) {
    *errors = 2;
    return type == 1 && counter == 0 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMigMode(void *, unsigned *, unsigned *) { return NOT_SUPPORTED; }

// Counter 0 is what the card sends, 1 what it receives, in kB/s.
int nvmlDeviceGetPcieThroughput(void *, int counter, unsigned *value) {
    *value = counter == 1 ? 3657000 : 2000;
    return SUCCESS;
}

// 10 is one bridge, 50 the way from processor to processor.
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, unsigned *level) {
    *level = index_of(one) == 2 || index_of(other) == 2 ? 50 : 10;
    return SUCCESS;
}

// A card has three, of which the last is not plugged in.
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
    if (index_of(device) == 2) return NOT_SUPPORTED;
    if (link > 2) return INVALID_ARGUMENT;
    *active = link < 2;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *, unsigned, unsigned *type) {
    *type = 0;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned, PciInfo *place) {
    return text(CARDS[1 - index_of(device)], place->bus_id, sizeof place->bus_id);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned *count, Process *room) { return list(COMPUTE, count, room); }

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *, unsigned *count, Process *room) {
    return list(GRAPHICS, count, room);
}

// nvmlSystemGetProcessName is missing: its callers have to do without.
}
