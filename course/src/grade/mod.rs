//! Grades a folder: the files of one student, or of a class.
//!
//! Only files named after exercises are graded, compiled against this checkout. The seeds differ from those of a
//! student's own checks, and change with every grading unless they are given. No file can affect the grade of another.

mod name;
mod page;
mod submissions;
mod table;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use exercises::{Exercise, OwnFolder, can_confine};
use labs::Stop;
use labs::stdio::{to_stderr, to_stdout};

use crate::assessment::ID as FINAL;
use crate::own::all;
use crate::report::{Format, Row, format_rows};
use crate::show::count;
use crate::workplace::{Workplace, all_named, failed, wrong};
use submissions::{Submissions, collect};
use work::{Checks, Done, Job, Outcome, run_all};

pub struct Asked {
    pub folder: PathBuf,
    pub seed: Option<u64>,
    pub of_final: Option<u64>,
    /// Ids and chapters, separated by commas.
    pub exercises: Option<String>,
    pub format: Format,
    /// The output folder for the page, the tables, and each student's `result.json`.
    pub output: Option<PathBuf>,
}

/// An exercise, or the final assessment.
pub struct Column {
    pub id: &'static str,
    pub title: &'static str,
}

pub struct Cell {
    pub done: Done,
    pub is_late: bool,
    pub attempts: usize,
}

pub struct Graded {
    pub name: String,
    pub cells: Vec<Cell>,
}

impl Graded {
    pub fn passed_count(&self) -> usize {
        self.cells.iter().filter(|cell| cell.done.outcome.is_passed()).count()
    }
}

pub struct Class {
    pub columns: Vec<Column>,
    pub students: Vec<Graded>,
    pub notes: Vec<String>,
    pub seed: u64,
    pub seeds: [u64; 3],
    /// The number of files, and of distinct ones.
    pub files: usize,
    pub different: usize,
    pub seconds: f64,
}

pub fn grade(place: &Workplace, asked: &Asked) -> Result<(), Stop> {
    let folder = asked.folder.as_path();
    if !folder.is_dir() {
        return Err(wrong(format!("{}: there is no such folder", folder.display())));
    }
    let chosen = asked.exercises.as_deref().map(parse_chosen).transpose()?;
    let ids: Vec<&'static str> = all().into_iter().map(|exercise| exercise.id).collect();
    let found = collect(folder, &ids);
    let is_chosen = |id: &str| {
        chosen.as_ref().is_none_or(|(ids, is_final)| ids.contains(id) || (*is_final && id == FINAL))
    };
    let submitted: BTreeSet<&'static str> =
        found.students.iter().flat_map(|student| student.files.keys().copied()).collect();
    if !submitted.iter().any(|id| is_chosen(id)) {
        return Err(failed(nothing_to_grade(folder, &found, &submitted)));
    }
    if found.is_class && asked.format == Format::Result && asked.output.is_none() {
        return Err(wrong(
            "a class has a result.json for each student: name a folder for these files with --output DIR",
        ));
    }
    let columns = columns(&found, &submitted, chosen.is_some(), asked.of_final.is_some(), &is_chosen);
    let class = graded(place, asked, found, columns)?;
    if let Some(output) = &asked.output {
        write_results(&class, output)?;
    }
    let unchecked: usize = class
        .students
        .iter()
        .flat_map(|student| &student.cells)
        .filter(|cell| matches!(cell.done.outcome, Outcome::Unchecked(_)))
        .count();
    match class.unchecked_label() {
        None => Ok(()),
        Some(what) => Err(failed(format!("{unchecked} of {what} could not be checked"))),
    }
}

/// Parses a list of exercises, and whether it includes the final assessment.
fn parse_chosen(list: &str) -> Result<(BTreeSet<&'static str>, bool), Stop> {
    let mut ids = BTreeSet::new();
    let mut is_final = false;
    for name in list.split(',').map(str::trim) {
        if crate::assessment::is_final(name) {
            is_final = true;
            continue;
        }
        let named = all_named(name).map_err(|stop| Stop {
            message: stop.message.replace("error: ", "error: --exercises: "),
            ..stop
        })?;
        ids.extend(named.iter().map(|exercise| exercise.id));
    }
    Ok((ids, is_final))
}

