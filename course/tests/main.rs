//! `course` as a student, a teacher and a script use it: as a program, in folders of their own.

mod assessment;
mod class;
mod ending;
mod errors;
mod files;
mod from_python;
mod grading;
mod newcomer;
mod own;
mod pack;
mod pages;
mod program;
mod score;
mod terminal;
mod watching;
mod wrong_words;
