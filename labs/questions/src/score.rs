//! How a reader did in the whole course, by objective. A page of the book (`book/theme/score.js`) and a terminal say it in the
//! same words.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use labs::progress::Record;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Evidence, FOLDER, evidence, listed, pages};

const PLAN: &str = "book/plan.toml";

/// The chapters that are written, and what to read when they are done.
pub struct Course {
    pub chapters: Vec<Chapter>,
    pub readings: Vec<Reading>,
}

pub struct Chapter {
    pub number: String,
    pub title: String,
    pub optional: bool,
    /// Its first page, from the folder of the chapters.
    pub page: String,
    pub objectives: Vec<Objective>,
}

pub struct Objective {
    /// As Markdown.
    pub text: String,
    /// The page that has it, from the folder of the chapters.
    pub page: String,
    pub evidence: Evidence,
}

/// Something outside this book.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    pub title: String,
    pub link: String,
    pub why: String,
}

/// A prediction on a page: its id, the number of the chapter whose lab asks it, and the run that answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub id: String,
    pub chapter: String,
    pub run: String,
}

#[derive(Deserialize)]
struct Plan {
    chapter: Vec<Planned>,
    appendix: Planned,
    #[serde(default)]
    reading: Vec<Reading>,
}

#[derive(Deserialize)]
struct Planned {
    number: String,
    title: String,
    #[serde(default)]
    optional: bool,
    page: Option<String>,
}

impl Course {
    /// The course of a checkout.
    pub fn read(root: &Path) -> Result<Course, String> {
        let text = read(root, PLAN)?;
        let Plan { chapter, appendix, reading } =
            toml::from_str(&text).map_err(|error| format!("{PLAN}: {}", error.message()))?;
        let mut chapters = Vec::new();
        let appendix = Planned { optional: true, ..appendix };
        for Planned { number, title, optional, page } in chapter.into_iter().chain([appendix]) {
            let Some(page) = page else { continue };
            let mut of_pages = Vec::new();
            for page in pages(root, &number)? {
                let text = read(root, &format!("book/chapters/{page}"))?;
                of_pages.extend(listed(&text).into_iter().map(|text| (text, page.clone())));
            }
            let texts: Vec<String> = of_pages.iter().map(|(text, _)| text.clone()).collect();
            let file = format!("{FOLDER}/{number}.toml");
            let evidence = evidence(&read(root, &file)?, &texts)
                .map_err(|mistakes| format!("{file}: {}", mistakes[0].1))?;
            let objective = |((text, page), evidence)| Objective { text, page, evidence };
            let objectives = of_pages.into_iter().zip(evidence).map(objective).collect();
            chapters.push(Chapter { number, title, optional, page, objectives });
        }
        Ok(Course { chapters, readings: reading })
    }

    /// All predictions that its pages ask, in their order.
    pub fn asked(&self, root: &Path) -> Result<Vec<Asked>, String> {
        let mut all = Vec::new();
        for Chapter { number, .. } in &self.chapters {
            for page in pages(root, number)? {
                all.extend(asked(&read(root, &format!("book/chapters/{page}"))?, number));
            }
        }
        Ok(all)
    }

    /// How many ids of a record this course does not have.
    pub fn unknown(&self, record: &Record) -> usize {
        let all =
            self.chapters.iter().flat_map(|chapter| &chapter.objectives).map(|objective| &objective.evidence);
        let mut known = BTreeSet::new();
        for Evidence { questions, open, predictions, exercises } in all {
            let kinds = [
                ("questions", questions),
                ("questions", open),
                ("predictions", predictions),
                ("exercises", exercises),
            ];
            known.extend(
                kinds.into_iter().flat_map(|(part, ids)| ids.iter().map(move |id| (part, id.as_str()))),
            );
        }
        let done = ["questions", "predictions", "exercises"].into_iter();
        let done = done.flat_map(|part| record.ids(part).into_iter().map(move |id| (part, id)));
        done.filter(|id| !known.contains(id)).count()
    }
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file} cannot be read: {error}"))
}

/// The predictions on a page of a chapter: `{{#predict 03-steps run=t4}}`.
pub fn asked(page: &str, chapter: &str) -> Vec<Asked> {
    let lines =
        page.lines().filter_map(|line| line.trim_end().strip_prefix("{{#predict ")?.strip_suffix("}}"));
    let both = lines.filter_map(|words| words.split_once(" run="));
    both.map(|(id, run)| Asked { id: id.to_owned(), chapter: chapter.to_owned(), run: run.to_owned() })
        .collect()
}

/// So many are right, of so many that were tried, of so many that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub right: usize,
    pub tried: usize,
    pub all: usize,
}

impl Count {
    fn of(ids: &[String], is_right: impl Fn(&str) -> Option<bool>) -> Count {
        let answers: Vec<bool> = ids.iter().filter_map(|id| is_right(id)).collect();
        Count { right: answers.iter().filter(|right| **right).count(), tried: answers.len(), all: ids.len() }
    }
}

/// What a reader has shown of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub questions: Count,
    pub exercises: Count,
    pub bets: Count,
}

/// Bets do not decide it: they are there to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All its questions and exercises are right.
    Shown,
    Begun,
    NotYet,
}

impl Shown {
    pub fn of(evidence: &Evidence, record: &Record) -> Shown {
        let bet = |id: &str| {
            record.verdict(id).filter(|verdict| *verdict != "skipped").map(|verdict| verdict == "right")
        };
        let exercise = |id: &str| {
            (record.has_passed(id) || record.count(id, "checks") > 0).then(|| record.has_passed(id))
        };
        Shown {
            questions: Count::of(&evidence.questions, |id| record.is_right(id)),
            exercises: Count::of(&evidence.exercises, exercise),
            bets: Count::of(&evidence.predictions, bet),
        }
    }

