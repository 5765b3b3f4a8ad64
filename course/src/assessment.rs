//! The final assessment: a program with twelve planted faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use colored::Colorize;
use exercises::assessment::{
    self, Category, Draw, FASTER, HOW_POINTS, Looked, ROUND, SEEDS, Score, UNITS, Unit, WHY_PASS,
};
use exercises::{CallKind, Case, Ended, Seen, Verdict, file, printable};
use labs::stdio::to_stdout;
use labs::{Stop, files};

use crate::show::{name, text};
use crate::standing::{self, Standing};
use crate::workplace::{Workplace, failed, wrong};

/// Its name among those of exercises.
pub const ID: &str = "final";

/// Whether a student means it, where an exercise can be named too.
pub fn is_meant(name: &str) -> bool {
    name.trim_end_matches(".rs") == ID
}

pub fn file_of(place: &Workplace) -> PathBuf {
    place.folder.join(assessment::FILE)
}

/// The student's file and its seed. If there is none yet, it is written.
fn begun(place: &Workplace, seed: Option<u64>) -> Result<(PathBuf, u64, bool), Stop> {
    let file = file_of(place);
    if let Some(seed) = seed
        && seed >= SEEDS
    {
        return Err(wrong(format!("--seed {seed}: a program has a seed from 0 to {}", SEEDS - 1)));
    }
    if !file.exists() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let any = || questions::hash(now.as_nanos().to_le_bytes().into_iter()) % SEEDS;
        let seed = seed.unwrap_or_else(any);
        let is_new = files::create(&file, Draw::of(seed).file().as_bytes())
            .map_err(|error| failed(format!("{}: {error}; --work DIR takes another folder", name(&file))))?;
        if is_new {
            return Ok((file, seed, true));
        }
    }
    let own = seed_of(&file)?;
    match seed {
        Some(seed) if seed != own => Err(wrong(format!(
            "{} is the program of seed {own}: move it away to begin that of seed {seed}",
            name(&file)
        ))),
        _ => Ok((file, own, false)),
    }
}

/// Writes the same program as it is at first, and keeps the student's.
pub fn reset(place: &Workplace) -> Result<(), Stop> {
    let (file, seed, is_new) = begun(place, None)?;
    if is_new {
        to_stdout(&format!("Written: {}\n", name(&file)));
        return Ok(());
    }
    let kept = place.kept_under_another_name(&file, Draw::of(seed).file().as_bytes())?;
    to_stdout(&format!("Written anew: {}\nYours is kept: {}\n", name(&file), name(&kept)));
    Ok(())
}

/// The seed in the first line of a file.
fn seed_of(file: &Path) -> Result<u64, Stop> {
    let of_file = |what: &dyn std::fmt::Display| wrong(format!("{}: {what}", name(file)));
    let bytes = file::bytes(file).map_err(|error| of_file(&error))?;
    let text = printable::decoded(&bytes).map_err(|what| of_file(&format!("it is {what}")))?;
    assessment::seed_of(text).map_err(|what| of_file(&what))
}

/// Begins, or says what the functions did.
pub fn show(place: &Workplace, function: Option<&str>, seed: Option<u64>) -> Result<(), Stop> {
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
    let (file, seed, is_new) = begun(place, seed)?;
    if is_new {
        let told = "Twelve faults are planted in this program. You have 45 minutes. Its first lines say what it must do, and the comment \
                    above each function what that function must do. Save your changes in that file, and look at what the GPU was asked to do:";
        to_stdout(&format!(
            "{}\n\n{}\n  cargo course final         every function, in a table\n  cargo course final train   \
             one function: errors, races, memory, timeline\n  cargo course check final   your points\n\n{}\nWritten: {}\n",
            "The final assessment".bold(),
            text(told, ""),
            text(WHY_PASS, ""),
            name(&file)
        ));
        return Ok(());
    }
    let cases: Vec<Case> = units.iter().flat_map(|unit| unit.cases(seed, ROUND)).collect();
    let library = place.library()?;
    let run = assessment::run(&library, &file, &cases, &place.scratch, function.is_some()).map_err(failed)?;
    let run = run.map_err(|diagnosis| not_run(&file, diagnosis))?;
    let mut told = match function {
        None => overview(&run.looked),
        Some(_) => run.looked.iter().map(one).collect::<Vec<_>>().join("\n"),
    };
    if function.is_some() && !run.printed.is_empty() {
        told = format!("Your code prints:\n{}\n{told}", printable::lines(run.printed.trim_end()));
    }
    to_stdout(&format!("{told}\nNothing is judged here: cargo course check final\n"));
    Ok(())
}

/// Says why a file was not run.
fn not_run(file: &Path, diagnosis: exercises::Diagnosis) -> Stop {
    let line = diagnosis.line;
    let verdict = Verdict::Failed { diagnosis: Box::new(diagnosis), case: None };
    let place = line.map_or(String::new(), |line| format!("\n{}:{line}\n", name(file)));
    to_stdout(&format!("{verdict}{place}"));
    Stop { message: String::new(), exit_code: 1 }
}

