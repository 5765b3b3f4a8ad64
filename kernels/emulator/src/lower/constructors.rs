//! Constructors, and the conversions that they and conversion operators make.

use super::inlining::Body;
use super::lookup::{Found, Functions, Qualifier};
use super::overloads::{Deduced, Given};
use super::{Lower, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{StructId, Type, TypeId};
use std::rc::Rc;

impl Lower<'_> {
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

    pub(super) fn constructed(
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

    pub(super) fn called_conversion(
        &mut self,
        value: Value,
        number: StructId,
        function: Rc<Function>,
    ) -> Result<Value> {
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
