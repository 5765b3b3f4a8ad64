//! Expands the directives in a chapter's Markdown.
//!
//! | directive on a separate line | replaced by |
//! | --- | --- |
//! | `{{#minutes}}` | how long the chapter takes, computed from the page: see `minutes.rs` |
//! | `{{#plan}}` | all chapters with their minutes, from `book/plan.toml`: see `plan.rs` |
//! | `{{#sessions}}` | the same, divided into class sessions |
//! | `{{#guide 1}}`, `{{#sheet 03}}` | the teacher's guide to a session, and a chapter's printable sheet: see `guide.rs` |
//! | `{{#room}}` | one prediction at a time for a projector, and bars of a class's guesses: see `room_page.rs` |
//! | `{{#own-exercise}}` | the example of an exercise that a teacher writes |
//! | `{{#lab-run 03}}` | a link to the lab, and the commands that run it |
//! | `{{#lab-code 03 train}}` | the lab's code between `// ANCHOR: train` and its end; beside it PyTorch's, if `labs/python/lab_03.py` has `# ANCHOR: train` |
//! | `{{#lab-output 03 4 run=t4}}` | section 4 of the lab's tested output, with the machine it ran on; `show=results` leaves out the lab's prose; `part=steps` shows the part after the prediction `03-steps` |
//! | `{{#predict 03-steps run=t4}}` | a prediction of the lab, with the answer from this run; the text after it is folded up to the next heading, or, for a question to think about, up to the next question |
//! | `{{#lab-source 03}}` | the whole source of the lab, and its PyTorch programs |
//! | `{{#source-part tensor/src/operation.rs enter}}` | the part of a source of the tensor crate between its anchors |
//! | `{{#what-if step}}` | an experiment with sliders, in its initial state: see `what_if.rs` |
//! | `{{#timelines}}` | a drop box for timeline files |
//! | `{{#offline}}` | a button that saves the whole book for reading offline |
//! | `{{#kernel vector_add}}` | an editor with `labs/lab_12/examples/vector_add.cu`, which the page compiles, runs and checks: see `kernels.rs` |
//! | `{{#puzzle 05-shared}}` | a puzzle of `labs/lab_12/puzzles`: its task, an editor, and the judgement |
//! | `{{#case off_by_one}}` | a case of `labs/lab_12/cases`: its story, an editor, and the judgement |
//! | `{{#ladder reduction}}` | a ladder of `labs/lab_12/ladder`: its table |
//! | `{{#ladder-programs reduction}}` | an editor with each program of a ladder |
//! | `{{#exercises 03}}` | the exercises of the chapter, from `labs/exercises/source` |
//! | `{{#questions 03}}` | the questions in `labs/questions/03.toml`: see `questions.rs` |
//! | `{{#cheat-sheet}}` | the maps of all chapters: see `cheat_sheet.rs` |
//! | `{{#score}}` | the reader's results in all chapters: see `score_page.rs` |
//! | `{{#ending}}` | the key moments of the course in one picture, and ways to continue: see `ending.rs` |
//! | `{{#race}}`, `{{#clone 03}}`, `{{#chapters}}` | parts that only the first page has: see `first_page.rs` |
//! | `{{#paste-error}}`, `{{#errors}}` | the box for an error message, and the list of all errors: see `error_pages.rs` |
//! | `{{#profiles}}`, `{{#turns}}` | the model's parameters, and the statements that change with them: see `how_wrong.rs` |
//! | `{{#cards}}` | the cards that the course has run on, from `book/cards.toml` |
//!
//! Within a line, `{{#figure 03 t4 launches}}` becomes a number that the lab prints, given the name of its figure
//! (`cargo run --bin lab-03 -- --gpu sim:t4 --format json` lists them); `{{#figure 03 none loss 2}}` is the second
//! number of a series. The unit and `(modelled)` are included, unless the directive ends with `value`, for a sentence
//! that states them itself: `{{#figure 01 t4 crossover value}}`. Directives can also compute with several figures,
//! `{{#figure 04 t4 held + gaps in=MiB}}`, `{{#figure 08 t4 saved / total in=words}}`: see `questions::figure`.
//!
//! Block directives enclose several lines: `{{#objectives}}` … `{{/objectives}}`, `takeaways` and `sources`, which
//! contain lists; `predict`, a question to answer before reading on; `answer`, which is folded; and `map`, a block of Rust: see `map.rs`.
//!
//! Code blocks name their language. Rust blocks are doc tests, and command blocks are run: see `fences.rs` for the
//! exceptions. Directives are not expanded inside code blocks.
//!
//! mdBook's own directives, such as `{{#include …}}`, are disabled in book.toml because nothing would check the text
//! they insert. `\{{` shows braces.

use crate::block::Block;
use crate::course::Course;
pub use crate::document::Page;
use crate::inline::with_figures;
use crate::minutes::fill_minutes;
use crate::mistake::Mistake;
use crate::names::BLOCKS;
use crate::prediction::{END, Fold};
use crate::{directive, exercises, fences};

/// The directives that every numbered chapter must contain exactly once.
const PARTS: [&str; 7] = ["objectives", "minutes", "lab-run", "questions", "takeaways", "map", "sources"];

/// The maximum number of predictions on a page that wait for an answer, and of questions to think about. With more,
/// readers give up on the page.
const MOST_PREDICTIONS: usize = 8;
const MOST_THOUGHTS: usize = 4;

/// Expands the directives of a page. The error lists every mistake in it.
pub fn expand(course: &Course, page: &Page) -> Result<String, Vec<Mistake>> {
    let mut expanded = String::new();
    let mut mistakes = Vec::new();
    let code = fences::blocks(page.text);
    let mut used = Vec::new();
    let mut block: Option<Block> = None;
    // The open folds. Each ends at the next heading or the next part of the chapter, or, for a thought, at the next
    // question.
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
            // A misplaced directive, which `lint` reports: do not blame the lines after it.
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
        // The first page of a chapter explains how to run the lab, for all pages of the chapter.
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
    if mistakes.is_empty() { Ok(fill_minutes(expanded)) } else { Err(mistakes) }
}

/// `{{/map}}` → `map`
pub fn closing(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("{{/")?.strip_suffix("}}")
}

/// `{{#lab-code 03 train}}` → `lab-code` and its arguments, if the line holds nothing else.
fn alone(line: &str) -> Option<(&str, Vec<&str>)> {
    let inside = line.trim_end().strip_prefix("{{#")?.strip_suffix("}}")?;
    let mut words = inside.split_whitespace();
    let name = words.next()?;
    let elsewhere = name == "figure" || inside.contains("{{");
    (!elsewhere).then(|| (name, words.collect()))
}
