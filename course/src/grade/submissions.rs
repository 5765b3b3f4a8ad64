//! Scans a folder of submissions: the files of one student, or of a class.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unicode_normalization::UnicodeNormalization;

use super::name::{self, Named, Student};

#[derive(Debug, Default)]
pub struct Submissions {
    pub is_class: bool,
    /// By name.
    pub students: Vec<Submission>,
    /// Notes on files that are not graded.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Submission {
    pub name: String,
    /// By the id of the exercise.
    pub files: BTreeMap<&'static str, GradedFile>,
}

#[derive(Debug)]
pub struct GradedFile {
    pub path: PathBuf,
    pub is_late: bool,
    pub attempts: usize,
}

/// A file whose name or folder contains the id of an exercise.
struct File {
    /// The folders that contain it, relative to the scanned folder.
    folders: Vec<String>,
    path: PathBuf,
    named: Named,
    changed: SystemTime,
}

/// Folders inside a student's folder, which are not students.
const INNER: [&str; 9] = [
    "exercises",
    "exercise",
    "src",
    "to-device",
    "submission",
    "submissions",
    "submission attachments",
    "files",
    "homework",
];

/// Folders without student work.
const SKIPPED: [&str; 4] = ["target", "node_modules", "__MACOSX", "vendor"];

/// Limits on the number of files and the depth, far above any class.
const MOST: usize = 100_000;
const DEEPEST: usize = 8;

pub fn collect(folder: &Path, ids: &[&'static str]) -> Submissions {
    let mut submissions = Submissions::default();
    let mut files = Vec::new();
    let mut others = Vec::new();
    let mut all_folders = Vec::new();
    scan(folder, &mut Vec::new(), ids, &mut files, &mut others, &mut all_folders);
    let around = unwrap(&mut files);
    let top = name::of_folder(&file_name(folder)).map_or_else(|| file_name(folder), |student| student.name);
    submissions.is_class = is_class(&files);
    let mut by_student: BTreeMap<String, Vec<(Student, File)>> = BTreeMap::new();
    let by_assignment = submissions.is_class && is_by_assignment(&files, ids);
    let by_folder = files.iter().any(|file| !file.folders.is_empty());
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for mut file in files {
        if !submissions.is_class {
            let student = Student { name: top.clone(), number: None };
            by_student.entry(student.key()).or_default().push((student, file));
            continue;
        }
        if by_assignment && !file.folders.is_empty() {
            file.folders.remove(0);
        }
        let student = match file.folders.first() {
            Some(first) => {
                Some(name::of_folder(first).unwrap_or(Student { name: first.clone(), number: None }))
            }
            None => file.named.student.clone(),
        };
        match student {
            Some(student) => by_student.entry(student.key()).or_default().push((student, file)),
            None => submissions
                .notes
                .push(format!("{} is not graded: its name contains no student", shown(folder, &file.path))),
        }
    }
    // A student without files to grade still belongs to the class.
    let has_folders = submissions.is_class && !by_assignment && by_folder;
    let empty = all_folders
        .iter()
        .filter(|path| has_folders && path.len() == around.len() + 1 && path.starts_with(&around));
    for student in empty.filter_map(|path| path.last()).filter_map(|name| name::of_folder(name)) {
        by_student.entry(student.key()).or_default();
        named.entry(student.key()).or_insert(student.name);
    }
    for (key, files) in by_student {
        if files.is_empty() {
            submissions
                .students
                .push(Submission { name: named.remove(&key).unwrap_or_default(), ..Submission::default() });
            continue;
        }
        for (student, files) in split_namesakes(files) {
            let mut submission = Submission { name: student, ..Submission::default() };
            let mut by_exercise: BTreeMap<&'static str, Vec<File>> = BTreeMap::new();
            for file in files {
                by_exercise.entry(file.named.id).or_default().push(file);
            }
            for (id, mut attempts) in by_exercise {
                let order = |file: &File| (file.named.attempt.clone(), file.changed, file.path.clone());
                attempts.sort_by_key(order);
                let count = attempts.len();
                let Some(last) = attempts.pop() else { continue };
                if count > 1 {
                    submissions.notes.push(format!(
                        "{}: {count} files for {id}; the last is graded: {}",
                        submission.name,
                        shown(folder, &last.path)
                    ));
                }
                let picked = GradedFile { path: last.path, is_late: last.named.is_late, attempts: count };
                submission.files.insert(id, picked);
            }
            submissions.students.push(submission);
        }
    }
    submissions.notes.extend(others.iter().take(20).map(|path| {
        format!(
            "{} is not graded: its name must contain the id of an exercise, such as 02-batch, and end in .rs",
            shown(folder, path)
        )
    }));
    if others.len() > 20 {
        submissions.notes.push(format!("{} more such files", others.len() - 20));
    }
    submissions
}

fn shown(folder: &Path, path: &Path) -> String {
    crate::show::name(path.strip_prefix(folder).unwrap_or(path))
}

fn file_name(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or(folder.to_owned());
    folder.file_name().unwrap_or_default().to_string_lossy().nfc().collect()
}

/// Scans a folder recursively. Symbolic links to folders are not followed.
fn scan(
    folder: &Path,
    folders: &mut Vec<String>,
    ids: &[&'static str],
    files: &mut Vec<File>,
    others: &mut Vec<PathBuf>,
    all_folders: &mut Vec<Vec<String>>,
) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name: String = path.file_name().unwrap_or_default().to_string_lossy().nfc().collect();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if name.starts_with('.') || files.len() >= MOST {
            continue;
        }
        if metadata.is_dir() {
            // A checkout of the course contains the sources of the exercises under the same names.
            let is_source = name == "source" && folders.last().is_some_and(|last| last == "exercises");
            if folders.len() < DEEPEST && !SKIPPED.contains(&name.as_str()) && !is_source {
                folders.push(name);
                all_folders.push(folders.clone());
                scan(&path, folders, ids, files, others, all_folders);
                folders.pop();
            }
        } else if let Some(named) = name::read(&name, ids) {
            let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(File { folders: folders.clone(), path, named, changed });
        } else {
            let lower = name.to_lowercase();
            let may_be =
                [".rs", ".rs.txt", ".zip", ".pdf", ".docx", ".ipynb"].iter().any(|end| lower.ends_with(end));
            if may_be && folders.len() <= 1 {
                others.push(path);
            }
        }
    }
}

