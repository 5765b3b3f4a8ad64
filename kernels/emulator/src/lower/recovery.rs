//! How the lowering goes on behind an error, so that a program's other errors are told of as well.

use super::{Binding, Lower};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;

impl Lower<'_> {
    pub fn statements(&mut self, statements: &[Stmt]) -> Result<()> {
        for statement in statements {
            let (frames, depth) = (self.frames.len(), self.depth);
            let (scopes, loops) = (self.frame().scopes.len(), self.frame().loops.len());
            let Err(error) = self.statement(statement) else { continue };
            // A variable that has to be in memory is no error, and one of a trial decides nothing.
            if self.again || self.trials > 0 {
                return Err(error);
            }
            self.recovered += 1;
            self.frames.truncate(frames);
            let error = self.frames.iter().rev().fold(error, |error, frame| match &frame.function {
                Some(function) if is_elsewhere(function, frame.call) => {
                    error.note(format!("`{}` is instantiated here", function.name), frame.call)
                }
                _ => error,
            });
            self.errors.add(error)?;
            self.depth = depth;
            self.frame().scopes.truncate(scopes);
            self.frame().loops.truncate(loops);
            self.bind_failed(statement);
        }
        Ok(())
    }

    /// What depends on the names of a declaration that is wrong is no further error.
    fn bind_failed(&mut self, statement: &Stmt) {
        let names: Vec<Name> = match &statement.kind {
            StmtKind::Variables(variables) => {
                variables.iter().map(|variable| variable.name.clone()).collect()
            }
            StmtKind::Bindings { names, .. } => names.clone(),
            StmtKind::Enumerators(values) => values.iter().map(|value| value.name.clone()).collect(),
            StmtKind::Alias(alias) => vec![alias.name.clone()],
            _ => Vec::new(),
        };
        for name in names {
            self.bind(&name, Binding::Failed);
        }
    }

    /// Runs what may have errors that decide nothing.
    pub fn trial<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.trials += 1;
        let result = lower(self);
        self.trials -= 1;
        result
    }

    /// An error if something within a function was wrong, so that nothing is said of its result.
    pub fn unless_failed(&self, before: usize) -> Result<()> {
        if self.recovered > before { Err(Error::known(self.span)) } else { Ok(()) }
    }
}

/// A function whose errors need the place of its call: a template's arguments, or the header's user, say more.
pub fn is_elsewhere(function: &Function, call: Span) -> bool {
    !function.template.is_empty() || function.result.span.file != call.file
}
