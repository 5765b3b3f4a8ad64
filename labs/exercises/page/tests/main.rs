//! What a reader can choose in a page is what a student can write in a terminal, and gets the same verdict.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use exercises::{EXERCISES, Edit, Exercise, Form, Kind, Verdict};
use exercises_page::{InPage, check};

/// The ways to solve an exercise that have a name, by their text.
fn named(exercise: &Exercise) -> BTreeMap<String, &'static str> {
    let edited = |edits: &[Edit]| exercise.edited(edits).unwrap();
    let mut named = BTreeMap::from([(exercise.solution(), "solution")]);
    named.extend(exercise.styles.iter().map(|style| (edited(style.edits), style.name)));
    named.extend(exercise.wrong.iter().map(|wrong| (edited(wrong.edits), wrong.name)));
    named
}

/// What a student is told in a terminal of each of them: the snapshot of another test.
fn told_in_a_terminal(exercise: &Exercise) -> BTreeMap<String, String> {
    let file = format!("../tests/snapshots/{}.snap", exercise.id);
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let parts = text.split("\n## ").skip(1).map(|part| part.split_once("\n\n").unwrap());
    parts.map(|(name, verdict)| (name.to_owned(), verdict.trim_end().to_owned())).collect()
}

#[test]
fn every_fix_can_be_done_in_the_page_and_begins_as_in_a_terminal() {
    for exercise in EXERCISES {
        let choices = exercise.choices().unwrap();
        let in_page = exercises_page::EXERCISES.iter().find(|in_page| in_page.id == exercise.id);
        assert_eq!(in_page.is_some(), !exercise.places.is_empty(), "{}", exercise.id);
        // Whoever writes types, and the check of one takes more memory than a page has.
        let is_for_a_page = exercise.kind == Kind::Fix && exercise.id != "05-fits";
        assert_eq!(in_page.is_some(), is_for_a_page, "{}", exercise.id);
        let Some(InPage { variants, .. }) = in_page else { continue };
        assert_eq!(variants.len(), choices.count(), "{}", exercise.id);
        assert!((6..=32).contains(&variants.len()), "{}: {} ways to choose", exercise.id, variants.len());
        let all: Vec<String> = (0..choices.count()).map(|number| choices.text(number)).collect();
        assert!(
            all.contains(&exercise.skeleton()),
            "{}: not the file that a student begins with",
            exercise.id
        );
        assert_eq!(all[0], exercise.solution(), "{}: what all edit is the solution", exercise.id);
        let known = named(exercise);
        let mistakes = all.iter().filter(|text| known.contains_key(*text)).count();
        assert!(mistakes >= 3, "{}: {mistakes} of the ways that are known can be chosen", exercise.id);
    }
}

#[test]
fn every_choice_gets_the_verdict_of_a_terminal() {
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads = [0, 1].map(|half| {
            let half = exercises_page::EXERCISES.iter().skip(half).step_by(2);
            scope.spawn(|| half.flat_map(other_verdicts).collect::<Vec<_>>())
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Checks every choice, compares what is said of it with the snapshot, and returns the verdicts that are not those of a terminal.
fn other_verdicts(InPage { id, variants, .. }: &InPage) -> Vec<String> {
    let exercise = Exercise::find(id).unwrap();
    let (choices, known) = (exercise.choices().unwrap(), named(exercise));
    let terminal = told_in_a_terminal(exercise);
    let mut wrong = Vec::new();
    let mut told = format!("{}\n", exercise.title);
    for number in 0..variants.len() {
        let (_, checked) = check(exercise.id, &choices.chosen(number), Form::Text).unwrap();
        let name = known.get(&choices.text(number));
        if let Some(name) = name {
            let here = checked.verdict.to_string();
            let here = here.replace(&format!("exercises/{}", exercise.file()), &format!("{name}.rs"));
            // A style is tried with one seed there.
            let is_style = exercise.styles.iter().any(|style| style.name == *name);
            if here.trim_end() != terminal[*name] && !(is_style && checked.verdict.passed()) {
                wrong.push(format!("{} {name}:\n{here}\nin a terminal:\n{}", exercise.id, terminal[*name]));
            }
        }
        let says = match &checked.verdict {
            Verdict::Passed { .. } => "passed".to_owned(),
            Verdict::Failed { diagnosis, .. } => {
                format!("{}: {} [{}]", diagnosis.id, diagnosis.says, diagnosis.seen)
            }
        };
        // Nothing survives a panic in a page.
        assert!(
            !["panic: ", "todo: "].iter().any(|panic| says.starts_with(panic)),
            "{} {number}",
            exercise.id
        );
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        told += &format!("\n{:?}{name}\n    {says}\n", choices.chosen(number));
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(exercise.id, told);
    });
    wrong
}
