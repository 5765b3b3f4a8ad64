//! The final assessment: a program with twelve planted faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use colored::Colorize;
use exercises::assessment::{
    self, Category, Draw, FASTER, HOW_POINTS, Looked, ROUND, SEEDS, Score, UNITS, Unit, WHY_PASS, one,
    overview,
};
use exercises::{Case, Verdict, file, printable};
use labs::stdio::to_stdout;
use labs::{Stop, files};

use crate::show::{name, text};
use crate::standing::{self, Standing};
use crate::student::timeline;
use crate::workplace::{Workplace, failed, wrong};

pub const ID: &str = "final";
pub const TITLE: &str = "The final assessment";

/// Whether a name means the assessment and not an exercise.
pub fn is_final(name: &str) -> bool {
    name.trim_end_matches(".rs") == ID
}

pub fn file_of(place: &Workplace) -> PathBuf {
    place.folder.join(assessment::FILE)
}

pub fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed < SEEDS);
    seed.ok_or_else(|| format!("expected a seed from 0 to {}", SEEDS - 1))
}

/// Returns the student's file, its seed, and whether it is new. Creates a missing file.
fn start_file(place: &mut Workplace, seed: Option<u64>) -> Result<(PathBuf, u64, bool), Stop> {
    let file = file_of(place);
    if !file.exists() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let any = || questions::hash(now.as_nanos().to_le_bytes().into_iter()) % SEEDS;
        let seed = seed.unwrap_or_else(any);
        let is_new = files::create(&file, Draw::of(seed).file().as_bytes()).map_err(|error| {
            failed(format!("{}: {error}; --work DIR chooses another folder", name(&file)))
        })?;
        if is_new {
            place.update(|record| record.set_assessment_seed(seed));
            return Ok((file, seed, true));
        }
    }
    let own = seed_of(&file)?;
    if let Some(written) = place.record.assessment_seed()
        && written != own
    {
        return Err(wrong(format!(
            "{}: the first line names seed {own}, but the program has seed {written}: change it back to {written}",
            name(&file)
        )));
    }
    match seed {
        Some(seed) if seed != own => Err(wrong(format!(
            "{} has the program of seed {own}: move this file to begin with seed {seed}",
            name(&file)
        ))),
        _ => Ok((file, own, false)),
    }
}

/// Resets the program to its initial state, and keeps a backup of the student's.
pub fn reset(place: &mut Workplace) -> Result<(), Stop> {
    let (file, seed, is_new) = start_file(place, None)?;
    if is_new {
        to_stdout(&format!("Written: {}\n", name(&file)));
        return Ok(());
    }
    let kept = place.replace_with_backup(&file, Draw::of(seed).file().as_bytes())?;
    to_stdout(&format!("Restored: {}\nYour version: {}\n", name(&file), name(&kept)));
    Ok(())
}

fn seed_of(file: &Path) -> Result<u64, Stop> {
    let of_file = |what: &dyn std::fmt::Display| wrong(format!("{}: {what}", name(file)));
    let bytes = file::bytes(file).map_err(|error| of_file(&error))?;
    let text = printable::decoded(&bytes).map_err(|what| of_file(&format!("it is {what}")))?;
    assessment::seed_of(text).map_err(|what| of_file(&what))
}

pub fn show(place: &mut Workplace, function: Option<&str>, seed: Option<u64>) -> Result<(), Stop> {
    let units: Vec<&'static Unit> = match function {
        None => UNITS.iter().collect(),
        Some(one) => {
            let unit = Unit::find(one).ok_or_else(|| {
                let all: Vec<&str> = UNITS.iter().map(|unit| unit.name).collect();
                let mut stop = wrong(format!("the program has no function `{one}`; it has"));
                stop.message += &text(&all.join(", "), "  ");
                stop
            })?;
            vec![unit]
        }
    };
    let (file, seed, is_new) = start_file(place, seed)?;
    if is_new {
        let output = "Twelve faults are planted in this program. You have 45 minutes. Its first lines say what it must do, and the comment \
                    above each function what that function must do. Save your changes in that file, and look at what the GPU was asked to do:";
        to_stdout(&format!(
            "{}\n\n{}\n  cargo course final         every function, in a table\n  cargo course final train   \
             one function: errors, races, memory, timeline\n  cargo course check final   your points\n\n{}\nWritten: {}\n",
            TITLE.bold(),
            text(output, ""),
            text(WHY_PASS, ""),
            name(&file)
        ));
        return Ok(());
    }
    let cases: Vec<Case> = units.iter().flat_map(|unit| unit.cases(seed, ROUND)).collect();
    let library = place.library()?;
    let run = assessment::run(&library, &file, &cases, &place.scratch, function.is_some()).map_err(failed)?;
    let run = run.map_err(|diagnosis| not_run(&file, diagnosis))?;
    let mut output = match function {
        None => overview(&run.looked),
        Some(_) => run.looked.iter().map(one_machine).collect::<Vec<_>>().join("\n"),
    };
    if function.is_some() && !run.printed.is_empty() {
        output = format!("Your code prints:\n{}\n{output}", printable::lines(run.printed.trim_end()));
    }
    to_stdout(&format!("{output}\nTo check it: cargo course check final\n"));
    Ok(())
}

