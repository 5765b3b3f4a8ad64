//! The exercises of a chapter on its page: see `labs/exercises`.
//!
//! An exercise with choices has a form, and `exercise.js` checks the answer: the module of `exercises-page` contains
//! every choice, compiled. Without JavaScript, the page shows only the command for a terminal.

use exercises::{Choices, EXERCISES, Exercise, Kind, pieces};
use serde_json::Value as Json;

use crate::course::Course;
use crate::document::Page;
use crate::html::{escape, fence, inline};
use crate::mistake::Wrong;
use crate::objectives;

/// The exercises of a page: those of its chapter or, if the chapter has several pages, those for an objective of this
/// page.
pub fn on_page(course: &Course, page: &Page, chapter: &str) -> Result<Vec<&'static Exercise>, Wrong> {
    let of_chapter = EXERCISES.iter().copied().filter(|exercise| exercise.chapter() == chapter);
    if page.chapter() != Some(chapter) || questions::pages(course.root(), chapter)?.len() == 1 {
        return Ok(of_chapter.collect());
    }
    let here = objectives::exercises(course, page, chapter)?;
    Ok(of_chapter.filter(|exercise| here.iter().any(|id| id == exercise.id)).collect())
}

pub fn count(chapter: &str) -> usize {
    EXERCISES.iter().filter(|exercise| exercise.chapter() == chapter).count()
}

pub fn markdown(course: &Course, page: &Page, chapter: &str) -> Result<String, Wrong> {
    let exercises = on_page(course, page, chapter)?;
    if exercises.is_empty() {
        return Err(Wrong::Here(format!("chapter {chapter} has no exercises for this page")));
    }
    course.is_built_in()?;
    let mut markdown = String::from(
        "## Exercises\n\nYour code runs on simulated GPUs, and the verdict tells you what they saw. `watch` writes your \
         file into the folder `exercises`, and checks it whenever you save.\n\n",
    );
    for exercise in exercises {
        markdown += &exercise_html(exercise)?;
    }
    Ok(markdown)
}

fn exercise_html(exercise: &Exercise) -> Result<String, String> {
    let Exercise { id, title, task, hints, wrong, .. } = exercise;
    let kind = match exercise.kind {
        Kind::Fix => "Fix it",
        Kind::Write => "Write it",
    };
    let mut markdown = format!(
        "<div class=\"exercise\" id=\"exercise-{id}\" data-id=\"{id}\">\n\n### {title}\n\n<p class=\"exercise-kind\">\
         <span>{kind}</span> <code>{id}</code> <strong class=\"exercise-state\"></strong></p>\n\n{task}\n\n",
    );
    let code = fence("rust,ignore", &exercise.skeleton());
    let command = fence("sh", &format!("cargo course watch {id}"));
    match exercise.places.is_empty() {
        false => {
            // The chosen option appears in the code above the form.
            markdown += &format!("<div class=\"exercise-code\">\n\n{code}\n</div>\n\n{}", form(exercise)?);
            markdown += &format!("<p class=\"in-page\">Or do it in your editor:</p>\n\n{command}\n");
        }
        true => {
            markdown += &format!("<p class=\"in-page\">This one takes your editor:</p>\n\n{command}\n");
            markdown += &folded("", "Your file to begin with", &code);
        }
    }
    for (number, hint) in (1..).zip(hints) {
        markdown += &folded(&format!(" data-hint=\"{number}\""), &format!("Hint {number}"), hint);
    }
    let mut mistakes = String::new();
    for mistake in *wrong {
        mistakes += &format!("<li>{}</li>\n", inline(mistake.what)?);
    }
    markdown += &folded("", "What others get wrong", &format!("<ul>\n{mistakes}</ul>"));
    Ok(markdown + "</div>\n\n")
}

/// The choices as HTML without blank lines, which would end an HTML block in Markdown.
fn form(exercise: &Exercise) -> Result<String, String> {
    let id = exercise.id;
    let choices = exercise.choices()?;
    let skeleton = exercise.skeleton();
    let first = (0..choices.count()).find(|number| choices.text(*number) == skeleton);
    let first =
        choices.chosen(first.ok_or_else(|| format!("{id}: its choices do not begin with the skeleton"))?);
    let mut html = format!(
        "<form class=\"choose\" data-id=\"{id}\" data-code=\"{}\">\n<p>Choose the code for the marked \
         places. The check is the one that a terminal runs.</p>\n",
        escape(&Json::from_iter(choices.pieces.iter().map(pieces::json)).to_string())
    );
    for (place, (what, _)) in exercise.places.iter().enumerate() {
        html += &format!("<fieldset>\n<legend>{}</legend>\n", inline(what)?);
        for option in shuffled(id, &choices, place) {
            let checked = if first[place] == option { " checked" } else { "" };
            html += &format!(
                "<div class=\"choice\"><label><input type=\"radio\" name=\"{id} {place}\" value=\"{option}\"{checked}> {}</label>\
                 </div>\n",
                option_html(&choices, place, option)
            );
        }
        html += "</fieldset>\n";
    }
    Ok(
        html + "<p><button type=\"submit\">Check</button></p>\n<div class=\"exercise-verdict\" role=\"status\"></div>\n</form>\n\n"
    )
}

/// The options of a place in a deterministic order that does not reveal the right one.
fn shuffled(id: &str, choices: &Choices, place: usize) -> Vec<usize> {
    let mut options: Vec<usize> = (0..choices.options[place]).collect();
    options.sort_by_cached_key(|option| {
        let text = format!("{id} {place} {}", pieces::parts(choices, place, *option).concat());
        // Mixes the hash, since its leading digits determine the order and are alike for texts that end alike.
        let hash = questions::hash(text.bytes());
        (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    options
}

fn option_html(choices: &Choices, place: usize, option: usize) -> String {
    let parts = pieces::shown(choices, place, option);
    if parts.is_empty() {
        return "nothing".to_owned();
    }
    let code: Vec<String> =
        parts.iter().map(|part| format!("<code class=\"lines\">{}</code>", escape(part))).collect();
    code.join("<span class=\"between\">and further down</span>")
}

fn folded(attributes: &str, summary: &str, markdown: &str) -> String {
    format!(
        "<details{attributes}>\n<summary>{}</summary>\n\n{}\n\n</details>\n\n",
        escape(summary),
        markdown.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_stands_first_no_more_often_than_by_chance() {
        let (mut places, mut first, mut by_chance) = (0, 0, 0.0);
        for exercise in EXERCISES {
            let choices = exercise.choices().unwrap();
            for (place, options) in choices.options.iter().enumerate() {
                let order = shuffled(exercise.id, &choices, place);
                places += 1;
                // The first option of an exercise is the solution.
                first += usize::from(order[0] == 0);
                by_chance += 1.0 / *options as f64;
            }
        }
        assert!(places > 20 && first > 0, "{first} of {places}");
        assert!((first as f64) < 1.5 * by_chance, "{first} of {places}, by chance {by_chance:.1}");
    }

    #[test]
    fn a_form_begins_with_the_file_of_the_terminal() {
        let exercise = Exercise::find("02-batch").unwrap();
        let html = form(exercise).unwrap();
        assert_eq!(html.matches(" checked>").count(), exercise.places.len());
        // This line moves only the model.
        assert_eq!(html.matches(" checked> nothing<").count(), 2, "{html}");
        assert!(!html.contains("\n\n<"), "an empty line ends HTML in Markdown");
    }
}
