//! Duplicate declarations where C++ allows one.

use super::ast::*;
use super::parser::Parser;
use crate::source::{Error, Result, Span};

impl Parser {
    /// Declares a variable, a parameter or a struct in a function or a struct. Structs have a separate name space.
    pub fn declare_once(&mut self, name: &str, is_struct: bool, span: Span) -> Result<()> {
        self.check_template_name(name, span)?;
        let key = (is_struct, name.into());
        match self.declared.last_mut().and_then(|scope| scope.insert(key, span)) {
            Some(first) => twice(name, first, span),
            None => Ok(()),
        }
    }

    /// The name of a template's parameter means nothing else in the template.
    pub fn check_template_name(&self, name: &str, span: Span) -> Result<()> {
        if self.template_names.iter().any(|known| &**known == name) {
            let message = format!("`{name}` is a parameter of the template around it: take another name");
            return Err(Error::new(span, message));
        }
        Ok(())
    }

    pub fn check_variable(&self, new: &Variable) -> Result<()> {
        let is_definition = |variable: &Variable| {
            let is_plain = variable.template.is_empty() && variable.specialized.is_none();
            is_plain && (!variable.storage.is_extern || !matches!(variable.init, Init::None))
        };
        let known = self.tree.namespaces[new.namespace].variables.get(&new.name).into_iter().flatten();
        match known.filter(|known| is_definition(known)).find(|known| known.span.file == new.span.file) {
            Some(first) if is_definition(new) => twice(&new.name, first.span, new.span),
            _ => Ok(()),
        }
    }

    pub fn check_function(&self, new: &Function) -> Result<()> {
        let known = self.tree.namespaces[new.namespace].functions.get(&new.name).into_iter().flatten();
        let known: Vec<_> = known.filter(|known| known.span.file == new.span.file).collect();
        if let Some(first) = known.iter().find(|known| is_same(known, new)) {
            return twice(&new.name, first.span, new.span);
        }
        // C has no overloads.
        match known.iter().find(|known| known.is_c && new.is_c && !takes_the_same(known, new)) {
            Some(first) => {
                let message = format!("`extern \"C\"` allows only one function `{}`", new.name);
                Err(Error::new(new.span, message).note("the other one is here", first.span))
            }
            None => Ok(()),
        }
    }

    pub fn check_struct(&self, new: &Struct) -> Result<()> {
        let is_definition =
            |declaration: &Struct| declaration.is_complete && declaration.specialized.is_none();
        let known = self.tree.namespaces[new.namespace].structs.get(&new.name).into_iter().flatten();
        match known.filter(|known| is_definition(known)).find(|known| known.span.file == new.span.file) {
            Some(first) if is_definition(new) => twice(&new.name, first.span, new.span),
            _ => Ok(()),
        }
    }
}

pub fn twice<T>(name: &str, first: Span, second: Span) -> Result<T> {
    Err(Error::new(second, format!("`{name}` is defined twice")).note("it is defined here first", first))
}

/// Whether two definitions have the same parameters. Host and device may each have one.
fn is_same(a: &Function, b: &Function) -> bool {
    let side = |function: &Function| (function.qualifiers.global, function.qualifiers.device);
    let is_template = |function: &Function| {
        function.specialized.is_some() || function.is_specialization || !function.template.is_empty()
    };
    a.body.is_some()
        && b.body.is_some()
        && side(a) == side(b)
        && !is_template(a)
        && !is_template(b)
        && takes_the_same(a, b)
}

fn takes_the_same(a: &Function, b: &Function) -> bool {
    a.parameters.len() == b.parameters.len()
        && a.parameters.iter().zip(&b.parameters).all(|(a, b)| is_same_type(&a.ty, &b.ty))
}

/// Whether two types are written the same way. A top-level `const` does not distinguish parameters.
fn is_same_type(a: &TypeName, b: &TypeName) -> bool {
    let inner = |a: &TypeName, b: &TypeName| a.is_const == b.is_const && is_same_type(a, b);
    match (&a.kind, &b.kind) {
        (TypeKind::Prim(a), TypeKind::Prim(b)) => a == b,
        (TypeKind::Pointer(a), TypeKind::Pointer(b))
        | (TypeKind::Reference(a), TypeKind::Reference(b))
        | (TypeKind::Forward(a), TypeKind::Forward(b)) => inner(a, b),
        (TypeKind::Path(a), TypeKind::Path(b)) => {
            a.segments.len() == b.segments.len()
                && a.segments.iter().zip(&b.segments).all(|(a, b)| a.name == b.name && is_same_list(a, b))
        }
        _ => false,
    }
}

fn is_same_list(a: &Segment, b: &Segment) -> bool {
    let (Some(a), Some(b)) = (&a.arguments, &b.arguments) else {
        return a.arguments.is_none() && b.arguments.is_none();
    };
    let is_same_argument = |a: &TemplateArgument, b: &TemplateArgument| match (a, b) {
        (TemplateArgument::Type(a), TemplateArgument::Type(b)) => {
            a.is_const == b.is_const && is_same_type(a, b)
        }
        (TemplateArgument::Value(a), TemplateArgument::Value(b)) => {
            matches!((&a.kind, &b.kind), (ExprKind::Int(a, _), ExprKind::Int(b, _)) if a == b)
        }
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_argument(a, b))
}
