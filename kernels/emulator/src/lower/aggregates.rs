//! Initialisation of structs and arrays from lists and other values.

use super::lookup::Functions;
use super::{Lower, Memory, Place, Value};
use crate::source::Result;
use crate::syntax::ast::*;
use crate::types::{StructId, Type, TypeId};

impl Lower<'_> {
    /// Returns a place for a temporary.
    pub fn temporary(&mut self, ty: TypeId) -> Value {
        match self.types.rows(ty) {
            Some(rows) => Value { is_stable: true, ..Value::lvalue(ty, Place::Row(self.program.rows(rows))) },
            None => self.local_slot("a temporary value", ty),
        }
    }

    /// `T{a, b}` or `T(a, b)`
    pub fn made_from_list(&mut self, ty: TypeId, items: &[Expr], is_braces: bool) -> Result<Value> {
        if self.types.of_struct(ty).is_none() && !matches!(self.types.get(ty), Type::Array { .. }) {
            return match items {
                [] => Ok(Value::constant(ty, 0)),
                [only] => {
                    let value = self.expression(only)?;
                    if self.types.of_struct(value.ty).is_some() {
                        return self.coerced(value, ty);
                    }
                    let value = self.loaded(value)?;
                    self.converted_scalar(value, ty, !is_braces)
                }
                _ => self.error(format!("a `{}` is made of one value", self.types.name(ty))),
            };
        }
        self.check_is_not_destroyed(ty)?;
        let place = self.temporary(ty);
        let rows = self.program.next_row;
        self.initialise(&place, items, is_braces)?;
        self.program.next_row = rows;
        Ok(Value { is_lvalue: false, ..place })
    }

    /// Initialises a struct or an array.
    pub fn initialise(&mut self, place: &Value, items: &[Expr], is_braces: bool) -> Result<()> {
        let span = self.span;
        match *self.types.get(place.ty) {
            Type::Struct(number) => {
                let declaration = self.types.structs[number].declaration.clone();
                let has_constructors = declaration.constructors.iter().any(|function| !function.is_defaulted);
                if has_constructors {
                    if items.is_empty()
                        && declaration
                            .constructors
                            .iter()
                            .any(|function| function.is_defaulted && function.parameters.is_empty())
                    {
                        return self.zeroed(place);
                    }
                    return self.constructed(place, number, items, is_braces, span);
                }
                // A copy.
                if let [only] = items
                    && !matches!(only.kind, ExprKind::Braces(_) | ExprKind::Expand(_))
                {
                    let found = self.dry(|lower| lower.expression(only))?;
                    if found.ty == place.ty {
                        let value = self.expression(only)?;
                        return self.assigned(place, value);
                    }
                    let first_is_struct = self.types.structs[number].fields.first().map(|field| field.ty);
                    if self.types.of_struct(found.ty).is_some()
                        && first_is_struct != Some(found.ty)
                        && self.rank(&found, place.ty)?.is_some()
                    {
                        let value = self.expression(only)?;
                        return self.assigned(place, value);
                    }
                }
                self.aggregate(place, number, items)
            }
            Type::Array { of, count } => {
                let items = self.with_inner_braces(items, of)?;
                if items.len() as u64 > count {
                    return self.error(format!("{} values for an array of {count}", items.len()));
                }
                let Place::Memory(memory) = place.place else {
                    return self.error("this array has no memory");
                };
                let size = self.types.layout(of).0 as i64;
                if count > 4096 {
                    return self
                        .error("an array of more than 4,096 elements cannot be initialised by a list here");
                }
                for i in 0..count {
                    let offset = memory.offset + i as i64 * size;
                    let element = Value::lvalue(of, Place::Memory(Memory { offset, ..memory }));
                    let rows = self.program.next_row;
                    match items.get(i as usize) {
                        Some(item) => self.initialise_from(&element, item)?,
                        None => self.zeroed(&element)?,
                    }
                    self.program.next_row = rows;
                }
                Ok(())
            }
            _ => match items {
                [] => self.zeroed(place),
                [only] => self.initialise_from(place, only),
                _ => self.error("too many values"),
            },
        }
    }

    fn aggregate(&mut self, place: &Value, number: StructId, items: &[Expr]) -> Result<()> {
        let fields = self.types.structs[number].fields.clone();
        let mut expanded: Vec<(Expr, Option<usize>)> = Vec::new();
        for item in items {
            match &item.kind {
                ExprKind::Expand(inner) => {
                    let count = self.pack_length_in_expr(inner)?;
                    expanded.extend((0..count).map(|i| ((**inner).clone(), Some(i))));
                }
                _ => expanded.push((item.clone(), None)),
            }
        }
        // `{x, y, z, w}` for a struct that holds an array: inner braces may be omitted.
        let mut grouped: Vec<(Expr, Option<usize>)> = Vec::new();
        let mut rest = expanded.into_iter().peekable();
        for field in &fields {
            let Some((item, element)) = rest.next() else { break };
            let count = match self.types.get(field.ty) {
                Type::Array { of, count } if self.prim(*of).is_some() && !field.is_reference => {
                    *count as usize
                }
                _ => 1,
            };
            let is_whole = matches!(item.kind, ExprKind::Braces(_) | ExprKind::Str(_)) || element.is_some();
            if count == 1 && !matches!(self.types.get(field.ty), Type::Array { .. }) || is_whole {
                grouped.push((item, element));
                continue;
            }
            let span = item.span;
            let mut items = vec![item];
            while items.len() < count && rest.peek().is_some() {
                items.extend(rest.next().map(|(item, _)| item));
            }
            grouped.push((Expr { kind: ExprKind::Braces(items), span }, None));
        }
        let left = rest.count();
        let expanded = grouped;
        if left > 0 {
            let expanded_count = expanded.len() + left;
            let (name, count) = (self.struct_name(number).to_owned(), fields.len());
            return self.error(format!("{expanded_count} values for `{name}`, which has {count} fields"));
        }
        let declaration = self.types.structs[number].declaration.clone();
        for (i, field) in fields.iter().enumerate() {
            let rows = self.program.next_row;
            let target = self.raw_field(place, field.offset, field.row, field.ty);
            match expanded.get(i) {
                Some((item, _)) if field.is_reference => {
                    let value = self.expression(item)?;
                    let pointer = self.reference_value(value, field.ty, field.is_const)?;
                    let target = Value { ty: pointer.ty, ..target };
                    self.assigned(&target, pointer)?;
                }
                Some((item, None)) => self.initialise_from(&target, item)?,
                Some((item, Some(at))) => {
                    let value = self.with_pack_element(item, *at, |lower| lower.expression(item))?;
                    self.assigned(&target, value)?;
                }
                None if field.is_reference => {
                    return self.error(format!("the reference `{}` is not initialised", field.name));
                }
                None => {
                    let variable = declaration.fields[i].clone();
                    self.in_struct(number, |lower| lower.default_member(&target, &variable))?;
                }
            }
            self.program.next_row = rows;
        }
        Ok(())
    }

    /// Initialises a field without an initialiser: by its declaration, or with zeros.
    pub fn default_member(&mut self, target: &Value, variable: &Variable) -> Result<()> {
        match &variable.init {
            Init::None => self.zeroed(target),
            Init::Value(value) => self.initialise_from(target, value),
            Init::Braces(items) => self.initialise(target, items, true),
            Init::Parentheses(items) => self.initialise(target, items, false),
        }
    }

    /// A field as stored: a reference is its pointer.
    pub fn raw_field(&self, object: &Value, offset: u64, row: u32, ty: TypeId) -> Value {
        let place = match &object.place {
            Place::Row(base) => Place::Row(base + row),
            Place::Memory(memory) => {
                Place::Memory(Memory { offset: memory.offset + offset as i64, ..*memory })
            }
            other => other.clone(),
        };
        Value { ty, place, is_const: false, ..object.clone() }
    }

    pub fn initialise_from(&mut self, place: &Value, item: &Expr) -> Result<()> {
        if let ExprKind::Braces(items) = &item.kind {
            return self.initialise(place, items, true);
        }
        if let (ExprKind::Str(text), Type::Array { of, count }) =
            (&item.kind, self.types.get(place.ty).clone())
        {
            return self.string_array(place, text, of, count);
        }
        let value = self.expression(item)?;
        self.assigned(place, value)
    }

    fn string_array(&mut self, place: &Value, text: &str, of: TypeId, count: u64) -> Result<()> {
        let Place::Memory(memory) = place.place else { return self.error("this array has no memory") };
        if text.len() as u64 + 1 > count {
            return self.error(format!("a string of {} characters for an array of {count}", text.len() + 1));
        }
        for i in 0..count {
            let byte = text.as_bytes().get(i as usize).copied().unwrap_or(0);
            let element = Memory { offset: memory.offset + i as i64, ..memory };
            let value = Value::constant(of, u64::from(byte as i8 as i32 as u32));
            self.to_memory(of, &element, &value)?;
        }
        Ok(())
    }

    pub fn zeroed(&mut self, place: &Value) -> Result<()> {
        let leaves = self.types.leaves(place.ty);
        if leaves.len() > 4096 {
            return self.error("an array of more than 4,096 elements cannot be initialised by a list here");
        }
        if let Type::Struct(number) = *self.types.get(place.ty) {
            let declaration = self.types.structs[number].declaration.clone();
            if declaration.constructors.iter().any(|function| !function.is_defaulted) {
                let span = self.span;
                let has_default = declaration.constructors.iter().any(|function| {
                    !function.is_defaulted
                        && function.parameters.iter().all(|parameter| parameter.default.is_some())
                });
                if has_default {
                    return self.constructed(place, number, &[], true, span);
                }
            } else if self.is_constructed(place.ty) {
                return self.initialise(place, &[], true);
            }
        }
        if let Type::Array { of, .. } = *self.types.get(place.ty)
            && self.is_constructed(of)
        {
            return self.initialise(place, &[], true);
        }
        for leaf in leaves {
            let ty = crate::types::of_prim(leaf.prim);
            let part = self.raw_field(place, leaf.offset, leaf.row, ty);
            self.assigned(&part, Value::constant(ty, 0))?;
        }
        Ok(())
    }

    /// Calls `v.reserve(n)`, then `push_back` for each item.
    pub(super) fn vector_from_list(&mut self, place: &Value, number: StructId, items: &[Expr]) -> Result<()> {
        let span = self.span;
        let functions = self.constructors(number);
        self.construct(place, functions, Vec::new(), span)?;
        for item in items {
            let given = self.given(std::slice::from_ref(item))?;
            let candidates = self.methods(number, "push_back");
            let functions = Functions { name: "push_back".into(), candidates, arguments: None };
            self.method_call(place.clone(), functions, given, span)?;
        }
        Ok(())
    }
}
