//! The checks of a page's prose, after its directives are expanded. Each check reports mistakes, except those that the
//! page's list in `book/today` allows.

use std::collections::BTreeMap;
use std::fs;

use crate::course::Course;
use crate::digits::Exceptions;
use crate::document::Page;
use crate::english;
use crate::links::files;
use crate::mistake::{Mistake, Wrong};
use crate::opened;
use crate::page::expand;
use crate::score_page;
use crate::seeds;
use crate::shown_code;
use crate::today::{Finding, Today};
use crate::words::{MOST, Words};

/// Findings, keyed by the check's name.
type Found = BTreeMap<&'static str, Vec<Finding>>;

fn found(course: &Course, page: &Page, exceptions: &Exceptions) -> Found {
    let says_numbers = page.chapter().is_some() || page.path == "index.md";
    let digits = if says_numbers { exceptions.findings(page) } else { Vec::new() };
    let code = shown_code::findings(course, page);
    let english = english::findings(course, page);
    BTreeMap::from([("digits", digits), ("code", code), ("english", english)])
}

/// The mistakes of a page that its list does not allow. `expanded` is the page with its directives expanded, unless
/// that failed.
pub fn mistakes(course: &Course, page: &Page, expanded: Option<&str>) -> Vec<Mistake> {
    let checked = || -> Result<Vec<Mistake>, Wrong> {
        let (today, _) = Today::read(course, page.path)?;
        let found = found(course, page, &Exceptions::read(course)?);
        let passed = |(check, findings)| today.not_let_pass(check, findings);
        let mut mistakes: Vec<Mistake> = found.into_iter().flat_map(passed).collect();
        let counted = expanded.map_or(0, |expanded| Words::of(expanded).counted());
        if page.chapter().is_some() && counted > today.words() {
            let what = format!(
                "{counted} words in sight, those in folds counted half: a chapter has at most {MOST}, and this one had {} \
                 (`cargo run --bin book -- words`)",
                today.words()
            );
            mistakes.push(Mistake { file: page.file.to_owned(), line: 1, what });
        }
        mistakes.extend(expanded.and_then(|expanded| too_long_opened(course, page, expanded)));
        mistakes.extend(seeds::mistakes(course, page)?);
        Ok(mistakes)
    };
    checked().unwrap_or_else(|wrong| wrong.mistakes(page.file, 1))
}

/// Reports a page of a chapter that exceeds the word limit with everything unfolded.
fn too_long_opened(course: &Course, page: &Page, expanded: &str) -> Option<Mistake> {
    let chapter = page.chapter()?;
    let pages = questions::pages(course.root(), chapter).map_or(1, |pages| pages.len());
    let most = if pages == 1 { opened::MOST_OF_ONE } else { opened::MOST_OF_SEVERAL };
    let words = opened::words(expanded);
    let what = || {
        let kind = if pages == 1 { "a chapter on one page" } else { "a page of a chapter that has several" };
        format!(
            "{words} words when everything is open: {kind} has at most {most}. Move a part of it to a page of its own, \
             `[[chapter.part]]` in book/plan.toml"
        )
    };
    (words > most).then(|| Mistake { file: page.file.to_owned(), line: 1, what: what() })
}

/// Checks that everything a reader can do shows an objective, and that everything said to show one exists.
pub fn evidence(course: &Course) -> Vec<Mistake> {
    score_page::mistakes(course)
}

/// The entries in the lists of all pages.
pub struct Lists {
    /// Exceptions in `book/digits.toml`, each with its reason.
    pub exceptions: usize,
    /// Known mistakes that `book/today` still allows.
    pub let_pass: usize,
    /// Items in `book/seeds.toml` that no chapter teaches yet.
    pub missing: usize,
    /// Unused or invalid entries, and lists without a page.
    pub without_need: Vec<Mistake>,
}

