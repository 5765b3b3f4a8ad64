//! Parameters: the values that they are bound to, and a constructor's members.

use super::overloads::Given;
use super::{Binding, Lower, Place, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::Type;

impl Lower<'_> {
    pub(super) fn bind_parameters(
        &mut self,
        function: &Function,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<()> {
        let mut given = given.into_iter();
        for parameter in &function.parameters {
            if parameter.is_pack {
                let all: Vec<Given<'_>> = given.by_ref().collect();
                let mut bindings = Vec::new();
                let mut names = Vec::new();
                self.packs_in_type(&parameter.ty, &mut names);
                let is_auto = has_auto(&parameter.ty);
                for (i, given) in all.into_iter().enumerate() {
                    let value = match is_auto {
                        true => self.parameter_value(parameter, given, function, true)?,
                        false => self.with_elements(&names, i, |lower| {
                            lower.parameter_value(parameter, given, function, false)
                        })?,
                    };
                    bindings.push(Binding::Value(value));
                }
                if let Some(name) = &parameter.name {
                    self.bind(name, Binding::Pack(bindings));
                }
                continue;
            }
            let value = match (given.next(), &parameter.default) {
                (Some(given), _) => {
                    let is_auto = has_auto(&parameter.ty);
                    self.parameter_value(parameter, given, function, is_auto)?
                }
                (None, Some(default)) => {
                    let value = self.expression(default)?;
                    self.span = span;
                    self.parameter_value(parameter, Given::Value(value), function, has_auto(&parameter.ty))?
                }
                (None, None) => return self.error("an argument is missing"),
            };
            if let Some(name) = &parameter.name {
                self.bind(name, Binding::Value(value));
            }
        }
        Ok(())
    }

    fn parameter_value(
        &mut self,
        parameter: &Parameter,
        given: Given<'_>,
        function: &Function,
        is_auto: bool,
    ) -> Result<Value> {
        let written = match (&given, is_auto) {
            (Given::Value(value), true) => {
                let by_reference = matches!(parameter.ty.kind, TypeKind::Reference(_) | TypeKind::Forward(_));
                let ty = match *self.types.get(value.ty) {
                    Type::Array { of, .. } if !by_reference => self.types.pointer(of, value.is_const),
                    _ => value.ty,
                };
                let is_const = match &parameter.ty.kind {
                    TypeKind::Reference(inner) => inner.is_const || value.is_const,
                    _ => parameter.ty.is_const,
                };
                let is_forward = matches!(parameter.ty.kind, TypeKind::Forward(_));
                if !by_reference {
                    self.check_is_not_destroyed(value.ty)?;
                }
                if matches!(parameter.ty.kind, TypeKind::Function) {
                    self.check_is_function(value)?;
                }
                super::type_names::Written { ty, is_const, is_reference: by_reference, is_forward }
            }
            _ => self.written(&parameter.ty)?,
        };
        let value = match given {
            Given::Value(value) => value,
            Given::Braces(items, _) => {
                // The braced list belongs to the caller's frame.
                let frame = self.frames.pop();
                let value = self.made_from_list(written.ty, items, true);
                self.frames.extend(frame);
                value?
            }
        };
        if written.is_reference {
            let value = self.bound(value, written.ty, written.is_const, written.is_forward)?;
            return Ok(if value.is_lvalue && value.declaration.is_some() {
                value
            } else {
                Value { declaration: Some(parameter.id), ..self.in_memory_if_needed(value, parameter)? }
            });
        }
        if self.is_compile_time(written.ty) {
            return self.copied_closure(value);
        }
        let value = self.coerced(value, written.ty)?;
        let is_written = parameter.name.as_ref().is_some_and(|name| function.written.contains(name))
            || self.in_rows.contains(&parameter.id);
        let must_be_in_memory =
            self.in_memory.contains(&parameter.id) || self.types.rows(written.ty).is_none();
        let made = |value: Value| Value {
            is_lvalue: true,
            is_const: written.is_const,
            declaration: Some(parameter.id),
            ..value
        };
        if must_be_in_memory {
            // A value that is never written can stay where it is.
            if let (Place::Memory(_), false, false) =
                (&value.place, is_written, self.in_memory.contains(&parameter.id))
            {
                return Ok(made(Value { is_const: true, ..value }));
            }
            let name = parameter.name.as_deref().unwrap_or("a parameter");
            let slot = self.local_slot(name, written.ty);
            self.assigned(&slot, value)?;
            return Ok(made(Value { is_stable: false, ..slot }));
        }
        if !is_written && (value.as_const().is_some() || value.is_stable) {
            return Ok(made(Value { is_stable: true, ..value }));
        }
        let value = match value.as_const() {
            Some(_) => {
                let row = self.new_rows(written.ty);
                self.to_rows(written.ty, row, &value)?;
                Value::new(written.ty, Place::Row(row))
            }
            None => self.copied(value)?,
        };
        Ok(made(Value { is_stable: !is_written, ..value }))
    }

    /// A pointer to a function takes one function, so that the call needs no overload resolution.
    fn check_is_function(&self, value: &Value) -> Result<()> {
        match &value.place {
            Place::Closure(closure) if closure.lambda.captures.is_empty() => Ok(()),
            Place::Functions(functions) => match &functions.candidates[..] {
                [(function, ..)] if function.template.is_empty() || functions.arguments.is_some() => Ok(()),
                _ => self.error(format!(
                    "`{}` is more than one function: such an argument is not part of the subset",
                    functions.name
                )),
            },
            _ => self.error("a pointer to a function is a parameter here: it takes the name of a function"),
        }
    }

    /// Moves a temporary to memory if a reference to it needs an address.
    fn in_memory_if_needed(&mut self, value: Value, parameter: &Parameter) -> Result<Value> {
        if !self.in_memory.contains(&parameter.id) || matches!(value.place, Place::Memory(_)) {
            return Ok(value);
        }
        let name = parameter.name.as_deref().unwrap_or("a parameter");
        let slot = self.local_slot(name, value.ty);
        self.assigned(&slot, value)?;
        Ok(Value { is_const: true, ..slot })
    }

    /// Initialises the members of an object, before the constructor's body.
    pub(super) fn initialise_members(&mut self, function: &Function) -> Result<()> {
        let frame = self.frame().clone();
        let (Some(this), Some(number)) = (frame.this, frame.of_struct) else { return Ok(()) };
        let fields = self.types.structs[number].fields.clone();
        let declaration = self.types.structs[number].declaration.clone();
        for (name, _, span) in &function.members {
            if !fields.iter().any(|field| field.name == *name) {
                return Err(Error::new(
                    *span,
                    format!("`{}` has no member `{name}`", self.struct_name(number)),
                ));
            }
        }
        for (i, field) in fields.iter().enumerate() {
            let given = function.members.iter().find(|(name, ..)| *name == field.name);
            let target = self.raw_field(&this, field.offset, field.row, field.ty);
            let rows = self.program.next_row;
            match given {
                Some((_, items, span)) if field.is_reference => {
                    self.span = *span;
                    let value = self.expression(&items[0])?;
                    let pointer = self.reference_value(value, field.ty, field.is_const)?;
                    self.assigned(&Value { ty: pointer.ty, ..target }, pointer)?;
                }
                Some((_, items, span)) => {
                    self.span = *span;
                    self.initialise(&target, items, false)?;
                }
                None => match &declaration.fields[i].init {
                    Init::None => {
                        let inner = self.struct_of(field.ty);
                        let has_constructors =
                            inner.is_some_and(|inner| !self.constructors(inner).candidates.is_empty());
                        if has_constructors || self.is_constructed(field.ty) {
                            self.zeroed(&target)?;
                        }
                    }
                    _ => self.default_member(&target, &declaration.fields[i].clone())?,
                },
            }
            self.program.next_row = rows;
        }
        Ok(())
    }
}

pub fn has_auto(ty: &TypeName) -> bool {
    match &ty.kind {
        TypeKind::Auto | TypeKind::Function => true,
        TypeKind::Pointer(inner) | TypeKind::Reference(inner) | TypeKind::Forward(inner) => has_auto(inner),
        _ => false,
    }
}
