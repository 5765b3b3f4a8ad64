//! Names that a student's code may not use: each is a way around the check, and none helps to solve an exercise.
//!
//! These rules, the OS sandbox around a run (`confined.rs`), limits on time and memory (`process.rs`), secret seeds,
//! and a verdict made in another process stop the cheats in `tests/trust.rs`. They do not stop:
//!
//! - a solution copied from someone else or from `cargo course solution`;
//! - code that produces exactly the solution's copies, launches and results, call by call, without doing the task;
//! - soundness holes in the compiler, through which code without `unsafe` can do unsafe things. On Linux the sandbox
//!   holds even then: such a run writes only into its own folder. On a system without a sandbox it can write wherever
//!   you can;
//! - reading: without a sandbox, a run can read any file that you can read, though it cannot send it to anyone;
//! - ten seconds of CPU time, 2 GiB of memory, and 64 MiB of disk, for the duration of the run;
//! - on systems other than Linux, a memory spike shorter than a tenth of a second, and on Windows, a minute of CPU
//!   time.
//!
//! So grade only on a computer on which it is acceptable to run students' code.

use std::borrow::Cow;

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

use crate::verdict::Diagnosis;

/// Names that are rejected anywhere, with the reason.
const NAMES: [(&[&str], &str); 11] = [
    (&["unsafe", "extern", "asm", "global_asm", "no_mangle", "export_name", "link_section"], "unsafe code"),
    (&["Machine", "GpuSpec", "SimulatedGpus", "limit_operations", "bare_machine"], "another machine"),
    (
        &[
            "reset_peak_memory_stats",
            "reset_peak_memory_stats_device",
            "reset_accumulated_memory_stats",
            "reset_accumulated_memory_stats_device",
            "reset_max_memory_allocated",
            "reset_max_memory_cached",
        ],
        "resetting what the check counts",
    ),
    (&["start_trace", "set_race_check", "RaceCheck"], "changing what the check sees"),
    (&["exercises", "todevice_gpu"], "reaching into the check"),
    (
        &["File", "OpenOptions", "stdin", "include", "include_str", "include_bytes", "debugger_visualizer"],
        "files",
    ),
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
    // A macro could assemble names from parts that these rules see separately.
    (&["macro_rules"], "a macro of your own (a function does as well)"),
    (&["catch_unwind", "set_hook", "take_hook", "resume_unwind"], "catching panics"),
];

/// Names that write files. They are rejected where the OS does not confine a run to its own folder.
const WRITERS: [&str; 2] = ["save", "save_file"];

/// Modules of the standard library that are rejected in paths, and macros with those names. Students may use the names
/// themselves: `net`, `path`, `process`.
const MODULES: [&str; 9] = ["process", "fs", "net", "env", "io", "os", "thread", "path", "alloc"];

/// An exercise may use the function it is about.
const ALLOWED: [(&str, &str); 1] = [("05-reading", "reset_peak_memory_stats")];

const IDEA: &str = "The check looks only at your code's work on its machine.";

/// Rejects code of an exercise that uses one of these names, or other files. `is_confined` says whether the OS confines
/// the run to its own folder.
pub fn check(exercise: &str, text: &str, is_confined: bool) -> Result<(), Diagnosis> {
    let pieces = pieces(text)?;
    let sign = |at: Option<usize>| at.and_then(|at| pieces.get(at)).map_or(' ', |piece| piece.sign);
    let mut in_use = false;
    for (at, Piece { sign: this, word, line }) in pieces.iter().enumerate() {
        let (before, after) = (sign(at.checked_sub(1)), sign(Some(at + 1)));
        let Some(word) = word.as_deref() else {
            in_use &= *this != ';';
            continue;
        };
        // `use<'a>` in a type is not an import.
        in_use |= word == "use" && after != '<';
        let refused = |what: &str| {
            Err(Diagnosis::new("refused", format!("`{word}` is not allowed in an exercise: {what}."))
                .seen(format!("`{word}`"))
                .expected("code without it")
                .idea(IDEA)
                .at(Some(*line)))
        };
        if let Some((_, what)) = NAMES.iter().find(|(names, _)| names.contains(&word))
            && !ALLOWED.contains(&(exercise, word))
        {
            return refused(what);
        }
        if !is_confined && WRITERS.contains(&word) {
            return refused("files, which this system cannot confine to a folder");
        }
        let is_attribute = before == '[' && after == '=';
        let in_path = in_use || before == PATH || [PATH, '!'].contains(&after) || is_attribute;
        if MODULES.contains(&word) && in_path {
            return refused("files, processes, threads, the network and the environment");
        }
        // A hidden module of the tensor crate.
        let last = pieces[..at].iter().rev().find_map(|piece| piece.word.as_deref());
        if word == "gpu" && last == Some("todevice") {
            return refused("the GPU without its tensors");
        }
        if last == Some("mod") && after == ';' {
            return refused("a module in another file");
        }
    }
    Ok(())
}

/// Stands for `::`.
const PATH: char = '∷';

