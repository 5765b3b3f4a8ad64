//! Initialisation of structs and arrays: constructors, braced lists, conversions.

use super::inlining::Body;
use super::lookup::{Found, Functions, Qualifier};
use super::overloads::{Deduced, Given};
use super::{Lower, Memory, Place, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{StructId, Type, TypeId};
use std::rc::Rc;

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

    /// Whether an object without an initialiser gets values from a constructor or from its struct's declaration.
    pub fn is_constructed(&self, ty: TypeId) -> bool {
        match *self.types.get(ty) {
            Type::Array { of, .. } => self.is_constructed(of),
            Type::Struct(number) => {
                let of = &self.types.structs[number];
                let acts = |function: &Rc<Function>| {
                    let is_empty = match &function.body {
                        Some(Stmt { kind: StmtKind::Block(all), .. }) => all.is_empty(),
                        _ => false,
                    };
                    let is_default = function.parameters.iter().all(|parameter| parameter.default.is_some());
                    is_default && !function.is_defaulted && !(is_empty && function.members.is_empty())
                };
                of.declaration.constructors.iter().any(acts)
                    || of.declaration.fields.iter().any(|field| !matches!(field.init, Init::None))
                    || of.fields.iter().any(|field| !field.is_reference && self.is_constructed(field.ty))
            }
            _ => false,
        }
    }

    pub fn constructors(&self, number: StructId) -> Functions {
        let declaration = self.types.structs[number].declaration.clone();
        let scope = self.struct_scope(number);
        let own = declaration.constructors.iter().filter(|function| !function.is_defaulted);
        let candidates = own.map(|function| (function.clone(), scope.clone(), Some(number))).collect();
        Functions { name: declaration.name.clone(), candidates, arguments: None }
    }

    fn constructed(
        &mut self,
        place: &Value,
        number: StructId,
        items: &[Expr],
        is_braces: bool,
        span: Span,
    ) -> Result<()> {
        let functions = self.constructors(number);
        // A braced list for a constructor that takes a list: `std::vector<int> v{1, 2, 3}`.
        if is_braces && self.struct_name(number).starts_with("vector<") && !items.is_empty() {
            return self.vector_from_list(place, number, items);
        }
        let given = self.given(items)?;
        if let [Given::Value(only)] = &given[..]
            && only.ty == place.ty
            && self.try_choose(&functions, &given, span)?.is_none()
        {
            return self.assigned(place, only.clone());
        }
        self.construct(place, functions, given, span)
    }

    /// Calls `v.reserve(n)`, then `push_back` for each item.
    fn vector_from_list(&mut self, place: &Value, number: StructId, items: &[Expr]) -> Result<()> {
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

    pub fn construct(
        &mut self,
        place: &Value,
        functions: Functions,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<()> {
        let chosen = self.choose(&functions, &given, span)?;
        let rows = self.program.next_row;
        // Inside the constructor, the object is a variable.
        let this = Value { is_lvalue: true, is_const: false, is_stable: false, ..place.clone() };
        self.call_body(chosen, Some(this), given, span, Body::Constructor)?;
        self.program.next_row = rows;
        Ok(())
    }

    /// Whether a non-explicit constructor of the struct accepts the value.
    pub fn converts_by_constructor(&mut self, value: &Value, number: StructId) -> Result<bool> {
        let declaration = self.types.structs[number].declaration.clone();
        for function in &declaration.constructors {
            if function.is_defaulted || function.qualifiers.is_explicit || function.parameters.is_empty() {
                continue;
            }
            if function.parameters[1..].iter().any(|parameter| parameter.default.is_none()) {
                continue;
            }
            if !function.template.is_empty() {
                continue;
            }
            let ty = self.in_struct(number, |lower| lower.type_of_name(&function.parameters[0].ty))?;
            // One conversion by a constructor is the most, so none may come before it.
            let is_struct = |ty| matches!(self.types.get(ty), Type::Struct(_));
            let may_rank = !is_struct(value.ty) && !is_struct(ty);
            if value.ty == ty || may_rank && self.rank(value, ty)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a copy does more than copy the fields.
    pub fn has_copy_constructor(&self, ty: TypeId) -> bool {
        let Type::Struct(number) = *self.types.get(ty) else { return false };
        let declaration = &self.types.structs[number].declaration;
        declaration.constructors.iter().any(|function| match &function.parameters[..] {
            [only] if !function.is_defaulted => match &only.ty.kind {
                TypeKind::Reference(inner) => match &inner.kind {
                    TypeKind::Path(path) => path.segments[path.segments.len() - 1].name == declaration.name,
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        })
    }

    pub fn converted_by_constructor(&mut self, value: Value, to: TypeId) -> Result<Value> {
        let Type::Struct(number) = *self.types.get(to) else { return self.no_conversion(value.ty, to) };
        let functions = self.constructors(number);
        let given = vec![Given::Value(value.clone())];
        let span = self.span;
        if self.try_choose(&functions, &given, span)?.is_none() {
            return self.no_conversion(value.ty, to);
        }
        let place = self.temporary(to);
        self.construct(&place, functions, given, span)?;
        Ok(Value { is_lvalue: false, ..place })
    }

    /// Finds the struct's conversion operator to a type, or to a type that converts to it.
    pub fn conversion_operator(&mut self, number: StructId, to: TypeId) -> Result<Option<Rc<Function>>> {
        let declaration = self.types.structs[number].declaration.clone();
        let mut best = None;
        for function in &declaration.conversions {
            let ty = self.in_struct(number, |lower| lower.type_of_name(&function.result))?;
            if ty == to {
                return Ok(Some(function.clone()));
            }
            if !function.qualifiers.is_explicit
                && self.types.arithmetic(ty).is_some()
                && self.types.arithmetic(to).is_some()
            {
                best = best.or(Some(function.clone()));
            }
        }
        Ok(best)
    }

    fn called_conversion(&mut self, value: Value, number: StructId, function: Rc<Function>) -> Result<Value> {
        let scope = self.struct_scope(number);
        let candidates = vec![(function, scope, Some(number))];
        let functions = Functions { name: "operator".into(), candidates, arguments: None };
        let span = self.span;
        self.method_call(Value { is_const: true, ..value }, functions, Vec::new(), span)
    }

    pub fn converted_by_operator(&mut self, value: Value, to: TypeId) -> Result<Value> {
        let Type::Struct(number) = *self.types.get(value.ty) else { return self.no_conversion(value.ty, to) };
        match self.conversion_operator(number, to)? {
            Some(function) => {
                let value = self.called_conversion(value, number, function)?;
                let value = self.loaded(value)?;
                self.converted_scalar(value, to, false)
            }
            None => self.no_conversion(value.ty, to),
        }
    }

    /// Converts a struct to a number by its conversion operator.
    pub fn converted_to_plain(&mut self, value: Value) -> Result<Value> {
        let Type::Struct(number) = *self.types.get(value.ty) else { return self.loaded(value) };
        let declaration = self.types.structs[number].declaration.clone();
        let usable: Vec<_> = declaration
            .conversions
            .iter()
            .filter(|function| !function.qualifiers.is_explicit)
            .cloned()
            .collect();
        match &usable[..] {
            [only] => {
                let value = self.called_conversion(value, number, only.clone())?;
                self.loaded(value)
            }
            _ => {
                let error = Error::new(self.span, format!("`{}` is not a number", self.types.name(value.ty)));
                Err(self.with_part(error, value.ty))
            }
        }
    }

    /// Deduces the template arguments of `Name{…}` from the items, and returns the struct.
    pub fn deduced_struct(&mut self, path: &Path, items: &[Expr], span: Span) -> Result<Option<TypeId>> {
        let last = &path.segments[path.segments.len() - 1];
        if last.arguments.is_some() {
            return Ok(None);
        }
        let (found, namespace) = match self.qualifier(path)? {
            None => (self.find(&last.name), None),
            Some(Qualifier::Namespace(namespace)) => {
                (self.find_in(namespace, &last.name, 0), Some(namespace))
            }
            Some(Qualifier::Type(_)) => return Ok(None),
        };
        let Some(Found::Structs(structs)) = found else { return Ok(None) };
        if structs[0].template.is_empty() {
            return Ok(None);
        }
        let here = self.frames.last().and_then(|frame| frame.of_struct);
        if here.is_some_and(|here| self.types.structs[here].declaration.name == last.name) {
            return Ok(None);
        }
        let given = self.dry(|lower| lower.given(items))?;
        let tree = self.tree;
        let namespace = namespace.unwrap_or(structs[0].namespace);
        for guide in tree.namespaces[namespace].guides.get(&last.name).into_iter().flatten() {
            let functions = Functions {
                name: last.name.clone(),
                candidates: vec![(guide.function.clone(), Scope::new(), None)],
                arguments: None,
            };
            if let Some(chosen) = self.try_choose(&functions, &given, span)? {
                let ty = self.in_frame(chosen.scope, guide.function.namespace, None, |lower| {
                    lower.type_of_name(&guide.result)
                })?;
                return Ok(Some(ty));
            }
        }
        // Deduced from the fields of an aggregate, or from the parameters of a constructor.
        let declaration = &structs[0];
        let mut deduced = Deduced::default();
        let parameters: Vec<&TypeName> =
            match declaration.constructors.iter().find(|function| function.parameters.len() == given.len()) {
                Some(function) => function.parameters.iter().map(|parameter| &parameter.ty).collect(),
                None => declaration.fields.iter().map(|field| &field.ty).collect(),
            };
        for (ty, given) in parameters.iter().zip(&given) {
            if let Given::Value(value) = given {
                let from = match *self.types.get(value.ty) {
                    Type::Array { of, .. } => self.types.pointer(of, value.is_const),
                    _ => value.ty,
                };
                self.unify_type(&declaration.template, ty, from, value.is_const, &mut deduced)?;
            }
        }
        let complete =
            self.completed(&declaration.template, Vec::new(), &deduced.scope, declaration.namespace, span);
        match complete {
            Ok(complete) => Ok(Some(self.struct_instance(&structs, complete, span)?)),
            Err(_) if self.again => self.retry(),
            Err(_) => {
                Err(Error::new(span, format!("the template arguments of `{}` cannot be deduced", last.name)))
            }
        }
    }
}
