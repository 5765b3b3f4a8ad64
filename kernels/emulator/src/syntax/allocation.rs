//! `new` and `delete`: calls of function templates in the emulator's header.

use super::ast::*;
use super::parser::Parser;
use crate::source::{Result, Span};

impl Parser {
    /// Parses `new T`, `new T(a, b)` and `new T[n]`.
    pub(super) fn new_expression(&mut self) -> Result<Expr> {
        let start = self.advance().span;
        if self.is("(") {
            return self.refuse(start, "`new` with a place");
        }
        let base = self.base_type()?;
        let ty = self.pointers(base)?;
        if self.eat("[") {
            let outer = std::mem::replace(&mut self.in_arguments, false);
            let count = self.expression()?;
            self.in_arguments = outer;
            self.expect("]")?;
            if self.is("[") {
                return self.refuse(start, "`new` of arrays of arrays");
            }
            let items = match () {
                () if self.is("{") => Some(self.list("{", "}")?),
                () if self.is("(") => Some(self.list("(", ")")?),
                () => None,
            };
            let name = match &items {
                None => "__emulator_new_array",
                Some(items) if items.is_empty() => "__emulator_new_zeros",
                Some(_) => "__emulator_new_list",
            };
            let arguments = std::iter::once(count).chain(items.into_iter().flatten()).collect();
            return Ok(call(name, Some(ty), arguments, self.since(start)));
        }
        let is_braces = self.is("{");
        let items = match is_braces {
            true => self.list("{", "}")?,
            false if self.is("(") => self.list("(", ")")?,
            false => Vec::new(),
        };
        let span = self.since(start);
        let kind = ExprKind::Construct(Box::new(ty.clone()), items, is_braces);
        Ok(call("__emulator_new", Some(ty), vec![Expr { kind, span }], span))
    }

    /// Parses `delete p` and `delete[] p`.
    pub(super) fn delete_expression(&mut self) -> Result<Expr> {
        let start = self.advance().span;
        if self.eat("[") {
            self.expect("]")?;
        }
        let value = self.unary()?;
        Ok(call("__emulator_delete", None, vec![value], self.since(start)))
    }
}

fn call(name: &str, ty: Option<TypeName>, arguments: Vec<Expr>, span: Span) -> Expr {
    let name = name.into();
    let segment = Segment { name, arguments: ty.map(|ty| vec![TemplateArgument::Type(ty)]) };
    let path = Path { global: true, segments: vec![segment], span };
    let function = Expr { kind: ExprKind::Path(path), span };
    Expr { kind: ExprKind::Call(Box::new(function), arguments), span }
}
