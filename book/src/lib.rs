//! The book of To Device: mdBook, a preprocessor that inserts the labs' code and tested output into the chapters, a
//! builder that runs everything in one process, and a local server.
//!
//! A chapter is Markdown with a few directives: see [`page`]. A mistake in one fails the build with its place, such as
//! `book/chapters/03-training-loop.md:12: …`.

mod anchor;
mod assessment;
mod block;
pub mod builder;
mod cards;
mod chain;
mod cheat_sheet;
pub mod checks;
mod clients;
pub mod compile_progress;
mod course;
mod digits;
mod directive;
mod doctests;
mod document;
mod ending;
mod english;
mod error_pages;
mod exercises;
pub mod fences;
mod first_page;
pub mod folder;
mod guide;
mod how_wrong;
mod html;
mod inline;
mod kernels;
mod known_mistakes;
mod lab_12;
mod lab_code;
mod labs;
pub mod links;
pub mod lint;
mod literals;
mod map;
mod markdown;
mod minutes;
mod mistake;
mod names;
mod objectives;
mod opened;
mod origin;
mod output;
pub mod packed;
pub mod page;
mod plan;
mod plan_page;
pub mod player;
pub mod prediction;
pub mod preprocessor;
mod prose;
pub mod publish;
mod python;
mod questions;
pub mod room;
mod room_page;
mod score_page;
mod seeds;
pub mod server;
mod shown_code;
mod sources;
mod toml_file;
mod warnings;
pub mod watch;
mod what_if;
mod words;

pub use course::Course;
pub use mistake::{Mistake, lines};
