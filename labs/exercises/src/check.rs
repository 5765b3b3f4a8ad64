//! Checks a student's file: one compiler call and one process lead to a verdict.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::case::Case;
use crate::child::Job;
use crate::compile_error::CompileError;
use crate::confined;
use crate::exercise::Exercise;
use crate::file;
use crate::from_python::explain;
use crate::library::{COMPILER, Library, NOT_FOUND};
use crate::own_folder::OwnFolder;
use crate::process::{Ended, Finished, Limits};
use crate::rules;
use crate::seen::{Form, Seen, with_axis};
use crate::verdict::{Diagnosis, Verdict};

/// The limits of a run. Runs take a few milliseconds. Only the start of the output is kept.
pub(crate) const PROGRAM: Limits = Limits { cpu: 10, wall: 60, memory: 2048, disk: 64, printed: 1 << 18 };

/// A verdict, with the observations and output of each case that was run.
#[derive(Debug)]
pub struct Checked {
    pub verdict: Verdict,
    pub seen: Vec<Seen>,
    pub printed: String,
}

/// The outcome of a compilation.
#[derive(Debug)]
pub enum Compiled {
    /// With a program.
    Well,
    /// With errors, in the compiler's order.
    Wrong(Vec<CompileError>),
    /// Neither: the compiler or the linker was stopped, or gave up. The text continues after "it".
    GaveUp(String),
}

/// Checks a student's file. `folder` is for temporary files. An error is not the student's fault.
pub fn check(
    library: &Library,
    exercise: &Exercise,
    file: &Path,
    cases: &[Case],
    folder: &Path,
) -> Result<Checked, String> {
    check_by(library, exercise, file, cases, None, folder)
}

/// The same with given observations of the solution, to check many files.
pub fn check_by(
    library: &Library,
    exercise: &Exercise,
    file: &Path,
    cases: &[Case],
    right: Option<&[Seen]>,
    folder: &Path,
) -> Result<Checked, String> {
    if let Some(host) = library.host(exercise.id) {
        return host.check(library, file, cases, folder);
    }
    let not_yet = |diagnosis: Diagnosis| Checked {
        verdict: Verdict::Failed { diagnosis: Box::new(diagnosis), case: None },
        seen: Vec::new(),
        printed: String::new(),
    };
    let text = match file::text(file)? {
        Ok(text) => text,
        Err(diagnosis) => return Ok(not_yet(diagnosis)),
    };
    if let Err(diagnosis) = rules::check(exercise.id, &text, confined::is_available()) {
        return Ok(not_yet(diagnosis));
    }
    // Other processes may be checking the same exercise.
    let own = OwnFolder::new(folder)?;
    let program = own.path().join(exercise.module());
    thread::scope(|scope| {
        // Run the solution meanwhile.
        let right = scope.spawn(|| right.map_or_else(|| Cow::Owned(exercise.right(cases)), Cow::Borrowed));
        let compiled = compile(library, exercise, &[("student", file)], &program)?;
        let right = right.join().map_err(|_| format!("{}: the solution panics", exercise.id))?;
        match compiled {
            Compiled::Well => run(&program, exercise, "student", cases, &right, own.path()),
            Compiled::Wrong(errors) => Ok(not_yet(compile_error(exercise.functions, file, &text, &errors))),
            Compiled::GaveUp(why) => {
                let says = format!("The compiler could not build this file: it {why}.");
                Ok(not_yet(Diagnosis::new("compiler", says).expected("a program within half a second").idea(
                    "Look for a very large constant, thousands of nested brackets or operators, or an \
                     endless computation.",
                )))
            }
        }
    })
}

/// Compiles files into one program. Each solves the exercise in a named way.
pub fn compile(
    library: &Library,
    exercise: &Exercise,
    files: &[(&str, &Path)],
    program: &Path,
) -> Result<Compiled, String> {
    let module = library.module(exercise);
    let mut root = String::new();
    let mut variants = String::new();
    for (name, file) in files {
        let functions = exercise.functions.iter().map(|(function, _)| format!(", {name}::{function}"));
        let functions: String = functions.collect();
        root += &format!("#[path = {file:?}]\nmod {name};\n");
        variants += &format!("    ({name:?}, {file:?}, |case| {module}::observe(case{functions})),\n",);
    }
    root +=
        &format!("fn main() -> std::process::ExitCode {{\n    exercises::child(&[\n{variants}    ])\n}}\n");
    compile_root(library, &root, program)
}

