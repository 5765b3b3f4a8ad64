//! `cargo run --bin book -- build`, `-- serve`, and the command that a person's own mdBook calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use book::builder::{Site, build, default_folder};
use book::server::BookServer;
use book::watch::Files;
use book::{Course, links, preprocessor};
use clap::{Parser, Subcommand};

/// Makes the book of To Device
#[derive(Parser)]
#[command(name = "book", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the pages
    Build {
        /// Folder for the pages; it is emptied first [default: target/book]
        #[arg(long, value_name = "DIR")]
        dest_dir: Option<PathBuf>,
    },
    /// Show the book on this computer, and build it again whenever a file changes
    Serve {
        /// Port of the server; 0 is any that is free
        #[arg(long, value_name = "N", default_value_t = 3000)]
        port: u16,
    },
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
    let done = match Cli::parse().command {
        Command::Build { dest_dir } => {
            let folder = dest_dir.unwrap_or_else(|| default_folder(&Course::here()));
            build(Course::here(), &folder, Site::Configured)
                .map(|()| println!("{}", folder.join("index.html").display()))
        }
        Command::Serve { port } => serve(port),
        Command::Preprocess { asked: Some(Asked::Supports { renderer }) } => {
            return if renderer == "html" { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Command::Preprocess { asked: None } => std::env::current_dir()
            .map_err(|error| error.to_string())
            .and_then(|folder| preprocessor::as_command(folder).map_err(|error| format!("{error:#}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn serve(port: u16) -> Result<(), String> {
    let server = BookServer::start(port)?;
    println!("The book is at http://{}; Ctrl-C ends this.", server.address());
    thread::scope(|scope| {
        // Several, so that a browser that reads slowly holds nobody up.
        for _ in 0..4 {
            scope.spawn(|| server.serve());
        }
        loop {
            // Taken before the build, so that a change during it is not missed.
            let files = Files::of(&Course::here());
            match built() {
                Ok(pages) => {
                    server.show(pages);
                    println!("Built.");
                }
                Err(mistakes) => {
                    server.show_mistakes(&mistakes);
                    eprintln!("{mistakes}");
                }
            }
            while files == Files::of(&Course::here()) {
                thread::sleep(Duration::from_millis(500));
            }
        }
    })
}

/// The pages, by way of a folder that is gone afterwards.
fn built() -> Result<BTreeMap<String, Vec<u8>>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    build(Course::here(), folder.path(), Site::Local)?;
    links::files(folder.path())
}
