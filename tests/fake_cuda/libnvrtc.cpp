// A stand-in for NVIDIA's compiler. It does not compile the course's kernels: they were compiled for the host before. What it
// returns says what it was asked for, and the stand-in for the driver takes it. A program that names a function, which is a
// kernel of its own, is compiled for the host with `cuda_on_host.h`.
//
//   FAKE_CUDA_KERNELS  the library with the course's kernels, beside which the header is
//   FAKE_NVRTC_CXX     the compiler for the host (g++)
//   FAKE_NVRTC_FAIL    a source that does not compile
//   FAKE_NVRTC_ARCHS   the architectures it knows (75,80,89,90)
//   FAKE_NVRTC_BUILTINS  a library that it looks for by its name when it compiles, as that of CUDA 13 does
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Program {
    std::string name, source, output, log;
    std::vector<std::string> functions;
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
    *program = new Program{name, source, "stand-in for machine code: ", "", {}};
    (*program)->output += std::string(name) + ", " + std::to_string(strlen(source)) + " bytes";
    for (int i = 0; i < headers; i++) {
        (*program)->output += std::string(", ") + names[i] + ", " + std::to_string(strlen(texts[i])) + " bytes";
    }
    return 0;
}

EXPORTED int nvrtcAddNameExpression(Program *program, const char *function) {
    program->functions.push_back(function);
    return 0;
}

EXPORTED int nvrtcGetLoweredName(Program *program, const char *function, const char **name) {
    for (const std::string &known : program->functions) {
        if (known == function) *name = known.c_str();
    }
    return 0;
}

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

// What `table()` of mod.rs writes for the course's kernels.
static std::string with_table(const Program &program) {
    std::string kernels;
    for (const std::string &name : program.functions) kernels += "on_host::kernel(\"" + name + "\", " + name + "), ";
    const std::string count = std::to_string(program.functions.size());
    return "#line 1 \"" + program.name + "\"\n" + program.source + R"(
static const on_host::Kernel kernels[] = {)" + kernels + R"(};
#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED int run_kernel(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        void **arguments) {
    return on_host::run(kernels, )" + count + R"(, name, grid, block, shared, arguments);
}
EXPORTED const char *run_kernel_failure() { return on_host::failure; }
EXPORTED size_t kernel_parameters(const char *name, size_t *sizes) {
    const on_host::Kernel *kernel = on_host::find(kernels, )" + count + R"(, name);
    return kernel ? kernel->parameters(sizes) : (size_t)-1;
}
)";
}

static std::string contents(const std::string &path) {
    std::string text;
    if (FILE *file = fopen(path.c_str(), "r")) {
        char bytes[4096];
        while (size_t count = fread(bytes, 1, sizeof bytes, file)) text.append(bytes, count);
        fclose(file);
    }
    return text;
}

static int compile_for_host(Program *program) {
    char folder[] = "/tmp/fake_nvrtc-XXXXXX";
    if (!mkdtemp(folder)) return 1;
    const std::string base = folder, header = setting("FAKE_CUDA_KERNELS", "");
    const std::string kernels = header.substr(0, header.rfind('/'));
    FILE *file = fopen((base + "/kernel.cpp").c_str(), "w");
    if (!file) return 1;
    fputs(with_table(*program).c_str(), file);
    fclose(file);
    const std::string command = std::string(setting("FAKE_NVRTC_CXX", "g++")) +
                                " -std=c++17 -O1 -ffp-contract=off -fPIC -shared -fvisibility=hidden -I" + kernels +
                                " -include " + kernels + "/cuda_on_host.h " + base + "/kernel.cpp -o " + base +
                                "/kernel.so 2>" + base + "/log";
    const int failed = system(command.c_str());
    program->log = contents(base + "/log");
    remove((base + "/log").c_str());
    remove((base + "/kernel.cpp").c_str());
    if (failed) remove(folder);
    program->output = "stand-in for a kernel: " + base + "/kernel.so";
    return failed ? 6 : 0;
}

EXPORTED int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    for (int i = 0; i < count; i++) program->output += std::string(" ") + options[i];
    const char *builtins = getenv("FAKE_NVRTC_BUILTINS");
    if (builtins && !dlopen(builtins, RTLD_NOW)) {
        program->log = std::string("nvrtc: error: failed to open ") + builtins + ".\n";
        return 7;
    }
    if (!program->functions.empty()) return compile_for_host(program);
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
