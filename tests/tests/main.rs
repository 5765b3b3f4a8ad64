//! All cross-package tests except those in a browser and in WebAssembly: one binary, which links once and runs them in
//! parallel.

#[path = "../../tensor/tests/common/halves.rs"]
mod half_patterns;
#[path = "../fake_cuda/stand_ins.rs"]
mod stand_ins;

mod bench;
mod card;
#[cfg(target_os = "linux")]
mod card_visits;
mod crates_a_lab_brings;
mod cuda_kernels;
mod determinism;
mod differ;
mod every_test_runs;
mod floors;
mod lab_03;
mod labs_in_pytorch;
#[cfg(target_os = "linux")]
mod nvcc;
#[cfg(target_os = "linux")]
mod nvml;
mod own_project;
mod public_names;
mod pytorch_amp;
mod pytorch_training;
mod trace;
