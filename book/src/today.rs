//! What the checks of a page still let pass, as it stands today: `book/today/04-memory.toml`.
//!
//! Such a list may only shrink: what is not in it is a mistake, and so is what it names without need. A page that needs none has
//! no file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::mistake::{Mistake, Wrong};
use crate::toml_file::{self, Places};
use crate::words;

/// The first lines of such a file.
const HEAD: &str = "# What the checks of this page let pass until it is mended: take out what you mend, and add nothing.\n\n";

/// A mistake that a list can let pass, by some words that stay the same when lines move.
#[derive(Debug)]
pub struct Finding {
    pub mistake: Mistake,
    pub key: String,
}

/// The lists of a page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Today {
    /// How many words a chapter may have until it is shorter.
    words: Option<Spanned<usize>>,
    /// Numbers in prose, with the words around them.
    digits: Vec<Spanned<String>>,
    /// Harness in code that the page shows, with the name of its anchor.
    code: Vec<Spanned<String>>,
    /// What no native reader would write, in the page, its lab and its questions.
    english: Vec<Spanned<String>>,
}

/// The checks that have a list, by its name.
pub const CHECKS: [&str; 3] = ["digits", "code", "english"];

impl Today {
    /// The file of a page, `04-memory.md`, from the root of the checkout.
    pub fn file(page: &str) -> String {
        format!("book/today/{}.toml", page.trim_end_matches(".md"))
    }

    /// The lists of a page, which are empty if it has no file.
    pub fn read(course: &Course, page: &str) -> Result<(Today, Option<Places>), Wrong> {
        let file = Today::file(page);
        if !course.root().join(&file).exists() {
            return Ok((Today::default(), None));
        }
        toml_file::read(course, &file).map(|(today, places)| (today, Some(places)))
    }

    /// Whether a chapter may have more words than others.
    pub fn has_words(&self) -> bool {
        self.words.is_some()
    }

    /// How many words a chapter may have.
    pub fn words(&self) -> usize {
        self.words.as_ref().map_or(words::MOST, |words| *words.get_ref())
    }

    /// Where it says so without need, for a chapter of so many words.
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

    /// The file of a page with no more in it than what is still found; nothing, if that is all mended.
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

    /// How much the lists of a page let pass.
    pub fn count(&self) -> usize {
        let lists = CHECKS.iter().map(|check| self.list(check).len()).sum::<usize>();
        lists + usize::from(self.words.is_some())
    }

    /// The findings of a check that its list does not let pass.
    pub fn not_let_pass(&self, check: &str, findings: Vec<Finding>) -> Vec<Mistake> {
        let listed = |finding: &Finding| self.list(check).iter().any(|key| *key.get_ref() == finding.key);
        findings.into_iter().filter(|finding| !listed(finding)).map(|finding| finding.mistake).collect()
    }

    /// The places of what a list names without need.
    pub fn without_need(&self, check: &str, findings: &[Finding]) -> Vec<(usize, String)> {
        let unused = |key: &&Spanned<String>| !findings.iter().any(|finding| finding.key == *key.get_ref());
        self.list(check).iter().filter(unused).map(|key| (key.span().start, key.get_ref().clone())).collect()
    }
}
