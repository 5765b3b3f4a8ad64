//! Struct members: fields, static members, methods.

use super::lookup::Functions;
use super::overloads::Given;
use super::{Lower, Memory, Place, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{Argument, Field, StructId, Type, TypeId};

impl Lower<'_> {
    pub fn member_expression(&mut self, object: &Expr, arrow: bool, segment: &Segment) -> Result<Value> {
        if let (ExprKind::Path(path), false) = (&object.kind, arrow)
            && path.segments.len() == 1
            && self.find(&path.segments[0].name).is_none()
            && let Some(value) = self.dimension(&path.segments[0].name, &segment.name)?
        {
            return Ok(value);
        }
        let span = self.span;
        let object = self.object(object, arrow)?;
        self.span = span;
        self.member(object, segment)
    }

    /// Lowers the operand before `.` or `->`.
    pub fn object(&mut self, object: &Expr, arrow: bool) -> Result<Value> {
        if arrow
            && matches!(object.kind, ExprKind::This)
            && let Some(this) = self.frames.last().and_then(|frame| frame.this.clone())
        {
            return Ok(this);
        }
        let value = self.expression(object)?;
        if !arrow {
            return Ok(value);
        }
        // A struct may define `operator->`.
        let value = match self.struct_of(value.ty).map(|number| self.methods(number, "operator->")) {
            Some(candidates) if !candidates.is_empty() => {
                let functions = Functions { name: "operator->".into(), candidates, arguments: None };
                let span = self.span;
                self.method_call(value, functions, Vec::new(), span)?
            }
            _ => value,
        };
        let value = self.loaded(value)?;
        let Some((to, is_const)) = self.types.pointee(value.ty) else {
            return self
                .error(format!("`->` takes a pointer, and this has type `{}`", self.types.name(value.ty)));
        };
        let memory = self.memory_at(value)?;
        Ok(Value { is_const, ..Value::lvalue(to, Place::Memory(memory)) })
    }

    pub fn member(&mut self, object: Value, segment: &Segment) -> Result<Value> {
        let name = &segment.name;
        let Type::Struct(number) = *self.types.get(object.ty) else {
            let error =
                Error::new(self.span, format!("`{}` has no member `{name}`", self.types.name(object.ty)));
            let of_struct = self.types.pointee(object.ty).is_some_and(|(to, _)| self.struct_of(to).is_some());
            return Err(match &**name {
                "shape" | "size" | "length" => error.help(crate::source::foreign::NO_LENGTH),
                _ if of_struct => error.help(format!("a pointer takes `->`: `->{name}`")),
                _ => error,
            });
        };
        self.check_access(number, name)?;
        let field = self.types.structs[number].fields.iter().find(|field| field.name == *name).cloned();
        if let Some(field) = field {
            return self.field(&object, &field);
        }
        let has_static = {
            let declaration = &self.types.structs[number].declaration;
            declaration.statics.iter().chain(&declaration.enumerators).any(|variable| variable.name == *name)
        };
        if has_static {
            return self.static_member(object.ty, segment);
        }
        self.error(format!("`{}` has no member `{name}`", self.types.name(object.ty)))
    }

    /// Private members are accessible to the functions of their struct, and of structs nested in it.
    pub fn check_access(&self, of: StructId, name: &Name) -> Result<()> {
        let declaration = &self.types.structs[of].declaration;
        if !declaration.private.contains(name) {
            return Ok(());
        }
        let here = self.frames.last().and_then(|frame| frame.of_struct);
        let here = here.map(|here| &self.types.structs[here].declaration);
        if here.is_some_and(|here| is_part(declaration, here.id) || here.name == declaration.name) {
            return Ok(());
        }
        self.error(format!("`{name}` is a private member of `{}`", self.types.structs[of].name))
    }

    pub fn field(&mut self, object: &Value, field: &Field) -> Result<Value> {
        let part = |place| Value {
            ty: field.ty,
            place,
            is_const: object.is_const || field.is_const,
            ..object.clone()
        };
        let whole = match &object.place {
            Place::Row(row) => part(Place::Row(row + field.row)),
            Place::Memory(memory) => {
                let offset = memory.offset + field.offset as i64;
                part(Place::Memory(Memory { offset, ..*memory }))
            }
            _ => return self.error("this value has no fields"),
        };
        if !field.is_reference {
            return Ok(whole);
        }
        let pointer_type = self.types.pointer(field.ty, field.is_const);
        let pointer = self.loaded(Value { ty: pointer_type, ..whole })?;
        self.behind(pointer, field.ty, field.is_const)
    }

    /// A member named without an object, in a method of its struct.
    pub fn own_member(&mut self, name: &Name, segment: &Segment) -> Result<Value> {
        let frame = self.frames.last();
        let (this, of) = frame.map_or((None, None), |frame| (frame.this.clone(), frame.of_struct));
        let Some(of) = of else { return self.unknown(name) };
        let is_field = self.types.structs[of].fields.iter().any(|field| field.name == *name);
        if is_field {
            let Some(this) = this else {
                return self.error(format!("`{name}` is a member, and there is no object here"));
            };
            return self.member(this, segment);
        }
        let declaration = self.types.structs[of].declaration.clone();
        if declaration.functions.iter().any(|function| function.name == *name) {
            let candidates = self.methods(of, name);
            let functions =
                Functions { name: name.clone(), candidates, arguments: segment.arguments.clone() };
            return Ok(self.functions_value(functions));
        }
        let ty = self.types.id(Type::Struct(of));
        self.static_member(ty, segment)
    }

    /// Such as `Range<T>::low` or `Sum::combine`.
    pub fn static_member(&mut self, ty: TypeId, segment: &Segment) -> Result<Value> {
        let name = &segment.name;
        let Type::Struct(number) = *self.types.get(ty) else {
            return self.error(format!("`{}` has no member `{name}`", self.types.name(ty)));
        };
        self.check_access(number, name)?;
        let declaration = self.types.structs[number].declaration.clone();
        let statics = declaration.statics.iter().chain(&declaration.enumerators);
        if let Some(variable) = statics.clone().find(|variable| variable.name == *name) {
            let ty = self.types.id(Type::Struct(number));
            let variable = variable.clone();
            return self.in_struct(number, |lower| lower.global_value(&variable, vec![Argument::Type(ty)]));
        }
        let candidates = self.methods(number, name);
        if candidates.is_empty() {
            return self.error(format!("`{}` has no member `{name}`", self.types.name(ty)));
        }
        let functions = Functions { name: name.clone(), candidates, arguments: segment.arguments.clone() };
        Ok(self.functions_value(functions))
    }

    /// Calls a method on an object.
    pub fn method_call(
        &mut self,
        object: Value,
        functions: Functions,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<Value> {
        // A const object allows const and static methods only.
        let mut functions = functions;
        if object.is_const {
            let keeps = |function: &Function| function.qualifiers.is_const || function.qualifiers.is_static;
            if functions.candidates.iter().any(|candidate| keeps(&candidate.0)) {
                functions.candidates.retain(|candidate| keeps(&candidate.0));
            } else {
                let name = &functions.name;
                return self.error(format!("`{name}` is not a `const` function, and the object is `const`"));
            }
        } else {
            // Between two methods that differ only in `const`, the non-const one is chosen.
            let all = functions.candidates.clone();
            functions.candidates.retain(|candidate| {
                !candidate.0.qualifiers.is_const
                    || !all.iter().any(|other| {
                        !other.0.qualifiers.is_const
                            && other.0.parameters.len() == candidate.0.parameters.len()
                            && !std::rc::Rc::ptr_eq(&other.0, &candidate.0)
                    })
            });
        }
        let chosen = self.choose(&functions, &given, span)?;
        let object = match object.place {
            Place::Memory(memory) => Value { place: Place::Memory(self.frozen(&memory)?), ..object },
            _ => object,
        };
        let object = if chosen.function.qualifiers.is_const {
            Value { is_const: true, ..object }
        } else if object.is_lvalue {
            self.writable(object)?
        } else {
            self.changeable(object)?
        };
        self.call_chosen(chosen, Some(object), given, span)
    }

    /// A temporary object that a method changes.
    fn changeable(&mut self, object: Value) -> Result<Value> {
        match object.place {
            Place::Row(_) | Place::Const(_) if !object.is_const => {
                let place = self.local_slot("a temporary value", object.ty);
                self.assigned(&place, object)?;
                Ok(place)
            }
            Place::Memory(_) => Ok(Value { is_lvalue: true, ..object }),
            _ => Ok(object),
        }
    }

    pub fn struct_name(&self, of: StructId) -> &str {
        &self.types.structs[of].name
    }
}

fn is_part(of: &Struct, id: DeclId) -> bool {
    of.id == id || of.structs.iter().any(|inner| is_part(inner, id))
}
