//! The page after the last chapter: the reader's results by objective, the lost bets, and further reading.
//!
//! `score.js` fills it from the data in this browser, in the same words as `cargo course score`. Without JavaScript,
//! the page lists the evidence for each objective.

use std::collections::BTreeSet;

use exercises::EXERCISES;
use questions::score::{self, Asked, Objective, Shown};

use crate::course::Course;
use crate::html::{escape, inline};
use crate::mistake::{Mistake, Wrong};
use crate::prediction::{self, Fold};

pub fn html(course: &Course) -> Result<String, Wrong> {
    let all = score::Course::read(course.root())?;
    let mut page = String::from(
        "<div class=\"score\">\n\n<p class=\"score-total\" role=\"status\">With JavaScript, this page counts what you did in this browser: \
         your answers, exercises and bets, by objective. Without it, the list below says what shows each objective, and \
         <code>cargo course score</code> counts what you did in a terminal.</p>\n<p class=\"score-final\"></p>\n<p class=\"score-unknown\" hidden></p>\n\
         <section class=\"guesses\" aria-label=\"Your progress\"></section>\n\n## By objective\n\n\
         You have shown an objective when all its questions and exercises are right. Bets, your answers in the *Predict* boxes, do not \
         count towards it: they are there to be lost.\n\n",
    );
    for chapter in &all.chapters {
        let href = chapter.page.replace(".md", ".html");
        page += &format!(
            "<h3 class=\"score-chapter\"><a href=\"{href}\">{} {}</a></h3>\n<ul class=\"score-objectives\" data-page=\"{href}\" data-title=\"{} {}\"{}>\n",
            chapter.number,
            escape(&chapter.title),
            chapter.number,
            escape(&chapter.title),
            if chapter.optional { " data-optional" } else { "" }
        );
        for Objective { text, page: of_page, evidence } in &chapter.objectives {
            let nothing = labs::progress::Record::default();
            let words = Shown::of(evidence, &nothing).words();
            page += &format!(
                "<li data-questions=\"{}\" data-open=\"{}\" data-exercises=\"{}\" data-predictions=\"{}\"><span class=\"score-state\"></span> \
                 <a href=\"{}\">{}</a> <span class=\"score-words\">{words}</span></li>\n",
                evidence.questions.join(" "),
                evidence.open.join(" "),
                evidence.exercises.join(" "),
                evidence.predictions.join(" "),
                of_page.replace(".md", ".html"),
                inline(text)?
            );
        }
        page += "</ul>\n";
    }
    page += "\n## Bets that you lost\n\n<p class=\"score-no-bets\">A bet that you lost appears here with the real value, and with what \
             you know now.</p>\n<ol class=\"score-bets\"></ol>\n";
    for Asked { id, chapter, run } in all.asked(course.root())? {
        let events = course.lab_events(&chapter, &run)?;
        let form = prediction::html(events, &id)?;
        // A question to think about is not a bet, and has no form.
        if let Some((form, _)) = form.split_once("</form>") {
            let of_page = page_of(course, &all, &id)?;
            page +=
                &format!("<template data-bet=\"{id}\" data-page=\"{of_page}\">{form}</form></template>\n");
        }
    }
    page += "\n## What to read next\n\n<ul class=\"score-next\"></ul>\n\nOutside this book:\n\n";
    for reading in &all.readings {
        page += &format!("- [{}]({}): {}\n", reading.title, reading.link, reading.why);
    }
    Ok(page + "\n</div>\n\n")
}

fn page_of(course: &Course, all: &score::Course, id: &str) -> Result<String, String> {
    for chapter in &all.chapters {
        for page in questions::pages(course.root(), &chapter.number)? {
            let text = course.read(&format!("book/chapters/{page}"))?;
            if score::asked(&text, &chapter.number).iter().any(|asked| asked.id == id) {
                return Ok(page.replace(".md", ".html"));
            }
        }
    }
    Err(format!("no page asks `{id}`"))
}

/// Checks that each exercise, question and prediction shows one objective, and that all listed evidence exists.
pub fn mistakes(course: &Course) -> Vec<Mistake> {
    check(course).unwrap_or_else(|wrong| wrong.mistakes("book/plan.toml", 1))
}

fn check(course: &Course) -> Result<Vec<Mistake>, Wrong> {
    let all = score::Course::read(course.root())?;
    let asked = all.asked(course.root())?;
    let mut mistakes = Vec::new();
    for chapter in &all.chapters {
        let file = format!("{}/{}.toml", questions::FOLDER, chapter.number);
        let mut wrong = |what| mistakes.push(Mistake { file: file.clone(), line: 1, what });
        for objective in &chapter.objectives {
            if objective.evidence.questions.is_empty() && objective.evidence.exercises.is_empty() {
                wrong(format!("no question with choices and no exercise shows `{}`", objective.text));
            }
        }
        let mut bets = BTreeSet::new();
        for Asked { id, chapter: number, run } in asked.iter().filter(|asked| asked.chapter == chapter.number)
        {
            let events = course.lab_events(number, run)?;
            if prediction::html(events, id).is_ok_and(|html| Fold::of(&html) == Some(Fold::Answer)) {
                bets.insert(id.as_str());
            }
        }
        let exercises = EXERCISES.iter().filter(|exercise| exercise.chapter() == chapter.number);
        let exercises: BTreeSet<&str> = exercises.map(|exercise| exercise.id).collect();
        let of_kinds = |objective: &'_ Objective| {
            (objective.evidence.predictions.clone(), objective.evidence.exercises.clone())
        };
        let (named_bets, named_exercises): (Vec<_>, Vec<_>) = chapter.objectives.iter().map(of_kinds).unzip();
        for (kind, there, named) in
            [("prediction", bets, named_bets.concat()), ("exercise", exercises, named_exercises.concat())]
        {
            let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
            for id in there.difference(&named) {
                wrong(format!("the {kind} `{id}` shows no objective: name it in a `[[shows]]`"));
            }
            for id in named.difference(&there) {
                wrong(format!(
                    "chapter {} has no {kind} `{id}`: remove it from its `[[shows]]`",
                    chapter.number
                ));
            }
        }
    }
    Ok(mistakes)
}
