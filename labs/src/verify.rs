//! Whether a machine shows what the book shows: every lab runs there and on the simulated card that the snapshots are
//! of, and what it says is compared event by event, times and facts of the hardware aside.

use std::process::{Command, ExitCode};

use clap::Parser;
use serde_json::Value as Json;
use todevice::{GpuSpec, Machine, cuda};

use crate::entry::{Stop, wrong};
use crate::stdio::to_stdout;
use crate::{LABS, program};

/// Runs every lab on a machine, and says what differs from the book
#[derive(Parser)]
#[command(name = "verify", version, disable_help_subcommand = true)]
pub struct Flags {
    /// GPUs to run on
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on: {}", GpuSpec::GRAMMAR))]
    pub gpu: GpuSpec,

    /// Labs to run [default: all]
    #[arg(value_name = "LAB", value_parser = lab_name)]
    pub labs: Vec<String>,

    /// Runs one lab, as JSON: what each child process does
    #[arg(long, hide = true)]
    pub alone: bool,
}

fn lab_name(name: &str) -> Result<String, String> {
    let known: Vec<&str> = LABS.iter().map(|(name, _)| *name).collect();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected one of {}", known.join(", "))),
    }
}

/// Runs a lab on these GPUs, in a process of its own: an error of a GPU can end all that a process may do with it.
pub fn verify(lab: &str, gpu: &GpuSpec, reference: &str) -> Result<Vec<String>, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    let child = Command::new(this).args(["--alone", "--gpu", &gpu.to_string(), lab]).output();
    let child = child.map_err(|error| format!("{lab} does not start: {error}"))?;
    let found = String::from_utf8_lossy(&child.stdout);
    let mut differences = compare(&run(lab, reference), &found)?;
    // It says why in its last event; unless it never got there.
    if !child.status.success() && !found.contains("\"event\":\"failure\"") {
        let errors = String::from_utf8_lossy(&child.stderr);
        differences.push(format!("{}: {}", child.status, errors.trim()));
    }
    Ok(differences)
}

/// What a lab says on a machine, as JSON Lines.
pub fn run(lab: &str, gpu: &str) -> String {
    let (_, run) = LABS.iter().find(|(name, _)| *name == lab).expect("a name that was checked");
    let captured = run(&["--gpu", gpu]);
    if captured.json.is_empty() { captured.errors } else { captured.json }
}

/// Sections that go their own way on a real GPU: what other programs hold; by algorithms of the cuDNN that is there, if
/// any is; after an error that stays; with as many workers as the computer has cores.
const OTHERWISE_ON_REAL_GPUS: [(&str, &str); 8] = [
    ("lab-05", "4"),
    ("lab-07", "2"),
    ("lab-07", "3"),
    ("lab-07", "4"),
    ("lab-07", "5"),
    ("lab-07", "6"),
    ("lab-08", "7"),
    ("lab-09", "5"),
];

/// What a lab said, but for a section.
fn without_section(events: Vec<Json>, lab: &str, section: &str) -> Vec<Json> {
    if events.first().is_none_or(|header| header["lab"] != lab) {
        return events;
    }
    let mut within = false;
    let mut outside = |event: &Json| {
        within = event["number"].as_str().map_or(within, |number| number == section);
        !within
    };
    events.into_iter().filter(|event| outside(event)).collect()
}

/// What differs between two runs, with the section it is in.
pub fn compare(expected: &str, found: &str) -> Result<Vec<String>, String> {
    let (mut expected, mut found) = (events(expected)?, events(found)?);
    if !found.iter().any(|event| event["machine"].as_str().is_some_and(|name| name.ends_with("(simulated)")))
    {
        // Only a simulated GPU finds data races.
        let race = |text: &str| text.starts_with("error[GPU0003]") || text.starts_with("Data race");
        expected.retain(|event| !event["text"].as_str().is_some_and(race));
        for (lab, section) in OTHERWISE_ON_REAL_GPUS {
            expected = without_section(expected, lab, section);
            found = without_section(found, lab, section);
        }
    }
    let mut differences = Vec::new();
    let mut section = String::new();
    for (expected, found) in expected.iter().zip(&found) {
        if let Some(number) = expected["number"].as_str() {
            section = format!("section {number}: ");
        }
        let kind = expected["event"].as_str().unwrap_or_default();
        if expected["event"] != found["event"] {
            differences.push(format!("{section}expected {}, found {}", expected["event"], found["event"]));
            return Ok(differences); // From here on nothing is where it was.
        }
        if kind != "header" {
            let (expected, found) = comparable(expected, found);
            if expected != found {
                let (wanted, seen) = first_difference(&expected, &found);
                differences.push(format!("{section}{kind}: expected {wanted}, found {seen}"));
            }
        }
    }
    if expected.len() != found.len() {
        differences.push(format!("{section}expected {} events, found {}", expected.len(), found.len()));
    }
    Ok(differences)
}

