//! What if? Experiments with sliders, for a page: the functions of the labs, small enough to run while the reader moves
//! a slider.
//!
//! | experiment | what it runs |
//! | --- | --- |
//! | `step` | a training step of [lab 03](crate::lab_03_training_loop) |
//! | `memory` | two training steps of [lab 04](crate::lab_04_memory), block by block |
//! | `copies` | a copy beside a product, in one of the eight ways of [lab 09](crate::lab_09_feeding) |
//! | `loops` | one of the loops of lab 09 that keep a GPU waiting |
//!
//! Results that must not change with a slider, such as a loss, are computed again with other settings, and compared bit
//! for bit.

use drawing::Drawing;
use serde_json::{Value as Json, json};
use todevice::Machine;

mod copies;
mod dropped;
mod loops;
mod memory;
pub mod race;
mod step;

use dropped::timelines;
use race::Raced;

#[derive(Debug)]
pub struct WhatIf {
    pub name: &'static str,
    pub title: &'static str,
    pub knobs: &'static [Knob],
    run: fn(&Setting) -> crate::Result<Shown>,
}

/// A setting that the reader can change.
#[derive(Debug, PartialEq, Eq)]
pub struct Knob {
    /// For example `batch_size`, as in a link.
    pub name: &'static str,
    pub label: &'static str,
    /// The possible values from left to right: as in a link, and in words.
    pub values: &'static [(&'static str, &'static str)],
    /// The index of the initial value.
    pub first: usize,
}

/// The index of each knob's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    knobs: &'static [Knob],
    chosen: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub drawing: Drawing,
    /// A description with figures.
    pub words: String,
    /// Comparisons with other settings.
    pub same: Vec<Compared>,
}

/// A result that must not depend on a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// For example `The loss is 1.0731`.
    pub what: String,
    /// The other settings: `from pinned memory`.
    pub with: Vec<String>,
    /// The precision: `bit for bit`.
    pub exactly: &'static str,
    /// Whether all results were the same.
    pub holds: bool,
}

impl Compared {
    fn words(&self) -> String {
        let with = match &self.with[..] {
            [] => return format!("{}.", self.what),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        match self.holds {
            true => {
                format!("{}. This is the same, {}, {with}.", self.what, self.exactly)
            }
            false => format!("{}. This is not the same {with}.", self.what),
        }
    }
}

pub const ALL: [WhatIf; 4] =
    [step::WHAT_IF, memory::WHAT_IF, copies::WHAT_IF, loops::WHAT_IF];

const CARD: Knob = Knob {
    name: "gpu",
    label: "Card",
    values: &[("t4", "Tesla T4"), ("rtx4090", "RTX 4090"), ("h200", "H200")],
    first: 0,
};

pub fn named(name: &str) -> Option<&'static WhatIf> {
    static KNOWN: [WhatIf; 4] = ALL;
    KNOWN.iter().find(|known| known.name == name)
}

/// Answers a request of the page as JSON. The error is one line.
///
/// | question | answer |
/// | --- | --- |
/// | `what_if`, the name of an experiment, and its knobs such as `batch_size=64` | a picture, its words, and what was compared |
/// | `race`, a card, a batch, and `true` if that is pinned | what the first page plays |
/// | `timelines`, and of each its title and its file | a picture and its words |
pub fn answer(words: &[&str]) -> Result<Json, String> {
    match words {
        ["what_if", name, knobs @ ..] => {
            let known = named(name)
                .ok_or_else(|| format!("there is no experiment '{name}'"))?;
            let setting = known.setting(knobs.iter().copied())?;
            Ok(known.run(&setting).map_err(|error| error.to_string())?.to_json())
        }
        ["race", card, batch, pinned] => {
            let batch =
                batch.parse().map_err(|_| format!("'{batch}' is not a batch size"))?;
            let raced = Raced::run(card, batch, *pinned == "true");
            Ok(raced.map_err(|error| error.to_string())?.to_json())
        }
        ["timelines", titles_and_files @ ..] => timelines(titles_and_files),
        [question, ..] => Err(format!("'{question}' is not known here")),
        [] => Err("nothing was asked".to_owned()),
    }
}

