//! Expressions, parsed by precedence.

use super::ast::*;
use super::names::NameKind;
use super::parser::{Parser, is_keyword};
use super::type_names::is_type;
use crate::source::Result;
use crate::source::lexer::Tok;

pub(super) const LEVELS: &[&[(&str, Binary)]] = &[
    &[("||", Binary::LogicOr)],
    &[("&&", Binary::LogicAnd)],
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("==", Binary::Eq), ("!=", Binary::Ne)],
    &[("<", Binary::Lt), (">", Binary::Gt), ("<=", Binary::Le), (">=", Binary::Ge)],
    &[("<<", Binary::Shl), (">>", Binary::Shr)],
    &[("+", Binary::Add), ("-", Binary::Sub)],
    &[("*", Binary::Mul), ("/", Binary::Div), ("%", Binary::Rem)],
];

const ASSIGNMENTS: &[(&str, Option<Binary>)] = &[
    ("=", None),
    ("+=", Some(Binary::Add)),
    ("-=", Some(Binary::Sub)),
    ("*=", Some(Binary::Mul)),
    ("/=", Some(Binary::Div)),
    ("%=", Some(Binary::Rem)),
    ("&=", Some(Binary::And)),
    ("|=", Some(Binary::Or)),
    ("^=", Some(Binary::Xor)),
    ("<<=", Some(Binary::Shl)),
    (">>=", Some(Binary::Shr)),
];

