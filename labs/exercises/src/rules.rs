//! What a student's code may not use: each is a way around the check, and none helps to solve an exercise.
//!
//! These rules, seeds that nobody has seen, and a verdict that is made in another process stop fifty cheats
//! (`tests/trust.rs`). What they do not stop:
//!
//! - a solution that somebody else wrote, or that `cargo course solution` printed;
//! - work for show: code that asks for the very copies, launches and results of the solution, call by call, and means nothing
//!   by it;
//! - holes in the compiler, through which code that is safe to look at does what is not;
//! - using up the memory, the time or the disk of the computer that checks, within the ten seconds that a run has.
//!
//! So a grade is made on a computer where a student's code may run.

use crate::verdict::Diagnosis;

/// Names that are refused wherever they stand, and why.
const NAMES: [(&[&str], &str); 11] = [
    (&["unsafe", "extern", "asm", "global_asm", "no_mangle", "export_name", "link_section"], "unsafe code"),
    (&["Machine", "GpuSpec", "SimulatedGpus", "limit_operations", "bare_machine"], "another machine"),
    (
        &[
            "reset_peak_memory_stats",
            "reset_peak_memory_stats_device",
            "reset_accumulated_memory_stats",
            "reset_max_memory_allocated",
            "reset_max_memory_cached",
        ],
        "resetting what the check counts",
    ),
    (&["start_trace", "set_race_check", "RaceCheck"], "changing what the check sees"),
    (&["exercises", "todevice_gpu"], "reaching into the check"),
    (&["File", "OpenOptions", "stdin", "include", "include_str", "include_bytes"], "files"),
    (
        &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "ToSocketAddrs",
            "to_socket_addrs",
        ],
        "the network",
    ),
    (&["option_env", "Command"], "the environment, or other programs"),
    (&["static", "thread_local", "OnceLock", "LazyLock"], "what outlives a call (a `const` does not)"),
    // One could put names together that are told apart here.
    (&["macro_rules"], "a macro of your own (a function does as well)"),
    (&["catch_unwind", "set_hook", "take_hook", "resume_unwind"], "catching panics"),
];

/// Modules of the standard library that are refused in paths, and macros of those names. As names of a student's own they are as
/// good as any: `net`, `path`, `process`.
const MODULES: [&str; 9] = ["process", "fs", "net", "env", "io", "os", "thread", "path", "alloc"];

/// What an exercise is about is allowed in it.
const ALLOWED: [(&str, &str); 1] = [("05-reading", "reset_peak_memory_stats")];

/// Refuses code of an exercise that uses one of these names, or other files.
pub fn check(exercise: &str, text: &str) -> Result<(), Diagnosis> {
    let words = words(text);
    for (at, Word { text: word, line, before, after, in_use }) in words.iter().enumerate() {
        let refused = |what: &str| {
            Err(Diagnosis::new("refused", format!("`{word}` is not allowed in an exercise: {what}."))
                .seen(format!("`{word}`"))
                .expected("code that does without")
                .idea(
                    "The check looks at what your code asks of the machine it is given, and at nothing else.",
                )
                .at(Some(*line)))
        };
        if let Some((_, what)) = NAMES.iter().find(|(names, _)| names.contains(&word.as_str()))
            && !ALLOWED.contains(&(exercise, word))
        {
            return refused(what);
        }
        let is_attribute = *before == '[' && *after == '=';
        let in_path = *in_use || *before == PATH || [PATH, '!'].contains(after) || is_attribute;
        if MODULES.contains(&word.as_str()) && in_path {
            return refused("files, processes, threads, the network and the environment");
        }
        // A hidden module of the tensor crate.
        let last = at.checked_sub(1).map(|last| words[last].text.as_str());
        if word == "gpu" && last == Some("todevice") {
            return refused("the GPU without its tensors");
        }
        if last == Some("mod") && *after == ';' {
            return refused("a module in another file");
        }
    }
    Ok(())
}

/// Two colons.
const PATH: char = '∷';

/// An identifier or a keyword, with its line and the signs next to it, blanks aside.
struct Word {
    text: String,
    line: u32,
    before: char,
    after: char,
    /// Whether it is part of a `use …;`.
    in_use: bool,
}

/// The identifiers and keywords of Rust code with their lines, without comments, strings, characters and lifetimes.
fn words(text: &str) -> Vec<Word> {
    let bytes: Vec<char> = text.chars().collect();
    let mut words: Vec<Word> = Vec::new();
    // The sign that stood last, but for blanks and comments.
    let mut before = ' ';
    let mut in_use = false;
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
                    note(&mut words, 'a');
                    in_use |= word == "use";
                    words.push(Word { text: word, line, before, after: ' ', in_use });
                    before = 'a';
                }
            }
            (sign, next) => {
                let sign = match (sign, next) {
                    (':', ':') => PATH,
                    ('!', '=') => '≠',
                    _ => sign,
                };
                at += if [PATH, '≠'].contains(&sign) { 2 } else { 1 };
                in_use &= sign != ';';
                if !sign.is_whitespace() {
                    note(&mut words, sign);
                    before = sign;
                }
            }
        }
    }
    words
}

/// Notes the sign after the last word, if none is noted yet.
fn note(words: &mut [Word], sign: char) {
    if let Some(last) = words.last_mut().filter(|last| last.after == ' ') {
        last.after = sign;
    }
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
            "use std::{\n    collections::*,\n    net,\n};",
            "// a\n/* b /* c */ */ let m: r#static = 1;",
            "r#\"a\"# ; std::process::exit(0)",
            "std :: /* not */ process :: exit(0)",
            "use std::*; process::exit(0)",
            "let c = '\"'; unsafe {}; let d = '\"';",
            "let c = '\\''; env!(\"X\")",
            "fn f<'a>(x: &'a str) { include_str!(\"a\") }",
            "todevice::gpu::events::X",
            "let x = r\"\\\"; unsafe {}",
            "#[path = \"other.rs\"] mod other { }",
            "mod other ;",
            "use std::net::*;",
            "\"a:80\".to_socket_addrs()",
        ] {
            assert!(check("02-batch", text).is_err(), "{text}");
        }
        for text in [
            "// unsafe",
            "/* /* unsafe */ process */ fn f() {}",
            "println!(\"unsafe \\\" process\");",
            "let x = r#\"unsafe \" env\"#;",
            "fn f(x: &'static str) {}",
            "let c = 'e'; let unsafely = 1; let gpu = 2; let net = 3; net.forward(x)",
            "use todevice::prelude::*; let path: u8 = 1; for process in list { if path != 2 { process.name(path) } }",
            "#[cfg(test)] mod tests { use super::*; }",
            "fn enter() {} enter(); std::mem::take(&mut x);",
        ] {
            assert_eq!(check("02-batch", text), Ok(()), "{text}");
        }
        assert_eq!(check("02-batch", "\"\n\n\"; /*\n*/ unsafe").unwrap_err().line, Some(4));
        let peak = "cuda::reset_peak_memory_stats();";
        assert!(check("05-reading", peak).is_ok() && check("04-graph", peak).is_err());
    }
}