fn not_run(file: &Path, diagnosis: exercises::Diagnosis) -> Stop {
    let line = diagnosis.line;
    let verdict = Verdict::Failed { diagnosis: Box::new(diagnosis), case: None };
    let place = line.map_or(String::new(), |line| format!("\n{}:{line}\n", name(file)));
    to_stdout(&format!("{verdict}{place}"));
    Stop { message: String::new(), exit_code: 1 }
}

fn one_machine(looked: &Looked) -> String {
    let heading = format!("{} on {}", looked.unit.name, looked.case.named()).bold();
    format!("{heading}\n{}{}", one(looked), looked.seen.as_ref().map(timeline).unwrap_or_default())
}

/// Checks the file, stores the result, and prints it.
pub fn check(place: &mut Workplace) -> Result<bool, Stop> {
    // A program that was moved away is not recreated, since its points would be lost.
    if !file_of(place).exists() {
        return Err(wrong(format!(
            "there is no {}: `cargo course final` begins the assessment",
            name(&file_of(place))
        )));
    }
    let (file, seed, _) = start_file(place, None)?;
    let library = place.library()?;
    let checked = assessment::check(&library, &file, seed, ROUND, &place.scratch).map_err(failed)?;
    let score = checked.map_err(|diagnosis| not_run(&file, diagnosis))?;
    let standing = Standing::of(seed, &score)?;
    standing.store(place);
    to_stdout(&score_text(&score, seed));
    Ok(score.passed())
}

/// The text after a check: the points, but not the places of the faults.
fn score_text(score: &Score, seed: u64) -> String {
    let state = if score.passed() { "passed".green() } else { "not yet".red() };
    let mut output = format!("{state}: {} of 100 points (the program of seed {seed})\n\n", score.points);
    for (category, _) in Category::ALL {
        let (mended, all) = score.of_category(category);
        output += &format!("  {:<14}{mended} of {all} fixed\n", category.name());
    }
    let broken = match score.broken.len() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", score.broken.join(", ")),
    };
    output += &format!("  {:<14}{broken}\n\n", "broken since");
    output += &format!(
        "  {:.0} points for faults, {:.0} for time, {:.0} for memory, {:.0} for the last act\n\n",
        score.for_faults, score.for_time, score.for_memory, score.for_pace
    );
    output += &text(HOW_POINTS, "");
    output.push('\n');
    for sentence in &score.stopped {
        output += &text(&printable::line(sentence), "");
        output.push('\n');
    }
    if let Some(nothing) = score.nothing {
        output += &text(&format!("{nothing}."), "");
        output.push('\n');
    }
    match &score.pace {
        Err(why) => {
            let why = printable::line(why);
            output += &text(&format!("Time, memory and the last act earn nothing: {why}."), "");
        }
        Ok(pace) => {
            output += &assessment::table(pace);
            output += &format!(
                "\n{:.1} times as fast as with all faults fixed and `fit` as it was; the last act asks for {FASTER:.0} times. {:.1} % of new rows are right.\n",
                pace.factor(),
                100.0 * pace.right
            );
        }
    }
    if !score.passed() {
        output.push('\n');
        output += &text(WHY_PASS, "");
    }
    output + "\ncargo course report names the objectives that you met, and what to read again.\n"
}

/// Grades a file as the program of a seed. Default: the seed in its first line.
pub fn graded(
    library: &exercises::library::Library,
    text: &str,
    seed: Option<u64>,
    round: u64,
    own: &Path,
) -> Result<Result<Standing, String>, String> {
    let seed = match seed.map_or_else(|| assessment::seed_of(text), Ok) {
        Ok(seed) => seed,
        Err(what) => return Ok(Err(what)),
    };
    let file = own.join(assessment::FILE);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let checked = assessment::check(library, &file, seed, round, own)?;
    Ok(match checked {
        Ok(score) => Ok(standing::Standing::of(seed, &score).map_err(|stop| stop.message)?),
        Err(diagnosis) => Err(format!("{}: {}", diagnosis.id, diagnosis.says)),
    })
}
