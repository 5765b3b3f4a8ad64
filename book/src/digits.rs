//! Finds unchecked numbers in prose.
//!
//! Numbers in a chapter come from a run: `{{#figure 04 t4 held}}`. Any other number is a mistake, unless
//! `book/digits.toml` has a reason for it, such as a definition or a source. Names with digits (a T4, float16,
//! `cuda:0`, chapter 03, CUDA 12.4), years, and number words do not count.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use crate::course::Course;
use crate::document::Page;
use crate::known_mistakes::Finding;
use crate::mistake::{Mistake, Wrong, line_of};
use crate::prose::{Block, blocks, unwrapped};
use crate::toml_file::{self, Places};

const FILE: &str = "book/digits.toml";

/// The exceptions: for each page, phrases that contain a number, and the reasons. A phrase that begins with `|` is a
/// table header, and covers all numbers of the table.
pub struct Exceptions {
    of_pages: BTreeMap<String, BTreeMap<Spanned<String>, String>>,
    places: Places,
}

impl Exceptions {
    pub fn read(course: &Course) -> Result<Exceptions, Wrong> {
        let (of_pages, places) = toml_file::read(course, FILE)?;
        Ok(Exceptions { of_pages, places })
    }

    pub fn count(&self) -> usize {
        self.of_pages.values().map(BTreeMap::len).sum()
    }

    pub fn findings(&self, page: &Page) -> Vec<Finding> {
        let of_page = self.of_pages.get(page.path).into_iter().flatten();
        let words: Vec<&str> = of_page.map(|(words, _)| words.get_ref().as_str()).collect();
        let unexplained =
            numbers(page.text).into_iter().filter(|number| !words.iter().any(|words| number.is_in(words)));
        let finding = |number: Number| {
            let what = format!(
                "no figure gives `{}`: take it from the lab, `{{{{#figure {} t4 …}}}}`, write it in words, \
                 or give a reason in {FILE} (`{}`)",
                number.shown,
                page.chapter().unwrap_or("03"),
                number.words
            );
            let mistake = Mistake { file: page.file.to_owned(), line: line_of(page.text, number.at), what };
            Finding { mistake, key: number.words }
        };
        unexplained.map(finding).collect()
    }

    /// Exceptions without a matching number or without a reason.
    pub fn unneeded(&self, pages: &BTreeMap<String, String>) -> Vec<Mistake> {
        let mut wrong = Vec::new();
        for (page, exceptions) in &self.of_pages {
            let numbers = pages.get(page).map(|text| numbers(text)).unwrap_or_default();
            for (words, why) in exceptions {
                let (at, words) = (words.span().start, words.get_ref());
                if !numbers.iter().any(|number| number.is_in(words)) {
                    wrong.push(
                        self.places.mistake(at, format!("{page} has no such number: remove `{words}`")),
                    );
                } else if why.split_whitespace().count() < 3 {
                    wrong.push(self.places.mistake(
                        at,
                        format!("give a reason for `{words}`: a definition, or a source with its link"),
                    ));
                } else if words.split_whitespace().count() > 12 {
                    wrong.push(self.places.mistake(
                        at,
                        format!("`{words}` is too long: the number and a few words around it will do"),
                    ));
                }
            }
        }
        wrong
    }
}

/// A literal number in prose.
#[derive(Debug, PartialEq, Eq)]
pub struct Number {
    /// Its byte offset in the page.
    pub at: usize,
    pub shown: String,
    /// The number with some surrounding words, to find it again.
    pub words: String,
    /// Its paragraph, and the number's range in it.
    paragraph: (String, Range<usize>),
    /// The header of its table.
    head: Option<String>,
}

impl Number {
    /// Whether this exception's phrase covers the number.
    fn is_in(&self, words: &str) -> bool {
        if words.starts_with('|') {
            return self.head.as_deref() == Some(words);
        }
        let (paragraph, place) = &self.paragraph;
        let covers = |at: usize| at <= place.start && place.end <= at + words.len();
        paragraph.match_indices(words).any(|(at, _)| covers(at))
    }
}

