//! The student's file, to which reported lines refer.

use std::any::Any;
use std::cell::RefCell;

use todevice::Place;

thread_local! {
    static FILE: RefCell<String> = const { RefCell::new(String::new()) };
    static PANICKED_AT: RefCell<Option<u32>> = const { RefCell::new(None) };
}

/// Sets the student's file, as its path was passed to the compiler, or the folder that contains all such files.
pub fn set_file(file: &str) {
    FILE.set(file.to_owned());
}

/// The line, if it is in the student's file.
pub fn line(place: Place) -> Option<u32> {
    line_in(place.file(), place.line())
}

fn line_in(path: &str, line: u32) -> Option<u32> {
    let is_own = |file: &String| !file.is_empty() && path.starts_with(file.as_str());
    FILE.with_borrow(is_own).then_some(line)
}

/// Silences panics, and records their line in the student's file.
#[cfg(not(target_family = "wasm"))]
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANICKED_AT.set(info.location().and_then(|at| line_in(at.file(), at.line())))
    }));
}

/// The message of a panic, and its line.
pub fn panicked(panic: &(dyn Any + Send)) -> (String, Option<u32>) {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
    (message.unwrap_or_default(), PANICKED_AT.take())
}

/// A report in which lines of this package, which a student has never seen, are replaced by a description.
pub fn without_our_lines(report: &str) -> String {
    let of_check = ["exercises/src/../source/", "exercises/src/../final/", "exercises\\src\\"];
    let place = |word: &str| of_check.iter().any(|path| word.contains(path));
    let line = |line: &str| match (line.split_once(" at "), line.split_once("--> ")) {
        (Some((before, after)), _) if place(after) => format!("{before} by the check"),
        (_, Some((before, after))) if place(after) => format!("{before}--> the check"),
        _ => line.to_owned(),
    };
    report.lines().map(line).collect::<Vec<_>>().join("\n")
}
