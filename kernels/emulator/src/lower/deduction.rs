//! Template argument deduction: the arguments that make the parameters of a template fit values or types.

use super::lookup::{Found, Qualifier};
use super::overloads::{Deduced, Given};
use super::type_names::argument_binding;
use super::{Binding, Lower, Value};
use crate::source::Result;
use crate::syntax::ast::*;
use crate::types::{self, Argument, Type, TypeId};
use std::rc::Rc;

impl<'t> Lower<'t> {
    /// Deduces template arguments from the arguments of a call.
    pub(super) fn deduce(
        &mut self,
        function: &Function,
        given: &[Given<'_>],
        deduced: &mut Deduced,
        fixed: usize,
    ) -> Result<bool> {
        for (i, given) in given.iter().enumerate() {
            let Given::Value(value) = given else { continue };
            if i < fixed {
                let ty = &function.parameters[i].ty;
                if !self.unify(&function.template, ty, value, deduced)? {
                    return Ok(false);
                }
                continue;
            }
            // Each argument of a parameter pack deduces one element of each template pack.
            let parameter = &function.parameters[fixed];
            let packs: Vec<&TemplateParameter> =
                function.template.iter().filter(|known| known.is_pack).collect();
            let mut one = deduced.clone();
            for pack in &packs {
                one.scope.remove(&pack.name);
            }
            let single: Vec<TemplateParameter> = function
                .template
                .iter()
                .map(|known| TemplateParameter { is_pack: false, ..known.clone() })
                .collect();
            if !self.unify(&single, &parameter.ty, value, &mut one)? {
                return Ok(false);
            }
            for pack in packs {
                let Some(found) = one.scope.remove(&pack.name) else { continue };
                let entry =
                    deduced.scope.entry(pack.name.clone()).or_insert_with(|| Binding::Pack(Vec::new()));
                if let Binding::Pack(all) = entry
                    && all.len() == i - fixed
                {
                    all.push(found);
                }
            }
        }
        Ok(true)
    }

    pub(super) fn unify(
        &mut self,
        template: &[TemplateParameter],
        ty: &TypeName,
        value: &Value,
        deduced: &mut Deduced,
    ) -> Result<bool> {
        match &ty.kind {
            TypeKind::Reference(inner) | TypeKind::Forward(inner) => {
                self.unify_type(template, inner, value.ty, value.is_const, deduced)
            }
            _ => {
                // By value, an array decays to a pointer.
                let (from, is_const) = match *self.types.get(value.ty) {
                    Type::Array { of, .. } => (self.types.pointer(of, value.is_const), false),
                    _ => (value.ty, false),
                };
                self.unify_type(template, ty, from, is_const, deduced)
            }
        }
    }

    /// Whether a written type can match this type; binds template parameters on the way. A dependent type that cannot
    /// be inverted matches for now.
    pub fn unify_type(
        &mut self,
        template: &[TemplateParameter],
        pattern: &TypeName,
        ty: TypeId,
        _is_const: bool,
        deduced: &mut Deduced,
    ) -> Result<bool> {
        match &pattern.kind {
            TypeKind::Path(path) => {
                let segment = &path.segments[path.segments.len() - 1];
                if path.segments.len() == 1
                    && segment.arguments.is_none()
                    && let Some(parameter) = template.iter().find(|parameter| parameter.name == segment.name)
                {
                    if !matches!(parameter.kind, ParameterKind::Type(_)) {
                        return Ok(true);
                    }
                    return Ok(match deduced.scope.get(&segment.name) {
                        Some(Binding::Type(known)) => {
                            *known == ty || deduced.explicit.contains(&segment.name)
                        }
                        _ => {
                            deduced.scope.insert(segment.name.clone(), Binding::Type(ty));
                            true
                        }
                    });
                }
                let Some(pattern_arguments) = &segment.arguments else { return Ok(true) };
                let mentioned = mentions(template, pattern_arguments);
                if !mentioned {
                    return Ok(true);
                }
                let structs = self.structs_of(path)?;
                let Some(structs) = structs else { return Ok(true) };
                let Type::Struct(number) = *self.types.get(ty) else { return Ok(false) };
                let is_instance =
                    structs.iter().any(|known| known.id == self.types.structs[number].declaration.id);
                if !is_instance {
                    return Ok(false);
                }
                let arguments = self.original_arguments(ty);
                self.matches_pattern(template, pattern_arguments, &arguments, deduced)
            }
            TypeKind::Pointer(inner) => match *self.types.get(ty) {
                Type::Pointer { to, is_const } => {
                    if is_const && !inner.is_const && !matches!(inner.kind, TypeKind::Path(_)) {
                        return Ok(false);
                    }
                    self.unify_type(template, inner, to, is_const, deduced)
                }
                Type::Null => Ok(true),
                _ => Ok(false),
            },
            TypeKind::Reference(inner) | TypeKind::Forward(inner) => {
                self.unify_type(template, inner, ty, false, deduced)
            }
            TypeKind::Array(inner, size) => match *self.types.get(ty) {
                Type::Array { of, count } => {
                    if let Some(Expr { kind: ExprKind::Path(path), .. }) = size.as_deref() {
                        let name = &path.segments[0].name;
                        if template.iter().any(|parameter| parameter.name == *name) {
                            let value = Value::constant(types::U64, count);
                            deduced.scope.insert(name.clone(), Binding::Value(value));
                        }
                    }
                    self.unify_type(template, inner, of, false, deduced)
                }
                _ => Ok(false),
            },
            _ => Ok(true),
        }
    }

    pub(super) fn structs_of(&mut self, path: &Path) -> Result<Option<Vec<Rc<Struct>>>> {
        let last = &path.segments[path.segments.len() - 1].name;
        let found = match self.qualifier(path)? {
            None => self.find(last),
            Some(Qualifier::Namespace(namespace)) => self.find_in(namespace, last, 0),
            Some(Qualifier::Type(_)) => None,
        };
        Ok(match found {
            Some(Found::Structs(structs)) => Some(structs),
            _ => None,
        })
    }

    /// The template arguments of a struct instance.
    pub(super) fn original_arguments(&self, ty: TypeId) -> Vec<Argument> {
        let found = self.instances.iter().find(|(_, known)| **known == ty);
        found.map(|((_, arguments), _)| arguments.clone()).unwrap_or_default()
    }

    /// Matches template arguments against those of an instance.
    pub fn matches_pattern(
        &mut self,
        template: &[TemplateParameter],
        pattern: &[TemplateArgument],
        arguments: &[Argument],
        deduced: &mut Deduced,
    ) -> Result<bool> {
        // The packs of a primary template are one argument here.
        let mut flat: Vec<Argument> = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Pack(all) => flat.extend(all.iter().cloned()),
                other => flat.push(other.clone()),
            }
        }
        for (i, pattern) in pattern.iter().enumerate() {
            if let TemplateArgument::Type(TypeName { kind: TypeKind::Pack(inner), .. }) = pattern {
                if let TypeKind::Path(path) = &inner.kind {
                    let rest = flat.iter().skip(i).map(argument_binding).collect();
                    deduced.scope.insert(path.segments[0].name.clone(), Binding::Pack(rest));
                }
                return Ok(true);
            }
            let Some(argument) = flat.get(i) else { return Ok(false) };
            match (pattern, argument) {
                (TemplateArgument::Type(pattern), Argument::Type(ty)) => {
                    let mentioned = mentions_type(template, pattern);
                    let fits = match mentioned {
                        true => self.unify_type(template, pattern, *ty, false, deduced)?,
                        false => self.type_of_name(pattern)? == *ty,
                    };
                    if !fits {
                        return Ok(false);
                    }
                }
                (TemplateArgument::Value(pattern), Argument::Value(ty, bits)) => {
                    if let ExprKind::Path(path) = &pattern.kind {
                        let name = &path.segments[0].name;
                        if template.iter().any(|parameter| parameter.name == *name) {
                            let value = Binding::Value(Value::constant(*ty, *bits));
                            if let Some(Binding::Value(known)) = deduced.scope.get(name)
                                && known.as_const() != Some(*bits)
                            {
                                return Ok(false);
                            }
                            deduced.scope.insert(name.clone(), value);
                            continue;
                        }
                    }
                    let value = self.constant_expression(pattern, "a template argument")?;
                    let value = self.converted_scalar(value, *ty, false)?;
                    if value.as_const() != Some(*bits) {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
        Ok(pattern.len() == flat.len())
    }
}

pub(super) fn base_kind(ty: &TypeName) -> &TypeKind {
    match &ty.kind {
        TypeKind::Reference(inner) | TypeKind::Forward(inner) => base_kind(inner),
        kind => kind,
    }
}

pub(super) fn mentions(template: &[TemplateParameter], arguments: &[TemplateArgument]) -> bool {
    arguments.iter().any(|argument| match argument {
        TemplateArgument::Type(ty) => mentions_type(template, ty),
        TemplateArgument::Value(value) => match &value.kind {
            ExprKind::Path(path) => template.iter().any(|parameter| parameter.name == path.segments[0].name),
            _ => false,
        },
    })
}

pub(super) fn mentions_type(template: &[TemplateParameter], ty: &TypeName) -> bool {
    match &ty.kind {
        TypeKind::Path(path) => path.segments.iter().any(|segment| {
            template.iter().any(|parameter| parameter.name == segment.name)
                || segment.arguments.as_ref().is_some_and(|arguments| mentions(template, arguments))
        }),
        TypeKind::Pointer(inner)
        | TypeKind::Reference(inner)
        | TypeKind::Forward(inner)
        | TypeKind::Array(inner, _)
        | TypeKind::Pack(inner) => mentions_type(template, inner),
        _ => false,
    }
}