/// A token other than white space and comments.
struct Piece {
    /// Its character. `::` is one sign, and so is an operator such as `!=`, by its first character; a word is an `a`, a
    /// literal or a lifetime is `"`.
    sign: char,
    /// Its text, if it is an identifier or a keyword.
    word: Option<String>,
    line: u32,
}

/// The tokens of Rust code, from the compiler's own lexer. An error here is also an error for the compiler, so such
/// code never runs.
fn pieces(text: &str) -> Result<Vec<Piece>, Diagnosis> {
    let text = as_compiled(text);
    let hidden = |what: &str| {
        Err(Diagnosis::new(
            "refused",
            format!("The file begins with {what}, which an exercise does not need."),
        )
        .seen(text.lines().next().unwrap_or_default())
        .expected("Rust from the first line on")
        .idea("The compiler ignores such a beginning, so it could hide code.")
        .at(Some(1)))
    };
    // An inner attribute also begins with `#!`.
    if text.starts_with("#!") && !text.starts_with("#![") {
        return hidden("`#!`, as a script does");
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at, mut line) = (0, 1);
    // The end of a sign that the next one may continue.
    let mut joint = 0;
    for token in tokenize(&text, FrontmatterAllowed::Yes) {
        let start = at;
        at += token.len as usize;
        let token_text = &text[start..at];
        let (sign, word) = match token.kind {
            TokenKind::Frontmatter { .. } => return hidden("`---`, a block for tools"),
            TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
                (' ', None)
            }
            TokenKind::Ident | TokenKind::InvalidIdent | TokenKind::UnknownPrefix => ('a', Some(token_text)),
            // `r#name` is the same as `name`.
            TokenKind::RawIdent | TokenKind::ForcedKeywordIdent => ('a', Some(&token_text[2..])),
            TokenKind::Literal { .. }
            | TokenKind::Lifetime { .. }
            | TokenKind::RawLifetime
            | TokenKind::UnknownPrefixLifetime => ('"', None),
            _ => (token_text.chars().next().unwrap_or(' '), None),
        };
        match pieces.last_mut() {
            Some(last) if joint == start && last.sign == ':' && sign == ':' => last.sign = PATH,
            Some(last) if joint == start && last.sign == '!' && sign == '=' => last.sign = '≠',
            _ if sign != ' ' => {
                pieces.push(Piece { sign, word: word.map(normalized), line });
                joint = at;
            }
            _ => {}
        }
        line += token_text.matches('\n').count() as u32;
    }
    Ok(pieces)
}

/// The text as the compiler reads it: without a byte order mark, and with Unix line endings.
fn as_compiled(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// A name as the compiler compares it (NFC). The Kelvin sign is the only non-ASCII letter that this turns into ASCII.
fn normalized(word: &str) -> String {
    word.replace('\u{212a}', "K")
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
            "use std as s; s::fs::write(a, b)",
            "use ::std::{self as s, r#fs as f};",
            "#[doc = include_str!(\"a\")] fn f() {}",
            "#[cfg_attr(all(), path = \"a\")] mod r#other /* */ ;",
            "mod inner { pub(in super) mod deeper; }",
            "let x = ::std::fs\u{2028}::\u{200f}read(\"a\")",
            "k#unsafe {}",
            "\u{feff}#!/bin/x \"\nfn f() {} // \"",
            "#! [allow(dead_code)]",
            "--- \"\n---\nfn f() {} // \"",
        ] {
            assert!(check("02-batch", text, true).is_err(), "{text}");
        }
        for text in [
            "// unsafe",
            "/* /* unsafe */ process */ fn f() {}",
            "println!(\"unsafe \\\" process\");",
            "let x = r#\"unsafe \" env\"#;",
            "fn f(x: &'static str) {}",
            "fn f<'a>(x: &'a str) -> impl Sized + use<'a> { let path = 1; path; x }",
            "let c = 'e'; let unsafely = 1; let gpu = 2; let net = 3; net.forward(x)",
            "use todevice::prelude::*; let path: u8 = 1; for process in list { if path != 2 { process.name(path) } }",
            "#[cfg(test)] mod tests { use super::*; }",
            "fn enter() {} enter(); std::mem::take(&mut x);",
            "\u{feff}#![allow(dead_code)]\r\nfn f() {}",
        ] {
            assert_eq!(check("02-batch", text, true), Ok(()), "{text}");
        }
        // No rejected name contains this letter now, but a future one may.
        assert_eq!(normalized("\u{212a}ey"), "Key");
        assert_eq!(check("02-batch", "\"\n\n\"; /*\n*/ unsafe", true).unwrap_err().line, Some(4));
        let peak = "cuda::reset_peak_memory_stats();";
        assert!(check("05-reading", peak, true).is_ok() && check("04-graph", peak, true).is_err());
    }

    #[test]
    fn what_writes_files_is_refused_where_a_run_has_no_walls() {
        for text in ["todevice::serialize::save(v, \"/tmp/x\")", "use safetensors::save_file as f;"] {
            assert!(
                check("02-batch", text, true).is_ok() && check("02-batch", text, false).is_err(),
                "{text}"
            );
        }
    }
}
