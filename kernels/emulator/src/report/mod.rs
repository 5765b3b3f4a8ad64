//! Reports in compute-sanitizer's wording, with file, line and column instead of an instruction's offset; or as JSON.

pub mod counters;
pub mod json;

use crate::host::program::{Outcome, Run};
use crate::run::checks::{Checks, Finding, Severity};
use crate::source::{Files, clipped};

/// Reports all findings of level warning and above, as compute-sanitizer would.
pub fn text(files: &Files, run: &Run, checks: Checks) -> String {
    text_from(files, run, checks, Severity::Warning)
}

/// As [`text`], from the level `least` on.
pub fn text_from(files: &Files, run: &Run, checks: Checks, least: Severity) -> String {
    let mut out = String::from("========= COMPUTE-SANITIZER (emulated)\n");
    // The CUDA error comes right after the device fault that caused it.
    let fault = run.findings.all.iter().position(|finding| finding.is_fatal && finding.check != "host");
    let mut error = run.error_text().map(|error| format!("========= {error}\n=========\n"));
    for (number, finding) in run.findings.all.iter().enumerate() {
        if finding.severity >= least {
            out.push_str(&one(files, finding));
        }
        if Some(number) == fault {
            out.extend(error.take());
        }
    }
    out.extend(error);
    if let Outcome::Exit(code) = run.outcome
        && code != 0
    {
        out.push_str(&format!("========= The program returned {code}\n=========\n"));
    }
    let of = |severity| run.findings.all.iter().filter(|finding| finding.severity == severity).count();
    let is_shown = |finding: &&Finding| finding.check == "racecheck" && finding.severity >= least;
    let races: Vec<&Finding> = run.findings.all.iter().filter(is_shown).collect();
    if checks.race {
        let count = |severity| races.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        out.push_str(&format!(
            "========= RACECHECK SUMMARY: {} hazard{} displayed ({errors} error{}, {warnings} warning{})\n",
            races.len(),
            plural(races.len()),
            plural(errors),
            plural(warnings),
        ));
    }
    if let (bytes, count @ 1..) = run.leaked {
        out.push_str(&format!("========= LEAK SUMMARY: {bytes} bytes leaked in {count} allocations\n"));
    }
    if run.findings.left_out > 0 {
        out.push_str(&format!("========= {} more findings are left out\n", run.findings.left_out));
    }
    let errors = of(Severity::Error) + usize::from(run.error.is_some());
    out.push_str(&format!("========= ERROR SUMMARY: {errors} error{}\n", plural(errors)));
    out
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn one(files: &Files, finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Error => "Error: ",
        Severity::Warning => "Warning: ",
        Severity::Info => "Info: ",
    };
    let mut out = String::new();
    let mut write = |indent: &str, text: &str| out.push_str(&format!("========= {indent}{text}\n"));
    // A race between two accesses has no title: its places say it.
    let is_race = finding.check == "racecheck" && finding.sites.len() > 1;
    if !is_race {
        let word = if finding.severity == Severity::Error { "" } else { word };
        write("", &format!("{word}{}", finding.title));
    }
    let last = finding.sites.len().saturating_sub(1);
    for (number, site) in finding.sites.iter().enumerate() {
        let place = site.span.map_or("another launch".to_owned(), |span| files.place(span));
        let place = format!("{} {} in {place}", site.text, finding.function);
        match (is_race, number) {
            (false, _) => write("    ", &place),
            (true, 0) => write("", &format!("{word}Race reported between {place}")),
            (true, _) if number == last && finding.count > 1 => {
                write("    ", &format!("and {place} [{} hazards]", finding.count));
            }
            (true, _) => write("    ", &format!("and {place}")),
        }
        if let Some(span) = site.span {
            let line = files.line(span);
            let indent = line.chars().take_while(|c| c.is_whitespace()).count();
            let (line, _) = clipped(line.trim(), (span.column as usize).saturating_sub(indent));
            if !line.is_empty() {
                write("        ", &line);
            }
        }
        if let Some(thread) = &site.thread {
            let list = |all: [u32; 3]| format!("({},{},{})", all[0], all[1], all[2]);
            write("    ", &format!("by thread {} in block {}", list(thread.thread), list(thread.block)));
        }
    }
    for note in &finding.notes {
        write("    ", note);
    }
    if finding.count > 1 && !is_race {
        write("    ", &format!("[{} times]", finding.count));
    }
    out.push_str("=========\n");
    out
}
