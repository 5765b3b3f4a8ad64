//! A teacher's exercises, from the folders of `--exercises`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use exercises::library::Library;
use exercises::own::{Host, Hosts};
use exercises::{EXERCISES, Exercise, OwnFolder};
use labs::Stop;
use labs::stdio::to_stdout;

use crate::show::{count, name};
use crate::workplace::{Workplace, failed, wrong};

static OWN: OnceLock<(Vec<&'static Exercise>, Hosts)> = OnceLock::new();

/// All exercises: those of the course in book order, then the teacher's.
pub fn all() -> Vec<&'static Exercise> {
    let own = OWN.get().map(|(own, _)| own.clone()).unwrap_or_default();
    EXERCISES.iter().copied().chain(own).collect()
}

pub fn find(id: &str) -> Option<&'static Exercise> {
    all().into_iter().find(|exercise| exercise.id == id)
}

pub fn with_hosts(library: Library) -> Library {
    match OWN.get() {
        Some((_, hosts)) => library.with_hosts(hosts.clone()),
        None => library,
    }
}

/// Splits the value of `--exercises` into exercise folders and a selection.
pub fn read(list: &str) -> (Vec<PathBuf>, Option<String>) {
    let (folders, rest): (Vec<&str>, Vec<&str>) =
        list.split(',').map(str::trim).partition(|part| Path::new(part).is_dir());
    let rest = rest.join(",");
    (folders.into_iter().map(PathBuf::from).collect(), (!rest.is_empty()).then_some(rest))
}

/// Adds the exercises of some folders to the course, for the life of this process.
pub fn load(place: &Workplace, folders: &[PathBuf]) -> Result<(), Stop> {
    if folders.is_empty() {
        return Ok(());
    }
    let library = place.library()?;
    let (mut own, mut hosts) = (Vec::new(), Hosts::new());
    for folder in folders {
        for file in files(folder)? {
            let (exercise, host) = compile(place, &library, &file).map_err(|what| {
                failed(format!(
                    "{}: {what}\n`cargo course examine {}` lists all defects",
                    name(&file),
                    name(&file)
                ))
            })?;
            if EXERCISES.iter().any(|known| known.id == exercise.id) || hosts.contains_key(exercise.id) {
                return Err(wrong(format!(
                    "{}: two exercises have the id `{}`: choose another id",
                    name(&file),
                    exercise.id
                )));
            }
            hosts.insert(exercise.id.to_owned(), host);
            own.push(exercise);
        }
    }
    let _ = OWN.set((own, hosts));
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let entries = fs::read_dir(folder).map_err(|error| wrong(format!("{}: {error}", name(folder))))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs") && file.is_file());
    files.sort();
    if files.is_empty() {
        return Err(wrong(format!(
            "--exercises {}: this folder has no exercises: expected a file for each, such as labs/exercises/example/02-column-means.rs",
            name(folder)
        )));
    }
    Ok(files)
}

/// Compiles an exercise, unless the same text was already compiled with the same library.
fn compile(place: &Workplace, library: &Library, file: &Path) -> Result<(&'static Exercise, Host), String> {
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let path = fs::canonicalize(file).map_err(|error| error.to_string())?;
    let key = questions::hash(text.into_iter().chain(format!("{path:?} {library:?}").into_bytes()));
    let folder = place.scratch.join(format!("exercise-{key:016x}"));
    let host = Host::known(&folder, library).map_or_else(|| Host::compile(library, file, &folder), Ok)?;
    Ok((host.describe()?.exercise(), host))
}

/// Reports the defects of the exercise in a file, or of all exercises in a folder.
pub fn examine(place: &Workplace, path: &Path) -> Result<(), Stop> {
    let files = match path.is_dir() {
        true => files(path)?,
        false if path.is_file() => vec![path.to_owned()],
        false => return Err(wrong(format!("{}: there is no such file or folder", name(path)))),
    };
    let library = place.library()?;
    let own = OwnFolder::new(&place.scratch).map_err(failed)?;
    let mut with_defects = 0;
    for (number, file) in files.iter().enumerate() {
        let folder = own.path().join(number.to_string());
        let host = Host::compile(&library, file, &folder);
        let defects = host.and_then(|host| host.defects(&library, &folder));
        let defects = defects.unwrap_or_else(|what| vec![what]);
        if defects.is_empty() {
            to_stdout(&format!(
                "{}: no defects: its solutions pass, and each mistake gets its own diagnosis\n",
                name(file)
            ));
            continue;
        }
        with_defects += 1;
        to_stdout(&format!("{}: {}\n", name(file), count(defects.len(), "defect", "defects")));
        for defect in defects {
            to_stdout(&format!("  - {}\n", exercises::plain(&defect).trim_end().replace('\n', "\n    ")));
        }
    }
    match with_defects {
        0 => Ok(()),
        _ => Err(Stop { message: String::new(), exit_code: 1 }),
    }
}
