//! The compiled form of this package, against which students' code is compiled without Cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::exercise::Exercise;
use crate::own::{Host, Hosts};
use crate::process::Limits;

/// Compiling a student's file takes half a second and 200 MiB, but longer on a busy computer.
pub(crate) const COMPILER: Limits = Limits { cpu: 20, wall: 150, memory: 2048, disk: 1024, printed: 1 << 23 };

/// The shell's exit code for a command that is not found.
pub(crate) const NOT_FOUND: i32 = 127;

/// The paths of the compiled libraries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Library {
    pub(crate) exercises: PathBuf,
    todevice: PathBuf,
    /// The folder of their dependencies.
    dependencies: PathBuf,
    /// The compiled exercise of a teacher, for its host: see `own`.
    #[serde(default)]
    own: Option<PathBuf>,
    /// The hosts of teachers' exercises.
    #[serde(skip)]
    hosts: Hosts,
}

/// A program and its build time: if both are unchanged, so are its dependencies.
#[derive(PartialEq, Serialize, Deserialize)]
struct Found {
    program: PathBuf,
    built: SystemTime,
    library: Library,
}

impl Library {
    /// Finds the libraries next to the running program, which was built with them. Caches the result in `folder`,
    /// because the search takes a second.
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
        // If the cache cannot be written, search again next time.
        let _ = fs::write(note, text);
        Ok(found.library)
    }

    /// Searches all build output. Each library may exist several times, for other features or from older sources: the
    /// newest build of this package is the current one, and only one `todevice` matches it.
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
            "the libraries for exercises are not in {}: `cargo build --bin course` builds them",
            dependencies.display(),
        ))
    }

    /// The same, with a teacher's own exercises.
    pub fn with_hosts(self, hosts: Hosts) -> Library {
        Library { hosts, ..self }
    }

    /// The host of a teacher's exercise.
    pub fn host(&self, id: &str) -> Option<&Host> {
        self.hosts.get(id)
    }

    /// The library for the host of an exercise.
    pub(crate) fn with_own(&self, own: &Path) -> Library {
        Library { own: Some(own.to_owned()), hosts: Hosts::new(), ..self.clone() }
    }

    /// The module path of an exercise, as seen from outside this package.
    pub(crate) fn module(&self, exercise: &Exercise) -> String {
        match self.own {
            Some(_) => "own".to_owned(),
            None => format!("exercises::{}", exercise.module()),
        }
    }

    /// The compiler command for a file with a `main`.
    pub fn rustc(&self, main: &Path, program: &Path) -> Command {
        self.rustc_of("check", main, program)
    }

    /// The same for a crate with this name.
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

/// The libraries with a name, newest first.
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
