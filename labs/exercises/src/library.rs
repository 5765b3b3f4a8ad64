//! This package as it was compiled: what a student's code is compiled against, without Cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::exercise::Exercise;
use crate::own::{Host, Hosts};
use crate::process::Limits;

/// A student's file takes half a second and 200 MiB. It may take longer on a busy computer.
pub(crate) const COMPILER: Limits = Limits { cpu: 20, wall: 150, memory: 2048, disk: 1024, printed: 1 << 23 };

/// The exit code of a shell that does not find the program.
pub(crate) const NOT_FOUND: i32 = 127;

/// Where the compiled libraries are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Library {
    exercises: PathBuf,
    todevice: PathBuf,
    /// The folder of those that they need.
    dependencies: PathBuf,
    /// A teacher's exercise, compiled, for the host of it: see `own`.
    #[serde(default)]
    own: Option<PathBuf>,
    /// The hosts of a teacher's exercises.
    #[serde(skip)]
    hosts: Hosts,
}

/// A program, and when it was built: while it stays the same, so does what it was built with.
#[derive(PartialEq, Serialize, Deserialize)]
struct Found {
    program: PathBuf,
    built: SystemTime,
    library: Library,
}

impl Library {
    /// The libraries beside the program that runs, which was built with them. They are noted in `folder`, since to look for
    /// them takes a second.
    pub fn find(folder: &Path) -> Result<Library, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let built = fs::metadata(&program).and_then(|metadata| metadata.modified());
        let built = built.map_err(|error| format!("{}: {error}", program.display()))?;
        let note = folder.join("library.json");
        let noted = fs::read_to_string(&note).ok().and_then(|text| serde_json::from_str::<Found>(&text).ok());
        if let Some(noted) = noted
            && noted.program == program
            && noted.built == built
            && noted.library.exercises.exists()
            && noted.library.todevice.exists()
        {
            return Ok(noted.library);
        }
        let library = Library::beside(&program, folder)?;
        let found = Found { program, built, library };
        let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
        // If it cannot be noted, it is looked for again.
        let _ = fs::write(note, text);
        Ok(found.library)
    }

    /// Looks through all that was ever built there. There may be several of each, for other features or from older sources: the
    /// newest of this package is of today's, and only one `todevice` is the one that it was built with.
    fn beside(program: &Path, folder: &Path) -> Result<Library, String> {
        let beside = program.parent().unwrap_or(Path::new("."));
        let dependencies = match beside.ends_with("deps") {
            true => beside.to_owned(),
            false => beside.join("deps"),
        };
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let probe = folder.join("probe.rs");
        let text = "pub fn same(error: todevice::Error) -> exercises::todevice::Error {\n    error\n}\n";
        fs::write(&probe, text).map_err(|error| format!("{}: {error}", probe.display()))?;
        for exercises in newest(&dependencies, "libexercises-") {
            for todevice in newest(&dependencies, "libtodevice-") {
                let library = Library {
                    exercises: exercises.clone(),
                    todevice,
                    dependencies: dependencies.clone(),
                    own: None,
                    hosts: Hosts::new(),
                };
                let mut rustc = library.rustc(&probe, &folder.join("libprobe.rmeta"));
                let output =
                    rustc.args(["--crate-type", "lib", "--emit", "metadata"]).stdin(Stdio::null()).output();
                match output {
                    Ok(output) if output.status.success() => return Ok(library),
                    Ok(output) if output.status.code() == Some(NOT_FOUND) => {
                        return Err(format!("rustc: {}", String::from_utf8_lossy(&output.stderr).trim()));
                    }
                    Ok(_) => {}
                    Err(error) => return Err(format!("rustc: {error}")),
                }
            }
        }
        Err(format!(
            "the libraries that exercises are compiled against are not in {}: `cargo build --bin course` builds them",
            dependencies.display(),
        ))
    }

    /// The same, with exercises of a teacher's own.
    pub fn with_hosts(self, hosts: Hosts) -> Library {
        Library { hosts, ..self }
    }

    /// The host of a teacher's exercise.
    pub fn host(&self, id: &str) -> Option<&Host> {
        self.hosts.get(id)
    }

    /// For the host of an exercise: the library of that.
    pub(crate) fn with_own(&self, own: &Path) -> Library {
        Library { own: Some(own.to_owned()), hosts: Hosts::new(), ..self.clone() }
    }

    /// The module of an exercise, as code outside this package names it.
    pub(crate) fn module(&self, exercise: &Exercise) -> String {
        match self.own {
            Some(_) => "own".to_owned(),
            None => format!("exercises::{}", exercise.module()),
        }
    }

    /// The compiler's command line for a file with a `main`.
    pub fn rustc(&self, main: &Path, program: &Path) -> Command {
        self.rustc_of("check", main, program)
    }

    /// The same for a crate of this name.
    pub(crate) fn rustc_of(&self, name: &str, main: &Path, program: &Path) -> Command {
        let extern_ = |name: &str, path: &Path| {
            let mut argument = std::ffi::OsString::from(format!("{name}="));
            argument.push(path);
            argument
        };
        let mut dependencies = std::ffi::OsString::from("dependency=");
        dependencies.push(&self.dependencies);
        let mut rustc = COMPILER.command(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .arg(main)
            .args(["--edition", "2024", "--crate-name", name, "--error-format", "json"])
            .args(["--cap-lints", "allow", "-C", "debuginfo=0", "-C", "strip=debuginfo"])
            .arg("--extern")
            .arg(extern_("exercises", &self.exercises))
            .arg("--extern")
            .arg(extern_("todevice", &self.todevice))
            .args(self.own.iter().flat_map(|own| ["--extern".into(), extern_("own", own)]))
            .arg("-L")
            .arg(dependencies)
            .arg("-o")
            .arg(program);
        rustc
    }
}

/// The libraries of a name, the newest first.
fn newest(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let file = path.file_name()?.to_str()?;
            let is_it = file.starts_with(name) && file.ends_with(".rlib");
            is_it.then(|| Some((fs::metadata(&path).ok()?.modified().ok()?, path.clone())))?
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}
