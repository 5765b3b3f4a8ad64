//! Detects changed files of the book by polling, which is the same on every platform.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::course::Course;
use crate::sources;

/// The files directly in `book/` that a build reads.
pub const FILES: [&str; 7] =
    ["book.toml", "cards.toml", "digits.toml", "moments.toml", "plan.toml", "seeds.toml", "sensitivity.txt"];

#[derive(PartialEq, Eq)]
pub struct Files {
    seen: BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
}

impl Files {
    pub fn of(course: &Course) -> Files {
        let mut seen = BTreeMap::new();
        let pages = [
            "book/chapters",
            "book/known_mistakes",
            "labs/questions",
            "labs/python",
            "book/theme",
            "labs/tests/snapshots",
            "labs/exercises/tests/snapshots",
            "labs/exercises/example",
            "labs/lab_12",
        ];
        for folder in pages.into_iter().chain(sources::FOLDERS) {
            scan(&course.root().join(folder), &mut seen);
        }
        for file in FILES {
            note(course.book().join(file), &mut seen);
        }
        Files { seen }
    }
}

/// Unreadable files, such as one that an editor is replacing, count as missing.
fn scan(folder: &Path, seen: &mut BTreeMap<PathBuf, (u64, Option<SystemTime>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => scan(&entry.path(), seen),
            _ => note(entry.path(), seen),
        }
    }
}

fn note(file: PathBuf, seen: &mut BTreeMap<PathBuf, (u64, Option<SystemTime>)>) {
    if let Ok(metadata) = fs::metadata(&file) {
        seen.insert(file, (metadata.len(), metadata.modified().ok()));
    }
}
