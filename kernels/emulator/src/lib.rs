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
