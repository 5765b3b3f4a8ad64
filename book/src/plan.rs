//! The course plan, from `book/plan.toml`: the chapters in reading order, which is the order of their numbers, and the
//! sessions of a class.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::document::Page;
use crate::minutes::Work;
use crate::mistake::{Mistake, Wrong, choices};
use crate::toml_file::{self, Places};

const FILE: &str = "book/plan.toml";

/// Expands the directives of a page. It is a parameter because it reads the plan as well.
pub type Expand = fn(&Course, &Page) -> Result<String, Vec<Mistake>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub chapter: Vec<Chapter>,
    /// The chapter outside the reading order.
    pub appendix: Chapter,
    pub session: Vec<Spanned<Session>>,
    /// Further reading after the last chapter: see `score_page.rs`.
    #[serde(default)]
    #[allow(dead_code)]
    reading: Vec<questions::score::Reading>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    number: Spanned<String>,
    pub title: String,
    /// The learning outcome of the chapter, as a sentence.
    pub then: String,
    #[serde(default)]
    pub optional: bool,
    /// Relative to the chapters folder; `None` until the page is written.
    page: Option<Spanned<String>>,
    #[serde(default)]
    pub part: Vec<Part>,
    /// The minutes on its first page, once counted.
    #[serde(skip)]
    pub minutes: u32,
    #[serde(skip)]
    work: Work,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub title: String,
    #[serde(default)]
    pub optional: bool,
    page: Spanned<String>,
    #[serde(skip)]
    pub minutes: u32,
    #[serde(skip)]
    work: Work,
}

impl Part {
    pub fn page(&self) -> &str {
        self.page.get_ref()
    }
}

impl Chapter {
    pub fn number(&self) -> &str {
        self.number.get_ref()
    }

    pub fn page(&self) -> Option<&str> {
        self.page.as_ref().map(|page| page.get_ref().as_str())
    }

    /// The work in class of all its pages except the optional ones.
    pub fn work(&self) -> Work {
        let parts = self.part.iter().filter(|part| !part.optional);
        parts.fold(self.work, |work, part| work.plus(part.work))
    }

    /// All its pages, each with its title.
    pub fn pages(&self) -> impl Iterator<Item = (&str, &str)> {
        let first = self.page().map(|page| (page, self.title.as_str()));
        first.into_iter().chain(self.part.iter().map(|part| (part.page(), part.title.as_str())))
    }
}

