//! What a page runs: the labs and the exercises, compiled to WebAssembly, and the scripts of the workers that run them.

use std::collections::BTreeMap;

use exercises::Exercise;
use labs::LABS;
use modules::Split;
use questions::hash;

use crate::course::Course;

/// The folder of the pages that all of it is in.
const FOLDER: &str = "play";

/// Scripts that run beside a page. They lie beside the modules.
const WORKERS: [&str; 5] =
    ["run-worker.js", "experiments-worker.js", "exercise-worker.js", "errors-worker.js", "start-module.js"];

/// The files, and which of them pages name.
#[derive(Clone)]
pub struct Player {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The module of the labs, by its path.
    pub labs: String,
    /// The module of the exercises.
    pub exercises: String,
    /// The module of the errors.
    pub errors: String,
}

/// Compiles the modules. The error says in one line why that cannot be.
pub fn build(course: &Course) -> Result<Player, String> {
    let target = course.root().join("target");
    let mut files = BTreeMap::new();
    let names: Vec<&str> = LABS.iter().map(|lab| lab.name).collect();
    let labs = modules::compile(&modules::LABS, &names, course.root(), &target)?;
    let labs = put(labs, "labs", &mut files);
    let names: Vec<String> = in_pages().into_iter().map(modules::piece_of_exercise).collect();
    let exercises = modules::compile(&modules::EXERCISES, &names, course.root(), &target)?;
    let exercises = put(exercises, "exercises", &mut files);
    let errors = modules::compile_whole(modules::ERRORS, course.root(), &target)?;
    let errors = put(Split { base: errors, pieces: BTreeMap::new() }, "errors", &mut files);
    for worker in WORKERS {
        let file = format!("book/theme/{worker}");
        files.insert(format!("{FOLDER}/{worker}"), course.read(&file)?.into_bytes());
    }
    Ok(Player { files, labs, exercises, errors })
}

/// The exercises that can be done in a page, in the order of `exercises_page::EXERCISES`: that of their names.
fn in_pages() -> Vec<&'static str> {
    let can_be = |exercise: &&&Exercise| !exercise.places.is_empty();
    let mut ids: Vec<&str> = exercises::EXERCISES.iter().filter(can_be).map(|exercise| exercise.id).collect();
    ids.sort_unstable();
    ids
}

/// Puts a module among the files, under a name that changes with it and its pieces, so that a browser may keep it for good. The
/// pieces lie beside it: that of lab 03 of `labs-12345678.wasm` is `lab-03-12345678.wasm`. `start-module.js` knows that.
fn put(Split { base, pieces }: Split, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> String {
    let all = base.iter().chain(pieces.values().flatten());
    let hash = hash(all.copied()) as u32;
    let path = |name: &str| format!("{FOLDER}/{name}-{hash:08x}.wasm");
    for (piece, bytes) in pieces {
        files.insert(path(&piece), bytes);
    }
    files.insert(path(name), base);
    path(name)
}
