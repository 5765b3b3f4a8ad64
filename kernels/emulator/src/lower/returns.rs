//! `return`.

use super::{Lower, Outcome, Place, Value};
use crate::ir::Op;
use crate::source::Result;
use crate::syntax::ast::*;
use crate::types::{self, VOID};

impl Lower<'_> {
    pub(super) fn return_statement(&mut self, value: Option<&Expr>) -> Result<()> {
        let span = self.span;
        let frame = self.frame().clone();
        if let Outcome::Program = frame.outcome {
            let code = match value {
                Some(value) if !self.on_device => {
                    let value = self.expression(value)?;
                    self.coerced(value, types::I32)?
                }
                Some(_) => return self.error("a kernel has no result"),
                None if !self.on_device => {
                    return self.error("`main` has a result, so `return` needs a value");
                }
                None => Value::constant(types::I32, 0),
            };
            let code = if frame.alive.is_empty() { code } else { self.copied(code)? };
            self.destroy(0)?;
            if !self.on_device {
                self.host_operation("exit", vec![code], VOID)?;
            }
            self.emit(Op::Exit);
            return Ok(());
        }
        let mut result = None;
        if let Some(value) = value {
            let found = match &value.kind {
                ExprKind::Braces(items) => match frame.result {
                    Some(ty) => self.made_from_list(ty, items, true)?,
                    None => return self.error("the type of this list is not known here"),
                },
                _ => self.expression(value)?,
            };
            self.span = span;
            result = Some(match (frame.result, frame.returns_reference) {
                (Some(_), true) => found,
                (Some(ty), false) if ty == VOID && found.ty != VOID => {
                    return self.error("this function has no result, so `return` takes no value");
                }
                (Some(ty), false) if ty == VOID => found,
                (Some(ty), false) if ty == found.ty && self.types.rows(ty).is_none() => self.kept(found)?,
                (Some(ty), false) => self.coerced(found, ty)?,
                (None, _) if self.is_compile_time(found.ty) => found,
                (None, true) => found,
                (None, false)
                    if self.types.rows(found.ty).is_none() && self.types.of_struct(found.ty).is_some() =>
                {
                    self.kept(found)?
                }
                (None, false) => self.loaded(found)?,
            });
        } else if frame.result.is_some_and(|ty| ty != VOID) {
            return self.error("this function has a result, so `return` needs a value");
        }
        if let Some(found) = &result
            && !frame.returns_reference
        {
            self.check_is_not_destroyed(found.ty)?;
        }
        match frame.outcome {
            Outcome::Tail(_) => {
                // Destructors run before the caller uses the result.
                if let Some(found) = result.clone()
                    && !frame.alive.is_empty()
                    && !frame.returns_reference
                    && !self.is_compile_time(found.ty)
                    && found.ty != VOID
                {
                    if self.types.rows(found.ty).is_none() {
                        return self.error(
                            "such a large result together with a variable with a destructor is not part of the subset",
                        );
                    }
                    result = Some(self.copied(found)?);
                }
                if frame.result.is_none() {
                    self.frame().result = Some(result.as_ref().map_or(VOID, |value| value.ty));
                }
                self.frame().outcome = Outcome::Tail(result);
                return Ok(());
            }
            Outcome::Slot(slot, row) => {
                if let Some(result) = result {
                    if frame.returns_reference {
                        let slot = slot.unwrap_or(Value::new(VOID, Place::Nothing));
                        let result = match result.place {
                            Place::Memory(_) => result,
                            _ => self.needs_memory(result)?,
                        };
                        if frame.result.is_none() {
                            self.frame().result = Some(result.ty);
                        }
                        let pointer = self.address_of(result)?;
                        let pointer = Value { ty: slot.ty, ..pointer };
                        self.assigned(&slot, pointer)?;
                    } else {
                        let slot = match slot {
                            Some(slot) => slot,
                            None if result.ty == VOID => Value::new(VOID, Place::Nothing),
                            None => {
                                if self.types.rows(result.ty).is_none_or(|rows| rows > 4) {
                                    return self.error("`auto` for such a large result with several `return`s is not part of the subset: write its type");
                                }
                                let slot = Value::lvalue(result.ty, Place::Row(row));
                                self.frame().outcome = Outcome::Slot(Some(slot.clone()), row);
                                self.frame().result = Some(result.ty);
                                slot
                            }
                        };
                        self.assigned(&slot, result)?;
                    }
                }
            }
            Outcome::Program => {}
        }
        self.destroy(0)?;
        self.emit(Op::Jump { to: frame.end });
        Ok(())
    }

    /// A struct in memory that outlives the function. Local memory is never reused, so it stays valid.
    fn kept(&mut self, value: Value) -> Result<Value> {
        match value.place {
            Place::Memory(memory) => {
                let place = Place::Memory(self.frozen(&memory)?);
                Ok(Value { place, is_lvalue: false, ..value })
            }
            _ => Ok(value),
        }
    }
}
