//! Runs the program, in a folder that is empty at first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A student's folder. Its name has a space, as those of many have.
pub struct Folder(pub PathBuf);

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Done {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Folder {
    pub fn new(name: &str) -> Folder {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("course of {name} {}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(fs::canonicalize(folder).unwrap())
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
        command.arg("--work").arg(&self.0).args(words).stdin(Stdio::null()).env("NO_COLOR", "1");
        command
    }

    pub fn run(&self, words: &[&str]) -> Done {
        done(&mut self.command(words))
    }

    /// Runs it with something to read.
    pub fn tell(&self, words: &[&str], input: &str) -> Done {
        let file = self.0.join("input.txt");
        fs::write(&file, input).unwrap();
        done(self.command(words).stdin(fs::File::open(file).unwrap()))
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    /// The names of what is there, hidden files too.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What was printed, without the name of the folder.
    pub fn plain(&self, text: &str) -> String {
        text.replace(&*self.0.display().to_string(), "FOLDER")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
}
