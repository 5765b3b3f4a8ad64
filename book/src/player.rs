//! The modules that pages run: the labs and the exercises compiled to WebAssembly, and the scripts of their workers.

use std::collections::BTreeMap;

use exercises::Exercise;
use labs::LABS;
use modules::{Split, Step};
use questions::hash;

use crate::course::Course;

const FOLDER: &str = "play";

/// The worker for modules that answer one question at a time.
const ASKED: &str = "asked-worker.js";

#[derive(Clone)]
pub struct Module {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The path of the file that pages refer to.
    pub path: String,
}

/// Compiles the labs, and reports progress. The error is one line.
pub fn labs(course: &Course, progress: &mut dyn FnMut(Step)) -> Result<Module, String> {
    let names: Vec<&str> = LABS.iter().map(|lab| lab.name).collect();
    let labs =
        modules::compile(&modules::LABS, &names, course.root(), &course.root().join("target"), progress)?;
    module(course, labs, "labs", &["run-worker.js", "experiments-worker.js"])
}

/// As [`labs()`], for the exercise checker.
pub fn exercises(course: &Course, progress: &mut dyn FnMut(Step)) -> Result<Module, String> {
    let names: Vec<String> = in_pages().into_iter().map(modules::piece_of_exercise).collect();
    let target = course.root().join("target");
    let exercises = modules::compile(&modules::EXERCISES, &names, course.root(), &target, progress)?;
    module(course, exercises, "exercises", &[ASKED])
}

/// As [`labs()`], for the final assessment.
pub fn assessment(course: &Course, progress: &mut dyn FnMut(Step)) -> Result<Module, String> {
    whole_module(course, &modules::ASSESSMENT, "assessment", ASKED, progress)
}

/// As [`labs()`], for the table of errors.
pub fn errors(course: &Course, progress: &mut dyn FnMut(Step)) -> Result<Module, String> {
    whole_module(course, &modules::ERRORS, "errors", "errors-worker.js", progress)
}

/// As [`labs()`], for the emulator of CUDA C++.
pub fn kernels(course: &Course, progress: &mut dyn FnMut(Step)) -> Result<Module, String> {
    whole_module(course, &modules::KERNELS, "kernels", ASKED, progress)
}

fn whole_module(
    course: &Course,
    package: &modules::Whole,
    name: &str,
    worker: &str,
    progress: &mut dyn FnMut(Step),
) -> Result<Module, String> {
    let target = course.root().join("target");
    let base = modules::compile_whole(package, course.root(), &target, progress)?;
    let split = Split { base, pieces: BTreeMap::new() };
    module(course, split, name, &[worker])
}

/// The exercises with a form on a page, in the order of `exercises_page::EXERCISES`: sorted by name.
fn in_pages() -> Vec<&'static str> {
    let can_be = |exercise: &&&Exercise| !exercise.places.is_empty();
    let mut ids: Vec<&str> = exercises::EXERCISES.iter().filter(can_be).map(|exercise| exercise.id).collect();
    ids.sort_unstable();
    ids
}

/// A module whose name changes with its content and its pieces, so that browsers may cache it forever. The pieces and
/// the workers' scripts are in the same folder: the piece for lab 03 of `labs-12345678.wasm` is `lab-03-12345678.wasm`.
/// `start-module.js` relies on these names.
fn module(
    course: &Course,
    Split { base, pieces }: Split,
    name: &str,
    workers: &[&str],
) -> Result<Module, String> {
    let mut files = BTreeMap::new();
    let all = base.iter().chain(pieces.values().flatten());
    let hash = hash(all.copied()) as u32;
    let path = |name: &str| format!("{FOLDER}/{name}-{hash:08x}.wasm");
    for (piece, bytes) in pieces {
        files.insert(path(&piece), bytes);
    }
    files.insert(path(name), base);
    for worker in workers.iter().chain(&["start-module.js"]) {
        let script = course.read(&format!("book/theme/{worker}"))?;
        files.insert(format!("{FOLDER}/{worker}"), script.into_bytes());
    }
    Ok(Module { files, path: path(name) })
}
