//! Writes to places, copies, and reference binding.

use super::{Base, Lower, Memory, Place, Value};
use crate::ir::{Op, Row};
use crate::source::Result;
use crate::syntax::ast::*;
use crate::types::{Type, TypeId};

impl Lower<'_> {
    pub fn assign_expression(
        &mut self,
        operator: Option<Binary>,
        target: &Expr,
        source: &Expr,
    ) -> Result<Value> {
        let span = self.span;
        let place = self.expression(target).map_err(|error| match &target.kind {
            ExprKind::Path(path) if operator.is_none() && error.help.is_none() && error.span == path.span => {
                error.help("to declare a variable, write its type: `int i = …;`")
            }
            _ => error,
        })?;
        if !place.is_lvalue {
            return self.not_assignable(&place);
        }
        if self.types.of_struct(place.ty).is_some() {
            let text = match operator {
                None => "=".to_owned(),
                Some(operator) => format!("{}=", super::operators::operator_text(operator)),
            };
            let has_own = self
                .struct_of(place.ty)
                .is_some_and(|of| !self.methods(of, &format!("operator{text}")).is_empty())
                || operator.is_some();
            if has_own && !matches!(source.kind, ExprKind::Braces(_)) {
                let value = self.expression(source)?;
                self.span = span;
                if let Some(result) = self.overloaded(&text, &place, Some(&value), span)? {
                    return Ok(result);
                }
            }
        }
        if place.is_const {
            return self.not_assignable(&place);
        }
        let place = self.writable(place)?;
        let place = if self.writes(source) || operator.is_some() { self.fixed_target(place)? } else { place };
        let value = match (&source.kind, operator) {
            (ExprKind::Braces(items), None) => self.made_from_list(place.ty, items, true)?,
            _ => self.expression(source)?,
        };
        let value = match operator {
            None => value,
            Some(operator) => {
                self.span = target.span;
                let old = self.loaded(place.clone())?;
                self.span = span;
                let value = self.binary_values(operator, old, value, span)?;
                if self.types.of_struct(place.ty).is_some() {
                    value
                } else {
                    // `a op= b` converts back implicitly.
                    let value = self.plain(value)?;
                    self.converted_scalar(value, place.ty, false)?
                }
            }
        };
        self.span = target.span;
        self.assigned(&place, value)?;
        self.span = span;
        Ok(place)
    }

    pub fn not_assignable<T>(&self, value: &Value) -> Result<T> {
        let what = if value.is_lvalue { "this is `const`" } else { "this is not a variable" };
        self.error(format!("{what}: it cannot be assigned to"))
    }

    /// A variable that was treated as a constant, since nothing seemed to write it, gets rows in the next attempt.
    pub fn writable(&mut self, value: Value) -> Result<Value> {
        let is_row = matches!(value.place, Place::Row(_));
        if matches!(value.place, Place::Const(_) | Place::Closure(_)) || is_row && value.is_stable {
            if let Some(declaration) = value.declaration
                && self.in_rows.insert(declaration)
            {
                return self.retry();
            }
            if !is_row {
                return self.error("this value cannot be written");
            }
        }
        Ok(value)
    }

    /// Fixes a place, so that later computations do not move it before it is written.
    pub fn fixed_target(&mut self, value: Value) -> Result<Value> {
        match value.place {
            Place::Memory(memory) => {
                let memory = self.frozen(&memory)?;
                Ok(Value { place: Place::Memory(memory), ..value })
            }
            _ => Ok(value),
        }
    }

    /// Converts a value to the type of a place, and writes it there.
    pub fn assigned(&mut self, target: &Value, value: Value) -> Result<()> {
        let value = self.coerced(value, target.ty)?;
        match target.place.clone() {
            Place::Row(row) => self.to_rows(target.ty, row, &value),
            Place::Memory(memory) => self.to_memory(target.ty, &memory, &value),
            Place::Nothing => Ok(()),
            _ => self.not_assignable(target),
        }
    }

    pub fn to_rows(&mut self, ty: TypeId, row: Row, value: &Value) -> Result<()> {
        let value = self.loaded(value.clone())?;
        let rows = self.types.rows(ty).unwrap_or(0);
        match value.place {
            Place::Row(from) if from == row => {}
            Place::Row(from) => {
                let is_scalar = self.prim(ty).is_some();
                if is_scalar
                    && !value.is_lvalue
                    && value.declaration.is_none()
                    && value.is_stable
                    && self.program.retarget(from, row, rows)
                {
                    return Ok(());
                }
                self.move_rows(ty, row, from);
            }
            Place::Const(bits) => {
                let a = self.program.constant(bits, rows == 2);
                self.emit(if rows == 2 { Op::Move64 { d: row, a } } else { Op::Move32 { d: row, a } });
            }
            _ if rows == 0 => {}
            _ => return self.error("this value has no place"),
        }
        Ok(())
    }

    /// A 64-bit value spans both of its rows, so each part is moved by its own type.
    fn move_rows(&mut self, ty: TypeId, to: Row, from: Row) {
        let mut leaves = self.types.leaves(ty);
        // Forwards or backwards, so that no element is overwritten before it is read.
        if to > from {
            leaves.reverse();
        }
        for leaf in leaves {
            let (d, a) = (to + leaf.row, from + leaf.row);
            self.emit(if crate::ir::rows_of(leaf.prim) == 2 {
                Op::Move64 { d, a }
            } else {
                Op::Move32 { d, a }
            });
        }
    }

    pub fn to_memory(&mut self, ty: TypeId, memory: &Memory, value: &Value) -> Result<()> {
        let leaves = self.types.leaves(ty);
        let align = self.types.layout(ty).1;
        if leaves.len() > 2000 {
            return self.error("a copy of such a large array or struct is not part of the subset");
        }
        let to = if leaves.len() > 1 { self.frozen(memory)? } else { *memory };
        let from = match &value.place {
            Place::Memory(from) if leaves.len() > 1 => Some(self.frozen(from)?),
            Place::Memory(from) => Some(*from),
            _ => None,
        };
        for (i, leaf) in leaves.iter().enumerate() {
            let align = if i == 0 { align } else { crate::ir::size_of(leaf.prim) };
            let part = Memory { offset: to.offset + leaf.offset as i64, ..to };
            let rows = self.program.next_row;
            let a = match (&value.place, from) {
                (_, Some(from)) => {
                    let from = Memory { offset: from.offset + leaf.offset as i64, ..from };
                    let at = self.address(&from, align)?;
                    let d = self.program.rows(crate::ir::rows_of(leaf.prim));
                    self.emit(Op::Load { ty: leaf.prim, d, at });
                    d
                }
                (Place::Row(row), None) => row + leaf.row,
                (Place::Const(bits), None) => {
                    self.program.constant(*bits, crate::ir::rows_of(leaf.prim) == 2)
                }
                _ => return self.error("this value has no place"),
            };
            let at = self.address(&part, align)?;
            self.emit(Op::Store { ty: leaf.prim, a, at });
            self.program.next_row = rows;
        }
        Ok(())
    }

    /// Copies a value to rows of its own.
    pub fn copied(&mut self, value: Value) -> Result<Value> {
        let value = self.loaded(value)?;
        let Place::Row(from) = value.place else { return Ok(value) };
        let rows = self.types.rows(value.ty).unwrap_or(0);
        let row = self.program.rows(rows);
        self.move_rows(value.ty, row, from);
        Ok(Value::new(value.ty, Place::Row(row)))
    }

    /// Returns the place that a reference is bound to.
    pub fn bound(&mut self, value: Value, ty: TypeId, is_const: bool, is_forward: bool) -> Result<Value> {
        if value.ty != ty {
            // A const reference also binds to a converted value.
            if !is_const && !is_forward {
                return self.no_conversion(value.ty, ty);
            }
            let value = self.coerced(value, ty)?;
            return Ok(Value { is_const: true, is_lvalue: true, ..value });
        }
        let writes = !is_const && !value.is_const;
        if !is_const && !is_forward && !value.is_lvalue {
            return self.error("a reference that is not `const` needs a variable, and this is a value");
        }
        let value = if writes && value.is_lvalue { self.writable(value)? } else { value };
        let value = match value.place {
            Place::Memory(memory) => Value { place: Place::Memory(self.frozen(&memory)?), ..value },
            _ => value,
        };
        Ok(Value { is_lvalue: true, is_const: is_const || value.is_const, ..value })
    }

    /// The stored form of a reference in memory or rows: its address.
    pub fn reference_value(&mut self, value: Value, ty: TypeId, is_const: bool) -> Result<Value> {
        let value = self.bound(value, ty, is_const, false)?;
        let value = match value.place {
            Place::Memory(_) => value,
            _ => self.needs_memory(value)?,
        };
        self.address_of(value)
    }

    /// Returns the place that a stored reference points to.
    pub fn behind(&mut self, pointer: Value, ty: TypeId, is_const: bool) -> Result<Value> {
        let memory = match pointer.place {
            Place::Const(at) => Memory { base: Base::Const(at), index: None, offset: 0 },
            _ => Memory { base: Base::Row(self.row(&pointer)?), index: None, offset: 0 },
        };
        Ok(Value { is_const, ..Value::lvalue(ty, Place::Memory(memory)) })
    }

    /// Whether values of a type exist only at compile time.
    pub fn is_compile_time(&self, ty: TypeId) -> bool {
        matches!(self.types.get(ty), Type::Closure(_) | Type::Function)
    }
}
