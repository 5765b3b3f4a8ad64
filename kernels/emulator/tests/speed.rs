//! Measures the duration of a matrix product; the times are informative, not bounds.

use cuda_emulator::{Checks, Program};

/// Run with `cargo test -p cuda-emulator -- --ignored --nocapture speed`.
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
        for _ in 0..9 {
            let start = seconds();
            let run = program.run(checks).unwrap();
            best = best.min(seconds() - start);
            assert!(run.output.starts_with("no error"));
        }
        println!("{name}: {best:.3} s");
    }
}

/// Seconds of CPU time of this thread, if the system reports them, since other work may share the CPU.
fn seconds() -> f64 {
    let on_processor = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = on_processor.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    match nanoseconds {
        Some(nanoseconds) => nanoseconds * 1e-9,
        None => std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64()),
    }
}
