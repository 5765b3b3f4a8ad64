//! Reports as exact texts.

use crate::{on_ints, run};
use cuda_emulator::{Checks, report};

fn reported(kernel: &str, launch: &str) -> String {
    let (program, run) = run(&on_ints(kernel, launch, 100, 0), Checks { leaks: false, ..Checks::ALL });
    report::text(&program.files, &run, Checks::MEMORY)
}

#[test]
fn a_write_beyond_an_allocation_names_line_thread_and_allocation() {
    let kernel = "__global__ void k(int *out, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i <= n) out[i] = i;\n}";
    let expected = "\
========= COMPUTE-SANITIZER (emulated)
========= Invalid __global__ write of size 4 bytes
=========     at k(int *, int) in my.cu:4:17
=========         if (i <= n) out[i] = i;
=========     by thread (36,0,0) in block (1,0,0)
=========     Access to 0x7f0000100490 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f0000100300 of size 400 bytes
=========
========= Program hit cudaErrorIllegalAddress (error 700) due to \"an illegal memory access was encountered\" on CUDA API call to cudaDeviceSynchronize.
=========
========= ERROR SUMMARY: 2 errors
";
    let found = reported(kernel, "k<<<2, 64>>>(d, 100)");
    // Addresses depend on what else the program has.
    let strip = |text: &str| {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("0x7f") {
            out.push_str(&rest[..at]);
            out.push_str("0x…");
            rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        out + rest
    };
    assert_eq!(strip(&found), strip(expected));
}

#[test]
fn each_kind_of_fault_is_found_once_at_its_line() {
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "__global__ void k(int *o) { int *p = nullptr; o[0] = *p; }",
            "k<<<1, 1>>>(d)",
            "Invalid __global__ read of size 4 bytes",
            "the pointer is null",
        ),
        (
            "__global__ void k(int *o) { *(int *)((char *)o + 2) = 1; }",
            "k<<<1, 1>>>(d)",
            "Invalid __global__ write of size 4 bytes",
            "misaligned",
        ),
        (
            "__global__ void k(int *o) { ((float4 *)(o + 1))[0] = make_float4(1, 2, 3, 4); }",
            "k<<<1, 1>>>(d)",
            "Invalid __global__ write of size 4 bytes",
            "multiple of 16",
        ),
        (
            "__global__ void k(int *o) { __shared__ int s[8]; s[threadIdx.x] = 1; }",
            "k<<<1, 9>>>(d)",
            "Invalid __shared__ write of size 4 bytes",
            "after `s` of size 32 bytes",
        ),
        (
            "__global__ void k(int *o) { int a[4]; a[threadIdx.x + 4] = 1; o[0] = a[0]; }",
            "k<<<1, 1>>>(d)",
            "Invalid __local__ write of size 4 bytes",
            "of `a` of size 16 bytes",
        ),
        (
            "__global__ void k(int *o) { __shared__ int s[8]; o[0] = s[1]; }",
            "k<<<1, 1>>>(d)",
            "Uninitialized __shared__ memory read of size 4 bytes",
            "",
        ),
        (
            "__global__ void k(int *o) { assert(o[1] == 2); }",
            "k<<<1, 1>>>(d)",
            "Assertion `o[1] == 2` failed",
            "",
        ),
        (
            "__global__ void k(int *o) { if (threadIdx.x < 3) __syncthreads(); }",
            "k<<<1, 32>>>(d)",
            "Barrier error detected. Divergent thread(s) in warp",
            "",
        ),
        (
            "__global__ void k(int *o) { o[threadIdx.x] = __shfl_sync(0xf, 1, 0); }",
            "k<<<1, 8>>>(d)",
            "Barrier error detected. Invalid arguments",
            "leaves out",
        ),
        (
            "__global__ void k(int *o) { while (true) { } }",
            "k<<<1, 1>>>(d)",
            "The kernel does not end",
            "was stopped",
        ),
        (
            "__global__ void k(int *o) { if (threadIdx.x == 5) __syncthreads(); else __syncwarp(); }",
            "k<<<1, 32>>>(d)",
            "Deadlock: threads wait for each other",
            "each waits",
        ),
        (
            "__global__ void k(int *o) { o[0] = 1; }",
            "k<<<1, 1>>>(h)",
            "Invalid __global__ write of size 4 bytes",
            "memory of the host",
        ),
        (
            "__global__ void k(int *o) { o[0] = 1; }",
            "cudaFree(d); k<<<1, 1>>>(d)",
            "Invalid __global__ write of size 4 bytes",
            "was freed",
        ),
        (
            "__global__ void k(int *o) { }",
            "k<<<1, 1025>>>(d)",
            "the launch has an invalid configuration",
            "1,024 is the most",
        ),
        (
            "__global__ void k(int *o) { }",
            "cudaMemcpy(d, h, 401, cudaMemcpyHostToDevice)",
            "the destination of `cudaMemcpy` is out of bounds",
            "401 bytes",
        ),
        (
            "__global__ void k(int *o) { }",
            "cudaMemcpy(h, d, 4, cudaMemcpyHostToDevice)",
            "the source of `cudaMemcpy` is on the wrong side",
            "memory of the device",
        ),
        (
            "__global__ void k(int *o) { }",
            "h[0] = *d",
            "Invalid host read of size 4 bytes",
            "by `cudaMemcpy`",
        ),
    ];
    for (kernel, launch, title, note) in cases {
        let (_, run) = run(&on_ints(kernel, launch, 100, 0), Checks::ALL);
        let found = run.findings.all.iter().find(|finding| finding.title.contains(title));
        let found = found.unwrap_or_else(|| panic!("{kernel}: {title}: {:?}", run.findings.all));
        assert!(
            found.notes.iter().any(|text| text.contains(note)) || note.is_empty(),
            "{title}: {:?}",
            found.notes
        );
        assert_eq!(run.exit_code(), 1, "{kernel}");
        assert!(found.sites.iter().all(|site| site.span.is_some_and(|span| span.line >= 2)), "{found:?}");
    }
}
