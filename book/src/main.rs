//! `cargo run --bin book -- build`, `-- serve`, and the command that a person's own mdBook calls.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use book::builder::{Site, default_folder, pages};
use book::folder::Folder;
use book::player::{self, Player};
use book::server::{BookServer, Limits};
use book::watch::Files;
use book::{Course, Mistake, checks, lines, preprocessor, publish};
use clap::{Parser, Subcommand};
use labs::stdio::{to_stderr, to_stdout};
use labs::{Stop, program, wrong};

/// Makes the book of To Device
#[derive(Parser)]
#[command(name = "book", version, arg_required_else_help = false)]
struct Cli {
    /// Checkout of the course [default: the one that this program was built in]
    #[arg(long, value_name = "DIR", global = true)]
    course: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the pages
    Build {
        /// Folder for the pages, empty or with those of an earlier build [default: target/book]
        #[arg(long, value_name = "DIR")]
        dest_dir: Option<PathBuf>,
        /// Leave out the modules with which pages run labs and check exercises
        #[arg(long)]
        no_player: bool,
    },
    /// Show the book on this computer, and build it again whenever a file changes
    Serve {
        /// Port of the server; 0 is any that is free
        #[arg(long, value_name = "N", default_value_t = 3000)]
        port: u16,
        /// Leave out the modules with which pages run labs and check exercises
        #[arg(long)]
        no_player: bool,
    },
    /// Count the words of each chapter that a reader sees
    Words,
    /// Take out of `book/today` what is mended
    Today,
    /// What mdBook calls while it builds; not for people
    #[command(hide = true)]
    Preprocess {
        #[command(subcommand)]
        asked: Option<Asked>,
    },
}

#[derive(Subcommand)]
enum Asked {
    /// Whether there is something to do for a renderer
    Supports { renderer: String },
}

fn main() -> ExitCode {
    program(run)
}

fn run(cli: Cli) -> Result<(), Stop> {
    let course = || match &cli.course {
        Some(root) => Course::new(root),
        None => Course::here(),
    };
    if let Some(root) = &cli.course
        && !root.join("book/book.toml").is_file()
    {
        let why = format!(
            "--course {}: this is not a checkout of the course: it has no book/book.toml",
            root.display()
        );
        return Err(refused(why));
    }
    match cli.command {
        Command::Build { dest_dir, no_player } => {
            build(&course, &dest_dir.unwrap_or_else(|| default_folder(&course())), !no_player)
        }
        Command::Serve { port, no_player } => serve(course, port, !no_player),
        Command::Words => words(&course()),
        Command::Today => today(&course()),
        Command::Preprocess { asked: Some(Asked::Supports { renderer }) } => match renderer.as_str() {
            "html" => Ok(()),
            _ => Err(Stop { message: String::new(), exit_code: 1 }),
        },
        Command::Preprocess { asked: None } => {
            let folder = std::env::current_dir().map_err(failed)?;
            preprocessor::as_command(folder).map_err(|error| failed(format!("{error:#}")))
        }
    }
}

fn build(course: &impl Fn() -> Course, folder: &Path, with_player: bool) -> Result<(), Stop> {
    let filled = Folder::open(folder).map_err(refused)?;
    let pages = pages(course(), Site::Configured).map_err(failed)?;
    let pages = finished(&course(), pages, with_player.then(|| player(&course())).flatten())?;
    filled.check(&pages).map_err(refused)?;
    filled.fill(&pages).map_err(failed)?;
    to_stdout(&format!("{}\n", folder.join("index.html").display()));
    Ok(())
}

/// What pages run, if it can be compiled; if not, they are whole without it.
fn player(course: &Course) -> Option<Player> {
    player::build(course)
        .inspect_err(|why| to_stderr(&format!("note: the pages will not run the labs. {why}\n")))
        .ok()
}

fn finished(
    course: &Course,
    pages: BTreeMap<String, Vec<u8>>,
    player: Option<Player>,
) -> Result<BTreeMap<String, Vec<u8>>, Stop> {
    let keeper = fs::read_to_string(course.book().join("theme/offline.js"));
    let keeper = keeper.map_err(|error| failed(format!("book/theme/offline.js: {error}")))?;
    Ok(publish::finished(pages, player, &keeper))
}

fn serve(course: impl Fn() -> Course, port: u16, with_player: bool) -> Result<(), Stop> {
    let server = BookServer::start(port, Limits::default()).map_err(refused)?;
    to_stdout(&format!("The book is at http://{}; Ctrl-C ends this.\n", server.address()));
    thread::scope(|scope| {
        scope.spawn(|| server.serve());
        let mut compiled: Option<Option<Player>> = (!with_player).then_some(None);
        loop {
            // Taken before the build, so that a change during it is not missed.
            let files = Files::of(&course());
            match pages(course(), Site::Local) {
                Ok(pages) => {
                    // Compiling takes minutes the first time, and the pages can be read meanwhile.
                    if compiled.is_none() {
                        server.show(finished(&course(), pages.clone(), None)?);
                        to_stdout("Built. What the pages run is being compiled.\n");
                    }
                    let player = compiled.get_or_insert_with(|| player(&course())).clone();
                    server.show(finished(&course(), pages, player)?);
                    to_stdout("Built.\n");
                }
                Err(mistakes) => {
                    server.show_mistakes(&mistakes);
                    to_stderr(&format!("{mistakes}\n"));
                }
            }
            while files == Files::of(&course()) {
                thread::sleep(Duration::from_millis(500));
            }
        }
    })
}

fn words(course: &Course) -> Result<(), Stop> {
    to_stdout(&checks::words(course).map_err(told)?);
    Ok(())
}

fn told(mistakes: Vec<Mistake>) -> Stop {
    failed(lines(&mistakes).join("\n"))
}

fn today(course: &Course) -> Result<(), Stop> {
    let changed = checks::shrink(course).map_err(told)?;
    let left = checks::lists(course).map_err(told)?;
    to_stdout(&changed.iter().map(|file| format!("{file}: shorter, or gone\n")).collect::<String>());
    to_stdout(&format!(
        "{} to mend in book/today; {} exceptions in book/digits.toml.\n",
        left.let_pass, left.exceptions
    ));
    match left.without_need.is_empty() {
        true => Ok(()),
        false => Err(told(left.without_need)),
    }
}

/// What went wrong, a line for each thing.
fn failed(what: impl ToString) -> Stop {
    Stop { message: format!("{}\n", what.to_string()), exit_code: 1 }
}

/// What was asked for cannot be.
fn refused(what: String) -> Stop {
    wrong(what)
}
