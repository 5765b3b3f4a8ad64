//! All tests of the book that need no browser: one binary, which links once and runs all tests side by side.

mod common;

mod both;
mod building;
mod cheat_sheet;
mod checks;
mod commands;
mod directives;
mod ending;
mod error_pages;
mod folder;
mod lint;
mod plan;
mod predictions;
mod score;
mod serving;
