//! The sensitivity of the labs to the model. Each figure that is a guess is halved and doubled, every lab runs with it,
//! and the changes of its text are written down for a page of the book.
//!
//! Only words are compared: sentences of prose, titles, and answers to predictions. Figures in sentences are left out
//! unless they are exact. An answer counts as changed if a reader who gave the old one would be told that it is wrong.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, thread};

use clap::Parser;
use todevice::profiles::{FigureSet, HOSTS, PROFILES, Status, figures};

use crate::Kind;
use crate::frame::prediction::{Answer, Verdict};
use crate::frame::stdio::to_stderr;
use crate::{Captured, Event, LABS, Listed, Part, Stop, Text, program};

/// Halves and doubles every guess of the model, and lists the sentences of the labs that change
#[derive(Parser)]
#[command(name = "sensitivity", version)]
pub struct Flags {
    /// Labs to run; replaces their lines in book/sensitivity.txt [default: all]
    #[arg(value_name = "LAB", value_parser = crate::tools::verify::lab_name)]
    pub labs: Vec<String>,
}

/// The file for the book's page, relative to the root of the checkout.
pub const FILE: &str = "book/sensitivity.txt";

const HEAD: &str = "\
# Changes in the output of the labs when a guess of the model is halved or doubled. Written by
# cargo run --bin sensitivity
#
# sentences: the lab, the card, and how many sentences and answers the lab has there
# turn: the lab, the section, the card, the figure, what became of it, what was said before, and what is said then
";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub card: &'static str,
    /// The name of the card's or the host's figure.
    pub figure: &'static str,
    pub of_host: bool,
    pub value: f64,
    pub doubled: bool,
}

pub fn changes(card: &'static str) -> Vec<Change> {
    let profile = PROFILES.into_iter().find(|profile| profile.key == card);
    let of_card = profile.into_iter().flat_map(guesses);
    let all = of_card
        .map(|guess| (false, guess))
        .chain(guesses(HOSTS[0]).map(|guess| (true, guess)));
    let both = |(of_host, (figure, value))| {
        [false, true].map(|doubled| Change { card, figure, of_host, value, doubled })
    };
    all.flat_map(both).collect()
}

/// The guesses of a card or a host, except 0, which has no half.
fn guesses<S: FigureSet>(set: &S) -> impl Iterator<Item = (&'static str, f64)> {
    figures(set)
        .filter(|(_, figure)| figure.status == Status::Guess && figure.value > 0.0)
        .map(|(name, figure)| (name, figure.value))
}

impl Change {
    fn value(&self) -> f64 {
        if self.doubled { 2.0 * self.value } else { 0.5 * self.value }
    }

    /// The text of a lab on a machine with the change, which is passed in a file.
    fn run(&self, lab: &Listed) -> crate::Result<LabText> {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let Change { card, figure, .. } = self;
        let (like, ending) = match self.of_host {
            false => (*card, ".profile"),
            true => (HOSTS[0].key, ".host"),
        };
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("sensitivity-{}-{number}{ending}", std::process::id());
        let file = env::temp_dir().join(name);
        let text = format!("like = {like}\n{figure} = {}\n", self.value());
        fs::File::create_new(&file)?.write_all(text.as_bytes())?;
        let path = file.display();
        let said = run_lab(
            lab,
            &match self.of_host {
                false => format!("sim:{path}"),
                true => format!("sim:{card},host={path}"),
            },
        );
        fs::remove_file(&file)?;
        Ok(said)
    }
}

/// A change in a lab's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub lab: &'static str,
    pub section: String,
    pub change: Change,
    pub before: String,
    pub after: String,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Turn { lab, section, change, before, after } = self;
        let Change { card, figure, of_host, doubled, .. } = change;
        let whose = if *of_host { "host." } else { "" };
        let became = if *doubled { "doubled" } else { "halved" };
        write!(
            f,
            "turn\t{lab}\t{section}\t{card}\t{whose}{figure}\t{became}\t{before}\t{after}"
        )
    }
}