/// Compiles the root file of a program, which names the other files.
pub(crate) fn compile_root(library: &Library, root: &str, program: &Path) -> Result<Compiled, String> {
    let cannot = |error: io::Error| format!("{}: {error}", program.display());
    let main = program.with_extension("main.rs");
    if let Some(folder) = program.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    fs::write(&main, root).map_err(cannot)?;
    let mut rustc = library.rustc(&main, program);
    let folder = program.parent().unwrap_or(Path::new("."));
    // Keep temporary files in our folder, so that none remain elsewhere if the compiler is stopped.
    for variable in ["TMPDIR", "TEMP", "TMP"] {
        rustc.env(variable, folder);
    }
    let finished = COMPILER.run(&mut rustc, b"", folder);
    let Finished { printed: messages, ended } = finished.map_err(|error| format!("rustc: {error}"))?;
    match ended {
        Ended::Badly(NOT_FOUND) => Err(format!("rustc: {}", messages.trim())),
        _ => Ok(Compiled::of(ended, &messages)),
    }
}

impl Compiled {
    /// Interprets the compiler's exit status and its messages.
    fn of(ended: Ended, messages: &str) -> Compiled {
        let errors: Vec<CompileError> = messages.lines().filter_map(CompileError::read).collect();
        match ended.why(&COMPILER, messages) {
            None if ended == Ended::Well => Compiled::Well,
            _ if !errors.is_empty() => Compiled::Wrong(errors),
            Some(why) => Compiled::GaveUp(why),
            None => Compiled::GaveUp(format!("ended with {}", without_a_place(messages))),
        }
    }
}

/// The first error without a place in a file, such as the linker's, or else the first line of output.
fn without_a_place(messages: &str) -> String {
    let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
    let errors = messages.lines().filter_map(read).filter(|message| message["level"] == "error");
    let first =
        errors.filter_map(|message| message["message"].as_str()?.lines().next().map(str::to_owned)).next();
    let first = first.or_else(|| messages.lines().next().map(str::to_owned)).unwrap_or_default();
    format!("`{}`", first.chars().take(200).collect::<String>())
}

/// The compiler's first error. `functions` are those that the check calls, with their signatures.
pub(crate) fn compile_error(
    functions: &[(&str, &str)],
    file: &Path,
    text: &str,
    errors: &[CompileError],
) -> Diagnosis {
    let in_file: Vec<_> = errors.iter().filter(|error| Path::new(error.file()) == file).collect();
    // A missing token at the end of a line is often reported on the next line.
    let Some(first) = in_file.iter().min_by_key(|error| error.line()) else {
        // The code compiles, but the check cannot call it.
        let name = file.file_name().unwrap_or_default();
        let signatures = functions.iter().map(|(_, signature)| format!("`{signature}`"));
        return Diagnosis::new("signature", "The check cannot call your code.")
            .seen(errors[0].message.replace("module `student`", &format!("`{}`", name.to_string_lossy())))
            .expected(signatures.collect::<Vec<_>>().join(", "))
            .idea(
                "Change the body of a function as you like, but keep its name, its arguments, its return type, and `pub`.",
            );
    };
    let report = Some(first.rendered().to_owned());
    if let Some(explained) = explain(text, &in_file) {
        return Diagnosis { report, ..explained.diagnosis() };
    }
    let more = match errors.len() - 1 {
        0 => String::new(),
        1 => " (and one more error)".to_owned(),
        more => format!(" (and {more} more errors)"),
    };
    let message = first.message.lines().next().unwrap_or_default();
    let diagnosis = Diagnosis::new("compile", format!("It does not compile: {message}{more}."));
    Diagnosis { line: Some(first.line()), report, ..diagnosis }
}

