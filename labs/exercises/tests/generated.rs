//! Wrong solutions that nobody thought of: a sample of those that the command `mutants` tries, which tries all.

#[path = "../mutants/mutation.rs"]
mod mutation;
#[path = "../mutants/trial.rs"]
mod trial;

use exercises::{EXERCISES, Exercise};

use crate::matrix::{folder, library};
use mutation::{Mutant, mutants};
use trial::{Counts, equivalents, try_all};

/// Some of a list, spread over all of it.
fn sample(mut all: Vec<Mutant>, count: usize) -> Vec<Mutant> {
    let step = all.len() as f64 / count as f64;
    let places: Vec<usize> = (0..count).map(|k| (k as f64 * step) as usize).collect();
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        places.contains(&(at - 1))
    });
    all
}

#[test]
fn a_sample_of_sixty_is_rejected_or_right() {
    let mut counts = Counts::default();
    // Each program has to be linked, so there are few of them.
    for exercise in EXERCISES.iter().step_by(5) {
        let folder = folder(&format!("{} sample", exercise.id));
        let mutants = sample(mutants(exercise), 9);
        try_all(library(), exercise, &mutants, &equivalents(), &folder, &mut counts).unwrap();
    }
    assert!(counts.all() >= 60 && counts.passed.is_empty(), "{counts:#?}");
    assert!(counts.rejected > counts.same + counts.listed, "{counts:#?}");
}

#[test]
fn there_are_more_than_a_thousand_and_each_is_a_text_of_its_own() {
    let mut all = 0;
    for exercise in EXERCISES {
        let mutants = mutants(exercise);
        let texts: std::collections::BTreeSet<&str> =
            mutants.iter().map(|mutant| mutant.text.as_str()).collect();
        assert!(mutants.len() >= 20, "{}: {}", exercise.id, mutants.len());
        assert!(
            texts.len() == mutants.len() && !texts.contains(exercise.solution().as_str()),
            "{}",
            exercise.id
        );
        all += mutants.len();
    }
    assert!(all > 1_000, "{all}");
}

#[test]
fn each_change_that_is_right_too_is_listed_with_an_exercise_and_a_reason() {
    for known in equivalents() {
        let is_known = known.exercise == "every exercise" || Exercise::find(known.exercise).is_some();
        assert!(is_known && !known.reason.is_empty() && !known.what.is_empty(), "{}", known.what);
    }
}
