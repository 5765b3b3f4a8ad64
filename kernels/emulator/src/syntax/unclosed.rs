//! A missing `}`, and one too many.

use super::parser::Parser;
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};

impl Parser {
    /// Whether something starts here that cannot be in a block: then a `}` is missing before it.
    pub(super) fn is_outside_blocks(&self) -> bool {
        let is_next = |word: &str| self.ahead(1).ident().is_some_and(|next| &**next == word);
        let Some(word) = self.peek().ident() else { return self.at_end() };
        match &**word {
            "__global__" | "__device__" | "__host__" | "__constant__" | "template" => true,
            "namespace" => !self.ahead(2).is("="),
            "extern" => matches!(self.ahead(1).tok, Tok::Str(_)),
            "int" => is_next("main") && self.ahead(2).is("("),
            _ => false,
        }
    }

    /// Reports that the `{` at token `open` has no `}` before this token. The block then ends here.
    #[cold]
    pub(super) fn unclosed(&mut self, open: usize) -> Result<()> {
        let span = self.tokens[self.likely_unclosed(open)].span;
        let error = Error::new(span, "this `{` is not closed: a `}` is missing");
        if self.trials > 0 {
            return Err(error);
        }
        // A block around this one ends here as well.
        if self.unclosed_at.replace(self.at) == Some(self.at) { Ok(()) } else { self.errors.add(error) }
    }

    /// The `{` after `open` whose `}` stands further left than its line begins, or else `open`.
    fn likely_unclosed(&self, open: usize) -> usize {
        let mut inner = Vec::new();
        for at in open + 1..self.at {
            let token = &self.tokens[at];
            if token.is("{") {
                inner.push(at);
            } else if token.is("}")
                && let Some(of) = inner.pop()
                && token.first_of_line
                && token.span.column < self.indentation(of)
            {
                return of;
            }
        }
        open
    }

    /// The column where the line of a `{` begins, or that of the `(` before it.
    fn indentation(&self, open: usize) -> u32 {
        let (mut at, mut depth) = (open, 0);
        loop {
            match self.tokens[at].tok {
                Tok::Punct(")") => depth += 1,
                Tok::Punct("(") => depth -= 1,
                _ => {}
            }
            if at == 0 || depth == 0 && self.tokens[at].first_of_line {
                return self.tokens[at].span.column;
            }
            at -= 1;
        }
    }

    /// The error of a `}` at file scope. The code after the last function was probably meant to be in its body.
    #[cold]
    pub(super) fn closes_nothing(&mut self) -> Box<Error> {
        let span = self.span();
        let error = Error::new(span, "this `}` closes nothing")
            .help("there is one `}` too many, or a `{` is missing above");
        let ends = self.bodies.last().map(|body| self.tokens[body.tokens.end - 1].span);
        let Some(end) = ends.filter(|end| end.file == span.file) else { return error };
        let is_behind =
            |known: &Span| known.file == end.file && (known.line, known.column) > (end.line, end.column);
        // A function that has no `{` was reported.
        let has_no_brace = |known: &Error| known.message.starts_with("expected `{`");
        if self.errors.0.iter().any(|known| is_behind(&known.span) && has_no_brace(known)) {
            self.errors.0.retain(|known| !is_behind(&known.span) || has_no_brace(known));
            return Error::known(span);
        }
        self.errors.0.retain(|known| !is_behind(&known.span));
        error.note("the last function already ends here", end)
    }
}
