//! From a student's file to a verdict: one call of the compiler, and one process.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::case::Case;
use crate::child::Job;
use crate::exercise::Exercise;
use crate::library::Library;
use crate::rules;
use crate::seen::{Form, Seen, with_axis};
use crate::verdict::{Diagnosis, Verdict};

/// A process that takes longer does not end. Runs take a few milliseconds each.
const LIMIT: Duration = Duration::from_secs(10);
/// The compiler may take longer on a busy computer. Without a limit a constant could keep it busy forever.
const COMPILER_LIMIT: Duration = Duration::from_secs(60);
/// So much of what the code prints is kept.
const PRINTED: u64 = 1 << 18;

/// A verdict, with what the code did in each case that it came to, and what it printed.
#[derive(Debug)]
pub struct Checked {
    pub verdict: Verdict,
    pub seen: Vec<Seen>,
    pub printed: String,
}

/// What comes of compiling.
#[derive(Debug)]
pub enum Compiled {
    /// A program.
    Well,
    /// Its errors, in the compiler's order.
    Wrong(Vec<CompileError>),
    DidNotEnd,
}

/// An error of the compiler.
#[derive(Debug)]
pub struct CompileError {
    /// The file as the compiler was given it.
    pub file: String,
    pub line: u32,
    pub message: String,
    /// As a terminal shows it.
    pub rendered: String,
}

/// Checks a student's file. `folder` is for what is made on the way. The error is not the student's.
pub fn check(
    library: &Library,
    exercise: &Exercise,
    file: &Path,
    cases: &[Case],
    folder: &Path,
) -> Result<Checked, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let not_yet = |diagnosis: Diagnosis| Checked {
        verdict: Verdict::Failed { diagnosis: Box::new(diagnosis), case: None },
        seen: Vec::new(),
        printed: String::new(),
    };
    if let Err(diagnosis) = rules::check(exercise.id, &text) {
        return Ok(not_yet(diagnosis));
    }
    // Others may check the same exercise at the same time.
    let program = folder.join(format!("{}-{}", exercise.module(), std::process::id()));
    let checked = thread::scope(|scope| {
        // Meanwhile.
        let right = scope.spawn(|| exercise.right(cases));
        let compiled = compile(library, exercise, &[("student", file)], &program)?;
        let right = right.join().map_err(|_| format!("{}: the solution panics", exercise.id))?;
        match compiled {
            Compiled::Well => run(&program, exercise, "student", cases, &right, folder),
            Compiled::Wrong(errors) => Ok(not_yet(compile_error(exercise, file, &errors))),
            Compiled::DidNotEnd => Ok(not_yet(
                Diagnosis::new("compile-did-not-end", "The compiler did not end.")
                    .seen(format!("no end after {} seconds", COMPILER_LIMIT.as_secs()))
                    .idea("Is there a constant, or a macro, that has no end?"),
            )),
        }
    });
    for made in [program.with_extension("main.rs"), program] {
        let _ = fs::remove_file(made);
    }
    checked
}

/// Compiles files, each of which solves the exercise in a way that has a name, into one program.
pub fn compile(
    library: &Library,
    exercise: &Exercise,
    files: &[(&str, &Path)],
    program: &Path,
) -> Result<Compiled, String> {
    let cannot = |error: io::Error| format!("{}: {error}", program.display());
    let module = exercise.module();
    let mut root = String::new();
    let mut variants = String::new();
    for (name, file) in files {
        let functions = exercise.functions.iter().map(|(function, _)| format!(", {name}::{function}"));
        let functions: String = functions.collect();
        root += &format!("#[path = {file:?}]\nmod {name};\n");
        variants +=
            &format!("    ({name:?}, {file:?}, |case| exercises::{module}::observe(case{functions})),\n",);
    }
    root +=
        &format!("fn main() -> std::process::ExitCode {{\n    exercises::child(&[\n{variants}    ])\n}}\n");
    let main = program.with_extension("main.rs");
    if let Some(folder) = program.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    fs::write(&main, root).map_err(cannot)?;
    let mut rustc = library.rustc(&main, program);
    let rustc = rustc.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let finished = rustc.and_then(|rustc| finish(rustc, b"", COMPILER_LIMIT));
    let Finished { printed: messages, ended } = finished.map_err(|error| format!("rustc: {error}"))?;
    match ended {
        Some(true) => Ok(Compiled::Well),
        None => Ok(Compiled::DidNotEnd),
        Some(false) => match messages.lines().filter_map(CompileError::read).collect::<Vec<_>>() {
            errors if errors.is_empty() => {
                Err(format!("rustc does not compile {}:\n{messages}", main.display()))
            }
            errors => Ok(Compiled::Wrong(errors)),
        },
    }
}

impl CompileError {
    /// Reads a line of the compiler's JSON, if it tells of an error in a file.
    fn read(line: &str) -> Option<CompileError> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let span = message["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (message["level"] == "error").then(|| CompileError {
            file: text(&span["file_name"]),
            line: span["line_start"].as_u64().unwrap_or(0) as u32,
            message: text(&message["message"]),
            rendered: text(&message["rendered"]),
        })
    }
}

