//! An emulator that compiles, runs and checks CUDA C++ without a GPU.
//!
//! Source text passes through these modules in order:
//!
//! | module | input | output |
//! | --- | --- | --- |
//! | [`source`] | the files' text | tokens, each with its position |
//! | [`syntax`] | tokens | a syntax tree |
//! | [`types`] | | types and their layout |
//! | [`lower`] | the syntax tree | a program for `main` and one for each kernel, with templates instantiated |
//! | [`ir`] | | the instructions, their semantics and their validator |
//! | [`run`] | a program | its effects on memory, and the checks' findings |
//! | [`host`] | | the CUDA and C functions that `main` calls, on a [`host::device::Device`] |
//! | [`report`] | findings | text in compute-sanitizer's wording, or JSON |
//!
//! Anything outside the subset is rejected by name and position. Accepted programs behave as in CUDA.
//!
//! # Comparison with other tools
//!
//! HiRace's suite (SC24) has 590 kernels: 346 with a planted race and 144 with an out-of-bounds access. On each of
//! its four graphs of 100 and 200 nodes, the emulator finds all 346 races and reports none in the 244 other kernels;
//! HiRace finds 346, iGUARD 297 or 298, compute-sanitizer 56 to 128. On the two graphs of 5 nodes, where most races
//! cannot happen, it finds 186 and 300; HiRace finds 182 and 295. On `power_law_200n_1000e`, all 144 out-of-bounds
//! accesses happen and are found. From a clone of the suite:
//! `cargo run --release -p cuda-emulator --example hirace -- HiRace-Artifact-SC24`.
//!
//! Random kernels give the same bits as g++:
//! `cargo run --release -p cuda-emulator --example against_gpp -- 10000`.
//!
//! Mutants of real files neither panic nor take long:
//! `cargo run --release -p cuda-emulator --example mutants -- 1000000`.

// An access takes a block, a warp, lanes, a position and a type. Loops index by lane, since they walk several arrays
// together.
#![allow(clippy::too_many_arguments, clippy::needless_range_loop)]

pub mod host;
pub mod ir;
pub mod lower;
pub mod report;
pub mod run;
pub mod source;
pub mod syntax;
pub mod types;

pub use host::program::{Outcome, Program, Rejected, Run};
pub use run::checks::Checks;
pub use source::{Error, Files, Span};
