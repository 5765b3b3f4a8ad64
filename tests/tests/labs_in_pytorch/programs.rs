//! The programs and their anchors.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use labs::Listed;

pub struct Program {
    pub name: String,
    pub path: PathBuf,
    /// The lab of the chapter that it belongs to.
    pub lab: &'static Listed,
    pub anchors: Vec<Anchor>,
}

pub struct Anchor {
    pub name: String,
    pub needs_a_gpu: bool,
    pub code: RangeInclusive<usize>,
}

impl Program {
    pub fn says(&self, what: &str) -> String {
        format!("labs/python/{}: {what}", self.name)
    }
}

/// All programs, sorted by name.
pub fn programs() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../labs/python").canonicalize().unwrap();
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_program = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
    let mut paths: Vec<PathBuf> = files.filter(is_program).collect();
    paths.sort();
    paths.into_iter().map(program).collect()
}

fn program(path: PathBuf) -> Program {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let lab = Listed::named(&name[..6].replace('_', "-")).unwrap_or_else(|| panic!("{name} is of no lab"));
    let anchors = anchors(&fs::read_to_string(&path).unwrap());
    Program { name, path, lab, anchors }
}

fn anchors(text: &str) -> Vec<Anchor> {
    let marks = |mark: &'static str| {
        let lines = (1..).zip(text.lines());
        lines.filter_map(move |(line, text)| Some((line, text.trim().strip_prefix(mark)?)))
    };
    let anchor = |(first, mark): (usize, &str)| {
        let name = mark.trim_end_matches(" (needs a GPU)");
        let (last, _) = marks("# ANCHOR_END: ").find(|(_, end)| *end == name)?;
        Some(Anchor { name: name.to_owned(), needs_a_gpu: mark != name, code: first + 1..=last - 1 })
    };
    marks("# ANCHOR: ").filter_map(anchor).collect()
}
