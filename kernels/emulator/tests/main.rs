//! The emulator's tests, in one binary.

mod counters;
mod course;
mod destructors;
mod errors;
mod findings;
mod fuzz;
mod hazards;
mod hints;
mod host_code;
mod host_library;
mod irregular;
mod language;
mod races;
mod recursion;
mod speed;
mod steps;
mod waiting;

use cuda_emulator::{Checks, Program, Run, report};

/// Compiles and runs a program.
pub fn run(text: &str, checks: Checks) -> (Program, Run) {
    let program = Program::compile("my.cu", text, &|_| None).unwrap_or_else(|trouble| panic!("{trouble}"));
    let run = program.run(checks).expect("there is a `main`");
    (program, run)
}

/// Runs a program that must have no findings, and returns its output.
pub fn output(text: &str) -> String {
    let (program, run) = run(text, Checks::ALL);
    assert_eq!(run.exit_code(), 0, "{}{}", run.output, report::text(&program.files, &run, Checks::ALL));
    run.output
}

/// A `main` that launches a kernel on an array of ints and prints the result.
pub fn on_ints(kernel: &str, launch: &str, count: usize, shown: usize) -> String {
    format!(
        r#"#include <cstdio>
{kernel}
int main() {{
    int h[{count}], *d;
    for (int i = 0; i < {count}; i++) h[i] = i;
    cudaMalloc(&d, sizeof(h));
    cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
    {launch};
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {{ printf("%s\n", cudaGetErrorString(e)); return 1; }}
    cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost);
    for (int i = 0; i < {shown}; i++) printf("%d ", h[i]);
    printf("\n");
    cudaFree(d);
}}
"#
    )
}
