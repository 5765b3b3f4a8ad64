//! Names that are not declared where they are used. C++ looks them up where they stand, also in templates that nothing
//! uses, unless they depend on a template's parameters.

use super::ast::*;
use super::parser::Parser;

impl Parser {
    /// Records a name without a declaration before it.
    pub(super) fn note_if_undeclared(&mut self, path: &Path) {
        if let ([segment], false) = (&path.segments[..], path.global)
            && self.names.find(&segment.name).is_none()
        {
            let name = segment.name.clone();
            self.tree.undeclared.push(Undeclared { name, span: path.span, is_called: false });
        }
    }

    /// Records that a function is called. In a template, the types of the arguments may lead to its declaration later.
    pub(super) fn note_call(&mut self, function: &Expr, arguments: &[Expr]) {
        let in_template = self.templates > 0;
        let all = &mut self.tree.undeclared;
        let Some(at) = all.iter().rposition(|known| known.span == function.span) else { return };
        if in_template && arguments.iter().any(may_depend) {
            all.remove(at);
        } else {
            all[at].is_called = true;
        }
    }

    /// Inside a struct, its members are known before their declarations.
    pub(super) fn declare_members(&mut self, of: &Struct, before: usize) {
        let variables = of.fields.iter().chain(&of.statics).chain(&of.enumerators);
        let mut names: Vec<&Name> = variables.map(|variable| &variable.name).collect();
        names.extend(of.functions.iter().map(|function| &function.name));
        names.extend(of.aliases.iter().map(|alias| &alias.name));
        let all = &mut self.tree.undeclared;
        let mut at = 0;
        all.retain(|known| {
            at += 1;
            at <= before || !names.contains(&&known.name)
        });
    }
}

/// Whether the type of an argument may depend on a template's parameters.
fn may_depend(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Int(..)
        | ExprKind::Float(..)
        | ExprKind::Bool(_)
        | ExprKind::Char(_)
        | ExprKind::Str(_)
        | ExprKind::Null
        | ExprKind::SizeofType(_)
        | ExprKind::SizeofExpr(_) => false,
        ExprKind::Unary(_, a) => may_depend(a),
        ExprKind::Binary(_, a, b) => may_depend(a) || may_depend(b),
        _ => true,
    }
}
