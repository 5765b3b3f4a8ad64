//! Local and shared variables.

use super::type_names::Written;
use super::{Base, Binding, Lower, Memory, Place, Value};
use crate::ir::{Slot, space};
use crate::source::Result;
use crate::syntax::ast::*;
use crate::types::{Type, VOID};

impl Lower<'_> {
    pub fn local_variable(&mut self, variable: &Variable) -> Result<()> {
        self.span = variable.span;
        if variable.storage.shared {
            return self.shared_variable(variable);
        }
        if variable.storage.constant {
            return self.error("`__constant__` variables must be outside of functions");
        }
        if variable.storage.is_static && !variable.storage.is_constexpr {
            if self.on_device {
                return self.error("`static` variables in device code are not part of the subset");
            }
            let value = self.global_value(variable, Vec::new())?;
            self.bind(&variable.name, Binding::Value(value));
            return Ok(());
        }
        if super::parameters::has_auto(&variable.ty) {
            let items;
            let init = match &variable.init {
                Init::Value(value) => value,
                Init::Parentheses(all) | Init::Braces(all) if all.len() == 1 => {
                    items = all;
                    &items[0]
                }
                _ => return self.error("the type of `auto` cannot be deduced here"),
            };
            let value = self.expression(init)?;
            self.span = variable.span;
            return self.declare(variable, value);
        }
        let written = match (&variable.ty.kind, &variable.init) {
            // `int a[] = {1, 2, 3}`
            (TypeKind::Array(of, None), Init::Braces(items)) => {
                let of = self.written(of)?;
                let ty = self.array_type(of.ty, items.len() as u64)?;
                Written { ty, is_const: of.is_const, is_reference: false, is_forward: false }
            }
            (TypeKind::Array(of, None), Init::Value(Expr { kind: ExprKind::Str(text), .. })) => {
                let of = self.written(of)?;
                let ty = self.array_type(of.ty, text.len() as u64 + 1)?;
                Written { ty, is_const: of.is_const, is_reference: false, is_forward: false }
            }
            _ => match self.deduced_variable(variable)? {
                Some(ty) => {
                    Written { ty, is_const: variable.ty.is_const, is_reference: false, is_forward: false }
                }
                None => {
                    let is_copy = matches!(&variable.init, Init::Value(init) if !matches!(init.kind, ExprKind::Braces(_)));
                    self.may_be_destroyed = !is_copy;
                    self.written(&variable.ty)?
                }
            },
        };
        self.span = variable.span;
        if written.ty == VOID {
            return self.error(format!("`{}` cannot be of type `void`", variable.name));
        }
        if written.is_reference {
            let (Init::Value(init), _) = (&variable.init, ()) else {
                return self.error(format!("the reference `{}` is not bound to anything", variable.name));
            };
            let value = self.expression(init)?;
            self.span = variable.span;
            let value = self.bound(value, written.ty, written.is_const, written.is_forward)?;
            let value = match (value.declaration, self.in_memory.contains(&variable.id)) {
                (None, true) if !matches!(value.place, Place::Memory(_)) => {
                    let slot = self.local_slot(&variable.name, value.ty);
                    self.assigned(&slot, value)?;
                    slot
                }
                (None, _) => Value { declaration: Some(variable.id), ..value },
                _ => value,
            };
            self.bind(&variable.name, Binding::Value(value));
            return Ok(());
        }
        match &variable.init {
            Init::Value(init)
                if self.types.rows(written.ty).is_some() && !matches!(init.kind, ExprKind::Braces(_)) =>
            {
                let row = self.program.next_row;
                let value = self.expression(init)?;
                self.span = variable.span;
                let value = self.coerced(value, written.ty)?;
                self.keep(variable, written, value, row)
            }
            init => {
                let place = self.variable_place(variable, written);
                let rows = self.program.next_row;
                let mut is_bare = false;
                match init {
                    Init::None => is_bare = self.default_initialised(&place)?,
                    Init::Value(value) => self.initialise_from(&place, value)?,
                    Init::Braces(items) => self.initialise(&place, items, true)?,
                    Init::Parentheses(items) => self.initialise(&place, items, false)?,
                }
                self.program.next_row = rows;
                self.note_alive(&place);
                self.bind(&variable.name, Binding::Value(Value { is_const: written.is_const, ..place }));
                if is_bare {
                    self.program.notes.is_bare();
                }
                Ok(())
            }
        }
    }

    /// `std::pair p(1, 2);`: the template arguments are deduced.
    fn deduced_variable(&mut self, variable: &Variable) -> Result<Option<crate::types::TypeId>> {
        let TypeKind::Path(path) = &variable.ty.kind else { return Ok(None) };
        match &variable.init {
            Init::Braces(items) | Init::Parentheses(items) if !items.is_empty() => {
                self.deduced_struct(path, items, variable.span)
            }
            _ => Ok(None),
        }
    }

    fn variable_place(&mut self, variable: &Variable, written: Written) -> Value {
        let is_in_rows = self.types.rows(written.ty).is_some() && !self.in_memory.contains(&variable.id);
        let place = match is_in_rows {
            true => Value::lvalue(written.ty, Place::Row(self.new_rows(written.ty))),
            false => self.local_slot(&variable.name, written.ty),
        };
        Value { declaration: Some(variable.id), ..place }
    }

    /// Default-initialises a variable: a pattern that is no sensible value, unless its constructor does more. Returns
    /// whether it has no value yet.
    fn default_initialised(&mut self, place: &Value) -> Result<bool> {
        let has_constructors =
            self.struct_of(place.ty).is_some_and(|number| !self.constructors(number).candidates.is_empty());
        if has_constructors || self.is_constructed(place.ty) {
            self.initialise(place, &[], true)?;
            return Ok(false);
        }
        if let Place::Row(row) = place.place {
            for leaf in self.types.leaves(place.ty) {
                let ty = crate::types::of_prim(leaf.prim);
                let bits = match leaf.prim {
                    crate::ir::Prim::F64 => 0x7ff8_dead_dead_dead,
                    crate::ir::Prim::Bool => 1,
                    crate::ir::Prim::U8 | crate::ir::Prim::I8 => 0x5a,
                    crate::ir::Prim::U16 | crate::ir::Prim::I16 => 0x5ead,
                    crate::ir::Prim::I64 | crate::ir::Prim::U64 => 0x5ead_5ead_5ead_5ead,
                    _ => 0x7fc0_dead,
                };
                self.to_rows(ty, row + leaf.row, &Value::constant(ty, bits))?;
            }
        }
        Ok(true)
    }

    /// Binds a variable to its value. Constants and results that are never written stay as they are.
    fn keep(&mut self, variable: &Variable, written: Written, value: Value, first_row: u32) -> Result<()> {
        // The address of a constant is not that of its value: see `needs_memory`.
        let is_const = written.is_const || variable.storage.is_constexpr;
        let is_written = self.is_written(variable) && !is_const;
        let named =
            |value: Value| Value { is_lvalue: true, is_const, declaration: Some(variable.id), ..value };
        if variable.storage.is_constexpr && value.as_const().is_none() && self.prim(value.ty).is_some() {
            return self.error(format!("the value of `{}` must be known at compile time", variable.name));
        }
        if self.in_memory.contains(&variable.id) && !(is_const && value.as_const().is_some()) {
            let place = self.variable_place(variable, written);
            self.assigned(&place, value)?;
            self.bind(&variable.name, Binding::Value(named(place)));
            return Ok(());
        }
        if !is_written && value.as_const().is_some() {
            self.bind(&variable.name, Binding::Value(named(Value { is_stable: true, ..value })));
            return Ok(());
        }
        // The rows of the computation are free again; the result moves to the first of them.
        let rows = self.types.rows(written.ty).unwrap_or(0);
        match value.place {
            Place::Row(row) if !is_written && value.is_stable && row < first_row => {
                self.bind(&variable.name, Binding::Value(named(value)));
            }
            _ => {
                let is_result =
                    matches!(value.place, Place::Row(row) if row >= first_row && row < self.program.next_row);
                let value = if is_result {
                    Value { declaration: None, is_lvalue: false, is_stable: true, ..value }
                } else {
                    value
                };
                self.program.next_row = first_row;
                let row = self.program.rows(rows);
                self.to_rows(written.ty, row, &value)?;
                let place = Value { is_stable: !is_written, ..Value::new(written.ty, Place::Row(row)) };
                self.bind(&variable.name, Binding::Value(named(place)));
            }
        }
        Ok(())
    }

    fn is_written(&self, variable: &Variable) -> bool {
        let written = self.frames.last().and_then(|frame| frame.function.as_ref());
        written.is_none_or(|function| function.written.contains(&variable.name))
            || self.in_rows.contains(&variable.id)
    }

    /// `auto x = value`, `auto &x = value`
    pub fn declare(&mut self, variable: &Variable, value: Value) -> Result<()> {
        let by_reference = matches!(variable.ty.kind, TypeKind::Reference(_) | TypeKind::Forward(_));
        if by_reference {
            let is_const = matches!(&variable.ty.kind, TypeKind::Reference(inner) if inner.is_const);
            let is_forward = matches!(variable.ty.kind, TypeKind::Forward(_));
            let ty = value.ty;
            let value = self.bound(value, ty, is_const, is_forward)?;
            self.bind(&variable.name, Binding::Value(value));
            return Ok(());
        }
        if self.is_compile_time(value.ty) {
            let value = self.copied_closure(value)?;
            self.bind(&variable.name, Binding::Value(value));
            return Ok(());
        }
        self.check_is_not_destroyed(value.ty)?;
        let row = self.program.next_row;
        let ty = match super::parameters::has_auto(&variable.ty) {
            true => match *self.types.get(value.ty) {
                Type::Array { of, .. } => self.types.pointer(of, value.is_const),
                _ => value.ty,
            },
            false => self.type_of_name(&variable.ty)?,
        };
        if ty == VOID {
            return self.error("a function without a result has no value");
        }
        let written = Written { ty, is_const: variable.ty.is_const, is_reference: false, is_forward: false };
        if self.types.rows(ty).is_none() {
            let place = self.variable_place(variable, written);
            self.assigned(&place, value)?;
            self.bind(&variable.name, Binding::Value(Value { is_const: written.is_const, ..place }));
            return Ok(());
        }
        let value = self.coerced(value, ty)?;
        // Values computed before this declaration keep their rows.
        if let Place::Row(_) = value.place {
            let copy = self.copied(value)?;
            let is_written = self.is_written(variable);
            let value = Value {
                is_lvalue: true,
                is_const: written.is_const,
                is_stable: !is_written,
                declaration: Some(variable.id),
                ..copy
            };
            if self.in_memory.contains(&variable.id) {
                let place = self.variable_place(variable, written);
                self.assigned(&place, value)?;
                self.bind(&variable.name, Binding::Value(place));
                return Ok(());
            }
            self.bind(&variable.name, Binding::Value(value));
            return Ok(());
        }
        self.keep(variable, written, value, row)
    }

    fn shared_variable(&mut self, variable: &Variable) -> Result<()> {
        let value = self.shared_value(variable)?;
        self.bind(&variable.name, Binding::Value(value));
        Ok(())
    }

    /// Returns the kernel's shared variable.
    pub fn shared_value(&mut self, variable: &Variable) -> Result<Value> {
        if !self.on_device {
            return self.error("`__shared__` variables must be in device code");
        }
        if !matches!(variable.init, Init::None) {
            return self.error("`__shared__` variables cannot be initialised where they are declared");
        }
        let is_dynamic = self.unsized_array(&variable.ty);
        let (ty, size, align) = match &variable.ty.kind {
            TypeKind::Array(of, None) => {
                if !variable.storage.is_extern {
                    return self.error("a shared array without a size is `extern`");
                }
                let of = self.type_of_name(of)?;
                let align = self.types.layout(of).1;
                // Only the launch sets its length.
                (self.types.id(Type::Array { of, count: 1 << 24 }), 0, align)
            }
            _ => {
                let ty = self.type_of_name(&variable.ty)?;
                let (size, align) = self.types.layout(ty);
                (ty, size, align)
            }
        };
        // Each declaration is one variable, however often its function is inlined with the same arguments.
        let arguments = self.frames.last().map_or(Vec::new(), |frame| {
            let mut all: Vec<_> = frame.scopes[0].iter().collect();
            all.sort_by(|a, b| a.0.cmp(b.0));
            all.into_iter().map(|(_, binding)| super::type_names::binding_argument(binding)).collect()
        });
        let key = format!("{}#{}{:?}", variable.name, variable.id, arguments);
        let offset = if is_dynamic {
            // All dynamic arrays start after the other shared variables.
            crate::run::DYNAMIC_SHARED
        } else if let Some(slot) = self.program.shared.iter().find(|slot| slot.name == key) {
            slot.offset
        } else {
            let offset = self.program.shared_bytes.next_multiple_of(align.max(16));
            self.program.shared_bytes = offset.saturating_add(size);
            self.program.shared.push(Slot { name: key, offset, size });
            offset
        };
        let memory = Memory { base: Base::Const(space::SHARED + offset), index: None, offset: 0 };
        Ok(Value::lvalue(ty, Place::Memory(memory)))
    }
}
