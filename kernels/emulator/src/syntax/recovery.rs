//! How the parser goes on behind an error, so that a program's other errors are told of as well.

use super::ast::Stmt;
use super::parser::Parser;
use crate::source::lexer::Tok;
use crate::source::{Error, Result};

/// What an error may leave behind.
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

    /// Notes an error, and forgets what was begun since the mark. `Err`: nothing more is looked at.
    fn recover(&mut self, error: Box<Error>, mark: &Mark) -> Result<()> {
        if self.trials > 0 {
            return Err(error);
        }
        self.errors.add(error)?;
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

    /// A declaration, or what is behind one that is wrong.
    pub fn declaration_or_next(&mut self) -> Result<()> {
        let mark = self.mark();
        let Err(error) = self.declaration(false) else { return Ok(()) };
        self.recover(error, &mark)?;
        // From its beginning: to the `;`, or to the `}` of its body.
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

    /// A statement, or what is behind one that is wrong.
    pub fn statement_or_next(&mut self, into: &mut Vec<Stmt>) -> Result<()> {
        let mark = self.mark();
        let Err(error) = self.statement(into) else { return Ok(()) };
        let error_at = self.at;
        self.recover(error, &mark)?;
        // From its beginning: to the `;`, or to the `}` of its body, but not out of the block.
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
                // A `)` may be what is missing.
                Tok::Punct(";") if braces == 0 && (parentheses <= 0 || is_behind) => break,
                _ => {}
            }
        }
        Ok(())
    }
}
