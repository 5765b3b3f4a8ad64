//! Whether a machine shows what the book shows: every lab runs there and on the simulated card that the snapshots are
//! of, and what it says is compared event by event, times and facts of the hardware aside.

use std::process::{Command, ExitCode};

use clap::Parser;
use serde_json::Value as Json;
use todevice::{GpuSpec, Machine, cuda};

use crate::LABS;

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

/// What differs between two runs, with the section it is in.
pub fn compare(expected: &str, found: &str) -> Result<Vec<String>, String> {
    let (expected, found) = (events(expected)?, events(found)?);
    let mut differences = Vec::new();
    let mut section = String::new();
    for (expected, found) in expected.iter().zip(&found) {
        if let Some(number) = expected["number"].as_str() {
            section = format!("section {number}: ");
        }
        if shape(expected) != shape(found) {
            let (wanted, seen) = first_difference(&shape(expected), &shape(found));
            differences.push(format!("{section}{}: expected {wanted}, found {seen}", expected["event"]));
            if expected["event"] != found["event"] {
                return Ok(differences); // From here on nothing is where it was.
            }
        }
    }
    if expected.len() != found.len() {
        differences.push(format!("{section}expected {} events, found {}", expected.len(), found.len()));
    }
    Ok(differences)
}

fn events(lines: &str) -> Result<Vec<Json>, String> {
    lines.lines().map(|line| serde_json::from_str(line).map_err(|_| line.to_owned())).collect()
}

/// An event without what may differ from machine to machine.
fn shape(event: &Json) -> Json {
    match event["event"].as_str() {
        Some("header") => event["lab"].clone(),
        Some("picture") => event["caption"].clone(),
        Some("warning") => Json::Null,
        _ => without_times(event),
    }
}

/// The same with the value of each figure that is a time or a fact of the hardware taken out, also from the texts
/// it stands in.
fn without_times(json: &Json) -> Json {
    match json {
        Json::Object(object) if object.contains_key("kind") => match object["kind"].as_str() {
            Some("exact") => object["text"].clone(),
            _ => object["name"].clone(),
        },
        Json::Object(object) => {
            let mut text = object.get("text").and_then(Json::as_str).map(str::to_owned);
            for figure in object.get("figures").and_then(Json::as_array).into_iter().flatten() {
                if let (Some(text), Some(printed)) = (&mut text, figure["text"].as_str())
                    && figure["kind"] != "exact"
                {
                    *text = text.replacen(printed, "…", 1);
                }
            }
            let kept = object.iter().filter(|(key, _)| *key != "text" && *key != "header");
            let mut kept: serde_json::Map<_, _> =
                kept.map(|(key, value)| (key.clone(), without_times(value))).collect();
            // The words "modelled" and "measured" stand in the headers of tables.
            let header = object.get("header").map(|header| header.to_string());
            kept.extend(text.map(|text| ("text".to_owned(), text.into())));
            kept.extend(
                header.map(|header| ("header".to_owned(), header.replace("measured", "modelled").into())),
            );
            Json::Object(kept)
        }
        Json::Array(values) => values.iter().map(without_times).collect(),
        other => other.clone(),
    }
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

/// The simulated card that takes memory as the machine's does: cuBLAS works in more of it on compute capability 9.0.
fn alike(machine: &Machine) -> &'static str {
    match machine.enter(|| cuda::get_device_properties(0)) {
        Ok(properties) if (properties.major, properties.minor) == (9, 0) => "sim:h200",
        _ => "sim:t4",
    }
}

/// Exits with 0 if all labs are as in the book, with 1 if not, with 2 if a flag is wrong or the machine is not there.
pub fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => {
            let stop = crate::entry::stop(error);
            match stop.exit_code {
                0 => print!("{}", stop.message),
                _ => eprint!("{}", stop.message),
            }
            return ExitCode::from(stop.exit_code);
        }
    };
    let all = LABS.iter().map(|(name, _)| *name);
    let labs: Vec<&str> =
        all.filter(|lab| flags.labs.is_empty() || flags.labs.iter().any(|name| name == lab)).collect();
    if flags.alone {
        labs.iter().for_each(|lab| print!("{}", run(lab, &flags.gpu.to_string())));
        return ExitCode::SUCCESS;
    }
    let machine = match flags.gpu.machine() {
        Ok(machine) => machine,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let reference = alike(&machine);
    println!("{machine} against --gpu {reference}, times aside");
    drop(machine);
    let mut all_agree = true;
    for lab in labs {
        let differences = verify(lab, &flags.gpu, reference).unwrap_or_else(|error| vec![error]);
        all_agree &= differences.is_empty();
        println!("{lab}: {}", if differences.is_empty() { "the same" } else { "differs" });
        differences.iter().for_each(|difference| println!("  {difference}"));
    }
    if all_agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
