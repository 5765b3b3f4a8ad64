//! Tests of the simulated GPU under host code: its memory, its order and its time.

use cuda_emulator::{Checks, Program};
use lab_12::gpu::simulated;
use lab_12::{Wanted, card, model};
use todevice_figures::profile::{H200, T4};

/// The output of a program on the simulated T4, which must have no findings.
fn output(body: &str) -> String {
    let response = lab_12::run("my.cu", &program(body), &|_| None, Wanted::default());
    assert_eq!((response.code, &*response.errors), (0, ""), "{}", response.output);
    response.output.split("=========").next().unwrap_or_default().to_owned()
}

/// A program with a kernel, and functions for the usual calls.
fn program(body: &str) -> String {
    format!(
        r#"#include <cstdio>
#include <vector>
__constant__ float factor;
__device__ float offset;
__global__ void scale(float *x, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + 1;
}}
__global__ void shift(float *x) {{ x[threadIdx.x] = x[threadIdx.x] * factor + offset; }}
cudaEvent_t event() {{ cudaEvent_t e; cudaEventCreate(&e); return e; }}
float between(cudaEvent_t a, cudaEvent_t b) {{ float ms = -1; cudaEventElapsedTime(&ms, a, b); return ms; }}
const int N = 1 << 18, BYTES = 4 * N;
int main() {{
    float *d, *p;
    std::vector<float> h(N, 1.0f);
    cudaEvent_t a = event(), b = event(), c = event();
    cudaMalloc(&d, BYTES);
    cudaMallocHost(&p, BYTES);
    {body}
    cudaDeviceSynchronize();
    cudaFree(d);
    cudaFreeHost(p);
}}"#
    )
}

#[test]
fn a_program_has_as_much_memory_as_the_card() {
    let figures = r#"
    size_t before, total, free;
    cudaMemGetInfo(&before, &total);
    float *more;
    int code = cudaMalloc(&more, 3 << 20);
    cudaMemGetInfo(&free, &total);
    printf("%zu %zu %d\n", total, before - free, code);
    cudaFree(more);
    cudaMemGetInfo(&free, &total);
    cudaDeviceProp all;
    cudaGetDeviceProperties(&all, 0);
    printf("%d %d %s\n", before == free, all.totalGlobalMem == total, all.name);"#;
    // Memory is mapped in pages of 2 MiB.
    let total = T4.memory.value as u64;
    assert_eq!(output(figures), format!("{total} {} 0\n1 1 Tesla T4 (emulated)\n", 4 << 20));

    // A request for more than the emulator holds keeps no memory, and wrong sizes do not panic.
    let refused = r#"
    size_t before, free, total;
    float *more;
    cudaMemGetInfo(&before, &total);
    printf("%d ", cudaMalloc(&more, 1 << 30));
    printf("%d ", cudaMallocManaged(&more, 1 << 30));
    printf("%d ", cudaMallocHost(&more, -1));
    printf("%d ", cudaMalloc(&more, -1));
    cudaMemGetInfo(&free, &total);
    printf("%d\n", before == free);"#;
    let refused = lab_12::run("my.cu", &program(refused), &|_| None, Wanted::default()).output;
    assert!(refused.starts_with("2 2 2 2 1\n"), "{refused}");

    // 20 GiB fit on an H200 and not on a T4. The emulator holds less on every computer.
    let large = "float *all; printf(\"%d\\n\", cudaMalloc(&all, 20ull << 30));";
    let run =
        |card| lab_12::run("my.cu", &program(large), &|_| None, Wanted { card, ..Wanted::default() }).output;
    let error = "Program hit cudaErrorMemoryAllocation (error 2) due to \"out of memory\" on CUDA API call to cudaMalloc.";
    let limit = "the GPU has memory for 21,474,836,480 bytes, but the emulator holds 512 MiB at most";
    let outputs = [run(&T4), run(&H200)];
    assert!(outputs.iter().all(|output| output.starts_with("2\n") && output.contains(error)), "{outputs:?}");
    assert_eq!(outputs.map(|output| output.contains(limit)), [false, true]);
}

