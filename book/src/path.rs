//! The path of reading, from `book/path.toml`: chapters, or parts of them, in the order in which to read them, and
//! what a class does in which lesson.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::mistake::{Mistake, Wrong, choices};
use crate::toml_file::{self, Places};

const FILE: &str = "book/path.toml";

/// How long a lesson is.
const LESSON: u16 = 90;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    pub group: Vec<Group>,
    /// What stands beside the path, with when to read it.
    pub beside: Vec<Beside>,
    pub session: Vec<Spanned<Session>>,
}

/// Steps that belong together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: String,
    pub step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    pub when: String,
    pub step: Step,
}

/// A chapter, or a part of one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Never changes, wherever the step stands.
    chapter: Spanned<String>,
    #[serde(default)]
    part: String,
    pub title: String,
    minutes: Spanned<u16>,
    /// What a reader can do afterwards, as a sentence.
    pub then: String,
    #[serde(default)]
    pub optional: bool,
    /// From the folder of the chapters, once it is written. The parts of a chapter may share one, and name the
    /// heading at which theirs begins: `04-memory.md#the-allocator`.
    page: Option<Spanned<String>>,
}

impl Step {
    /// `04A`
    pub fn name(&self) -> String {
        format!("{}{}", self.chapter.get_ref(), self.part)
    }

    pub fn part(&self) -> &str {
        &self.part
    }

    pub fn minutes(&self) -> u16 {
        *self.minutes.get_ref()
    }

    /// Where to read it, with the heading.
    pub fn page(&self) -> Option<&str> {
        self.page.as_ref().map(|page| page.get_ref().as_str())
    }

    /// The file of that.
    fn file(&self) -> Option<&str> {
        self.page()?.split('#').next()
    }
}

/// A lesson of a class.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    pub name: String,
    steps: Vec<Spanned<String>>,
    /// Whether what is left of the lesson goes to the chapters' questions.
    #[serde(default)]
    pub quiz: bool,
}

impl Path {
    /// The path of a checkout.
    pub fn read(course: &Course) -> Result<Path, Wrong> {
        let (path, places): (Path, Places) = toml_file::read(course, FILE)?;
        let mistakes = path.mistakes(course, &places);
        if mistakes.is_empty() { Ok(path) } else { Err(Wrong::Elsewhere(mistakes)) }
    }

    /// All steps, those beside the path last.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        let beside = self.beside.iter().map(|beside| &beside.step);
        self.group.iter().flat_map(|group| &group.step).chain(beside)
    }

    /// The steps that a page has.
    pub fn steps_of(&self, page: &str) -> Result<Vec<&Step>, String> {
        let steps: Vec<&Step> = self.steps().filter(|step| step.file() == Some(page)).collect();
        match steps.is_empty() {
            true => Err(format!("no step in {FILE} has `page = \"{page}\"`: add it there")),
            false => Ok(steps),
        }
    }

    /// The steps of a lesson.
    pub fn steps_in(&self, session: &Session) -> Vec<&Step> {
        let step = |name: &Spanned<String>| self.steps().find(|step| step.name() == *name.get_ref());
        session.steps.iter().filter_map(step).collect()
    }

    fn mistakes(&self, course: &Course, places: &Places) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut wrong = |byte, what| mistakes.push(places.mistake(byte, what));

        let mut names = BTreeSet::new();
        for step in self.steps() {
            let (place, chapter) = (step.chapter.span().start, step.chapter.get_ref());
            if chapter.len() != 2 || !chapter.bytes().all(|byte| byte.is_ascii_digit()) {
                wrong(place, format!("`{chapter}` is no number of a chapter: say `\"03\"`"));
            }
            if !names.insert(step.name()) {
                wrong(place, format!("{} comes twice", step.name()));
            }
            if !(1..=LESSON).contains(&step.minutes()) {
                wrong(step.minutes.span().start, format!("a step takes 1 to {LESSON} minutes"));
            }
            if let (Some(page), Some(file)) = (&step.page, step.file()) {
                let place = page.span().start;
                if !file.starts_with(&format!("{chapter}-")) {
                    wrong(place, format!("`{file}` is no page of chapter {chapter}: say `{chapter}-….md`"));
                } else if course.read(&format!("book/chapters/{file}")).is_err() {
                    wrong(place, format!("book/chapters/{file} is not there: leave `page` out until it is"));
                }
            }
        }

        let mut taught = BTreeSet::new();
        for session in &self.session {
            let (place, session) = (session.span().start, session.get_ref());
            for name in &session.steps {
                let (place, name) = (name.span().start, name.get_ref());
                if !names.contains(name) {
                    let known = choices(names.iter().map(String::as_str));
                    wrong(place, format!("no step `{name}`: say {known}"));
                } else if !taught.insert(name) {
                    wrong(place, format!("{name} is taught twice"));
                }
            }
            let minutes = minutes(self.steps_in(session));
            if minutes > u32::from(LESSON) {
                wrong(place, format!("`{}` takes {minutes} minutes: at most {LESSON}", session.name));
            }
        }
        mistakes
    }
}

/// How long steps take together.
pub fn minutes<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u32 {
    steps.into_iter().map(|step| u32::from(step.minutes())).sum()
}