fn work(course: &Course, path: &str, expand: Expand) -> Result<Work, Wrong> {
    let file = format!("book/chapters/{path}");
    let text = course.read(&file)?;
    let page = Page { file: &file, path, text: &text };
    Ok(Work::of(&expand(course, &page).map_err(Wrong::Elsewhere)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    pub name: String,
    #[serde(default)]
    chapters: Vec<Spanned<String>>,
    /// Chapters to read at home before the session.
    #[serde(default)]
    before: Vec<Spanned<String>>,
    /// Further work that is on no counted page.
    #[serde(default)]
    pub step: Vec<Step>,
}

/// A part of a session that is not a chapter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub title: String,
    pub minutes: u32,
    pub then: String,
}

impl Plan {
    pub fn read(course: &Course) -> Result<Plan, Wrong> {
        let (plan, places): (Plan, Places) = toml_file::read(course, FILE)?;
        let mistakes = plan.mistakes(course, &places);
        if mistakes.is_empty() { Ok(plan) } else { Err(Wrong::Elsewhere(mistakes)) }
    }

    /// The plan with the minutes of each chapter, the same as on its page. Unwritten chapters have none.
    pub fn with_minutes(self, course: &Course, expand: Expand) -> Result<Plan, Wrong> {
        self.with_minutes_of(course, expand, |_| true)
    }

    /// As [`Plan::with_minutes`], for some of the chapters.
    pub fn with_minutes_of(
        mut self,
        course: &Course,
        expand: Expand,
        wanted: impl Fn(&Chapter) -> bool,
    ) -> Result<Plan, Wrong> {
        let all = self.chapter.iter_mut().chain([&mut self.appendix]);
        for chapter in all.filter(|chapter| wanted(chapter)) {
            if let Some(path) = chapter.page() {
                chapter.work = work(course, path, expand)?;
                chapter.minutes = chapter.work.minutes();
            }
            for part in &mut chapter.part {
                part.work = work(course, part.page(), expand)?;
                part.minutes = part.work.minutes();
            }
        }
        Ok(self)
    }

    /// All chapters, the appendix last.
    pub fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        self.chapter.iter().chain([&self.appendix])
    }

    pub fn check_has(&self, page: &str) -> Result<(), String> {
        match self.chapters().flat_map(Chapter::pages).any(|(path, _)| path == page) {
            true => Ok(()),
            false => Err(format!("no chapter in {FILE} has `page = \"{page}\"`: add it there")),
        }
    }

    pub fn chapters_in(&self, session: &Session) -> Vec<&Chapter> {
        self.named(&session.chapters)
    }

    pub fn chapters_before(&self, session: &Session) -> Vec<&Chapter> {
        self.named(&session.before)
    }

    fn named(&self, names: &[Spanned<String>]) -> Vec<&Chapter> {
        let named = |name: &Spanned<String>| {
            self.chapters().find(|chapter| chapter.number() == name.get_ref().as_str())
        };
        names.iter().filter_map(named).collect()
    }

    /// The minutes of a session, in class and at home, once the chapters are counted.
    pub fn minutes_of(&self, session: &Session) -> (u32, u32) {
        let chapters = self.chapters_in(session);
        let in_class: u32 = chapters.iter().map(|chapter| chapter.work().in_class().minutes_if_any()).sum();
        let at_home: u32 = chapters.iter().map(|chapter| chapter.work().at_home().minutes_if_any()).sum();
        let before: u32 =
            self.chapters_before(session).iter().map(|chapter| chapter.work().minutes_if_any()).sum();
        (in_class + session.step.iter().map(|step| step.minutes).sum::<u32>(), at_home + before)
    }

    fn mistakes(&self, course: &Course, places: &Places) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut wrong = |byte, what| mistakes.push(places.mistake(byte, what));

        let numbers = (1..).map(|number| format!("{number:02}"));
        let numbered = numbers.zip(&self.chapter).chain([("00".to_owned(), &self.appendix)]);
        for (right, chapter) in numbered {
            let number = chapter.number();
            if number != right {
                let what =
                    format!("chapter `{number}` stands where `{right}` belongs: the number is the order");
                wrong(chapter.number.span().start, what);
            }
            let letters = ["".to_owned()].into_iter().chain(('a'..='z').map(String::from));
            let pages = chapter.page.iter().chain(chapter.part.iter().map(|part| &part.page));
            for (letter, page) in letters.zip(pages) {
                let (place, page) = (page.span().start, page.get_ref());
                let start = format!("{number}{letter}-");
                if !page.starts_with(&start) {
                    wrong(place, format!("`{page}` is not a page of chapter {number}: write `{start}….md`"));
                } else if course.read(&format!("book/chapters/{page}")).is_err() {
                    wrong(
                        place,
                        format!("book/chapters/{page} does not exist: leave out `page` until it does"),
                    );
                }
            }
        }

        let known: BTreeSet<&str> = self.chapters().map(Chapter::number).collect();
        let mut taught = Vec::new();
        let named = |session: &'_ Spanned<Session>| {
            let Session { before, chapters, .. } = session.get_ref();
            before.iter().chain(chapters).cloned().collect::<Vec<_>>()
        };
        let names: Vec<Spanned<String>> = self.session.iter().flat_map(named).collect();
        for name in &names {
            let (place, name) = (name.span().start, name.get_ref().as_str());
            if !known.contains(name) {
                wrong(place, format!("no chapter `{name}`: write {}", choices(known.iter().copied())));
            } else if taught.contains(&name) {
                wrong(place, format!("{name} is taught twice"));
            } else if let Some(before) = taught.last().filter(|before| **before > name) {
                wrong(place, format!("{name} is taught after {before}: the number is the order"));
            }
            taught.push(name);
        }
        mistakes
    }
}
