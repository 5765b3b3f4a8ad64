//! Files that students wrote for the crate as it was before `derive(Module)`: they are right as before, or one line says what has
//! changed. Each is the solution of its time, with the names of its time.

use std::path::Path;

use exercises::{Exercise, SEEDS, Verdict, check};

use crate::matrix::{folder, library};

/// Checks the file of an exercise.
fn verdict(id: &str) -> Verdict {
    let exercise = Exercise::find(id).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/older/{id}.rs"));
    let cases = exercise.cases(&SEEDS[..1]);
    check::check(library(), exercise, &file, &cases, &folder("older")).unwrap().verdict
}

#[test]
fn a_hand_written_module_and_older_names_still_pass() {
    for id in ["02-mask", "03-item", "05-fits"] {
        let verdict = verdict(id);
        assert!(verdict.passed(), "{id}: {verdict}");
    }
}

#[test]
fn options_as_an_argument_of_their_own_get_one_line() {
    let Verdict::Failed { diagnosis, .. } = verdict("04-accumulate") else { panic!("it passes") };
    assert_eq!(diagnosis.says, "It does not compile: options stand in a pair with the last argument.");
    assert_eq!(diagnosis.line, Some(19));
    let line =
        |arguments: &str| format!("`let loss = (model.forward(&x)?.cross_entropy({arguments})? / all)?;`");
    assert_eq!((diagnosis.seen, diagnosis.expected), (line("&y, &options"), line("(&y, options)")));
}
