//! The teacher's guide: a page for each session, and a printable sheet for each chapter.
//!
//! These pages are generated, so they never go stale. Minutes are counted; predictions and answers come from the labs,
//! discussions from the questions, and mistakes with their diagnoses from the snapshots of the test of wrong solutions.

use std::path::{Path, PathBuf};

use exercises::assessment::{FAULTS, KINDS, Kind as FaultKind};
use exercises::{EXERCISES, Exercise, Kind};
use labs::Event;
use labs::prediction::{Answer, Prediction};
use mdbook_preprocessor::book::{Book, BookItem};
use questions::{Quiz, score};

use crate::course::Course;
use crate::document::up;
use crate::error_pages::below;
use crate::html::{escape, fence, inline};
use crate::mistake::Wrong;
use crate::plan::{Chapter, Expand, Plan, Session};
use crate::plan_page::{hours, plural, session_page};

/// The parent page, relative to the chapters folder. A book without it has no guide.
const LIST: &str = "teaching/index.md";

/// The maximum number of mistakes per exercise, and of questions per chapter.
const MISTAKES: usize = 3;
const DISCUSSIONS: usize = 3;

fn sheet_page(chapter: &str) -> String {
    format!("teaching/sheet-{chapter}.md")
}

pub fn add(book: &mut Book, course: &Course) {
    // The pages that show a plan report its errors.
    let Ok(plan) = Plan::read(course) else { return };
    let mut pages = Vec::new();
    for (number, session) in (1..).zip(&plan.session) {
        let title = format!("Session {number}: {}", session.get_ref().name);
        pages.push((title, session_page(number), format!("{{{{#guide {number}}}}}")));
    }
    for chapter in plan.chapters().filter(|chapter| chapter.page().is_some()) {
        let number = chapter.number();
        let title = format!("Sheet {number}: {}", chapter.title);
        pages.push((title, sheet_page(number), format!("{{{{#sheet {number}}}}}")));
    }
    book.for_each_mut(|item| {
        if let BookItem::Chapter(list) = item
            && list.source_path.as_ref().is_some_and(|path| path.as_path() == Path::new(LIST))
        {
            for (title, path, directive) in &pages {
                below(list, title, format!("# {title}\n\n{directive}\n"), PathBuf::from(path));
            }
        }
    });
}

/// The source of a generated page, relative to the root of the checkout; `None` for another page.
pub fn source(path: &str) -> Option<String> {
    let name = path.strip_prefix("teaching/")?;
    (name.starts_with("session-") || name.starts_with("sheet-")).then(|| "book/plan.toml".to_owned())
}

pub fn session(course: &Course, page: &str, number: &str, expand: Expand) -> Result<String, Wrong> {
    let plan = Plan::read(course)?;
    let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(session) = at.and_then(|at| plan.session.get(at)) else {
        return Err(Wrong::Here(format!("no session `{number}`: write 1 to {}", plan.session.len())));
    };
    let numbers: Vec<String> = plan
        .chapters_in(session.get_ref())
        .into_iter()
        .chain(plan.chapters_before(session.get_ref()))
        .map(|chapter| chapter.number().to_owned())
        .collect();
    let plan =
        plan.with_minutes_of(course, expand, |chapter| numbers.contains(&chapter.number().to_owned()))?;
    let session = plan.session[at.unwrap_or_default()].get_ref();
    let up = up(page);
    let mut markdown = minutes(&plan, session, &up);
    for chapter in plan.chapters_in(session).into_iter().chain(plan.chapters_before(session)) {
        markdown += &of_chapter(course, chapter, &up)?;
    }
    for step in &session.step {
        markdown += &format!("## {}\n\n{}: {}\n\n", step.title, plural(step.minutes, "minute"), step.then);
    }
    if !session.step.is_empty() {
        markdown += &faults();
    }
    Ok(markdown)
}

/// The most frequent faults of the final assessment: those with the most places in its program.
fn faults() -> String {
    let places = |kind: &&FaultKind| FAULTS.iter().filter(|fault| fault.kind == kind.id).count();
    let mut kinds: Vec<&FaultKind> = KINDS.iter().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(places(kind)));
    let mut markdown =
        "## Mistakes that will come up\n\nThese faults have the most places in the programs of the final assessment:\n\n".to_owned();
    for kind in kinds.iter().take(MISTAKES) {
        let mut symptoms: Vec<&str> =
            FAULTS.iter().filter(|fault| fault.kind == kind.id).map(|fault| fault.symptom).collect();
        symptoms.sort_unstable();
        symptoms.dedup();
        let symptoms: Vec<String> = symptoms.iter().map(|symptom| format!("`{symptom}`")).collect();
        let (page, heading) = kind.section;
        markdown += &format!(
            "- `{}`, of {}: it is diagnosed by {}. Students who left it open should read [{heading}](../{page}.md) again.\n",
            kind.id,
            kind.category.name(),
            symptoms.join(", ")
        );
    }
    markdown + "\n"
}