impl Parser {
    pub fn expression(&mut self) -> Result<Expr> {
        let mut left = self.assignment()?;
        while self.is(",") {
            let span = self.advance().span;
            let right = self.assignment()?;
            left = Expr { kind: ExprKind::Binary(Binary::Comma, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    pub fn assignment(&mut self) -> Result<Expr> {
        self.deeper()?;
        let left = self.conditional()?;
        let operator = ASSIGNMENTS.iter().find(|(punct, _)| self.is(punct));
        let result = match operator {
            Some((_, operator)) => {
                let span = self.advance().span;
                self.mark_written(&left);
                let right = if self.is("{") { self.braces()? } else { self.assignment()? };
                Expr { kind: ExprKind::Assign(*operator, Box::new(left), Box::new(right)), span }
            }
            None => left,
        };
        self.depth -= 1;
        Ok(result)
    }

    pub fn conditional(&mut self) -> Result<Expr> {
        self.deeper()?;
        let mut result = self.binary(0)?;
        if self.is("?") {
            let span = self.advance().span;
            let outer = std::mem::replace(&mut self.in_arguments, false);
            let yes = self.expression()?;
            self.in_arguments = outer;
            self.expect(":")?;
            let no = self.assignment()?;
            result = Expr { kind: ExprKind::Condition(Box::new(result), Box::new(yes), Box::new(no)), span };
        }
        self.depth -= 1;
        Ok(result)
    }

    fn operator_at(&self, level: usize) -> Option<Binary> {
        let Tok::Punct(punct) = self.peek().tok else { return None };
        if self.in_arguments && punct.starts_with('>') {
            return None;
        }
        LEVELS.get(level)?.iter().find(|(text, _)| *text == punct).map(|(_, operator)| *operator)
    }

    fn binary(&mut self, level: usize) -> Result<Expr> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        let mut before = None;
        while let Some(operator) = self.operator_at(level) {
            // The `... )` of a fold expression belongs to the parentheses.
            if self.ahead(1).is("...") {
                break;
            }
            let span = self.advance().span;
            self.check_chain(before.replace(operator), operator, span);
            let right = self.binary(level + 1)?;
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    pub(super) fn unary(&mut self) -> Result<Expr> {
        self.deeper()?;
        let result = self.unary_inner();
        self.depth -= 1;
        result
    }

    fn unary_inner(&mut self) -> Result<Expr> {
        let start = self.span();
        let operator = match self.peek().tok {
            Tok::Punct("-") => Some(Unary::Neg),
            Tok::Punct("+") => Some(Unary::Plus),
            Tok::Punct("!") => Some(Unary::Not),
            Tok::Punct("~") => Some(Unary::BitNot),
            Tok::Punct("*") => Some(Unary::Deref),
            Tok::Punct("&") => Some(Unary::AddressOf),
            Tok::Punct("++") => Some(Unary::Increment),
            Tok::Punct("--") => Some(Unary::Decrement),
            _ => None,
        };
        if let Some(operator) = operator {
            self.advance();
            let operand = self.unary()?;
            if matches!(operator, Unary::AddressOf | Unary::Increment | Unary::Decrement) {
                self.mark_written(&operand);
            }
            let span = self.since(start);
            return Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span });
        }
        if self.is_word("sizeof") {
            return self.sizeof();
        }
        if self.is_word("alignof") {
            return self.refuse(start, "`alignof` expressions");
        }
        if self.is_word("new") {
            return self.new_expression();
        }
        if self.is_word("delete") {
            return self.delete_expression();
        }
        if self.is_word("throw") {
            return self.refuse(start, "exceptions");
        }
        if self.is("(") && self.is_cast() {
            self.advance();
            let outer = std::mem::replace(&mut self.in_arguments, false);
            let ty = self.whole_type()?;
            self.in_arguments = outer;
            self.expect(")")?;
            let operand = if self.is("{") { self.braces()? } else { self.unary()? };
            let span = self.since(start);
            return Ok(Expr { kind: ExprKind::Cast(CastKind::C, Box::new(ty), Box::new(operand)), span });
        }
        self.postfix()
    }

    /// Whether this `(` starts a cast.
    fn is_cast(&mut self) -> bool {
        let place = self.place();
        self.at += 1;
        let mut found = false;
        if self.at_type() {
            let depth = self.depth;
            let outer = std::mem::replace(&mut self.in_arguments, false);
            self.trials += 1;
            found = self.whole_type().is_ok() && self.is(")");
            self.trials -= 1;
            self.in_arguments = outer;
            self.depth = depth;
        }
        self.go_back(place);
        found
    }

    fn sizeof(&mut self) -> Result<Expr> {
        let start = self.advance().span;
        if self.eat("...") {
            self.expect("(")?;
            let name = self.name("the name of a pack")?;
            self.expect(")")?;
            return Ok(Expr { kind: ExprKind::SizeofPack(name), span: self.since(start) });
        }
        if self.is("(") && self.is_cast() {
            self.advance();
            let ty = self.whole_type()?;
            let ty = self.array_sizes(ty)?;
            self.expect(")")?;
            return Ok(Expr { kind: ExprKind::SizeofType(Box::new(ty)), span: self.since(start) });
        }
        let operand = self.unary()?;
        Ok(Expr { kind: ExprKind::SizeofExpr(Box::new(operand)), span: self.since(start) })
    }

    pub fn braces(&mut self) -> Result<Expr> {
        let start = self.span();
        let items = self.list("{", "}")?;
        Ok(Expr { kind: ExprKind::Braces(items), span: self.since(start) })
    }

    /// Parses a list such as `(a, b, c...)`.
    pub fn list(&mut self, open: &'static str, close: &'static str) -> Result<Vec<Expr>> {
        self.expect(open)?;
        self.deeper()?;
        let outer = std::mem::replace(&mut self.in_arguments, false);
        let mut items = Vec::new();
        while !self.is(close) {
            if self.is(".") && close == "}" {
                return self.refuse(self.span(), "designated initialisers");
            }
            let item = if self.is("{") { self.braces()? } else { self.assignment()? };
            let item = match self.is("...") {
                true => {
                    let span = self.advance().span;
                    Expr { kind: ExprKind::Expand(Box::new(item)), span }
                }
                false => item,
            };
            items.push(item);
            if !self.eat(",") {
                break;
            }
        }
        self.in_arguments = outer;
        self.depth -= 1;
        self.expect(close)?;
        Ok(items)
    }

    /// Whether the name here is a type, for statements that may be declarations.
    pub fn at_declaration(&mut self) -> bool {
        if !self.at_type() {
            return false;
        }
        let kind = self.path_kind();
        // `float(x);` and `Vector{1};` are expressions.
        if kind.is_some_and(is_type) || self.peek().ident().is_some_and(|name| is_keyword(name)) {
            let (place, depth) = (self.place(), self.depth);
            self.trials += 1;
            let is_expression = self.base_type().is_ok() && (self.is("(") || self.is("{") || self.is("::"));
            self.trials -= 1;
            self.go_back(place);
            self.depth = depth;
            return !is_expression;
        }
        kind != Some(NameKind::Value)
    }
}