/// Runs one of the solutions in a compiled program, and judges it.
pub fn run(
    program: &Path,
    exercise: &Exercise,
    variant: &str,
    cases: &[Case],
    right: &[Seen],
    folder: &Path,
) -> Result<Checked, String> {
    // A single run is for viewing, so draw its timeline.
    let axis = (cases.len() == 1).then_some(0);
    let Observed { seen, printed, ended } = observed(program, variant, cases, axis, folder)?;
    let stopped_at = cases.get(seen.len()).cloned();
    // A finding in a completed run takes precedence over a run that did not complete.
    let mut verdict = match (exercise.judge(cases, &seen, right), stopped_at) {
        (failed @ Verdict::Failed { .. }, _) => failed,
        (passed, None) => passed,
        (_, stopped_at) => {
            let why = ended.why(&PROGRAM, &printed);
            let diagnosis = match ended {
                Ended::OutOfTime => Diagnosis::new("did-not-end", "The code did not end.")
                    .seen(why.unwrap_or_default())
                    .expected("an end within a few milliseconds"),
                _ => Diagnosis::new(
                    "died",
                    format!(
                        "The program ended before the check did{}.",
                        why.map_or_else(String::new, |why| format!(": it {why}"))
                    ),
                )
                .seen("no report of its work")
                .idea(
                    "The check looks at your code's work on the machine, not at its output or its exit code.",
                ),
            };
            Verdict::Failed { diagnosis: Box::new(diagnosis), case: stopped_at }
        }
    };
    // Draw the two timelines again on a common axis, whose length is known only now.
    if let Verdict::Failed { diagnosis, case: Some(case) } = &mut verdict
        && diagnosis.timelines.is_some()
        && let Some(at) = cases.iter().position(|known| known == case)
    {
        let until = seen[at].time.max(right[at].time);
        let again = observed(program, variant, &cases[at..=at], Some(until), folder)?;
        let right = with_axis(Some((until, Form::Text)), || (exercise.observe)(case));
        if let [seen] = &again.seen[..] {
            diagnosis.timelines = Some([seen.timeline.clone(), right.timeline]);
        }
    }
    Ok(Checked { verdict, seen, printed })
}

/// A process that ran a student's code.
pub(crate) struct Observed {
    /// The observations of the cases that were run.
    pub seen: Vec<Seen>,
    pub printed: String,
    pub ended: Ended,
}

/// Runs cases of a variant in a separate process.
pub(crate) fn observed(
    program: &Path,
    variant: &str,
    cases: &[Case],
    axis: Option<u64>,
    folder: &Path,
) -> Result<Observed, String> {
    let cannot = |error: io::Error| format!("{}: {error}", program.display());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let token = now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
    // The report is next to the folder that the run can write into.
    let own = OwnFolder::new(folder)?;
    let report = own.path().join("report");
    let run = own.path().join("run");
    fs::create_dir(&run).map_err(cannot)?;
    let is_confined = confined::is_available();
    let job = Job {
        variant: variant.to_owned(),
        cases: cases.to_vec(),
        report: report.clone(),
        token,
        is_confined,
        axis,
    };
    let job = serde_json::to_vec(&job).map_err(|error| error.to_string())?;
    let mut command = PROGRAM.command(program);
    let Finished { printed, ended } = PROGRAM.run(command.current_dir(&run), &job, &run).map_err(cannot)?;

    let lines = fs::read_to_string(&report).unwrap_or_default();
    let token = format!("{token} ");
    let seen = lines.lines().filter_map(|line| line.strip_prefix(&token));
    let seen = seen.map_while(|line| serde_json::from_str(line).ok()).collect();
    Ok(Observed { seen, printed, ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_the_compiler_ends_there_is_something_to_say() {
        let error = r#"{"level":"error","message":"no such thing","spans":[{"is_primary":true,"file_name":"a.rs","byte_start":9,"byte_end":12,"line_start":3}]}"#;
        let linker = r#"{"level":"error","message":"linking with `cc` failed: signal: 9","spans":[]}"#;
        let gave = |ended, messages: &str| match Compiled::of(ended, messages) {
            Compiled::GaveUp(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(matches!(Compiled::of(Ended::Well, ""), Compiled::Well));
        // Diagnoses of earlier cases count.
        for ended in [Ended::Badly(1), Ended::Killed(6), Ended::OutOfTime] {
            assert!(
                matches!(Compiled::of(ended, &format!("warning\n{error}\n{{")), Compiled::Wrong(errors) if errors[0].line() == 3)
            );
        }
        assert_eq!(gave(Ended::Badly(1), linker), "ended with `linking with `cc` failed: signal: 9`");
        assert_eq!(
            gave(Ended::Badly(101), "thread 'rustc' panicked\nmore"),
            "ended with `thread 'rustc' panicked`"
        );
        assert_eq!(gave(Ended::Badly(1), ""), "ended with ``");
        assert_eq!(gave(Ended::Badly(1), &error[..50]), format!("ended with `{}`", &error[..50]));
        assert_eq!(
            gave(Ended::Killed(11), "error: rustc interrupted by SIGSEGV"),
            "crashed with signal 11 (SIGSEGV)"
        );
        assert!(
            gave(Ended::Killed(6), "LLVM ERROR: out of memory")
                .contains("more memory than its limit of 2048 MiB")
        );
        assert!(gave(Ended::OutOfTime, "").contains("20 seconds"));
    }
}
