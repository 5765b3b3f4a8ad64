//! The checks of a page's prose, after its directives are expanded. The page's list in `book/known_mistakes` allows
//! some mistakes.

use std::collections::BTreeMap;
use std::fs;

use crate::course::Course;
use crate::digits::Exceptions;
use crate::document::Page;
use crate::english;
use crate::known_mistakes::{Finding, KnownMistakes};
use crate::links::files;
use crate::mistake::{Mistake, Wrong};
use crate::opened;
use crate::page::expand;
use crate::score_page;
use crate::seeds;
use crate::shown_code;
use crate::words::{MOST, Words};

/// Findings, keyed by the check's name.
type Findings = BTreeMap<&'static str, Vec<Finding>>;

fn findings(course: &Course, page: &Page, exceptions: &Exceptions) -> Findings {
    let checks_digits = page.chapter().is_some() || page.path == "index.md";
    let digits = if checks_digits { exceptions.findings(page) } else { Vec::new() };
    let code = shown_code::findings(course, page);
    let english = english::findings(course, page);
    BTreeMap::from([("digits", digits), ("code", code), ("english", english)])
}

/// The mistakes of a page, except those of its list. `expanded` is the page with its directives expanded, unless that
/// failed.
pub fn mistakes(course: &Course, page: &Page, expanded: Option<&str>) -> Vec<Mistake> {
    let check = || -> Result<Vec<Mistake>, Wrong> {
        let (known, _) = KnownMistakes::read(course, page.path)?;
        let findings = findings(course, page, &Exceptions::read(course)?);
        let unlisted = |(check, findings)| known.unlisted(check, findings);
        let mut mistakes: Vec<Mistake> = findings.into_iter().flat_map(unlisted).collect();
        let counted = expanded.map_or(0, |expanded| Words::of(expanded).counted());
        if page.chapter().is_some() && counted > known.word_limit() {
            let what = format!(
                "{counted} words in sight, those in folds counted half: a chapter has at most {MOST}, and this one had {} \
                 (`cargo run --bin book -- words`)",
                known.word_limit()
            );
            mistakes.push(Mistake { file: page.file.to_owned(), line: 1, what });
        }
        mistakes.extend(expanded.and_then(|expanded| too_long_opened(course, page, expanded)));
        mistakes.extend(seeds::mistakes(course, page)?);
        Ok(mistakes)
    };
    check().unwrap_or_else(|wrong| wrong.mistakes(page.file, 1))
}

/// Reports a chapter's page that exceeds the word limit when everything is unfolded.
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

/// Checks that each exercise, question and prediction shows an objective, and that all listed evidence exists.
pub fn evidence(course: &Course) -> Vec<Mistake> {
    score_page::mistakes(course)
}

pub struct Lists {
    /// Exceptions in `book/digits.toml`, each with its reason.
    pub exceptions: usize,
    /// Known mistakes that `book/known_mistakes` still allows.
    pub known: usize,
    /// Items in `book/seeds.toml` without a chapter.
    pub missing: usize,
    /// Unused or invalid entries, and lists without a page.
    pub unneeded: Vec<Mistake>,
}

pub fn lists(course: &Course) -> Result<Lists, Vec<Mistake>> {
    let read = || -> Result<Lists, Wrong> {
        let pages = pages(course)?;
        let exceptions = Exceptions::read(course)?;
        let (missing, wrong) = seeds::missing(course)?;
        let mut lists = Lists {
            exceptions: exceptions.count(),
            known: 0,
            missing,
            unneeded: exceptions.unneeded(&pages),
        };
        lists.unneeded.extend(wrong);
        for file in files_without_page(course, &pages)? {
            let what = "no page has this name: remove the file".to_owned();
            lists.unneeded.push(Mistake { file, line: 1, what });
        }
        for (path, text) in &pages {
            let (known, Some(places)) = KnownMistakes::read(course, path)? else { continue };
            let page = Page { file: &format!("book/chapters/{path}"), path, text };
            lists.known += known.count();
            if let Some(at) = known.unneeded_word_limit(word_count(course, &page, &known)?) {
                let what = format!("{path} has at most {MOST} words: remove `words`");
                lists.unneeded.push(places.mistake(at, what));
            }
            for (check, findings) in findings(course, &page, &exceptions) {
                for (at, key) in known.unneeded(check, &findings) {
                    let what = format!(
                        "`{key}` is fixed: remove it from `{check}`, or run `cargo run --bin book -- prune`"
                    );
                    lists.unneeded.push(places.mistake(at, what));
                }
            }
        }
        Ok(lists)
    };
    read().map_err(|wrong| wrong.mistakes("book", 1))
}

/// Removes fixed entries from the lists in `book/known_mistakes`, and deletes lists that become empty. Returns the changed
/// files.
pub fn prune(course: &Course) -> Result<Vec<String>, Vec<Mistake>> {
    let prune = || -> Result<Vec<String>, Wrong> {
        let exceptions = Exceptions::read(course)?;
        let pages = pages(course)?;
        let mut changed = files_without_page(course, &pages)?;
        for file in &changed {
            fs::remove_file(course.root().join(file))
                .map_err(|error| format!("{file} cannot be deleted: {error}"))?;
        }
        for (path, text) in &pages {
            let (known, Some(_)) = KnownMistakes::read(course, path)? else { continue };
            let page = Page { file: &format!("book/chapters/{path}"), path, text };
            let file = KnownMistakes::file(path);
            let place = course.root().join(&file);
            let written = match known
                .pruned(&findings(course, &page, &exceptions), word_count(course, &page, &known)?)
            {
                Some(left) if course.read(&file)? == left => continue,
                Some(left) => fs::write(place, left),
                None => fs::remove_file(place),
            };
            written.map_err(|error| format!("{file} cannot be written: {error}"))?;
            changed.push(file);
        }
        Ok(changed)
    };
    prune().map_err(|wrong| wrong.mistakes("book", 1))
}

pub fn word_report(course: &Course) -> Result<String, Vec<Mistake>> {
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
                let most = KnownMistakes::read(course, path)?.0.word_limit();
                table += &format!("{path:30} {open:7} {folded:7} {counted:7} {most:7} {opened:7}\n");
            }
        }
        Ok(table)
    };
    table().map_err(|wrong| wrong.mistakes("book", 1))
}

/// The word count of a page with a word limit. Other pages are not counted.
fn word_count(course: &Course, page: &Page, known: &KnownMistakes) -> Result<usize, Wrong> {
    match known.has_word_limit() {
        true => Ok(Words::of(&expand(course, page).map_err(Wrong::Elsewhere)?).counted()),
        false => Ok(0),
    }
}

fn files_without_page(course: &Course, pages: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let folder = course.book().join("known_mistakes");
    let files = if folder.exists() { files(&folder)? } else { BTreeMap::new() };
    let orphans = files.into_keys().filter(|file| !pages.contains_key(&file.replace(".toml", ".md")));
    Ok(orphans.map(|file| format!("book/known_mistakes/{file}")).collect())
}

fn pages(course: &Course) -> Result<BTreeMap<String, String>, String> {
    let files = files(&course.book().join("chapters"))?.into_keys();
    let pages = files.filter(|path| path.ends_with(".md") && path != "SUMMARY.md");
    pages.map(|path| course.read(&format!("book/chapters/{path}")).map(|text| (path, text))).collect()
}