#[derive(Default)]
struct Section {
    number: String,
    paragraphs: Vec<Vec<String>>,
    answers: Vec<Answer>,
}

pub struct LabText(Vec<Section>);

impl LabText {
    pub fn count(&self) -> usize {
        let of = |section: &Section| {
            section.paragraphs.iter().map(Vec::len).sum::<usize>()
                + section.answers.len()
        };
        self.0.iter().map(of).sum()
    }

    /// Whether a section has this text: sentences, or a question with its answer.
    pub fn has(&self, section: &str, said: &str) -> bool {
        let is_said = |section: &Section| {
            let known = section.paragraphs.concat();
            section.answers.iter().any(|answer| answer.stated() == said)
                || sentences(said).iter().all(|sentence| known.contains(sentence))
        };
        self.0.iter().filter(|known| known.number == section).any(is_said)
    }
}

fn flags<'a>(lab: &Listed, gpu: &'a str) -> Vec<&'a str> {
    let run = lab.runs.iter().find(|run| run.name == "t4");
    let own = run.map_or(Vec::new(), |run| [&run.flags[2..], run.steady].concat());
    [&["--gpu", gpu], &own[..]].concat()
}

fn run_lab(lab: &Listed, gpu: &str) -> LabText {
    LabText::from((lab.run)(&flags(lab, gpu)))
}

impl From<Captured> for LabText {
    fn from(captured: Captured) -> LabText {
        let mut sections = vec![Section::default()];
        for event in captured.events {
            match event {
                Event::Section { number, title, .. } => {
                    let paragraphs = vec![vec![title]];
                    sections.push(Section { number, paragraphs, answers: Vec::new() });
                }
                event => sections.last_mut().expect("there is one").take(event),
            }
        }
        if captured.exit_code != 0 {
            let last = sections.last_mut().expect("there is one");
            last.paragraphs.push(vec![captured.errors.replace(['\n', '\t'], " ")]);
        }
        LabText(sections)
    }
}

impl Section {
    fn take(&mut self, event: Event) {
        match event {
            Event::Prose(text) => {
                self.paragraphs.push(sentences(&text_without_figures(&text)))
            }
            Event::Answer(answer) => self.answers.push(answer),
            _ => {}
        }
    }

    /// The differences to another section: text here, and text there.
    fn differences(&self, other: &Section) -> Vec<[String; 2]> {
        let mut differences = Vec::new();
        if self.paragraphs.len() == other.paragraphs.len() {
            for (before, after) in self.paragraphs.iter().zip(&other.paragraphs) {
                differences.push(only_in_each(before, after));
            }
        } else {
            differences.push(only_in_each(
                &self.paragraphs.concat(),
                &other.paragraphs.concat(),
            ));
        }
        for (before, after) in self.answers.iter().zip(&other.answers) {
            let still = before.expected().map(|said| after.verdict(&said));
            if still != Ok(Verdict::Right) {
                differences.push([before, after].map(Answer::stated));
            }
        }
        differences.retain(|[before, after]| before != after);
        differences
    }
}

impl Answer {
    /// The last sentence of the question, and the answer.
    fn stated(&self) -> String {
        let asked = sentences(&self.prediction.question).pop().unwrap_or_default();
        format!("{asked} {}", self.printed())
    }
}

/// The sentences in only one of the two.
fn only_in_each(one: &[String], other: &[String]) -> [String; 2] {
    let missing = |from: &[String], all: &[String]| {
        let missing = all.iter().filter(|sentence| !from.contains(sentence));
        missing.cloned().collect::<Vec<_>>().join(" ")
    };
    [missing(other, one), missing(one, other)]
}

/// A text with `…` for each figure that changes with the model.
fn text_without_figures(text: &Text) -> String {
    let shown = |part: &Part| match part {
        Part::Words(words) => words.clone(),
        Part::Figure(figure) if figure.kind == Kind::Exact => figure.printed(),
        Part::Figure(_) => "…".to_owned(),
    };
    text.parts.iter().map(shown).collect()
}

