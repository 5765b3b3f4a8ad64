//! Primary expressions, which operators combine, and what follows them: calls, members, indices.

use super::ast::*;
use super::expressions::LEVELS;
use super::names::NameKind;
use super::parser::{Parser, is_keyword};
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};
use std::rc::Rc;

impl Parser {
    pub(super) fn postfix(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut value = self.primary()?;
        let mut steps = 0;
        loop {
            steps += 1;
            if steps > 100 {
                return Err(Error::new(self.span(), "this is nested too deeply").last());
            }
            let at = self.span();
            if self.is("(") {
                let arguments = self.list("(", ")")?;
                self.note_call(&value, &arguments);
                // A method may write its object.
                if let ExprKind::Member(object, false, _) = &value.kind {
                    self.mark_written(object);
                }
                value = Expr { kind: ExprKind::Call(Box::new(value), arguments), span: self.since(start) };
            } else if self.is("<<<") || self.is("<<") && self.ahead(1).is("<") {
                // Formatters split the brackets, and nvcc accepts that.
                if self.advance().is("<<") {
                    self.advance();
                }
                let outer = std::mem::replace(&mut self.in_arguments, true);
                let mut config = Vec::new();
                while !(self.is(">>>") || self.is(">>")) {
                    config.push(if self.is("{") { self.braces()? } else { self.conditional()? });
                    if !self.eat(",") {
                        break;
                    }
                }
                self.in_arguments = outer;
                if self.eat(">>") {
                    self.expect(">")?;
                } else {
                    self.expect(">>>")?;
                }
                let arguments = self.list("(", ")")?;
                let span = self.since(start);
                value = Expr { kind: ExprKind::Launch(Box::new(value), config, arguments), span };
            } else if self.eat("[") {
                let outer = std::mem::replace(&mut self.in_arguments, false);
                let index = self.expression()?;
                self.in_arguments = outer;
                self.expect("]")?;
                self.check_index(&index);
                let kind = ExprKind::Index(Box::new(value), Box::new(index));
                value = Expr { kind, span: self.since(start) };
            } else if self.is(".") || self.is("->") {
                let arrow = self.advance().is("->");
                let is_template = self.eat_word("template");
                let name = if self.is_word("operator") {
                    return self.refuse(self.span(), "operators called by name");
                } else {
                    self.name("the name of a member")?
                };
                let mut segment = Segment { name, arguments: None };
                if self.is("<") && (is_template || self.member_template(&segment.name)) {
                    segment.arguments = Some(self.template_arguments()?);
                }
                let kind = ExprKind::Member(Box::new(value), arrow, segment);
                value = Expr { kind, span: self.since(start) };
            } else if self.eat("++") {
                self.mark_written(&value);
                value = Expr { kind: ExprKind::Unary(Unary::PostIncrement, Box::new(value)), span: at };
            } else if self.eat("--") {
                self.mark_written(&value);
                value = Expr { kind: ExprKind::Unary(Unary::PostDecrement, Box::new(value)), span: at };
            } else {
                return Ok(value);
            }
        }
    }

    pub(super) fn member_template(&self, name: &Name) -> bool {
        self.names.namespaces[0].contains_key(&*format!("{name}<"))
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        let token = self.peek().clone();
        let span = token.span;
        let made = |kind| Ok(Expr { kind, span });
        match &token.tok {
            Tok::Int { value, unsigned, long } => {
                self.advance();
                let prim = match (unsigned, long) {
                    (false, false) => Prim::I32,
                    (true, false) => Prim::U32,
                    (false, true) => Prim::I64,
                    (true, true) => Prim::U64,
                };
                made(ExprKind::Int(*value, prim))
            }
            Tok::Float { value, single } => {
                self.advance();
                made(ExprKind::Float(*value, if *single { Prim::F32 } else { Prim::F64 }))
            }
            Tok::Char(value) => {
                self.advance();
                made(ExprKind::Char(*value))
            }
            Tok::Str(_) => {
                let mut text = String::new();
                while let Tok::Str(part) = &self.peek().tok {
                    text.push_str(part);
                    self.advance();
                }
                made(ExprKind::Str(text.into()))
            }
            Tok::Punct("(") => self.parentheses(),
            Tok::Punct("[") => self.lambda(),
            Tok::Punct("::") => self.named(),
            Tok::Ident(name) => match &**name {
                "true" | "false" => {
                    self.advance();
                    made(ExprKind::Bool(&**name == "true"))
                }
                "nullptr" => {
                    self.advance();
                    made(ExprKind::Null)
                }
                "this" => {
                    self.advance();
                    made(ExprKind::This)
                }
                "static_cast" | "reinterpret_cast" | "const_cast" => {
                    self.advance();
                    let kind = match &**name {
                        "static_cast" => CastKind::Static,
                        "const_cast" => CastKind::Const,
                        _ => CastKind::Reinterpret,
                    };
                    self.expect("<")?;
                    let outer = std::mem::replace(&mut self.in_arguments, true);
                    let ty = self.whole_type()?;
                    self.in_arguments = outer;
                    self.close_arguments()?;
                    self.expect("(")?;
                    let outer = std::mem::replace(&mut self.in_arguments, false);
                    let value = self.expression()?;
                    self.in_arguments = outer;
                    self.expect(")")?;
                    let span = self.since(span);
                    Ok(Expr { kind: ExprKind::Cast(kind, Box::new(ty), Box::new(value)), span })
                }
                "dynamic_cast" => self.refuse(span, "`dynamic_cast` expressions"),
                "typeid" => self.refuse(span, "`typeid` expressions"),
                "operator" => self.refuse(span, "operators called by name"),
                _ => self.named(),
            },
            _ => self.unexpected("an expression"),
        }
    }

