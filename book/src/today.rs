//! The known mistakes that the checks still allow on a page, such as `book/today/04-memory.toml`.
//!
//! These lists may only shrink: a finding that is not listed is a mistake, and so is an entry that is no longer needed.
//! A page without entries has no file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::mistake::{Mistake, Wrong};
use crate::toml_file::{self, Places};
use crate::words;

/// The header of such a file.
const HEAD: &str = "# Known mistakes of this page, which its checks ignore: remove each one that you fix, and add no others.\n\n";

/// A mistake that a list can allow, identified by words that stay the same when lines move.
#[derive(Debug)]
pub struct Finding {
    pub mistake: Mistake,
    pub key: String,
}

/// The lists of a page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Today {
    /// The word limit of the chapter until it is shortened.
    words: Option<Spanned<usize>>,
    /// Numbers in prose, with the words around them.
    digits: Vec<Spanned<String>>,
    /// Harness code that the page shows, with the name of its anchor.
    code: Vec<Spanned<String>>,
    /// Unidiomatic English in the page, its lab and its questions.
    english: Vec<Spanned<String>>,
}

/// The checks that have a list, by name.
pub const CHECKS: [&str; 3] = ["digits", "code", "english"];

impl Today {
    /// The path of a page's file, such as `04-memory.md`, relative to the root of the checkout.
    pub fn file(page: &str) -> String {
        format!("book/today/{}.toml", page.trim_end_matches(".md"))
    }

    /// Reads the lists of a page; they are empty if it has no file.
    pub fn read(course: &Course, page: &str) -> Result<(Today, Option<Places>), Wrong> {
        let file = Today::file(page);
        if !course.root().join(&file).exists() {
            return Ok((Today::default(), None));
        }
        toml_file::read(course, &file).map(|(today, places)| (today, Some(places)))
    }

    /// Whether the chapter has a word limit of its own.
    pub fn has_words(&self) -> bool {
        self.words.is_some()
    }

    /// The word limit of the chapter.
    pub fn words(&self) -> usize {
        self.words.as_ref().map_or(words::MOST, |words| *words.get_ref())
    }

    /// The place of a word limit that is not needed, given the chapter's word count.
    pub fn words_without_need(&self, counted: usize) -> Option<usize> {
        let words = self.words.as_ref().filter(|_| counted <= words::MOST)?;
        Some(words.span().start)
    }

    fn list(&self, check: &str) -> &[Spanned<String>] {
        match check {
            "digits" => &self.digits,
            "code" => &self.code,
            "english" => &self.english,
            _ => &[],
        }
    }

    /// The file of a page reduced to the entries that are still found; None if none is left.
    pub fn shrunk(&self, found: &BTreeMap<&'static str, Vec<Finding>>, counted: usize) -> Option<String> {
        let mut text = String::new();
        if counted > words::MOST {
            text += &format!("words = {}\n", counted.min(self.words()));
        }
        for (check, findings) in found {
            let mut keys: Vec<&str> = findings.iter().map(|finding| finding.key.as_str()).collect();
            keys.retain(|key| self.list(check).iter().any(|listed| listed.get_ref() == key));
            keys.sort_unstable();
            keys.dedup();
            if !keys.is_empty() {
                let lines = keys.iter().map(|key| format!("    {},\n", toml::Value::from(*key)));
                text += &format!("{check} = [\n{}]\n", lines.collect::<String>());
            }
        }
        (!text.is_empty()).then(|| format!("{HEAD}{text}"))
    }

    /// The number of findings that the lists of a page allow.
    pub fn count(&self) -> usize {
        let lists = CHECKS.iter().map(|check| self.list(check).len()).sum::<usize>();
        lists + usize::from(self.words.is_some())
    }

    /// The findings of a check that its list does not allow.
    pub fn not_let_pass(&self, check: &str, findings: Vec<Finding>) -> Vec<Mistake> {
        let listed = |finding: &Finding| self.list(check).iter().any(|key| *key.get_ref() == finding.key);
        findings.into_iter().filter(|finding| !listed(finding)).map(|finding| finding.mistake).collect()
    }

    /// The places of entries that are not needed.
    pub fn without_need(&self, check: &str, findings: &[Finding]) -> Vec<(usize, String)> {
        let unused = |key: &&Spanned<String>| !findings.iter().any(|finding| finding.key == *key.get_ref());
        self.list(check).iter().filter(unused).map(|key| (key.span().start, key.get_ref().clone())).collect()
    }
}
