//! Tests of reports, as exact text.

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
=========     and is 1 byte after the nearest allocation at 0x7f0000100300 of size 400 bytes
=========
========= Program hit cudaErrorIllegalAddress (error 700) due to \"an illegal memory access was encountered\" on CUDA API call to cudaDeviceSynchronize.
=========
========= The program returned 1
=========
========= ERROR SUMMARY: 2 errors
";
    let found = reported(kernel, "k<<<2, 64>>>(d, 100)");
    // Addresses depend on the rest of the program.
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
            "and is 1 byte after `s` of size 32 bytes",
        ),
        (
            "__global__ void k(int *o) { int a[4]; a[threadIdx.x + 4] = 1; o[0] = a[0]; }",
            "k<<<1, 1>>>(d)",
            "Invalid __local__ write of size 4 bytes",
            "and is 1 byte after `a` of size 16 bytes",
        ),
        (
            "__global__ void k(int *o) { __shared__ int s[8]; s[threadIdx.x] = 1; __syncthreads(); o[0] = s[int(threadIdx.x) - 2]; }",
            "k<<<1, 1>>>(d)",
            "Invalid __shared__ read of size 4 bytes",
            "and is 8 bytes before `s` of size 32 bytes",
        ),
        (
            "__global__ void k(int *o) { __shared__ int s[8]; s[threadIdx.x] = 1; __syncthreads(); o[0] = s[threadIdx.x - 2]; }",
            "k<<<1, 1>>>(d)",
            "Invalid __shared__ read of size 4 bytes",
            "`threadIdx.x - 1` is unsigned: instead of -1 it is 4,294,967,295",
        ),
        (
            "__global__ void k(int *o) { int a[4]; for (int i = 0; i < 4; i++) a[i - o[0] - 1] = i; o[0] = a[o[0]]; }",
            "k<<<1, 1>>>(d)",
            "Invalid __local__ write of size 4 bytes",
            "and is 4 bytes before `a` of size 16 bytes",
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
            "Barrier error detected. Divergent thread(s) in block",
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
            "Stopped after 400,000,000 warp instructions: the kernel loops forever, or takes too long for this emulator",
            "",
        ),
        (
            "__global__ void k(int *o) { if (threadIdx.x >= 20) return; o[threadIdx.x] = __shfl_down_sync(0xffffffff, 1, 1); }",
            "k<<<1, 32>>>(d)",
            "Barrier error detected. Invalid arguments",
            "the mask 0xffffffff names the lanes 0xfff00000, which have ended without it",
        ),
        (
            "__global__ void k(int *o) { if (threadIdx.x < 16) o[0] = __shfl_xor_sync(0xffffffff, 1, 1); }",
            "k<<<1, 32>>>(d)",
            "Barrier error detected. Invalid arguments",
            "names the lanes 0xffff0000",
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
            "the maximum is 1,024",
        ),
        (
            "__global__ void k(int *o) { __shared__ char s[49152]; s[0] = o[0]; o[0] = s[0]; }",
            "k<<<1, 1, 16>>>(d)",
            "the launch has an invalid configuration (cudaErrorInvalidValue)",
            "16 from the launch",
        ),
        (
            "__global__ void k(char *o) { o[400] = 1; }",
            "k<<<1, 1>>>((char *)d)",
            "Invalid __global__ write of size 1 byte",
            "and is 1 byte after the nearest allocation",
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

#[test]
fn a_division_by_zero_stops_a_host_and_is_a_warning_on_the_device() {
    let hosts = ["5 / z", "5 % z", "5 / 0", "5ull / (unsigned long long)z", "least / minus", "least % minus"];
    for division in hosts {
        let text = format!(
            "#include <cstdio>\nint main() {{\n    int z = 0, least = INT_MIN, minus = -1;\n    printf(\"%d\", (int)({division}));\n}}"
        );
        let (program, run) = run(&text, Checks::MEMORY);
        let found = report::text(&program.files, &run, Checks::MEMORY);
        assert!(found.contains("Floating-point exception\n=========     at main in my.cu:4:"), "{found}");
        assert!(found.ends_with("ERROR SUMMARY: 1 error\n") && run.exit_code() == 1, "{found}");
    }
    for division in ["o[0] / o[1]", "5 / 0"] {
        let kernel = format!("__global__ void k(int *o) {{ o[1] = 0; o[0] = {division}; }}");
        let (program, run) = run(&on_ints(&kernel, "k<<<1, 1>>>(d)", 2, 1), Checks::MEMORY);
        let found = report::text(&program.files, &run, Checks::MEMORY);
        assert!(found.contains("========= Warning: Integer division by zero\n"), "{found}");
        assert!(found.ends_with("ERROR SUMMARY: 0 errors\n") && run.exit_code() == 0, "{found}");
        assert_eq!(run.output, "-1 \n");
    }
}

#[test]
fn after_a_fault_its_error_follows_and_no_leak_is_told_of() {
    let text = on_ints(
        "__global__ void k(int *o) { o[-1] = 1; }",
        "h[0] = 0; cudaMemcpy(d, h, 999, cudaMemcpyHostToDevice); k<<<1, 1>>>(d)",
        8,
        0,
    );
    let (program, run) = run(&text, Checks::ALL);
    let found = report::text(&program.files, &run, Checks::MEMORY);
    assert!(!found.contains("Leaked"), "{found}");
    let after = found.split("Invalid __global__ write").nth(1).unwrap();
    assert!(
        after.contains("before the nearest allocation")
            && after.contains("\n=========\n========= Program hit"),
        "{found}"
    );
    assert!(found.contains("========= The program returned 1\n"), "{found}");
}

#[test]
fn time_is_limited_on_both_sides() {
    for (kernel, launch, wanted) in [
        ("__global__ void k(int *o) { while (true) { } }", "k<<<1, 1>>>(d)", "0 seconds: the kernel loops"),
        ("__global__ void k(int *o) { }", "while (true) { }", "0 seconds: the program loops"),
        ("__global__ void k(int *o) { }", "while (true) k<<<1, 1>>>(d)", "0 seconds: the program loops"),
    ] {
        let program =
            cuda_emulator::Program::compile("my.cu", &on_ints(kernel, launch, 8, 0), &|_| None).unwrap();
        // The kernel's launch begins within the time limit, and no slice ends within it.
        let time = std::time::Duration::from_millis(if launch.starts_with("k<") { 30 } else { 0 });
        let run = program.run_limited(Checks::MEMORY, u64::MAX, time).unwrap();
        let found = report::text(&program.files, &run, Checks::MEMORY);
        assert!(found.contains(wanted) && run.exit_code() == 1, "{found}");
    }
}

#[test]
fn masks_that_cuda_allows_are_no_finding() {
    for body in [
        "if (threadIdx.x >= 20) return; o[threadIdx.x] = __shfl_down_sync(0xfffff, 1, 1);",
        "if (threadIdx.x >= 20) return; o[threadIdx.x] = __ballot_sync(0xffffffff, 1); __syncwarp();",
        "if (threadIdx.x >= 32) return; o[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1, 16); __syncthreads();",
        "unsigned m = __ballot_sync(0xffffffff, threadIdx.x < 7); if (threadIdx.x < 7) o[threadIdx.x] = __shfl_sync(m, 1, 0);",
    ] {
        let kernel = format!("__global__ void k(int *o) {{ {body} }}");
        for launch in ["k<<<1, 32>>>(d)", "k<<<1, 64>>>(d)"] {
            let (_, run) = run(&on_ints(&kernel, launch, 100, 0), Checks { race: false, ..Checks::ALL });
            assert!(run.findings.all.is_empty(), "{body}: {:?}", run.findings.all);
        }
    }
    let (_, run) = run(
        &on_ints(
            "__global__ void k(int *o) { o[threadIdx.x] = __shfl_down_sync(0xffffffff, 1, 1); }",
            "k<<<1, 20>>>(d)",
            100,
            0,
        ),
        Checks::ALL,
    );
    assert!(run.findings.all.is_empty(), "{:?}", run.findings.all);
}

#[test]
fn a_text_beyond_its_array_is_found_when_it_is_printed() {
    let kernel = "__global__ void k(int *o) { char c[2]; c[0] = 'a'; c[1] = 'b'; printf(\"%s\", c); }";
    let (_, run) = run(&on_ints(kernel, "k<<<1, 1>>>(d)", 8, 0), Checks::MEMORY);
    assert_eq!(run.findings.all[0].title, "Invalid __local__ read of size 1 byte");
}

#[test]
fn output_is_limited_on_both_sides() {
    for (kernel, launch, wanted) in [
        (
            "__global__ void k(int *o) { while (true) printf(\"%900d\\n\", 1); }",
            "k<<<1, 32>>>(d)",
            "output: the kernel loops",
        ),
        (
            "__global__ void k(int *o) { }",
            "while (true) printf(\"%900d\\n\", 1)",
            "output: the program loops",
        ),
        (
            "__global__ void k(int *o) { }",
            "while (true) puts(\"more and more\")",
            "output: the program loops",
        ),
    ] {
        let (program, run) = run(&on_ints(kernel, launch, 8, 0), Checks::MEMORY);
        let found = report::text(&program.files, &run, Checks::MEMORY);
        assert!(found.contains("Stopped after 1,048,576 bytes of") && found.contains(wanted), "{found}");
        assert_eq!((run.exit_code(), run.output.matches("left out").count()), (1, 1));
    }
}

#[test]
fn a_copy_to_the_host_of_bytes_that_nothing_wrote_is_found() {
    let text = |written: u32| {
        format!(
            "int main() {{\n    float h[100], *d;\n    cudaMalloc(&d, 400);\n    cudaMemset(d, 0, {written});\n    \
             cudaMemcpy(h, d, 400, cudaMemcpyDeviceToHost);\n    cudaFree(d);\n}}"
        )
    };
    let found = |written, checks| {
        let (program, run) = run(&text(written), checks);
        report::text(&program.files, &run, Checks::MEMORY)
    };
    let told = found(200, Checks::ALL);
    assert!(told.contains("Host API memory access error at host access to 0x7f"), "{told}");
    assert!(told.contains(" of size 400 bytes\n=========     at main in my.cu:5:"), "{told}");
    assert!(
        told.contains(
            " on access by cudaMemcpy source\n=========     200 bytes of 400 bytes were never written, from byte 200 on\n"
        ),
        "{told}"
    );
    assert!(!found(400, Checks::ALL).contains("Host API"));
    assert!(!found(200, Checks::MEMORY).contains("Host API"));
}