fn sentences(text: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut sentences: Vec<String> = Vec::new();
    for part in text.split_inclusive([' ']) {
        let is_new = sentences
            .last()
            .is_none_or(|sentence| sentence.trim_end().ends_with(['.', '?', '!', ':']));
        match sentences.last_mut().filter(|_| !is_new) {
            Some(sentence) => sentence.push_str(part),
            None => sentences.push(part.to_owned()),
        }
    }
    sentences.iter().map(|sentence| sentence.trim_end().to_owned()).collect()
}

/// The labs whose text depends on times: those with a run on a T4.
fn labs() -> impl Iterator<Item = &'static Listed> {
    LABS.iter().filter(|lab| lab.runs.iter().any(|run| run.name == "t4"))
}

/// The text of a lab on an unchanged card.
pub fn unchanged(lab: &Listed, card: &str) -> LabText {
    run_lab(lab, &format!("sim:{card}"))
}

/// The changes in a lab's text after a change of a figure.
pub fn changed_sentences(
    lab: &'static Listed,
    change: Change,
    plain: &LabText,
) -> crate::Result<Vec<Turn>> {
    let changed = change.run(lab)?;
    let turn = |section: &Section, [before, after]: [String; 2]| Turn {
        lab: lab.name,
        section: section.number.clone(),
        change,
        before,
        after,
    };
    let mut turns = Vec::new();
    for (before, after) in plain.0.iter().zip(&changed.0) {
        turns.extend(
            before.differences(after).into_iter().map(|said| turn(before, said)),
        );
    }
    Ok(turns)
}

