//! The student's results in the whole course, in the same words as the page after the last chapter.

use labs::{Event, Stop};
use questions::score::{Asked, Course, Shown, State, Total};

use crate::piece::Piece;
use crate::workplace::{Workplace, failed, root};

/// Reports the objectives with the evidence for each, the lost bets, and further reading. Returns whether anything was
/// answered.
pub fn score(place: &Workplace, emit: &mut dyn FnMut(Piece)) -> Result<bool, Stop> {
    let course = Course::read(root()).map_err(failed)?;
    let record = &place.record;
    let total = Total::of(&course, record);
    let has_begun = total.shown + total.begun > 0;
    emit(Piece::Words(total.words()));
    emit(Piece::Words(questions::score::assessment(record)));
    if !has_begun {
        emit(Piece::Words(
            "That is a fine time to begin: cargo course read 01 lets you bet in the first chapter. The pages \
             of the book keep their own record. If you exported it, name the file progress.json, and pass \
             its folder with --work."
                .to_owned(),
        ));
    }
    let unknown = course.unknown(record);
    if unknown > 0 {
        emit(Piece::Words(questions::score::unknown(unknown)));
    }
    let (mut unread, mut again) = (Vec::new(), Vec::new());
    for chapter in &course.chapters {
        let name = format!("{} {}", chapter.number, chapter.title);
        emit(Piece::Chapter(name.clone()));
        let mut is_begun = false;
        let mut missed = Vec::new();
        for objective in &chapter.objectives {
            let shown = Shown::of(&objective.evidence, record);
            let state = match shown.state() {
                State::Shown => "shown",
                State::Begun => "begun",
                State::NotYet => "not yet",
            };
            let words = &objective.text;
            emit(Piece::Objective { state, words: format!("{words} ({})", shown.words()) });
            is_begun |= shown.state() != State::NotYet;
            if shown.state() != State::Shown {
                missed.push(Piece::Item(format!("Chapter {}: {words}", chapter.number)));
            }
        }
        if is_begun {
            again.extend(missed);
        } else {
            unread.push(if chapter.optional { format!("{name}, optional") } else { name });
        }
    }
    lost_bets(place, &course, emit)?;

    emit(Piece::Heading("What to read next".to_owned()));
    if unread.len() == course.chapters.len() {
        emit(Piece::Item(format!("Begin with {}.", unread[0])));
    } else if !unread.is_empty() {
        emit(Piece::Item(format!("You have not begun {}.", unread.join("; "))));
    }
    if unread.is_empty() && again.is_empty() {
        emit(Piece::Words("You have shown everything in this book.".to_owned()));
    }
    if !again.is_empty() {
        emit(Piece::Words("Look again:".to_owned()));
        again.into_iter().for_each(&mut *emit);
    }
    emit(Piece::Words("Outside this book:".to_owned()));
    for reading in &course.readings {
        emit(Piece::Link {
            words: format!("{}: {}", reading.title, reading.why),
            link: reading.link.clone(),
        });
    }
    Ok(has_begun)
}

/// The lost bets, each with the lab's reply. Runs only the labs that asked them.
fn lost_bets(place: &Workplace, course: &Course, emit: &mut dyn FnMut(Piece)) -> Result<(), Stop> {
    let record = &place.record;
    let is_lost = |asked: &&Asked| matches!(record.verdict(&asked.id), Some("off" | "wrong"));
    let asked = course.asked(root()).map_err(failed)?;
    let mut last_run: Option<(String, String, Vec<Event>)> = None;
    let mut is_first = true;
    for Asked { id, chapter, run } in asked.iter().filter(is_lost) {
        if last_run.as_ref().is_none_or(|(lab, name, _)| lab != chapter || name != run) {
            let events = questions::run(chapter, run).map_err(failed)?.into_owned();
            last_run = Some((chapter.clone(), run.clone(), events));
        }
        let events = last_run.as_ref().map_or(&[][..], |(_, _, events)| events);
        let answer = events.iter().find_map(|event| match event {
            Event::Answer(answer) if answer.prediction.id == id => Some(answer),
            _ => None,
        });
        let Some(answer) = answer else { continue };
        // An answer from an older version may have become invalid or right.
        let Some(said) = record.prediction(id).and_then(|said| answer.prediction.parse(said).ok()) else {
            continue;
        };
        if answer.verdict(&said) == labs::prediction::Verdict::Right {
            continue;
        }
        if is_first {
            emit(Piece::Heading("Bets that you lost".to_owned()));
            is_first = false;
        }
        let question = answer.prediction.question.replace('\n', " ");
        emit(Piece::Bet { question: format!("{id}: {question}"), answer: answer.compared(&said) });
    }
    Ok(())
}
