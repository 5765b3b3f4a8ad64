//! The figures of cards: numbers with their units and sources, and files that override some of them.
//!
//! `todevice-gpu` simulates these cards, and lab 12 models the time of a reader's kernel on them.

pub mod figure;
pub mod figure_file;
pub mod link;
pub mod product;
pub mod profile;