/// What the compiler says first, in the words of the exercise.
fn compile_error(exercise: &Exercise, file: &Path, errors: &[CompileError]) -> Diagnosis {
    // What is forgotten at the end of a line is often told of the next one first.
    let in_file = errors.iter().filter(|error| Path::new(&error.file) == file);
    let first = in_file.min_by_key(|error| error.line).unwrap_or(&errors[0]);
    if Path::new(&first.file) != file {
        // The check cannot call the code.
        let signatures = exercise.functions.iter().map(|(_, signature)| format!("`{signature}`"));
        return Diagnosis::new("signature", "The check cannot call your code.")
            .seen(&first.message)
            .expected(signatures.collect::<Vec<_>>().join(", "))
            .idea(
                "Change what is in a function as you like, but keep its name, its arguments, what it returns, and `pub`.",
            );
    }
    let more = match errors.len() - 1 {
        0 => String::new(),
        1 => " (and one more error)".to_owned(),
        more => format!(" (and {more} more errors)"),
    };
    let message = first.message.lines().next().unwrap_or_default();
    let mut diagnosis = Diagnosis::new("compile", format!("It does not compile: {message}{more}."));
    diagnosis.line = Some(first.line);
    diagnosis.report = Some(first.rendered.clone());
    diagnosis
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
    // A single run is there to be looked at.
    let axis = (cases.len() == 1).then_some(0);
    let Observed { seen, printed, ended } = observed(program, exercise, variant, cases, axis, folder)?;
    let stopped_at = cases.get(seen.len()).cloned();
    // What is wrong in a run that ended comes before one that did not.
    let mut verdict = match (exercise.judge(cases, &seen, right), stopped_at) {
        (failed @ Verdict::Failed { .. }, _) => failed,
        (passed, None) => passed,
        (_, stopped_at) => {
            let diagnosis = match ended {
                None => Diagnosis::new("did-not-end", "The code did not end.")
                    .seen(format!("no end after {} seconds", LIMIT.as_secs()))
                    .expected("an end after a few milliseconds"),
                Some(_) => Diagnosis::new("died", "The program ended before the check did.")
                    .seen("no word of what it did")
                    .idea("Neither an exit nor a print decides: what your code asked of the machine does."),
            };
            Verdict::Failed { diagnosis: Box::new(diagnosis), case: stopped_at }
        }
    };
    // Two timelines are compared, so they have one axis: it was not known how long each would be.
    if let Verdict::Failed { diagnosis, case: Some(case) } = &mut verdict
        && diagnosis.timelines.is_some()
        && let Some(at) = cases.iter().position(|known| known == case)
    {
        let until = seen[at].time.max(right[at].time);
        let again = observed(program, exercise, variant, &cases[at..=at], Some(until), folder)?;
        let right = with_axis(Some((until, Form::Text)), || (exercise.observe)(case));
        if let [seen] = &again.seen[..] {
            diagnosis.timelines = Some([seen.timeline.clone(), right.timeline]);
        }
    }
    Ok(Checked { verdict, seen, printed })
}

/// What came of a process that ran a student's code.
struct Observed {
    /// What the code did in each case that it came to.
    seen: Vec<Seen>,
    printed: String,
    /// Whether the process ended well; nothing if it did not end.
    ended: Option<bool>,
}

fn observed(
    program: &Path,
    exercise: &Exercise,
    variant: &str,
    cases: &[Case],
    axis: Option<u64>,
    folder: &Path,
) -> Result<Observed, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let cannot = |error: io::Error| format!("{}: {error}", program.display());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let token = now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32);
    let report = folder.join(format!("{}-{}-{number}.seen", exercise.module(), std::process::id()));
    let _ = fs::remove_file(&report);
    let job = Job { variant: variant.to_owned(), cases: cases.to_vec(), report: report.clone(), token, axis };
    let job = serde_json::to_vec(&job).map_err(|error| error.to_string())?;
    let child = Command::new(program)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let Finished { printed, ended } = finish(child, &job, LIMIT).map_err(cannot)?;

    let lines = fs::read_to_string(&report).unwrap_or_default();
    let _ = fs::remove_file(&report);
    let token = format!("{token} ");
    let seen = lines.lines().filter_map(|line| line.strip_prefix(&token));
    let seen = seen.map_while(|line| serde_json::from_str(line).ok()).collect();
    Ok(Observed { seen, printed, ended })
}

struct Finished {
    printed: String,
    /// Whether it ended well; nothing if it did not end.
    ended: Option<bool>,
}

/// Gives a process its input, reads what it prints, and ends it after some time.
fn finish(mut child: Child, input: &[u8], limit: Duration) -> io::Result<Finished> {
    let start = Instant::now();
    if let Some(mut stdin) = child.stdin.take() {
        // It may be gone already.
        let _ = stdin.write_all(input);
    }
    let outputs = [
        child.stdout.take().map(|out| read(Box::new(out))),
        child.stderr.take().map(|out| read(Box::new(out))),
    ];
    let mut pause = Duration::from_millis(1);
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status.success());
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let printed = outputs.into_iter().flatten().map(|reader| reader.join().unwrap_or_default());
    Ok(Finished { printed: printed.collect(), ended })
}

/// Reads all of an output, so that the process is not held up, and keeps its beginning.
fn read(mut output: Box<dyn Read + Send>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = output.by_ref().take(PRINTED).read_to_end(&mut kept);
        let _ = io::copy(&mut output, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}
