//! Error recovery of the lowering, so that a program's other errors are reported as well.

use super::{Binding, Lower};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;

impl Lower<'_> {
    pub fn statements(&mut self, statements: &[Stmt]) -> Result<()> {
        for statement in statements {
            let (frames, depth) = (self.frames.len(), self.depth);
            let (scopes, loops) = (self.frame().scopes.len(), self.frame().loops.len());
            let Err(error) = self.statement(statement) else { continue };
            // A variable that must be in memory is not an error, and an error in a trial decides nothing.
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

    /// Binds the names of a faulty declaration as failed, so that their uses cause no further errors.
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

    /// Runs `lower` as a trial: its errors decide nothing.
    pub fn trial<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.trials += 1;
        let result = lower(self);
        self.trials -= 1;
        result
    }

    /// Returns an error if something in the function failed, so that nothing is reported about its result.
    pub fn unless_failed(&self, before: usize) -> Result<()> {
        if self.recovered > before { Err(Error::known(self.span)) } else { Ok(()) }
    }
}

/// Whether a function's errors should be reported at its call: a template's arguments, or the user of a header, say
/// more.
pub fn is_elsewhere(function: &Function, call: Span) -> bool {
    !function.template.is_empty() || function.result.span.file != call.file
}
