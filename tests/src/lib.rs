//! Tests across the packages are in `tests/`; the benchmark is `src/bin/bench.rs`.
