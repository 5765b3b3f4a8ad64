//! Tests of the labs in process and as programs: one binary, which links once and runs all tests in parallel.

mod said;
#[cfg(target_os = "linux")]
#[path = "../../tests/fake_cuda/stand_ins.rs"]
mod stand_ins;
mod tiny;

mod claims;
mod flags;
mod lab_00;
mod lab_01;
mod lab_02;
mod lab_03;
mod lab_04;
mod lab_05;
mod lab_06;
mod lab_07;
mod lab_08;
mod lab_09;
mod lab_10;
mod lab_11;
mod lab_13;
mod predictions;
mod questions;
#[cfg(target_os = "linux")]
mod real_gpu;
mod rendering;
mod report;
mod runs;
mod sensitivity;
