//! Compares a machine with the book: every lab runs there and on the simulated card of the snapshots, and their events
//! are compared. Events mark their incomparable parts: times, facts of the hardware, results that times decided, and
//! sections that differ on a real GPU.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use serde_json::Value as Json;
use todevice::{GpuSpec, Machine, cuda};

use crate::frame::entry::{Stop, failed, wrong};
use crate::frame::stdio::to_stdout;
use crate::frame::terminal::can_be_written;
use crate::tools::report::Report;
use crate::{LABS, Listed, program};

/// Runs every lab on a machine, and reports the differences from the book
#[derive(Parser)]
#[command(name = "verify", version, disable_help_subcommand = true)]
pub struct Flags {
    /// GPUs to run on
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on: {}", GpuSpec::GRAMMAR))]
    pub gpu: GpuSpec,

    /// Labs to run [default: all]
    #[arg(value_name = "LAB", value_parser = lab_name)]
    pub labs: Vec<String>,

    /// Flags for the labs, after `--`
    #[arg(value_name = "FLAG", last = true, allow_hyphen_values = true)]
    pub flags: Vec<String>,

    /// File to write a report to, ready to send: results, card, driver, and differences, without paths or names
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Runs one lab, as JSON: what each child process does
    #[arg(long, hide = true)]
    pub alone: bool,
}

pub(crate) fn lab_name(name: &str) -> Result<String, String> {
    let known: Vec<&str> = LABS.iter().map(|lab| lab.name).collect();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected one of {}", known.join(", "))),
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    /// The differences, each with its section.
    pub differences: Vec<String>,
    /// The sections that were not compared, and why.
    pub left_out: Vec<(String, String)>,
}

/// Runs a lab on these GPUs in a separate process, since a GPU error can make a process unusable.
pub fn verify(
    lab: &str,
    gpu: &GpuSpec,
    reference: &str,
    flags: &[String],
) -> Result<Comparison, String> {
    let this = std::env::current_exe()
        .map_err(|error| format!("this program cannot be found: {error}"))?;
    let child = Command::new(this)
        .args(["--alone", "--gpu", &gpu.to_string(), lab, "--"])
        .args(flags)
        .output();
    let child = child.map_err(|error| format!("{lab} does not start: {error}"))?;
    let found = String::from_utf8_lossy(&child.stdout);
    let mut comparison = compare(&run(lab, reference, flags), &found)?;
    // The last event has the reason, unless the process ended earlier.
    if !child.status.success() && !found.contains("\"event\":\"failure\"") {
        let errors = String::from_utf8_lossy(&child.stderr);
        comparison.differences.push(format!("{}: {}", child.status, errors.trim()));
    }
    Ok(comparison)
}

/// The events of a lab on a machine, as JSON Lines.
pub fn run(lab: &str, gpu: &str, flags: &[String]) -> String {
    let lab = Listed::named(lab).expect("a name that was checked");
    let flags: Vec<&str> =
        ["--gpu", gpu].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let captured = (lab.run)(&flags);
    if captured.json.is_empty() { captured.errors } else { captured.json }
}

/// The tolerance for floats on a real GPU, relative to the larger one: a library rounds products differently, and
/// training accumulates the differences.
const TOLERANCE: f64 = 1e-3;

fn is_simulated(machine: &str) -> bool {
    machine.contains("(simulated)")
}

