//! A judgement as text or as JSON.

use cuda_emulator::report::json::string;
use cuda_emulator::run::checks::Severity;
use cuda_emulator::{Checks, Rejected, report};

use crate::Said;
use crate::judge::{Gate, Judgement};
use crate::programs::Setting;
use crate::smallest::Smallest;

/// `8`, `8.0` or `1,024`: figures that are no whole numbers have one decimal.
fn figure(value: f64, is_ratio: bool) -> String {
    if is_ratio { format!("{value:.1}") } else { cuda_emulator::run::access::thousands(value as u64) }
}

/// Such as `yours 8.0, at most 4.0`.
fn figures(gate: &Gate) -> String {
    let is_ratio = gate.name.contains(" per ");
    let limit = format!("{} {}", gate.bound.words(), figure(gate.bound.value(), is_ratio));
    match gate.yours {
        Some(yours) => format!("yours {}, {limit}", figure(yours, is_ratio)),
        None => format!("not judged, {limit}"),
    }
}

/// Such as `2 × 1 blocks of 64 threads`.
fn shape(grid: [u32; 3], block: [u32; 3]) -> String {
    let shown = |of: [u32; 3], one: &str| {
        let directions = 3 - of.iter().rev().take_while(|count| **count == 1).count().min(2);
        let numbers: Vec<String> = of[..directions].iter().map(u32::to_string).collect();
        let plural = if of.iter().product::<u32>() == 1 { "" } else { "s" };
        format!("{} {one}{plural}", numbers.join(" × "))
    };
    format!("{} of {}", shown(grid, "block"), shown(block, "thread"))
}

/// Such as `n = 65, block = 32`.
fn macros(setting: &Setting) -> String {
    let each: Vec<String> =
        setting.iter().map(|(name, value)| format!("{} = {value}", name.to_lowercase())).collect();
    each.join(", ")
}

/// As [`macros`], without those of the launch. The shape of the launch shows the other macros.
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
            "\nThe host half launches the kernel: keep its name and parameters, and write no `main`.\n",
        );
    }
    text
}

/// A judgement in a format, with the exit code 0 if the kernel is right, and 1 otherwise.
pub fn said(judgement: &Judgement, heading: &str, file: &str, is_json: bool) -> Said {
    let format = if is_json { json } else { text };
    let code = u8::from(!judgement.is_right());
    Said { output: format(judgement, heading, file), errors: String::new(), code }
}

pub fn text(judgement: &Judgement, heading: &str, file: &str) -> String {
    let mut out = format!("{heading}\n\n");
    if let Some(rejected) = &judgement.rejected {
        out.push_str(&errors(rejected, file));
        return out;
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
    out.push_str(if judgement.is_right() { "\nRight.\n" } else { "\nNot yet.\n" });
    out
}

/// As [`text`], as JSON. The findings are those of [`report::json`].
pub fn json(judgement: &Judgement, heading: &str, file: &str) -> String {
    let gates = judgement.gates.iter().map(|gate| {
        format!(
            "{{\"name\":{},\"passes\":{},\"yours\":{},\"bound\":{},\"limit\":{},\"text\":{}}}",
            string(gate.name),
            gate.passes().map_or("null".to_owned(), |passes| passes.to_string()),
            gate.yours.map_or("null".to_owned(), |yours| yours.to_string()),
            string(gate.bound.words()),
            gate.bound.value(),
            string(&figures(gate))
        )
    });
    let fault = judgement.fault.as_ref().map(|(fault, setting)| {
        format!(
            "{{\"setting\":{},\"element\":{},\"run\":{}}}",
            string(&macros(setting)),
            fault.element.as_ref().map_or("null".to_owned(), |element| string(element)),
            report::json::json(&fault.files, &fault.run).trim_end()
        )
    });
    let smallest = judgement.smallest.as_ref().map(|smallest| {
        let each =
            smallest.setting.iter().map(|(name, value)| format!("{}:{value}", string(&name.to_lowercase())));
        format!(
            "{{\"text\":{},\"setting\":{{{}}},\"grid\":{:?},\"block\":{:?}}}",
            string(&smallest_text(smallest)),
            each.collect::<Vec<_>>().join(","),
            smallest.grid,
            smallest.block
        )
    });
    let rejected = judgement.rejected.as_ref().map(|rejected| {
        format!("{{\"text\":{},\"list\":{}}}", string(&errors(rejected, file)), error_list(rejected))
    });
    let or_null = |value: Option<String>| value.unwrap_or("null".to_owned());
    format!(
        "{{\"heading\":{},\"right\":{},\"rejected\":{},\"gates\":[{}],\"fault\":{},\"smallest\":{}}}\n",
        string(heading),
        judgement.is_right(),
        or_null(rejected),
        gates.collect::<Vec<_>>().join(","),
        or_null(fault),
        or_null(smallest)
    )
}

/// The list of [`report::json::rejected`].
fn error_list(rejected: &Rejected) -> String {
    let json = report::json::rejected(rejected);
    let list = json.trim_end().strip_prefix("{\"errors\":").and_then(|list| list.strip_suffix('}'));
    list.unwrap_or("[]").to_owned()
}
