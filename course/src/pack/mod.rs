//! `cargo course pack DIR`: a folder with everything that thirty laptops need in a room without a network.
//!
//! It contains the book with its modules, and the program that serves it: reading, running labs, and doing exercises in
//! the page need no Rust installation. On request, it also contains a compiled workspace with the external crates, for
//! students with Rust. Creating the pack needs a network once; using it needs none.

mod workspace;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use labs::Stop;
use labs::stdio::{to_stderr, to_stdout};

use crate::workplace::{failed, root, wrong};

/// The file that marks a folder as a pack, which may be overwritten.
const MARK: &str = ".to-device-pack";
const BOOK: &str = "book";
const WORKSPACE: &str = "to-device";

/// Sizes of the parts in MB. A test compares them with a real pack.
const OF_BOOK: u64 = 30;
const OF_SERVER: u64 = 45;
const OF_SOURCES: u64 = 10;
const OF_CRATES: u64 = 320;
const OF_TARGET: u64 = 860;

pub fn pack(folder: &Path, with_rust: bool, no_player: bool) -> Result<(), Stop> {
    let folder =
        &std::path::absolute(folder).map_err(|error| wrong(format!("{}: {error}", folder.display())))?;
    if root().starts_with(folder) {
        return Err(wrong(format!(
            "{}: this folder contains the checkout: choose another folder",
            folder.display()
        )));
    }
    let is_free = match fs::read_dir(folder) {
        Ok(mut entries) => folder.join(MARK).is_file() || entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_free {
        return Err(wrong(format!(
            "{}: this folder has files that are not part of a pack: choose a new or empty folder",
            folder.display()
        )));
    }
    to_stdout(&sizes(with_rust));
    let cannot = |what: &Path, error: io::Error| failed(format!("{}: {error}", what.display()));
    fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
    fs::write(folder.join(MARK), "A pack of To Device.\n").map_err(|error| cannot(folder, error))?;

    step("The book, and the modules of its pages");
    let mut build = cargo();
    build.args(["run", "--bin", "book", "--", "build", "--dest-dir"]).arg(folder.join(BOOK));
    if no_player {
        build.arg("--no-player");
    }
    run(build.current_dir(root()))?;
    let server = server(folder)?;
    if with_rust {
        step("The workspace, with its dependencies");
        let workspace = folder.join(WORKSPACE);
        workspace::copy(&workspace)?;
        workspace::vendor(&workspace)?;
        step("The workspace, compiled");
        workspace::compile(&workspace)?;
    }
    let readme = folder.join("READ-ME.txt");
    fs::write(&readme, readme_text(&server, with_rust)).map_err(|error| cannot(&readme, error))?;
    let mut parts = vec![
        (BOOK.to_owned(), bytes_in(&folder.join(BOOK))),
        (server.clone(), bytes_in(&folder.join(&server))),
    ];
    if with_rust {
        let workspace = bytes_in(&folder.join(WORKSPACE));
        parts.push((WORKSPACE.to_owned(), workspace));
    }
    let mut output = "\nThe pack is complete:\n".to_owned();
    for (part, bytes) in &parts {
        output +=
            &format!("  {:>6} MB  {}\n", bytes.div_ceil(1_000_000), crate::show::name(&folder.join(part)));
    }
    to_stdout(&format!(
        "{output}Copy the folder to each laptop. Its READ-ME.txt explains the first steps.\n"
    ));
    Ok(())
}

/// Prints the sizes before anything is created.
fn sizes(with_rust: bool) -> String {
    let mut parts = vec![
        (OF_BOOK, "the book, with the labs and exercises that run in its pages"),
        (OF_SERVER, "the program that serves it, for computers like this one"),
    ];
    if with_rust {
        parts.push((OF_SOURCES, "the sources of the course, without its tests"));
        parts.push((OF_CRATES, "the dependencies"));
        parts.push((OF_TARGET, "all of it compiled, for computers like this one with the same Rust"));
    }
    let mut output = "The pack will take about\n".to_owned();
    for (size, what) in &parts {
        output += &format!("  {size:>6} MB  {what}\n");
    }
    let sum: u64 = parts.iter().map(|part| part.0).sum();
    output += &format!("  {sum:>6} MB  in all\n");
    let more = if with_rust {
        "It takes a few minutes, and a network to download missing crates.\n"
    } else {
        "It takes a few minutes, and a network to download missing crates. With --rust it also includes the \
         workspace, for work in a terminal.\n"
    };
    output + &crate::show::text(more, "")
}

fn step(what: &str) {
    to_stderr(&format!("\n== {what}\n"));
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command. Its output goes to the terminal.
fn run(command: &mut Command) -> Result<(), Stop> {
    let status = command.status().map_err(|error| failed(format!("cargo: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed("the pack is incomplete: the command above failed")),
    }
}

/// Copies the server program to the pack, without debug information, and returns its name.
fn server(folder: &Path) -> Result<String, Stop> {
    let name = format!("serve{}", std::env::consts::EXE_SUFFIX);
    let program = std::env::current_exe()
        .map_err(failed)?
        .with_file_name(format!("book{}", std::env::consts::EXE_SUFFIX));
    let to = folder.join(&name);
    fs::copy(&program, &to).map_err(|error| failed(format!("{}: {error}", program.display())))?;
    // Without `strip`, the program is larger.
    let _ = Command::new("strip").arg(&to).status();
    Ok(name)
}

fn readme_text(server: &str, with_rust: bool) -> String {
    let dot = if cfg!(windows) { "" } else { "./" };
    let mut output = format!(
        "To Device: GPU computing for deep learning, hands on, in Rust\n\n\
         This folder needs no network.\n\n\
         To read, run the labs, and do the exercises in the browser: in this folder, run\n\n    {dot}{server} serve --pages {BOOK}\n\n\
         and open http://127.0.0.1:3000. You need no Rust. The program is for {os} on {arch}. On another\n\
         computer, use any file server, such as\n\n    python3 -m http.server 3000 --bind 127.0.0.1 --directory {BOOK}\n\n\
         To serve a room from one computer\n\n    {dot}{server} serve --pages {BOOK} --listen 192.168.1.20\n\n\
         with the address of that computer. Everybody opens http://192.168.1.20:3000. At such an address, the browser stores no pages\n\
         for offline use, and a copy button shows the text instead.\n",
        os = std::env::consts::OS,
        arch = std::env::consts::ARCH,
    );
    if with_rust {
        output += &format!(
            "\nTo work in a terminal, with Rust\n\n    cd {WORKSPACE}\n    cargo course\n\n\
             {WORKSPACE} has the labs, the exercises, and the dependencies, all compiled by {}.\n\
             The first command compiles the course's program again, which takes a few seconds.\n\
             Another version of Rust compiles everything again, which takes a few minutes and no network.\n\
             Keep the times of the files when you copy the folder, as cp -a, rsync -a, and archives do. If they are lost,\n\
             `find target -exec touch {{}} +` in {WORKSPACE} avoids another compilation.\n",
            rustc_version()
        );
    }
    output
}

fn rustc_version() -> String {
    let output =
        Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output();
    output.map_or("rustc".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The size in bytes of a file, or of all files in a folder.
fn bytes_in(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.iter().map(|entry| bytes_in(entry)).sum()
}