/// Compares the events of a lab on a simulated GPU with those on another machine. On another simulated one, all printed
/// digits must be equal.
pub fn compare(expected: &str, found: &str) -> Result<Comparison, String> {
    let (mut expected, mut found) = (events(expected)?, events(found)?);
    // The first event is the header. A section may have its own machine.
    let real = !found
        .first()
        .and_then(|header| header["machine"].as_str())
        .is_some_and(is_simulated);
    let mut comparison = Comparison::default();
    if real {
        // Only a simulated GPU detects data races.
        let race = |text: &str| {
            text.starts_with("error[GPU0003]") || text.starts_with("Data race")
        };
        expected.retain(|event| !event["text"].as_str().is_some_and(race));
        comparison.left_out = without_sections_apart(&mut expected);
        without_sections_apart(&mut found);
    }
    let differences = &mut comparison.differences;
    let tolerance = if real { TOLERANCE } else { 0.0 };
    let mut section = String::new();
    for (expected, found) in expected.iter().zip(&found) {
        if let Some(number) = expected["number"].as_str() {
            section = format!("section {number}: ");
        }
        let kind = expected["event"].as_str().unwrap_or_default();
        if expected["event"] != found["event"] {
            differences.push(format!(
                "{section}expected {}, found {}",
                expected["event"], found["event"]
            ));
            return Ok(comparison); // All later events are shifted.
        }
        if kind != "header" {
            let (expected, found) = comparable(expected, found, tolerance);
            if expected != found {
                let (wanted, seen) = first_difference(&expected, &found);
                differences
                    .push(format!("{section}{kind}: expected {wanted}, found {seen}"));
            }
        }
    }
    if expected.len() != found.len() {
        differences.push(format!(
            "{section}expected {} events, found {}",
            expected.len(),
            found.len()
        ));
    }
    Ok(comparison)
}

/// Parses a lab's events. Drops warnings, which depend on the machine, and answers that times decide, since times also
/// decide whether there is an answer. Sorts the rows of ranked tables by name.
fn events(lines: &str) -> Result<Vec<Json>, String> {
    let mut events = Vec::new();
    for line in lines.lines() {
        let mut event: Json =
            serde_json::from_str(line).map_err(|_| line.to_owned())?;
        if event["ranked"] == true
            && let Some(rows) = event["rows"].as_array_mut()
        {
            rows.sort_by_key(|row| row[0].to_string());
        }
        let raced_answer = event["event"] == "answer" && event["raced"] == true;
        if event["event"] != "warning" && !raced_answer {
            events.push(event);
        }
    }
    Ok(events)
}

/// Keeps only the titles of sections that differ on a real GPU, and returns these sections with the reasons.
fn without_sections_apart(events: &mut Vec<Json>) -> Vec<(String, String)> {
    let (mut within, mut left_out) = (false, Vec::new());
    events.retain(|event| {
        let Some(number) = event["number"].as_str() else { return !within };
        within = event["apart"].is_string();
        if let Some(why) = event["apart"].as_str() {
            left_out.push((number.to_owned(), why.to_owned()));
        }
        true
    });
    left_out
}

/// Two events, or parts of them, without differences that are allowed between machines: drawings, results that times
/// decided, and figures that are not compared.
fn comparable(a: &Json, b: &Json, tolerance: f64) -> (Json, Json) {
    match (a, b) {
        (Json::Object(a), Json::Object(b))
            if a.contains_key("kind") && b.contains_key("kind") =>
        {
            let compared =
                if is_compared(&a.clone().into(), &b.clone().into(), tolerance) {
                    "text"
                } else {
                    "name"
                };
            (a[compared].clone(), b[compared].clone())
        }
        (Json::Object(a), Json::Object(b))
            if a.contains_key("raced") && b.contains_key("raced") =>
        {
            (a["event"].clone(), b["event"].clone())
        }
        (Json::Object(a), Json::Object(b)) => {
            let (mut kept_a, mut kept_b) =
                (serde_json::Map::new(), serde_json::Map::new());
            for (key, value) in a
                .iter()
                .filter(|(key, _)| !["svg", "text", "caption"].contains(&key.as_str()))
            {
                let (value_a, value_b) =
                    comparable(value, b.get(key).unwrap_or(&Json::Null), tolerance);
                kept_a.insert(key.clone(), value_a);
                kept_b.insert(key.clone(), value_b);
            }
            if !a.contains_key("svg") {
                let (text_a, text_b) = texts(a, b, tolerance);
                kept_a.insert("text".to_owned(), text_a.into());
                kept_b.insert("text".to_owned(), text_b.into());
            }
            (kept_a.into(), kept_b.into())
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).map(|(a, b)| comparable(a, b, tolerance));
            let (a, b): (Vec<Json>, Vec<Json>) = pairs.unzip();
            (a.into(), b.into())
        }
        _ => (a.clone(), b.clone()),
    }
}

