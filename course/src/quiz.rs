//! The questions of a chapter, in the terminal.

use std::fs;
use std::io::{self, BufRead};

use labs::stdio::to_stdout;
use labs::{Stop, render_text::without_ticks};
use questions::{Question, run};

use crate::show::text;
use crate::workplace::{Workplace, failed, root, wrong};

/// Asks all questions of a chapter, each with the reason for what was chosen, and says how many answers were right.
pub fn quiz(place: &mut Workplace, chapter: &str) -> Result<(), Stop> {
    let number = chapter.parse::<u32>().map_err(|_| wrong(format!("`{chapter}` is no chapter: say 03")))?;
    let chapter = format!("{number:02}");
    let file = root().join(questions::FOLDER).join(format!("{chapter}.toml"));
    let source = fs::read_to_string(&file)
        .map_err(|_| wrong(format!("there is no chapter {chapter} with questions")))?;
    let all = questions::read(&chapter, &source, &run).map_err(|mistakes| {
        let (_, what) = &mistakes[0];
        failed(format!("{}: {what}", file.display()))
    })?;
    to_stdout(&format!("{} questions on chapter {chapter}. Enter skips one.\n", all.len()));
    let (mut right, mut answered) = (0, 0);
    let mut lines = io::stdin().lock().lines();
    for (number, question) in (1..).zip(&all) {
        to_stdout(&asked(number, question));
        let Some(chosen) = choice(&mut lines, question.choices.len()) else { continue };
        let choice = &question.choices[chosen];
        answered += 1;
        right += usize::from(choice.right);
        place.keep(|record| record.answered(&question.id, choice.place, choice.right));
        to_stdout(&told(question, chosen));
    }
    to_stdout(&format!("\n{right} of {answered} right\n"));
    Ok(())
}

fn letter(place: usize) -> char {
    (b'a' + place as u8) as char
}

fn asked(number: usize, question: &Question) -> String {
    let mut told = format!("\n{}", text(&format!("{number}. {}", without_ticks(&question.ask)), ""));
    for (place, choice) in question.choices.iter().enumerate() {
        told += &text(&format!("{}) {}", letter(place), without_ticks(&choice.text)), "   ");
    }
    told
}

/// What was chosen. Nothing is chosen by an empty line, or at the end of the input.
fn choice(lines: &mut impl Iterator<Item = io::Result<String>>, count: usize) -> Option<usize> {
    loop {
        to_stdout(&format!("Your answer (a to {}; Enter to skip): ", letter(count - 1)));
        let said = lines.next()?.ok()?;
        let said = said.trim().trim_end_matches(')').to_lowercase();
        if said.is_empty() {
            return None;
        }
        match (0..count).find(|&place| said == letter(place).to_string()) {
            Some(place) => return Some(place),
            None => to_stdout(&format!("`{said}` is none of them.\n")),
        }
    }
}

fn told(question: &Question, chosen: usize) -> String {
    let choice = &question.choices[chosen];
    let because = without_ticks(&choice.because);
    if choice.right {
        return text(&format!("Right. {because}"), "");
    }
    let right = question.choices.iter().position(|choice| choice.right).unwrap_or(0);
    let reason = without_ticks(&question.choices[right].because);
    text(&format!("No. {because}\n\nIt is {}. {reason}", letter(right)), "")
}
