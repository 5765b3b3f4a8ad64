//! A student's file as tokens, and searches that need no parsing.

use std::ops::Range;

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

use crate::compile_error::Edit;

/// A file and its tokens, without comments and white space. Tokens are identified by index.
pub struct Source<'a> {
    pub text: &'a str,
    tokens: Vec<Range<usize>>,
}

/// Keywords that cannot end a value.
const KEYWORDS: [&str; 12] =
    ["return", "in", "if", "else", "match", "while", "let", "mut", "as", "move", "for", "ref"];

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Source<'a> {
        let mut tokens = Vec::new();
        let mut at = 0;
        for token in tokenize(text, FrontmatterAllowed::No) {
            let end = at + token.len as usize;
            let is_blank = matches!(
                token.kind,
                TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. }
            );
            if !is_blank {
                tokens.push(at..end);
            }
            at = end;
        }
        Source { text, tokens }
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The text of a token; empty past the end.
    pub fn word(&self, token: usize) -> &'a str {
        self.tokens.get(token).and_then(|range| self.text.get(range.clone())).unwrap_or_default()
    }

    /// Whether the tokens from this one on have these texts.
    pub fn reads(&self, token: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(at, word)| self.word(token + at) == *word)
    }

    pub fn start(&self, token: usize) -> usize {
        self.tokens.get(token).map_or(self.text.len(), |range| range.start)
    }

    pub fn end(&self, token: usize) -> usize {
        self.tokens.get(token).map_or(self.text.len(), |range| range.end)
    }

    /// The token that contains a byte, or the next one.
    pub fn at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|range| range.end <= byte)
    }

    /// The last token before a byte.
    pub fn before(&self, byte: usize) -> Option<usize> {
        self.tokens.partition_point(|range| range.end <= byte).checked_sub(1)
    }

    /// The text between two bytes.
    pub fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// The text of some tokens.
    pub fn tokens(&self, tokens: Range<usize>) -> &'a str {
        match tokens.end.checked_sub(1) {
            Some(last) if last >= tokens.start => self.slice(self.start(tokens.start)..self.end(last)),
            _ => "",
        }
    }

    pub fn line(&self, byte: usize) -> u32 {
        let before = self.text.as_bytes().iter().take(byte);
        1 + before.filter(|letter| **letter == b'\n').count() as u32
    }

    /// The range of the line that contains a byte.
    pub fn line_range(&self, byte: usize) -> Range<usize> {
        let byte = byte.min(self.text.len());
        let bytes = self.text.as_bytes();
        let start = bytes[..byte].iter().rposition(|letter| *letter == b'\n').map_or(0, |at| at + 1);
        let end =
            bytes[byte..].iter().position(|letter| *letter == b'\n').map_or(bytes.len(), |at| byte + at);
        start..end
    }

    /// Whether a token is the first on its line.
    pub fn begins_line(&self, token: usize) -> bool {
        let start = self.start(token);
        self.slice(self.line_range(start).start..start).trim().is_empty()
    }

    pub fn is_name(&self, token: usize) -> bool {
        let word = self.word(token);
        word.starts_with(|first: char| first.is_alphabetic() || first == '_') && !KEYWORDS.contains(&word)
    }

    /// Whether a value can end with this token.
    fn ends_value(&self, token: usize) -> bool {
        let word = self.word(token);
        self.is_name(token)
            || [")", "]", "?"].contains(&word)
            || word.starts_with(|first: char| first.is_ascii_digit() || first == '"' || first == '\'')
    }

    /// The token that closes this opening one, or the last token.
    pub fn close(&self, open: usize) -> usize {
        let mut depth = 0;
        for token in open..self.len() {
            match self.word(token) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth <= 0 {
                return token;
            }
        }
        self.len()
    }

    /// The token that opens this closing one, or the first token.
    pub fn open(&self, close: usize) -> usize {
        let mut depth = 0;
        for token in (0..=close).rev() {
            match self.word(token) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" => depth -= 1,
                _ => {}
            }
            if depth <= 0 {
                return token;
            }
        }
        0
    }

    /// The token that opens the parentheses, brackets or braces around a token.
    pub fn around(&self, token: usize) -> Option<usize> {
        let mut at = token.checked_sub(1)?;
        loop {
            match self.word(at) {
                "(" | "[" | "{" => return Some(at),
                ")" | "]" | "}" => at = self.open(at),
                _ => {}
            }
            at = at.checked_sub(1)?;
        }
    }

    /// The first token from here on with one of these texts, outside nested brackets.
    pub fn next(&self, from: usize, words: &[&str]) -> Option<usize> {
        let mut at = from;
        while at < self.len() {
            let word = self.word(at);
            if words.contains(&word) {
                return Some(at);
            }
            match word {
                "(" | "[" | "{" => at = self.close(at) + 1,
                ")" | "]" | "}" => return None,
                _ => at += 1,
            }
        }
        None
    }

    /// The first token of the value that ends with this one: names, calls and indices, but no operators.
    pub fn value_start(&self, last: usize) -> usize {
        let mut at = last;
        loop {
            let back = |by: usize| at.checked_sub(by);
            at = match self.word(at) {
                ")" | "]" => {
                    let open = self.open(at);
                    match open.checked_sub(1) {
                        Some(before) if self.ends_value(before) => before,
                        Some(before) if self.word(before) == "!" => before.saturating_sub(1),
                        _ => return open,
                    }
                }
                "?" => match back(1) {
                    Some(before) => before,
                    None => return at,
                },
                _ => match (back(1).map(|at| self.word(at)), back(2).map(|at| self.word(at))) {
                    (Some("."), _) => at - 2,
                    (Some(":"), Some(":")) if at >= 3 => at - 3,
                    _ => return at,
                },
            };
        }
    }

    /// The last token of the value that begins with this one: prefix operators, names, calls and indices.
    pub fn value_end(&self, first: usize) -> usize {
        let mut at = first;
        while ["&", "*", "-", "!", "mut"].contains(&self.word(at)) {
            at += 1;
        }
        if ["(", "[", "{"].contains(&self.word(at)) {
            at = self.close(at);
        }
        loop {
            at = match (self.word(at + 1), self.word(at + 2)) {
                ("(" | "[", _) => self.close(at + 1),
                ("?", _) => at + 1,
                (".", next) if next != "." => at + 2,
                ("!", "(" | "[") => self.close(at + 2),
                (":", ":") if self.word(at + 3) == "<" => self.next(at + 3, &[">"]).unwrap_or(at + 3),
                (":", ":") => at + 3,
                _ => return at.min(self.len().saturating_sub(1)),
            }
        }
    }

    /// The token ranges of the arguments of a call, given its opening parenthesis.
    pub fn arguments(&self, open: usize) -> Vec<Range<usize>> {
        let close = self.close(open);
        let mut arguments = Vec::new();
        let mut from = open + 1;
        while from < close {
            let end = self.next(from, &[","]).unwrap_or(close).min(close);
            arguments.push(from..end);
            from = end + 1;
        }
        arguments
    }

    /// The tokens of the value that the last visible `let` bound to a name, or of its part of a tuple.
    pub fn binding(&self, name: &str, from: usize) -> Option<Range<usize>> {
        let mut at = from;
        while let Some(before) = at.checked_sub(1) {
            at = before;
            match self.word(at) {
                ")" | "]" | "}" => at = self.open(at),
                "fn" => return None,
                // A loop variable of this name shadows it.
                "for" => {
                    let until = self.next(at, &["in"])?;
                    if (at..until).any(|token| self.word(token) == name) {
                        return None;
                    }
                }
                "|" if self.word(at + 1) == name && ["|", ",", ":"].contains(&self.word(at + 2)) => {
                    return None;
                }
                "let" => {
                    let Some(equals) = self.next(at, &["=", ";"]) else { continue };
                    let Some(place) = (at..equals).find(|token| self.word(*token) == name) else { continue };
                    if self.word(equals) != "=" || self.next(equals, &[";"]).is_none_or(|end| end >= from) {
                        continue;
                    }
                    return self.part(at + 1, place, equals);
                }
                _ => {}
            }
        }
        None
    }

    /// The first token of the list that a loop variable iterates over.
    pub fn list_of(&self, name: usize) -> Option<usize> {
        let mut at = name;
        while let Some(before) = at.checked_sub(1) {
            at = before;
            match self.word(at) {
                ")" | "]" | "}" => at = self.open(at),
                "fn" => return None,
                "for" if self.reads(at + 1, &[self.word(name), "in"]) => return Some(at + 3),
                _ => {}
            }
        }
        None
    }

    /// The tokens of the value after `=`, or of the tuple part that corresponds to a name in the pattern.
    fn part(&self, pattern: usize, place: usize, equals: usize) -> Option<Range<usize>> {
        let value = equals + 1..self.next(equals, &[";"])?;
        if self.word(pattern) != "(" {
            return Some(value);
        }
        if self.word(value.start) != "(" || self.close(value.start) + 1 != value.end {
            return None;
        }
        let position = self.arguments(pattern).iter().position(|part| part.contains(&place))?;
        self.arguments(value.start).into_iter().nth(position)
    }

    /// Applies non-overlapping edits. Returns the text and the lines that changed.
    pub fn edited(&self, edits: &[Edit]) -> (String, Vec<String>) {
        let mut edits = edits.to_vec();
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut from) = (String::new(), 0);
        let mut made = Vec::new();
        for (range, new) in edits {
            text += self.slice(from..range.start.max(from));
            let start = text.len() + new.len() - new.trim_start().len();
            text += &new;
            made.push(start..text.trim_end().len().max(start));
            from = range.end.max(from);
        }
        text += self.slice(from..self.text.len());
        let edited = Source { text: &text, tokens: Vec::new() };
        let mut lines: Vec<Range<usize>> = Vec::new();
        for range in made {
            let lines_of = edited.line_range(range.start).start..edited.line_range(range.end).end;
            if !lines.contains(&lines_of) {
                lines.push(lines_of);
            }
        }
        let lines = lines.into_iter().flat_map(|range| edited.slice(range).lines().map(str::trim));
        let lines = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        (text, lines)
    }
}
