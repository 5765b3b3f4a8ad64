//! A teacher's own exercise: one Rust file that declares `pub static EXERCISE`, like those in `labs/exercises/source`.
//!
//! The file is compiled to a library and to a host program, which describes the exercise, checks files with it, and
//! examines it. So its check runs like that of the course's own exercises: never in the process of a student's code.

mod examined;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::check::{Checked, check};
use crate::compile_error::CompileError;
use crate::exercise::{Exercise, Kind};
use crate::library::Library;
use crate::seen::Seen;
use crate::verdict::{Diagnosis, Verdict};

/// A request to a host, on its standard input.
#[derive(Serialize, Deserialize)]
enum Asked {
    Describe,
    Check { library: Library, file: PathBuf, cases: Vec<Case>, folder: PathBuf },
    Examine { library: Library, folder: PathBuf },
}

/// The description of an exercise.
#[derive(Serialize, Deserialize)]
pub struct Described {
    pub id: String,
    pub title: String,
    pub is_fix: bool,
    pub task: String,
    pub hints: Vec<String>,
    pub afterwards: String,
    pub source: String,
    pub functions: Vec<(String, String)>,
    pub solution: String,
    pub skeleton: String,
    pub gpus: Vec<String>,
    pub sizes: Vec<usize>,
}

/// A host's answer to a check.
#[derive(Serialize, Deserialize)]
struct Answer {
    passed: Option<usize>,
    diagnosis: Option<Diagnosis>,
    case: Option<Case>,
    seen: Vec<Seen>,
    printed: String,
}