impl WhatIf {
    pub fn first(&self) -> Setting {
        Setting {
            knobs: self.knobs,
            chosen: self.knobs.iter().map(|knob| knob.first).collect(),
        }
    }

    /// The initial setting with some knobs changed, such as `batch_size=256`. The error names an invalid one.
    pub fn setting<'a>(
        &self,
        chosen: impl IntoIterator<Item = &'a str>,
    ) -> Result<Setting, String> {
        let mut setting = self.first();
        for word in chosen {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let known = self.knobs.iter().map(|knob| knob.name).collect::<Vec<_>>();
            let Some(knob) = known.iter().position(|known| *known == name) else {
                return Err(format!(
                    "'{name}' cannot be changed here: say {}",
                    known.join(", ")
                ));
            };
            let values = self.knobs[knob].values;
            let Some(place) = values.iter().position(|known| known.0 == value) else {
                let values: Vec<&str> = values.iter().map(|known| known.0).collect();
                return Err(format!(
                    "{name}={value} is not among {}",
                    values.join(", ")
                ));
            };
            setting.chosen[knob] = place;
        }
        Ok(setting)
    }

    /// Runs the experiment on a separate machine.
    pub fn run(&self, setting: &Setting) -> crate::Result<Shown> {
        (self.run)(setting)
    }
}

impl Setting {
    fn of(&self, name: &str) -> &'static str {
        let knob = self
            .knobs
            .iter()
            .position(|knob| knob.name == name)
            .expect("it has this knob");
        self.knobs[knob].values[self.chosen[knob]].0
    }

    fn number(&self, name: &str) -> usize {
        self.of(name).parse().expect("all its values are numbers")
    }

    /// The value of a knob in words: `Tesla T4`.
    fn words(&self, name: &str) -> &'static str {
        let knob = self
            .knobs
            .iter()
            .position(|knob| knob.name == name)
            .expect("it has this knob");
        self.knobs[knob].values[self.chosen[knob]].1
    }

    fn with(&self, name: &str, value: &str) -> Setting {
        let mut other = self.clone();
        let knob = self
            .knobs
            .iter()
            .position(|knob| knob.name == name)
            .expect("it has this knob");
        let place = self.knobs[knob].values.iter().position(|known| known.0 == value);
        other.chosen[knob] = place.expect("it has this value");
        other
    }

    /// A fixed machine with the setting's card.
    fn machine(&self) -> crate::Result<Machine> {
        Ok(format!("sim:{}", self.of("gpu")).parse()?)
    }
}

impl Shown {
    pub fn to_json(&self) -> Json {
        let same =
            |same: &Compared| json!({ "words": same.words(), "holds": same.holds });
        let mut json = picture(&self.drawing, &self.words);
        json["same"] = self.same.iter().map(same).collect();
        json
    }

    pub fn compared(&self) -> String {
        self.same.iter().map(Compared::words).collect::<Vec<_>>().join(" ")
    }
}

fn picture(drawing: &Drawing, words: &str) -> Json {
    json!({ "svg": drawing.svg, "narrow": drawing.narrow, "words": words })
}

