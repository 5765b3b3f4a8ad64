//! The output folder for the pages. A list in it names the files of this program: only they are replaced or deleted,
//! and only if they have not changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use questions::hash;

/// The name of the list, and its first line. Every other line has a file's hash and its path with slashes.
const LIST: &str = ".to-device-book";
const HEADING: &str =
    "`book build` of To Device wrote these files. It replaces and deletes them, and no others.";

/// The file being written. It is renamed once complete, so an interrupted build leaves no partial files.
const PART: &str = ".to-device-book.part";

pub struct Folder {
    path: PathBuf,
    written: BTreeSet<(String, u64)>,
}

/// The state of a page's path.
#[derive(PartialEq, Eq)]
enum Entry {
    Nothing,
    /// A file that this program wrote, with its hash.
    Written(u64),
    Other,
}

impl Folder {
    /// Opens or creates the folder. The error says why it cannot hold pages.
    pub fn open(path: &Path) -> Result<Folder, String> {
        let refused = |what: &str| format!("{} {what}: name another folder", path.display());
        let unusable = |error: io::Error| refused(&format!("cannot be used ({error})"));
        let path = &std::path::absolute(path).map_err(unusable)?;
        fs::create_dir_all(path).map_err(unusable)?;
        let mut folder = Folder { path: path.clone(), written: BTreeSet::new() };
        // Tested before the pages are built, to fail early.
        folder.write(PART, b"").and_then(|()| fs::remove_file(path.join(PART))).map_err(unusable)?;
        match fs::read_to_string(path.join(LIST)) {
            Ok(list) => folder.written = parsed(&list).map_err(|what| refused(&format!("has {what}")))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if fs::read_dir(path).map_err(unusable)?.next().is_some() {
                    return Err(refused("has files that `book build` did not write"));
                }
            }
            Err(error) => return Err(unusable(error)),
        }
        Ok(folder)
    }

    /// Checks that each page's path is free or has a file of this program. The error names another file.
    pub fn check(&self, pages: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        let Some(path) = pages.keys().find(|path| self.entry(path) == Entry::Other) else { return Ok(()) };
        let what = match self.written.iter().any(|(written, _)| written == path) {
            true => "has changed since `book build` wrote it",
            false => "was not written by `book build`, and a page belongs there",
        };
        let path = self.path.join(path);
        Err(format!("{} {what}: move it away, or name another folder", path.display()))
    }

    /// Writes the pages, and deletes files of earlier builds that are no longer part of the book.
    pub fn fill(self, pages: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        self.try_fill(pages).map_err(|error| format!("{} cannot be written to: {error}", self.path.display()))
    }

    fn try_fill(&self, pages: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
        let new: BTreeSet<(String, u64)> =
            pages.iter().map(|(path, bytes)| (path.clone(), hash(bytes.iter().copied()))).collect();
        // If this build is interrupted, the next one needs both sets.
        self.write(LIST, list(self.written.union(&new)).as_bytes())?;
        for ((path, hash), bytes) in new.iter().zip(pages.values()) {
            if self.entry(path) != Entry::Written(*hash) {
                self.write(path, bytes)?;
            }
        }
        for (path, _) in &self.written {
            if !pages.contains_key(path) && matches!(self.entry(path), Entry::Written(_)) {
                fs::remove_file(self.path.join(path))?;
                // Delete folders that are empty now.
                let within = Path::new(path).ancestors().skip(1).filter(|folder| *folder != Path::new(""));
                let _ = within.map(|folder| self.path.join(folder)).try_for_each(fs::remove_dir);
            }
        }
        self.write(LIST, list(&new).as_bytes())
    }

    /// The state of a path. A symbolic link, and anything behind one, counts as foreign, since it may lead out of the
    /// folder.
    fn entry(&self, path: &str) -> Entry {
        let within: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
        for folder in within.into_iter().rev().filter(|folder| *folder != Path::new("")) {
            match fs::symlink_metadata(self.path.join(folder)) {
                Ok(metadata) if metadata.is_dir() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Entry::Nothing,
                _ => return Entry::Other,
            }
        }
        let file = self.path.join(path);
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Entry::Nothing,
            Ok(metadata) if metadata.is_file() => match fs::read(file).map(|bytes| hash(bytes.into_iter())) {
                Ok(hash) if self.written.contains(&(path.to_owned(), hash)) => Entry::Written(hash),
                _ => Entry::Other,
            },
            _ => Entry::Other,
        }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (part, file) = (self.path.join(PART), self.path.join(path));
        let whole = || {
            // An interrupted build may have left one.
            fs::remove_file(&part).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
            File::create_new(&part)?.write_all(bytes)?;
            fs::create_dir_all(file.parent().unwrap_or(&self.path))?;
            fs::rename(&part, &file)
        };
        whole().inspect_err(|_| drop(fs::remove_file(&part)))
    }
}

fn list<'a>(files: impl IntoIterator<Item = &'a (String, u64)>) -> String {
    let lines = files.into_iter().map(|(path, hash)| format!("{hash:016x} {path}\n"));
    format!("{HEADING}\n{}", lines.collect::<String>())
}

/// Parses a list. The error says what is wrong with it.
fn parsed(list: &str) -> Result<BTreeSet<(String, u64)>, String> {
    let mut lines = list.lines();
    if lines.next() != Some(HEADING) {
        return Err(format!("a file {LIST} that `book build` did not write"));
    }
    let file = |(index, line): (usize, &str)| {
        let (hash, path) = line.split_once(' ').unwrap_or_default();
        let within = |part| matches!(part, Component::Normal(_));
        match u64::from_str_radix(hash, 16) {
            Ok(hash) if !path.is_empty() && Path::new(path).components().all(within) => {
                Ok((path.to_owned(), hash))
            }
            _ => Err(format!("a list with an invalid line ({LIST}:{})", index + 2)),
        }
    };
    lines.enumerate().map(file).collect()
}