/// Reads the lists of all pages.
pub fn lists(course: &Course) -> Result<Lists, Vec<Mistake>> {
    let looked = || -> Result<Lists, Wrong> {
        let pages = pages(course)?;
        let exceptions = Exceptions::read(course)?;
        let (missing, wrong) = seeds::missing(course)?;
        let mut lists = Lists {
            exceptions: exceptions.count(),
            let_pass: 0,
            missing,
            without_need: exceptions.without_need(&pages),
        };
        lists.without_need.extend(wrong);
        for file in of_no_page(course, &pages)? {
            let what = "no page has this name: remove the file".to_owned();
            lists.without_need.push(Mistake { file, line: 1, what });
        }
        for (path, text) in &pages {
            let (today, Some(places)) = Today::read(course, path)? else { continue };
            let page = Page { file: &format!("book/chapters/{path}"), path, text };
            lists.let_pass += today.count();
            if let Some(at) = today.words_without_need(counted(course, &page, &today)?) {
                let what = format!("{path} has at most {MOST} words: remove `words`");
                lists.without_need.push(places.mistake(at, what));
            }
            for (check, findings) in found(course, &page, &exceptions) {
                for (at, key) in today.without_need(check, &findings) {
                    let what = format!(
                        "`{key}` is fixed: remove it from `{check}`, or run `cargo run --bin book -- today`"
                    );
                    lists.without_need.push(places.mistake(at, what));
                }
            }
        }
        Ok(lists)
    };
    looked().map_err(|wrong| wrong.mistakes("book", 1))
}

/// Removes fixed entries from the lists in `book/today`, and deletes lists that become empty. Returns the changed
/// files.
pub fn shrink(course: &Course) -> Result<Vec<String>, Vec<Mistake>> {
    let shrunk = || -> Result<Vec<String>, Wrong> {
        let exceptions = Exceptions::read(course)?;
        let pages = pages(course)?;
        let mut changed = of_no_page(course, &pages)?;
        for file in &changed {
            fs::remove_file(course.root().join(file))
                .map_err(|error| format!("{file} cannot be deleted: {error}"))?;
        }
        for (path, text) in &pages {
            let (today, Some(_)) = Today::read(course, path)? else { continue };
            let page = Page { file: &format!("book/chapters/{path}"), path, text };
            let file = Today::file(path);
            let place = course.root().join(&file);
            let written =
                match today.shrunk(&found(course, &page, &exceptions), counted(course, &page, &today)?) {
                    Some(left) if course.read(&file)? == left => continue,
                    Some(left) => fs::write(place, left),
                    None => fs::remove_file(place),
                };
            written.map_err(|error| format!("{file} cannot be written: {error}"))?;
            changed.push(file);
        }
        Ok(changed)
    };
    shrunk().map_err(|wrong| wrong.mistakes("book", 1))
}

/// A report of the length of each chapter.
pub fn words(course: &Course) -> Result<String, Vec<Mistake>> {
    let table = || -> Result<String, Wrong> {
        let mut table = format!(
            "{:30} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
            "", "open", "folded", "counted", "at most", "opened"
        );
        for (path, text) in &pages(course)? {
            let page = Page { file: &format!("book/chapters/{path}"), path, text };
            if page.chapter().is_some() {
                let expanded = expand(course, &page).map_err(Wrong::Elsewhere)?;
                let (words, opened) = (Words::of(&expanded), opened::words(&expanded));
                let (open, folded, counted) = (words.open, words.folded, words.counted());
                let most = Today::read(course, path)?.0.words();
                table += &format!("{path:30} {open:7} {folded:7} {counted:7} {most:7} {opened:7}\n");
            }
        }
        Ok(table)
    };
    table().map_err(|wrong| wrong.mistakes("book", 1))
}

/// The word count of a page with a word limit; other pages are not counted.
fn counted(course: &Course, page: &Page, today: &Today) -> Result<usize, Wrong> {
    match today.has_words() {
        true => Ok(Words::of(&expand(course, page).map_err(Wrong::Elsewhere)?).counted()),
        false => Ok(0),
    }
}

/// The files in `book/today` that belong to no page.
fn of_no_page(course: &Course, pages: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let folder = course.book().join("today");
    let files = if folder.exists() { files(&folder)? } else { BTreeMap::new() };
    let lost = files.into_keys().filter(|file| !pages.contains_key(&file.replace(".toml", ".md")));
    Ok(lost.map(|file| format!("book/today/{file}")).collect())
}

/// Every page of the book, by its path relative to the chapters folder.
fn pages(course: &Course) -> Result<BTreeMap<String, String>, String> {
    let files = files(&course.book().join("chapters"))?.into_keys();
    let pages = files.filter(|path| path.ends_with(".md") && path != "SUMMARY.md");
    pages.map(|path| course.read(&format!("book/chapters/{path}")).map(|text| (path, text))).collect()
}