/// Whether two figures must be equal: both are exact, and no times decided them, unless they agree within the
/// tolerance.
fn is_compared(a: &Json, b: &Json, tolerance: f64) -> bool {
    let float =
        |figure: &Json| figure["value"].as_f64().filter(|_| figure["value"].is_f64());
    let close = match (float(a), float(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        _ => false,
    };
    let fixed = |figure: &Json| figure["kind"] == "exact" && figure["raced"] != true;
    fixed(a) && fixed(b) && !close
}

type Object = serde_json::Map<String, Json>;

/// The texts of two events without the figures that are not compared.
fn texts(a: &Object, b: &Object, tolerance: f64) -> (String, String) {
    let text = |event: &Object| {
        event.get("text").and_then(Json::as_str).unwrap_or_default().to_owned()
    };
    let figures = |event: &Object| {
        event.get("figures").and_then(Json::as_array).cloned().unwrap_or_default()
    };
    let (mut text_a, mut text_b) = (text(a), text(b));
    for (a, b) in figures(a)
        .iter()
        .zip(&figures(b))
        .filter(|(a, b)| !is_compared(a, b, tolerance))
    {
        for (text, figure) in [(&mut text_a, a), (&mut text_b, b)] {
            *text = text.replacen(figure["text"].as_str().unwrap_or_default(), "…", 1);
        }
    }
    (without_details(&text_a), without_details(&text_b))
}

/// An error without details of this machine: the memory of the GPU and of other programs, and the work that may have
/// failed.
fn without_details(text: &str) -> String {
    if !text.contains("CUDA error") && !text.contains("CUDA out of memory") {
        return text.to_owned();
    }
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (start, end) in
        [("total capacity of", "Of the allocated memory"), ("assert triggered (", ")")]
    {
        if let Some(from) = text.find(start).map(|at| at + start.len())
            && let Some(length) = text[from..].find(end)
        {
            text.replace_range(from..from + length, "…");
        }
    }
    text
}

fn first_difference(expected: &Json, found: &Json) -> (Json, Json) {
    let within = match (expected, found) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).find(|(a, b)| a != b)
        }
        (Json::Object(a), Json::Object(b)) => {
            a.iter().filter_map(|(key, a)| Some((a, b.get(key)?))).find(|(a, b)| a != b)
        }
        _ => None,
    };
    let in_lines = |a: &str, b: &str| {
        a.lines()
            .zip(b.lines())
            .find(|(a, b)| a != b)
            .map(|(a, b)| (a.into(), b.into()))
    };
    match (within, expected, found) {
        (Some((a, b)), ..) => first_difference(a, b),
        (None, Json::String(a), Json::String(b)) => {
            in_lines(a, b).unwrap_or((expected.clone(), found.clone()))
        }
        _ => (expected.clone(), found.clone()),
    }
}

/// The simulated card with the same dtypes and memory use as this machine: cuBLAS has a larger workspace on compute
/// capability 9.0.
fn alike(machine: &Machine) -> &'static str {
    match machine.enter(|| cuda::get_device_properties(0)) {
        Ok(properties) if (properties.major, properties.minor) == (9, 0) => "sim:h200",
        Ok(properties) if properties.major >= 8 => "sim:rtx4090",
        _ => "sim:t4",
    }
}

