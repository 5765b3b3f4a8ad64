//! The questions of the chapters, from `labs/questions/03.toml`, as the book and a terminal ask them:
//!
//! ```toml
//! [[question]]
//! id = "03-copies"
//! ask = "How many copies to the GPU does the training make?"
//! objective = "Say which lines move"
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
//! A question says which objective of its chapter it tests, by the words that this begins with: whoever changes the
//! objective is told to look at its questions. Every objective has at least one.
//!
//! An open question is answered in the student's own words, and has three to five points that a good answer makes:
//!
//! ```toml
//! [[open]]
//! id = "05-somebody-else"
//! ask = "What does this line mean for your training?"
//! objective = "Find out who holds"
//! answer = "Another program holds that memory, and I cannot have it."
//! rubric = ["Another program holds it.", "…", "…"]
//! ```
//!
//! Predictions and exercises show objectives, too. Which of them shows which, stands at the end of the file:
//!
//! ```toml
//! [[shows]]
//! objective = "Say which lines move"
//! predictions = ["03-steps"]
//! exercises = ["03-loop"]
//! ```
//!
//! A package of its own: labs are run without the library that reads TOML.

mod evidence;
mod figure;
pub mod moments;
mod objectives;
mod reckoning;
pub mod recorded;
pub mod score;

use std::borrow::Cow;
use std::collections::BTreeSet;

use labs::{Event, Listed};
use serde::Deserialize;
use toml::Spanned;

pub use evidence::Evidence;
pub use figure::{Shown, figure, find};
pub use objectives::{listed, objectives, pages};

/// The folder of the files, from the root of the checkout.
pub const FOLDER: &str = "labs/questions";