#[test]
fn the_time_between_events_is_that_of_the_counters_table() {
    let text = program(
        "scale<<<N / 256, 256>>>(d, N); cudaEventRecord(a); scale<<<N / 256, 256>>>(d, N); cudaEventRecord(b); \
         cudaEventSynchronize(b); printf(\"%.4f\\n\", between(a, b) * 1000);",
    );
    let program = Program::compile("my.cu", &text, &|_| None).unwrap_or_else(|error| panic!("{error}"));
    let mut machine = program.machine(Checks::MEMORY);
    machine.counters = Some(Vec::new());
    let run = simulated::run(&program, machine, &T4, &|_| None).expect("there is a `main`");
    let modelled =
        model::time(&T4, &run.counters[0], &program.kernels[run.counters[0].kernel as usize], None);
    let of_one = modelled.expect("its blocks fit").microseconds / 2.0;
    let printed: f64 = run.output.trim().parse().expect("a number");
    // The device rests between two kernels.
    let expected = of_one + T4.kernel_gap.value;
    assert!((printed - expected).abs() < 0.02, "{printed} {expected}");
    // With checks, the time is the same.
    let checked = lab_12::run("my.cu", &text, &|_| None, Wanted { checks: Checks::ALL, ..Wanted::default() });
    assert!(checked.output.starts_with(&run.output), "{}", checked.output);
    let note = "Times of cudaEventElapsedTime are modelled for a Tesla T4, not measured.\n";
    assert!(checked.output.ends_with(note), "{}", checked.output);
    let json = lab_12::run("my.cu", &text, &|_| None, Wanted { json: true, ..Wanted::default() }).output;
    assert!(json.ends_with(",\"times\":\"modelled\"}\n"), "{json}");
    let counted = |json| {
        let wanted = Wanted { counters: true, json, ..Wanted::default() };
        lab_12::run("my.cu", &text, &|_| None, wanted).output
    };
    assert!(counted(false).ends_with(note) && counted(true).ends_with(",\"times\":\"modelled\"}\n"));
    let other = lab_12::run("my.cu", &text, &|_| None, Wanted { card: &H200, ..Wanted::default() }).output;
    let other: f64 = other.lines().next().and_then(|line| line.parse().ok()).expect("a number");
    assert!(other < printed, "{other} {printed}");
}

/// Without `--counters`, only some blocks are counted. The time is nearly the same, and the results are equal.
#[test]
fn a_sample_of_the_blocks_gives_the_time_of_all() {
    let product = include_str!("../../../kernels/emulator/tests/programs/matmul.cu");
    let product = product
        .replace("    matmul<<<", "    cudaEvent_t s, e; cudaEventCreate(&s); cudaEventCreate(&e); cudaEventRecord(s);\n    matmul<<<")
        .replace("(a, b, c, n);\n#endif", "(a, b, c, n); cudaEventRecord(e); cudaEventSynchronize(e); float ms; \
                  cudaEventElapsedTime(&ms, s, e); printf(\"%g\\n\", ms);\n#endif");
    let sums = program(
        "scale<<<999, 1>>>(d, 999); cudaEventRecord(a); scale<<<300, 100>>>(d, 20000); cudaEventRecord(b); \
         cudaEventSynchronize(b); printf(\"%g\\n\", between(a, b));",
    );
    for text in [product, sums] {
        let program = Program::compile("my.cu", &text, &|_| None).unwrap_or_else(|error| panic!("{error}"));
        let run = |counters| {
            let mut machine = program.machine(Checks::MEMORY);
            machine.counters = counters;
            let output = simulated::run(&program, machine, &T4, &|_| None).expect("there is a `main`").output;
            let (time, rest) = output.split_once('\n').expect("a line");
            (time.parse::<f64>().expect("a time"), rest.to_owned())
        };
        let [(sampled, printed), (all, expected)] = [None, Some(Vec::new())].map(run);
        assert_eq!(printed, expected);
        assert!((sampled / all - 1.0).abs() < 0.05, "{sampled} {all}");
    }
}

#[test]
fn work_has_run_after_its_modelled_time() {
    let body = r#"
    cudaEventRecord(a);
    scale<<<N / 256, 256>>>(d, N);
    cudaEventRecord(b);
    float ms = -1;
    int early = cudaEventElapsedTime(&ms, a, b);
    printf("%d %d %d %g\n", cudaEventQuery(b), cudaStreamQuery(0), early, ms);
    cudaStreamSynchronize(0);
    printf("%d %d %d\n", cudaEventQuery(b), cudaStreamQuery(0), between(a, b) > 0);
    int polls = 0;
    scale<<<N / 256, 256>>>(d, N);
    while (cudaStreamQuery(0) == cudaErrorNotReady) polls++;
    printf("%d\n", polls > 1 && polls < 100);
    cudaGetLastError();"#;
    assert_eq!(output(body), "600 600 600 -1\n0 0 1\n1\n");
}

