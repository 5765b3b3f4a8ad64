//! Tests of the levels and lines of race and barrier reports.

use crate::{on_ints, run};
use cuda_emulator::run::checks::Severity;
use cuda_emulator::{Checks, report};

const CHECKS: Checks = Checks { race: true, sync: true, ..Checks::MEMORY };

fn reported(kernel: &str, launch: &str, least: Severity) -> (String, i32) {
    let (program, run) = run(&on_ints(kernel, launch, 256, 0), CHECKS);
    (report::text_from(&program.files, &run, CHECKS, least), run.exit_code())
}

#[test]
fn a_race_between_warps_is_an_error_with_both_lines_and_its_bytes() {
    let kernel = "__global__ void k(int *d) {
    __shared__ int s[128];
    s[threadIdx.x] = d[threadIdx.x];
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < 128; i++) sum += s[i];
        d[0] = sum;
    }
}";
    // Each byte written by another thread is a hazard. Those of the same warp are less severe, and the worst one sets
    // the level.
    let expected = "\
========= COMPUTE-SANITIZER (emulated)
========= Error: Race reported between Write access at k(int *) in my.cu:4:5
=========         s[threadIdx.x] = d[threadIdx.x];
=========     by thread (32,0,0) in block (0,0,0)
=========     and Read access at k(int *) in my.cu:7:43 [508 hazards]
=========         for (int i = 0; i < 128; i++) sum += s[i];
=========     by thread (0,0,0) in block (0,0,0)
=========     WAR hazard at __shared__ 0x80
=========     Current Value : 0, Incoming Value : 32
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
========= ERROR SUMMARY: 1 error
";
    assert_eq!(reported(kernel, "k<<<1, 128>>>(d)", Severity::Warning), (expected.to_owned(), 1));
}

#[test]
fn a_race_within_a_warp_is_a_warning() {
    let kernel = "__global__ void k(int *d) { __shared__ int s[32]; s[threadIdx.x] = 1; d[threadIdx.x] = s[threadIdx.x ^ 1]; }";
    let (text, code) = reported(kernel, "k<<<1, 32>>>(d)", Severity::Warning);
    assert!(
        text.contains("========= Warning: Race reported between Write access at k(int *) in my.cu:2:"),
        "{text}"
    );
    assert!(text.contains("RAW hazard at __shared__ 0x4 (Warp Level Programming)\n"), "{text}");
    assert!(text.contains("RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"), "{text}");
    assert_eq!(code, 1);
}

#[test]
fn writes_of_the_same_value_are_of_level_info() {
    for (value, level, code) in [("7", Severity::Info, 0), ("threadIdx.x / 33", Severity::Error, 1)] {
        for (launch, memory) in [("k<<<1, 64>>>(d)", "d"), ("k<<<1, 64>>>(d)", "s"), ("k<<<2, 64>>>(d)", "d")]
        {
            let kernel =
                format!("__global__ void k(int *d) {{ __shared__ int s[1]; {memory}[0] = {value}; }}");
            let (_, found) = run(&on_ints(&kernel, launch, 8, 0), CHECKS);
            let levels: Vec<Severity> = found.findings.all.iter().map(|finding| finding.severity).collect();
            assert_eq!((levels, found.exit_code()), (vec![level], code), "{kernel} {launch}");
        }
    }
    let kernel = "__global__ void k(int *d) { d[0] = 7; }";
    let (text, _) = reported(kernel, "k<<<1, 64>>>(d)", Severity::Warning);
    assert!(text.contains("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"), "{text}");
    let (text, _) = reported(kernel, "k<<<1, 64>>>(d)", Severity::Info);
    assert!(text.contains("========= Info: Race reported between Write access"), "{text}");
    assert!(text.contains("(Identical data being written)"), "{text}");
    assert!(text.contains("Current Value : 7, Incoming Value : 7"), "{text}");
}

const LOCK: &str = "__device__ int lock;
__global__ void k(int *d) {
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            TAKE;
            d[0] += d[1];
            d[1] = threadIdx.x;
            GIVE;
            atomicExch(&lock, 0);
            done = true;
        }
    }
}";

#[test]
fn a_lock_with_fences_orders_what_is_done_under_it() {
    let with = |take: &str, give: &str| LOCK.replace("TAKE", take).replace("GIVE", give);
    for launch in ["k<<<1, 40>>>(d)", "k<<<3, 33>>>(d)", "k<<<5, 1>>>(d)"] {
        let (_, found) = run(&on_ints(&with("__threadfence()", "__threadfence()"), launch, 8, 0), CHECKS);
        assert!(found.findings.all.is_empty(), "{launch}: {:?}", found.findings.all);
        let (_, found) = run(&on_ints(&with("__threadfence()", ""), launch, 8, 0), CHECKS);
        assert!(!found.findings.all.is_empty(), "{launch}: without a fence before the lock is given back");
    }
    // A block-level fence orders only within its block.
    for (launch, is_race) in [("k<<<1, 40>>>(d)", false), ("k<<<2, 1>>>(d)", true)] {
        let kernel = with("__threadfence_block()", "__threadfence_block()");
        let (_, found) = run(&on_ints(&kernel, launch, 8, 0), CHECKS);
        assert_eq!(!found.findings.all.is_empty(), is_race, "{launch}: {:?}", found.findings.all);
    }
}

