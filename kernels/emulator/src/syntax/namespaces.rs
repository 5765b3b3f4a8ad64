//! Namespaces: their declarations, aliases, and `using`.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use crate::source::{Error, Result};
use std::collections::HashMap;

impl Parser {
    pub(super) fn import(&mut self, path: &Path) -> Result<()> {
        let mut at = if path.global { 0 } else { self.names.at };
        let (Some(last), first) = (path.segments.last(), &path.segments[..path.segments.len() - 1]) else {
            return Ok(());
        };
        for (i, segment) in first.iter().enumerate() {
            let kind = match i {
                0 if !path.global => self.names.find(&segment.name),
                _ => self.names.in_namespace(at, &segment.name),
            };
            let Some(NameKind::Namespace(namespace)) = kind else {
                return Err(Error::new(path.span, format!("there is no namespace `{}`", segment.name)));
            };
            at = namespace;
        }
        if let Some(kind) = self.names.in_namespace(at, &last.name) {
            let name = last.name.clone();
            self.names_of_namespace(&name, kind);
        }
        let here = self.names.at;
        self.tree.namespaces[here].imported.entry(last.name.clone()).or_default().push(at);
        Ok(())
    }

    /// Declares a name in the namespace, below the scopes of template parameters.
    pub(super) fn names_of_namespace(&mut self, name: &Name, kind: NameKind) {
        let scopes = std::mem::take(&mut self.names.scopes);
        self.names.declare(name, kind);
        self.names.scopes = scopes;
    }

    pub fn namespace(&mut self) -> Result<()> {
        let span = self.advance().span;
        let outer = self.names.at;
        let name: Name = if self.is("{") { "".into() } else { self.name("the name of a namespace")? };
        if self.is("::") {
            return self.refuse(self.span(), "nested namespace names");
        }
        if self.eat("=") {
            return self.namespace_alias(&name);
        }
        let known = self.tree.namespaces[outer].children.get(&name).copied();
        let at = known.unwrap_or(self.tree.namespaces.len());
        if known.is_none() {
            let named = Namespace { name: Some(name.clone()), parent: outer, ..Namespace::default() };
            self.tree.namespaces.push(named);
            self.names.namespaces.push(HashMap::new());
            self.names.parents.push(outer);
            self.names.opened.push(Vec::new());
            self.tree.namespaces[outer].children.insert(name.clone(), at);
            if name.is_empty() {
                self.tree.namespaces[outer].opened.push(at);
                self.names.opened[outer].push(at);
            } else {
                self.names_of_namespace(&name, NameKind::Namespace(at));
            }
        }
        self.expect("{")?;
        self.names.at = at;
        while !self.is("}") {
            if self.at_end() {
                return Err(Error::new(span, "this namespace is not closed").last());
            }
            self.declaration_or_next()?;
        }
        self.names.at = outer;
        self.expect("}").map(|_| ())
    }

    /// Parses `namespace cg = cooperative_groups;`.
    fn namespace_alias(&mut self, name: &Name) -> Result<()> {
        let path = self.path()?;
        self.expect(";")?;
        let Some(NameKind::Namespace(namespace)) = self.names.of_path(&path) else {
            return Err(self.no_namespace(&path));
        };
        let here = self.names.at;
        self.tree.namespaces[here].children.insert(name.clone(), namespace);
        self.names_of_namespace(name, NameKind::Namespace(namespace));
        Ok(())
    }

    pub fn no_namespace(&self, path: &Path) -> Box<Error> {
        let name = &path.segments[path.segments.len() - 1].name;
        let error = Error::new(path.span, format!("there is no namespace `{name}`"));
        match crate::source::headers::of_name(name) {
            Some(header) => error.help(format!("write `#include <{header}>`")),
            None => error,
        }
    }
}
