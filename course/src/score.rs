//! How the student did in the whole course, in the words of the page after the last chapter.

use labs::render_text::without_ticks;
use labs::{Event, Stop};
use questions::score::{Asked, Course, Shown, State, Total};

use crate::show::text;
use crate::workplace::{Workplace, failed, root};

/// Tells the objectives with what was shown of each, the bets that were lost, and what to read next.
pub fn score(place: &Workplace, tell: &mut dyn FnMut(&str)) -> Result<(), Stop> {
    let course = Course::read(root()).map_err(failed)?;
    let record = &place.record;
    let total = Total::of(&course, record);
    let mut told = format!("{}\n", total.words());
    if total.shown + total.begun == 0 {
        told += &text(
            "That is a fine time to begin: cargo course read 01 lets you bet in the first chapter. The pages of the book keep a record \
             of their own. If you have exported it, name its file progress.json, and give its folder to --work.",
            "",
        );
    }
    let unknown = course.unknown(record);
    if unknown > 0 {
        told += &text(&questions::score::unknown(unknown), "");
    }
    let (mut unread, mut again) = (Vec::new(), String::new());
    for chapter in &course.chapters {
        let name = format!("{} {}", chapter.number, chapter.title);
        told += &format!("\n{name}\n");
        let mut is_begun = false;
        let mut missed = String::new();
        for objective in &chapter.objectives {
            let shown = Shown::of(&objective.evidence, record);
            let state = match shown.state() {
                State::Shown => "shown  ",
                State::Begun => "begun  ",
                State::NotYet => "not yet",
            };
            let words = without_ticks(&objective.text);
            let line = text(&format!("{words} ({})", shown.words()), "          ");
            told += &format!("  {state} {}", line.trim_start());
            is_begun |= shown.state() != State::NotYet;
            if shown.state() != State::Shown {
                missed += &item(&format!("Chapter {}: {words}", chapter.number));
            }
        }
        if is_begun {
            again += &missed;
        } else {
            unread.push(if chapter.optional { format!("{name}, optional") } else { name });
        }
    }
    tell(&told);
    lost(place, &course, tell)?;

    let mut next = "\nWhat to read next\n\n".to_owned();
    if unread.len() == course.chapters.len() {
        next += &item(&format!("Begin with {}.", unread[0]));
    } else if !unread.is_empty() {
        next += &item(&format!("You have not begun {}.", unread.join("; ")));
    }
    if !again.is_empty() {
        next += &format!("\n  Look again:\n\n{again}");
    }
    if unread.is_empty() && again.is_empty() {
        next += "  Nothing in this book is left for you to show.\n";
    }
    next += "\n  Outside this book:\n\n";
    for reading in &course.readings {
        next += &item(&format!("{}: {}", reading.title, reading.why));
        next += &format!("    {}\n", reading.link);
    }
    tell(&next);
    Ok(())
}

/// A point of a list.
fn item(words: &str) -> String {
    format!("  - {}", text(words, "    ").trim_start())
}

/// The bets that were lost, each with the sentence that the lab says to what was bet. Only the labs that asked them are run.
fn lost(place: &Workplace, course: &Course, tell: &mut dyn FnMut(&str)) -> Result<(), Stop> {
    let record = &place.record;
    let is_lost = |asked: &&Asked| matches!(record.verdict(&asked.id), Some("off" | "wrong"));
    let asked = course.asked(root()).map_err(failed)?;
    let mut ran: Option<(String, String, Vec<Event>)> = None;
    let mut is_first = true;
    for Asked { id, chapter, run } in asked.iter().filter(is_lost) {
        if ran.as_ref().is_none_or(|(lab, name, _)| lab != chapter || name != run) {
            let events = questions::run(chapter, run).map_err(failed)?.into_owned();
            ran = Some((chapter.clone(), run.clone(), events));
        }
        let events = ran.as_ref().map_or(&[][..], |(_, _, events)| events);
        let answer = events.iter().find_map(|event| match event {
            Event::Answer(answer) if answer.prediction.id == id => Some(answer),
            _ => None,
        });
        let Some(answer) = answer else { continue };
        // An answer of an older version may be none today, or right.
        let Some(said) = record.said(id).and_then(|said| answer.prediction.parse(said).ok()) else {
            continue;
        };
        if answer.verdict(&said) == labs::prediction::Verdict::Right {
            continue;
        }
        if is_first {
            tell("\nBets that you lost\n");
            is_first = false;
        }
        let question = without_ticks(&answer.prediction.question.replace('\n', " "));
        let compared = without_ticks(&answer.compared(&said));
        tell(&format!("\n{}{}", text(&format!("{id}: {question}"), "  "), text(&compared, "    ")));
    }
    Ok(())
}
