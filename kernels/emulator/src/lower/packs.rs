//! Parameter packs: their expansion, their length, and fold expressions.

use super::lookup::Found;
use super::{Binding, Lower, Place, Value};
use crate::source::{Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, BOOL};

impl Lower<'_> {
    pub(super) fn fold(
        &mut self,
        operator: Binary,
        pack: &Expr,
        first: Option<&Expr>,
        left: bool,
        span: Span,
    ) -> Result<Value> {
        let count = self.pack_length_in_expr(pack)?;
        let mut order: Vec<usize> = (0..count).collect();
        if !left {
            order.reverse();
        }
        let logic = matches!(operator, Binary::LogicAnd | Binary::LogicOr);
        let mut result = match first {
            Some(first) => Some(self.expression(first)?),
            None if count == 0 && operator == Binary::LogicAnd => return Ok(Value::constant(BOOL, 1)),
            None if count == 0 && operator == Binary::LogicOr => return Ok(Value::constant(BOOL, 0)),
            None if count == 0 && operator == Binary::Comma => {
                return Ok(Value::new(types::VOID, Place::Nothing));
            }
            None if count == 0 => return self.error("this operator has no value for an empty pack"),
            None => None,
        };
        for i in order {
            let value = self.with_pack_element(pack, i, |lower| lower.expression(pack))?;
            result = Some(match result {
                None => value,
                // Neither side has side effects here, so both are computed.
                Some(known) if logic => {
                    let (a, b) = if left { (known, value) } else { (value, known) };
                    self.both(operator, a, b)?
                }
                Some(known) => {
                    let (a, b) = if left { (known, value) } else { (value, known) };
                    self.binary_values(operator, a, b, span)?
                }
            });
        }
        match result {
            Some(value) => Ok(value),
            None => self.error("an empty pack"),
        }
    }

    /// The length of the packs in an expression under expansion.
    pub fn pack_length_in_expr(&mut self, value: &Expr) -> Result<usize> {
        let mut names = Vec::new();
        self.packs_in_expr(value, &mut names);
        match self.pack_length(&names)? {
            Some(count) => Ok(count),
            None => self.error("there is no pack before `...`"),
        }
    }

    pub fn pack_length(&mut self, names: &[Name]) -> Result<Option<usize>> {
        let mut length = None;
        for name in names {
            if let Some(Found::Binding(Binding::Pack(all))) = self.find(name) {
                if length.is_some_and(|known| known != all.len()) {
                    return self.error("the packs before `...` are not of the same length");
                }
                length = Some(all.len());
            }
        }
        Ok(length)
    }

    pub fn with_pack_element<T>(
        &mut self,
        value: &Expr,
        i: usize,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut names = Vec::new();
        self.packs_in_expr(value, &mut names);
        self.with_elements(&names, i, run)
    }

    /// Runs with each of the packs bound to its element `i`.
    pub fn with_elements<T>(
        &mut self,
        names: &[Name],
        i: usize,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut scope = super::Scope::new();
        for name in names {
            if let Some(Found::Binding(Binding::Pack(all))) = self.find(name) {
                scope.insert(name.clone(), all[i].clone());
            }
        }
        self.frame().scopes.push(scope);
        let depth = self.frame().scopes.len();
        let result = run(self);
        if result.is_ok() {
            self.frame().scopes.truncate(depth - 1);
        }
        result
    }

    pub fn packs_in_expr(&self, value: &Expr, names: &mut Vec<Name>) {
        let mut all = |exprs: &[Expr]| exprs.iter().for_each(|expr| self.packs_in_expr(expr, names));
        match &value.kind {
            ExprKind::Path(path) => self.packs_in_path(path, names),
            ExprKind::Unary(_, a) | ExprKind::SizeofExpr(a) => self.packs_in_expr(a, names),
            ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) | ExprKind::Index(a, b) => {
                self.packs_in_expr(a, names);
                self.packs_in_expr(b, names);
            }
            ExprKind::Condition(a, b, c) => {
                self.packs_in_expr(a, names);
                self.packs_in_expr(b, names);
                self.packs_in_expr(c, names);
            }
            ExprKind::Call(function, arguments) => {
                all(arguments);
                self.packs_in_expr(function, names);
            }
            ExprKind::Member(object, _, _) => self.packs_in_expr(object, names),
            ExprKind::Cast(_, ty, a) => {
                self.packs_in_type(ty, names);
                self.packs_in_expr(a, names);
            }
            ExprKind::Construct(ty, items, _) => {
                all(items);
                self.packs_in_type(ty, names);
            }
            ExprKind::Braces(items) => all(items),
            ExprKind::SizeofType(ty) => self.packs_in_type(ty, names),
            _ => {}
        }
    }

    pub(super) fn packs_in_path(&self, path: &Path, names: &mut Vec<Name>) {
        for segment in &path.segments {
            if let Some(Found::Binding(Binding::Pack(_))) = self.find(&segment.name)
                && !names.contains(&segment.name)
            {
                names.push(segment.name.clone());
            }
            for argument in segment.arguments.iter().flatten() {
                match argument {
                    TemplateArgument::Type(ty) => self.packs_in_type(ty, names),
                    TemplateArgument::Value(value) => self.packs_in_expr(value, names),
                }
            }
        }
    }

    pub fn packs_in_type(&self, ty: &TypeName, names: &mut Vec<Name>) {
        match &ty.kind {
            TypeKind::Path(path) => self.packs_in_path(path, names),
            TypeKind::Decltype(value) => self.packs_in_expr(value, names),
            TypeKind::Pointer(inner) | TypeKind::Reference(inner) | TypeKind::Forward(inner) => {
                self.packs_in_type(inner, names);
            }
            _ => {}
        }
    }
}
