//! Finds unidiomatic English, if a pattern can do so without false alarms.

use std::sync::OnceLock;

use regex::Regex;

use crate::course::Course;
use crate::document::Page;
use crate::known_mistakes::Finding;
use crate::literals::literals;
use crate::mistake::{Mistake, line_of};
use crate::prose::{blocks, unwrapped};

/// A pattern to find in a sentence whose code and figures are `xxx`, its exceptions, and the suggested wording.
struct Rule {
    finds: &'static str,
    unless: &'static str,
    instead: &'static str,
}

const fn rule(finds: &'static str, instead: &'static str) -> Rule {
    Rule { finds, unless: "$^", instead }
}

const OBJECT_FIRST: &str = "the sentence begins with its object: let the subject come first, “`x` says how much a model needs”, “nothing else can use pinned memory”";

const RULES: &[Rule] = &[
    rule(
        r"\b(?i:a|another|each|one|every|whole|same|next) training(?:[.,;:?!)]|$| (?:that|which|is|was|takes|took|makes|in|on|with|from|has|needs|whose|gives|goes|ends|begins|fails|of)\b)",
        "“a training run”, not “a training”",
    ),
    rule(r"(?i)\btrainings\b", "“training runs”, not “trainings”"),
    rule(r"(?i)\bin (?:the )?place of\b", "“instead of”, not “in place of”"),
    Rule {
        finds: r"(?i)\b(?:on|for|of|during) (?:the|its|their) way back\b|\bthe way back (?:begins|starts|makes|frees|needs|runs)\b|\bon the way forward\b",
        unless: r"(?i)way back (?:to|from)\b",
        instead: "“the backward pass” and “the forward pass”, not “the way back” and “the way forward”",
    },
    rule(
        r"(?i)\bsteps? (?:is|are|was|were) made\b|\b(?:make|makes|made|making) (?:a|one|another|two|three|four|five|(?:one|two|three|four|five) such|such|several) (?:training |optimizer |large |small |third |second |first )?steps?(?:[.,;:]|$| (?:of|with|on|in)\b)",
        "a step is taken, not made",
    ),
    rule(r"(?i)\bbelongs? into\b", "“belongs in”, not “belongs into”"),
    rule(r"(?i)\bmissing to (?:you|me|it|them|us|him|her)\b", "“you lack it”, not “it is missing to you”"),
    rule(
        r"^How (?:much|many|long|far|often|fast|slow|full|large|big|well|good)\b [^,.?!;:]+, (?:x+|the|a|an|it|you|we|they|nobody|this)\b[^?]*$",
        OBJECT_FIRST,
    ),
    Rule {
        finds: r"^(?:What|Which) [^,.?!;:]+, (?:x+|the|a|an|it|you|we|they|nobody|this)\b[^?]*$",
        unless: r"^What (?:to\b|is (?:more|worse|better|best|new)|if)\b|^Which (?:is|means)\b",
        instead: OBJECT_FIRST,
    },
    Rule {
        finds: r"^Whether [^,.?!;:]+, (?:x+|the \w+|you|we) (?:asks?|says?|sees?|finds?|knows?|tells?|reads?)\b[^?]*$",
        unless: r" or not,",
        instead: OBJECT_FIRST,
    },
    Rule {
        finds: r"^Who [^?]*\.\W*$",
        unless: r"\b(?:matters?|depends|decides|unclear|unknown)\b",
        instead: "“Who …” begins a question here, not a person: write “if you …”, “a program that …”",
    },
    rule(
        r"\bBoth (?:happens|is|has|does|goes|takes|makes|needs|works|was|gives|says|runs)\b",
        "“both” are two: “both happen”",
    ),
    rule(r"(?i)\ballows? to [a-z]", "“lets you …” or “allows …ing”, not “allows to …”"),
    rule(r"(?i)\bdepend(?:s|ed|ing)? from\b", "“depends on”, not “depends from”"),
    rule(r"(?i)\b(?:at|in|from|since) the begin\b", "“at the start”, not “at the begin”"),
    rule(
        r"(?i)\bhow (?:it|this|that|they|the \w+|x+) looks? like\b",
        "“what it looks like”, not “how it looks like”",
    ),
    rule(r"(?i)\bat the least\b", "“at least”, not “at the least”"),
    rule(r"(?i)\band else (?:a|an|the|it|they|you|there|nothing|no|x+)\b", "“otherwise”, not “and else”"),
    rule(
        r"(?i)\b(?:informations|advices|softwares|hardwares|feedbacks|knowledges)\b",
        "this word has no plural: leave the “s” away",
    ),
    Rule {
        finds: r"(?i)\bsince (?:\w+ )?(?:seconds|minutes|hours|days|weeks|months|years)\b",
        unless: r"\bago\b",
        instead: "“for two hours”, not “since two hours”",
    },
    rule("—", "no dash of this length: make it two sentences, or use a colon"),
];

