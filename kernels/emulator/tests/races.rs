//! Tests of races by class, each with a race-free twin: the classes of the Indigo and HiRace suites.

use crate::{on_ints, run};
use cuda_emulator::Checks;

/// The number of races found in a kernel.
fn races(kernel: &str, launch: &str) -> usize {
    let (_, run) = run(&on_ints(kernel, launch, 4096, 0), Checks { race: true, ..Checks::MEMORY });
    let fatal: Vec<_> = run.findings.all.iter().filter(|finding| finding.check != "racecheck").collect();
    assert!(fatal.is_empty(), "{kernel}: {fatal:?}");
    run.findings.all.len()
}

const REDUCE: &str = "__global__ void k(int *d) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = d[t];
    SYNC;
    for (int n = 128; n > 0; n /= 2) { if (t < n) s[t] += s[t + n]; SYNC_LOOP; }
    if (t == 0) d[0] = s[0];
}";

const CASES: &[(&str, &str, &str, &str)] = &[
    (
        "missing barrier after a store",
        REDUCE,
        "SYNC;=>;|SYNC_LOOP=>__syncthreads()",
        "SYNC;=>__syncthreads();|SYNC_LOOP=>__syncthreads()",
    ),
    (
        "missing barrier in a loop",
        REDUCE,
        "SYNC;=>__syncthreads();|SYNC_LOOP=>",
        "SYNC;=>__syncthreads();|SYNC_LOOP=>__syncthreads()",
    ),
    ("missing atomic", "__global__ void k(int *d) { ADD; }", "ADD=>d[0] += 1", "ADD=>atomicAdd(&d[0], 1)"),
    (
        "plain read beside atomics",
        "__global__ void k(int *d) { atomicMax(&d[0], (int)threadIdx.x); READ; }",
        "READ=>if (d[0] == 7) d[1 + threadIdx.x + blockIdx.x * 256] = 1",
        "READ=>if (atomicOr(&d[0], 0) == 7) d[1 + threadIdx.x + blockIdx.x * 256] = 1",
    ),
    (
        "guard missing",
        "__global__ void k(int *d) { GUARD d[5] = 3; }",
        "GUARD=>",
        "GUARD=>if (threadIdx.x == 0 && blockIdx.x == 0)",
    ),
    (
        "neighbour of another block",
        "__global__ void k(int *d) { int i = blockIdx.x * 256 + threadIdx.x; d[i OFF] = d[i + OTHER] + 1; }",
        "OFF=>|OTHER=>1",
        "OFF=>|OTHER=>0",
    ),
    (
        "warp without syncwarp",
        "__global__ void k(int *d) { __shared__ int s[256]; int t = threadIdx.x; s[t] = t; WARP; int v = s[t ^ 1]; d[t + blockIdx.x * 256] = v; }",
        "WARP=>",
        "WARP=>__syncwarp()",
    ),
    (
        "warp wider than a warp",
        "__global__ void k(int *d) { __shared__ int s[256]; int t = threadIdx.x; s[t] = t; __syncwarp(); int v = s[t ^ FLIP]; d[t + blockIdx.x * 256] = v; }",
        "FLIP=>32",
        "FLIP=>16",
    ),
    (
        "two blocks one counter",
        "__global__ void k(int *d) { if (threadIdx.x == 0) COUNT; }",
        "COUNT=>d[1]++",
        "COUNT=>atomicAdd(&d[1], 1)",
    ),
    (
        "block scope over blocks",
        "__global__ void k(int *d) { ADD(&d[0], 1); }",
        "ADD=>atomicAdd_block",
        "ADD=>atomicAdd",
    ),
    (
        "reuse of a tile",
        "__global__ void k(int *d) { __shared__ int s[256]; int t = threadIdx.x, v = 0; for (int i = 0; i < 3; i++) { s[t] = i + t; __syncthreads(); v += s[255 - t]; END; } d[t + blockIdx.x * 256] = v; }",
        "END=>",
        "END=>__syncthreads()",
    ),
    (
        "the last block adds up",
        "__device__ int count; __global__ void k(int *d) { __shared__ bool last; if (threadIdx.x == 0) { d[blockIdx.x] = 5; FENCE; last = atomicAdd(&count, 1) == gridDim.x - 1; } __syncthreads(); if (last && threadIdx.x == 0) { int v = 0; for (int i = 0; i < gridDim.x; i++) v += d[i]; d[100] = v; } }",
        "FENCE=>",
        "FENCE=>__threadfence()",
    ),
];

fn with(kernel: &str, replaced: &str) -> String {
    replaced.split('|').fold(kernel.to_owned(), |kernel, pair| {
        let (from, to) = pair.split_once("=>").unwrap();
        kernel.replace(from, to)
    })
}

#[test]
fn every_class_of_race_is_found_and_its_twin_is_clean() {
    for (name, kernel, racy, clean) in CASES {
        assert!(races(&with(kernel, racy), "k<<<4, 256>>>(d)") > 0, "{name}: nothing found");
        let (_, run) = run(
            &on_ints(&with(kernel, clean), "k<<<4, 256>>>(d)", 4096, 0),
            Checks { race: true, ..Checks::MEMORY },
        );
        let global_reduce = kernel == &REDUCE;
        let all: Vec<_> = run
            .findings
            .all
            .iter()
            .filter(|finding| !global_reduce || finding.title.contains("__shared__"))
            .collect();
        assert!(all.is_empty(), "{name}: {all:?}");
    }
}

#[test]
fn launches_in_two_streams_race_unless_an_event_orders_them() {
    let text = |between: &str| {
        format!(
            "#include <cstdio>
__global__ void w(int *d) {{ d[threadIdx.x] = 1; }}
__global__ void r(int *d, int *o) {{ o[threadIdx.x] = d[threadIdx.x]; }}
int main() {{
    int *d, *o;
    cudaMalloc(&d, 256); cudaMalloc(&o, 256);
    cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b);
    cudaEvent_t e; cudaEventCreate(&e);
    w<<<1, 64, 0, a>>>(d);
    {between}
    r<<<1, 64, 0, b>>>(d, o);
    cudaDeviceSynchronize();
}}"
        )
    };
    let found = |between: &str| {
        let (_, run) = run(&text(between), Checks { race: true, ..Checks::MEMORY });
        run.findings.all.len()
    };
    assert_eq!(found(""), 1);
    for between in [
        "cudaEventRecord(e, a); cudaStreamWaitEvent(b, e);",
        "cudaStreamSynchronize(a);",
        "cudaDeviceSynchronize();",
        "w<<<1, 1>>>(o);",
    ] {
        assert_eq!(found(between), 0, "{between}");
    }
}
