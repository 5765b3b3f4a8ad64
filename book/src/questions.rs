//! The questions of a chapter on its page: see `labs/questions`. A chapter has at least six.
//!
//! Choosing an option shows its reason, with HTML and CSS only. For an open question, students compare their answer
//! with a folded one.

use questions::{Choice, Open, Question, Quiz};

use crate::course::Course;
use crate::document::Page;
use crate::html::inline;
use crate::markdown::has_words;
use crate::mistake::{Mistake, Wrong, line_of};
use crate::objectives;

/// The questions of a chapter as HTML without blank lines, which would end an HTML block in Markdown. `least` is the
/// minimum number of questions.
pub fn html(course: &Course, page: &Page, chapter: &str, least: usize) -> Result<String, Wrong> {
    if !chapter.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Wrong::Here(format!(
            "`{chapter}` is not the number of a chapter: write {{{{#questions 03}}}}"
        )));
    }
    let file = format!("{}/{chapter}.toml", questions::FOLDER);
    let text = course.read(&file)?;
    let mistake = |(at, what)| Mistake { file: file.clone(), line: line_of(&text, at), what };
    let all =
        |mistakes: Vec<questions::Mistake>| Wrong::Elsewhere(mistakes.into_iter().map(mistake).collect());

    let runs = |lab: &str, run: &str| Ok(course.lab_events(lab, run)?.into());
    let objectives = questions::objectives(course.root(), chapter)?;
    let Quiz { mut questions, mut open } =
        questions::read(chapter, &text, &objectives, &runs).map_err(all)?;
    let mut html = String::from("<div class=\"questions\">\n");
    let mut mistakes = Vec::new();
    let count = questions.len() + open.len();
    let is_here = objectives::on_page(course, page, chapter, &objectives)?;
    questions.retain(|question| is_here[question.objective]);
    open.retain(|question| is_here[question.objective]);
    if count < least {
        mistakes.push((0, format!("too few questions, {count}: a chapter has at least {least}")));
    }
    for (number, Question { id, ask, choices, at, .. }) in (1..).zip(&questions) {
        html += &question_start(number, ask, *at, &mut mistakes);
        for Choice { text, right, because, place, at } in choices {
            if !has_words(text) {
                let what = "this choice is empty: write `text = \"…\"` with words or numbers";
                mistakes.push((*at, what.to_owned()));
            }
            let (which, verdict) = if *right { ("right", "Right.") } else { ("wrong", "No.") };
            // A right choice needs no reason.
            if !(has_words(because) || *right && because.is_empty()) {
                mistakes.push((*at, format!("no reason why `{text}` is {which}: add `because = \"…\"`")));
            }
            html += &format!(
                "<div class=\"choice\"><label><input type=\"radio\" name=\"{id}\" value=\"{which}\" \
                 data-place=\"{place}\"> {}</label><p class=\"reason is-{which}\"><strong>{verdict}</strong> {}</p>\
                 </div>\n",
                inline_html(text, *at, &mut mistakes),
                inline_html(because, *at, &mut mistakes)
            );
        }
        html += "</fieldset>\n";
    }
    for (number, Open { id, ask, answer, rubric, at, .. }) in (questions.len() + 1..).zip(&open) {
        html += &question_start(number, ask, *at, &mut mistakes);
        if !rubric.iter().chain([answer]).all(|text| has_words(text)) {
            let what = "the answer and each point of the rubric need words: write `answer` and `rubric`";
            mistakes.push((*at, what.to_owned()));
        }
        html += &format!(
            "<textarea id=\"{id}\" rows=\"5\" aria-label=\"Your answer, in your own words\"></textarea>\n\
             <details>\n<summary>A good answer, to compare with yours</summary>\n<p>{}</p>\n\
             <p>Did yours say this?</p>\n<ul>\n",
            inline_html(answer, *at, &mut mistakes)
        );
        for point in rubric {
            html += &format!("<li>{}</li>\n", inline_html(point, *at, &mut mistakes));
        }
        html += "</ul>\n</details>\n</fieldset>\n";
    }
    html += "</div>\n";
    if mistakes.is_empty() { Ok(html) } else { Err(all(mistakes)) }
}

fn question_start(number: usize, ask: &str, at: usize, mistakes: &mut Vec<questions::Mistake>) -> String {
    if !has_words(ask) {
        mistakes.push((at, "this question is empty: write `ask = \"…\"` with words".to_owned()));
    }
    format!("<fieldset>\n<legend>{number}. {}</legend>\n", inline_html(ask, at, mistakes))
}

fn inline_html(text: &str, at: usize, mistakes: &mut Vec<questions::Mistake>) -> String {
    inline(text).unwrap_or_else(|what| {
        mistakes.push((at, what));
        String::new()
    })
}
