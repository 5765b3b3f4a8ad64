//! `cargo course`: runs the exercises of To Device, and all other programs of the course.

mod assessment;
mod ending;
mod explain;
mod grade;
mod own;
mod pack;
mod piece;
mod provoke;
mod python;
mod quiz;
mod report;
mod score;
mod show;
mod standing;
mod student;
mod watch;
mod workplace;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use labs::Stop;
use labs::stdio::to_stdout;
use todevice::GpuSpec;

use report::Format;
use workplace::{Workplace, failed, root, wrong};

/// To Device: GPU computing for deep learning, hands on
#[derive(Parser)]
#[command(name = "course", version)]
struct Flags {
    #[command(subcommand)]
    command: Option<Do>,

    /// Folder with your files [default: exercises]
    #[arg(long, value_name = "DIR", global = true)]
    work: Option<PathBuf>,

    /// Folder with a teacher's own exercises; for `grade`, also ids or chapters, such as 02,03, to grade only those
    #[arg(long = "exercises", value_name = "DIR", global = true)]
    from: Option<String>,
}

/// An exercise is meant by its id, by the end of it, or by the number of its chapter.
#[derive(Subcommand)]
enum Do {
    /// List all exercises, and mark the ones you passed
    List {
        /// Show only exercises with these words
        search: Option<String>,
        /// Show only exercises that you have not passed
        #[arg(long, conflicts_with = "done")]
        open: bool,
        /// Show only exercises that you have passed
        #[arg(long)]
        done: bool,
    },
    /// Show the task of an exercise, and write your file if it does not exist
    Show {
        /// The exercise: its id, the end of its id, or the number of its chapter [default: the next one]
        exercise: Option<String>,
    },
    /// Check exercises
    Check {
        /// The exercises: ids, ends of ids, or numbers of chapters [default: the next one]
        exercises: Vec<String>,
        /// Check every exercise that you have begun
        #[arg(long, conflicts_with = "exercises")]
        all: bool,
    },
    /// Run your code once, and show what the machine recorded
    Run {
        /// The exercise: its id, the end of its id, or the number of its chapter [default: the next one]
        exercise: Option<String>,
        /// Machine to run on, such as sim:h200 or none [default: the first machine of the exercise's check]
        #[arg(long)]
        gpu: Option<GpuSpec>,
        /// Seed of the input
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Size of the input; the exercise explains its unit [default: the first size of its check]
        #[arg(long, value_parser = labs::cli::count(1..=4096))]
        size: Option<usize>,
    },
    /// Check an exercise whenever you save its file
    Watch {
        /// The exercise: its id, the end of its id, or the number of its chapter [default: the next one]
        exercise: Option<String>,
    },
    /// Show the next of three hints
    Hint {
        /// The exercise: its id, the end of its id, or the number of its chapter [default: the next one]
        exercise: Option<String>,
        /// The number of the hint, from 1 to 3 [default: the next one]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=3))]
        number: Option<u64>,
    },
    /// Print a solution
    Solution {
        /// The exercise: its id, the end of its id, or the number of its chapter [default: the next one]
        exercise: Option<String>,
    },
    /// Restore the original file of an exercise, and keep yours under another name
    Reset {
        /// The exercise: its id, the end of its id, or the number of its chapter
        exercise: String,
    },
    /// Run the lab of a chapter, and ask for your predictions
    Read {
        /// The number of the chapter, such as 03
        chapter: String,
        /// Flags of the lab, such as --gpu sim:h200
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Ask the questions of a chapter
    Quiz {
        /// The number of the chapter, such as 03
        chapter: String,
    },
    /// Explain an error, given its code or its message
    Explain {
        /// A code, such as GPU0001, or a message in quotes [default: standard input]
        #[arg(allow_hyphen_values = true)]
        error: Vec<String>,
        /// Cause an error of this kind, and show the code that caused it
        #[arg(long, value_name = "KIND", conflicts_with = "error")]
        run: Option<String>,
        /// List all kinds of errors
        #[arg(long, conflicts_with_all = ["error", "run"])]
        list: bool,
    },
    /// Show which parts of CUDA this computer has
    Doctor,
    /// Run every lab on a GPU, and compare the output with the book
    Verify {
        /// Flags of `verify`, such as --gpu sim:h200
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Run a program of PyTorch on a simulated GPU, or a prompt without one
    Python {
        /// The program and its flags, such as train.py --gpu sim:h200 --trace timeline.json
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Build the book, and serve it at http://127.0.0.1:3000
    Book,
    /// Begin the final assessment, or show how its program uses the GPU, function by function
    Final {
        /// Show only this function, with its errors, races, memory, and timeline
        function: Option<String>,
        /// Seed of the program, from 0 to 999 [default: a random one]
        #[arg(long, allow_hyphen_values = true, value_parser = assessment::seed)]
        seed: Option<u64>,
    },
    /// Show your score in the whole course, the bets you lost, and what to read next
    Score,
    /// Show the end of the course: your score, its twelve moments, and three ways to go on
    Ending {
        /// File to write a printable page to, with the moments as a picture
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Report the exercises you passed
    Report {
        /// Format of the report
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Grade the exercises of a student or a class, with new seeds
    Grade {
        /// Folder with the files of one student, a folder for each student, or the files of a learning platform, such as
        /// `name_12345_04-accumulate (1).rs`
        folder: PathBuf,
        /// Folder to write a page, a table in each format, and a result.json for each student to
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// Seed that all other seeds derive from; repeats an earlier grading [default: a random one]
        #[arg(long)]
        seed: Option<u64>,
        /// Required seed of final.rs, from 0 to 999 [default: the seed in its first line]
        #[arg(long, value_name = "SEED", allow_hyphen_values = true, value_parser = assessment::seed)]
        of_final: Option<u64>,
        /// Format of the output
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Check the exercises that you wrote as a teacher, and list their defects
    Examine {
        /// File with an exercise, or folder with several
        file: PathBuf,
    },
    /// Pack everything that a class needs in a room without a network
    Pack {
        /// Folder to fill: a new one, or one with an earlier pack
        folder: PathBuf,
        /// Include the compiled workspace and its dependencies, for students with Rust
        #[arg(long)]
        rust: bool,
        /// Leave out the modules that run labs and check exercises in the pages
        #[arg(long, hide = true)]
        no_player: bool,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

fn main() -> ExitCode {
    labs::program(run)
}

fn run(Flags { command, work, from: list }: Flags) -> Result<(), Stop> {
    // These commands do not touch the student's files.
    match &command {
        Some(Do::Explain { list: true, .. }) => {
            explain::list();
            return Ok(());
        }
        Some(Do::Explain { run: Some(kind), .. }) => return explain::run(kind),
        Some(Do::Explain { error, .. }) => return explain::explain(error),
        Some(Do::Pack { folder, rust, no_player }) => return pack::pack(folder, *rust, *no_player),
        Some(Do::Doctor) => return cargo("doctor", &[""; 0]),
        Some(Do::Verify { flags }) => return cargo("verify", flags),
        Some(Do::Python { flags }) => return python::python(flags),
        Some(Do::Book) => return cargo("book", &["serve"]),
        Some(Do::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Flags::command(), "course", &mut text);
            to_stdout(&String::from_utf8_lossy(&text));
            return Ok(());
        }
        _ => {}
    }
    let only_reads = matches!(
        command,
        Some(Do::List { .. } | Do::Score | Do::Ending { .. } | Do::Report { .. } | Do::Solution { .. })
    );
    let mut place = if only_reads { Workplace::open_existing(work)? } else { Workplace::open(work)? };
    let (folders, chosen) = list.as_deref().map(own::read).unwrap_or_default();
    if let (Some(chosen), false) = (&chosen, matches!(command, Some(Do::Grade { .. }))) {
        return Err(wrong(format!("--exercises {chosen}: there is no such folder")));
    }
    own::load(&place, &folders)?;
    match command {
        None => student::start(&place)?,
        Some(Do::List { search, open, done }) => student::list(&place, search.as_deref(), open, done)?,
        Some(Do::Show { exercise }) => student::task(&place, place.named(exercise.as_deref())?)?,
        Some(Do::Check { exercises, all }) => student::check_all(&mut place, &exercises, all)?,
        Some(Do::Run { exercise: Some(name), gpu, size, .. }) if assessment::is_final(&name) => {
            if gpu.is_some() || size.is_some() {
                return Err(wrong(
                    "the final assessment chooses its machines and sizes: leave out --gpu and --size",
                ));
            }
            assessment::show(&mut place, None, None)?;
        }
        Some(Do::Run { exercise, gpu, seed, size }) => {
            let exercise = place.named(exercise.as_deref())?;
            student::run(&place, exercise, gpu, seed, size)?;
        }
        Some(Do::Watch { exercise: Some(name) }) if assessment::is_final(&name) => {
            watch::watch_final(&mut place)?;
        }
        Some(Do::Watch { exercise }) => {
            let exercise = place.named(exercise.as_deref())?;
            watch::watch(&mut place, exercise)?;
        }
        Some(Do::Hint { exercise, number }) => {
            let exercise = place.named(exercise.as_deref())?;
            student::hint(&mut place, exercise, number, false);
        }
        Some(Do::Solution { exercise }) => student::solution(place.named(exercise.as_deref())?),
        Some(Do::Reset { exercise: name }) if assessment::is_final(&name) => assessment::reset(&mut place)?,
        Some(Do::Reset { exercise }) => student::reset(&place, place.named(Some(&exercise))?)?,
        Some(Do::Read { chapter, flags }) => read(&place, &chapter, flags)?,
        Some(Do::Quiz { chapter }) => quiz::quiz(&mut place, &chapter)?,
        Some(Do::Score) => {
            let mut last: Option<piece::Piece> = None;
            score::score(&place, &mut |piece| {
                to_stdout(&piece.text(last.as_ref()));
                last = Some(piece);
            })?;
        }
        Some(Do::Ending { page }) => ending::ending(&place, page.as_deref())?,
        Some(Do::Report { format }) => report::report(&place, format)?,
        Some(Do::Grade { folder, output, seed, of_final, format }) => {
            let asked = grade::Asked { folder, exercises: chosen, output, seed, of_final, format };
            grade::grade(&place, &asked)?;
        }
        Some(Do::Examine { file }) => own::examine(&place, &file)?,
        Some(Do::Final { function, seed }) => assessment::show(&mut place, function.as_deref(), seed)?,
        Some(
            Do::Explain { .. }
            | Do::Doctor
            | Do::Verify { .. }
            | Do::Python { .. }
            | Do::Book
            | Do::Pack { .. }
            | Do::Completions { .. },
        ) => {}
    }
    Ok(())
}

/// Runs the lab of a chapter with its questions, and stores the answers.
fn read(place: &Workplace, chapter: &str, flags: Vec<String>) -> Result<(), Stop> {
    let lab = chapter.parse::<u32>().ok().map(|number| format!("lab-{number:02}"));
    let lab = lab.filter(|name| labs::Listed::named(name).is_some());
    let lab = lab.ok_or_else(|| wrong(format!("`{chapter}` is not a chapter: type a number such as 03")))?;
    let asked = ["--ask".into(), "--progress".into(), place.progress().into_os_string()];
    let flags = flags.into_iter().map(OsString::from);
    cargo(&lab, &asked.into_iter().chain(flags).collect::<Vec<_>>())
}

fn cargo(program: &str, flags: &[impl AsRef<OsStr>]) -> Result<(), Stop> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        // Not `--quiet`: Cargo shows the progress of compiling.
        .args(["run", "--bin", program, "--"])
        .args(flags)
        .current_dir(root())
        .status()
        .map_err(|error| failed(format!("cargo: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Stop { message: String::new(), exit_code: status.code().unwrap_or(1) as u8 }),
    }
}
