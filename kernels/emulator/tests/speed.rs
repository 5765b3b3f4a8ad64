//! How long a product of matrices takes; a figure to look at, not a bound.

use cuda_emulator::{Checks, Program};

/// `cargo test -p cuda-emulator -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement"]
fn speed_of_a_tiled_product_of_256() {
    let program = Program::compile("matmul.cu", include_str!("programs/matmul.cu"), &|_| None).unwrap();
    if std::env::var_os("SHOW").is_some() {
        for (at, op) in program.kernels[0].ops.iter().enumerate() {
            println!("{at} {op:?}");
        }
    }
    for (name, checks) in [("memory checks", Checks::MEMORY), ("all checks", Checks::ALL)] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = std::time::Instant::now();
            let run = program.run(checks).unwrap();
            best = best.min(start.elapsed().as_secs_f64());
            assert!(run.output.starts_with("no error"));
        }
        println!("{name}: {best:.3} s");
    }
}