/// The meaning of "the same", in whole lines: the compared parts, the others with reasons, and the tolerance.
fn what_it_means(real: bool, left_out: &[(&str, String, String)]) -> String {
    let mut text =
        "Not compared: times and what they decide, drawings, warnings, facts of the hardware".to_owned();
    text +=
        if real { ", data races (only a simulated GPU finds them).\n" } else { ".\n" };
    for same in left_out.chunk_by(|one, next| (one.0, &one.2) == (next.0, &next.2)) {
        let numbers: Vec<&str> =
            same.iter().map(|(_, number, _)| number.as_str()).collect();
        let sections = if numbers.len() == 1 { "section" } else { "sections" };
        let (lab, _, why) = &same[0];
        text += &format!(
            "Left out: {lab}, {sections} {}, because {why}.\n",
            numbers.join(", ")
        );
    }
    text + &match real {
        true => {
            format!(
                "Floats may differ by a relative error of {TOLERANCE}; everything else must be equal.\n"
            )
        }
        false => "All printed digits of all numbers must be equal.\n".to_owned(),
    }
}

/// Exits with 0 if all labs are as in the book, with 1 if not, with 2 if a flag is wrong or the machine does not exist.
pub fn main() -> ExitCode {
    program(|flags: Flags| {
        let all = LABS.iter().map(|lab| lab.name);
        let labs: Vec<&str> = all
            .filter(|lab| {
                flags.labs.is_empty() || flags.labs.iter().any(|name| name == lab)
            })
            .collect();
        if flags.alone {
            labs.iter().for_each(|lab| {
                to_stdout(&run(lab, &flags.gpu.to_string(), &flags.flags))
            });
            return Ok(());
        }
        if let Some(file) = &flags.report {
            can_be_written("--report", file)?;
        }
        let machine = flags.gpu.machine().map_err(wrong)?;
        let (real, reference) = (!is_simulated(&machine.to_string()), alike(&machine));
        to_stdout(&format!("{machine} against --gpu {reference}, times aside\n"));
        let report = flags.report.as_ref();
        let mut report = report
            .map(|file| Report::new(file, &machine, reference))
            .transpose()
            .map_err(failed)?;
        drop(machine);
        let (mut all_agree, mut left_out) = (true, Vec::new());
        for lab in labs {
            let comparison = verify(lab, &flags.gpu, reference, &flags.flags)
                .unwrap_or_else(|error| Comparison {
                    differences: vec![error],
                    ..Comparison::default()
                });
            let Comparison { differences, left_out: sections } = comparison;
            if let Some(report) = &mut report {
                report.add(lab, &differences, &sections)?;
            }
            all_agree &= differences.is_empty();
            let verdict = if differences.is_empty() { "the same" } else { "differs" };
            to_stdout(&format!("{lab}: {verdict}\n"));
            differences
                .iter()
                .for_each(|difference| to_stdout(&format!("  {difference}\n")));
            left_out
                .extend(sections.into_iter().map(|(section, why)| (lab, section, why)));
        }
        to_stdout(&what_it_means(real, &left_out));
        if all_agree {
            Ok(())
        } else {
            Err(Stop { message: String::new(), exit_code: 1 })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::render_json;
    use crate::{Event, Figure, Header, Table, Text, row, text};
    use crate::{exact, measured, modelled, raced};

    const T4: &str = "Tesla T4 (simulated)";
    const T4_SPEC: &str = "sim:t4";

    fn said(machine: &str, events: &[Event]) -> String {
        let header = Event::Header(Header {
            lab: "lab-99".to_owned(),
            title: "A lab".to_owned(),
            version: "1".to_owned(),
            machine: machine.to_owned(),
            device: "cuda:0".to_owned(),
            seed: 42,
        });
        let lines = std::iter::once(&header)
            .chain(events)
            .map(|event| format!("{}\n", render_json::render(event)));
        lines.collect()
    }

    fn some_of_each(loss: f64, time: Figure) -> Vec<Event> {
        vec![
            Event::Section {
                number: "4".to_owned(),
                title: "Training".to_owned(),
                apart: None,
                machine: None,
            },
            Event::Line(text!("loss {} after {}", exact("loss", loss), time.clone())),
            Event::Table(Table::new(["step", "time"]).row(row!["one", time])),
            Event::Report(
                "CUDA error: device-side assert triggered (here)\nSearch".to_owned(),
            ),
        ]
    }

    #[test]
    fn times_and_machines_may_differ_and_nothing_else() {
        let book = said(T4, &some_of_each(0.5, modelled("time", 1.25)));
        let real = |events: &[Event]| {
            compare(&book, &said("NVIDIA H200", events)).unwrap().differences
        };
        let mut events = some_of_each(0.5, measured("time", 7.0));
        assert_eq!(real(&events), [""; 0]);
        events[3] = Event::Report(
            "CUDA error: device-side assert triggered (there)\nSearch".to_owned(),
        );
        events.insert(1, Event::Warning("a core too few".to_owned()));
        assert_eq!(real(&events), [""; 0]);

        assert_eq!(
            real(&some_of_each(0.5004, measured("time", 7.0))),
            [""; 0],
            "a library's products are rounded otherwise"
        );
        assert_eq!(
            real(&some_of_each(0.6, measured("time", 7.0))),
            ["section 4: line: expected \"0.5000\", found \"0.6000\""]
        );
        events[4] = Event::Report("CUDA error: out of memory".to_owned());
        assert_eq!(real(&events).len(), 1);
        events.pop();
        assert_eq!(real(&events), ["section 4: expected 5 events, found 4"]);
        events[2] = Event::Prose("something else".into());
        assert_eq!(real(&events), ["section 4: expected \"line\", found \"prose\""]);
    }

    #[test]
    fn a_simulated_gpu_is_compared_to_the_last_digit() {
        let book = said(T4, &some_of_each(0.5, modelled("time", 1.25)));
        let differences = |loss| {
            compare(&book, &said(T4, &some_of_each(loss, modelled("time", 7.0))))
                .unwrap()
        };
        assert_eq!(differences(0.5), Comparison::default());
        assert_eq!(
            differences(0.5004).differences,
            ["section 4: line: expected \"0.5000\", found \"0.5004\""]
        );
    }

    #[test]
    fn what_times_decide_may_differ_and_what_stands_beside_it_may_not() {
        let machine: Machine = T4_SPEC.parse().unwrap();
        let lab =
            |overlap: &str, ranking: [(&str, i64); 2], verdict: &str, sum: i64| {
                let rows =
                    ranking.map(|(name, bytes)| row![name, exact("workspace", bytes)]);
                let ranked = Table {
                    rows: rows.to_vec(),
                    ..Table::new(["algorithm", "workspace"]).ranked()
                };
                let sums = Table::new(["overlap", "sum"])
                    .row(row![raced("overlap", overlap), exact("sum", sum)]);
                let verdict = Event::Prose(Text::from(verdict).raced());
                machine.enter(|| {
                    said(T4, &[Event::Table(ranked), Event::Table(sums), verdict])
                })
            };
        let book = lab("yes", [("GEMM", 8), ("FFT", 0)], "It pays.", 3);
        let found = lab("no", [("FFT", 0), ("GEMM", 8)], "It does not.", 3);
        assert_eq!(compare(&book, &found).unwrap(), Comparison::default());

        let wrong = lab("no", [("FFT", 0), ("GEMM", 9)], "It does not.", 4);
        let differences = compare(&book, &wrong).unwrap().differences;
        assert_eq!(
            differences,
            [
                "table: expected \"8\", found \"9\"",
                "table: expected \"3\", found \"4\""
            ]
        );
    }

    #[test]
    fn a_section_apart_is_left_out_on_a_real_gpu_and_that_is_said() {
        let section = |number: &str, apart| Event::Section {
            number: number.to_owned(),
            title: "A section".to_owned(),
            apart,
            // The machine of a section says nothing about the lab's machine.
            machine: (number == "3").then(|| T4.to_owned()),
        };
        let lab = |machine: &str, line: &str| {
            let line = || Event::Line(line.into());
            let why = Some("nobody else has it");
            said(
                machine,
                &[
                    section("1", None),
                    line(),
                    section("2", why),
                    line(),
                    section("3", None),
                ],
            )
        };
        let book = lab(T4, "here");
        let real = compare(&book, &lab("NVIDIA H200", "there")).unwrap();
        assert_eq!(
            real.differences,
            ["section 1: line: expected \"here\", found \"there\""]
        );
        assert_eq!(real.left_out, [("2".to_owned(), "nobody else has it".to_owned())]);
        let simulated = compare(&book, &lab(T4, "there")).unwrap();
        assert_eq!((simulated.differences.len(), simulated.left_out.len()), (2, 0));

        let left_out: Vec<(&str, String, String)> =
            [("lab-05", "4", "it is"), ("lab-07", "2", "so"), ("lab-07", "3", "so")]
                .map(|(lab, section, why)| (lab, section.to_owned(), why.to_owned()))
                .to_vec();
        let said = what_it_means(true, &left_out);
        assert!(
            said.contains("Left out: lab-05, section 4, because it is.\n"),
            "{said}"
        );
        assert!(
            said.contains("Left out: lab-07, sections 2, 3, because so.\n"),
            "{said}"
        );
        assert!(
            said.ends_with(
                "may differ by a relative error of 0.001; everything else must be equal.\n"
            ),
            "{said}"
        );
    }

    /// A change of any exact figure of a lab is detected.
    #[test]
    fn every_exact_figure_of_a_lab_is_compared() {
        for lab in ["lab-07", "lab-09"] {
            let book = run(lab, T4_SPEC, &[]);
            let events: Vec<Json> =
                book.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let mut changed = 0;
            for event in &events[1..] {
                let alone = |event: &Json| format!("{}\n{event}\n", events[0]);
                for path in exact_figures(event, String::new()) {
                    let mut wrong = event.clone();
                    let figure = wrong.pointer_mut(&path).unwrap();
                    (figure["value"], figure["text"]) =
                        ("wrong".into(), "wrong".into());
                    let differences =
                        compare(&alone(event), &alone(&wrong)).unwrap().differences;
                    assert_eq!(differences.len(), 1, "{lab}: {path} of {event}");
                    changed += 1;
                }
            }
            assert!(changed > 10, "{lab}: {changed}");
        }
    }

    /// The paths of exact figures in an event.
    fn exact_figures(json: &Json, path: String) -> Vec<String> {
        match json {
            Json::Object(_) if json["raced"] == true => Vec::new(),
            Json::Object(_) if json["kind"] == "exact" => vec![path],
            Json::Object(parts) => parts
                .iter()
                .flat_map(|(key, part)| exact_figures(part, format!("{path}/{key}")))
                .collect(),
            Json::Array(parts) => {
                let parts = parts.iter().enumerate();
                parts
                    .flat_map(|(at, part)| exact_figures(part, format!("{path}/{at}")))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_card_is_compared_with_one_that_has_its_types() {
        for (gpu, reference) in [
            ("sim:t4", "sim:t4"),
            ("sim:rtx4090x2", "sim:rtx4090"),
            ("sim:h200", "sim:h200"),
            ("none", "sim:t4"),
        ] {
            assert_eq!(alike(&gpu.parse().unwrap()), reference);
        }
    }

    #[test]
    fn races_are_expected_of_simulated_gpus_only() {
        let race = Event::Report("error[GPU0003]: Data race on cuda:0: …".to_owned());
        let book = said(T4, &[race]);
        let differences =
            |machine| compare(&book, &said(machine, &[])).unwrap().differences;
        assert_eq!(differences("NVIDIA H200"), [""; 0]);
        assert_eq!(differences("NVIDIA H200 (simulated)").len(), 1);
    }
}
