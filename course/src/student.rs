use std::path::Path;

use colored::Colorize;
use exercises::check::{Checked, check};
use exercises::shown::ran;
use exercises::{Case, Ended, Exercise, Kind, SEEDS, Seen, Verdict, printable};
use labs::Stop;
use labs::stdio::to_stdout;
use todevice::GpuSpec;

use crate::assessment;
use crate::own::{self, all};
use crate::show::{count, name, text};
use crate::standing::Standing;
use crate::workplace::{Workplace, all_named, failed, wrong};

pub fn start(place: &Workplace) -> Result<(), Stop> {
    let passed = all().into_iter().filter(|exercise| place.record.has_passed(exercise.id)).count();
    let mut output = format!("{}\n\n", "To Device: GPU computing for deep learning, hands on".bold());
    if passed == 0 {
        output += &text(
            "You read a chapter, predict what its lab will say, and repair code that a simulated GPU watches. You need no \
             GPU.",
            "",
        );
        output += "\n  cargo course book      the chapters, at http://127.0.0.1:3000\n";
        output += "  cargo course read 01   the first lab, with its questions, here\n";
        output += "  cargo course watch     the first exercise: checked whenever you save\n";
    } else {
        output += &format!("{passed} of {} passed.\n", count(all().len(), "exercise", "exercises"));
    }
    match place.next() {
        Some(next) => {
            output += &format!("\nNext: {}\n\n", titled(next));
            output += &text(next.task, "  ");
            let (file, _) = place.start_file(next)?;
            output += &format!("\n  {}\n", name(&file));
        }
        None => {
            output += "\nAll exercises have passed. `cargo course quiz 01` asks the questions of a chapter, and `cargo course final` \
                     is the final assessment.\n"
        }
    }
    output += "\n`cargo course list` shows all exercises, `cargo course help` all commands.\n";
    to_stdout(&output);
    Ok(())
}

pub fn titled(exercise: &Exercise) -> String {
    let kind = match exercise.kind {
        Kind::Fix => "fix it",
        Kind::Write => "write it",
    };
    format!("{}  {} ({kind})", exercise.id.bold(), exercise.title)
}

pub fn list(place: &Workplace, search: Option<&str>, open: bool, done: bool) -> Result<(), Stop> {
    let fits = |exercise: &&Exercise| {
        let text = format!("{} {} {}", exercise.id, exercise.title, exercise.task).to_lowercase();
        let passed = place.record.has_passed(exercise.id);
        search.is_none_or(|search| text.contains(&search.to_lowercase()))
            && !(open && passed)
            && (!done || passed)
    };
    let found: Vec<_> = all().into_iter().filter(fits).collect();
    let width = all().into_iter().map(|exercise| exercise.id.len()).max().unwrap_or(0);
    let mut output = String::new();
    for exercise in &found {
        let passed = place.record.has_passed(exercise.id);
        let state = match (passed, place.record.count(exercise.id, "checks")) {
            (true, _) => "passed".green(),
            (false, 0) => "".normal(),
            (false, _) => "begun".yellow(),
        };
        let kind = if exercise.kind == Kind::Fix { "fix" } else { "write" };
        output += &format!("{state:6}  {:width$}  {kind:5}  {}\n", exercise.id, exercise.title);
    }
    let standing = Standing::read(place)?;
    let has_passed = standing.as_ref().is_some_and(|standing| standing.passed);
    let is_searched = |search: &str| {
        format!("{} {}", assessment::ID, assessment::TITLE).to_lowercase().contains(&search.to_lowercase())
    };
    let has_final = search.is_none_or(is_searched) && !(open && has_passed) && (!done || has_passed);
    if has_final {
        let state = match &standing {
            Some(_) if has_passed => "passed".green(),
            Some(_) => "begun".yellow(),
            None => "".normal(),
        };
        let points = standing
            .map_or("up to 100 points".to_owned(), |standing| format!("{} of 100 points", standing.points));
        output +=
            &format!("{state:6}  {:width$}  {:5}  {}, {points}\n", assessment::ID, "fix", assessment::TITLE);
    }
    if found.is_empty() && !has_final {
        return Err(failed("no exercise matches; `cargo course list` shows all"));
    }
    let passed = all().into_iter().filter(|exercise| place.record.has_passed(exercise.id)).count();
    output += &format!("\n{passed} of {} passed\n", all().len());
    to_stdout(&output);
    Ok(())
}

pub fn task(place: &Workplace, exercise: &Exercise) -> Result<(), Stop> {
    let (file, is_new) = place.start_file(exercise)?;
    let mut output = format!("{}\n\n{}\n", titled(exercise), text(exercise.task, ""));
    output += &format!("{} {}\n", if is_new { "Written:" } else { "Your file:" }, name(&file));
    to_stdout(&output);
    Ok(())
}

/// Runs a student's code once, and shows the machine's record. It judges and stores nothing.
pub fn run(
    place: &Workplace,
    exercise: &Exercise,
    gpu: Option<GpuSpec>,
    seed: u64,
    size: Option<usize>,
) -> Result<(), Stop> {
    let gpu = gpu.map_or(exercise.gpus[0].to_owned(), |gpu| gpu.to_string());
    if gpu == "real" || gpu == "auto" {
        return Err(wrong(format!(
            "--gpu {gpu}: exercises run on simulated GPUs or without a GPU: expected sim:t4, none, or similar"
        )));
    }
    let (file, is_new) = place.start_file(exercise)?;
    if is_new {
        to_stdout(&format!("Written in its original form: {}\n\n", name(&file)));
    }
    let cases = [Case { gpu, seed, size: size.unwrap_or(exercise.sizes[0]) }];
    let checked = check(&place.library()?, exercise, &file, &cases, &place.scratch).map_err(failed)?;
    // Code that did not run has only a verdict.
    let Some(seen) = checked.seen.first() else {
        to_stdout(&verdict_text(exercise, &checked, &file));
        return Err(Stop { message: String::new(), exit_code: 1 });
    };
    let id = exercise.id;
    to_stdout(&format!(
        "{}{}{}\nTo check it: cargo course check {id}\n",
        printed(&checked.printed),
        ran(&cases[0], seen),
        timeline(seen)
    ));
    match seen.ended {
        Ended::Returned(_) => Ok(()),
        _ => Err(Stop { message: String::new(), exit_code: 1 }),
    }
}

