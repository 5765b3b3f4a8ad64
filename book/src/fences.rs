//! Checks the code blocks of a page: each names its language, and each that is not run gives the reason in the line
//! above:
//!
//! ````text
//! <!-- not run: it needs a GPU -->
//! ```sh
//! nvidia-smi
//! ```
//! ````

use mdbook_markdown::pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

use crate::mistake::{choices, line_of};

/// The allowed languages. With another name, such as `bash`, a block would escape the tests that run it.
const LANGUAGES: [&str; 7] = ["text", "sh", "rust", "toml", "json", "python", "cpp"];

/// With these flags, rustdoc does not compile a block, does not run it, or expects it to fail.
const FLAGS: [&str; 4] = ["ignore", "no_run", "compile_fail", "should_panic"];

pub struct CodeBlock {
    /// The first line, from 1.
    pub line: usize,
    pub last: usize,
    /// The language and flags, `rust,no_run`; `None` for an indented block.
    info: Option<String>,
    pub code: String,
    pub not_run: Option<String>,
}

impl CodeBlock {
    pub fn language(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let info = self.info.as_deref().unwrap_or_default();
        info.split([',', ' ']).filter(|word| !word.is_empty())
    }
}

pub fn blocks(text: &str) -> Vec<CodeBlock> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut inside = false;
    for (event, range) in new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let line = line_of(text, range.start);
                let last = line + text[range].trim_end().matches('\n').count();
                let above = line.checked_sub(2).and_then(|above| reason(lines[above]));
                let info = match kind {
                    CodeBlockKind::Fenced(info) => Some(info.to_string()),
                    CodeBlockKind::Indented => None,
                };
                let not_run = above.map(str::to_owned);
                blocks.push(CodeBlock { line, last, info, code: String::new(), not_run });
                inside = true;
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(code) if inside => blocks.last_mut().expect("it has begun").code += &code,
            _ => {}
        }
    }
    blocks
}

/// `<!-- not run: it needs a GPU -->` → `it needs a GPU`
fn reason(line: &str) -> Option<&str> {
    // Also in a block quote.
    let line = line.trim_start_matches(['>', ' ']).trim_end();
    line.strip_prefix("<!-- not run:")?.strip_suffix("-->").map(str::trim)
}

/// The errors in the blocks of a page, each with its line.
pub fn mistakes(text: &str) -> Vec<(usize, String)> {
    let blocks = blocks(text);
    let mut mistakes: Vec<(usize, String)> =
        blocks.iter().filter_map(|block| Some((block.line, wrong(block)?))).collect();
    for (index, _) in text.lines().enumerate().filter(|(_, line)| reason(line).is_some()) {
        if !blocks.iter().any(|block| block.line == index + 2) {
            let what = "no block of code follows: put this into the line above the one that is not run";
            mistakes.push((index + 1, what.to_owned()));
        }
    }
    mistakes
}

fn wrong(block: &CodeBlock) -> Option<String> {
    let language = block.language();
    let languages = || LANGUAGES.map(|language| format!("```{language}")).join(" | ");
    if block.info.is_none() {
        return Some(format!("an indented line is code, and Rust to its tests: write {}", languages()));
    }
    if language.is_empty() {
        return Some(format!("this code has no language: write {}", languages()));
    }
    if !LANGUAGES.contains(&language) {
        return Some(format!("no language `{language}`: write {}", languages()));
    }
    let is_command = |line: &str| line.trim().starts_with("cargo ") || line.trim().starts_with("$ ");
    if language == "text" && block.code.lines().any(is_command) {
        return Some("commands in ```text are not run: write ```sh".to_owned());
    }
    let flags: Vec<&str> = block.words().skip(1).collect();
    let allowed = if language == "rust" { &FLAGS[..] } else { &[] };
    if let Some(flag) = flags.iter().find(|flag| !allowed.contains(flag)) {
        return Some(match allowed {
            [] => format!("`{language}` has no flags: remove `{flag}`"),
            _ => format!("no flag `{flag}`: write {}", choices(FLAGS)),
        });
    }
    match (block.not_run.as_deref(), language, &flags[..]) {
        (Some(""), ..) => Some("give the reason why this is not run: `<!-- not run: … -->`".to_owned()),
        (Some(_), "sh", _) | (Some(_), "rust", [_, ..]) | (None, _, []) => None,
        (Some(_), "rust", []) => Some("this Rust is run: remove `<!-- not run: … -->`".to_owned()),
        (Some(_), ..) => Some(format!("`{language}` is never run: remove `<!-- not run: … -->`")),
        (None, ..) => Some(format!(
            "with `{}` this program does not run: give the reason in the line above it, `<!-- not run: … -->`",
            flags.join(",")
        )),
    }
}
