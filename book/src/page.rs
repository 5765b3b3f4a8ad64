//! A chapter's Markdown with its directives carried out.
//!
//! | on a line of its own | becomes |
//! | --- | --- |
//! | `{{#minutes}}` | how long the chapter takes, by what is on the page: see `minutes.rs` |
//! | `{{#plan}}` | all chapters with their minutes, from `book/plan.toml`: see `plan.rs` |
//! | `{{#sessions}}` | the same as sessions of a class |
//! | `{{#guide 1}}`, `{{#sheet 03}}` | a session for its teacher, and a chapter's sheet to print: see `guide.rs` |
//! | `{{#room}}` | one prediction at a time for a projector, and bars of what a class guessed: see `room_page.rs` |
//! | `{{#own-exercise}}` | the example of a teacher's own exercise |
//! | `{{#lab-run 03}}` | a link to the lab, and the commands that run it |
//! | `{{#lab-code 03 train}}` | the lab's code between `// ANCHOR: train` and its end; beside it PyTorch's, if `labs/python/lab_03.py` has `# ANCHOR: train` |
//! | `{{#lab-output 03 4 run=t4}}` | section 4 of the lab's tested output, with the machine it ran on; `show=results` leaves out the lab's own words; `part=steps` shows what follows the prediction `03-steps` |
//! | `{{#predict 03-steps run=t4}}` | a prediction of the lab, with the answer of this run; what follows is folded up to the next heading, or, of a question to think about, up to the next question |
//! | `{{#lab-source 03}}` | the whole source of the lab, and the programs in PyTorch that belong to it |
//! | `{{#what-if step}}` | an experiment under sliders, as it is at first: see `what_if.rs` |
//! | `{{#timelines}}` | a box for files of timelines |
//! | `{{#offline}}` | a button that keeps the whole book for reading without a network |
//! | `{{#exercises 03}}` | the exercises of the chapter, from `labs/exercises/source` |
//! | `{{#questions 03}}` | the questions of `labs/questions/03.toml`: see there |
//! | `{{#cheat-sheet}}` | the maps of all chapters: see `cheat_sheet.rs` |
//! | `{{#score}}` | how the reader did in all chapters: see `score_page.rs` |
//! | `{{#ending}}` | the moments of the course in one picture, and the ways to go on: see `ending.rs` |
//! | `{{#race}}`, `{{#clone 03}}`, `{{#chapters}}` | what only the first page has: see `first_page.rs` |
//! | `{{#paste-error}}`, `{{#errors}}` | the box for an error message, and the list of all: see `error_pages.rs` |
//! | `{{#profiles}}`, `{{#turns}}` | the figures of the model, and what turns with them: see `how_wrong.rs` |
//! | `{{#cards}}` | the cards that the course has run on, from `book/cards.toml` |
//!
//! Within a line, `{{#figure 03 t4 launches}}` becomes a number that the lab prints, by the name of its figure
//! (`cargo run --bin lab-03 -- --gpu sim:t4 --format json` lists them); `{{#figure 03 none loss 2}}` is the second
//! of a series. Unit and `(modelled)` come with it, unless `value` stands at the end, for a sentence that says so
//! itself: `{{#figure 01 t4 crossover value}}`. What follows from several is worked out, `{{#figure 04 t4 held + gaps in=MiB}}`,
//! `{{#figure 08 t4 saved / total in=words}}`: see `questions::figure`.
//!
//! Around several lines stand `{{#objectives}}` … `{{/objectives}}`, and in the same way `takeaways` and `sources`,
//! all three lists; `predict`, a question to answer before reading on; and `map`, a block of Rust: see
//! `map.rs`.
//!
//! Blocks of code name their language. Those of Rust are doc tests, and those of commands are run: see
//! `fences.rs` for those that cannot be. There are no directives in them.
//!
//! mdBook's own directives, `{{#include …}}` and its like, are no part of this book: book.toml leaves them out,
//! because nobody would check what they bring. `\{{` shows braces.

use crate::block::Block;
use crate::course::Course;
pub use crate::document::Page;
use crate::inline::with_figures;
use crate::minutes::told;
use crate::mistake::Mistake;
use crate::names::BLOCKS;
use crate::prediction::{END, Fold};
use crate::{directive, exercises, fences};

/// What every chapter with a number has, once.
const PARTS: [&str; 7] = ["objectives", "minutes", "lab-run", "questions", "takeaways", "map", "sources"];

/// How many predictions of a page may wait for an answer, and how many questions may be there to think about: with more of them, it
/// is read no further.
const MOST_PREDICTIONS: usize = 8;
const MOST_THOUGHTS: usize = 4;

