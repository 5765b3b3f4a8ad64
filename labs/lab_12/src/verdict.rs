use cuda_emulator::report::json::string;
use cuda_emulator::run::checks::Severity;
use cuda_emulator::{Checks, Rejected, report};

use crate::Response;
use crate::judge::{Gate, Judgement};
use crate::programs::Setting;
use crate::smallest::Smallest;

/// `8`, `8.0` or `1,024`: ratios have one decimal.
fn figure(value: f64, is_ratio: bool) -> String {
    if is_ratio { format!("{value:.1}") } else { cuda_emulator::run::amounts::thousands(value as u64) }
}

/// The figures of a gate: the reader's, if it was judged, and the limit.
fn both(gate: &Gate) -> (Option<String>, String) {
    let is_ratio = gate.name.contains(" per ");
    (gate.yours.map(|yours| figure(yours, is_ratio)), figure(gate.bound.value(), is_ratio))
}

/// For example `yours 8.0, at most 4.0`.
fn figures(gate: &Gate) -> String {
    let (yours, limit) = both(gate);
    let yours = yours.map_or("not judged".to_owned(), |yours| format!("yours {yours}"));
    format!("{yours}, {} {limit}", gate.bound.words())
}

/// For example `2 × 1 blocks of 64 threads`.
fn shape(grid: [u32; 3], block: [u32; 3]) -> String {
    let shown = |of: [u32; 3], one: &str| {
        let directions = 3 - of.iter().rev().take_while(|count| **count == 1).count().min(2);
        let numbers: Vec<String> = of[..directions].iter().map(u32::to_string).collect();
        let plural = if of.iter().product::<u32>() == 1 { "" } else { "s" };
        format!("{} {one}{plural}", numbers.join(" × "))
    };
    format!("{} of {}", shown(grid, "block"), shown(block, "thread"))
}

/// For example `n = 65, block = 32`.
fn macros(setting: &Setting) -> String {
    let each: Vec<String> =
        setting.iter().map(|(name, value)| format!("{} = {value}", name.to_lowercase())).collect();
    each.join(", ")
}

/// As [`macros`], without the launch's macros, since the shape of the launch shows them.
fn sizes(setting: &Setting) -> String {
    let is_shown = |(name, _): &&(&str, f64)| !["BLOCK", "GRID"].contains(name);
    macros(&setting.iter().filter(is_shown).copied().collect())
}

fn smallest_text(smallest: &Smallest) -> String {
    let Smallest { setting, grid, block } = smallest;
    format!("{}, {}", sizes(setting), shape(*grid, *block))
}

/// The errors of a program that does not compile, with a remark if they are in the host half.
fn errors(rejected: &Rejected, file: &str) -> String {
    let is_in_file =
        |file_number: u32| rejected.files.0.get(file_number as usize).is_some_and(|known| known.name == file);
    let mut text = rejected.text();
    if !rejected.errors.0.iter().any(|error| is_in_file(error.span.file)) {
        text.push_str(
            "\nThe host code launches the kernel: keep its name and parameters, and do not write `main`.\n",
        );
    }
    text
}

/// Formats a judgement. The exit code is 0 if the kernel is right, 1 otherwise. `explanation` is for a reader who has
/// found the mistake.
pub fn said(judgement: &Judgement, heading: &str, file: &str, explanation: &str, is_json: bool) -> Response {
    let output = match is_json {
        true => json(judgement, explanation),
        false => text(judgement, heading, file, explanation),
    };
    let code = match judgement.rejected {
        Some(_) => 2,
        None => u8::from(!judgement.is_right()),
    };
    Response { output, errors: String::new(), code }
}

fn summary(judgement: &Judgement) -> &'static str {
    match judgement.is_right() {
        true => "Right.",
        false if judgement.does_too_much() => {
            "Not yet: the numbers are right, but the kernel does too much work."
        }
        false => "Not yet.",
    }
}

pub fn text(judgement: &Judgement, heading: &str, file: &str, explanation: &str) -> String {
    let mut out = format!("{heading}\n\n");
    if let Some(rejected) = &judgement.rejected {
        out.push_str(&errors(rejected, file));
        return out;
    }
    if !judgement.warnings.is_empty() {
        out.push_str(&format!("{}\n", judgement.warnings));
    }
    let width = judgement.gates.iter().map(|gate| gate.name.len()).max().unwrap_or(0);
    for gate in &judgement.gates {
        let mark = match gate.passes() {
            Some(true) => "ok   ",
            Some(false) => "WRONG",
            None => "  -  ",
        };
        out.push_str(&format!("  {mark}  {:width$}  {}\n", gate.name, figures(gate)));
    }
    if let Some((fault, setting)) = &judgement.fault {
        out.push_str(&format!("\nWith {}:\n", macros(setting)));
        match &fault.element {
            Some(element) => out.push_str(&format!("  {element}\n")),
            None => {
                out.push_str(&report::text_from(&fault.files, &fault.run, Checks::MEMORY, Severity::Info))
            }
        }
    }
    if let Some(smallest) = &judgement.smallest {
        out.push_str(&format!("\nThe smallest launch that fails: {}\n", smallest_text(smallest)));
    }
    out.push_str(&format!("\n{}\n", summary(judgement)));
    for advice in judgement.advice() {
        out.push_str(&format!("{advice}\n"));
    }
    if judgement.is_right() && !explanation.is_empty() {
        out.push_str(&format!("{explanation}\n"));
    }
    out
}

/// As [`text`], for a page: `{"right":…,"summary":…,"advice":[…],"gates":[{"name":…,"passes":…,"yours":…,"bound":"at most",
/// "limit":…}],"with":…,"element":…,"report":…,"smallest":…}`, or the errors of a program that does not compile.
fn json(judgement: &Judgement, explanation: &str) -> String {
    if let Some(rejected) = &judgement.rejected {
        return report::json::rejected(rejected);
    }
    let or_null = |text: Option<String>| text.map_or("null".to_owned(), |text| string(&text));
    let gates = judgement.gates.iter().map(|gate| {
        let (yours, limit) = both(gate);
        let passes = gate.passes().map_or("null".to_owned(), |passes| passes.to_string());
        format!(
            "{{\"name\":{},\"passes\":{passes},\"yours\":{},\"bound\":{},\"limit\":{}}}",
            string(gate.name),
            or_null(yours),
            string(gate.bound.words()),
            string(&limit)
        )
    });
    let fault = judgement.fault.as_ref();
    let element = fault.and_then(|(fault, _)| fault.element.clone());
    // If elements are wrong, the checks have found nothing.
    let report = fault.filter(|(fault, _)| fault.element.is_none());
    let report = report.map_or("null".to_owned(), |(fault, _)| report::json::json(&fault.files, &fault.run));
    let mut advice = judgement.advice();
    if judgement.is_right() && !explanation.is_empty() {
        advice.push(explanation);
    }
    format!(
        "{{\"right\":{},\"summary\":{},\"advice\":[{}],\"gates\":[{}],\"with\":{},\"element\":{},\"report\":{},\"smallest\":{}}}\n",
        judgement.is_right(),
        string(summary(judgement)),
        advice.into_iter().map(string).collect::<Vec<_>>().join(","),
        gates.collect::<Vec<_>>().join(","),
        or_null(fault.map(|(_, setting)| macros(setting))),
        or_null(element),
        report.trim_end(),
        or_null(judgement.smallest.as_ref().map(smallest_text))
    )
}
