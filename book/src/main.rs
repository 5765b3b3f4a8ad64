//! `cargo run --bin book -- build`, `-- serve`, and the preprocessor command for an external mdBook.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use book::builder::{Site, default_folder, pages};
use book::compile_progress::CompileProgress;
use book::folder::Folder;
use book::links;
use book::packed::{pack, pages_of_another_process};
use book::player;
use book::publish::Modules;
use book::room::Place;
use book::server::{BookServer, Limits};
use book::watch::Files;
use book::{Course, Mistake, checks, lines, preprocessor, publish};
use clap::{Parser, Subcommand};
use labs::stdio::{to_stderr, to_stdout};
use labs::{Stop, program, wrong};

/// Builds the book of To Device, and serves it
#[derive(Parser)]
#[command(name = "book", version, arg_required_else_help = false)]
struct Cli {
    /// Checkout of the course [default: the checkout this program was built from]
    #[arg(long, value_name = "DIR", global = true)]
    course: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the pages
    Build {
        /// Folder to write the pages to: empty, or with the pages of an earlier build [default: target/book]
        #[arg(long, value_name = "DIR")]
        dest_dir: Option<PathBuf>,
        /// Leave out the modules that run labs and check exercises in the pages
        #[arg(long)]
        no_player: bool,
    },
    /// Serve the book from this computer, and rebuild it when a file changes
    Serve {
        /// Port of the server; 0 chooses a free one
        #[arg(long, value_name = "N", default_value_t = 3000)]
        port: u16,
        /// Address of this computer, such as 192.168.1.20, to serve a room [default: serve this computer only]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<String>,
        /// Folder with built pages to serve
        #[arg(long, value_name = "DIR", conflicts_with = "no_player")]
        pages: Option<PathBuf>,
        /// Leave out the modules that run labs and check exercises in the pages
        #[arg(long)]
        no_player: bool,
    },
    /// Count the words of each chapter
    Words,
    /// Remove fixed entries from `book/known_mistakes`
    Prune,
    /// The pages for `serve`, on stdout; not for people
    #[command(hide = true)]
    Pages,
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
            "--course {}: this is not a checkout of the course: book/book.toml is missing",
            root.display()
        );
        return Err(usage_error(why));
    }
    match cli.command {
        Command::Build { dest_dir, no_player } => {
            build(&course, &dest_dir.unwrap_or_else(|| default_folder(&course())), !no_player)
        }
        Command::Serve { port, listen, pages, no_player } => {
            let place = match &listen {
                None => None,
                Some(listen) => Some(Place::named(listen, port).map_err(usage_error)?),
            };
            match pages {
                Some(folder) => serve_built(&folder, &server(place, port)?),
                None => serve(course, cli.course.as_deref(), &server(place, port)?, !no_player),
            }
        }
        Command::Pages => {
            let pages = pages(course(), Site::Local).map_err(failed)?;
            io::stdout().write_all(&pack(&pages)).map_err(failed)
        }
        Command::Words => words(&course()),
        Command::Prune => prune(&course()),
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
    let filled = Folder::open(folder).map_err(usage_error)?;
    let pages = pages(course(), Site::Configured).map_err(failed)?;
    let modules = match with_player {
        true => compiled(&course(), &mut |_| ()),
        false => Modules::none(LEFT_OUT),
    };
    let pages = finished(&course(), pages, modules)?;
    filled.check(&pages).map_err(usage_error)?;
    filled.fill(&pages).map_err(failed)?;
    to_stdout(&format!("{}\n", folder.join("index.html").display()));
    Ok(())
}

const LEFT_OUT: &str = "This book was built without the modules of its pages (--no-player).";

