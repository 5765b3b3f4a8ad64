//! Tests that compile and run the course's own kernels.

use cuda_emulator::Program;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub fn compile(name: &str) -> Result<Program, String> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let includes = |header: &str| std::fs::read_to_string(folder().join(header)).ok();
    Program::compile(name, &text, &includes)
}

pub const SOURCES: &[&str] = &[
    "conv.cu",
    "elementwise/activation.cu",
    "elementwise/binary.cu",
    "elementwise/by_number.cu",
    "elementwise/compare.cu",
    "elementwise/convert.cu",
    "elementwise/pow.cu",
    "elementwise/select.cu",
    "elementwise/unary.cu",
    "index.cu",
    "loss.cu",
    "matmul.cu",
    "norm.cu",
    "optimizer.cu",
    "plain.cu",
    "pool.cu",
    "random.cu",
    "random/dropout.cu",
    "reduce.cu",
    "reduce/cumsum.cu",
    "scaler.cu",
    "shape.cu",
    "softmax.cu",
];

#[test]
fn every_source_of_the_course_compiles() {
    let mut troubles = Vec::new();
    for name in SOURCES {
        let start = std::time::Instant::now();
        match compile(name) {
            Ok(program) => {
                let ops: usize = program.kernels.iter().map(|kernel| kernel.ops.len()).sum();
                println!(
                    "{name}: {} kernels, {ops} instructions, {:?}",
                    program.kernels.len(),
                    start.elapsed()
                );
            }
            Err(trouble) => troubles.push(format!("{name}: {trouble}")),
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}
