// A libnvrtc.so that compiles kernels with a fault in them, so that compute-sanitizer can be seen to find it. It hands every
// call on to the real one, PLANTED_NVRTC. PLANTED says which fault:
//
//   memcheck   operations go one element too far
//   initcheck  they leave the first element as it was
//   racecheck  a block does not wait for its threads to have written
//   synccheck  some of its threads do not come along
//
// gcc -shared -fPIC planted.c -o libnvrtc.so.13
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Fault {
    const char *name, *in, *right, *wrong;
};

static const struct Fault faults[] = {
    {"memcheck", "elementwise.cuh", "i < n; i += all_threads()) {\n        out", "i <= n; i += all_threads()) {\n        out"},
    {"initcheck", "elementwise.cuh", "i < n; i += all_threads()) {\n        out",
     "i < n; i += all_threads()) {\n        if (i > 0) out"},
    {"racecheck", "tree.cuh", "__syncthreads();", ";"},
    {"synccheck", "tree.cuh", "__syncthreads();", "if (threadIdx.x % 32 < 7) __syncthreads();"},
};

static void *real(const char *function) {
    static void *library;
    if (!library) library = dlopen(getenv("PLANTED_NVRTC") ? getenv("PLANTED_NVRTC") : "", RTLD_NOW);
    void *found = library ? dlsym(library, function) : NULL;
    if (!found) {
        fprintf(stderr, "PLANTED_NVRTC: %s\n", dlerror());
        exit(2);
    }
    return found;
}

// The text with the fault, if it belongs there. It is never freed: the compiler may read it until the end.
static const char *planted(const char *name, const char *text) {
    const char *which = getenv("PLANTED");
    for (size_t i = 0; which && i < sizeof faults / sizeof *faults; i++) {
        const struct Fault *fault = &faults[i];
        const char *at = strstr(text, fault->right);
        if (strcmp(which, fault->name) || strcmp(name, fault->in)) continue;
        if (!at) {
            fprintf(stderr, "PLANTED: %s has no place for the fault any more\n", name);
            exit(2);
        }
        fprintf(stderr, "PLANTED: %s in %s\n", which, name);
        char *wrong = malloc(strlen(text) + strlen(fault->wrong) + 1);
        sprintf(wrong, "%.*s%s%s", (int)(at - text), text, fault->wrong, at + strlen(fault->right));
        return wrong;
    }
    return text;
}

int nvrtcCreateProgram(void **program, const char *text, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    const char **changed = malloc((size_t)count * sizeof *changed + 1);
    for (int i = 0; i < count; i++) changed[i] = planted(names[i], headers[i]);
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) =
        real("nvrtcCreateProgram");
    return create(program, text, name, count, changed, names);
}

// What a function takes does not matter to hand it on: up to four pointers or numbers.
#define HAND_ON(function)                                            \
    long function(void *a, void *b, void *c, void *d) {              \
        long (*call)(void *, void *, void *, void *) = real(#function); \
        return call(a, b, c, d);                                     \
    }

HAND_ON(nvrtcVersion)
HAND_ON(nvrtcGetNumSupportedArchs)
HAND_ON(nvrtcGetSupportedArchs)
HAND_ON(nvrtcGetErrorString)
HAND_ON(nvrtcCompileProgram)
HAND_ON(nvrtcAddNameExpression)
HAND_ON(nvrtcGetLoweredName)
HAND_ON(nvrtcDestroyProgram)
HAND_ON(nvrtcGetProgramLogSize)
HAND_ON(nvrtcGetProgramLog)
HAND_ON(nvrtcGetCUBINSize)
HAND_ON(nvrtcGetCUBIN)
HAND_ON(nvrtcGetPTXSize)
HAND_ON(nvrtcGetPTX)