/// The `main` of a host.
pub fn host(exercise: &'static Exercise) -> ExitCode {
    let mut text = String::new();
    let answer = io::stdin().read_to_string(&mut text).map_err(|error| error.to_string()).and_then(|_| {
        let asked: Asked = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let json = |answer: Result<String, serde_json::Error>| answer.map_err(|error| error.to_string());
        match asked {
            Asked::Describe => json(serde_json::to_string(&described(exercise)?)),
            Asked::Check { library, file, cases, folder } => {
                let checked = check(&library, exercise, &file, &cases, &folder)?;
                json(serde_json::to_string(&Answer::of(checked)))
            }
            Asked::Examine { library, folder } => {
                json(serde_json::to_string(&examined::defects(&library, exercise, &folder)?))
            }
        }
    });
    match answer {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn described(exercise: &Exercise) -> Result<Described, String> {
    if !exercise.has_solution() {
        return Err("its `source` has no solution between the lines `// BEGIN` and `// END`".to_owned());
    }
    let text = |text: &str| text.to_owned();
    Ok(Described {
        id: text(exercise.id),
        title: text(exercise.title),
        is_fix: exercise.kind == Kind::Fix,
        task: text(exercise.task),
        hints: exercise.hints.map(text).to_vec(),
        afterwards: text(exercise.afterwards),
        source: text(exercise.source),
        functions: exercise.functions.iter().map(|(name, like)| (text(name), text(like))).collect(),
        solution: exercise.solution(),
        skeleton: exercise.edited(exercise.skeleton)?,
        gpus: exercise.gpus.iter().map(|gpu| text(gpu)).collect(),
        sizes: exercise.sizes.to_vec(),
    })
}

impl Answer {
    fn of(Checked { verdict, seen, printed }: Checked) -> Answer {
        let (passed, diagnosis, case) = match verdict {
            Verdict::Passed { runs } => (Some(runs), None, None),
            Verdict::Failed { diagnosis, case } => (None, Some(*diagnosis), case),
        };
        Answer { passed, diagnosis, case, seen, printed }
    }

    fn checked(self) -> Result<Checked, String> {
        let verdict = match (self.passed, self.diagnosis) {
            (Some(runs), _) => Verdict::Passed { runs },
            (None, Some(diagnosis)) => Verdict::Failed { diagnosis: Box::new(diagnosis), case: self.case },
            _ => return Err("the check gives no verdict".to_owned()),
        };
        Ok(Checked { verdict, seen: self.seen, printed: self.printed })
    }
}

/// A compiled host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    program: PathBuf,
    library: PathBuf,
}

impl Host {
    /// Compiles a teacher's file. The error is the compiler's.
    pub fn compile(library: &Library, file: &Path, folder: &Path) -> Result<Host, String> {
        let cannot = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(cannot)?;
        let file = fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let host = Host { program: folder.join("host"), library: folder.join("libown.rlib") };
        let mut of_library = library.rustc_of("own", &file, &host.library);
        of_library.args(["--crate-type", "rlib"]);
        compiled(&mut of_library, &file)?;
        let main = folder.join("host.rs");
        let text = "fn main() -> std::process::ExitCode {\n    exercises::own::host(&own::EXERCISE)\n}\n";
        fs::write(&main, text).map_err(cannot)?;
        compiled(&mut host.of(library).rustc(&main, &host.program), &file)?;
        Ok(host)
    }

    /// The host in a folder, if one has been compiled there since the library was built. A library that is built again keeps
    /// its path, and the compiler refuses a host of the earlier one.
    pub fn known(folder: &Path, library: &Library) -> Option<Host> {
        let host = Host { program: folder.join("host"), library: folder.join("libown.rlib") };
        let built = |path: &Path| fs::metadata(path).ok()?.modified().ok();
        let is_newer = built(&host.library)? >= built(&library.exercises)?;
        (is_newer && host.program.is_file()).then_some(host)
    }

    /// The library with this exercise in it.
    fn of(&self, library: &Library) -> Library {
        library.with_own(&self.library)
    }

    pub fn describe(&self) -> Result<Described, String> {
        self.ask(&Asked::Describe)
    }

    pub(crate) fn check(
        &self,
        library: &Library,
        file: &Path,
        cases: &[Case],
        folder: &Path,
    ) -> Result<Checked, String> {
        let (file, folder) = (file.to_owned(), folder.to_owned());
        let asked = Asked::Check { library: self.of(library), file, cases: cases.to_vec(), folder };
        self.ask::<Answer>(&asked)?.checked()
    }

    /// The defects of the exercise, one line each.
    pub fn defects(&self, library: &Library, folder: &Path) -> Result<Vec<String>, String> {
        self.ask(&Asked::Examine { library: self.of(library), folder: folder.to_owned() })
    }

    fn ask<T: serde::de::DeserializeOwned>(&self, asked: &Asked) -> Result<T, String> {
        let cannot = |error: io::Error| format!("{}: {error}", self.program.display());
        let text = serde_json::to_vec(asked).map_err(|error| error.to_string())?;
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        if let Some(mut stdin) = child.stdin.take() {
            io::Write::write_all(&mut stdin, &text).map_err(cannot)?;
        }
        let output = child.wait_with_output().map_err(cannot)?;
        if !output.status.success() {
            let says = String::from_utf8_lossy(&output.stderr);
            let says = says.lines().find(|line| !line.trim().is_empty() && !line.starts_with("thread '"));
            return Err(format!("its check does not work: {}", says.unwrap_or("it ends without a message")));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

/// Runs the compiler. The error is its first one.
fn compiled(rustc: &mut Command, file: &Path) -> Result<(), String> {
    let output = rustc.stdin(Stdio::null()).output().map_err(|error| format!("rustc: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let first = messages.lines().filter_map(CompileError::read).next();
    let says = first.map_or_else(
        || messages.lines().next().unwrap_or_default().to_owned(),
        |error| error.rendered().to_owned(),
    );
    Err(format!("{} does not compile\n{}", file.display(), says.trim_end()))
}

/// A placeholder for code that only a host has.
fn of_the_host(_: &Case) -> Seen {
    Seen::nothing()
}

impl Described {
    /// The exercise for everything that shows it, for the life of this process. Its check runs in the host.
    pub fn exercise(self) -> &'static Exercise {
        fn text(text: String) -> &'static str {
            Box::leak(text.into_boxed_str())
        }
        fn list<T>(list: Vec<T>) -> &'static [T] {
            Box::leak(list.into_boxed_slice())
        }
        let mut hints = self.hints.into_iter().map(text);
        let skeleton = vec![(text(self.solution), text(self.skeleton))];
        let functions = self.functions.into_iter().map(|(name, like)| (text(name), text(like))).collect();
        Box::leak(Box::new(Exercise {
            id: text(self.id),
            title: text(self.title),
            kind: if self.is_fix { Kind::Fix } else { Kind::Write },
            task: text(self.task),
            hints: [(); 3].map(|()| hints.next().unwrap_or_default()),
            afterwards: text(self.afterwards),
            source: text(self.source),
            functions: list(functions),
            skeleton: list(skeleton),
            styles: &[],
            wrong: &[],
            places: &[],
            gpus: list(self.gpus.into_iter().map(text).collect()),
            sizes: list(self.sizes),
            observe: of_the_host,
            judge: |_, _, _| Ok(()),
        }))
    }
}

/// Hosts by the id of the exercise.
pub type Hosts = BTreeMap<String, Host>;
