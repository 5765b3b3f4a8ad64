//! Error recovery of the parser, so that a program's other errors are reported as well.

use super::ast::Stmt;
use super::parser::Parser;
use crate::source::lexer::Tok;
use crate::source::{Error, Result};

/// The parser's state, to clean up after an error.
pub struct Mark {
    at: usize,
    depth: u32,
    scopes: usize,
    declared: usize,
    written: usize,
    namespace: usize,
}

impl Parser {
    fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            depth: self.depth,
            scopes: self.names.scopes.len(),
            declared: self.declared.len(),
            written: self.written.len(),
            namespace: self.names.at,
        }
    }

    /// Records an error, and discards everything begun since the mark. Returns `Err` to stop parsing.
    fn recover(&mut self, error: Box<Error>, mark: &Mark) -> Result<()> {
        if self.trials > 0 {
            return Err(error);
        }
        // A missing `}` was reported here.
        if self.unclosed_at != Some(self.at) {
            self.errors.add(self.with_hint(error, mark.at))?;
        }
        self.depth = mark.depth;
        self.in_arguments = false;
        self.specializing = false;
        self.names.scopes.truncate(mark.scopes);
        self.names.at = mark.namespace;
        self.names.kinds.clear();
        self.declared.truncate(mark.declared);
        self.written.truncate(mark.written);
        Ok(())
    }

    /// Parses a declaration, or skips a faulty one.
    pub fn declaration_or_next(&mut self) -> Result<()> {
        let mark = self.mark();
        let Err(error) = self.declaration(false) else { return Ok(()) };
        self.recover(error, &mark)?;
        // Skips from its start to the `;`, or to the `}` of its body.
        self.at = mark.at;
        let mut open = 0;
        while !self.at_end() {
            match self.advance().tok {
                Tok::Punct("{") => open += 1,
                Tok::Punct("}") if open <= 1 => {
                    self.eat(";");
                    break;
                }
                Tok::Punct("}") => open -= 1,
                Tok::Punct(";") if open == 0 => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses a statement, or skips a faulty one.
    pub fn statement_or_next(&mut self, into: &mut Vec<Stmt>) -> Result<()> {
        let mark = self.mark();
        let Err(error) = self.statement(into) else { return Ok(()) };
        let error_at = self.at;
        self.recover(error, &mark)?;
        // Skips from its start to the `;`, or to the `}` of its body, but stays in the block.
        self.at = mark.at;
        let is_loop = self.is_word("for");
        let (mut braces, mut parentheses) = (0, 0);
        while !(self.at_end() || braces == 0 && self.is("}")) {
            let is_behind = self.at >= error_at && !is_loop;
            match self.advance().tok {
                Tok::Punct("(") => parentheses += 1,
                Tok::Punct(")") => parentheses -= 1,
                Tok::Punct("{") => braces += 1,
                Tok::Punct("}") => {
                    braces -= 1;
                    if braces == 0 {
                        break;
                    }
                }
                // A `)` may be missing.
                Tok::Punct(";") if braces == 0 && (parentheses <= 0 || is_behind) => break,
                _ => {}
            }
        }
        Ok(())
    }
}
