//! The questions of a chapter on its page: see `labs/questions`. A chapter asks at least six.
//!
//! A choice shows its reason when it is chosen: HTML and CSS do that, without JavaScript.

use questions::{Choice, Question};

use crate::course::Course;
use crate::html::inline;
use crate::markdown::says_something;
use crate::mistake::{Mistake, Wrong, line_of};

/// The questions of a chapter as HTML without empty lines, which would end it in Markdown.
/// `least` is how many there must be.
pub fn html(course: &Course, chapter: &str, least: usize) -> Result<String, Wrong> {
    if !chapter.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Wrong::Here(format!("`{chapter}` is no number of a chapter: say {{{{#questions 03}}}}")));
    }
    let file = format!("{}/{chapter}.toml", questions::FOLDER);
    let text = course.read(&file)?;
    let mistake = |(at, what)| Mistake { file: file.clone(), line: line_of(&text, at), what };
    let all =
        |mistakes: Vec<questions::Mistake>| Wrong::Elsewhere(mistakes.into_iter().map(mistake).collect());

    let runs = |lab: &str, run: &str| course.events(course.lab(lab)?, run);
    let questions = questions::read(chapter, &text, &runs).map_err(all)?;
    let mut html = String::from("<div class=\"questions\">\n");
    let mut mistakes = Vec::new();
    if questions.len() < least {
        let what = format!("too few questions, {}: a chapter has at least {least}", questions.len());
        mistakes.push((0, what));
    }
    for (number, Question { id, ask, choices, at }) in (1..).zip(&questions) {
        if !says_something(ask) {
            mistakes.push((*at, "this question asks nothing: write `ask = \"…\"` with words".to_owned()));
        }
        html += &format!("<fieldset>\n<legend>{number}. {}</legend>\n", shown(ask, *at, &mut mistakes));
        for Choice { text, right, because, place, at } in choices {
            if !says_something(text) {
                let what = "this choice says nothing: write `text = \"…\"` with words or numbers";
                mistakes.push((*at, what.to_owned()));
            }
            let (which, verdict) = if *right { ("right", "Right.") } else { ("wrong", "No.") };
            // Who is right needs no reason.
            if !(says_something(because) || *right && because.is_empty()) {
                mistakes.push((*at, format!("no reason why `{text}` is {which}: add `because = \"…\"`")));
            }
            html += &format!(
                "<div class=\"choice\"><label><input type=\"radio\" name=\"{id}\" value=\"{which}\" \
                 data-place=\"{place}\"> {}</label><p class=\"reason is-{which}\"><strong>{verdict}</strong> {}</p>\
                 </div>\n",
                shown(text, *at, &mut mistakes),
                shown(because, *at, &mut mistakes)
            );
        }
        html += "</fieldset>\n";
    }
    html += "</div>\n";
    if mistakes.is_empty() { Ok(html) } else { Err(all(mistakes)) }
}

/// A text of a question as HTML.
fn shown(text: &str, at: usize, mistakes: &mut Vec<questions::Mistake>) -> String {
    inline(text).unwrap_or_else(|what| {
        mistakes.push((at, what));
        String::new()
    })
}
