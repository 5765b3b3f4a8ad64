//! `cargo course`: runs the exercises of To Device, and all other programs of the course.

mod assessment;
mod ending;
mod explain;
mod grade;
mod own;
mod pack;
mod piece;
mod provoke;
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

    /// Folder of your files [default: exercises]
    #[arg(long, value_name = "DIR", global = true)]
    work: Option<PathBuf>,

    /// Folder of a teacher's own exercises; for `grade` also ids and chapters to grade, such as 02,03
    #[arg(long = "exercises", value_name = "DIR", global = true)]
    from: Option<String>,
}

/// An exercise is meant by its id, by the end of it, or by the number of its chapter.
#[derive(Subcommand)]
enum Do {
    /// Name all exercises, with what you have passed
    List {
        /// Words to look for
        search: Option<String>,
        /// Only those that have not passed
        #[arg(long, conflicts_with = "done")]
        open: bool,
        /// Only those that have
        #[arg(long)]
        done: bool,
    },
    /// Say what is to be done, and write your file if there is none
    Show { exercise: Option<String> },
    /// Check exercises: the next one, if none is named
    Check {
        exercises: Vec<String>,
        /// All that you have begun
        #[arg(long, conflicts_with = "exercises")]
        all: bool,
    },
    /// Run your code once, and show what the machine saw of it
    Run {
        exercise: Option<String>,
        /// Machine to run on, such as sim:h200 or none [default: the first of the exercise's check]
        #[arg(long)]
        gpu: Option<GpuSpec>,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Size, of which the exercise says what it is the size of [default: the first of its check]
        #[arg(long, value_parser = labs::cli::count(1..=4096))]
        size: Option<usize>,
    },
    /// Check an exercise whenever you save its file
    Watch { exercise: Option<String> },
    /// Give the next hint, of three
    Hint {
        exercise: Option<String>,
        /// Which one
        #[arg(value_parser = clap::value_parser!(u64).range(1..=3))]
        number: Option<u64>,
    },
    /// Print a solution
    Solution { exercise: Option<String> },
    /// Write your file as it was at first; yours is kept under another name
    Reset { exercise: String },
    /// Run the lab of a chapter, with its predictions
    Read {
        chapter: String,
        /// Flags of the lab, such as --gpu sim:h200
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Ask the questions of a chapter
    Quiz { chapter: String },
    /// Explain an error: its code, such as GPU0001, or a message of PyTorch, also from standard input
    Explain {
        /// A code, a message in quotes, or nothing to paste one
        #[arg(allow_hyphen_values = true)]
        error: Vec<String>,
        /// Make an error of this kind, and show the code that does
        #[arg(long, value_name = "KIND", conflicts_with = "error")]
        run: Option<String>,
        /// Name all kinds of error
        #[arg(long, conflicts_with_all = ["error", "run"])]
        list: bool,
    },
    /// Say what this computer has for CUDA
    Doctor,
    /// Run every lab on a GPU and compare
    Verify {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Build the book and serve it at http://127.0.0.1:3000
    Book,
    /// Begin the final assessment, or show what its program asks of the GPU, function by function
    Final {
        /// One function, with its errors, races, memory, and timeline
        function: Option<String>,
        /// Seed of the program, from 0 to 999 [default: any]
        #[arg(long, allow_hyphen_values = true, value_parser = assessment::seed)]
        seed: Option<u64>,
    },
    /// Show how you did in the whole course, which bets you lost, and what to read next
    Score,
    /// Show the end of the course: your score, its twelve moments, and three ways to go on
    Ending {
        /// File for all of it as a page to print, with the moments as a picture
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Report what you have passed
    Report {
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Grade the exercises in a folder, with other seeds: those of a student, or those of a class
    ///
    /// A class is a folder with a folder for each student, or the files of a learning platform, such as
    /// `name_12345_04-accumulate (1).rs`.
    Grade {
        folder: PathBuf,
        /// Folder for a page, tables in every format, and a result.json for each student
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// Seed that the others are made of, to grade the same way again
        #[arg(long)]
        seed: Option<u64>,
        /// Seed that final.rs has to have, from 0 to 999 [default: the seed in its first line]
        #[arg(long, value_name = "SEED", allow_hyphen_values = true, value_parser = assessment::seed)]
        of_final: Option<u64>,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Say what is wrong with an exercise of your own: a file, or all files in a folder
    Examine { file: PathBuf },
    /// Put what a class needs into a folder, for a room without a network
    Pack {
        folder: PathBuf,
        /// Also what those need who have Rust: the workspace, the crates of others, and all of it compiled
        #[arg(long)]
        rust: bool,
        /// Leave out what runs labs and checks exercises in the pages
        #[arg(long, hide = true)]
        no_player: bool,
    },
    /// Print completions for a shell
    Completions { shell: Shell },
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
                    "the final assessment has machines and sizes of its own: leave out --gpu and --size",
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
