//! Reports: compute-sanitizer's wording, with file, line and column in place of an instruction's offset; or JSON.

pub mod counters;
pub mod json;

use crate::host::program::{Outcome, Run};
use crate::run::checks::{Checks, Finding, Severity};
use crate::source::{Files, clipped};

/// All that was found, as compute-sanitizer would write it.
pub fn text(files: &Files, run: &Run, checks: Checks) -> String {
    let mut out = String::from("========= COMPUTE-SANITIZER (emulated)\n");
    // CUDA's error comes right after the fault of the device that it tells of.
    let fault = run.findings.all.iter().position(|finding| finding.is_fatal && finding.check != "host");
    let mut error = run.error_text().map(|error| format!("========= {error}\n=========\n"));
    for (number, finding) in run.findings.all.iter().enumerate() {
        out.push_str(&one(files, finding));
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
    let races: Vec<&Finding> =
        run.findings.all.iter().filter(|finding| finding.check == "racecheck").collect();
    if checks.race {
        let errors = races.iter().filter(|finding| finding.severity == Severity::Error).count();
        out.push_str(&format!(
            "========= RACECHECK SUMMARY: {} hazard{} displayed ({errors} error{}, {} warning{})\n",
            races.len(),
            plural(races.len()),
            plural(errors),
            races.len() - errors,
            plural(races.len() - errors),
        ));
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
    let is_race = finding.check == "racecheck";
    let mut out = match (is_race, finding.severity) {
        (true, Severity::Error) => format!("========= Error: {}\n", finding.title),
        (false, Severity::Error) => format!("========= {}\n", finding.title),
        _ => format!("========= Warning: {}\n", finding.title),
    };
    for site in &finding.sites {
        let place = site.span.map_or("another launch".to_owned(), |span| files.place(span));
        out.push_str(&format!("=========     {} {} in {place}\n", site.text, finding.function));
        if let Some(span) = site.span {
            let line = files.line(span);
            let indent = line.chars().take_while(|c| c.is_whitespace()).count();
            let (line, _) = clipped(line.trim(), (span.column as usize).saturating_sub(indent));
            if !line.is_empty() {
                out.push_str(&format!("=========         {line}\n"));
            }
        }
        if let Some(thread) = &site.thread {
            let list = |all: [u32; 3]| format!("({},{},{})", all[0], all[1], all[2]);
            out.push_str(&format!(
                "=========     by thread {} in block {}\n",
                list(thread.thread),
                list(thread.block)
            ));
        }
    }
    for note in &finding.notes {
        out.push_str(&format!("=========     {note}\n"));
    }
    if finding.count > 1 {
        let what = if is_race { "hazards" } else { "times" };
        out.push_str(&format!("=========     [{} {what}]\n", finding.count));
    }
    out.push_str("=========\n");
    out
}
