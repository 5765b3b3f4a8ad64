//! Destructors. Only local variables may have them, so an object is destroyed where its scope ends, or where a jump
//! leaves it.

use super::lookup::Functions;
use super::{Lower, Value};
use crate::source::Result;
use crate::types::TypeId;

impl Lower<'_> {
    /// The name of a type's destructor.
    fn destructor(&self, ty: TypeId) -> Option<crate::syntax::ast::Name> {
        let declaration = &self.types.of_struct(ty)?.declaration;
        let found = declaration.functions.iter().find(|function| function.name.starts_with('~'));
        found.filter(|function| !function.is_defaulted).map(|function| function.name.clone())
    }

    /// Rejects a copy or a part of an object that would have to be destroyed, too.
    pub fn check_is_not_destroyed(&self, ty: TypeId) -> Result<()> {
        match self.destructor(ty) {
            None => Ok(()),
            Some(_) => self.error(format!(
                "`{}` has a destructor: such an object can only be a local variable, made without `=` or a copy",
                self.types.name(ty)
            )),
        }
    }

    /// A local variable begins to exist.
    pub fn note_alive(&mut self, variable: &Value) {
        if self.destructor(variable.ty).is_some() {
            self.frame().alive.push(variable.clone());
        }
    }

    /// Calls the destructors of all variables but the first ones, in reverse.
    pub fn destroy(&mut self, first: usize) -> Result<()> {
        let span = self.span;
        let alive = self.frame().alive.clone();
        for variable in alive.into_iter().skip(first).rev() {
            let Some(name) = self.destructor(variable.ty) else { continue };
            let Some(number) = self.struct_of(variable.ty) else { continue };
            let candidates = self.methods(number, &name);
            let rows = self.program.next_row;
            self.method_call(variable, Functions { name, candidates, arguments: None }, Vec::new(), span)?;
            self.program.next_row = rows;
        }
        Ok(())
    }
}
