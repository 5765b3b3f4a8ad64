//! Resolves written types in a scope.

use super::lookup::{Found, Qualifier};
use super::{Binding, Lower, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Argument, Type, TypeId, U64};

/// A type that may be a reference.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub ty: TypeId,
    pub is_const: bool,
    pub is_reference: bool,
    /// `T &&`
    pub is_forward: bool,
}

impl Lower<'_> {
    /// Resolves a type where references are irrelevant.
    pub fn type_of_name(&mut self, name: &TypeName) -> Result<TypeId> {
        Ok(self.written(name)?.ty)
    }

    pub fn written(&mut self, name: &TypeName) -> Result<Written> {
        let outer = std::mem::replace(&mut self.span, name.span);
        let result = self.deeper(|lower| lower.written_inner(name));
        if result.is_ok() {
            self.span = outer;
        }
        result
    }

    fn written_inner(&mut self, name: &TypeName) -> Result<Written> {
        self.worked()?;
        let may_be_destroyed = std::mem::take(&mut self.may_be_destroyed);
        let plain = |ty| Written { ty, is_const: name.is_const, is_reference: false, is_forward: false };
        match &name.kind {
            TypeKind::Prim(prim) => Ok(plain(types::of_prim(*prim))),
            TypeKind::Auto => self.error("the type of `auto` cannot be deduced here"),
            TypeKind::Nothing => Ok(plain(types::VOID)),
            TypeKind::Path(path) => {
                // A member type or an alias may be `const` too.
                let ty = self.path_type(path)?;
                if !may_be_destroyed {
                    self.check_is_not_destroyed(ty)?;
                }
                Ok(plain(ty))
            }
            TypeKind::Decltype(value) => {
                let found = self.dry(|lower| lower.expression(value))?;
                if !may_be_destroyed {
                    self.check_is_not_destroyed(found.ty)?;
                }
                let is_variable = matches!(value.kind, ExprKind::Path(_) | ExprKind::Member(..));
                let is_reference = found.is_lvalue && !is_variable;
                Ok(Written { is_reference, ..plain(found.ty) })
            }
            TypeKind::Pointer(to) => {
                self.may_be_destroyed = true;
                let to = self.written(to)?;
                if to.is_reference {
                    return self.error("there are no pointers to references");
                }
                Ok(plain(self.types.pointer(to.ty, to.is_const)))
            }
            TypeKind::Reference(to) => {
                self.may_be_destroyed = true;
                let to = self.written(to)?;
                Ok(Written { is_reference: true, is_forward: false, ..to })
            }
            TypeKind::Forward(to) => {
                self.may_be_destroyed = true;
                let to = self.written(to)?;
                Ok(Written { is_reference: true, is_forward: true, ..to })
            }
            TypeKind::Array(of, size) => {
                let of = self.written(of)?;
                let Some(size) = size else {
                    return self.error("this array has no size");
                };
                let count = self.array_size(size)?;
                let ty = self.array_type(of.ty, count)?;
                Ok(Written { ty, is_const: of.is_const, is_reference: false, is_forward: false })
            }
            TypeKind::Function => self.error("pointers to functions are not part of the subset here"),
            TypeKind::Pack(_) => self.error("a pack of types is not allowed here"),
        }
    }

    pub fn array_type(&mut self, of: TypeId, count: u64) -> Result<TypeId> {
        let size = self.types.layout(of).0;
        if count.checked_mul(size).is_none_or(|bytes| bytes > 1 << 31) {
            return self.error(format!("an array of {count} elements of {size} bytes is too large"));
        }
        Ok(self.types.id(Type::Array { of, count }))
    }

    pub fn array_size(&mut self, size: &Expr) -> Result<u64> {
        let value = self.constant_expression(size, "the size of an array")?;
        let count = self.converted_scalar(value, types::I64, false)?.as_const().unwrap_or(0) as i64;
        if count <= 0 {
            return Err(Error::new(
                size.span,
                format!("an array of {count} elements: it needs at least one"),
            ));
        }
        Ok(count as u64)
    }

    /// Evaluates a constant expression.
    pub fn constant_expression(&mut self, value: &Expr, what: &str) -> Result<Value> {
        let found = self.dry(|lower| {
            let found = lower.expression(value)?;
            lower.plain(found)
        })?;
        if self.divides_by_zero(value)? {
            return Err(Error::new(value.span, "division by zero in a constant"));
        }
        if found.as_const().is_none() {
            return Err(Error::new(value.span, format!("{what} must be known at compile time"))
                .label("this is known only at run time"));
        }
        Ok(found)
    }

    fn divides_by_zero(&mut self, value: &Expr) -> Result<bool> {
        let ExprKind::Binary(operator, a, b) = &value.kind else { return Ok(false) };
        if matches!(operator, Binary::Div | Binary::Rem) {
            let divisor = self.dry(|lower| lower.expression(b))?;
            if divisor.as_const() == Some(0) && self.prim(divisor.ty).is_some_and(types::is_integer) {
                return Ok(true);
            }
        }
        Ok(self.divides_by_zero(a)? || self.divides_by_zero(b)?)
    }

    /// The type that a path names.
    pub fn path_type(&mut self, path: &Path) -> Result<TypeId> {
        let outer = std::mem::replace(&mut self.span, path.span);
        let Some(last) = path.segments.last() else { return self.error("a type is missing") };
        let qualifier = self.qualifier(path)?;
        self.span = path.span;
        let found = match &qualifier {
            None => self.find(&last.name),
            Some(Qualifier::Namespace(namespace)) => self.find_in(*namespace, &last.name, 0),
            Some(Qualifier::Type(of)) => {
                let ty = self.member_type(*of, &last.name)?;
                self.span = outer;
                return Ok(ty);
            }
        };
        let ty = match found {
            Some(Found::Binding(Binding::Type(ty))) => ty,
            Some(Found::Binding(Binding::Alias(alias))) => {
                self.alias_type(&alias, &last.arguments, path.span)?
            }
            Some(Found::Binding(Binding::Struct(declaration))) => {
                self.struct_type(&[declaration], &last.arguments, path.span)?
            }
            Some(Found::Alias(alias)) => self.alias_type(&alias, &last.arguments, path.span)?,
            Some(Found::Structs(structs)) => {
                // Inside a template, its own name means the current instance.
                if last.arguments.is_none() && !structs[0].template.is_empty() {
                    let here = self.frames.last().and_then(|frame| frame.of_struct);
                    if let Some(here) = here
                        && self.types.structs[here].declaration.name == last.name
                    {
                        self.span = outer;
                        return Ok(self.types.id(Type::Struct(here)));
                    }
                }
                self.struct_type(&structs, &last.arguments, path.span)?
            }
            Some(Found::Binding(Binding::Pack(_))) => {
                return self.error(format!("`{}` is a pack: it needs `...`", last.name));
            }
            Some(Found::Binding(Binding::Failed)) => return Err(Error::known(path.span)),
            Some(_) => return self.error(format!("`{}` is not a type", last.name)),
            None => return self.error(format!("unknown type `{}`", last.name)),
        };
        self.span = outer;
        Ok(ty)
    }

    /// A member type, such as `Traits<T>::type`.
    fn member_type(&mut self, of: TypeId, name: &Name) -> Result<TypeId> {
        let Type::Struct(number) = *self.types.get(of) else {
            return self.error(format!("`{}` has no member `{name}`", self.types.name(of)));
        };
        let declaration = self.types.structs[number].declaration.clone();
        if let Some(alias) = declaration.aliases.iter().find(|alias| alias.name == *name) {
            return self.in_struct(number, |lower| lower.type_of_name(&alias.ty));
        }
        if let Some(inner) = declaration.structs.iter().find(|inner| inner.name == *name) {
            let inner = inner.clone();
            return self.in_struct(number, |lower| lower.struct_type(&[inner], &None, lower.span));
        }
        self.error(format!("`{}` has no type `{name}`", self.types.name(of)))
    }

    /// Runs in a scope where the names of a struct are known.
    pub fn in_struct<T>(&mut self, of: usize, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.struct_scope(of);
        let namespace = self.types.structs[of].declaration.namespace;
        self.in_frame(scope, namespace, Some(of), run)
    }

    pub fn in_frame<T>(
        &mut self,
        scope: Scope,
        namespace: NamespaceId,
        of_struct: Option<usize>,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let span = self.span;
        self.frames.push(super::Frame {
            scopes: vec![scope, Scope::new()],
            namespace,
            this: None,
            of_struct,
            result: None,
            returns_reference: false,
            outcome: super::Outcome::Program,
            end: 0,
            loops: Vec::new(),
            alive: Vec::new(),
            function: None,
            arguments: Vec::new(),
            call: span,
            labels: Vec::new(),
        });
        let frames = self.frames.len();
        let result = self.deeper(run);
        self.frames.truncate(frames - 1);
        if result.is_ok() {
            self.span = span;
        }
        result
    }

    fn alias_type(
        &mut self,
        alias: &Alias,
        arguments: &Option<Vec<TemplateArgument>>,
        span: Span,
    ) -> Result<TypeId> {
        if alias.template.is_empty() {
            // An alias is resolved in the scope of its declaration; a local one sees its function.
            let is_local = self.frames.last().is_some_and(|frame| {
                frame.scopes.iter().any(|scope| matches!(scope.get(&alias.name), Some(Binding::Alias(_))))
            });
            self.may_be_destroyed = true;
            if is_local || self.is_member_alias(alias) {
                return self.type_of_name(&alias.ty);
            }
            return self.in_frame(Scope::new(), alias.namespace, None, |lower| lower.type_of_name(&alias.ty));
        }
        let given = match arguments {
            Some(arguments) => self.template_arguments(arguments)?,
            None => Vec::new(),
        };
        let complete = self.completed(&alias.template, given, &Scope::new(), alias.namespace, span)?;
        let scope = self.argument_scope(&alias.template, &complete);
        self.may_be_destroyed = true;
        self.in_frame(scope, alias.namespace, None, |lower| lower.type_of_name(&alias.ty))
    }

    fn is_member_alias(&self, alias: &Alias) -> bool {
        let of = self.frames.last().and_then(|frame| frame.of_struct);
        of.is_some_and(|of| {
            let declaration = &self.types.structs[of].declaration;
            declaration.aliases.iter().any(|known| std::ptr::eq(&**known, alias))
        })
    }

    /// Resolves template arguments, with packs expanded.
    pub fn template_arguments(&mut self, arguments: &[TemplateArgument]) -> Result<Vec<Argument>> {
        let mut all = Vec::new();
        for argument in arguments {
            match argument {
                TemplateArgument::Type(TypeName { kind: TypeKind::Pack(inner), .. }) => {
                    for ty in self.expanded_types(inner)? {
                        all.push(Argument::Type(ty));
                    }
                }
                TemplateArgument::Type(ty) => all.push(Argument::Type(self.type_of_name(ty)?)),
                TemplateArgument::Value(Expr { kind: ExprKind::Expand(inner), .. }) => {
                    let count = self.pack_length_in_expr(inner)?;
                    for i in 0..count {
                        let value = self.with_pack_element(inner, i, |lower| {
                            lower.constant_expression(inner, "a template argument")
                        })?;
                        all.push(Argument::Value(value.ty, value.as_const().unwrap_or(0)));
                    }
                }
                TemplateArgument::Value(value) => {
                    let value = self.constant_expression(value, "a template argument")?;
                    all.push(Argument::Value(value.ty, value.as_const().unwrap_or(0)));
                }
            }
        }
        Ok(all)
    }

    /// The types of `Input<I>...`, one for each type of the pack.
    pub fn expanded_types(&mut self, ty: &TypeName) -> Result<Vec<TypeId>> {
        let mut names = Vec::new();
        self.packs_in_type(ty, &mut names);
        let Some(count) = self.pack_length(&names)? else {
            return self.error("there is no pack before `...`");
        };
        (0..count).map(|i| self.with_elements(&names, i, |lower| lower.type_of_name(ty))).collect()
    }

    /// Binds the parameters of a template to arguments.
    pub fn argument_scope(&self, template: &[TemplateParameter], arguments: &[Argument]) -> Scope {
        let mut scope = Scope::new();
        for (parameter, argument) in template.iter().zip(arguments) {
            scope.insert(parameter.name.clone(), argument_binding(argument));
        }
        scope
    }

    /// Completes template arguments with defaults and packs, one for each parameter. `deduced` holds arguments known
    /// from elsewhere.
    pub fn completed(
        &mut self,
        template: &[TemplateParameter],
        given: Vec<Argument>,
        deduced: &Scope,
        namespace: NamespaceId,
        span: Span,
    ) -> Result<Vec<Argument>> {
        let mut complete: Vec<Argument> = Vec::new();
        let mut given = given.into_iter();
        for parameter in template {
            if parameter.is_pack {
                let mut rest: Vec<Argument> = given.by_ref().collect();
                if rest.is_empty()
                    && let Some(Binding::Pack(known)) = deduced.get(&parameter.name)
                {
                    rest = known.iter().map(binding_argument).collect();
                }
                complete.push(Argument::Pack(rest));
                continue;
            }
            let known = given.next().or_else(|| deduced.get(&parameter.name).map(binding_argument));
            let scope = self.argument_scope(template, &complete);
            let argument = match (&parameter.kind, known) {
                (ParameterKind::Type(_), Some(Argument::Type(ty))) => Argument::Type(ty),
                (ParameterKind::Value(ty, _), Some(Argument::Value(from, bits))) => {
                    let to = self.in_frame(scope, namespace, None, |lower| lower.type_of_name(ty))?;
                    let value = self.converted_scalar(Value::constant(from, bits), to, false)?;
                    Argument::Value(to, value.as_const().unwrap_or(0))
                }
                (ParameterKind::Type(Some(default)), None) => {
                    let ty = self.in_frame(scope, namespace, None, |lower| lower.type_of_name(default))?;
                    Argument::Type(ty)
                }
                (ParameterKind::Value(ty, Some(default)), None) => {
                    let (ty, bits) = self.in_frame(scope, namespace, None, |lower| {
                        let ty = lower.type_of_name(ty)?;
                        let value = lower.constant_expression(default, "a template argument")?;
                        let value = lower.converted_scalar(value, ty, false)?;
                        Ok((ty, value.as_const().unwrap_or(0)))
                    })?;
                    Argument::Value(ty, bits)
                }
                (_, None) => {
                    let message = format!("the template parameter `{}` is unknown here", parameter.name);
                    return Err(Error::new(span, message).note("it is declared here", parameter.span));
                }
                (ParameterKind::Type(_), Some(_)) => {
                    return Err(Error::new(span, format!("`{}` takes a type", parameter.name)));
                }
                (ParameterKind::Value(..), Some(_)) => {
                    return Err(Error::new(span, format!("`{}` takes a value", parameter.name)));
                }
            };
            complete.push(argument);
        }
        if given.next().is_some() {
            return Err(Error::new(
                span,
                format!("there are more than {} template arguments", template.len()),
            ));
        }
        Ok(complete)
    }

    pub fn sizeof(&mut self, ty: TypeId) -> Value {
        Value::constant(U64, self.types.layout(ty).0)
    }
}

pub fn argument_binding(argument: &Argument) -> Binding {
    match argument {
        Argument::Type(ty) => Binding::Type(*ty),
        Argument::Value(ty, bits) => Binding::Value(Value { is_const: true, ..Value::constant(*ty, *bits) }),
        Argument::Pack(all) => Binding::Pack(all.iter().map(argument_binding).collect()),
    }
}

pub fn binding_argument(binding: &Binding) -> Argument {
    match binding {
        Binding::Type(ty) => Argument::Type(*ty),
        Binding::Value(value) => Argument::Value(value.ty, value.as_const().unwrap_or(0)),
        Binding::Pack(all) => Argument::Pack(all.iter().map(binding_argument).collect()),
        Binding::Alias(_) | Binding::Struct(_) | Binding::Failed => Argument::Type(types::VOID),
    }
}