    pub fn state(&self) -> State {
        let Shown { questions, exercises, bets } = self;
        if questions.right == questions.all
            && exercises.right == exercises.all
            && questions.all + exercises.all > 0
        {
            State::Shown
        } else if questions.tried + exercises.tried + bets.tried > 0 {
            State::Begun
        } else {
            State::NotYet
        }
    }

    /// `questions 2 of 2, exercises 0 of 1, bets 1 of 2`
    pub fn words(&self) -> String {
        let kinds = [("questions", self.questions), ("exercises", self.exercises), ("bets", self.bets)];
        let some = kinds.into_iter().filter(|(_, count)| count.all > 0);
        some.map(|(kind, Count { right, all, .. })| format!("{kind} {right} of {all}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// How a reader did in all chapters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    pub objectives: usize,
    pub shown: usize,
    pub begun: usize,
    pub bets: Count,
}

impl Total {
    pub fn of(course: &Course, record: &Record) -> Total {
        let mut total = Total::default();
        for objective in course.chapters.iter().flat_map(|chapter| &chapter.objectives) {
            let shown = Shown::of(&objective.evidence, record);
            total.objectives += 1;
            total.shown += usize::from(shown.state() == State::Shown);
            total.begun += usize::from(shown.state() == State::Begun);
            total.bets.right += shown.bets.right;
            total.bets.tried += shown.bets.tried;
            total.bets.all += shown.bets.all;
        }
        total
    }

    /// The first lines of a score.
    pub fn words(&self) -> String {
        let Total { objectives, shown, begun, bets } = *self;
        if shown + begun == 0 {
            return "You have not answered anything yet.".to_owned();
        }
        let of_all = if shown == objectives {
            format!("all {objectives}")
        } else {
            format!("{shown} of {objectives}")
        };
        let more = if begun > 0 { format!(", and begun {begun} more") } else { String::new() };
        let made = match bets.tried {
            0 => "You have made no bets.".to_owned(),
            made => format!("You made {made} of {} bets, and won {}.", bets.all, bets.right),
        };
        format!("You have shown {of_all} objectives{more}. {made}")
    }
}

/// The result of the final assessment in a sentence.
pub fn assessment(record: &Record) -> String {
    let Some(result) = record.assessment() else {
        return "You have not checked the final assessment.".to_owned();
    };
    let number = |key: &str| result.get(key).and_then(Json::as_u64).unwrap_or(0);
    let state = if result.get("passed") == Some(&true.into()) { "passed" } else { "not yet" };
    let objectives = result.get("objectives").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let met = objectives.iter().filter(|one| one.get("met") == Some(&true.into())).count();
    format!(
        "The final assessment: {state}, {} of 100 points, {met} of {} objectives met (the program of seed {}).",
        number("points"),
        objectives.len(),
        number("seed")
    )
}

/// What to say of answers that this course does not ask for.
pub fn unknown(count: usize) -> String {
    let answers =
        if count == 1 { "One answer belongs".to_owned() } else { format!("{count} answers belong") };
    format!("{answers} to a version of the course that is not this one: kept, but not counted here.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(record: &str) -> Shown {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let evidence = Evidence {
            questions: ids(&["03-a", "03-b"]),
            predictions: ids(&["03-steps", "03-skipped"]),
            exercises: ids(&["03-item"]),
            open: ids(&["03-own-words"]),
        };
        Shown::of(&evidence, &Record::parse(record).unwrap())
    }

    #[test]
    fn an_objective_is_shown_by_questions_and_exercises_and_bets_may_be_lost() {
        let nothing = shown(
            r#"{ "to-device-progress": 1, "predictions": { "03-skipped": { "verdict": "skipped" } } }"#,
        );
        assert_eq!(
            (nothing.state(), nothing.words().as_str()),
            (State::NotYet, "questions 0 of 2, exercises 0 of 1, bets 0 of 2")
        );
        let begun = shown(
            r#"{ "to-device-progress": 1, "exercises": { "03-item": { "passed": false, "checks": 2 } } }"#,
        );
        assert_eq!((begun.state(), begun.exercises), (State::Begun, Count { right: 0, tried: 1, all: 1 }));
        let all = shown(
            r#"{ "to-device-progress": 1, "questions": { "03-a": { "said": "1", "right": true }, "03-b": { "said": "2", "right": true } },
                "predictions": { "03-steps": { "said": "2", "verdict": "off" } }, "exercises": { "03-item": { "passed": true } } }"#,
        );
        assert_eq!(
            (all.state(), all.words().as_str()),
            (State::Shown, "questions 2 of 2, exercises 1 of 1, bets 0 of 2")
        );
    }

    #[test]
    fn answers_of_an_older_course_are_counted_apart() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let course = Course::read(&root).unwrap();
        assert!(
            course.chapters.len() >= 12
                && course.chapters.iter().all(|chapter| chapter.objectives.len() >= 4)
        );
        let record = r#"{ "to-device-progress": 1, "predictions": { "03-steps-of-old": { "said": "2", "verdict": "right" } },
                          "questions": { "04-batch": { "said": "1", "right": true } } }"#;
        let record = Record::parse(record).unwrap();
        assert_eq!(course.unknown(&record), 1);
        let total = Total::of(&course, &record);
        assert_eq!((total.shown + total.begun, total.bets.tried), (1, 0));
        assert!(total.words().ends_with("You have made no bets."), "{}", total.words());
    }
}