/// Strips and returns folders that contain all files, such as the top folder of an archive, while they contain a class
/// or are not a student's name.
fn unwrap(files: &mut [File]) -> Vec<String> {
    let mut around = Vec::new();
    while let Some(first) = files.first().and_then(|file| file.folders.first()).cloned()
        && files.iter().all(|file| file.folders.first() == Some(&first))
    {
        let is_inner = INNER.contains(&first.to_lowercase().as_str());
        let inside: BTreeSet<&String> = files
            .iter()
            .filter_map(|file| file.folders.get(1))
            .filter(|inside| !INNER.contains(&inside.to_lowercase().as_str()))
            .collect();
        let flat = files.iter().filter(|file| file.folders.len() == 1);
        let people: BTreeSet<String> =
            flat.clone().filter_map(|file| Some(file.named.student.as_ref()?.key())).collect();
        let is_nobodys = flat.clone().any(|file| file.named.student.is_none());
        if !is_inner && (is_nobodys || inside.len() + people.len() < 2) {
            break;
        }
        for file in files.iter_mut() {
            file.folders.remove(0);
        }
        around.push(first);
    }
    around
}

/// Whether these are the files of several students: each has a folder, or a name in the file name.
fn is_class(files: &[File]) -> bool {
    let folders: BTreeSet<&String> = files
        .iter()
        .filter_map(|file| file.folders.first())
        .filter(|first| !INNER.contains(&first.to_lowercase().as_str()))
        .collect();
    let flat: Vec<&File> = files.iter().filter(|file| file.folders.is_empty()).collect();
    if flat.is_empty() {
        return !folders.is_empty();
    }
    let key = |file: &File| file.named.student.as_ref().map(Student::key);
    let before: BTreeSet<String> =
        flat.iter().filter(|file| file.named.is_before).filter_map(|file| key(file)).collect();
    // Any words may follow the exercise, such as `_mine` or `_try`. They are names if several files of the same
    // exercise have different ones.
    let behind_one = |id: &str| {
        flat.iter().filter(|file| file.named.id == id).filter_map(|file| key(file)).collect::<BTreeSet<_>>()
    };
    let all_named = flat.iter().all(|file| file.named.student.is_some());
    let are_names = !before.is_empty() || flat.iter().any(|file| behind_one(file.named.id).len() >= 2);
    before.len() >= 2 || folders.len() >= 2 || all_named && are_names
}

/// Whether each folder is an assignment with files of many students, instead of a student. A single student cannot
/// produce this layout.
fn is_by_assignment(files: &[File], ids: &[&'static str]) -> bool {
    let mut by_folder: BTreeMap<&String, Vec<&File>> = BTreeMap::new();
    for file in files {
        match file.folders.first() {
            Some(first) => by_folder.entry(first).or_default().push(file),
            None => return false,
        }
    }
    by_folder.iter().all(|(folder, files)| {
        let names_people = |file: &&File| file.folders.len() > 1 || file.named.student.is_some();
        let people: BTreeSet<String> = files
            .iter()
            .filter(|file| file.folders.len() == 1)
            .filter_map(|file| Some(file.named.student.as_ref()?.key()))
            .collect();
        files.iter().all(names_people) && (people.len() >= 2 || name::is_assignment(folder, ids))
    })
}

/// Separates students of the same name. A platform may number the same student anew for each assignment, so different
/// numbers mean different students only if both have a file for the same exercise.
fn split_namesakes(files: Vec<(Student, File)>) -> Vec<(String, Vec<File>)> {
    let name = files[0].0.name.clone();
    let mut of_exercise: BTreeMap<&str, BTreeSet<&Option<String>>> = BTreeMap::new();
    for (student, file) in &files {
        of_exercise.entry(file.named.id).or_default().insert(&student.number);
    }
    if of_exercise.values().all(|numbers| numbers.len() < 2) {
        return vec![(name, files.into_iter().map(|(_, file)| file).collect())];
    }
    let mut by_number: BTreeMap<Option<String>, Vec<File>> = BTreeMap::new();
    for (student, file) in files {
        by_number.entry(student.number).or_default().push(file);
    }
    let named = |number: Option<String>| number.map_or(name.clone(), |number| format!("{name} ({number})"));
    by_number.into_iter().map(|(number, files)| (named(number), files)).collect()
}