/// The file's lines for these labs. Calls `progress` with the number of finished runs and of all runs.
pub fn lines(
    wanted: &[&'static Listed],
    progress: impl Fn(usize, usize) + Sync,
) -> crate::Result<Vec<String>> {
    let cards = PROFILES.map(|profile| profile.key);
    let pairs: Vec<(&'static Listed, &str)> =
        wanted.iter().flat_map(|lab| cards.map(|card| (*lab, card))).collect();
    let plains = on_all_cores(&pairs, |_, (lab, card)| unchanged(lab, card));

    let jobs: Vec<(&'static Listed, &LabText, Change)> = pairs
        .iter()
        .zip(&plains)
        .flat_map(|((lab, card), said)| {
            changes(card).into_iter().map(move |change| (*lab, said, change))
        })
        .collect();
    let found = on_all_cores(&jobs, |done, (lab, plain, change)| {
        progress(done, jobs.len());
        changed_sentences(lab, *change, plain)
    });
    let counted = pairs.iter().zip(&plains);
    let mut lines: Vec<String> = counted
        .map(|((lab, card), said)| {
            format!("sentences\t{}\t{card}\t{}", lab.name, said.count())
        })
        .collect();
    for turns in found {
        lines.extend(turns?.iter().map(Turn::to_string));
    }
    Ok(lines)
}

/// The current lines of the file, except those of some labs.
fn lines_to_keep(text: &str, wanted: &[&Listed]) -> Vec<String> {
    let is_wanted = |line: &&str| {
        let lab = line.split('\t').nth(1);
        line.starts_with('#') || wanted.iter().any(|wanted| lab == Some(wanted.name))
    };
    text.lines().filter(|line| !is_wanted(line)).map(str::to_owned).collect()
}

fn file_of(mut lines: Vec<String>) -> String {
    lines.sort_by_key(|line| line.split('\t').nth(1).map(str::to_owned));
    lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n")
}

/// Runs `work` on all jobs, and returns the results in order. `work` also gets the job's index.
fn on_all_cores<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(usize, &J) -> R + Sync,
) -> Vec<R> {
    let waiting = Mutex::new(jobs.iter().enumerate());
    let results = Mutex::new(Vec::new());
    let one_after_the_other = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, job)) = next else { return };
            let result = work(index, job);
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(one_after_the_other);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Exits with 0, with 1 if the file cannot be written, with 2 if a flag is wrong.
pub fn main() -> ExitCode {
    program(|flags: Flags| {
        let failed = |error: crate::Error| Stop {
            message: format!("error: {error}\n"),
            exit_code: 1,
        };
        let is_wanted = |lab: &&Listed| {
            flags.labs.is_empty() || flags.labs.iter().any(|name| name == lab.name)
        };
        let wanted: Vec<&Listed> = labs().filter(is_wanted).collect();
        let progress = |done: usize, all: usize| {
            if done.is_multiple_of(50) {
                to_stderr(&format!("{done} of {all} runs\n"));
            }
        };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
        let others =
            lines_to_keep(&fs::read_to_string(&file).unwrap_or_default(), &wanted);
        let lines = lines(&wanted, progress).map_err(failed)?;
        fs::write(&file, file_of([others, lines].concat()))
            .map_err(|error| failed(format!("{FILE}: {error}").into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prediction, exact, modelled, text};

    fn section(events: Vec<Event>) -> Section {
        let mut section = Section::default();
        events.into_iter().for_each(|event| section.take(event));
        section
    }

    #[test]
    fn words_are_compared_and_modelled_figures_are_not() {
        let prose = |time: f64, launches: i64, verdict: &str| {
            let [time, launches] =
                [modelled("time", time), exact("launches", launches)];
            Event::Prose(text!(
                "It takes {}. There are {} launches. {verdict}",
                time,
                launches
            ))
        };
        let plain = section(vec![prose(1.0, 3, "The GPU wins.")]);
        let differences = |other: Event| plain.differences(&section(vec![other]));
        assert_eq!(differences(prose(2.0, 3, "The GPU wins.")), [[""; 2]; 0]);
        assert_eq!(
            differences(prose(1.0, 3, "The CPU wins.")),
            [["The GPU wins.", "The CPU wins."]]
        );
        let more = [["There are 3 launches.", "There are 4 launches."]];
        assert_eq!(differences(prose(1.0, 4, "The GPU wins.")), more);
        let gone = plain.differences(&section(Vec::new()));
        assert_eq!(gone[0][1], "");
    }

    #[test]
    fn an_answer_turns_when_the_first_one_would_be_wrong() {
        let answered = |time: f64| {
            let prediction =
                Prediction::number("99-time", "A step runs. How long does it take?")
                    .unit("ms")
                    .tolerance(0.5);
            let key = modelled("time", time).unit("ms").digits(1).into();
            section(vec![Event::Answer(Answer { prediction, key, response: None })])
        };
        assert!(answered(1.0).differences(&answered(1.4)).is_empty());
        let [[before, after]] = &answered(1.0).differences(&answered(3.0))[..] else {
            panic!()
        };
        assert_eq!(before, "How long does it take? 1.0 ms (modelled)");
        assert_eq!(after, "How long does it take? 3.0 ms (modelled)");
    }

    #[test]
    fn lines_of_other_labs_stay() {
        let lab = Listed::named("lab-03").unwrap();
        let old =
            "# a head\nturn\tlab-03\told\nturn\tlab-05\tfive\nturn\tlab-01\tone\n";
        let new = file_of(
            [lines_to_keep(old, &[lab]), vec!["turn\tlab-03\tnew".to_owned()]].concat(),
        );
        assert_eq!(
            new,
            format!("{HEAD}turn\tlab-01\tone\nturn\tlab-03\tnew\nturn\tlab-05\tfive\n")
        );
    }

    #[test]
    fn every_guess_is_halved_and_doubled() {
        let changes = changes("t4");
        let of = |name: &str| -> Vec<f64> {
            changes
                .iter()
                .filter(|change| change.figure == name)
                .map(Change::value)
                .collect()
        };
        assert_eq!(of("launch_latency"), [3.0, 12.0]);
        assert_eq!(of("dispatch"), [0.4, 1.6]);
        assert!(of("dram").is_empty() && of("launch").is_empty(), "these are known");
        assert!(of("node").is_empty(), "half of nothing");
    }
}
