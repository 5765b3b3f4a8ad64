//! The known mistakes that the checks still allow on a page, such as `book/known_mistakes/04-memory.toml`.
//!
//! These lists may only shrink: a finding that is not listed is a mistake, and so is an entry without a finding. A page
//! without entries has no file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::mistake::{Mistake, Wrong};
use crate::toml_file::{self, Places};
use crate::words;

const HEAD: &str = "# Known mistakes of this page, which its checks ignore: remove each one that you fix, and add no others.\n\n";

/// A mistake that a list can allow, identified by words that stay the same when lines move.
#[derive(Debug)]
pub struct Finding {
    pub mistake: Mistake,
    pub key: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KnownMistakes {
    /// The word limit of the chapter until it is shortened.
    words: Option<Spanned<usize>>,
    digits: Vec<Spanned<String>>,
    /// Harness code on the page, with the name of its anchor.
    code: Vec<Spanned<String>>,
    /// Unidiomatic English in the page, its lab and its questions.
    english: Vec<Spanned<String>>,
}

pub const CHECKS: [&str; 3] = ["digits", "code", "english"];

impl KnownMistakes {
    /// The path of a page's file, such as `04-memory.md`, relative to the root of the checkout.
    pub fn file(page: &str) -> String {
        format!("book/known_mistakes/{}.toml", page.trim_end_matches(".md"))
    }

    /// Reads the lists of a page. They are empty without a file.
    pub fn read(course: &Course, page: &str) -> Result<(KnownMistakes, Option<Places>), Wrong> {
        let file = KnownMistakes::file(page);
        if !course.root().join(&file).exists() {
            return Ok((KnownMistakes::default(), None));
        }
        toml_file::read(course, &file).map(|(known, places)| (known, Some(places)))
    }

    pub fn has_word_limit(&self) -> bool {
        self.words.is_some()
    }

    pub fn word_limit(&self) -> usize {
        self.words.as_ref().map_or(words::MOST, |words| *words.get_ref())
    }

    pub fn unneeded_word_limit(&self, word_count: usize) -> Option<usize> {
        let words = self.words.as_ref().filter(|_| word_count <= words::MOST)?;
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

    /// The page's file with the entries that are still found; `None` if there are none.
    pub fn pruned(&self, found: &BTreeMap<&'static str, Vec<Finding>>, word_count: usize) -> Option<String> {
        let mut text = String::new();
        if word_count > words::MOST {
            text += &format!("words = {}\n", word_count.min(self.word_limit()));
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

    pub fn count(&self) -> usize {
        let lists = CHECKS.iter().map(|check| self.list(check).len()).sum::<usize>();
        lists + usize::from(self.words.is_some())
    }

    pub fn unlisted(&self, check: &str, findings: Vec<Finding>) -> Vec<Mistake> {
        let is_listed = |finding: &Finding| self.list(check).iter().any(|key| *key.get_ref() == finding.key);
        findings.into_iter().filter(|finding| !is_listed(finding)).map(|finding| finding.mistake).collect()
    }

    pub fn unneeded(&self, check: &str, findings: &[Finding]) -> Vec<(usize, String)> {
        let unused = |key: &&Spanned<String>| !findings.iter().any(|finding| finding.key == *key.get_ref());
        self.list(check).iter().filter(unused).map(|key| (key.span().start, key.get_ref().clone())).collect()
    }
}
