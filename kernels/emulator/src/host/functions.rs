//! The host functions: their names, parameters and results.
//!
//! Type codes: `i` int, `u` unsigned int, `l` long long, `n` size_t, `f` float, `d` double, `p` pointer, `t` const
//! char *, `s` handle, `v` void. Parameters after `?` are optional.

pub type Function = (&'static str, &'static str, &'static str);

pub const NAMES: &[Function] = &[
    ("malloc", "n", "p"),
    ("calloc", "nn", "p"),
    ("realloc", "pn", "p"),
    ("free", "p", "v"),
    ("memset", "pin", "p"),
    ("memcpy", "ppn", "p"),
    ("memmove", "ppn", "p"),
    ("exit", "i", "v"),
    ("abort", "", "v"),
    ("rand", "", "i"),
    ("srand", "u", "v"),
    ("time", "p", "l"),
    ("strcmp", "pp", "i"),
    ("strlen", "p", "n"),
    ("atoi", "p", "i"),
    ("atol", "p", "l"),
    ("atoll", "p", "l"),
    ("atof", "p", "d"),
    ("puts", "p", "i"),
    ("putchar", "i", "i"),
    ("fflush", "p", "i"),
    ("getenv", "p", "p"),
    ("__emulator_out_of_range", "nn", "v"),
    ("__emulator_put_text", "piii", "v"),
    ("__emulator_put_char", "iiii", "v"),
    ("__emulator_put_int", "liii", "v"),
    ("__emulator_put_uint", "niii", "v"),
    ("__emulator_put_float", "diiii", "v"),
    ("__emulator_put_pointer", "piii", "v"),
    ("cudaMalloc", "pn", "i"),
    ("cudaMallocManaged", "pn?u", "i"),
    ("cudaMemPrefetchAsync", "pni?s", "i"),
    ("cudaMemAdvise", "pnii", "i"),
    ("cudaMallocHost", "pn", "i"),
    ("cudaHostAlloc", "pnu", "i"),
    ("cudaFree", "p", "i"),
    ("cudaFreeHost", "p", "i"),
    ("cudaMallocAsync", "pns", "i"),
    ("cudaFreeAsync", "ps", "i"),
    ("cudaMemcpy", "ppni", "i"),
    ("cudaMemcpyAsync", "ppni?s", "i"),
    ("cudaMemset", "pin", "i"),
    ("cudaMemsetAsync", "pin?s", "i"),
    ("cudaDeviceSynchronize", "", "i"),
    ("cudaThreadSynchronize", "", "i"),
    ("cudaDeviceReset", "", "i"),
    ("cudaProfilerStart", "", "i"),
    ("cudaProfilerStop", "", "i"),
    ("cudaGetLastError", "", "i"),
    ("cudaPeekAtLastError", "", "i"),
    ("cudaGetErrorString", "i", "t"),
    ("cudaGetErrorName", "i", "t"),
    ("cudaSetDevice", "i", "i"),
    ("cudaGetDevice", "p", "i"),
    ("cudaGetDeviceCount", "p", "i"),
    ("cudaGetDeviceProperties", "pi", "i"),
    ("cudaDeviceGetAttribute", "pii", "i"),
    ("cudaMemGetInfo", "pp", "i"),
    ("cudaStreamCreate", "p", "i"),
    ("cudaStreamCreateWithFlags", "pu", "i"),
    ("cudaStreamDestroy", "s", "i"),
    ("cudaStreamSynchronize", "s", "i"),
    ("cudaStreamWaitEvent", "ss?u", "i"),
    ("cudaStreamQuery", "s", "i"),
    ("cudaEventCreate", "p", "i"),
    ("cudaEventCreateWithFlags", "pu", "i"),
    ("cudaEventDestroy", "s", "i"),
    ("cudaEventRecord", "s?s", "i"),
    ("cudaEventSynchronize", "s", "i"),
    ("cudaEventQuery", "s", "i"),
    ("cudaEventElapsedTime", "pss", "i"),
];

pub fn number(name: &str) -> Option<u16> {
    NAMES.iter().position(|function| function.0 == name).map(|at| at as u16)
}

pub fn find(name: &str) -> Option<Function> {
    number(name).map(|at| NAMES[at as usize])
}
