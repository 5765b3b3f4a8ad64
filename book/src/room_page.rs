//! The page for a projector: one prediction at a time, large, with a folded answer, and bars of the class's guesses.
//!
//! `room.js` fills it. The teacher's counts, and the files that students export, stay in the page: nothing is sent.

use labs::Event;
use labs::prediction::Kind;
use questions::{Quiz, score};

use crate::course::Course;
use crate::html::{escape, inline};
use crate::mistake::Wrong;
use crate::prediction;

/// The page as HTML without blank lines, which would end an HTML block in Markdown.
pub fn html(course: &Course) -> Result<String, Wrong> {
    let all = score::Course::read(course.root())?;
    let mut html = String::from(
        "<div class=\"room\">\n<p class=\"room-without\">With JavaScript, this page shows one prediction of the course at a time, large \
         enough for a projector.</p>\n",
    );
    for chapter in &all.chapters {
        html += &format!(
            "<template class=\"room-chapter\" data-title=\"{} {}\">\n",
            chapter.number,
            escape(&chapter.title)
        );
        for page in questions::pages(course.root(), &chapter.number)? {
            let text = course.read(&format!("book/chapters/{page}"))?;
            for asked in score::asked(&text, &chapter.number) {
                html += &asked_in_room(course, &asked, &page.replace(".md", ".html"))?;
            }
        }
        html += &questions_of(course, &chapter.number)?;
        html += "</template>\n";
    }
    Ok(html + "</div>\n\n")
}

/// A prediction: its form, for comparing guesses, and its answer.
fn asked_in_room(course: &Course, asked: &score::Asked, page: &str) -> Result<String, Wrong> {
    let events = course.lab_events(&asked.chapter, &asked.run)?;
    let form = prediction::html(events, &asked.id)?;
    // A question to think about has no form, and guesses of it are not stored.
    let Some((form, _)) = form.split_once("</form>") else { return Ok(String::new()) };
    let answer = events.iter().find_map(|event| match event {
        Event::Answer(answer) if answer.prediction.id == asked.id => Some(answer),
        _ => None,
    });
    let Some(answer) = answer else { return Ok(String::new()) };
    let why = inline(&answer.prediction.because)?;
    let unit = match &answer.prediction.kind {
        Kind::Number { unit, .. } => escape(unit),
        _ => String::new(),
    };
    Ok(format!(
        "<section class=\"room-asked\" data-page=\"{page}\" data-unit=\"{unit}\">{form}</form><p class=\"room-answer\"><strong>{}</strong>. {why}</p></section>\n",
        inline(&answer.printed())?
    ))
}

fn questions_of(course: &Course, number: &str) -> Result<String, Wrong> {
    let file = format!("{}/{number}.toml", questions::FOLDER);
    let text = course.read(&file)?;
    let runs = |lab: &str, run: &str| Ok(course.lab_events(lab, run)?.into());
    let objectives = questions::objectives(course.root(), number)?;
    let Quiz { questions, .. } = questions::read(number, &text, &objectives, &runs)
        .map_err(|mistakes| Wrong::Here(format!("{file}: {}", mistakes[0].1)))?;
    let mut html = String::new();
    for question in questions {
        html += &format!(
            "<section class=\"room-question\" data-id=\"{}\"><p>{}</p>",
            question.id,
            inline(&question.ask)?
        );
        for choice in question.choices.iter().filter(|choice| !choice.right) {
            html += &format!(
                "<div data-place=\"{}\"><span>{}</span><small>{}</small></div>",
                choice.place,
                inline(&choice.text)?,
                inline(&choice.because)?
            );
        }
        html += "</section>\n";
    }
    Ok(html)
}
