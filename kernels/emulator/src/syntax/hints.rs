//! Help for statements that would be right in another language.

use super::parser::Parser;
use crate::source::{Error, foreign};

impl Parser {
    /// Adds help to the error of a statement or a declaration that begins at token `start`. The error is at the current
    /// token.
    #[cold]
    pub(super) fn with_hint(&self, mut error: Box<Error>, start: usize) -> Box<Error> {
        if error.help.is_none()
            && let Some(help) = self.hint(&error, start)
        {
            error.help = Some(help.to_owned());
            // No `;` is missing.
            if std::mem::take(&mut error.label) == PUT_SEMICOLON && !self.peek().after_comment {
                error.span = self.span();
            }
        }
        error
    }

    fn hint(&self, error: &Error, start: usize) -> Option<&'static str> {
        let word = |at: usize| self.tokens.get(at).and_then(|token| token.ident()).map_or("", |word| word);
        let before = self.at.saturating_sub(1).max(start);
        let (first, last) = (word(start), word(before));
        let expected =
            |what: &str| error.message.starts_with("expected ") && error.message[9..].starts_with(what);
        if self.peek().after_comment && error.message.starts_with("expected ") {
            return Some("`//` begins a comment; `/` of two whole numbers drops the fraction");
        }
        if last == "for" && expected("`(`") || first == "for" && self.is_word("in") {
            return Some(foreign::FOR);
        }
        if first == "for" && (expected("`;`, found `)`") || error.message.ends_with("is defined twice")) {
            return Some("put a `;` between the three parts: `for (int i = 0; i < n; i++)`");
        }
        if ["if", "while", "switch"].contains(&last) && expected("`(`") {
            return Some("a condition has parentheses around it: `if (i < n) { … }`");
        }
        if ["if", "while"].contains(&first) {
            let is_between =
                ["&&", "||", "==", "!=", "<", ">", "<=", ">="].iter().any(|punct| self.is(punct));
            if is_between && self.tokens[before].is(")") {
                return Some("put another pair of parentheses around the whole condition: `if ((…) && (…))`");
            }
        }
        if self.is(":") && (["if", "for", "while"].contains(&first) || last == "else") {
            return Some("C++ has no `:` here: write the statements in `{ … }`");
        }
        let is_same_line = self.span().line == self.tokens[before].span.line;
        if self.is_word("if") && expected("`;`") && is_same_line {
            return Some("write `c ? x : y`");
        }
        let found = [first, last, word(self.at)].into_iter().filter(|word| self.names.find(word).is_none());
        found.filter_map(foreign::help).next()
    }
}

pub const PUT_SEMICOLON: &str = "put a `;` here";