#[test]
fn copies_take_time_and_overlap_with_kernels_if_they_may() {
    let body = r#"
    float times[3];
    for (int pinned = 0; pinned < 2; pinned++) {
        cudaEventRecord(a);
        cudaMemcpy(d, pinned ? p : h.data(), BYTES, cudaMemcpyHostToDevice);
        cudaEventRecord(b);
        cudaEventSynchronize(b);
        times[pinned] = between(a, b);
    }
    printf("%d\n", times[1] < times[0]);
    // A kernel and a copy in two streams, and in one.
    float *other;
    cudaMalloc(&other, BYTES);
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) cudaStreamCreate(&streams[i]);
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        cudaEventRecord(a, 0);
        for (int i = 0; i < 20; i++) scale<<<N / 256, 256, 0, streams[0]>>>(d, N);
        cudaMemcpyAsync(other, p, BYTES, cudaMemcpyHostToDevice, streams[overlaps]);
        cudaEventRecord(b, 0);
        cudaEventSynchronize(b);
        times[overlaps] = between(a, b);
    }
    printf("%d\n", times[1] < times[0] - 0.05f);
    cudaFree(other);"#;
    let text = body.replace("float times", "for (int i = 0; i < N; i++) p[i] = i; float times");
    assert_eq!(output(&text), "1\n1\n");
}

#[test]
fn handles_are_checked() {
    let body = r#"
    cudaStream_t s;
    cudaStreamCreate(&s);
    printf("%d ", cudaEventElapsedTime(&h[0], a, b));
    cudaStreamDestroy(s);
    cudaEventDestroy(c);
    printf("%d %d %d\n", cudaStreamSynchronize(s), cudaEventRecord(c), cudaEventDestroy(c));"#;
    let response = lab_12::run("my.cu", &program(body), &|_| None, Wanted::default());
    assert!(response.output.starts_with("400 400 400 400\n"), "{}", response.output);
    let report =
        "cudaErrorInvalidResourceHandle (error 400) due to \"invalid resource handle\" on CUDA API call to ";
    assert_eq!(response.output.matches(report).count(), 4, "{}", response.output);
}

/// A wait that fails is no wait: the host may not access managed memory after it.
#[test]
fn a_wait_for_a_destroyed_event_orders_nothing() {
    let body = |destroyed: &str| {
        let body = format!(
            "float *m; cudaMallocManaged(&m, 4); m[0] = 1; scale<<<1, 1>>>(m, 1); cudaEventRecord(c); {destroyed} \
             cudaEventSynchronize(c); printf(\"%g\\n\", m[0]); cudaFree(m);"
        );
        lab_12::run("my.cu", &program(&body), &|_| None, Wanted::default()).output
    };
    let finding = "The host reads managed memory while a kernel may still run";
    let [waited, failed] = ["", "cudaEventDestroy(c);"].map(body);
    assert!(!waited.contains(finding), "{waited}");
    assert!(failed.contains(finding) && failed.contains("CUDA API call to cudaEventSynchronize"), "{failed}");
}

#[test]
fn variables_of_the_device_are_copied_and_counted() {
    let body = r#"
    float two = 2, half = 0.5f, back[2];
    size_t before, free, total;
    cudaMemGetInfo(&before, &total);
    cudaMemcpyToSymbol(factor, &two, sizeof two);
    cudaMemcpyToSymbol(offset, &half, sizeof half);
    cudaMemGetInfo(&free, &total);
    cudaMemcpy(d, h.data(), BYTES, cudaMemcpyHostToDevice);
    shift<<<1, 2>>>(d);
    cudaMemcpy(back, d, 8, cudaMemcpyDeviceToHost);
    printf("%g %g %d\n", back[0], back[1], before > free);"#;
    assert_eq!(output(body), "2.5 2.5 1\n");
}

#[test]
fn every_card_runs_the_default_program() {
    for card in todevice_figures::profile::ALL {
        let response = lab_12::run("my.cu", lab_12::EXAMPLE, &|_| None, Wanted { card, ..Wanted::default() });
        assert_eq!(response.code, 0, "{}: {}", card.name, response.output);
    }
    assert_eq!(card::DEFAULT.name, T4.name);
}

/// Each argument of each CUDA call in a program is replaced by values that readers pass by mistake.
#[test]
fn wrong_arguments_do_not_panic() {
    let text = include_str!("../../../kernels/emulator/tests/programs/timed.cu");
    let (mut mutants, mut ran) = (Vec::new(), 0);
    for (start, _) in text.match_indices("(").filter(|(at, _)| {
        let name = text[..*at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        name.starts_with("cuda")
    }) {
        let end = start + text[start..].find(';').expect("a statement");
        let arguments = text[start + 1..end].rsplit_once(')').map_or("", |(inner, _)| inner);
        let mut at = start + 1;
        for argument in arguments.split(',') {
            for value in ["0", "-1", "1", "bytes + 4", "1ull << 63", "&two", "x", "stop", "(cudaEvent_t)7"] {
                mutants.push(format!("{}{value}{}", &text[..at], &text[at + argument.len()..]));
            }
            at += argument.len() + 1;
        }
    }
    for mutant in &mutants {
        let response = lab_12::run("my.cu", mutant, &|_| None, Wanted::default());
        ran += usize::from(response.errors.is_empty());
    }
    assert!(ran > 50 && mutants.len() > 200, "{ran} of {}", mutants.len());
}
