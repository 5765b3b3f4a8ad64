//! Wrong solutions that nobody thought of, derived by rule from the solutions of all exercises. Each is compiled and checked with
//! seeds held out. One that passes must do what the solution does, to the last call, or be listed with a reason in
//! `equivalent.txt`; every other one is a hole in a check.
//!
//! ```sh
//! cargo run -p exercises --features mutants --bin mutants           # all exercises: some minutes of one core
//! cargo run -p exercises --features mutants --bin mutants 02-batch  # these
//! ```

mod mutation;
mod trial;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use exercises::library::Library;
use exercises::{EXERCISES, Exercise};

use mutation::mutants;
use trial::{Counts, equivalents, try_all};

fn main() -> ExitCode {
    let ids: Vec<String> = std::env::args().skip(1).collect();
    match all(&ids) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether no wrong solution passes.
fn all(ids: &[String]) -> Result<bool, String> {
    let mut chosen: Vec<&Exercise> = Vec::new();
    for id in ids {
        chosen.push(
            Exercise::find(id)
                .ok_or_else(|| format!("there is no exercise `{id}`: expected an id such as 02-batch"))?,
        );
    }
    if ids.is_empty() {
        chosen = EXERCISES.to_vec();
    }
    let folder = folder()?;
    let library = Library::find(&folder)?;
    let equivalents = equivalents();
    println!(
        "{:14} {:>9} {:>13} {:>8} {:>8} {:>6} {:>6}",
        "", "generated", "not compiled", "rejected", "the same", "listed", "passed"
    );
    let mut total = Counts::default();
    for exercise in chosen {
        let mut counts = Counts::default();
        try_all(
            &library,
            exercise,
            &mutants(exercise),
            &equivalents,
            &folder.join(exercise.id),
            &mut counts,
        )?;
        row(exercise.id, &counts);
        for what in &counts.passed {
            println!("    passes: {what}");
        }
        total.broken += counts.broken;
        total.rejected += counts.rejected;
        total.same += counts.same;
        total.listed += counts.listed;
        total.passed.extend(counts.passed);
        total.used.extend(counts.used);
    }
    row("all", &total);
    let used: BTreeSet<usize> = total.used.into_iter().collect();
    let unused = (0..equivalents.len()).filter(|number| ids.is_empty() && !used.contains(number));
    let unused: Vec<usize> = unused.collect();
    for &number in &unused {
        println!(
            "listed in vain: {}: {} ({})",
            equivalents[number].exercise, equivalents[number].what, equivalents[number].reason
        );
    }
    Ok(total.passed.is_empty() && unused.is_empty())
}

fn row(name: &str, counts: &Counts) {
    let Counts { broken, rejected, same, listed, passed, .. } = counts;
    println!(
        "{name:14} {:>9} {broken:>13} {rejected:>8} {same:>8} {listed:>6} {:>6}",
        counts.all(),
        passed.len()
    );
}

/// A folder beside this program.
fn folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(program.with_file_name("mutants of exercises"))
}