/// The findings in a page's prose and, for a chapter, in the texts of its lab, exercises and questions.
pub fn findings(course: &Course, page: &Page) -> Vec<Finding> {
    let mut findings = Vec::new();
    for block in blocks(page.text) {
        let raw = &page.text[block.range.clone()];
        check_text(page.file, page.text, block.range.start, raw, &block.text, &mut findings);
    }
    let mut others: Vec<(String, &str)> = Vec::new();
    // For a chapter with several pages, only once.
    if let Some(chapter) = page.chapter().filter(|_| page.begins_chapter()) {
        if let Ok(lab) = course.lab(chapter) {
            others.extend(lab.sources().into_iter().map(|file| (file, "//")));
        }
        let of_chapter = exercises::EXERCISES.iter().filter(|exercise| exercise.chapter() == chapter);
        others.extend(of_chapter.map(|exercise| (exercise.source(), "//")));
        others.push((format!("{}/{chapter}.toml", ::questions::FOLDER), "#"));
    }
    if page.path == "plan.md" {
        others.push(("book/plan.toml".to_owned(), "#"));
    }
    if page.path == "how-you-did.md" {
        others.push(("book/moments.toml".to_owned(), "#"));
    }
    for (file, comment) in others {
        // A missing file is reported where it is needed.
        let Ok(source) = course.read(&file) else { continue };
        for text in literals(&source, comment) {
            check_text(&file, &source, text.at, &text.raw, &text.covered, &mut findings);
        }
    }
    findings
}

fn check_text(file: &str, source: &str, at: usize, raw: &str, covered: &str, findings: &mut Vec<Finding>) {
    let (text, places) = unwrapped(covered);
    for (start, sentence) in sentences(&text) {
        for (rule, finds, unless) in compiled() {
            let Some(found) = finds.find(sentence).filter(|_| !unless.is_match(sentence)) else { continue };
            let from = places[start + found.start()];
            let to = places.get(start + found.end()).copied().unwrap_or(raw.len());
            let words = unwrapped(&raw[from..to]).0;
            let words: Vec<&str> = words.split(' ').take(12).collect();
            let words = words.join(" ");
            let what = format!("`{words}`: {}", rule.instead);
            let line = line_of(source, at + from);
            findings.push(Finding { mistake: Mistake { file: file.to_owned(), line, what }, key: words });
        }
    }
}

fn compiled() -> impl Iterator<Item = &'static (&'static Rule, Regex, Regex)> {
    static COMPILED: OnceLock<Vec<(&Rule, Regex, Regex)>> = OnceLock::new();
    let compile = |pattern: &str| Regex::new(pattern).expect("a test compiles it");
    COMPILED
        .get_or_init(|| RULES.iter().map(|rule| (rule, compile(rule.finds), compile(rule.unless))).collect())
        .iter()
}

