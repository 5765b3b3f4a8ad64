//! Assigns the objectives of a chapter to its pages. Questions and exercises appear on the page of their objective.

use crate::course::Course;
use crate::document::Page;
use crate::mistake::{Mistake, Wrong, line_of};

/// For each of these objectives of a chapter, whether this page covers it. A page without a chapter covers all.
pub fn on_page(course: &Course, page: &Page, chapter: &str, all: &[String]) -> Result<Vec<bool>, String> {
    let is_whole = page.chapter() != Some(chapter) || questions::pages(course.root(), chapter)?.len() == 1;
    let own = questions::listed(page.text);
    Ok(all.iter().map(|objective| is_whole || own.contains(objective)).collect())
}

pub fn exercises(course: &Course, page: &Page, chapter: &str) -> Result<Vec<String>, Wrong> {
    let all = questions::objectives(course.root(), chapter)?;
    let is_here = on_page(course, page, chapter, &all)?;
    let file = format!("{}/{chapter}.toml", questions::FOLDER);
    let text = course.read(&file)?;
    let evidence = questions::evidence(&text, &all).map_err(|mistakes| {
        let mistake = |(at, what)| Mistake { file: file.clone(), line: line_of(&text, at), what };
        Wrong::Elsewhere(mistakes.into_iter().map(mistake).collect())
    })?;
    let here = is_here.into_iter().zip(evidence).filter(|(is_here, _)| *is_here);
    Ok(here.flat_map(|(_, evidence)| evidence.exercises).collect())
}
