//! The exercises for a page: whatever a reader can choose there has been compiled, since a page has no compiler. It is run and
//! judged as a student's file is in a terminal, by the same check.
//!
//! `cargo build -p exercises-page --target wasm32-unknown-unknown` makes a module of it, which `module.rs` describes.

mod module;

use exercises::{Case, CheckedHere, Form, Judge, Observe, SEEDS, check_here};

/// What of an exercise is needed to check it, and every file that can be chosen.
pub struct InPage {
    pub id: &'static str,
    afterwards: &'static str,
    gpus: &'static [&'static str],
    sizes: &'static [usize],
    observe: Observe,
    judge: Judge,
    /// How many options each place has.
    options: &'static [usize],
    /// By the numbers of `exercises::Choices`.
    pub variants: &'static [Variant],
}

/// A file, compiled.
pub struct Variant {
    /// As the compiler was given it.
    pub file: &'static str,
    pub observe: Observe,
}

include!(concat!(env!("OUT_DIR"), "/variants.rs"));

/// Checks what somebody has chosen, if there is such an exercise and such a choice.
pub fn check(id: &str, chosen: &[usize], form: Form) -> Option<(&'static InPage, CheckedHere)> {
    let exercise = EXERCISES.iter().find(|known| known.id == id)?;
    let number = exercises::number(exercise.options, chosen)?;
    let Variant { file, observe } = exercise.variants.get(number)?;
    let cases = Case::all(exercise.gpus, &SEEDS, exercise.sizes);
    let mut checked = check_here((exercise.judge, exercise.observe), (file, *observe), &cases, form);
    if let exercises::Verdict::Failed { diagnosis, .. } = &mut checked.verdict {
        // The reader knows of one file, and its name is that in a terminal.
        let named = |text: &str| text.replace(file, &format!("exercises/{id}.rs"));
        diagnosis.report = diagnosis.report.as_deref().map(named);
        diagnosis.seen = named(&diagnosis.seen);
    }
    Some((exercise, checked))
}