fn nothing_to_grade(folder: &Path, found: &Submissions, submitted: &BTreeSet<&str>) -> String {
    let name = crate::show::name(folder);
    if !submitted.is_empty() {
        let there = submitted.iter().copied().collect::<Vec<_>>().join(", ");
        return format!("{name} has no file for these exercises; it has {there}");
    }
    let other = found.notes.first().map(|note| format!(": {note}")).unwrap_or_default();
    match other.is_empty() {
        true => format!(
            "{name} has no exercises: expected files such as 02-batch.rs, in the folder or in a folder for each student"
        ),
        false => format!("{name} has no exercises{other}"),
    }
}

/// The exercises to grade: the selected ones. Default: all of them for one student, or those with a submission for a
/// class.
fn columns(
    found: &Submissions,
    submitted: &BTreeSet<&str>,
    is_chosen_by_name: bool,
    wants_final: bool,
    is_chosen: &dyn Fn(&str) -> bool,
) -> Vec<Column> {
    let is_shown = |id: &str| match is_chosen_by_name {
        true => is_chosen(id),
        false => !found.is_class || submitted.contains(id),
    };
    let mut columns: Vec<Column> = all()
        .into_iter()
        .filter(|exercise| is_shown(exercise.id))
        .map(|exercise| Column { id: exercise.id, title: exercise.title })
        .collect();
    let has_final = match is_chosen_by_name {
        true => is_chosen(FINAL),
        false => submitted.contains(FINAL),
    };
    if has_final || wants_final {
        columns.push(Column { id: FINAL, title: crate::assessment::TITLE });
    }
    columns
}

fn graded(place: &Workplace, asked: &Asked, found: Submissions, columns: Vec<Column>) -> Result<Class, Stop> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = asked.seed.unwrap_or(now.as_nanos() as u64 % 1_000_000_007);
    let seeds =
        [0, 1, 2].map(|number| 1000 + questions::hash(format!("{seed} {number}").bytes()) % 1_000_000);
    to_stderr(&format!("graded with --seed {seed}\n"));
    if !can_confine() {
        to_stderr(
            "warning: this system has no Landlock to confine each run to its own folder, so code that writes \
             files is refused\n",
        );
    }
    let start = Instant::now();
    let is_class = found.is_class;
    // A job for each student's file, or the reason why there is none.
    let mut texts: BTreeMap<PathBuf, Result<Job, String>> = BTreeMap::new();
    for student in &found.students {
        for (id, picked) in
            student.files.iter().filter(|(id, _)| columns.iter().any(|column| column.id == **id))
        {
            texts.insert(picked.path.clone(), work::read(&picked.path).map(|text| Job { id, text }));
        }
    }
    let jobs: BTreeSet<Job> = texts.values().filter_map(|text| text.clone().ok()).collect();
    let (files, different) = (texts.len(), jobs.len());
    if is_class {
        to_stderr(&format!(
            "{}, {}, {different} of them different\n",
            count(found.students.len(), "student", "students"),
            count(files, "file", "files")
        ));
    }
    let library = place.library()?;
    // Other processes may be grading at the same time.
    let own = OwnFolder::new(&place.scratch).map_err(failed)?;
    let all: Vec<&'static Exercise> = all();
    let checks =
        Checks { library: &library, exercises: &all, seeds, of_final: asked.of_final, own: own.path() };
    let last = AtomicUsize::new(0);
    let done = run_all(&checks, jobs.into_iter().collect(), &|number| {
        // Reports the progress of a long grading.
        if is_class && number >= last.load(Ordering::Relaxed) + 25 {
            last.store(number, Ordering::Relaxed);
            to_stderr(&format!("{number} of {different} checked\n"));
        }
    });
    let nothing = |outcome| Done { outcome, seconds: 0.0 };
    let unreadable = |message: &String| {
        nothing(Outcome::Failed { diagnosis: String::new(), message: message.clone(), line: None })
    };
    let cell = |picked: Option<&submissions::GradedFile>| {
        let Some(picked) = picked else {
            return Cell { done: nothing(Outcome::Missing), is_late: false, attempts: 0 };
        };
        let done = match texts.get(&picked.path) {
            Some(Ok(job)) => done.get(job).cloned().unwrap_or_else(|| nothing(Outcome::Missing)),
            Some(Err(message)) => unreadable(message),
            None => nothing(Outcome::Missing),
        };
        Cell { done, is_late: picked.is_late, attempts: picked.attempts }
    };
    let students = found
        .students
        .iter()
        .map(|student| Graded {
            name: student.name.clone(),
            cells: columns.iter().map(|column| cell(student.files.get(column.id))).collect(),
        })
        .collect();
    let seconds = start.elapsed().as_secs_f64();
    let class = Class { columns, students, notes: found.notes, seed, seeds, files, different, seconds };
    if is_class {
        if asked.format != Format::Result {
            to_stdout(&class.format(asked.format)?);
        }
        return Ok(class);
    }
    let rows = class.rows(&class.students[0]);
    for note in &class.notes {
        to_stderr(&format!("note: {note}\n"));
    }
    to_stdout(&format_rows(&rows.0, rows.1, asked.format)?);
    Ok(class)
}

