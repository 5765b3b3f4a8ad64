//! Expressions, parsed by precedence.

use super::ast::*;
use super::names::NameKind;
use super::parser::{Parser, is_keyword};
use super::type_names::is_type;
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};
use std::rc::Rc;

const LEVELS: &[&[(&str, Binary)]] = &[
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

    fn postfix(&mut self) -> Result<Expr> {
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

    fn member_template(&self, name: &Name) -> bool {
        self.names.namespaces[0].contains_key(&*format!("{name}<"))
    }

    fn primary(&mut self) -> Result<Expr> {
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
    fn named(&mut self) -> Result<Expr> {
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

    fn parentheses(&mut self) -> Result<Expr> {
        let start = self.expect("(")?;
        let outer = std::mem::replace(&mut self.in_arguments, false);
        self.deeper()?;
        let result = self.in_parentheses(start);
        self.depth -= 1;
        self.in_arguments = outer;
        result
    }

    fn in_parentheses(&mut self, start: Span) -> Result<Expr> {
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

    fn fold_operator(&mut self) -> Result<Binary> {
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

    fn lambda(&mut self) -> Result<Expr> {
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

fn void(span: Span) -> Expr {
    Expr { kind: ExprKind::Null, span }
}

/// In `(0 + ... + pack)`, a literal or a cast comes first; a name or a call comes last.
fn mentions_pack_last(last: &Option<Box<Expr>>) -> bool {
    last.as_ref().is_some_and(|last| {
        !matches!(last.kind, ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Char(_))
    })
}