#[test]
fn two_locks_order_nothing_between_them() {
    let kernel = LOCK
        .replace("int lock;", "int lock[2];")
        .replace("&lock", "&lock[threadIdx.x % 2]")
        .replace("TAKE", "__threadfence()")
        .replace("GIVE", "__threadfence()");
    let (_, found) = run(&on_ints(&kernel, "k<<<1, 2>>>(d)", 8, 0), CHECKS);
    assert!(!found.findings.all.is_empty());
}

#[test]
fn a_message_is_handed_on_from_block_to_block() {
    // Each block waits for the previous one, reads its results, and writes on, using barriers, fences and atomics
    // together.
    let kernel = "__device__ int turn;
__global__ void k(int *d) {
    if (threadIdx.x == 0) while (atomicAdd(&turn, 0) != blockIdx.x) ;
    __syncthreads();
    d[threadIdx.x] = d[threadIdx.x ^ 32] + 1;
    __syncthreads();
    if (threadIdx.x == 0) { FENCE; atomicAdd(&turn, 1); }
}";
    let kernel = kernel.replace("d[threadIdx.x ^ 32]", "d[64 + (threadIdx.x ^ 32)]");
    let kernel = kernel.replace(
        "    __syncthreads();\n    if",
        "    __syncthreads();\n    d[64 + threadIdx.x] = d[threadIdx.x];\n    __syncthreads();\n    if",
    );
    for (fence, is_race) in [("__threadfence()", false), ("", true)] {
        let (_, found) = run(&on_ints(&kernel.replace("FENCE", fence), "k<<<4, 64>>>(d)", 128, 0), CHECKS);
        assert_eq!(!found.findings.all.is_empty(), is_race, "{fence}: {:?}", found.findings.all);
    }
}

#[test]
fn a_barrier_that_a_part_of_a_warp_or_of_the_block_leaves_out_is_found() {
    let divergent = "Barrier error detected. Divergent thread(s) in block";
    for (body, note) in [
        (
            "if (threadIdx.x < 48) __syncthreads();",
            "16 threads have ended in this warp without reaching this barrier",
        ),
        ("if (threadIdx.x >= 48) return; __syncthreads();", "16 threads have ended in this warp"),
        ("if (threadIdx.x == 63) return; __syncthreads();", "1 thread has ended in this warp"),
        ("if (threadIdx.x < 32) __syncthreads(); else __syncthreads();", "wait at different barriers"),
    ] {
        let kernel = format!("__global__ void k(int *d) {{ {body} }}");
        let (text, code) = reported(&kernel, "k<<<1, 64>>>(d)", Severity::Warning);
        assert!(text.contains(divergent) && text.contains(note) && code == 1, "{body}: {text}");
    }
    for body in [
        "if (threadIdx.x >= 32) return; __syncthreads();",
        "if (blockIdx.x == 1) __syncthreads();",
        "for (int i = 0; i < 2 + blockIdx.x; i++) __syncthreads();",
        "int x = threadIdx.x < 7; if (x) d[0] = 1; __syncthreads();",
    ] {
        let kernel = format!("__global__ void k(int *d) {{ {body} }}");
        let (text, _) = reported(&kernel, "k<<<2, 64>>>(d)", Severity::Warning);
        assert!(!text.contains(divergent), "{body}: {text}");
    }
}

#[test]
fn long_lines_are_clipped_around_the_place() {
    let kernel = format!(
        "__global__ void k(int *d) {{ {}d[-1] = 1; {}}}",
        "d[0] = 0; ".repeat(100),
        "d[0] = 0; ".repeat(100)
    );
    let (text, _) = reported(&kernel, "k<<<1, 1>>>(d)", Severity::Warning);
    let line = text.lines().find(|line| line.contains("d[-1]")).unwrap();
    assert!(
        line.chars().count() < 200 && line.starts_with("=========         …") && line.ends_with('…'),
        "{line}"
    );
}

#[test]
fn host_code_that_reads_managed_memory_too_early_is_found() {
    let text = |wait: &str| {
        format!(
            "__global__ void k(int *d) {{ d[0] = 5; }}
int main() {{
    int *d;
    cudaMallocManaged(&d, 4);
    d[0] = 1;
    k<<<1, 1>>>(d);
    {wait}
    int result = d[0];
    cudaFree(d);
    return result - 5;
}}"
        )
    };
    let (_, found) = run(&text("cudaDeviceSynchronize();"), CHECKS);
    assert_eq!((found.findings.all.len(), found.exit_code()), (0, 0), "{:?}", found.findings.all);
    let (_, found) = run(&text(""), CHECKS);
    assert_eq!(found.findings.all[0].title, "The host reads managed memory while a kernel may still run");
    assert_eq!(found.exit_code(), 1);
}
