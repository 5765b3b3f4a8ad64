//! Items that the course must keep teaching. `book/seeds.toml` has the content of the documents that the course grew
//! from, with words that must occur in a chapter.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::document::Page;
use crate::mistake::{Mistake, Wrong};
use crate::plan::Plan;
use crate::prose::unwrapped;
use crate::toml_file::{self, Places};

const FILE: &str = "book/seeds.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    item: Vec<Spanned<Item>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    /// Begins with the number of its chapter, such as `04-peak`.
    id: String,
    what: String,
    /// Words that must all occur in the chapter.
    #[serde(default)]
    says: Vec<String>,
    /// The run of the lab whose output must have them instead.
    run: Option<String>,
    /// Whether the chapter does not teach it yet.
    #[serde(default)]
    missing: bool,
}

impl Item {
    fn chapter(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }

    /// The missing words, and the name of the searched text.
    fn absent(&self, course: &Course, page: &Page, rest: &str) -> Result<(Vec<&str>, String), String> {
        let (text, place) = match &self.run {
            None => (format!("{}\n{rest}", page.text), page.file.to_owned()),
            Some(name) => {
                let lab = course.lab(self.chapter())?;
                let run = lab.runs.iter().find(|run| run.name == name);
                let run = run.ok_or_else(|| format!("{} has no run `{name}`", lab.name))?;
                let snapshot = lab.snapshot(run);
                (course.read(&snapshot)?, snapshot)
            }
        };
        let text = unwrapped(&text).0.to_lowercase();
        let absent = |words: &&str| !text.contains(&words.to_lowercase());
        Ok((self.says.iter().map(String::as_str).filter(absent).collect(), place))
    }
}

/// The items of a chapter that its page no longer teaches.
pub fn mistakes(course: &Course, page: &Page) -> Result<Vec<Mistake>, Wrong> {
    // Checked on the first page of a chapter, for all its pages.
    let Some(chapter) = page.chapter().filter(|_| page.begins_chapter()) else { return Ok(Vec::new()) };
    let pages = questions::pages(course.root(), chapter)?;
    let others = pages.iter().filter(|other| *other != page.path);
    let rest: String =
        others.map(|other| course.read(&format!("book/chapters/{other}"))).collect::<Result<_, _>>()?;
    let (file, places): (File, Places) = toml_file::read(course, FILE)?;
    let mut mistakes = Vec::new();
    for item in file.item.iter().filter(|item| item.get_ref().chapter() == chapter) {
        let (at, item) = (item.span().start, item.get_ref());
        let Item { id, what, .. } = item;
        let told = match item.absent(course, page, &rest) {
            Err(wrong) => format!("`{id}`: {wrong}"),
            Ok(_) if item.says.is_empty() => {
                format!(
                    "chapter {chapter} is written: name the words that teach `{id}`, {what}, in `says = […]`"
                )
            }
            Ok((absent, place)) => match (&absent[..], item.missing) {
                ([], true) => format!("`{id}` is there now: remove `missing`"),
                ([], false) | (_, true) => continue,
                (absent, false) => format!(
                    "`{id}` is gone, {what}: {place} no longer contains `{}`. Teach it again, or name the words that do",
                    absent.join("`, `")
                ),
            },
        };
        mistakes.push(places.mistake(at, told));
    }
    Ok(mistakes)
}

/// The number of items without a chapter, and the errors in the list.
pub fn missing(course: &Course) -> Result<(usize, Vec<Mistake>), Wrong> {
    let (file, places): (File, Places) = toml_file::read(course, FILE)?;
    let plan = Plan::read(course)?;
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for item in &file.item {
        let (at, item) = (item.span().start, item.get_ref());
        let chapter = plan.chapters().find(|chapter| chapter.number() == item.chapter());
        if !ids.insert(&item.id) {
            wrong.push(places.mistake(at, format!("the id `{}` comes twice", item.id)));
        }
        if chapter.is_none() {
            wrong.push(places.mistake(at, format!("`{}` begins with the number of no chapter", item.id)));
        } else if chapter.is_some_and(|chapter| chapter.page().is_none()) && !item.says.is_empty() {
            wrong.push(
                places.mistake(at, format!("the chapter of `{}` is not written: leave `says` out", item.id)),
            );
        }
    }
    Ok((file.item.iter().filter(|item| item.get_ref().missing).count(), wrong))
}