/// What a lab said; of what a machine warns is its own.
fn events(lines: &str) -> Result<Vec<Json>, String> {
    let events = lines.lines().map(|line| serde_json::from_str(line).map_err(|_| line.to_owned()));
    events.filter(|event| !event.as_ref().is_ok_and(|event: &Json| event["event"] == "warning")).collect()
}

/// Two events, or parts of them, without what may differ from machine to machine: drawings, and figures that are not
/// exact on both.
fn comparable(a: &Json, b: &Json) -> (Json, Json) {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) if a.contains_key("kind") && b.contains_key("kind") => {
            let compared = if is_compared(&a.clone().into(), &b.clone().into()) { "text" } else { "name" };
            (a[compared].clone(), b[compared].clone())
        }
        (Json::Object(a), Json::Object(b)) => {
            let (mut kept_a, mut kept_b) = (serde_json::Map::new(), serde_json::Map::new());
            for (key, value) in a.iter().filter(|(key, _)| !["svg", "text"].contains(&key.as_str())) {
                let (value_a, value_b) = comparable(value, b.get(key).unwrap_or(&Json::Null));
                kept_a.insert(key.clone(), value_a);
                kept_b.insert(key.clone(), value_b);
            }
            if !a.contains_key("svg") {
                let (text_a, text_b) = texts(a, b);
                kept_a.insert("text".to_owned(), text_a.into());
                kept_b.insert("text".to_owned(), text_b.into());
            }
            (kept_a.into(), kept_b.into())
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let (a, b): (Vec<Json>, Vec<Json>) = a.iter().zip(b).map(|(a, b)| comparable(a, b)).unzip();
            (a.into(), b.into())
        }
        _ => (a.clone(), b.clone()),
    }
}

/// Whether two figures have to be the same: those that are exact on both, unless they agree to a thousandth. (Products
/// of a library are rounded otherwise than ours, and a training carries that on.)
fn is_compared(a: &Json, b: &Json) -> bool {
    let float = |figure: &Json| figure["value"].as_f64().filter(|_| figure["value"].is_f64());
    let close = match (float(a), float(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-3 * a.abs().max(b.abs()),
        _ => false,
    };
    a["kind"] == "exact" && b["kind"] == "exact" && !close
}

type Object = serde_json::Map<String, Json>;

/// The texts of two events, less the figures in them that are not exact on both.
fn texts(a: &Object, b: &Object) -> (String, String) {
    let text = |event: &Object| event.get("text").and_then(Json::as_str).unwrap_or_default().to_owned();
    let figures = |event: &Object| event.get("figures").and_then(Json::as_array).cloned().unwrap_or_default();
    let (mut text_a, mut text_b) = (text(a), text(b));
    for (a, b) in figures(a).iter().zip(&figures(b)).filter(|(a, b)| !is_compared(a, b)) {
        for (text, figure) in [(&mut text_a, a), (&mut text_b, b)] {
            *text = text.replacen(figure["text"].as_str().unwrap_or_default(), "…", 1);
        }
    }
    (without_details(&text_a), without_details(&text_b))
}

/// An error without what only this machine can say: the sizes of the GPU and of what others hold, and which work it
/// may have been that failed.
fn without_details(text: &str) -> String {
    if !text.contains("CUDA error") && !text.contains("CUDA out of memory") {
        return text.to_owned();
    }
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (start, end) in [("total capacity of", "Of the allocated memory"), ("assert triggered (", ")")] {
        if let Some(from) = text.find(start).map(|at| at + start.len())
            && let Some(length) = text[from..].find(end)
        {
            text.replace_range(from..from + length, "…");
        }
    }
    text
}

/// Where two shapes begin to differ.
fn first_difference(expected: &Json, found: &Json) -> (Json, Json) {
    let within = match (expected, found) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => a.iter().zip(b).find(|(a, b)| a != b),
        (Json::Object(a), Json::Object(b)) => {
            a.iter().filter_map(|(key, a)| Some((a, b.get(key)?))).find(|(a, b)| a != b)
        }
        _ => None,
    };
    let in_lines =
        |a: &str, b: &str| a.lines().zip(b.lines()).find(|(a, b)| a != b).map(|(a, b)| (a.into(), b.into()));
    match (within, expected, found) {
        (Some((a, b)), ..) => first_difference(a, b),
        (None, Json::String(a), Json::String(b)) => {
            in_lines(a, b).unwrap_or((expected.clone(), found.clone()))
        }
        _ => (expected.clone(), found.clone()),
    }
}

