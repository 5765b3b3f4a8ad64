//! The exercises for a page: whatever a reader can choose there has been compiled, since a page has no compiler. It is run and
//! judged as a student's file is in a terminal, by the same check.
//!
//! `cargo build -p exercises-page --target wasm32-unknown-unknown` makes a module of it, which `module.rs` describes.

mod module;

use exercises::{Case, CheckedHere, Exercise, Form, SEEDS, Seen, check_here};

/// An exercise, and every file that can be chosen.
pub struct InPage {
    pub exercise: &'static Exercise,
    /// By the numbers of `Exercise::choices`.
    pub variants: &'static [Variant],
}

/// A file, compiled.
pub struct Variant {
    /// As the compiler was given it.
    pub file: &'static str,
    pub observe: fn(&Case) -> Seen,
}

include!(concat!(env!("OUT_DIR"), "/variants.rs"));

/// Checks what somebody has chosen, if there is such an exercise and such a choice.
pub fn check(id: &str, chosen: &[usize], form: Form) -> Option<(&'static Exercise, CheckedHere)> {
    let InPage { exercise, variants } = EXERCISES.iter().find(|known| known.exercise.id == id)?;
    let number = exercise.choices().ok()?.number(chosen)?;
    let Variant { file, observe } = variants.get(number)?;
    let mut checked = check_here(exercise, file, *observe, &exercise.cases(&SEEDS), form);
    if let exercises::Verdict::Failed { diagnosis, .. } = &mut checked.verdict {
        // The reader knows of one file, and its name is that in a terminal.
        let named = |text: &str| text.replace(file, &format!("exercises/{}", exercise.file()));
        diagnosis.report = diagnosis.report.as_deref().map(named);
        diagnosis.seen = named(&diagnosis.seen);
    }
    Some((exercise, checked))
}