/// Questions that stand in another chapter than the one they were written for, with that one. Their ids stay.
const MOVED: [(&str, &str); 3] = [("05-util", "09"), ("05-loader", "09"), ("05-nothing-odd", "09")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    question: Vec<Spanned<Asked>>,
    #[serde(default)]
    open: Vec<Spanned<AskedOpenly>>,
    #[serde(default)]
    shows: Vec<Spanned<evidence::Shows>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    id: String,
    ask: String,
    objective: String,
    choice: Vec<Spanned<Chosen>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedOpenly {
    id: String,
    ask: String,
    objective: String,
    answer: String,
    rubric: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    text: String,
    #[serde(default)]
    right: bool,
    because: Option<String>,
}

/// What a chapter asks.
#[derive(Clone, Debug)]
pub struct Quiz {
    pub questions: Vec<Question>,
    /// Asked after the others.
    pub open: Vec<Open>,
}

/// A question, with its numbers in it.
#[derive(Clone, Debug)]
pub struct Question {
    /// Never changes: progress is kept under it.
    pub id: String,
    pub ask: String,
    /// The place of the objective that it tests, in the list of the chapter.
    pub objective: usize,
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

/// A question to answer in one's own words.
#[derive(Clone, Debug)]
pub struct Open {
    /// Never changes: progress is kept under it.
    pub id: String,
    pub ask: String,
    /// The place of the objective that it tests, in the list of the chapter.
    pub objective: usize,
    /// A good one.
    pub answer: String,
    /// The points that a good answer makes.
    pub rubric: Vec<String>,
    /// The byte of the file at which it begins.
    pub at: usize,
}

/// What a lab says, by its number and the name of the run. The error says what there is.
pub type Runs<'a> = dyn Fn(&str, &str) -> Result<Cow<'static, [Event]>, String> + 'a;

/// What is wrong in a file: at which byte, and what would be right.
pub type Mistake = (usize, String);

/// The questions of a chapter with these objectives, from the text of its file.
pub fn read(chapter: &str, text: &str, objectives: &[String], runs: &Runs) -> Result<Quiz, Vec<Mistake>> {
    let File { question: asked, open: asked_openly, shows } = parse(text)?;
    let mut mistakes = Vec::new();
    evidence::read(shows, objectives, &mut mistakes);
    let mut ids = BTreeSet::new();
    // The place of the objective that a question with this id tests.
    let mut tested = |at: usize, id: &str, words: &str, mistakes: &mut Vec<Mistake>| {
        let of_chapter = id.strip_prefix(chapter).is_some_and(|rest| rest.starts_with('-'))
            || MOVED.contains(&(id, chapter));
        if !of_chapter || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            mistakes.push((at, format!("the id `{id}` is not like `{chapter}-some-words`")));
        }
        if !ids.insert(id.to_owned()) {
            mistakes.push((at, format!("the id `{id}` comes twice")));
        }
        objectives::place(words, objectives).unwrap_or_else(|what| {
            mistakes.push((at, what));
            0
        })
    };
    let shown = |at: usize, text: &str, mistakes: &mut Vec<Mistake>| {
        with_figures(&text.trim().replace('\n', " "), runs).unwrap_or_else(|what| {
            mistakes.push((at, what));
            String::new()
        })
    };
    // A right answer, and what a good one says, take their numbers from the lab.
    let right_by_itself = |at: usize, text: &str| {
        number_in(text).map(|number| {
            let what = format!(
                "the right answer says `{number}`: take the number from the lab, \
                 `{{{{#figure {chapter} t4 …}}}}`, or write the whole name as code if it is part of one"
            );
            (at, what)
        })
    };

    let mut questions: Vec<Question> = Vec::new();
    for asked in asked {
        let at = asked.span().start;
        let Asked { id, ask, objective, choice: chosen } = asked.into_inner();
        let objective = tested(at, &id, &objective, &mut mistakes);
        let right = chosen.iter().filter(|choice| choice.get_ref().right).count();
        if right != 1 {
            mistakes.push((at, format!("{right} choices are right: mark exactly one with `right = true`")));
        }
        if chosen.len() < 2 {
            mistakes.push((at, "there is nothing to choose: give at least two choices".to_owned()));
        }
        let ask = shown(at, &ask, &mut mistakes);
        let mut choices: Vec<Choice> = Vec::new();
        for (place, choice) in (1..).zip(chosen) {
            let at = choice.span().start;
            let Chosen { text, right, because } = choice.into_inner();
            mistakes.extend(right_by_itself(at, &text).filter(|_| right));
            let text = shown(at, &text, &mut mistakes);
            if choices.iter().any(|choice| choice.text == text && !text.is_empty()) {
                mistakes.push((at, format!("two choices say `{text}`")));
            }
            let because = shown(at, &because.unwrap_or_default(), &mut mistakes);
            choices.push(Choice { text, right, because, place, at });
        }
        choices.sort_by_cached_key(|choice| hash(id.bytes().chain(choice.text.bytes())));
        questions.push(Question { id, ask, objective, choices, at });
    }

    let mut open = Vec::new();
    for asked in asked_openly {
        let at = asked.span().start;
        let AskedOpenly { id, ask, objective, answer, rubric } = asked.into_inner();
        let objective = tested(at, &id, &objective, &mut mistakes);
        if !(3..=5).contains(&rubric.len()) {
            mistakes.push((at, format!("a rubric has 3 to 5 points, not {}", rubric.len())));
        }
        mistakes.extend(rubric.iter().chain([&answer]).filter_map(|text| right_by_itself(at, text)));
        let ask = shown(at, &ask, &mut mistakes);
        let answer = shown(at, &answer, &mut mistakes);
        let rubric = rubric.iter().map(|point| shown(at, point, &mut mistakes)).collect();
        open.push(Open { id, ask, objective, answer, rubric, at });
    }

    // Who names a wrong objective is told of that alone.
    if mistakes.is_empty() {
        let tested = questions.iter().map(|question| question.objective);
        let tested: BTreeSet<usize> = tested.chain(open.iter().map(|open| open.objective)).collect();
        let untested = objectives.iter().enumerate().filter(|(place, _)| !tested.contains(place));
        mistakes.extend(untested.map(|(_, text)| (0, format!("no question tests the objective `{text}`"))));
    }
    if mistakes.is_empty() { Ok(Quiz { questions, open }) } else { Err(mistakes) }
}

/// What shows each of these objectives of a chapter, from the text of its file.
pub fn evidence(text: &str, objectives: &[String]) -> Result<Vec<Evidence>, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let File { question, open, shows } = parse(text)?;
    let mut evidence = evidence::read(shows, objectives, &mut mistakes);
    let mut place = |at: usize, words: &str| {
        objectives::place(words, objectives).map_err(|what| mistakes.push((at, what))).ok()
    };
    for asked in &question {
        let Asked { id, objective, .. } = asked.get_ref();
        if let Some(place) = place(asked.span().start, objective) {
            evidence[place].questions.push(id.clone());
        }
    }
    for asked in &open {
        let AskedOpenly { id, objective, .. } = asked.get_ref();
        if let Some(place) = place(asked.span().start, objective) {
            evidence[place].open.push(id.clone());
        }
    }
    if mistakes.is_empty() { Ok(evidence) } else { Err(mistakes) }
}

