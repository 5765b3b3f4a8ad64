//! A chapter's Markdown with its directives carried out.
//!
//! | on a line of its own | becomes |
//! | --- | --- |
//! | `{{#minutes}}` | how long the chapter takes, as `book/path.toml` has it: see `path.rs` |
//! | `{{#path}}` | the path of reading, from the same file |
//! | `{{#sessions}}` | the same as lessons of a class |
//! | `{{#lab-run 03}}` | a link to the lab, and the commands that run it |
//! | `{{#lab-code 03 train}}` | the lab's code between `// ANCHOR: train` and its end |
//! | `{{#lab-output 03 4 run=t4}}` | section 4 of the lab's tested output, with the machine it ran on; `show=results` leaves out the lab's own words; `4.2` in place of `4` is what follows its second prediction |
//! | `{{#lab-source 03}}` | the whole source of the lab |
//! | `{{#questions 03}}` | the questions of `book/questions/03.toml`: see `questions.rs` |
//!
//! Within a line, `{{#figure 03 t4 launches}}` becomes a number that the lab prints, by the name of its figure
//! (`cargo run --bin lab-03 -- --gpu sim:t4 --format json` lists them); `{{#figure 03 none loss 2}}` is the second
//! of a series. Unit and `(modelled)` come with it, unless `value` stands at the end, for a sentence that says so
//! itself: `{{#figure 01 t4 crossover value}}`.
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
use crate::mistake::{Mistake, Wrong};
use crate::names::BLOCKS;
use crate::{directive, fences};

/// What every chapter with a number has, once.
const PARTS: [&str; 7] = ["objectives", "minutes", "lab-run", "questions", "takeaways", "map", "sources"];

/// Carries out the directives of a page. The error lists every mistake in it.
pub fn expand(course: &Course, page: &Page) -> Result<String, Vec<Mistake>> {
    let mut expanded = String::new();
    let mut mistakes = Vec::new();
    let code = fences::blocks(page.text);
    let mut used = Vec::new();
    let mut block: Option<Block> = None;
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
            if let Some((name, heading)) = BLOCKS.iter().find(|block| block.0 == name) {
                block = Some(Block { name, heading, line: number, lines: Vec::new() });
                continue;
            }
            match directive::markdown(course, page, name, &args) {
                Ok(markdown) => expanded += &markdown,
                Err(Wrong::Here(what)) => mistakes.push(mistake(number, what)),
                Err(Wrong::Elsewhere(found)) => mistakes.extend(found),
            }
        } else {
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
    if page.chapter().is_some() {
        for part in PARTS {
            match used.iter().filter(|used| **used == part).count() {
                0 => mistakes.push(mistake(1, format!("the chapter has no `{{{{#{part} …}}}}`"))),
                1 => {}
                times => {
                    mistakes.push(mistake(1, format!("the chapter has `{{{{#{part} …}}}}` {times} times")))
                }
            }
        }
    }
    if mistakes.is_empty() { Ok(expanded) } else { Err(mistakes) }
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
