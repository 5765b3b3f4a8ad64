//! What a student's code may not use: each is a way around the check, and none helps to solve an exercise.
//!
//! These rules, seeds that nobody has seen, and a verdict that is made in another process stop fifty cheats
//! (`tests/trust.rs`). What they do not stop:
//!
//! - a solution that somebody else wrote, or that `course solution` printed;
//! - work for show: code that asks for the very copies, launches and results of the solution, call by call, and means nothing
//!   by it;
//! - holes in the compiler, through which code that is safe to look at does what is not;
//! - using up the memory, the time or the disk of the computer that checks, within the ten seconds that a run has.
//!
//! So a grade is made on a computer where a student's code may run.

use crate::verdict::Diagnosis;

/// Names, and what is refused with them.
const REFUSED: [(&[&str], &str); 12] = [
    (&["unsafe", "extern", "asm", "global_asm", "no_mangle", "export_name", "link_section"], "unsafe code"),
    (
        &["Machine", "GpuSpec", "SimulatedGpus", "enter", "limit_operations", "bare_machine"],
        "another machine",
    ),
    (
        &["reset_peak_memory_stats", "reset_peak_memory_stats_device", "reset_accumulated_memory_stats"],
        "resetting what the check counts",
    ),
    (&["start_trace", "set_race_check", "RaceCheck"], "changing what the check sees"),
    (&["exercises", "todevice_gpu", "doc_hidden", "crate", "super"], "reaching out of the file"),
    // Not `process`, which is what a monitor lists.
    (&["Command", "exit", "abort"], "other processes, or the end of this one"),
    (&["fs", "File", "OpenOptions", "io", "stdin", "path"], "files"),
    // `net` itself is what many call a network of neurons.
    (
        &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "ToSocketAddrs",
        ],
        "the network",
    ),
    (&["env", "option_env"], "the environment"),
    (&["include", "include_str", "include_bytes"], "other files"),
    (
        &["thread", "thread_local", "static", "OnceLock", "LazyLock", "spawn"],
        "threads, or what outlives a call",
    ),
    (&["catch_unwind", "set_hook", "take_hook", "resume_unwind"], "catching panics"),
];

/// Refuses code that uses one of these names, or an attribute that changes how it is compiled.
pub fn check(text: &str) -> Result<(), Diagnosis> {
    let words = words(text);
    for (at, (word, line)) in words.iter().enumerate() {
        let refused = |what: &str| {
            Diagnosis::new("refused", format!("`{word}` is not allowed in an exercise: {what}."))
                .seen(format!("`{word}`"))
                .expected("code that needs neither")
                .idea(
                    "The check looks at what your code asks of the machine it is given, and at nothing else.",
                )
                .at(Some(*line))
        };
        for (names, what) in REFUSED {
            if names.contains(&word.as_str()) {
                return Err(refused(what));
            }
        }
        // A hidden module of the tensor crate, in a path.
        let before = at.checked_sub(1).map(|before| words[before].0.as_str());
        if word == "gpu" && before == Some("todevice") {
            return Err(refused("the GPU without its tensors"));
        }
    }
    Ok(())
}

/// The identifiers and keywords of Rust code with their lines, without comments, strings, characters and lifetimes.
fn words(text: &str) -> Vec<(String, u32)> {
    let bytes: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let (mut at, mut line) = (0, 1);
    let get = |at: usize| bytes.get(at).copied().unwrap_or('\0');
    while at < bytes.len() {
        match (get(at), get(at + 1)) {
            ('\n', _) => {
                line += 1;
                at += 1;
            }
            ('/', '/') => {
                while at < bytes.len() && get(at) != '\n' {
                    at += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                while at < bytes.len() {
                    match (get(at), get(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 1),
                        ('*', '/') => (depth, at) = (depth - 1, at + 1),
                        ('\n', _) => line += 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            ('"', _) => at = after_string(&bytes, at, 0, &mut line),
            // 'a' and '\n' are characters, 'a is a lifetime.
            ('\'', '\\') => {
                at += 3;
                while at < bytes.len() && get(at) != '\'' {
                    at += 1;
                }
                at += 1;
            }
            ('\'', _) if get(at + 2) == '\'' => at += 3,
            ('\'', _) => {
                at += 1;
                while is_part(get(at)) {
                    at += 1;
                }
            }
            (start, _) if is_part(start) => {
                let from = at;
                while is_part(get(at)) {
                    at += 1;
                }
                let word: String = bytes[from..at].iter().collect();
                let hashes = (at..).take_while(|&k| get(k) == '#').count();
                let is_raw_string = ["r", "br", "cr"].contains(&word.as_str()) && get(at + hashes) == '"';
                if is_raw_string {
                    at = after_string(
                        &bytes,
                        at + hashes,
                        if hashes == 0 { usize::MAX } else { hashes },
                        &mut line,
                    );
                } else if word == "r" && get(at) == '#' {
                    at += 1; // r#name is the name
                } else {
                    words.push((word, line));
                }
            }
            _ => at += 1,
        }
    }
    words
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Where a string ends that begins at `at`. It is raw if it has hashes, or `usize::MAX` for none.
fn after_string(text: &[char], mut at: usize, hashes: usize, line: &mut u32) -> usize {
    at += 1;
    let closing = if hashes == usize::MAX { 0 } else { hashes };
    while at < text.len() {
        match text[at] {
            '\n' => *line += 1,
            '\\' if hashes == 0 => {
                if text.get(at + 1) == Some(&'\n') {
                    *line += 1;
                }
                at += 1;
            }
            '"' if (1..=closing).all(|k| text.get(at + k) == Some(&'#')) => {
                return at + 1 + closing;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_code_and_nowhere_else() {
        for text in [
            "fn f() { unsafe { g() } }",
            "use std::{fs as files};",
            "// a\n/* b /* c */ */ let m: r#static = 1;",
            "r#\"a\"# ; std::process::exit(0)",
            "let c = '\"'; unsafe {}; let d = '\"';",
            "let c = '\\''; env!(\"X\")",
            "fn f<'a>(x: &'a str) { include_str!(\"a\") }",
            "todevice::gpu::events::X",
            "let x = r\"\\\"; unsafe {}",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        for text in [
            "// unsafe",
            "/* /* unsafe */ process */ fn f() {}",
            "println!(\"unsafe \\\" process\");",
            "let x = r#\"unsafe \" env\"#;",
            "fn f(x: &'static str) {}",
            "let c = 'e'; let unsafely = 1; let gpu = 2; let net = 3;",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        assert_eq!(check("\"\n\n\"; /*\n*/ unsafe").unwrap_err().line, Some(4));
    }
}
