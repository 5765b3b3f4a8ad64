//! `course watch`: a verdict for each save, and nothing without the student's word.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::program::Folder;

/// `course watch`, the lines that it prints, and what the student types.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    input: ChildStdin,
}

impl Watch {
    fn start(folder: &Folder) -> Watch {
        Watch::of(folder, "02-batch")
    }

    fn of(folder: &Folder, exercise: &str) -> Watch {
        let mut watch = folder.command(&["watch", exercise]);
        let mut child = watch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let input = child.stdin.take().unwrap();
        Watch { child, lines, input }
    }

    /// Reads on until a line contains `what`.
    fn until(&self, what: &str) {
        let mut seen = String::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line.contains(what) => return,
                Ok(line) => seen += &format!("{line}\n"),
                Err(_) => panic!("no `{what}` after:\n{seen}"),
            }
        }
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").unwrap();
    }

    fn end(mut self) {
        self.say("q");
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_save_is_followed_by_a_verdict() {
    let folder = Folder::new("watchers");
    let solution = folder.run(&["solution", "02-batch"]).out;
    let mut watch = Watch::start(&folder);
    watch.until("not yet: The model is on the GPU");
    watch.until("q to leave");
    folder.write("02-batch.rs", "use todevice::prelude::*;\n\npub fn train(");
    watch.until("not yet: It does not compile");
    watch.until("q to leave");
    watch.say("h");
    watch.until("Hint 1 of 3");
    watch.say("what\u{1b}[31m?");
    watch.until(r"`what\u{1b}[31m?` is not a command here");
    folder.write("02-batch.rs", &solution);
    watch.until("passed: right in all");
    watch.until("n next");
    watch.say("");
    watch.until("passed: right in all");
    watch.end();
}

/// Editors move the old file away and then write the new one. What lies between is no reason to begin anew.
#[test]
fn a_file_that_is_being_saved_is_not_written() {
    let folder = Folder::new("movers");
    let file = folder.0.join("02-batch.rs");
    folder.write("02-batch.rs", "fn mine(");
    let mut watch = Watch::start(&folder);
    watch.until("q to leave");
    fs::rename(&file, folder.0.join("02-batch.rs~")).unwrap();
    watch.until("is gone. Save it again, or press Enter");
    assert!(!file.exists());
    folder.write("02-batch.rs", "fn mine_too(");
    watch.until("not yet: It does not compile");
    assert_eq!(folder.read("02-batch.rs"), "fn mine_too(");
    // A file that cannot be read is told of, and watched on.
    watch.until("q to leave");
    folder.write("02-batch.rs", "f\0n\0");
    watch.until("saved as UTF-16");
    fs::remove_file(&file).unwrap();
    watch.until("is gone");
    watch.say("");
    watch.until("not yet: The model is on the GPU");
    watch.end();
}

#[cfg(unix)]
#[test]
fn a_save_through_a_link_is_seen() {
    let (folder, elsewhere) = (Folder::new("linkers"), Folder::new("elsewhere"));
    elsewhere.write("mine.rs", "fn mine(");
    std::os::unix::fs::symlink(elsewhere.0.join("mine.rs"), folder.0.join("02-batch.rs")).unwrap();
    let watch = Watch::start(&folder);
    watch.until("not yet: It does not compile");
    watch.until("q to leave");
    elsewhere.write("mine.rs", &folder.run(&["solution", "02-batch"]).out);
    watch.until("passed: right in all");
    watch.end();
}

#[test]
fn the_final_assessment_is_checked_whenever_it_is_saved() {
    let folder = Folder::new("the assessed watchers");
    let watch = Watch::of(&folder, "final");
    watch.until("Written: ");
    watch.until("not yet: 0 of 100 points");
    watch.until("q to leave");
    let text = folder.read("final.rs");
    folder.write("final.rs", &format!("{}\nfn mine(", text.lines().next().unwrap()));
    watch.until("not yet: It does not compile");
    watch.until("q to leave");
    watch.end();
}