/// Words that make a number after them part of a name.
const NAMES: [&str; 29] = [
    "PyTorch",
    "CUDA",
    "cuDNN",
    "cuBLAS",
    "NVRTC",
    "NCCL",
    "NVML",
    "Python",
    "Rust",
    "mdBook",
    "RTX",
    "GTX",
    "GeForce",
    "Tesla",
    "JetPack",
    "Ubuntu",
    "Windows",
    "WSL",
    "PCIe",
    "NVLink",
    "capability",
    "chapter",
    "chapters",
    "lab",
    "labs",
    "rank",
    "ranks",
    "section",
    "sections",
];

/// Whether a number after this word is part of a name. The word may be capitalized.
fn is_name(word: &str) -> bool {
    let lower = word.to_lowercase();
    NAMES.iter().any(|name| *name == word || *name == lower)
}

const BEFORE_YEARS: [&str; 9] = ["in", "since", "of", "about", "until", "from", "before", "after", "by"];

/// The numbers of a page that come from no figure. Adjacent numbers count as one, with all their words.
pub fn numbers(page: &str) -> Vec<Number> {
    blocks(page).iter().flat_map(|block| in_block(page, block)).collect()
}

/// A word of prose without the punctuation around it.
struct Word<'a> {
    /// Its range, including punctuation.
    all: Range<usize>,
    text: &'a str,
    /// Whether a sentence or a clause ends after it.
    ends: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let is_space = |letter: char| letter.is_whitespace() || "()[]{}\"“”|<>=…".contains(letter);
    let mut start = 0;
    for part in text.split_inclusive(is_space) {
        let all = part.trim_end_matches(is_space);
        if !all.is_empty() {
            let text = all.trim_matches(|letter: char| !letter.is_alphanumeric());
            words.push(Word {
                all: start..start + all.len(),
                text,
                ends: all.ends_with(['.', ':', ';', '?', '!']),
            });
        }
        start += part.len();
    }
    words
}

fn in_block(page: &str, block: &Block) -> Vec<Number> {
    let words = words(&block.text);
    let is_heading = page[..block.range.start].ends_with("# ");
    let mut named = false;
    let mut found: Vec<Range<usize>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| &words[index]).filter(|word| !word.ends);
        let before_that = index.checked_sub(2).map(|index| &words[index]);
        let after_name = before.is_some_and(|before| is_name(before.text));
        // For example, "chapters 01 and 02".
        let after_named = named
            && (before.is_some_and(|before| before.text.starts_with(|letter: char| letter.is_ascii_digit()))
                || before.is_some_and(|before| ["and", "or", "to"].contains(&before.text))
                    && before_that.is_some_and(|before| is_number(before.text)));
        let is_year = is_year(word.text)
            && before.is_some_and(|before| BEFORE_YEARS.contains(&before.text.to_lowercase().as_str()));
        if !is_number(word.text) {
            named = named && ["and", "or", "to"].contains(&word.text);
        } else if after_name || after_named {
            named = true;
        } else if !(is_year || is_heading && index == 0) {
            match found.last_mut() {
                Some(last) if index - last.end < 3 => last.end = index + 1,
                _ => found.push(index..index + 1),
            }
        }
    }
    let (paragraph, places) = unwrapped(&page[block.range.clone()]);
    // Maps page offsets to paragraph offsets.
    let unwrapped_at = |at: usize| places.partition_point(|place| *place < at);
    let number = |place: &Range<usize>| {
        let (first, last) = (&words[place.start], &words[place.end - 1]);
        let all: Vec<&str> =
            words[place.clone()].iter().map(|word| word.text).filter(|text| is_number(text)).collect();
        let before = words[place.start.saturating_sub(2)].all.start;
        let after = words[words.len().min(place.end + 2) - 1].all.end;
        let start = unwrapped_at(first.all.start);
        let end = unwrapped_at(last.all.end);
        // Excludes the punctuation at the end of the sentence.
        let end =
            start + paragraph[start..end].trim_end_matches(|letter: char| !letter.is_alphanumeric()).len();
        Number {
            at: block.range.start + first.all.start,
            shown: all.join("`, `"),
            words: paragraph[unwrapped_at(before)..unwrapped_at(after)].to_owned(),
            paragraph: (paragraph.clone(), start..end),
            head: block.head.clone().map(|head| unwrapped(&page[head]).0),
        }
    };
    found.iter().map(number).collect()
}