/// Compiles the modules of pages. A module that fails to compile is left out, and the pages say why. Calls `changed`
/// with the modules so far, and with the reasons why the others are missing.
fn compiled(course: &Course, changed: &mut dyn FnMut(&Modules)) -> Modules {
    let mut modules = Modules {
        labs: Err("The labs are being compiled. Run will be here.".to_owned()),
        exercises: Err("The check of the exercises is compiled after the labs.".to_owned()),
        assessment: Err("The final assessment is compiled after the exercises.".to_owned()),
        errors: Err("The explanations of errors are being compiled.".to_owned()),
        kernels: Err("The emulator of CUDA C++ is being compiled. Run will be here.".to_owned()),
    };
    changed(&modules);
    // The modules that compile in seconds come first.
    let mut progress = CompileProgress::new("the explanations of errors");
    let errors = player::errors(course, &mut |step| drop(progress.report(step)));
    progress.end();
    modules.errors = errors.map_err(|why| left_out("the pages will not explain errors", &why));
    changed(&modules);
    let mut progress = CompileProgress::new("the emulator of CUDA C++");
    let kernels = player::kernels(course, &mut |step| drop(progress.report(step)));
    progress.end();
    modules.kernels = kernels.map_err(|why| left_out("the pages will not run kernels", &why));
    changed(&modules);
    let mut progress = CompileProgress::new("the labs");
    let labs = player::labs(course, &mut |step| {
        let how_far = progress.report(step);
        modules.labs = Err(format!("The labs are being compiled: {how_far}. Run will be here."));
        changed(&modules);
    });
    progress.end();
    if let Err(why) = labs {
        // Then the exercises cannot be compiled either.
        let why = left_out("the pages will not run the labs", &why);
        let modules = Modules { errors: modules.errors, kernels: modules.kernels, ..Modules::none(&why) };
        changed(&modules);
        return modules;
    }
    modules.labs = labs;
    modules.exercises = Err("The check of the exercises is being compiled.".to_owned());
    changed(&modules);
    let mut progress = CompileProgress::new("the check of the exercises");
    let exercises = player::exercises(course, &mut |step| {
        let how_far = progress.report(step);
        modules.exercises = Err(format!("The check of the exercises is being compiled: {how_far}."));
        changed(&modules);
    });
    progress.end();
    modules.exercises = exercises.map_err(|why| left_out("the pages will not check the exercises", &why));
    modules.assessment = Err("The final assessment is being compiled.".to_owned());
    changed(&modules);
    let mut progress = CompileProgress::new("the final assessment");
    let assessment = player::assessment(course, &mut |step| drop(progress.report(step)));
    progress.end();
    modules.assessment =
        assessment.map_err(|why| left_out("the page of the final assessment will not run", &why));
    changed(&modules);
    modules
}

/// Prints why a module is missing, and returns the reason for the pages.
fn left_out(what: &str, why: &str) -> String {
    to_stderr(&format!("note: {what}. {why}\n"));
    format!("{what}. {why}").replacen("the", "The", 1)
}

fn finished(
    course: &Course,
    pages: BTreeMap<String, Vec<u8>>,
    modules: Modules,
) -> Result<BTreeMap<String, Vec<u8>>, Stop> {
    let keeper = fs::read_to_string(course.book().join("theme/offline.js"));
    let keeper = keeper.map_err(|error| failed(format!("book/theme/offline.js: {error}")))?;
    Ok(publish::finished(pages, modules, &keeper))
}

fn server(place: Option<Place>, port: u16) -> Result<BookServer, Stop> {
    let (name, is_open) =
        place.as_ref().map_or((None, false), |place| (Some(place.names[0].clone()), place.is_public()));
    let server = match place {
        None => BookServer::start(port, Limits::default()),
        Some(place) => BookServer::start_at(place, Limits::of_a_room()),
    };
    let server = server.map_err(usage_error)?;
    let address =
        name.map_or(server.address().to_string(), |name| format!("{name}:{}", server.address().port()));
    to_stdout(&format!("The book is at http://{address}; Ctrl-C stops the server.\n"));
    if is_open {
        to_stderr(
            "note: everybody who reaches this address can read the book. Over plain http, the browser stores no \
             pages for offline use, and a copy button shows the text instead.\n",
        );
    }
    Ok(server)
}