fn parse(text: &str) -> Result<File, Vec<Mistake>> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        vec![(start, error.message().trim().replace('\n', "; "))]
    })
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
        expanded += &figure(&words, runs)?.text;
        rest = after;
    }
    Ok(expanded + rest)
}

/// What a lab says when it is run here and now, as a terminal needs it.
pub fn run(lab: &str, run: &str) -> Result<Cow<'static, [Event]>, String> {
    if lab == recorded::CHAPTER {
        return recorded::events(run).map(Cow::from);
    }
    let lab = Listed::named(&format!("lab-{lab}")).ok_or_else(|| format!("no lab `{lab}`"))?;
    let run = lab
        .runs
        .iter()
        .find(|known| known.name == run)
        .ok_or_else(|| format!("{} has no run `{run}`", lab.name))?;
    let captured = (lab.run)(&[run.flags, run.steady].concat());
    match captured.exit_code {
        0 => Ok(captured.events.into()),
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
    use super::*;

    #[test]
    fn every_question_names_its_objective_and_every_objective_has_a_question() {
        let objectives = ["Say where", "Say why, and when"].map(str::to_owned);
        let question = |id: &str, objective: &str| {
            format!(
                "[[question]]\nid = \"03-{id}\"\nask = \"?\"\nobjective = \"{objective}\"\n\
                 choice = [{{ text = \"Yes\", right = true }}, {{ text = \"No\", because = \"So.\" }}]\n"
            )
        };
        let none = |_: &str, _: &str| Err("no lab".to_owned());
        let read = |text: String| read("03", &text, &objectives, &none);
        let told = |text| read(text).unwrap_err().into_iter().map(|(_, what)| what).collect::<Vec<_>>();

        let quiz = read(question("a", "Say where") + &question("b", "Say why")).unwrap();
        assert_eq!(quiz.questions.iter().map(|question| question.objective).collect::<Vec<_>>(), [0, 1]);
        let expected = ["no question tests the objective `Say why, and when`"];
        assert_eq!(told(question("a", "Say where")), expected);
        for (words, what) in [
            ("Say how", "no objective of this chapter begins with `Say how`"),
            ("Say", "2 objectives of this chapter begin with `Say`: add the words in which they differ"),
        ] {
            assert_eq!(told(question("a", words) + &question("b", "Say why")), [what]);
        }
    }

    #[test]
    fn an_open_question_has_a_rubric_of_a_few_points() {
        let objectives = ["Say where".to_owned()];
        let none = |_: &str, _: &str| Err("no lab".to_owned());
        let read = |answer: &str, rubric: &str| {
            let text = format!(
                "question = []\n[[open]]\nid = \"03-where\"\nask = \"Where?\"\nobjective = \"Say\"\n\
                 answer = \"{answer}\"\nrubric = [{rubric}]\n"
            );
            read("03", &text, &objectives, &none)
                .map_err(|mistakes| mistakes.into_iter().map(|(_, what)| what).collect::<Vec<_>>())
        };
        let quiz = read("Here.", "'a', 'b', 'c'").unwrap();
        assert_eq!((quiz.open[0].objective, quiz.open[0].rubric.len()), (0, 3));
        assert_eq!(read("Here.", "'a'").unwrap_err(), ["a rubric has 3 to 5 points, not 1"]);
        let told = read("In 2 places.", "'a', 'b', 'c'").unwrap_err();
        assert!(told[0].starts_with("the right answer says `2`: "), "{told:?}");
    }
}
