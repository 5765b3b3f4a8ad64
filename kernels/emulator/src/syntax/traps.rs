//! Warnings about syntax that is valid, and probably not meant like this.

use super::ast::*;
use super::parser::Parser;
use crate::source::{Error, Span};

impl Parser {
    #[cold]
    fn warn(&mut self, span: Span, message: &str, help: &str) {
        if self.trials == 0 {
            self.tree.warnings.push(Error::new(span, message).help(help).warning());
        }
    }

    /// `if (i = n)`. A second pair of parentheses says that it is meant.
    pub(super) fn check_condition(&mut self, condition: &Expr, is_in_parentheses: bool) {
        if matches!(condition.kind, ExprKind::Assign(None, ..)) && !is_in_parentheses {
            self.warn(condition.span, "this condition is an assignment", "to compare, write `==`");
        }
    }

    /// `if (i < n);`, but not a macro that is empty.
    pub(super) fn check_body(&mut self, is_if: bool) {
        let (last, next) = (self.last_span(), self.span());
        let is_beside = next.line == last.line && next.column == last.column + last.length;
        if self.is(";") && is_beside && (is_if || self.ahead(1).is("{")) {
            self.warn(next, "this `;` is all that depends on the condition", "leave it out");
        }
    }

    /// `x == y;`
    pub(super) fn check_statement(&mut self, value: &Expr) {
        if matches!(value.kind, ExprKind::Binary(Binary::Eq, ..)) {
            self.warn(value.span, "the result of this comparison is not used", "to assign, write `=`");
        }
    }

    /// `0 <= i < n`
    pub(super) fn check_chain(&mut self, before: Option<Binary>, operator: Binary, span: Span) {
        if before.is_some() && [Binary::Lt, Binary::Gt, Binary::Le, Binary::Ge].contains(&operator) {
            let message = "this compares with the result of the comparison before, which is 0 or 1";
            self.warn(span, message, "write `0 <= i && i < n`");
        }
    }

    /// `a[row, column]`
    pub(super) fn check_index(&mut self, index: &Expr) {
        if matches!(index.kind, ExprKind::Binary(Binary::Comma, ..)) {
            let help = "the rows lie one after another: write `a[row * columns + column]`";
            self.warn(index.span, "the value before this comma is not used", help);
        }
    }
}
