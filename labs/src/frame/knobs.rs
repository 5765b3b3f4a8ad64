//! The flags of a lab that a page lets its reader change, from their declarations.

use clap::{Arg, ArgAction, Command};
use serde_json::{Value as Json, json};

const MACHINES: [(&str, &str); 6] = [
    ("sim:t4", "a Tesla T4"),
    ("sim:t4x2", "two Tesla T4"),
    ("sim:rtx4090", "a GeForce RTX 4090"),
    ("sim:rtx5090", "a GeForce RTX 5090"),
    ("sim:h200", "an H200"),
    ("none", "no GPU"),
];

/// A flag that the reader of a page can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// `--batch-size`
    pub flag: String,
    pub help: String,
    /// The default value; empty if the flag has none.
    pub first: String,
    pub takes: Takes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    Number {
        least: u64,
        most: u64,
    },
    /// One of these values, each with its description, if any.
    Choice(Vec<(String, String)>),
    File,
    /// No value: the flag is set or not.
    Nothing,
}

/// The knobs of a lab: its own flags that work in a page, then the machine, its host and the seed.
pub fn knobs(command: &Command) -> Vec<Knob> {
    let own = command.get_arguments().filter(|arg| arg.get_help_heading().is_none());
    let mut knobs: Vec<Knob> = own.filter_map(|arg| knob(command, arg)).collect();
    let choice = |flag: &str, help: &str, values: &[(&str, &str)]| Knob {
        flag: flag.to_owned(),
        help: help.to_owned(),
        first: values[0].0.to_owned(),
        takes: Takes::Choice(
            values
                .iter()
                .map(|(value, words)| (value.to_string(), words.to_string()))
                .collect(),
        ),
    };
    knobs.push(choice("--gpu", "GPUs to run on", &MACHINES));
    knobs.push(choice(
        "--host",
        "Host to model the time of, together with the simulated GPUs",
        &[("laptop", "a laptop with this crate"), ("pytorch", "a laptop with PyTorch")],
    ));
    knobs.push(Knob {
        flag: "--seed".to_owned(),
        help: "Seed of every random number".to_owned(),
        first: "42".to_owned(),
        takes: Takes::Number { least: 0, most: u32::MAX.into() },
    });
    knobs
}

fn knob(command: &Command, arg: &Arg) -> Option<Knob> {
    let flag = format!("--{}", arg.get_long()?);
    let name =
        arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    let takes = match (arg.get_action(), name) {
        (ArgAction::SetTrue, _) if flag == "--help" || flag == "--version" => {
            return None;
        }
        (
            ArgAction::Help
            | ArgAction::HelpShort
            | ArgAction::HelpLong
            | ArgAction::Version,
            _,
        ) => return None,
        (ArgAction::SetTrue, _) => Takes::Nothing,
        (_, Some("FILE")) => Takes::File,
        // A page has no folders.
        (_, Some("DIR")) => return None,
        _ => {
            let values = arg.get_possible_values();
            let words = |value: &clap::builder::PossibleValue| {
                (
                    value.get_name().to_owned(),
                    value.get_help().map(ToString::to_string).unwrap_or_default(),
                )
            };
            match values.is_empty() {
                false => Takes::Choice(values.iter().map(words).collect()),
                true => {
                    let (least, most) = range(command, &flag)?;
                    Takes::Number { least, most }
                }
            }
        }
    };
    let first = arg
        .get_default_values()
        .first()
        .map(|value| value.to_string_lossy().into_owned());
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    Some(Knob { flag, help, first: first.unwrap_or_default(), takes })
}

/// The range of a number. A parser is a function, so the range is only in its error message.
fn range(command: &Command, flag: &str) -> Option<(u64, u64)> {
    let refused =
        command.clone().try_get_matches_from([flag, "none"]).err()?.to_string();
    let (least, most) =
        refused.split_once("a whole number from ")?.1.split_once(" to ")?;
    let most: String = most.chars().take_while(char::is_ascii_digit).collect();
    Some((least.parse().ok()?, most.parse().ok()?))
}

pub fn to_json(knobs: &[Knob]) -> Json {
    let one = |Knob { flag, help, first, takes }: &Knob| {
        let mut json = json!({ "flag": flag, "help": help, "first": first });
        match takes {
            Takes::Number { least, most } => json["range"] = json!([least, most]),
            Takes::Choice(values) => json["choices"] = json!(values),
            Takes::File => json["file"] = json!(true),
            Takes::Nothing => json["switch"] = json!(true),
        }
        json
    };
    knobs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LABS;

    #[test]
    fn every_flag_of_a_lab_is_a_knob_or_names_a_folder() {
        for lab in &LABS {
            let command = (lab.command)();
            let knobs = knobs(&command);
            for arg in
                command.get_arguments().filter(|arg| arg.get_help_heading().is_none())
            {
                let Some(long) =
                    arg.get_long().filter(|long| !["help", "version"].contains(long))
                else {
                    continue;
                };
                let is_folder =
                    arg.get_value_names().is_some_and(|names| names[0] == "DIR");
                let found = knobs.iter().find(|knob| knob.flag[2..] == *long);
                assert_eq!(found.is_some(), !is_folder, "{} --{long}", lab.name);
                if let Some(Knob {
                    takes: Takes::Number { least, most }, first, ..
                }) = found
                {
                    let first = first.parse().unwrap_or(*least);
                    assert!((*least..=*most).contains(&first), "{} --{long}", lab.name);
                }
            }
        }
    }

    #[test]
    fn machines_that_a_page_offers_are_machines() {
        for (gpu, _) in MACHINES {
            assert!(gpu.parse::<todevice::GpuSpec>().is_ok(), "{gpu}");
        }
    }
}
