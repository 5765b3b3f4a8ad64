//! The list of labs is complete, and each prints exactly the output in the book.

use crate::said;
use labs::LABS;
use rayon::prelude::*;
use std::path::Path;

#[test]
fn every_lab_says_what_its_snapshots_hold() {
    let runs: Vec<_> = LABS.iter().flat_map(|lab| lab.runs.iter().map(move |run| (lab, run))).collect();
    runs.par_iter().for_each(|(lab, run)| {
        let shown = said::shown(&said::clean(lab.name, &[run.flags, run.steady].concat()).events);
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(format!("{}-{}", lab.name, run.name), shown));
    });
}

/// Each snapshot belongs to an existing run.
#[test]
fn every_snapshot_of_a_lab_is_of_a_run() {
    let known: Vec<String> =
        LABS.iter().flat_map(|lab| lab.runs.iter().map(|run| lab.snapshot(run))).collect();
    let mut found: Vec<String> = names("tests/snapshots");
    found.retain(|name| name.starts_with("lab-"));
    let found: Vec<String> = found.iter().map(|name| format!("labs/tests/snapshots/{name}")).collect();
    assert_eq!(found, sorted(known));
}

/// A lab in a folder lists all its files.
#[test]
fn every_file_of_a_lab_is_known() {
    let mut found = Vec::new();
    for name in names("src").into_iter().filter(|name| name.starts_with("lab_")) {
        match name.ends_with(".rs") {
            true => found.push(format!("labs/src/{name}")),
            false => found
                .extend(names(&format!("src/{name}")).iter().map(|file| format!("labs/src/{name}/{file}"))),
        }
    }
    let known: Vec<String> = LABS.iter().flat_map(|lab| lab.sources()).collect();
    assert_eq!(found, sorted(known));
}

/// Lists outside Rust that cannot be derived from the list of labs.
#[test]
fn every_list_has_every_lab() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    for lab in &LABS {
        let name = lab.name;
        for (file, words) in [
            ("labs/Cargo.toml", format!("name = \"{name}\"\ntest = false\n")),
            ("README.md", format!("`{name}`")),
            ("book/chapters/SUMMARY.md", format!("(labs/{name}.md)")),
            (&format!("labs/src/bin/{name}.rs"), format!("labs::{}::LAB", lab.module)),
            (&format!("book/chapters/labs/{name}.md"), format!("{{{{#lab-source {}}}}}", lab.number())),
        ] {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default().replace("\r\n", "\n");
            if !text.contains(&words) {
                missing.push(format!("{file} lacks {words}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn labs_stand_in_the_order_of_their_numbers_and_runs_have_names_of_their_own() {
    assert!(LABS.is_sorted_by(|one, next| one.name < next.name));
    for lab in &LABS {
        let names = sorted(lab.runs.iter().map(|run| run.name).collect());
        assert!(names.is_sorted_by(|one, next| one < next), "{}: {names:?}", lab.name);
    }
}

/// The names in a folder of this package.
fn names(folder: &str) -> Vec<String> {
    let entries = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).read_dir().unwrap();
    sorted(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}
