//! The book of To Device: mdBook, a preprocessor that puts the labs' code and tested output into the chapters,
//! a builder that runs all of it in one process, and a local server.
//!
//! A chapter is Markdown with a few directives, which [`page`] lists. Whatever is wrong with one fails the build
//! with its place, `book/chapters/03-training-loop.md:12: …`.

mod anchor;
mod block;
pub mod builder;
mod chain;
mod course;
mod directive;
mod doctests;
mod document;
mod exercises;
pub mod fences;
mod first_page;
pub mod folder;
mod html;
mod inline;
mod labs;
pub mod links;
pub mod lint;
mod map;
mod markdown;
mod minutes;
mod mistake;
mod names;
mod origin;
mod output;
pub mod page;
mod plan;
mod plan_page;
pub mod prediction;
pub mod preprocessor;
mod questions;
pub mod server;
mod sources;
mod toml_file;
mod warnings;
pub mod watch;

pub use course::Course;
pub use mistake::Mistake;