/// The simulated card that has the types of the machine's, and takes memory as it does: cuBLAS works in more of it on
/// compute capability 9.0.
fn alike(machine: &Machine) -> &'static str {
    match machine.enter(|| cuda::get_device_properties(0)) {
        Ok(properties) if (properties.major, properties.minor) == (9, 0) => "sim:h200",
        Ok(properties) if properties.major >= 8 => "sim:rtx4090",
        _ => "sim:t4",
    }
}

/// Exits with 0 if all labs are as in the book, with 1 if not, with 2 if a flag is wrong or the machine is not there.
pub fn main() -> ExitCode {
    program(|flags: Flags| {
        let all = LABS.iter().map(|(name, _)| *name);
        let labs: Vec<&str> =
            all.filter(|lab| flags.labs.is_empty() || flags.labs.iter().any(|name| name == lab)).collect();
        if flags.alone {
            labs.iter().for_each(|lab| to_stdout(&run(lab, &flags.gpu.to_string())));
            return Ok(());
        }
        let machine = flags.gpu.machine().map_err(wrong)?;
        let reference = alike(&machine);
        to_stdout(&format!("{machine} against --gpu {reference}, times aside\n"));
        drop(machine);
        let mut all_agree = true;
        for lab in labs {
            let differences = verify(lab, &flags.gpu, reference).unwrap_or_else(|error| vec![error]);
            all_agree &= differences.is_empty();
            let verdict = if differences.is_empty() { "the same" } else { "differs" };
            to_stdout(&format!("{lab}: {verdict}\n"));
            differences.iter().for_each(|difference| to_stdout(&format!("  {difference}\n")));
        }
        if all_agree { Ok(()) } else { Err(Stop { message: String::new(), exit_code: 1 }) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{exact, measured, modelled};
    use crate::{Event, Figure, Header, Table, render_json, row, text};

    fn said(machine: &str, events: &[Event]) -> String {
        let header = Event::Header(Header {
            lab: "lab-99".to_owned(),
            title: "A lab".to_owned(),
            version: "1".to_owned(),
            machine: machine.to_owned(),
            device: "cuda:0".to_owned(),
            seed: 42,
        });
        let lines =
            std::iter::once(&header).chain(events).map(|event| format!("{}\n", render_json::render(event)));
        lines.collect()
    }

    fn some_of_each(loss: f64, time: Figure) -> Vec<Event> {
        vec![
            Event::Section { number: "4".to_owned(), title: "Training".to_owned() },
            Event::Line(text!("loss {} after {}", exact("loss", loss), time.clone())),
            Event::Table(Table::new(["step", "time"]).row(row!["one", time])),
            Event::Report("CUDA error: device-side assert triggered (here)\nSearch".to_owned()),
        ]
    }

    #[test]
    fn times_and_machines_may_differ_and_nothing_else() {
        let book = said("Tesla T4 (simulated)", &some_of_each(0.5, modelled("time", 1.25)));
        let real = |events: &[Event]| compare(&book, &said("NVIDIA H200", events)).unwrap();
        let mut events = some_of_each(0.5, measured("time", 7.0));
        assert_eq!(real(&events), [""; 0]);
        events[3] = Event::Report("CUDA error: device-side assert triggered (there)\nSearch".to_owned());
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
        let book = said("Tesla T4 (simulated)", &[race]);
        assert_eq!(compare(&book, &said("NVIDIA H200", &[])).unwrap(), [""; 0]);
        assert_eq!(compare(&book, &said("NVIDIA H200 (simulated)", &[])).unwrap().len(), 1);
    }
}