pub fn timeline(seen: &Seen) -> String {
    format!("\n{}\n", printable::lines(seen.timeline.trim_end()))
}

pub fn verdict(place: &mut Workplace, exercise: &Exercise) -> Result<Checked, Stop> {
    let library = place.library()?;
    let file = place.file(exercise);
    let checked =
        check(&library, exercise, &file, &exercise.cases(&SEEDS), &place.scratch).map_err(failed)?;
    let passed = checked.verdict.passed();
    place.update(|record| record.add_check(exercise.id, passed));
    Ok(checked)
}

pub fn verdict_text(exercise: &Exercise, checked: &Checked, file: &Path) -> String {
    let mut output = printed(&checked.printed);
    let text_of = checked.verdict.to_string();
    match &checked.verdict {
        Verdict::Passed { .. } => {
            output += &format!("{}", text_of.green());
            output += &text(exercise.afterwards, "");
        }
        Verdict::Failed { diagnosis, .. } => {
            output += &text_of.replacen("not yet:", &"not yet:".red().to_string(), 1);
            if let Some(line) = diagnosis.line {
                output += &format!("\n{}:{line}\n", name(file));
            }
            if diagnosis.id == "error"
                && let Some(story) = errors::explain(&diagnosis.seen)
            {
                let id = story.kind.id;
                output += &format!("\n`cargo course explain {id}` explains this error.\n");
            }
        }
    }
    output
}

fn printed(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = printable::lines(text);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.len().min(20);
    let mut output = format!("{}\n", "Your code prints:".bold());
    lines[..shown].iter().for_each(|line| output += &format!("  {line}\n"));
    if shown < lines.len() {
        output += &format!("  … and {}\n", count(lines.len() - shown, "more line", "more lines"));
    }
    output + "\n"
}

/// Checks the given exercises. The exit code is 1 if one fails.
pub fn check_all(place: &mut Workplace, names: &[String], all: bool) -> Result<(), Stop> {
    if let [name] = names
        && assessment::is_final(name)
    {
        return match assessment::check(place)? {
            true => Ok(()),
            false => Err(Stop { message: String::new(), exit_code: 1 }),
        };
    }
    let mut chosen = Vec::new();
    for name in names {
        chosen.extend(all_named(name)?);
    }
    if all {
        chosen = own::all().into_iter().filter(|exercise| place.file(exercise).exists()).collect();
        if chosen.is_empty() {
            return Err(wrong("you have not begun any exercise; `cargo course watch` begins the first"));
        }
    } else if chosen.is_empty() {
        chosen.push(place.named(None)?);
    }
    let several = chosen.len() > 1;
    let mut passed = 0;
    for exercise in &chosen {
        if several || names.is_empty() {
            to_stdout(&format!("{}\n", titled(exercise)));
        }
        let (file, is_new) = place.start_file(exercise)?;
        if is_new {
            to_stdout(&format!("Written in its original form: {}\n\n", name(&file)));
        }
        let checked = verdict(place, exercise)?;
        passed += usize::from(checked.verdict.passed());
        to_stdout(&format!("{}{}", verdict_text(exercise, &checked, &file), if several { "\n" } else { "" }));
        if !checked.verdict.passed() && !several {
            to_stdout(&format!("\nStuck? cargo course hint {}\n", exercise.id));
        }
    }
    if several {
        to_stdout(&format!("{passed} of {} passed\n", chosen.len()));
    } else if passed == 1
        && let Some(next) = place.after(chosen[0])
    {
        to_stdout(&format!("\nNext: cargo course watch {}\n", next.id));
    }
    match passed == chosen.len() {
        true => Ok(()),
        false => Err(Stop { message: String::new(), exit_code: 1 }),
    }
}

/// Prints the next hint, or the requested one.
pub fn hint(place: &mut Workplace, exercise: &Exercise, number: Option<u64>, is_watched: bool) {
    place.refresh();
    let number = number.unwrap_or(place.record.count(exercise.id, "hints") + 1).clamp(1, 3);
    let hint = exercise.hints[number as usize - 1];
    place.update(|record| record.add_hint(exercise.id, number));
    let more = match number {
        _ if is_watched => String::new(),
        3 => format!("That was the last one. cargo course solution {}", exercise.id),
        _ => format!("One more: cargo course hint {}", exercise.id),
    };
    to_stdout(&format!("Hint {number} of 3\n\n{}\n{more}\n", text(hint, "")));
}

pub fn solution(exercise: &Exercise) {
    to_stdout(&exercise.solution());
}

/// Resets the file to the skeleton, and keeps a backup of the student's.
pub fn reset(place: &Workplace, exercise: &Exercise) -> Result<(), Stop> {
    let (file, is_new) = place.start_file(exercise)?;
    if is_new {
        to_stdout(&format!("Written: {}\n", name(&file)));
        return Ok(());
    }
    let kept = place.reset_file(exercise)?;
    to_stdout(&format!("Restored: {}\nYour version: {}\n", name(&file), name(&kept)));
    Ok(())
}