/// The bits of numbers, for comparisons bit for bit.
fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every setting that differs from the initial one in a single knob.
    fn settings(what_if: &WhatIf) -> Vec<Setting> {
        let mut all = vec![what_if.first()];
        for (knob, Knob { values, .. }) in what_if.knobs.iter().enumerate() {
            for place in 0..values.len() {
                let mut setting = what_if.first();
                setting.chosen[knob] = place;
                all.push(setting);
            }
        }
        all
    }

    #[test]
    fn every_setting_runs_says_that_its_times_are_modelled_and_what_must_not_change_does_not()
     {
        for what_if in &ALL {
            for setting in settings(what_if) {
                let shown = what_if
                    .run(&setting)
                    .unwrap_or_else(|error| panic!("{setting:?}: {error}"));
                assert!(!shown.same.is_empty(), "{}", what_if.name);
                assert!(
                    shown.same.iter().all(|same| same.holds),
                    "{setting:?}: {}",
                    shown.compared()
                );
                let has_time = [" ns", " µs", " ms", " s "]
                    .iter()
                    .any(|unit| shown.words.contains(unit));
                assert!(
                    !has_time || shown.words.contains("modelled"),
                    "{}",
                    shown.words
                );
            }
        }
    }

    #[test]
    fn an_experiment_is_the_same_every_time() {
        for what_if in &ALL {
            let run = || what_if.run(&what_if.first()).unwrap();
            assert_eq!(run(), run(), "{}", what_if.name);
        }
    }

    #[test]
    fn every_knob_changes_something() {
        for what_if in &ALL {
            let first = what_if.run(&what_if.first()).unwrap();
            for (knob, Knob { name, values, .. }) in what_if.knobs.iter().enumerate() {
                let changes = (0..values.len()).any(|place| {
                    let mut setting = what_if.first();
                    setting.chosen[knob] = place;
                    what_if.run(&setting).unwrap().words != first.words
                });
                assert!(changes, "{}: {name}", what_if.name);
            }
        }
    }

    #[test]
    fn a_question_of_the_page_has_an_answer_or_one_line() {
        let step = answer(&["what_if", "step", "gpu=h200"]).unwrap();
        let shown = named("step")
            .unwrap()
            .run(&named("step").unwrap().setting(["gpu=h200"]).unwrap())
            .unwrap();
        assert_eq!(
            (&step["words"], &step["svg"]),
            (&json!(shown.words), &json!(shown.drawing.svg))
        );
        assert_eq!(step["same"], json!([{ "words": shown.compared(), "holds": true }]));
        let race = answer(&["race", "t4", "256", "false"]).unwrap();
        assert!(
            race["cpu"]["strips"].as_str().unwrap().contains("<svg ")
                && race["end"].as_u64() > race["gpu"]["done"].as_u64()
        );
        assert!(answer(&["timelines", "lab 03", ""]).unwrap()["svg"].is_string());
        for (words, error) in [
            (&[][..], "nothing was asked"),
            (&["weather"], "'weather' is not known here"),
            (&["what_if"], "'what_if' is not known here"),
            (&["what_if", "speed"], "there is no experiment 'speed'"),
            (
                &["what_if", "step", "gpu=a100"],
                "gpu=a100 is not among t4, rtx4090, h200",
            ),
            (&["race", "t4", "many", "true"], "'many' is not a batch size"),
            (&["race", "t4", "65", "true"], "there is no batch of 65 here"),
            (&["timelines", "x"], "there is room for one to 4 timelines"),
        ] {
            assert_eq!(answer(words).unwrap_err(), error);
        }
    }

    #[test]
    fn a_wrong_setting_is_told_with_what_there_is() {
        let step = named("step").unwrap();
        assert_eq!(step.setting(["batch_size=64"]).unwrap(), step.first());
        assert_eq!(
            step.setting(["speed=9"]).unwrap_err(),
            "'speed' cannot be changed here: say gpu, batch_size, copy"
        );
        let wrong = step.setting(["gpu=a100"]).unwrap_err();
        assert_eq!(wrong, "gpu=a100 is not among t4, rtx4090, h200");
        assert!(step.setting(["", "="]).is_err() && named("nothing").is_none());
    }

    #[test]
    fn what_is_not_the_same_is_said_not_to_be() {
        let mut same = Compared {
            what: "The loss is 1".to_owned(),
            with: vec!["on the CPU".to_owned()],
            exactly: "bit for bit",
            holds: true,
        };
        assert_eq!(
            same.words(),
            "The loss is 1. This is the same, bit for bit, on the CPU."
        );
        same.holds = false;
        same.with.push("from pinned memory".to_owned());
        assert_eq!(
            same.words(),
            "The loss is 1. This is not the same on the CPU and from pinned memory."
        );
    }
}
