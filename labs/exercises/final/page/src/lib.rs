//! The final assessment for a page: every version of each function that a reader can choose has been compiled, since a page has no
//! compiler. Versions are run and judged as a student's file is in a terminal, by the same probes.
//!
//! The module that a page loads is described in `module.rs`.

mod chosen;
#[cfg(target_family = "wasm")]
mod module;
mod told;

use exercises::Case;
use exercises::assessment::{
    Looked, Pace, Program, REFERENCE, RIGHT, ROUND, SEEDS, Score, Unit, cases, look, outcome, pace,
    program_text,
};

pub use exercises::Form;
pub use exercises::assessment::{Draw, offers};
pub use told::{checked, looked, program};

/// All versions, compiled: see `build.rs`.
mod versions {
    use super::{Program, REFERENCE};

    include!(concat!(env!("OUT_DIR"), "/versions.rs"));
}

/// The choices of a reader in the program of a seed: the number of a version for each function.
pub struct Chosen {
    pub seed: u64,
    versions: [usize; FUNCTIONS],
    program: Program,
}

/// How many functions a program has.
const FUNCTIONS: usize = 22;

impl Chosen {
    /// From the place of the chosen version, for each function and then for each choice of the last act. None if there are no such
    /// choices.
    pub fn new(seed: u64, places: &[usize]) -> Option<Chosen> {
        if seed >= SEEDS {
            return None;
        }
        let offers = offers::offers(&Draw::of(seed));
        let (functions, last_act) = places.split_at_checked(offers.len())?;
        let mut versions = [0; FUNCTIONS];
        for ((offer, place), version) in offers.iter().zip(functions).zip(&mut versions) {
            *version = *offer.versions.get(*place)?;
        }
        versions[FUNCTIONS - 1] = exercises::number(&offers::last_act().ok()?.options, last_act)?;
        Some(Chosen { seed, versions, program: versions::program(&versions)? })
    }

    /// The points of the program.
    pub fn score(&self) -> Score {
        let cases = cases(self.seed, ROUND);
        let looked: Vec<Looked> = cases.iter().map(|case| self.look(case)).collect();
        let right: Vec<_> = cases.iter().map(|case| look(case, &REFERENCE)).collect();
        Score::of(&Draw::of(self.seed), outcome(&looked, &right, RIGHT))
    }

    /// How fast `fit` alone is.
    pub fn pace(&self) -> Result<Pace, String> {
        let case = Unit::find("fit").and_then(|fit| fit.cases(self.seed, ROUND).next()).ok_or("no `fit`")?;
        let seen = self.look(&case).seen.ok_or("it did not run")?;
        pace(&seen, &look(&case, &REFERENCE), RIGHT)
    }

    /// Runs the function of a case.
    fn look(&self, case: &Case) -> Looked {
        chosen::set(self.program);
        Looked::here(case, &self.program, versions::FOLDER)
    }

    /// A text in which all functions stand in one file.
    fn in_one_file(&self, text: &str) -> String {
        let functions = program_text::names().into_iter().zip(self.versions);
        functions.fold(text.to_owned(), |text, (name, version)| {
            text.replace(&format!("{}{name}_{version}.rs", versions::FOLDER), "final.rs")
        })
    }
}
