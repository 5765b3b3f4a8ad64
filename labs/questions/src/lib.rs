//! The questions of the chapters, from `labs/questions/03.toml`, as the book and a terminal ask them:
//!
//! ```toml
//! [[question]]
//! id = "03-copies"
//! ask = "How many copies to the GPU does the training make?"
//!
//! [[question.choice]]
//! text = "{{#figure 03 t4 copies_to_device}}"
//! right = true
//!
//! [[question.choice]]
//! text = "48, one for each step"
//! because = "A batch is two tensors: the features and the targets."
//! ```
//!
//! One choice is right, and every other says why it is not. Texts are Markdown. A number in a right answer comes from a
//! figure of the lab, so that it stays right. Digits are checked; a number in words, `four bytes`, is for whoever writes
//! it to check.
//!
//! A package of its own: labs are run without the library that reads TOML.

mod figure;

use labs::{Event, Listed};
use serde::Deserialize;
use toml::Spanned;

pub use figure::{figure, find};

/// The folder of the files, from the root of the checkout.
pub const FOLDER: &str = "labs/questions";

/// Questions that stand in another chapter than the one they were written for, with that one. Their ids stay.
const MOVED: [(&str, &str); 3] = [("05-util", "09"), ("05-loader", "09"), ("05-nothing-odd", "09")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    question: Vec<Spanned<Asked>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    id: String,
    ask: String,
    choice: Vec<Spanned<Chosen>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    text: String,
    #[serde(default)]
    right: bool,
    because: Option<String>,
}

/// A question, with its numbers in it.
#[derive(Clone, Debug)]
pub struct Question {
    /// Never changes: progress is kept under it.
    pub id: String,
    pub ask: String,
    /// In an order that gives nothing away, and that stays.
    pub choices: Vec<Choice>,
    /// The byte of the file at which it begins.
    pub at: usize,
}

/// A choice, and why it is right or wrong.
#[derive(Clone, Debug)]
pub struct Choice {
    pub text: String,
    pub right: bool,
    /// Empty only where it is right.
    pub because: String,
    /// Its place in the file, from 1: progress is kept with it.
    pub place: usize,
    /// The byte of the file at which it begins.
    pub at: usize,
}

/// What a lab says, by its number and the name of the run. The error says what there is.
pub type Runs<'a> = dyn Fn(&str, &str) -> Result<Vec<Event>, String> + 'a;

/// What is wrong in a file: at which byte, and what would be right.
pub type Mistake = (usize, String);

/// The questions of a chapter, from the text of its file.
pub fn read(chapter: &str, text: &str, runs: &Runs) -> Result<Vec<Question>, Vec<Mistake>> {
    let File { question: asked } = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        vec![(start, error.message().trim().replace('\n', "; "))]
    })?;
    let mut mistakes = Vec::new();
    let mut questions: Vec<Question> = Vec::new();
    for asked in asked {
        let at = asked.span().start;
        let Asked { id, ask, choice: chosen } = asked.into_inner();
        let of_chapter = id.strip_prefix(chapter).is_some_and(|rest| rest.starts_with('-'))
            || MOVED.contains(&(&id, chapter));
        if !of_chapter || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            mistakes.push((at, format!("the id `{id}` is not like `{chapter}-some-words`")));
        }
        if questions.iter().any(|question| question.id == id) {
            mistakes.push((at, format!("the id `{id}` comes twice")));
        }
        let right = chosen.iter().filter(|choice| choice.get_ref().right).count();
        if right != 1 {
            mistakes.push((at, format!("{right} choices are right: mark exactly one with `right = true`")));
        }
        if chosen.len() < 2 {
            mistakes.push((at, "there is nothing to choose: give at least two choices".to_owned()));
        }
        let mut shown = |at: usize, text: &str| {
            with_figures(&text.replace('\n', " "), runs).unwrap_or_else(|what| {
                mistakes.push((at, what));
                String::new()
            })
        };
        let ask = shown(at, &ask);
        let mut choices: Vec<Choice> = Vec::new();
        let mut wrong = Vec::new();
        for (place, choice) in (1..).zip(chosen) {
            let at = choice.span().start;
            let Chosen { text, right, because } = choice.into_inner();
            if let Some(number) = number_in(&text).filter(|_| right) {
                wrong.push((
                    at,
                    format!(
                        "the right answer says `{number}`: take the number from the lab, \
                         `{{{{#figure {chapter} t4 …}}}}`, or write the whole name as code if it is part of one"
                    ),
                ));
            }
            let text = shown(at, &text);
            if choices.iter().any(|choice| choice.text == text && !text.is_empty()) {
                wrong.push((at, format!("two choices say `{text}`")));
            }
            let because = shown(at, because.unwrap_or_default().trim());
            choices.push(Choice { text, right, because, place, at });
        }
        mistakes.extend(wrong);
        choices.sort_by_cached_key(|choice| hash(id.bytes().chain(choice.text.bytes())));
        questions.push(Question { id, ask, choices, at });
    }
    if mistakes.is_empty() { Ok(questions) } else { Err(mistakes) }
}

