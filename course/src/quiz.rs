//! The questions of a chapter, in the terminal.

use std::io::{self, IsTerminal};
use std::{fs, iter};

use exercises::printable;
use labs::Stop;
use labs::stdio::{line, to_stdout};
use questions::{Open, Question, Quiz, run};

use crate::show::{WIDTH, plain, plain_text, shortened};
use crate::workplace::{Workplace, failed, root, wrong};

/// Asks all questions of a chapter, gives the reason for each chosen answer, and prints the number of right answers for
/// each objective.
pub fn quiz(place: &mut Workplace, chapter: &str) -> Result<(), Stop> {
    let number = chapter
        .parse::<u32>()
        .map_err(|_| wrong(format!("`{chapter}` is not a chapter: type a number such as 03")))?;
    let chapter = format!("{number:02}");
    let file = root().join(questions::FOLDER).join(format!("{chapter}.toml"));
    let source = fs::read_to_string(&file)
        .map_err(|_| wrong(format!("there is no chapter {chapter} with questions")))?;
    let objectives = questions::objectives(root(), &chapter).map_err(failed)?;
    let Quiz { questions, open } =
        questions::read(&chapter, &source, &objectives, &run).map_err(|mistakes| {
            let (_, what) = &mistakes[0];
            failed(format!("{}: {what}", file.display()))
        })?;
    let count = questions.len() + open.len();
    to_stdout(&format!("{count} questions on chapter {chapter}. Enter skips one.\n"));
    let mut scores = vec![Score::default(); objectives.len()];
    let mut lines = iter::from_fn(line);
    for (number, question) in (1..).zip(&questions) {
        to_stdout(&question_text(number, question));
        let Some(chosen) = choice(&mut lines, question.choices.len()) else { continue };
        let choice = &question.choices[chosen];
        scores[question.objective].add(choice.right);
        place.update(|record| record.add_answer(&question.id, choice.place, choice.right));
        to_stdout(&reply(question, chosen));
    }
    for (number, Open { id, ask, objective, answer, rubric, .. }) in (questions.len() + 1..).zip(&open) {
        to_stdout(&format!("\n{}", plain_text(&format!("{number}. {ask}"), "")));
        let Some(said) = read_answer(&mut lines) else { continue };
        to_stdout(&format!("\nA good answer:\n\n{}", plain_text(answer, "   ")));
        let Some(points) = points(&mut lines, rubric) else { continue };
        scores[*objective].add(points == rubric.len());
        place.update(|record| record.add_explanation(id, &said, points, rubric.len()));
        to_stdout(&format!("Your answer earns {points} of {} points.\n", rubric.len()));
    }
    to_stdout(&summary(&objectives, &scores));
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Score {
    right: usize,
    answered: usize,
}

impl Score {
    fn add(&mut self, right: bool) {
        self.right += usize::from(right);
        self.answered += 1;
    }
}

/// One line per objective, and the sections to reread for each objective with a wrong answer.
fn summary(objectives: &[String], scores: &[Score]) -> String {
    let sum = |count: fn(&Score) -> usize| scores.iter().map(count).sum::<usize>();
    let mut output = format!("\n{} of {} right\n\n", sum(|score| score.right), sum(|score| score.answered));
    let mut missed = String::new();
    for (objective, Score { right, answered }) in objectives.iter().zip(scores) {
        let objective = plain(objective);
        let score = if *answered == 0 { "skipped".to_owned() } else { format!("{right} of {answered}") };
        output += &format!("{}\n", shortened(&format!("{score:<9}{objective}"), WIDTH));
        if right < answered {
            missed += &plain_text(&objective, "   ");
        }
    }
    if !missed.is_empty() {
        output += &format!("\nRead again:\n\n{missed}");
    }
    output
}

fn letter(place: usize) -> char {
    (b'a' + place as u8) as char
}

fn question_text(number: usize, question: &Question) -> String {
    let mut output = format!("\n{}", plain_text(&format!("{number}. {}", question.ask), ""));
    for (place, choice) in question.choices.iter().enumerate() {
        output += &plain_text(&format!("{}) {}", letter(place), choice.text), "   ");
    }
    output
}

/// Reads a choice. Returns `None` for an empty line, or at the end of the input. Asks at most three times, in case of a
/// program such as `yes`.
fn choice(lines: &mut impl Iterator<Item = String>, count: usize) -> Option<usize> {
    let tries = if io::stdin().is_terminal() { usize::MAX } else { 3 };
    for _ in 0..tries {
        to_stdout(&format!("Your answer (a to {}; Enter to skip): ", letter(count - 1)));
        let said = lines.next()?;
        let said = said.trim().trim_end_matches(')').to_lowercase();
        if said.is_empty() {
            return None;
        }
        match (0..count).find(|&place| said == letter(place).to_string()) {
            Some(place) => return Some(place),
            None => to_stdout(&format!(
                "`{}` is not a possible answer: type a letter from a to {}\n",
                printable::line(&said),
                letter(count - 1)
            )),
        }
    }
    None
}

/// More than anyone writes. All of it must fit into the progress file.
const MOST_LINES: usize = 100;

/// Reads a student's text, up to an empty line. Returns `None` if the first line is empty.
fn read_answer(lines: &mut impl Iterator<Item = String>) -> Option<String> {
    to_stdout("Your answer, in your own words (an empty line ends it):\n");
    let written = lines.take_while(|line| !line.trim().is_empty()).take(MOST_LINES);
    let said = written.collect::<Vec<_>>().join("\n");
    (!said.is_empty()).then_some(said)
}

/// Asks which points of the rubric the answer has. Returns `None` at the end of the input.
fn points(lines: &mut impl Iterator<Item = String>, rubric: &[String]) -> Option<usize> {
    let mut made = 0;
    for point in rubric {
        to_stdout(&format!("\n{}", plain_text(&format!("- {point}"), "   ")));
        made += usize::from(ask_yes_no(lines)?);
    }
    Some(made)
}

fn ask_yes_no(lines: &mut impl Iterator<Item = String>) -> Option<bool> {
    let tries = if io::stdin().is_terminal() { usize::MAX } else { 3 };
    for _ in 0..tries {
        to_stdout("Did your answer include this? (y or n): ");
        match lines.next()?.trim().to_lowercase().as_str() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => {}
        }
    }
    None
}

fn reply(question: &Question, chosen: usize) -> String {
    let choice = &question.choices[chosen];
    let because = &choice.because;
    if choice.right {
        return plain_text(&format!("Right. {because}"), "");
    }
    let right = question.choices.iter().position(|choice| choice.right).unwrap_or(0);
    let reason = &question.choices[right].because;
    plain_text(&format!("No. {because}\n\nIt is {}. {reason}", letter(right)), "")
}