/// A table of the work of each GPU, one function per row.
fn overview(looked: &[Looked]) -> String {
    let mut told = format!(
        "{:<12}{:<10}{:>8}{:>6}{:>6}{:>6}{:>8}{:>9}{:>6}{:>17}\n",
        "function",
        "machine",
        "kernels",
        "in",
        "back",
        "waits",
        "KiB in",
        "peak KiB",
        "races",
        "modelled ms, busy"
    );
    let mut notes = String::new();
    for Looked { unit, case, seen, died } in looked {
        let label = format!("{:<12}{:<10}", unit.name, case.gpu);
        let Some(seen) = seen else {
            let what = if died.is_some() { "the program ended here" } else { "did not run" };
            told += &format!("{label}{what}\n");
            if let Some(why) = died {
                let why = printable::line(why);
                notes += &format!(
                    "{}\n",
                    text(&format!("{} on {}: it {why}", unit.name, case.gpu), "").trim_end()
                );
            }
            continue;
        };
        let waits = seen.calls.iter().filter(|call| call.waits).count();
        told += &format!(
            "{label}{:>8}{:>6}{:>6}{:>6}{:>8}{:>9}{:>6}{:>11.3}{:>4} %\n",
            seen.count(CallKind::Launch),
            seen.count(CallKind::ToDevice),
            seen.count(CallKind::ToHost),
            waits,
            seen.bytes(CallKind::ToDevice) >> 10,
            seen.peak >> 10,
            seen.races.len(),
            seen.time as f64 / 1e6,
            100 * seen.computed / seen.time.max(1),
        );
        if let Some(error) = ended(seen) {
            let error = printable::line(error.lines().next().unwrap_or_default());
            notes +=
                &format!("{}\n", text(&format!("{} on {}: {error}", unit.name, case.gpu), "").trim_end());
        }
    }
    if !notes.is_empty() {
        told += &format!("\n{notes}");
    }
    told += "\nCopies in and back, calls that wait for the GPU, and how busy it is. What the check itself\n\
             asks of a result is counted too. Times are modelled. The peak is that of cuda:0; on\n\
             sim:t4x2 the device is cuda:1.\n";
    told
}

/// How a function ended, if not well.
fn ended(seen: &Seen) -> Option<String> {
    match &seen.ended {
        Ended::Returned(_) => None,
        Ended::Failed { message, .. } => Some(message.clone()),
        Ended::Panicked { message, line } => {
            let line = line.map_or(String::new(), |line| format!(" on line {line}"));
            Some(format!("it panicked{line}: {message}"))
        }
        Ended::UsedUp => {
            Some("it does not end: all operations that a run may ask for are used up".to_owned())
        }
    }
}

/// All that was seen of one function on one machine.
fn one(Looked { unit, case, seen, died }: &Looked) -> String {
    let mut told = format!("{}\n", format!("{} on {}", unit.name, case.named()).bold());
    let Some(seen) = seen else {
        let why = died.as_deref().unwrap_or("did not run");
        return told + &format!("It {}.\n", printable::line(why));
    };
    let ran = crate::student::ran(case, seen);
    // How it ended is said there, but for the line.
    told += &match &seen.ended {
        Ended::Panicked { line: Some(line), .. } => {
            ran.replacen("It panicked: ", &format!("It panicked on line {line}: "), 1)
        }
        _ => ran,
    };
    told += &kernels(seen);
    told += &waits(seen);
    told += &memory(seen);
    told
}

