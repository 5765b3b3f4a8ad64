//! The kinds of names, which the grammar depends on: nothing else distinguishes `a < b` from `a<b>`.

use super::ast::{Name, NamespaceId, Path};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Value,
    Type,
    TypeTemplate,
    /// A template of a function or a variable.
    ValueTemplate,
    Namespace(NamespaceId),
}

/// Names of blocks, structs and template parameters, innermost last; the namespaces' names come below them.
#[derive(Clone, Default)]
pub struct Names {
    pub scopes: Vec<HashMap<Name, NameKind>>,
    pub namespaces: Vec<HashMap<Name, NameKind>>,
    /// The parent of each namespace.
    pub parents: Vec<NamespaceId>,
    pub opened: Vec<Vec<NamespaceId>>,
    pub at: NamespaceId,
    /// Cached lookups of paths, by the number of their first token, until a name is declared.
    pub kinds: HashMap<usize, Option<NameKind>>,
}

impl Names {
    pub fn declare(&mut self, name: &Name, kind: NameKind) {
        self.kinds.clear();
        let at = self.at;
        let is_outside = self.scopes.is_empty();
        let scope = match self.scopes.last_mut() {
            Some(scope) => scope,
            None => &mut self.namespaces[at],
        };
        // A function template stays one when a plain overload follows; a struct and a function may share a name.
        if kind == NameKind::Value
            && matches!(
                scope.get(name),
                Some(NameKind::ValueTemplate | NameKind::Type | NameKind::TypeTemplate)
            )
            && is_outside
        {
            return;
        }
        scope.insert(name.clone(), kind);
    }

    pub fn in_namespace(&self, namespace: NamespaceId, name: &str) -> Option<NameKind> {
        if let Some(kind) = self.namespaces[namespace].get(name) {
            return Some(*kind);
        }
        self.opened[namespace].iter().find_map(|opened| self.namespaces[*opened].get(name).copied())
    }

    pub fn find(&self, name: &str) -> Option<NameKind> {
        if let Some(kind) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(*kind);
        }
        let mut at = self.at;
        loop {
            if let Some(kind) = self.in_namespace(at, name) {
                return Some(kind);
            }
            if at == 0 {
                return None;
            }
            at = self.parents[at];
        }
    }

    /// The meaning of a path; `None` for a member of something unknown so far.
    pub fn of_path(&self, path: &Path) -> Option<NameKind> {
        let mut kind = match path.global {
            true => self.in_namespace(0, &path.segments.first()?.name),
            false => self.find(&path.segments.first()?.name),
        };
        for segment in &path.segments[1..] {
            kind = match kind {
                Some(NameKind::Namespace(namespace)) => self.in_namespace(namespace, &segment.name),
                _ => return None,
            };
        }
        kind
    }
}