/// A text with the numbers that `{{#figure 03 t4 launches}}` in it stands for.
pub fn with_figures(text: &str, runs: &Runs) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, found)) = rest.split_once("{{#") {
        let (inside, after) = found
            .split_once("}}")
            .ok_or_else(|| format!("`{{{{#{found}` is never closed: end it with `}}}}`"))?;
        let words: Vec<&str> = inside.split_whitespace().collect();
        expanded += before;
        expanded += &figure(&words, runs)?;
        rest = after;
    }
    Ok(expanded + rest)
}

/// What a lab says when it is run here and now, as a terminal needs it.
pub fn run(lab: &str, run: &str) -> Result<Vec<Event>, String> {
    let lab = Listed::named(&format!("lab-{lab}")).ok_or_else(|| format!("no lab `{lab}`"))?;
    let run = lab
        .runs
        .iter()
        .find(|known| known.name == run)
        .ok_or_else(|| format!("{} has no run `{run}`", lab.name))?;
    let captured = (lab.run)(&[run.flags, run.steady].concat());
    match captured.exit_code {
        0 => Ok(captured.events),
        _ => Err(captured.errors),
    }
}

/// FNV-1a: the same on every computer and in every version of this program.
pub fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A number that a text states by itself, not by a figure. What has one in its name, `a T4` or `0-dim`, states none,
/// and neither does code that is more than a number.
fn number_in(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for (start, end) in [("{{#", "}}"), ("`", "`")] {
        while let Some((before, rest)) = text.split_once(start) {
            let (inside, after) = rest.split_once(end).unwrap_or((rest, ""));
            let digits = inside.replace(['_', ',', ' ', '−', '%'], "");
            if digits.contains(|letter: char| letter.is_ascii_digit()) && digits.parse::<f64>().is_ok() {
                return Some(inside.to_owned());
            }
            text = format!("{before} {after}");
        }
    }
    let states_one = |word: &&str| {
        let digits = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let after = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let name = after.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
        digits.len() > after.len() && !name
    };
    text.split(|letter: char| letter.is_whitespace() || letter == '=')
        .find(states_one)
        .map(|word| word.trim_end_matches([',', '.', ';', ':']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn every_file_is_resolved_as_a_terminal_needs_it() {
        let ran: Mutex<BTreeMap<(String, String), Vec<Event>>> = Mutex::default();
        let runs = |lab: &str, name: &str| {
            let mut ran = ran.lock().unwrap();
            let key = (lab.to_owned(), name.to_owned());
            if let Some(events) = ran.get(&key) {
                return Ok(events.clone());
            }
            let events = run(lab, name)?;
            ran.insert(key, events.clone());
            Ok(events)
        };
        let mut count = 0;
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap() {
            let path = entry.unwrap().path();
            let chapter = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.extension().is_none_or(|ending| ending != "toml") || chapter == "Cargo" {
                continue;
            }
            let questions = read(&chapter, &fs::read_to_string(&path).unwrap(), &runs);
            for question in questions.unwrap_or_else(|mistakes| panic!("{chapter}: {mistakes:?}")) {
                let texts = question.choices.iter().flat_map(|choice| [&choice.text, &choice.because]);
                assert!(texts.chain([&question.ask]).all(|text| !text.contains("{{")), "{question:?}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }
}