/// `5`, `0.5`, `4096³`, `15MiB`; not `0-dim`, `16-bit`, `2D`.
fn is_number(word: &str) -> bool {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_name =
        rest == "D" || rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    rest.len() < word.len() && !is_name
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.parse().is_ok_and(|year: u32| (1990..2040).contains(&year))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_and_words(page: &str) -> Vec<(String, String)> {
        numbers(page).into_iter().map(|number| (number.shown, number.words)).collect()
    }

    #[test]
    fn a_number_is_told_with_the_words_around_it() {
        let one = |shown: &str, words: &str| vec![(shown.to_owned(), words.to_owned())];
        assert_eq!(
            shown_and_words("It takes `a`\n  **512 bytes** of\nit, no more."),
            one("512", "takes `a` **512 bytes** of")
        );
        assert_eq!(
            shown_and_words("and 40.70 + 13.30 + 16 is more"),
            one("40.70`, `13.30`, `16", "and 40.70 + 13.30 + 16 is more")
        );
        assert_eq!(shown_and_words("between −2 and 2."), one("2`, `2", "between −2 and 2."));
        assert_eq!(shown_and_words("| a | b |\n|---|---|\n| 12.x | c |"), one("12.x", "12.x"));
        assert_eq!(shown_and_words("At `4096` it is"), one("4096", "At `4096` it is"));
        for number in
            ["15360MiB", "100 %", "4096³", "64 × 64", "12,451,840", "19 times", "(69 billion)", "2⁻²⁴", "~5"]
        {
            assert_eq!(shown_and_words(&format!("It is {number} today")).len(), 1, "{number}");
        }
    }

    #[test]
    fn an_exception_means_a_number_by_words_around_it_or_by_the_head_of_its_table() {
        let page = "It takes\n512 bytes, and 512 more.\n\n| a | b |\n|---|---|\n| 12 | c |\n| d | 13 |\n";
        let means = |words: &str| -> Vec<String> {
            let numbers = numbers(page);
            numbers.iter().filter(|number| number.is_in(words)).map(|number| number.words.clone()).collect()
        };
        assert_eq!(means("takes 512 bytes"), ["It takes 512 bytes, and 512 more."; 0]);
        assert_eq!(means("512 bytes, and 512 more"), ["It takes 512 bytes, and 512 more."]);
        assert_eq!(means("| a | b |"), ["12", "13"]);
        assert_eq!(means("takes 51"), [""; 0]);
    }

    #[test]
    fn names_years_figures_and_words_are_no_numbers() {
        for text in [
            "a T4, an H200, float16, cuda:0, x86, P0 and `x.to(3)`",
            "a 0-dim tensor, 16-bit types, 2D",
            "an RTX 4090, CUDA 12.4, PyTorch 2.11, compute capability 8.0",
            "chapters 01 and 02, [chapter\n03](03-training-loop.md), sections 5, 6 and 7",
            "cards since 2017, of about 2024. [Chapter 03](03-training-loop.md) is next.",
            "{{#figure 03 t4 loss 2}} and sixteen bits, −ln ¼",
            "```text\n5\n```\n\n<!-- 5 -->\n\n1. [a](5.md)\n2. <https://a.b/5>",
            "## 5. A part",
        ] {
            assert_eq!(shown_and_words(text), [], "{text}");
        }
        assert_eq!(
            shown_and_words("It needs CUDA. 12 of them"),
            [("12".to_owned(), "needs CUDA. 12 of them".to_owned())]
        );
        assert_eq!(shown_and_words("## Why 5 parts").len(), 1);
    }
}
