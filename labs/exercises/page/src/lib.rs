//! The exercises for a page: whatever a reader can choose there has been compiled, since a page has no compiler. It is run and
//! judged as a student's file is in a terminal, by the same check.
//!
//! `cargo build -p exercises-page --target wasm32-unknown-unknown` makes a module of it, which `module.rs` describes. A page loads what
//! only one exercise takes with that one: `modules` splits it by the table `EXERCISES`.

#[cfg(target_family = "wasm")]
mod module;

pub use exercises::Form;
use exercises::{Case, CheckedHere, Judge, Observe, SEEDS, Verdict, check_here, plain};

/// What of an exercise is needed to check it, and every file that can be chosen.
pub struct InPage {
    pub id: &'static str,
    afterwards: &'static str,
    gpus: &'static [&'static str],
    sizes: &'static [usize],
    observe: Observe,
    judge: Judge,
    /// How many options each place has.
    pub options: &'static [usize],
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
    if let Verdict::Failed { diagnosis, .. } = &mut checked.verdict {
        // The reader knows of one file, and its name is that in a terminal.
        let named = |text: &str| text.replace(file, &format!("exercises/{id}.rs"));
        diagnosis.report = diagnosis.report.as_deref().map(named);
        diagnosis.seen = named(&diagnosis.seen);
    }
    Some((exercise, checked))
}

impl InPage {
    /// What is to be said of a check, for `exercise.js`: its parts separated by NUL, in the order in which a terminal says them.
    pub fn told(&self, checked: &CheckedHere) -> String {
        let parts = match &checked.verdict {
            Verdict::Passed { runs } => {
                vec![format!("right in all {runs} runs"), self.afterwards.to_owned()]
            }
            Verdict::Failed { diagnosis, case } => {
                let time = if diagnosis.timelines.is_some() { "time" } else { "" };
                let [yours, solutions] = checked.pictures.clone().unwrap_or_default();
                vec![
                    diagnosis.says.clone(),
                    diagnosis.seen.clone(),
                    diagnosis.expected.clone(),
                    diagnosis.line.map(|line| line.to_string()).unwrap_or_default(),
                    case.as_ref().map(Case::described).unwrap_or_default(),
                    diagnosis.idea.clone(),
                    diagnosis.report.clone().unwrap_or_default(),
                    time.to_owned(),
                    yours,
                    solutions,
                ]
            }
        };
        parts.iter().map(|part| plain(part)).collect::<Vec<_>>().join("\0")
    }
}
