// A stand-in for NVIDIA's compiler. It compiles nothing: the kernels were compiled for the host before. What it
// returns says what it was asked for, and the stand-in for the driver takes it.
//
//   FAKE_NVRTC_FAIL    a source that does not compile
//   FAKE_NVRTC_ARCHS   the architectures it knows (75,80,89,90)
//   FAKE_NVRTC_BUILTINS  a library that it looks for by its name when it compiles, as that of CUDA 13 does
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct Program {
    std::string name, output, log;
};

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int nvrtcVersion(int *major, int *minor) {
    *major = 12;
    *minor = 9;
    return 0;
}

static const char *archs() {
    const char *archs = getenv("FAKE_NVRTC_ARCHS");
    return archs ? archs : "75,80,89,90";
}

EXPORTED int nvrtcGetNumSupportedArchs(int *count) {
    *count = 1;
    for (const char *c = archs(); *c; c++) *count += *c == ',';
    return 0;
}

EXPORTED int nvrtcGetSupportedArchs(int *known) {
    for (const char *c = archs(); c; c = strchr(c, ',') ? strchr(c, ',') + 1 : nullptr) *known++ = atoi(c);
    return 0;
}

EXPORTED const char *nvrtcGetErrorString(int error) {
    return error == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

EXPORTED int nvrtcCreateProgram(Program **program, const char *source, const char *name, int headers,
                                const char *const *texts, const char *const *names) {
    *program = new Program{name, "stand-in for machine code: ", ""};
    (*program)->output += std::string(name) + ", " + std::to_string(strlen(source)) + " bytes";
    for (int i = 0; i < headers; i++) {
        (*program)->output += std::string(", ") + names[i] + ", " + std::to_string(strlen(texts[i])) + " bytes";
    }
    return 0;
}

EXPORTED int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    for (int i = 0; i < count; i++) program->output += std::string(" ") + options[i];
    const char *builtins = getenv("FAKE_NVRTC_BUILTINS");
    if (builtins && !dlopen(builtins, RTLD_NOW)) {
        program->log = std::string("nvrtc: error: failed to open ") + builtins + ".\n";
        return 7;
    }
    const char *fail = getenv("FAKE_NVRTC_FAIL");
    if (fail && program->name == fail) {
        program->log = program->name + "(1): error: this source does not compile\n";
        return 6;
    }
    return 0;
}

EXPORTED int nvrtcDestroyProgram(Program **program) {
    delete *program;
    *program = nullptr;
    return 0;
}

static int size_of(const std::string &text, size_t *bytes) {
    *bytes = text.size() + 1;
    return 0;
}

static int copy(const std::string &text, char *to) {
    memcpy(to, text.c_str(), text.size() + 1);
    return 0;
}

EXPORTED int nvrtcGetProgramLogSize(Program *program, size_t *bytes) { return size_of(program->log, bytes); }
EXPORTED int nvrtcGetProgramLog(Program *program, char *log) { return copy(program->log, log); }
EXPORTED int nvrtcGetCUBINSize(Program *program, size_t *bytes) { return size_of(program->output, bytes); }
EXPORTED int nvrtcGetCUBIN(Program *program, char *cubin) { return copy(program->output, cubin); }
EXPORTED int nvrtcGetPTXSize(Program *program, size_t *bytes) { return size_of(program->output, bytes); }
EXPORTED int nvrtcGetPTX(Program *program, char *ptx) { return copy(program->output, ptx); }