fn minutes(plan: &Plan, session: &Session, up: &str) -> String {
    let (in_class, at_home) = plan.minutes_of(session);
    let at_home = if at_home == 0 { "nothing".to_owned() } else { hours(at_home) };
    let mut markdown = format!(
        "<p class=\"minutes\">{} in class; at home: {at_home}</p>\n\n| minutes | what |\n| --- | --- |\n",
        plural(in_class, "minute")
    );
    for chapter in plan.chapters_in(session) {
        let work = chapter.work().in_class();
        let exercise = 10 * work.exercises as u32;
        let reading = work.minutes_if_any().saturating_sub(exercise);
        let sheet = format!("[sheet]({up}{})", sheet_page(chapter.number()));
        markdown += &format!(
            "| {reading} | {}: read, and make {}; {sheet} |\n",
            titled(chapter, up),
            plural(work.predictions as u32, "prediction")
        );
        if let Some(exercise) = in_class_exercise(chapter).filter(|_| exercise > 0) {
            markdown += &format!("| 10 | the exercise *{}*, `{}` |\n", exercise.title, exercise.id);
        }
    }
    for step in &session.step {
        markdown += &format!("| {} | {} |\n", step.minutes, step.title);
    }
    markdown.push('\n');
    for chapter in plan.chapters_before(session) {
        markdown += &format!("At home, before this session: {}.\n\n", titled(chapter, up));
    }
    markdown
}

fn titled(chapter: &Chapter, up: &str) -> String {
    let title = format!("{} {}", chapter.number(), chapter.title);
    chapter.page().map_or(title.clone(), |page| format!("[{title}]({up}{page})"))
}

fn in_class_exercise(chapter: &Chapter) -> Option<&'static Exercise> {
    EXERCISES.iter().copied().find(|exercise| exercise.chapter() == chapter.number())
}

fn of_chapter(course: &Course, chapter: &Chapter, up: &str) -> Result<String, Wrong> {
    let number = chapter.number();
    let mut markdown = format!(
        "## {number} {}\n\nThe chapter is {}. Afterwards: {}\n\n### To show\n\n",
        chapter.title,
        titled(chapter, up),
        chapter.then
    );
    markdown += "Ask each of these, let everybody write down an answer, and then run it:\n\n";
    for (page, prediction, answer) in predictions(course, chapter)? {
        markdown += &format!(
            "- [{}]({up}{page}#predict-{})\n  <details><summary>The answer</summary>{}. {}</details>\n",
            prediction.question.replace('\n', " "),
            prediction.id,
            inline(&answer.printed())?,
            inline(&prediction.because)?
        );
    }
    if let Some(exercise) = in_class_exercise(chapter) {
        markdown += &format!(
            "\n### Mistakes that will come up\n\nThe exercise in class is *{}*, `{}`. The check's messages for common mistakes:\n\n",
            exercise.title, exercise.id
        );
        for (what, diagnosis, verdict) in mistakes(course, exercise)? {
            markdown += &format!("{what} The diagnosis is `{diagnosis}`:\n\n{}\n", fence("text", &verdict));
        }
    }
    markdown += "### To discuss\n\n";
    for (ask, answers) in discussions(course, number)? {
        markdown += &format!("<details>\n<summary>{}</summary>\n<ul>\n", inline(&ask)?);
        for (is_right, text, because) in answers {
            let verdict = if is_right { "Right" } else { "No" };
            let because = if because.is_empty() { String::new() } else { format!(" {}", inline(&because)?) };
            markdown += &format!(
                "<li><strong>{verdict}:</strong> {}.{because}</li>\n",
                inline(text.trim_end_matches('.'))?
            );
        }
        markdown += "</ul>\n</details>\n\n";
    }
    let home: Vec<String> = EXERCISES
        .iter()
        .filter(|exercise| exercise.chapter() == number)
        .skip(1)
        .map(|exercise| format!("`{}`", exercise.id))
        .collect();
    let home =
        if home.is_empty() { String::new() } else { format!(", and the exercises {}", home.join(", ")) };
    Ok(markdown + &format!("### Homework\n\nThe questions of chapter {number}{home}.\n\n"))
}

/// The predictions of a chapter that wait for an answer, each with its page and the lab's answer.
fn predictions(
    course: &Course,
    chapter: &Chapter,
) -> Result<Vec<(String, &'static Prediction, &'static Answer)>, Wrong> {
    let mut all = Vec::new();
    let parts = chapter.part.iter().filter(|part| !part.optional).map(|part| part.page());
    for page in chapter.page().into_iter().chain(parts) {
        let text = course.read(&format!("book/chapters/{page}"))?;
        for asked in score::asked(&text, chapter.number()) {
            let events = course.lab_events(chapter.number(), &asked.run)?;
            let prediction = events.iter().find_map(|event| match event {
                Event::Prediction(prediction) if prediction.id == asked.id => Some(prediction),
                _ => None,
            });
            let answer = events.iter().find_map(|event| match event {
                Event::Answer(answer) if answer.prediction.id == asked.id => Some(answer),
                _ => None,
            });
            if let (Some(prediction), Some(answer)) = (prediction, answer)
                && prediction.gates()
            {
                all.push((page.to_owned(), prediction, answer));
            }
        }
    }
    Ok(all)
}