fn serve_built(folder: &Path, server: &BookServer) -> Result<(), Stop> {
    if !folder.join("index.html").is_file() {
        return Err(usage_error(format!(
            "--pages {}: this folder has no book: index.html is missing",
            folder.display()
        )));
    }
    server.show_permanently(links::files(folder).map_err(usage_error)?);
    server.serve();
    Ok(())
}

fn serve(
    course: impl Fn() -> Course,
    root: Option<&Path>,
    server: &BookServer,
    with_player: bool,
) -> Result<(), Stop> {
    thread::scope(|scope| {
        scope.spawn(|| server.serve());
        let mut modules = (!with_player).then(|| Modules::none(LEFT_OUT));
        loop {
            // Taken before the build, so that changes during it are not missed.
            let files = Files::of(&course());
            let began = Instant::now();
            to_stderr("Building the pages.\n");
            match pages_of_another_process(root) {
                Ok(pages) => {
                    to_stderr(&format!("They took {} s.\n", began.elapsed().as_secs()));
                    match &modules {
                        Some(modules) => show(server, &course(), pages, modules.clone())?,
                        // The first compilation takes minutes; readers can use the pages meanwhile.
                        None => modules = Some(show_and_compile(server, &course(), pages)?),
                    }
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

fn show(
    server: &BookServer,
    course: &Course,
    pages: BTreeMap<String, Vec<u8>>,
    modules: Modules,
) -> Result<(), Stop> {
    server.show_missing(modules.missing());
    server.show(finished(course, pages, modules)?);
    Ok(())
}

/// Serves the pages, compiles their modules, and serves those as soon as they are ready.
fn show_and_compile(
    server: &BookServer,
    course: &Course,
    pages: BTreeMap<String, Vec<u8>>,
) -> Result<Modules, Stop> {
    let mut result = Ok(());
    let mut shown = None;
    let modules = compiled(course, &mut |modules| {
        let there = [&modules.labs, &modules.exercises, &modules.errors, &modules.kernels].map(Result::is_ok);
        let before = shown.replace(there);
        let finish = || finished(course, pages.clone(), modules.clone());
        match before {
            None => match finish() {
                Ok(pages) => {
                    server.show(pages);
                    to_stdout("The pages are ready to read. Their modules are being compiled.\n");
                }
                Err(stop) => result = Err(stop),
            },
            // The pages first, because they already have the formerly missing text.
            Some(before) if before != there => match finish() {
                Ok(pages) => server.show_with_module(pages),
                Err(stop) => result = Err(stop),
            },
            Some(_) => {}
        }
        server.show_missing(modules.missing());
    });
    result.map(|()| modules)
}

fn words(course: &Course) -> Result<(), Stop> {
    to_stdout(&checks::word_report(course).map_err(stop_with)?);
    Ok(())
}

fn stop_with(mistakes: Vec<Mistake>) -> Stop {
    failed(lines(&mistakes).join("\n"))
}

fn prune(course: &Course) -> Result<(), Stop> {
    let changed = checks::prune(course).map_err(stop_with)?;
    let left = checks::lists(course).map_err(stop_with)?;
    to_stdout(&changed.iter().map(|file| format!("{file}: shorter, or gone\n")).collect::<String>());
    to_stdout(&format!(
        "{} to fix in book/known_mistakes; {} exceptions in book/digits.toml.\n",
        left.known, left.exceptions
    ));
    match left.unneeded.is_empty() {
        true => Ok(()),
        false => Err(stop_with(left.unneeded)),
    }
}

fn failed(what: impl ToString) -> Stop {
    Stop { message: format!("{}\n", what.to_string()), exit_code: 1 }
}

fn usage_error(what: String) -> Stop {
    wrong(what)
}