/// The kernels by name, with how often each was launched.
fn kernels(seen: &Seen) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    for call in seen.of(CallKind::Launch) {
        // A kernel's own name says what it computes in.
        let name = match call.name.as_str() {
            "gemm" => format!("gemm {}", call.types.join(" ")),
            name => name.to_owned(),
        };
        match names.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|known| std::cmp::Reverse(known.1));
    let shown = names.iter().take(16).map(|(name, count)| format!("{count} × {name}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { shown } else { format!("\nkernels\n{}", text(&shown, "  ")) }
}

/// The lines that made the host wait, or copied, with how often.
fn waits(seen: &Seen) -> String {
    let mut lines: Vec<(Option<u32>, String, usize)> = Vec::new();
    let is_told =
        |kind| matches!(kind, CallKind::ToDevice | CallKind::ToHost | CallKind::Wait | CallKind::Driver);
    for call in seen.calls.iter().filter(|call| call.waits || is_told(call.kind)) {
        match lines.iter_mut().find(|(line, name, _)| *line == call.line && *name == call.name) {
            Some((_, _, count)) => *count += 1,
            None => lines.push((call.line, call.name.clone(), 1)),
        }
    }
    let mut told = String::new();
    for (line, name, count) in lines.iter().take(12) {
        let line = line.map_or("no line of yours".to_owned(), |line| format!("line {line}"));
        told += &format!("  {line:<18}{count:>5} × {name}\n");
    }
    if told.is_empty() { told } else { format!("\ncopies, waits, and memory of the driver, by line\n{told}") }
}

/// The memory that tensors take, call by call, and what is there when it is most.
fn memory(seen: &Seen) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut held: Vec<u64> = Vec::new();
    let mut there: Vec<(Option<u32>, u64)> = Vec::new();
    let (mut now, mut most, mut map) = (0u64, 0, Vec::new());
    for call in &seen.calls {
        match call.kind {
            CallKind::Allocate => {
                now += call.bytes;
                there.push((call.line, call.bytes));
            }
            CallKind::Free => {
                now = now.saturating_sub(call.bytes);
                if let Some(at) = there.iter().position(|block| block.1 == call.bytes) {
                    there.remove(at);
                }
            }
            _ => continue,
        }
        held.push(now);
        if now > most {
            (most, map) = (now, there.clone());
        }
    }
    if held.is_empty() {
        return String::new();
    }
    let step = held.len().div_ceil(64).max(1);
    let bar = |part: &[u64]| BARS[(7 * part.iter().copied().max().unwrap_or(0) / most.max(1)) as usize];
    let curve: String = held.chunks(step).map(bar).collect();
    let mut lines: Vec<(Option<u32>, u64, usize)> = Vec::new();
    for (line, bytes) in map {
        match lines.iter_mut().find(|known| known.0 == line) {
            Some(known) => (known.1, known.2) = (known.1 + bytes, known.2 + 1),
            None => lines.push((line, bytes, 1)),
        }
    }
    lines.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let mut told = format!(
        "\nmemory that the function took, as it went on: {} KiB at most\n  {curve}\nat that moment, by the lines that took it\n",
        most >> 10
    );
    for (line, bytes, count) in lines.iter().take(8) {
        let line = line.map_or("no line of yours".to_owned(), |line| format!("line {line}"));
        told += &format!("  {line:<18}{:>5} KiB in {}\n", bytes >> 10, count_of(*count));
    }
    told
}

fn count_of(blocks: usize) -> String {
    crate::show::count(blocks, "block", "blocks")
}

/// Checks the file, keeps what came of it, and tells it.
pub fn check(place: &Workplace) -> Result<bool, Stop> {
    // A program that was moved away is not replaced: its points would be lost.
    if !file_of(place).exists() {
        return Err(wrong(format!(
            "there is no {}: `cargo course final` begins the assessment",
            name(&file_of(place))
        )));
    }
    let (file, seed, _) = begun(place, None)?;
    let library = place.library()?;
    let checked = assessment::check(&library, &file, seed, ROUND, &place.scratch).map_err(failed)?;
    let score = checked.map_err(|diagnosis| not_run(&file, diagnosis))?;
    let standing = Standing::of(seed, &score)?;
    standing.keep(&place.folder)?;
    to_stdout(&told(&score, seed));
    Ok(score.passed())
}

/// The text after a check: points, and not where the faults are.
fn told(score: &Score, seed: u64) -> String {
    let state = if score.passed() { "passed".green() } else { "not yet".red() };
    let mut told = format!("{state}: {} of 100 points (the program of seed {seed})\n\n", score.points);
    for (category, _) in Category::ALL {
        let (mended, all) = score.of_category(category);
        told += &format!("  {:<14}{mended} of {all} mended\n", category.name());
    }
    let broken = match score.broken.len() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", score.broken.join(", ")),
    };
    told += &format!("  {:<14}{broken}\n\n", "broken since");
    told += &format!(
        "  {:.0} points for faults, {:.0} for time, {:.0} for memory, {:.0} for the last act\n\n",
        score.for_faults, score.for_time, score.for_memory, score.for_pace
    );
    told += &text(HOW_POINTS, "");
    told.push('\n');
    for sentence in &score.stopped {
        told += &text(&printable::line(sentence), "");
        told.push('\n');
    }
    if let Some(nothing) = score.nothing {
        told += &text(&format!("{nothing}."), "");
        told.push('\n');
    }
    match &score.pace {
        Err(why) => {
            let why = printable::line(why);
            told += &text(&format!("Time, memory and the last act earn nothing: {why}."), "");
        }
        Ok(pace) => {
            told += &assessment::table(pace);
            told += &format!(
                "\n{:.1} times as fast as with all faults mended and `fit` as it was; the last act asks for {FASTER:.0} times. {:.1} % of new rows are right.\n",
                pace.factor(),
                100.0 * pace.right
            );
        }
    }
    if !score.passed() {
        told.push('\n');
        told += &text(WHY_PASS, "");
    }
    told + "\ncargo course report names the objectives that you met, and what to read again.\n"
}

/// Grades a file of somebody else's, as the program of a seed: that of its first line, if none is given.
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