impl Class {
    /// A student's exercises as rows, and the final assessment.
    fn rows<'a>(&self, student: &'a Graded) -> (Vec<Row>, Option<&'a crate::standing::Standing>) {
        let mut rows = Vec::new();
        let mut standing = None;
        for (column, cell) in self.columns.iter().zip(&student.cells) {
            if let Outcome::Final(of_final) = &cell.done.outcome {
                standing = Some(of_final);
                continue;
            }
            rows.push(Row {
                id: column.id.to_owned(),
                title: column.title.to_owned(),
                passed: cell.done.outcome.is_passed(),
                message: cell.done.outcome.summary(),
                seconds: cell.done.seconds,
            });
        }
        (rows, standing)
    }

    fn unchecked_label(&self) -> Option<String> {
        let is_unchecked = |cell: &Cell| matches!(cell.done.outcome, Outcome::Unchecked(_));
        let any = self.students.iter().flat_map(|student| &student.cells).any(is_unchecked);
        any.then(|| match self.students.len() {
            1 => count(self.columns.len(), "exercise", "exercises"),
            _ => count(self.files, "file", "files"),
        })
    }
}

/// Writes the results into a folder, replacing files of the same names.
fn write_results(class: &Class, output: &Path) -> Result<(), Stop> {
    let cannot = |error: std::io::Error| failed(format!("--output {}: {error}", output.display()));
    let put = |name: &str, text: &str| -> Result<(), Stop> {
        let file = output.join(name);
        fs::create_dir_all(file.parent().unwrap_or(output)).map_err(cannot)?;
        labs::files::replace(&file, text.as_bytes()).map_err(cannot)
    };
    put("class.html", &page::page(class))?;
    for (name, format) in [
        ("class.txt", Format::Text),
        ("class.csv", Format::Csv),
        ("class.json", Format::Json),
        ("class.xml", Format::Junit),
    ] {
        put(name, &class.format(format)?)?;
    }
    let mut taken = BTreeSet::new();
    for student in &class.students {
        let (rows, standing) = class.rows(student);
        let slug = slug(&student.name, &mut taken);
        put(&format!("{slug}/result.json"), &format_rows(&rows, standing, Format::Result)?)?;
    }
    to_stderr(&format!("written: {}\n", crate::show::name(&output.join("class.html"))));
    Ok(())
}

fn slug(name: &str, taken: &mut BTreeSet<String>) -> String {
    let letters: String =
        name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).take(80).collect();
    let base = letters.trim_matches('-').to_owned();
    let base = if base.is_empty() { "student".to_owned() } else { base };
    let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
    let free = names.filter(|name| taken.insert(name.to_lowercase())).take(1).collect::<Vec<_>>();
    free.into_iter().next().unwrap_or(base)
}