    /// Parses a variable, a function, or a type that constructs a value.
    pub(super) fn named(&mut self) -> Result<Expr> {
        let start = self.span();
        if self.at_type() {
            let ty = self.base_type()?;
            // A constructor call or a member's value: `Vector(1, 2)`, `Range<T>::low`.
            if self.is("(") || self.is("{") {
                let brace = self.is("{");
                let items = if brace { self.list("{", "}")? } else { self.list("(", ")")? };
                let span = self.since(start);
                return Ok(Expr { kind: ExprKind::Construct(Box::new(ty), items, brace), span });
            }
            if let TypeKind::Path(path) = ty.kind {
                if path.segments.len() > 1 {
                    return Ok(Expr { span: path.span, kind: ExprKind::Path(path) });
                }
                let name = path.segments[0].name.clone();
                return Err(Error::new(path.span, format!("`{name}` is a type, but a value is needed here")));
            }
            return self.unexpected("`(` after a type");
        }
        if let Some(word) = self.peek().ident()
            && is_keyword(word)
        {
            return self.unexpected("an expression");
        }
        let path = self.path()?;
        self.note_if_undeclared(&path);
        // `Input{x, value}`, whose template arguments are deduced, is handled as a type above.
        Ok(Expr { span: path.span, kind: ExprKind::Path(path) })
    }

    pub(super) fn parentheses(&mut self) -> Result<Expr> {
        let start = self.expect("(")?;
        let outer = std::mem::replace(&mut self.in_arguments, false);
        self.deeper()?;
        let result = self.in_parentheses(start);
        self.depth -= 1;
        self.in_arguments = outer;
        result
    }

    pub(super) fn in_parentheses(&mut self, start: Span) -> Result<Expr> {
        // (... op pack)
        if self.eat("...") {
            let operator = self.fold_operator()?;
            let pack = Box::new(self.unary()?);
            self.expect(")")?;
            let kind = ExprKind::Fold { operator, pack, first: None, left: true };
            return Ok(Expr { kind, span: self.since(start) });
        }
        let value = self.expression()?;
        // (pack op ...), (pack op ... op first), (first op ... op pack)
        if self.ahead(1).is("...") && matches!(self.peek().tok, Tok::Punct(_)) && !self.is(")") {
            let operator = self.fold_operator()?;
            self.expect("...")?;
            let mut first = None;
            let mut pack = Box::new(value);
            let mut left = false;
            if !self.is(")") {
                if self.fold_operator()? != operator {
                    return self.unexpected("the same operator twice");
                }
                let other = Box::new(self.unary()?);
                // Which side is the pack is known only when packs are: the lowering decides.
                first = Some(other);
                if mentions_pack_last(&first) {
                    left = true;
                    std::mem::swap(&mut pack, first.as_mut().unwrap_or(&mut Box::new(void(start))));
                }
            }
            self.expect(")")?;
            return Ok(Expr {
                kind: ExprKind::Fold { operator, pack, first, left },
                span: self.since(start),
            });
        }
        self.expect(")")?;
        Ok(value)
    }

    pub(super) fn fold_operator(&mut self) -> Result<Binary> {
        let Tok::Punct(punct) = self.peek().tok else { return self.unexpected("an operator") };
        let all = LEVELS.iter().flat_map(|level| level.iter()).chain(&[(",", Binary::Comma)]);
        match all.into_iter().find(|(text, _)| *text == punct) {
            Some((_, operator)) => {
                self.advance();
                Ok(*operator)
            }
            None => self.unexpected("an operator"),
        }
    }

    pub(super) fn lambda(&mut self) -> Result<Expr> {
        let start = self.expect("[")?;
        let mut default = None;
        let mut captures = Vec::new();
        while !self.is("]") {
            if self.is("&") && (self.ahead(1).is("]") || self.ahead(1).is(",")) {
                self.advance();
                default = Some(Capture::Reference);
            } else if self.eat("=") {
                default = Some(Capture::Value);
            } else if self.eat_word("this") {
                // `this`: members are accessed through the object of the enclosing function.
            } else {
                let kind = if self.eat("&") { Capture::Reference } else { Capture::Value };
                let name = self.name("a variable to capture")?;
                let init = if self.eat("=") { Some(self.assignment()?) } else { None };
                captures.push((name, kind, init));
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        self.templates += 1;
        let function = self.scoped(|parser| {
            captures.iter().for_each(|(name, ..)| parser.declare(name, NameKind::Value));
            parser.lambda_function(start)
        });
        self.templates -= 1;
        let (function, is_mutable) = function?;
        let lambda = Lambda { default, captures, is_mutable, function: Rc::new(function) };
        Ok(Expr { kind: ExprKind::Lambda(Rc::new(lambda)), span: start })
    }
}

pub(super) fn void(span: Span) -> Expr {
    Expr { kind: ExprKind::Null, span }
}

/// In `(0 + ... + pack)`, a literal or a cast comes first; a name or a call comes last.
pub(super) fn mentions_pack_last(last: &Option<Box<Expr>>) -> bool {
    last.as_ref().is_some_and(|last| {
        !matches!(last.kind, ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Char(_))
    })
}
