//! CUDA C++ compiled, run and checked without a GPU.
//!
//! A text goes through these modules, in this order:
//!
//! | module | input | output |
//! | --- | --- | --- |
//! | [`source`] | the text of files | tokens, each with its place |
//! | [`syntax`] | tokens | a syntax tree |
//! | [`types`] | | types and their layout |
//! | [`lower`] | the tree | a program for `main` and one for each kernel, with templates instantiated |
//! | [`ir`] | | the instructions, their semantics and their validator |
//! | [`run`] | a program | its effects on memory, and what the checks found |
//! | [`host`] | | the functions of CUDA and C that `main` calls |
//! | [`report`] | findings | text with compute-sanitizer's wording, or JSON |
//!
//! Anything outside the subset is rejected with its name and place; it never runs differently from CUDA.
//!
//! # Against others
//!
//! HiRace's suite (SC24) has 590 kernels, 346 of them with a planted race and 144 with an access out of bounds. On each of its
//! four graphs of 100 and 200 nodes, all 346 races are found here, and no race among the 244 other kernels; HiRace finds
//! 346, iGUARD 297 or 298, compute-sanitizer 56 to 128. On the two graphs of 5 nodes, where most races cannot happen, 186 and
//! 300 are found; HiRace finds 182 and 295. All 144 accesses out of bounds happen and are found on `power_law_200n_1000e`. From a
//! clone of the suite: `cargo run --release -p cuda-emulator --example hirace -- HiRace-Artifact-SC24`.
//!
//! Random kernels have the bits that g++ gives them:
//! `cargo run --release -p cuda-emulator --example against_gpp -- 10000`.

// An access has a block, a warp, lanes, a place and a type; and lanes are counted, since several arrays go together.
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
