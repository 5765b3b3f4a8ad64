//! The headers of the emulator. They are written in the CUDA C++ subset; none is NVIDIA's.

/// The macros that nvcc and the C headers define.
pub const PREDEFINED: &str = r#"
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDA_RUNTIME_H__ 1
#define __cplusplus 201703L
#define NULL nullptr
#define INFINITY __int_as_float(0x7f800000)
#define NAN __emulator_nan
#define HUGE_VALF INFINITY
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LONG_MAX 9223372036854775807ll
#define LONG_MIN (-9223372036854775807ll - 1)
#define ULONG_MAX 18446744073709551615ull
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MIN INT_MIN
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-9223372036854775807ll - 1)
#define UINT64_MAX 18446744073709551615ull
#define ULLONG_MAX 18446744073709551615ull
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define SIZE_MAX ULLONG_MAX
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define M_PI 3.14159265358979323846
#define M_E 2.71828182845904523536
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define CUDART_INF_F INFINITY
#define CUDART_PI_F 3.141592654f
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define assert(...) __emulator_assert((__VA_ARGS__), #__VA_ARGS__)
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaEventDefault 0
#define cudaEventDisableTiming 2
#define cudaHostAllocDefault 0
#define cudaMemAttachGlobal 1
#define cudaCpuDeviceId (-1)
#define CLOCKS_PER_SEC 1000000
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define __restrict
#define __volatile__
"#;

/// The headers that `nvcc` includes automatically.
pub const CUDA: &str = include_str!("../../include/cuda_runtime.h");

const VECTOR: &str = include_str!("../../include/vector.h");
const UTILITY: &str = include_str!("../../include/utility.h");
const MEMORY: &str = include_str!("../../include/memory.h");
const IOSTREAM: &str = include_str!("../../include/iostream.h");
const CHRONO: &str = include_str!("../../include/chrono.h");
const QUEUE: &str = include_str!("../../include/queue.h");
const RANDOM: &str = include_str!("../../include/random.h");
const STRING: &str = include_str!("../../include/string.h");
const HALF: &str = include_str!("../../include/cuda_fp16.h");
const GROUPS: &str = include_str!("../../include/cooperative_groups.h");

/// A file of the emulator's own: its name and text.
pub type Part = (&'static str, &'static str);

/// The headers of every program.
pub const ALWAYS: [Part; 2] = [("<predefined>", PREDEFINED), ("cuda_runtime.h", CUDA)];

const UTILITIES: Part = ("utility.h", UTILITY);
const LIST: Part = ("vector.h", VECTOR);
const QUEUES: &[Part] = &[UTILITIES, LIST, ("queue.h", QUEUE)];
const TEXT: Part = ("string.h", STRING);
const STREAMS: &[Part] = &[UTILITIES, TEXT, ("iostream.h", IOSTREAM)];

/// The name of each header, and its parts. Empty if all of it is always available, or none of it is in the subset.
const HEADERS: &[(&str, &[Part])] = &[
    ("algorithm", &[UTILITIES]),
    ("assert.h", &[]),
    ("cassert", &[]),
    ("cfloat", &[]),
    ("chrono", &[("chrono.h", CHRONO)]),
    ("climits", &[]),
    ("cmath", &[UTILITIES]),
    ("cooperative_groups.h", &[("cooperative_groups.h", GROUPS)]),
    ("cstddef", &[UTILITIES]),
    ("cstdint", &[UTILITIES]),
    ("cstdio", &[]),
    ("cstdlib", &[UTILITIES]),
    ("cstring", &[]),
    ("ctime", &[]),
    ("cuda.h", &[]),
    ("cuda_bf16.h", &[("cuda_fp16.h", HALF)]),
    ("cuda_fp16.h", &[("cuda_fp16.h", HALF)]),
    ("cuda_profiler_api.h", &[]),
    ("cuda_runtime.h", &[]),
    ("cuda_runtime_api.h", &[]),
    ("device_launch_parameters.h", &[]),
    ("float.h", &[]),
    ("functional", &[UTILITIES]),
    ("iomanip", STREAMS),
    ("iostream", STREAMS),
    ("iterator", &[UTILITIES]),
    ("limits", &[UTILITIES]),
    ("limits.h", &[]),
    ("math.h", &[]),
    ("math_constants.h", &[]),
    ("malloc.h", &[]),
    ("memory", &[UTILITIES, ("memory.h", MEMORY)]),
    ("memory.h", &[]),
    ("numeric", &[UTILITIES]),
    ("ostream", STREAMS),
    ("queue", QUEUES),
    ("random", &[UTILITIES, ("random.h", RANDOM)]),
    ("ratio", &[("chrono.h", CHRONO)]),
    ("stack", QUEUES),
    ("stdbool.h", &[]),
    ("stddef.h", &[]),
    ("stdint.h", &[]),
    ("stdio.h", &[]),
    ("stdlib.h", &[]),
    ("string.h", &[]),
    ("string", &[TEXT]),
    ("sys/time.h", &[]),
    ("sys/types.h", &[]),
    ("time.h", &[]),
    ("type_traits", &[UTILITIES]),
    ("unistd.h", &[]),
    ("utility", &[UTILITIES]),
    ("vector", &[UTILITIES, LIST]),
    ("vector_types.h", &[]),
    ("device_functions.h", &[]),
];

pub fn find(name: &str) -> Option<&'static [Part]> {
    HEADERS.iter().find(|(known, _)| *known == name).map(|(_, parts)| *parts)
}