/// Carries out the directives of a page. The error lists every mistake in it.
pub fn expand(course: &Course, page: &Page) -> Result<String, Vec<Mistake>> {
    let mut expanded = String::new();
    let mut mistakes = Vec::new();
    let code = fences::blocks(page.text);
    let mut used = Vec::new();
    let mut block: Option<Block> = None;
    // What folds what stands here, up to the next heading or the next part of the chapter; a thought only up to the next question.
    let mut folds: Vec<Fold> = Vec::new();
    let mut asked: Vec<Fold> = Vec::new();
    let mistake = |line, what| Mistake { file: page.file.to_owned(), line, what };

    for (index, line) in page.text.lines().enumerate() {
        let number = index + 1;
        let in_code = code.iter().any(|block| (block.line..=block.last).contains(&number));
        if let Some(name) = closing(line).filter(|_| !in_code) {
            match block.take() {
                Some(open) if open.name == name => match open.markdown(course) {
                    Ok(markdown) => expanded += &markdown,
                    Err((line, what)) => mistakes.push(mistake(line, what)),
                },
                Some(open) => {
                    mistakes
                        .push(mistake(number, format!("`{{{{/{name}}}}}` closes `{{{{#{}}}}}`", open.name)));
                }
                None => mistakes.push(mistake(number, format!("`{{{{/{name}}}}}` closes nothing"))),
            }
        } else if let Some(open) = &mut block {
            open.lines.push(line);
            // Not where it belongs, which `lint` tells: what follows is not blamed for it.
            if !in_code && line.contains(&format!("{{{{/{}}}}}", open.name)) {
                block = None;
            }
        } else if in_code {
            expanded += &format!("{line}\n");
        } else if let Some((name, args)) = alone(line) {
            used.push(name);
            if PARTS.contains(&name) || name == "exercises" {
                expanded += &END.repeat(folds.drain(..).count());
            }
            if name == "predict" && folds.last() == Some(&Fold::Thought) {
                folds.pop();
                expanded += END;
            }
            if let Some((name, heading)) = BLOCKS.iter().find(|block| block.0 == name && args.is_empty()) {
                block = Some(Block { name, heading, line: number, lines: Vec::new() });
                continue;
            }
            match directive::markdown(course, page, name, &args, expand) {
                Ok(markdown) => {
                    if let Some(fold) = Fold::of(&markdown) {
                        folds.push(fold);
                        asked.push(fold);
                    }
                    expanded += &markdown;
                }
                Err(wrong) => mistakes.extend(wrong.mistakes(page.file, number)),
            }
        } else {
            if line.starts_with('#') {
                expanded += &END.repeat(folds.drain(..).count());
            }
            match with_figures(course, line) {
                Ok(line) => expanded += &format!("{line}\n"),
                Err(what) => mistakes.push(mistake(number, what)),
            }
        }
    }
    if let Some(Block { name, line, .. }) = block {
        mistakes
            .push(mistake(line, format!("`{{{{#{name}}}}}` is never closed: end it with `{{{{/{name}}}}}`")));
    }
    expanded += &END.repeat(folds.len());
    let count = |fold| asked.iter().filter(|asked| **asked == fold).count();
    let (predictions, thoughts) = (count(Fold::Answer), count(Fold::Thought));
    if predictions > MOST_PREDICTIONS {
        let what =
            format!("{predictions} predictions wait for an answer: a chapter has at most {MOST_PREDICTIONS}");
        mistakes.push(mistake(1, what));
    }
    if thoughts > MOST_THOUGHTS {
        let what = format!(
            "{thoughts} questions are there to think about: a chapter has at most {MOST_THOUGHTS}; delete some, or turn them \
             into predictions"
        );
        mistakes.push(mistake(1, what));
    }
    if let Some(chapter) = page.chapter() {
        let has_exercises = match exercises::on_page(course, page, chapter) {
            Ok(exercises) => !exercises.is_empty(),
            Err(wrong) => {
                mistakes.extend(wrong.mistakes(page.file, 1));
                false
            }
        };
        // The first page of a chapter says for all of them how to run the lab.
        let parts = PARTS.into_iter().filter(|part| page.begins_chapter() || *part != "lab-run");
        for part in parts.chain(has_exercises.then_some("exercises")) {
            match used.iter().filter(|used| **used == part).count() {
                0 => mistakes.push(mistake(1, format!("the chapter has no `{{{{#{part} …}}}}`"))),
                1 => {}
                times => {
                    mistakes.push(mistake(1, format!("the chapter has `{{{{#{part} …}}}}` {times} times")))
                }
            }
        }
    }
    if mistakes.is_empty() { Ok(told(expanded)) } else { Err(mistakes) }
}

/// `{{/map}}` → `map`
pub fn closing(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("{{/")?.strip_suffix("}}")
}

/// `{{#lab-code 03 train}}` → `lab-code` and its words, if the line starts so and has nothing else.
fn alone(line: &str) -> Option<(&str, Vec<&str>)> {
    let inside = line.trim_end().strip_prefix("{{#")?.strip_suffix("}}")?;
    let mut words = inside.split_whitespace();
    let name = words.next()?;
    let elsewhere = name == "figure" || inside.contains("{{");
    (!elsewhere).then(|| (name, words.collect()))
}
