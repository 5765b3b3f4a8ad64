//! Every exercise with every way to solve it that is known, right and wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use exercises::check::{Checked, Compiled, compile, run};
use exercises::library::Library;
use exercises::{EXERCISES, Exercise, Kind, SEEDS, Verdict, rules};

pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exercises {name}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Looked for once: that takes a second.
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::find(&folder("library")).unwrap())
}

/// A way to solve an exercise: its name, its text, and the diagnosis it gets if it is wrong.
struct Attempt {
    name: String,
    text: String,
    diagnosis: Option<&'static str>,
}

fn attempts(exercise: &Exercise) -> Vec<Attempt> {
    let edited = |edits| exercise.edited(edits).unwrap_or_else(|error| panic!("{error}"));
    let right = |name: &str, text| Attempt { name: name.to_owned(), text, diagnosis: None };
    let mut all = vec![right("solution", exercise.solution())];
    // That of a Fix is one of the mistakes.
    if exercise.kind == Kind::Write {
        let (name, text) = ("skeleton".to_owned(), exercise.skeleton());
        all.push(Attempt { name, text, diagnosis: Some("todo") });
    }
    all.extend(exercise.styles.iter().map(|style| right(style.name, edited(style.edits))));
    all.extend(exercise.wrong.iter().map(|wrong| Attempt {
        name: wrong.name.to_owned(),
        text: edited(wrong.edits),
        diagnosis: Some(wrong.diagnosis),
    }));
    all
}

/// Compiles all of an exercise's into one program and runs each.
fn verdicts(exercise: &Exercise, attempts: &[(&str, &str)]) -> Vec<Checked> {
    let folder = folder(exercise.id);
    let files: Vec<(&str, PathBuf)> = attempts
        .iter()
        .map(|(name, text)| {
            assert_eq!(rules::check(exercise.id, text, false), Ok(()), "{} {name}", exercise.id);
            let file = folder.join(format!("{name}.rs"));
            fs::write(&file, text).unwrap();
            (*name, file)
        })
        .collect();
    let files: Vec<(&str, &Path)> = files.iter().map(|(name, file)| (*name, file.as_path())).collect();
    let program = folder.join("program");
    match compile(library(), exercise, &files, &program).unwrap() {
        Compiled::Well => {}
        Compiled::Wrong(errors) => panic!("{}: {}", exercise.id, errors[0].rendered()),
        Compiled::GaveUp(why) => panic!("{}: the compiler {why}", exercise.id),
    }
    // Most mistakes show in the first runs. What passes there has to pass in all, but for a style: what is the same for the
    // solution is for it, and one seed is enough.
    let (all, one_seed) = (exercise.cases(&SEEDS), exercise.cases(&SEEDS[..1]));
    let few = &all[..exercise.gpus.len()];
    let right = [few, &all, &one_seed].map(|cases| exercise.right(cases));
    let run = |name: &str| {
        let is_style = exercise.styles.iter().any(|style| style.name == name);
        let run = |cases, right| run(&program, exercise, name, cases, right, &folder).unwrap();
        if is_style {
            return run(&one_seed, &right[2]);
        }
        let first = run(few, &right[0]);
        if first.verdict.passed() { run(&all, &right[1]) } else { first }
    };
    files.iter().map(|(name, _)| run(name)).collect()
}

#[test]
fn solutions_pass_and_every_mistake_gets_its_own_diagnosis() {
    // Compiling takes most of the time, and one core.
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads = [0, 1].map(|half| {
            let half = EXERCISES.iter().skip(half).step_by(2);
            scope.spawn(|| half.flat_map(|exercise| unexpected(exercise)).collect::<Vec<_>>())
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tries every way to solve an exercise, compares what is said of it with the snapshot, and returns verdicts that are not those
/// expected.
fn unexpected(exercise: &Exercise) -> Vec<String> {
    let attempts = attempts(exercise);
    let texts: Vec<(&str, &str)> =
        attempts.iter().map(|attempt| (attempt.name.as_str(), attempt.text.as_str())).collect();
    let mut wrong = Vec::new();
    let mut told = format!("{}\n", exercise.title);
    for (attempt, Checked { verdict, .. }) in attempts.iter().zip(verdicts(exercise, &texts)) {
        told += &format!("\n## {}\n\n{verdict}", attempt.name);
        let diagnosis = match &verdict {
            Verdict::Passed { .. } => None,
            Verdict::Failed { diagnosis, .. } => Some(diagnosis.id.as_str()),
        };
        if diagnosis != attempt.diagnosis {
            let (id, name, expected) = (exercise.id, &attempt.name, attempt.diagnosis);
            wrong.push(format!("{id} {name}: expected {expected:?}\n{verdict}"));
        }
    }
    // The file's folder is a matter of the computer.
    let told = told.replace(&format!("{}/", folder(exercise.id).display()), "");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(exercise.id, told);
    });
    wrong
}

#[test]
fn every_exercise_has_what_an_exercise_needs() {
    let mut ids = BTreeSet::new();
    for exercise in EXERCISES {
        let id = exercise.id;
        assert!(ids.insert(id), "{id} stands twice");
        assert!(exercise.styles.len() >= 2, "{id}: a solution and two more styles");
        assert!(exercise.wrong.len() >= 8, "{id}: {} wrong solutions", exercise.wrong.len());
        let diagnoses: BTreeSet<_> = exercise.wrong.iter().map(|wrong| wrong.diagnosis).collect();
        assert_eq!(diagnoses.len(), exercise.wrong.len(), "{id}: each mistake has a diagnosis of its own");
        assert_ne!(exercise.skeleton(), exercise.solution(), "{id}");
        assert!(exercise.gpus.len() * exercise.sizes.len() >= 4, "{id}: several cards and sizes");
        assert!(exercise.solution().starts_with("use todevice::"), "{id}");
        let long = |text: &str| text.lines().any(|line| line.chars().count() > 88);
        assert!(
            !long(&exercise.solution()) && !long(&exercise.skeleton()),
            "{id}: a line of more than 88 letters"
        );
        assert!(!exercise.hints.iter().any(|hint| hint.is_empty()) && !exercise.task.is_empty(), "{id}");
    }
}
