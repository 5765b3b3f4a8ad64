//! `goto` and its labels.

use super::Lower;
use crate::ir::Op;
use crate::source::{Error, Result};
use crate::syntax::ast::Name;

impl Lower<'_> {
    pub fn goto(&mut self, name: &Name) -> Result<()> {
        self.check_nothing_is_alive()?;
        let to = self.label_of(name);
        self.emit(Op::Jump { to });
        Ok(())
    }

    fn check_nothing_is_alive(&mut self) -> Result<()> {
        match self.frame().alive.is_empty() {
            true => Ok(()),
            false => self
                .error("`goto` and labels next to a variable with a destructor are not part of the subset"),
        }
    }

    pub fn place_label(&mut self, name: &Name) -> Result<()> {
        self.check_nothing_is_alive()?;
        let label = self.label_of(name);
        if self.program.is_placed(label) {
            return self.error(format!("the label `{name}` is defined twice"));
        }
        self.program.place(label);
        Ok(())
    }

    fn label_of(&mut self, name: &Name) -> u32 {
        if let Some((_, label, _)) = self.frame().labels.iter().find(|(known, ..)| known == name) {
            return *label;
        }
        let (label, span) = (self.program.label(), self.span);
        self.frame().labels.push((name.clone(), label, span));
        label
    }

    /// Checks at the end of a function that each label is defined.
    pub fn check_labels(&mut self) -> Result<()> {
        let labels = self.frame().labels.clone();
        match labels.iter().find(|(_, label, _)| !self.program.is_placed(*label)) {
            Some((name, _, span)) => {
                Err(Error::new(*span, format!("there is no label `{name}` in this function")))
            }
            None => Ok(()),
        }
    }
}