/// The first mistakes of an exercise, except the unchanged skeleton, each with the diagnosis and the verdict from the
/// snapshot of wrong solutions.
pub(crate) fn mistakes(
    course: &Course,
    exercise: &Exercise,
) -> Result<Vec<(&'static str, &'static str, String)>, String> {
    let file = format!("labs/exercises/tests/snapshots/{}.snap", exercise.id);
    let snapshot = course.read(&file)?;
    let skeleton = exercise.skeleton();
    let mut found = Vec::new();
    for wrong in exercise.wrong {
        if exercise.kind == Kind::Write && exercise.edited(wrong.edits)? == skeleton {
            continue;
        }
        let (_, after) = snapshot
            .split_once(&format!("\n## {}\n\n", wrong.name))
            .ok_or_else(|| format!("{file} has no `## {}`: run the test of the matrix again", wrong.name))?;
        let verdict = after.split("\n\n").next().unwrap_or_default();
        found.push((wrong.what, wrong.diagnosis, verdict.trim().to_owned()));
        if found.len() == MISTAKES {
            break;
        }
    }
    Ok(found)
}

/// A question and its options: whether each is right, and why.
type Discussion = (String, Vec<(bool, String, String)>);

fn discussions(course: &Course, number: &str) -> Result<Vec<Discussion>, Wrong> {
    let quiz = quiz(course, number)?;
    let questions = quiz.questions.into_iter().take(DISCUSSIONS).map(|question| {
        let choices = question.choices.into_iter().map(|choice| (choice.right, choice.text, choice.because));
        (question.ask, choices.collect())
    });
    let open = quiz.open.into_iter().map(|open| {
        let points = open.rubric.join("; ");
        (open.ask, vec![(true, open.answer, format!("Points of a good answer: {points}"))])
    });
    Ok(questions.chain(open).collect())
}

fn quiz(course: &Course, number: &str) -> Result<Quiz, Wrong> {
    let file = format!("{}/{number}.toml", questions::FOLDER);
    let text = course.read(&file)?;
    let runs = |lab: &str, run: &str| Ok(course.lab_events(lab, run)?.into());
    let objectives = questions::objectives(course.root(), number)?;
    questions::read(number, &text, &objectives, &runs)
        .map_err(|mistakes| Wrong::Here(format!("{file}: {}", mistakes[0].1)))
}

pub fn sheet(course: &Course, number: &str) -> Result<String, Wrong> {
    let plan = Plan::read(course)?;
    let Some(chapter) =
        plan.chapters().find(|chapter| chapter.number() == number && chapter.page().is_some())
    else {
        return Err(Wrong::Here(format!("no chapter `{number}` is written: write {{{{#sheet 03}}}}")));
    };
    let mut markdown = "<div class=\"sheet\">\n\n<p class=\"sheet-name\">Name: <span class=\"sheet-line\"></span></p>\n\n## Afterwards you can\n\n".to_owned();
    for objective in questions::objectives(course.root(), number)? {
        markdown += &format!("- ☐ {objective}\n");
    }
    let asked = predictions(course, chapter)?;
    if !asked.is_empty() {
        markdown += "\n## What do you expect?\n\nAnswer before you run it. Where a question says *this*, look at the page of the chapter.\n\n";
    }
    for (at, (_, prediction, _)) in (1..).zip(&asked) {
        markdown += &format!("{at}. {}\n", prediction.question.replace('\n', " "));
        markdown += &match &prediction.kind {
            labs::prediction::Kind::Number { unit, .. } => {
                format!("   <span class=\"sheet-line\"></span> {}\n", escape(unit))
            }
            labs::prediction::Kind::Order(things) => {
                let things: Vec<String> = things.iter().map(|thing| format!("▢ {thing}")).collect();
                format!("   Number these: {}\n", things.join("; "))
            }
            _ => {
                let option = |option: &&str| format!("   - ☐ {}\n", shown(prediction, option));
                prediction.options().iter().map(option).collect()
            }
        };
    }
    if let Some(exercise) = in_class_exercise(chapter) {
        markdown += &format!(
            "\n## {}\n\n{}\n\n{}\n",
            exercise.title,
            exercise.task,
            fence("rust,ignore", &exercise.skeleton())
        );
        markdown += "\n## Which mistake is it?\n\nA check said this of three programs. Which line of each was wrong, and what would you write there?\n\n";
        for (_, _, verdict) in mistakes(course, exercise)? {
            // Cuts the verdict before the idea, which would give the solution away.
            let says = verdict.split("\nidea ").next().unwrap_or_default();
            markdown += &format!("{}\n<p class=\"sheet-line\"></p>\n\n", fence("text", says));
        }
    }
    markdown += "\n## In your own words\n\n";
    for (ask, _) in discussions(course, number)? {
        markdown += &format!("- {}\n  <span class=\"sheet-line\"></span>\n", ask.replace('\n', " "));
    }
    Ok(markdown + "\n</div>\n\n")
}

fn shown(prediction: &Prediction, option: &str) -> String {
    match prediction.kind {
        labs::prediction::Kind::Line(_) => format!("`{}`", option.trim()),
        _ => option.to_owned(),
    }
}
