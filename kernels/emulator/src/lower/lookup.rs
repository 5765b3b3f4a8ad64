//! Name lookup in scopes.

use super::{Binding, Lower, Scope};
use crate::source::{Error, Result, headers};
use crate::syntax::ast::*;
use crate::types::{StructId, Type, TypeId};
use std::rc::Rc;

/// Functions with the same name, and the explicit template arguments.
#[derive(Clone, Debug)]
pub struct Functions {
    pub name: Name,
    pub candidates: Vec<(Rc<Function>, Scope, Option<StructId>)>,
    pub arguments: Option<Vec<TemplateArgument>>,
}

pub enum Found {
    Binding(Binding),
    Functions(Functions),
    Alias(Rc<Alias>),
    Structs(Vec<Rc<Struct>>),
    Variables(Vec<Rc<Variable>>),
    Namespace(NamespaceId),
    /// A field or static member of the struct that the current method belongs to.
    Member(Name),
}

impl Lower<'_> {
    pub fn namespace(&self) -> NamespaceId {
        self.frames.last().map_or(0, |frame| frame.namespace)
    }

    /// Finds an unqualified name.
    pub fn find(&self, name: &Name) -> Option<Found> {
        if let Some(frame) = self.frames.last() {
            for (depth, scope) in frame.scopes.iter().enumerate().rev() {
                if let Some(binding) = scope.get(name) {
                    return Some(Found::Binding(binding.clone()));
                }
                // Members come between the function's scopes and those of its struct's template.
                if depth == 1
                    && let Some(found) = self.find_member(frame.of_struct, name)
                {
                    return Some(found);
                }
            }
            if frame.scopes.len() < 2
                && let Some(found) = self.find_member(frame.of_struct, name)
            {
                return Some(found);
            }
        }
        let mut at = self.namespace();
        loop {
            if let Some(found) = self.find_in(at, name, 0) {
                return Some(found);
            }
            if at == 0 {
                return None;
            }
            at = self.tree.namespaces[at].parent;
        }
    }

    fn find_member(&self, of: Option<StructId>, name: &Name) -> Option<Found> {
        let of = &self.types.structs[of?];
        let declaration = &of.declaration;
        if of.fields.iter().any(|field| field.name == *name)
            || declaration.statics.iter().any(|variable| variable.name == *name)
            || declaration.enumerators.iter().any(|variable| variable.name == *name)
        {
            return Some(Found::Member(name.clone()));
        }
        if let Some(alias) = declaration.aliases.iter().find(|alias| alias.name == *name) {
            return Some(Found::Alias(alias.clone()));
        }
        if let Some(inner) = declaration.structs.iter().find(|inner| inner.name == *name) {
            return Some(Found::Structs(vec![inner.clone()]));
        }
        if declaration.functions.iter().any(|function| function.name == *name) {
            return Some(Found::Member(name.clone()));
        }
        None
    }

    pub fn find_in(&self, namespace: NamespaceId, name: &Name, depth: u32) -> Option<Found> {
        let here = &self.tree.namespaces[namespace];
        let mut functions: Vec<Rc<Function>> = here.functions.get(name).cloned().unwrap_or_default();
        let mut other = None;
        if let Some(structs) = here.structs.get(name) {
            other = Some(Found::Structs(structs.clone()));
        } else if let Some(alias) = here.aliases.get(name) {
            other = Some(Found::Alias(alias.clone()));
        } else if let Some(variables) = here.variables.get(name) {
            other = Some(Found::Variables(variables.clone()));
        } else if let Some(child) = here.children.get(name) {
            other = Some(Found::Namespace(*child));
        }
        if other.is_some() && functions.is_empty() {
            return other;
        }
        if depth < 4 {
            let imported = here.imported.get(name).into_iter().flatten();
            for from in imported.chain(&here.opened) {
                match self.find_in(*from, name, depth + 1) {
                    Some(Found::Functions(found)) => {
                        functions.extend(found.candidates.into_iter().map(|candidate| candidate.0));
                    }
                    Some(found) if functions.is_empty() => return Some(found),
                    _ => {}
                }
            }
        }
        if functions.is_empty() {
            return None;
        }
        let candidates = functions.into_iter().map(|function| (function, Scope::new(), None)).collect();
        Some(Found::Functions(Functions { name: name.clone(), candidates, arguments: None }))
    }

    /// The namespace or type that a path names before its last segment; `None` if there is only one segment.
    pub fn qualifier(&mut self, path: &Path) -> Result<Option<Qualifier>> {
        let mut at = if path.global { Some(Qualifier::Namespace(0)) } else { None };
        for (i, segment) in path.segments[..path.segments.len() - 1].iter().enumerate() {
            let found = match &at {
                None => self.find(&segment.name),
                Some(Qualifier::Namespace(namespace)) => self.find_in(*namespace, &segment.name, 0),
                Some(Qualifier::Type(_)) => None,
            };
            if let (Some(Found::Namespace(namespace)), None) = (&found, &segment.arguments) {
                at = Some(Qualifier::Namespace(*namespace));
                continue;
            }
            let prefix =
                Path { global: path.global, segments: path.segments[..=i].to_vec(), span: path.span };
            if found.is_none() && !matches!(at, Some(Qualifier::Type(_))) {
                let name = &segment.name;
                if &**name == "std" && i + 2 == path.segments.len() {
                    return Err(unknown_of_std(path));
                }
                let error = Error::new(path.span, format!("unknown name `{name}`"));
                return Err(if &**name == "std" {
                    error.help("of `std`, the subset has what <vector>, <algorithm>, <utility> and <cmath> bring here; include them")
                } else {
                    error
                });
            }
            at = Some(Qualifier::Type(self.path_type(&prefix)?));
        }
        Ok(at)
    }

    /// The methods of a struct with this name.
    pub fn methods(&self, of: StructId, name: &str) -> Vec<(Rc<Function>, Scope, Option<StructId>)> {
        let declaration = self.types.structs[of].declaration.clone();
        let scope = self.struct_scope(of);
        let functions = declaration.functions.iter().filter(|function| &*function.name == name);
        functions.map(|function| (function.clone(), scope.clone(), Some(of))).collect()
    }

    /// The template arguments of a struct, as a scope.
    pub fn struct_scope(&self, of: StructId) -> Scope {
        let of = &self.types.structs[of];
        self.argument_scope(&of.declaration.template, &of.arguments)
    }

    pub fn struct_of(&self, ty: TypeId) -> Option<StructId> {
        match self.types.get(ty) {
            Type::Struct(number) => Some(*number),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Qualifier {
    Namespace(NamespaceId),
    Type(TypeId),
}

/// The error for a name of `std` that no included header provides.
fn unknown_of_std(path: &Path) -> Box<Error> {
    let name = &path.segments[path.segments.len() - 1].name;
    let error = Error::new(path.span, format!("`std::{name}` is not part of the subset"));
    match (headers::refused_of_std(name), headers::of_std(name)) {
        (Some(why), _) => Error::new(path.span, format!("`std::{name}` is not part of the subset; {why}")),
        (None, Some(header)) => error.help(format!("write `#include <{header}>`")),
        (None, None) => error.help("of `std`, the subset has what <vector>, <algorithm>, <utility> and <cmath> bring here; include them"),
    }
}