/// The sentences of a text, each with its offset.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '?', '!', ':']) {
        // Closing quotes and brackets belong to the sentence.
        let closing = text[at + 1..].find(|letter: char| !")*\"”_".contains(letter)).unwrap_or(0);
        let end = at + 1 + closing;
        if text[end..].starts_with(' ') {
            sentences.push((start, &text[start..end]));
            start = end + 1;
        }
    }
    sentences.push((start, &text[start..]));
    let begins =
        |sentence: &str| sentence.len() - sentence.trim_start_matches(['(', '*', '"', '“', '_', ' ']).len();
    sentences.into_iter().map(|(at, text)| (at + begins(text), &text[begins(text)..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each rule, a wrong text and a similar correct one.
    const EXAMPLES: [(&str, &str); 21] = [
        ("A training takes hours.", "A training run and a training set are two things."),
        ("It compares trainings.", "It compares training runs."),
        ("It takes 3 ms in place of 5.", "It works in place, and takes the place of another."),
        ("Each layer on the way back makes them smaller.", "This is the way back to the CPU, `x.cpu()`."),
        ("The lab makes three such steps, one after the other.", "It makes each step shorter."),
        ("The libraries belong into the container.", "The libraries belong in it."),
        ("That driver is missing to you.", "You lack that driver. It is missing."),
        (
            "How much a model needs, `max_memory_allocated()` says.",
            "How much it saves, and when, depends on the card. How long is it, the queue?",
        ),
        (
            "What is pinned, the operating system can no longer use for anything else.",
            "What is more, the GPU waits. What it needs is memory. What was slow, the copy? What to do, the first first:",
        ),
        ("Whether CUDA is built in, you ask when that says no.", "Whether you train or not, you see it."),
        (
            "Who adds up the gradients of several batches, divides each loss.",
            "Who waits for whom? It says who waits. Who came first does not matter.",
        ),
        ("Both happens in one case, the last.", "Both happen. Both have it."),
        ("Pinned memory allows to copy without waiting.", "It is allowed to run, and allows copying."),
        ("That depends from the card.", "That depends on the card."),
        ("It stops at the begin.", "It stops at the beginning."),
        ("That is how it looks like.", "That is what it looks like, and how it looks."),
        ("It takes 2 MiB at the least.", "It takes at least two."),
        ("It is nothing if X is empty, and else a colon.", "Nobody else reads it, and elsewhere it is true."),
        ("It prints informations.", "It prints information, and advises."),
        ("It has run since two hours.", "It has run for two hours, since ten years ago it began."),
        ("A launch — a request — is short.", "A launch, from 3–5 µs, is short."),
    ];

    fn said(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for block in blocks(text) {
            check_text(
                "x.md",
                text,
                block.range.start,
                &text[block.range.clone()],
                &block.text,
                &mut findings,
            );
        }
        findings.iter().map(|finding| finding.mistake.to_string()).collect()
    }

    #[test]
    fn each_rule_finds_what_it_is_for_and_lets_the_rest_pass() {
        assert_eq!(EXAMPLES.len(), RULES.len());
        for ((wrong, right), rule) in EXAMPLES.iter().zip(RULES) {
            let told = said(&format!("Before it.\n({wrong})"));
            assert!(
                told.len() == 1 && told[0].starts_with("x.md:2: `") && told[0].ends_with(rule.instead),
                "{wrong}\n{told:?}"
            );
            assert_eq!(said(right), [""; 0], "{right}");
        }
    }

    #[test]
    fn a_mistake_is_told_in_its_own_words_and_line() {
        let text = "# A page\n\nIt is so: how\n`x.y` looks\nlike in\nplace of it.\n";
        assert_eq!(
            said(text),
            [
                "x.md:5: `in place of`: “instead of”, not “in place of”",
                "x.md:3: `how `x.y` looks like`: “what it looks like”, not “how it looks like”",
            ]
        );
    }
}