/// Whether a file is one of the emulator's own.
pub fn is_part(file: &super::File) -> bool {
    let mut parts = HEADERS.iter().flat_map(|(_, parts)| parts.iter());
    match file.name.as_str() {
        "<predefined>" => true,
        "cuda_runtime.h" => file.text == CUDA,
        name => parts.any(|(part, text)| *part == name && file.text == *text),
    }
}

pub fn names() -> String {
    let all: Vec<&str> = HEADERS.iter().map(|(name, _)| *name).collect();
    all.join(", ")
}

/// Returns the header that declares a name.
pub fn of_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "half" | "__half" | "half2" | "__float2half" | "__half2float" => "cuda_fp16.h",
        "__nv_bfloat16" | "__float2bfloat16" => "cuda_bf16.h",
        "cooperative_groups" => "cooperative_groups.h",
        _ => return None,
    })
}

/// Returns the header that declares a name of `std`.
pub fn of_std(name: &str) -> Option<&'static str> {
    Some(match name {
        "vector" => "vector",
        "cout" | "cerr" | "endl" => "iostream",
        "setprecision" | "setw" | "fixed" => "iomanip",
        "unique_ptr" | "make_unique" => "memory",
        "pair" => "utility",
        "queue" | "stack" => "queue",
        "string" | "to_string" | "stoi" => "string",
        "mt19937" | "random_device" | "uniform_real_distribution" | "uniform_int_distribution" => "random",
        "numeric_limits" => "limits",
        "is_same" | "conditional" => "type_traits",
        _ => return None,
    })
}

/// Explains why a name of `std` is rejected.
pub fn refused_of_std(name: &str) -> Option<&'static str> {
    Some(match name {
        "cin" | "getline" | "ifstream" | "ofstream" => "programs here read and write no files",
        _ => return None,
    })
}

/// Explains why a function is rejected that learners may look for.
pub fn refused(name: &str) -> Option<&'static str> {
    Some(match name {
        "malloc" | "free" => "device code cannot allocate memory here",
        "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => "write `kernel<<<blocks, threads>>>(…)`",
        "cudaMallocPitch" | "cudaMemcpy2D" | "cudaMemcpy2DAsync" | "cudaMalloc3D" | "cudaMemcpy3D" => {
            "use `cudaMalloc` and `cudaMemcpy`"
        }
        "FILE" | "fopen" | "fread" | "fwrite" | "fscanf" | "scanf" => "programs here read and write no files",
        "qsort" => "pointers to functions are left out",
        "sprintf" | "snprintf" => "only `printf` formats",
        "grid_group" | "this_grid" => "a launch cannot synchronise its whole grid here",
        _ => return None,
    })
}
