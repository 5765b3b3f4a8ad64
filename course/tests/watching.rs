//! `course watch`: a verdict for each save, and nothing without the student's word.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::program::Folder;

/// Reads on until a line contains `what`.
fn until(lines: &Receiver<String>, what: &str) {
    let mut seen = String::new();
    loop {
        match lines.recv_timeout(Duration::from_secs(60)) {
            Ok(line) if line.contains(what) => return,
            Ok(line) => seen += &format!("{line}\n"),
            Err(_) => panic!("no `{what}` after:\n{seen}"),
        }
    }
}

fn watched(flags: &[&str], name: &str) {
    let folder = Folder::new(name);
    let solution = folder.run(&["solution", "02-batch"]).out;
    let mut child = folder
        .command(&[&["watch", "02-batch"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (send, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut input = child.stdin.take().unwrap();
    let mut say = |word: &str| writeln!(input, "{word}").unwrap();

    until(&lines, "not yet: The model is on the GPU");
    until(&lines, "q to leave");
    folder.write("02-batch.rs", "use todevice::prelude::*;\n\npub fn train(");
    until(&lines, "not yet: It does not compile");
    until(&lines, "q to leave");
    say("h");
    until(&lines, "Hint 1 of 3");
    say("what?");
    until(&lines, "`what?` is none of them");
    folder.write("02-batch.rs", &solution);
    until(&lines, "passed: right in all of");
    until(&lines, "n next");
    say("");
    until(&lines, "passed: right in all of");
    say("q");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_save_is_followed_by_a_verdict() {
    watched(&[], "watchers");
}

#[test]
fn so_it_is_where_the_system_tells_of_no_changes() {
    watched(&["--poll"], "pollers");
}
